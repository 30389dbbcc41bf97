package report

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/post"
)

// twoDays are those of a pod of alice's that held a GPU all the time. Prometheus was down on the second one. Another pod of hers
// had run for ten seconds when an operator saw it last, just now.
func twoDays(f *fixture) []ledger.Entries {
	pod := ledger.Pod{
		UID: "a", Namespace: "ads", Name: "ctr-worker-0", Node: "gpu-0", Profile: "ads", User: "alice",
		Kind: v1beta1.ElasticTrainingJobKind, Task: "ctr", Run: "1", Role: v1beta1.PartCore,
		Resources: ledger.Resources{"nvidia.com/gpu": 1000},
	}
	lost, now := pod, time.Now()
	lost.UID, lost.Namespace, lost.Profile, lost.Kind, lost.Task = "b", "gap", "gap", "Pod", "lost"
	part := ledger.Part{Namespace: "ads", Kind: pod.Kind, Task: "ctr", Role: string(sizing.Master)}
	return []ledger.Entries{{
		Stays: []ledger.Stay{
			{Pod: pod, Begin: f.day, End: f.until, Final: true, Outcome: ledger.Succeeded},
			{Pod: lost, Begin: now.Add(-10 * time.Second), End: now},
		},
		PartDays: []ledger.PartDay{inUse(part, f.day, 24*time.Hour, 0.5)},
	}}
}

