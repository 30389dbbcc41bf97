package order

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// gpuColumn is that of GPUs in an export.
const gpuColumn = string(testutil.GPUResource) + " (1/1000)"

// entry is what the ledger has of a pod: its first row by the names of columns, and what all of its rows say together.
type entry struct {
	Row        map[string]string
	Begin, End time.Time
	// Held is for how long it is counted.
	Held time.Duration
}

// entries reads the ledger in a file as a report does, beside the operator that writes it, by the names of pods.
func entries(ctx context.Context, file string) (map[string]entry, error) {
	l, err := ledger.Open(ctx, ledger.Options{File: file})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	var exported bytes.Buffer
	if err := l.Export(ctx, &exported, time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)); err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(&exported).ReadAll()
	if err != nil {
		return nil, err
	}
	all := map[string]entry{}
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, name := range rows[0] {
			row[name] = cells[i]
		}
		e, known := all[row["name"]]
		if e.End, err = time.Parse(time.RFC3339, row["end"]); err != nil {
			return nil, err
		}
		if !known {
			if e.Begin, err = time.Parse(time.RFC3339, row["begin"]); err != nil {
				return nil, err
			}
			e.Row = row
		}
		e.Row["outcome"] = row["outcome"]
		seconds, err := strconv.Atoi(row["seconds"])
		if err != nil {
			return nil, err
		}
		e.Held += time.Duration(seconds) * time.Second
		all[row["name"]] = e
	}
	return all, nil
}

// On a cluster of its own, because its operator keeps a ledger, and is killed.
var _ = Describe("The ledger", Ordered, func() {
	var in *testutil.Installation
	var file string
	BeforeAll(func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		configuration := filepath.Join(folder, "configuration.yaml")
		file = filepath.Join(folder, "ledger", "ledger.db")
		Expect(os.WriteFile(configuration, []byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\nledger:\n  file: "+file+
			"\n  userLabel: example.com/user\n"), 0o600)).To(Succeed(), "there is a configuration")
		in = suite.Own(ctx, cluster.Options{GPUNodes: 1, GPUsPerNode: 8, SchedulePeriod: 100 * time.Millisecond},
			"--config="+configuration)
	})

	It("has each pod once, from when it was bound until it ended, also when the operator was killed", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "ads")
		s.Create(testutil.Profile("ads").Obj())
		s.Join("ads")
		s.Submit(team{s}.job("ctr", 1, 1).Owner("alice@example.com").Tier("small-traffic"))
		Eventually(s.Fetch("ctr")).Should(And(testutil.Train(1), HaveField("Status.Queue", "ads")))
		notebook := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: "notebook", Labels: map[string]string{"example.com/user": "bob"},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
				Name: "a", Image: "notebook", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{testutil.GPUResource: resource.MustParse("1")},
				},
			}}},
		}
		s.Create(notebook)
		read := func() (map[string]entry, error) { return entries(ctx, file) }
		worker := testutil.WorkerName("ctr", 0)
		Eventually(read).Should(And(HaveKey(worker), HaveKey("notebook")), "both are recorded as running")
		begun, err := read()
		Expect(err).NotTo(HaveOccurred())
		for name, says := range map[string]map[string]string{
			worker: {
				"user": "alice@example.com", "tier": "small-traffic", "queue": "ads", "profile": "ads", "kind": "ElasticTrainingJob",
				"task": "ctr", "role": "core", gpuColumn: "1000", "outcome": "",
			},
			"notebook": {
				"user": "bob", "tier": "", "queue": "default", "profile": "ads", "kind": "Pod", "task": "notebook", "role": "",
				gpuColumn: "1000", "outcome": "",
			},
		} {
			for column, value := range says {
				Expect(begun[name].Row).To(HaveKeyWithValue(column, value), "%s of %s", column, name)
			}
			Expect(begun[name].Begin).To(BeTemporally("==", boundAt(testutil.Get(s, &corev1.Pod{}, name))), name)
		}

		in.Operator.Kill()
		Expect(in.Operator.Start(ctx)).To(Succeed(), "another operator leads")
		s.SucceedAll("ctr")
		s.Delete(notebook)
		Eventually(read).Should(And(
			HaveKeyWithValue(worker, HaveField("Row", HaveKeyWithValue("outcome", string(ledger.Succeeded)))),
			HaveKeyWithValue("notebook", HaveField("Row", HaveKeyWithValue("outcome", string(ledger.Deleted))))), "both have ended")
		ended, err := read()
		Expect(err).NotTo(HaveOccurred())
		Expect(ended).To(HaveLen(2), "and nothing else is there")
		for name, e := range ended {
			Expect(e.Begin).To(Equal(begun[name].Begin), name)
			Expect(e.Row).To(HaveKeyWithValue("uncertain", "false"), name)
			Expect(e.Held).To(Equal(e.End.Sub(e.Begin)), "%s counts once", name)
			Expect(time.Since(e.End)).To(BeNumerically("<", time.Minute), name)
		}
		Eventually(func() ([]string, error) { return turns(ctx, file, s.Namespace, "ctr") }).Should(
			Equal([]string{decisionlog.Ran, decisionlog.Ended}), "what became of the job is there, once, and both operators told of it")
	})
})

// turns are the kinds of decisions about a job, in their order, without those of its waits.
func turns(ctx context.Context, file, namespace, name string) (kinds []string, err error) {
	l, err := ledger.Open(ctx, ledger.Options{File: file})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	decisions, err := l.QueryDecisions(ctx, ledger.DecisionQuery{Namespace: namespace, Name: name})
	for i := range decisions {
		if decisions[i].Kind != decisionlog.Waited {
			kinds = append(kinds, decisions[i].Kind)
		}
	}
	return kinds, err
}

// boundAt is when the scheduler says that it bound a pod.
func boundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
