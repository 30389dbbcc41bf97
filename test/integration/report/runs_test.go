package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// weekOfRuns is as many as the race detector lets a database have in seconds, in this process and the operator's. The full
	// 82,000 are held to the truth in internal/cost, and to ten seconds in test/perf/ledger.
	weekOfRuns = 4_100
	// batch is how many stays are recorded together.
	batch = 2_000
)

// ran is what a busy week cost in cents, counted as it is made up: by what is before the slash, as in user/alice, and in all.
type ran struct {
	cents      map[string]int64
	runs, pods int
}

// busyWeek makes up runs as those of the trace of which TestBehaviour1TotalsOfAWeekAreTheTruth tells, around the week that ends
// at w.until. A second of a GPU costs two cents, and one of a surplus worker's GPU a cent.
func (truth *ran) busyWeek(f *fixture) []ledger.Entries {
	random := rand.New(rand.NewPCG(1, 7))
	from := f.until.AddDate(0, 0, -7)
	var past []ledger.Entries
	var stays []ledger.Stay
	for run := range weekOfRuns {
		task := random.IntN(500)
		pod := ledger.Pod{
			Namespace: fmt.Sprintf("ns-%d", task%15), Node: "gpu-0", Profile: fmt.Sprintf("team-%d", task%15),
			User: fmt.Sprintf("user-%d", task%300), Kind: v1beta1.ElasticTrainingJobKind, Task: fmt.Sprintf("task-%d", task),
			Run: strconv.Itoa(run), Resources: ledger.Resources{"nvidia.com/gpu": 1000},
		}
		seconds := min(1+1144*math.Exp(1.785*random.NormFloat64()), 10*24*3600)
		begin := from.Add(time.Duration(random.Int64N(7*24*3600)) * time.Second)
		if run%100 == 0 { // it began before the week did
			begin = from.Add(-time.Minute)
			seconds += 60
		}
		end, workers, gpus := begin.Add(time.Duration(seconds)*time.Second), 1, int64(1)
		if random.IntN(1000) >= 932 {
			workers, gpus = 1+random.IntN(8), 8
		}
		pod.Resources["nvidia.com/gpu"] = 1000 * gpus
		inWeek := min(end.Unix(), f.until.Unix()) - max(begin.Unix(), from.Unix())
		for i := range workers {
			worker, price := pod, int64(2)
			worker.UID, worker.Name, worker.Role = fmt.Sprintf("%d-%d", run, i), fmt.Sprintf("%d-worker-%d", run, i), v1beta1.PartCore
			if i > 1 {
				worker.Role, price = v1beta1.PartSurplus, 1
			}
			for _, key := range []string{"total/", "user/" + pod.User, "team/" + pod.Profile, "task/" + pod.Task} {
				truth.cents[key] += inWeek * gpus * price
			}
			truth.pods++
			stays = append(stays, ledger.Stay{Pod: worker, Begin: begin, End: end, Final: true, Outcome: ledger.Succeeded})
		}
		if truth.runs++; len(stays) >= batch || truth.runs == weekOfRuns {
			past, stays = append(past, ledger.Entries{Stays: stays}), nil
		}
	}
	return past
}

// dearer is a price list of a GPU at two cents a second, half of which surplus pays.
const dearer = `currency: EUR
prices:
- validFrom: "2020-01-01"
  cpuCoreHour: "0"
  memoryGiBHour: "0"
  accelerators: [{resource: nvidia.com/gpu, hourly: "72", surplusDiscount: "0.5"}]
`

var _ = Describe("What is counted", Ordered, func() {
	var f *fixture
	truth := &ran{cents: map[string]int64{}}
	BeforeAll(func(ctx SpecContext) {
		f = begin(ctx, func(f *fixture) []ledger.Entries { return append(truth.busyWeek(f), aYear()) })
		Expect(f.Client.Create(ctx, configMap("prices", "prices.yaml", dearer))).To(Succeed())
		Expect(client.IgnoreAlreadyExists(f.Client.Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}))).To(Succeed())
	})

	It("behaviour 1: a report has each of 4,100 runs once, true totals, and says how long it took", func(ctx SpecContext) {
		d := f.make(ctx, f.report("busy"))
		euros := func(key string) string { return fmt.Sprintf("%d.%02d", truth.cents[key]/100, truth.cents[key]%100) }
		Expect(d.Total).To(And(HaveField("Cost", euros("total/")), HaveField("Runs", weekOfRuns), HaveField("Pods", truth.pods)))
		Expect(truth.cents["total/"]).To(BeNumerically(">", 10_000_000), "a hundred thousand euros")
		rows := 0
		for _, dimension := range []string{"user", "team", "task"} {
			costs := d.costs(dimension)
			rows += len(costs)
			for name, amount := range costs {
				Expect(amount).To(Equal(euros(dimension+"/"+name)), "%s %s", dimension, name)
			}
		}
		Expect(rows).To(Equal(len(truth.cents)-1), "all of them")
		r, err := f.read(ctx, "busy")()
		Expect(err).NotTo(HaveOccurred())
		Expect(regexp.MustCompile(`[^0-9.]`).ReplaceAllString(r.Status.Last.Total, "")).To(Equal(euros("total/")))
		took := regexp.MustCompile(`(?m)^tideline_cost_report_duration_seconds\{report="busy"\} (\S+)$`).
			FindStringSubmatch(f.getAs(ctx, "metrics", "metrics"))
		Expect(took).To(HaveLen(2))
		// How fast it must be is measured on a quiet machine: test/perf/ledger.
		Expect(strconv.ParseFloat(took[1], 64)).To(BeNumerically(">", 0))
		AddReportEntry("made in " + took[1] + " s")
	})

	calendar(func() *fixture { return f })
})