var _ = Describe("A ledger", Ordered, func() {
	var f *fixture
	BeforeAll(func(ctx SpecContext) {
		f = begin(ctx, twoDays, "prometheus: {url: \"http://127.0.0.1:1\"}")
		Expect(f.Client.Create(ctx, configMap("prices", "prices.yaml", prices))).To(Succeed())
	})

	It("behaviour 2: while Prometheus was down nobody knows what was used, and all is paid", func(ctx SpecContext) {
		d := f.make(ctx, f.report("unseen", over(48*time.Hour)))
		Expect(d.Total).To(And(HaveField("Cost", "480.00"), HaveField("AcceleratorHours", "48.000"),
			HaveField("Utilization", HaveValue(BeNumerically("~", 0.5)))), "of the time of which it is known")
		Expect(d.Days).To(HaveExactElements(
			And(HaveField("Cost", "240.00"), HaveField("Utilization", HaveValue(BeNumerically("~", 0.5)))),
			And(HaveField("Cost", "240.00"), HaveField("Utilization", BeNil()))))
		Expect(d.Notes).To(ContainElement(ContainSubstring("The use of accelerators is known for 50 % of what was held.")))
		d = f.make(ctx, f.report("blind", over(24*time.Hour)))
		Expect(d.Total).To(And(HaveField("Cost", "240.00"), HaveField("Utilization", BeNil())))
		Expect(f.columns(ctx, "blind")).To(And(HaveKeyWithValue("Total", "EUR 240.00"),
			HaveKeyWithValue("Util", Or(BeNil(), BeEmpty()))))
		Expect(f.get(ctx, "blind/latest/report.html")).To(ContainSubstring("unknown"))
	})

	It("behaviour 2: what came and went while the operator was down is counted as far as anybody can know", func(ctx SpecContext) {
		s := f.NewScenario(GinkgoT(), "gap", 8)
		team := testutil.Profile("gap").Obj()
		Expect(f.Client.Create(ctx, team)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Client.Delete(ctx, team)).To(Succeed()) })
		s.Join("gap")
		// A second costs a euro.
		Expect(f.Client.Create(ctx, configMap("dear", "prices.yaml", priceList("2020-01-01", "3600")))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Client.Delete(ctx, configMap("dear", "", ""))).To(Succeed()) })
		for _, name := range []string{"through", "ends", "gone"} {
			s.Create(notebook(s, name))
		}
		Eventually(f.holders(ctx)).Should(ConsistOf("through", "ends", "gone"), "the ledger has them")

		f.Operator.Kill()
		s.Create(notebook(s, "between"), notebook(s, "unseen"))
		paid := map[string]string{"ends": finish(s, "ends"), "between": finish(s, "between")}
		for _, name := range []string{"gone", "unseen"} {
			gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
			Expect(f.Client.Delete(ctx, gone, client.GracePeriodSeconds(0))).To(Succeed())
			Eventually(func() error { return f.Client.Get(ctx, client.ObjectKeyFromObject(gone), gone) }).ShouldNot(Succeed())
		}
		until := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		Expect(f.Operator.Start(ctx)).To(Succeed())

		d := f.make(ctx, f.report("gap", over(time.Hour), func(r *v1beta1.CostReport) {
			r.Annotations[v1beta1.AnnotationReportUntil] = until.Format(time.RFC3339)
			r.Spec.Profiles, r.Spec.PriceListRef.Name = []string{"gap"}, "dear"
		}))
		costs := d.costs("task")
		Expect(costs).To(And(HaveLen(5), HaveKeyWithValue("ends", paid["ends"]), HaveKeyWithValue("between", paid["between"]),
			HaveKeyWithValue("through", euros(until.Sub(boundAt(s, "through")))), HaveKey("gone"),
			HaveKeyWithValue("lost", "10.00")))
		Expect(d.Outcomes).To(ConsistOf(
			And(HaveField("Name", "Succeeded"), HaveField("Pods", 2)), And(HaveField("Name", "Running"), HaveField("Pods", 1)),
			And(HaveField("Name", "Lost"), HaveField("Pods", 2))))
		for _, row := range d.Rows {
			switch {
			case row.Dimension != "task" || row.Cost == "0.00":
			case row.Task == "lost" || row.Task == "gone":
				Expect(row.Uncertain).To(HaveValue(BeNumerically(">", 0)), row.Task)
			default:
				Expect(row.Uncertain).To(HaveValue(BeZero()), row.Task)
			}
		}
		Expect(d.costs("user")).To(HaveKeyWithValue("alice", d.Total.Cost), "a notebook's GPU is on somebody's page")
		Expect(d.Notes).To(ContainElement(ContainSubstring("on which a pod ended while no operator was running, so its end is a " +
			"guess")))
		Expect(d.Notes).NotTo(ContainElement(ContainSubstring("was not recorded")))
	})

	It("behaviour 2: while somebody else locks the file a report waits, and then it is made", func(ctx SpecContext) {
		db, err := sql.Open("sqlite", "file:"+f.file+"?_txlock=immediate")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(db.Close)
		lock, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = lock.Rollback() })
		r := f.report("locked")
		Expect(f.Client.Create(ctx, r)).To(Succeed())
		Eventually(f.read(ctx, "locked")).Should(say(v1beta1.ReasonLedgerUnavailable, "Tideline cannot read the ledger",
			"it is locked by another process: see who has it open; it is tried again"))
		Expect(lock.Rollback()).To(Succeed())
		f.annotate(ctx, r, "example.com/poke", "now") // it would be tried again within a minute
		Eventually(f.read(ctx, "locked")).Should(say(v1beta1.ReasonReportMade, "EUR 480.00"))
	})

	It("behaviour 2: a lost file is begun anew, and a backup brings back reports and who has got them", func(ctx SpecContext) {
		Expect(f.Client.Create(ctx, smtp("smtp", f.post.Secret))).To(Succeed())
		r := f.report("weekly", func(r *v1beta1.CostReport) {
			r.Spec.Mail = &v1beta1.ReportMail{SMTPSecretRef: v1beta1.ObjectRef{Name: "smtp"}, From: post.From,
				To: []string{"ann@example.com", "bob@example.com"}}
		})
		Expect(f.Client.Create(ctx, r)).To(Succeed())
		mailed := And(say(v1beta1.ReasonReportMade, "EUR 480.00"), HaveField("Status.Mailed", "2/2"))
		Eventually(f.read(ctx, "weekly")).Should(mailed)
		page := f.get(ctx, "weekly/latest/report.html")
		backup := filepath.Join(filepath.Dir(f.file), "backup.db")
		Expect(f.copyLedger(ctx, backup)).To(Succeed(), "as docs/operations.md says, while the operator writes")

		f.Operator.Kill()
		f.removeLedger()
		Expect(f.Operator.Start(ctx)).To(Succeed())
		Eventually(f.read(ctx, "weekly")).Should(And(mailed, say(v1beta1.ReasonReportMade, "no longer has that report")))
		once := map[string]int{"ann@example.com": 1, "bob@example.com": 1}
		Expect(f.post.Got()).To(Equal(once))

		f.Operator.Kill()
		f.removeLedger()
		Expect(os.Rename(backup, f.file)).To(Succeed())
		Expect(f.Operator.Start(ctx)).To(Succeed())
		Eventually(f.read(ctx, "weekly")).Should(mailed)
		Expect(f.get(ctx, "weekly/latest/report.html")).To(Equal(page))
		f.annotate(ctx, r, v1beta1.AnnotationReportUntil, nil)
		Eventually(f.read(ctx, "weekly")).Should(HaveField("Status.AskedUntil", BeEmpty()))
		f.annotate(ctx, r, v1beta1.AnnotationReportUntil, f.until.Format(time.RFC3339))
		Eventually(f.read(ctx, "weekly")).Should(And(HaveField("Status.Last.Revision", int32(2)), mailed), "the past is there as well")
		Expect(f.document(ctx, "weekly").Total).To(And(HaveField("Cost", "480.00"), HaveField("Runs", 1)))
		Expect(f.post.Got()).To(Equal(once), "nothing is mailed twice")
	})
})

// notebook is a pod of alice's with a GPU, on the node of a scenario.
func notebook(s *testutil.Scenario, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{"tideline.io/owner": "alice"}},
		Spec: corev1.PodSpec{NodeName: s.Node(0), Containers: []corev1.Container{{
			Name: "notebook", Image: "notebook",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{testutil.GPUResource: resource.MustParse("1")}},
		}}},
	}
}

// boundAt is when a pod was bound to its node, as it says.
func boundAt(s *testutil.Scenario, name string) time.Time {
	pod := testutil.Get(s, &corev1.Pod{}, name)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// finish ends a pod as a kubelet does, once it runs and a second has passed by its clock, and returns what it cost.
func finish(s *testutil.Scenario, name string) string {
	GinkgoHelper()
	Eventually(func() corev1.PodPhase { return testutil.Get(s, &corev1.Pod{}, name).Status.Phase }).Should(Equal(corev1.PodRunning))
	begun, now := boundAt(s, name), time.Now().UTC().Truncate(time.Second).Add(time.Second)
	patch := fmt.Sprintf(`{"status":{"phase":"Succeeded","containerStatuses":[{"name":"notebook","image":"notebook","imageID":"",`+
		`"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"finishedAt":%q}}}]}}`, now.Format(time.RFC3339))
	pod := testutil.Get(s, &corev1.Pod{}, name)
	Expect(s.Client.Status().Patch(s.Context(), pod, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	return euros(now.Sub(begun))
}

// euros is what a GPU costs for a time, at one a second.
func euros(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// holders are the tasks of pods that the ledger has as running.
func (f *fixture) holders(ctx context.Context) func() ([]string, error) {
	return func() ([]string, error) {
		l, err := ledger.Open(ctx, ledger.Options{File: f.file})
		if err != nil {
			return nil, err
		}
		stays, err := l.OpenStays(ctx)
		var tasks []string
		for i := range stays {
			tasks = append(tasks, stays[i].Task)
		}
		return tasks, errors.Join(err, l.Close())
	}
}

// copyLedger makes a backup of the ledger, as `sqlite3` does.
func (f *fixture) copyLedger(ctx context.Context, to string) error {
	db, err := sql.Open("sqlite", f.file)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

// removeLedger removes the ledger with what belongs to it.
func (f *fixture) removeLedger() {
	GinkgoHelper()
	files, err := filepath.Glob(f.file + "*")
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		Expect(os.Remove(file)).To(Succeed())
	}
}
