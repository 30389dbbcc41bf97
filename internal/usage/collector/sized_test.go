package collector

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// sized is how both roles of a job were sized: 16 processors were asked for, and as many given.
func sized(mode v1beta1.SizingMode, given string) *v1beta1.SizingStatus {
	st := &v1beta1.SizingStatus{Mode: mode, Time: metav1.NewTime(at("22 12:00:00"))}
	for _, role := range []string{"master", "worker"} {
		st.Resources = append(st.Resources, v1beta1.SizedResource{
			Role: role, Container: "trainer", Resource: "cpu", Requested: resource.MustParse("16"), Sized: resource.MustParse(given),
			Reason: v1beta1.SizedByUse,
		})
	}
	return st
}

func TestSlack(t *testing.T) {
	g := NewWithT(t)
	store := func(objects ...any) toolscache.Store {
		s := toolscache.NewStore(func(o any) (string, error) { return o.(metav1.Object).GetName(), nil })
		for _, o := range objects {
			g.Expect(s.Add(o)).To(Succeed())
		}
		return s
	}
	training := func(name, profile string, st *v1beta1.SizingStatus, replicas int32) *v1beta1.ElasticTrainingJob {
		job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
		since := metav1.Now()
		job.Status = v1beta1.ElasticTrainingJobStatus{
			Profile: profile, Tier: "exploratory", Sizing: st, Replicas: replicas, RunningSince: &since,
		}
		return job
	}
	waiting := training("d", "ads", sized(v1beta1.SizingEnforce, "1"), 9)
	waiting.Status.RunningSince = nil
	merge := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Status: v1beta1.MergeJobStatus{
		Tier: "main-traffic", Sizing: sized(v1beta1.SizingEnforce, "20"),
		Run: &v1beta1.MergeRun{MinReplicas: 2, RunTime: &metav1.Time{}},
	}}
	const help = "Requests of running pods beyond the result of sizing, in processors or bytes: still requested with mode " +
		"Recommend, released with mode Enforce."
	elected := make(chan struct{})
	s := newSlack(store(training("a", "ads", sized(v1beta1.SizingEnforce, "4"), 3),
		training("b", "ads", sized(v1beta1.SizingEnforce, "14"), 1), training("c", "ads", sized(v1beta1.SizingRecommend, "15"), 2),
		waiting, training("e", "ads", nil, 5)), store(merge), elected)
	g.Expect(testutil.CollectAndCount(s)).To(BeZero(), "an operator that stands by tells nothing")
	close(elected)
	g.Expect(testutil.CollectAndCompare(s, strings.NewReader(`
# HELP tideline_sizing_slack `+help+`
# TYPE tideline_sizing_slack gauge
tideline_sizing_slack{mode="Enforce",profile="(default)",resource="cpu",tier="main-traffic"} -8
tideline_sizing_slack{mode="Enforce",profile="ads",resource="cpu",tier="exploratory"} 38
tideline_sizing_slack{mode="Recommend",profile="ads",resource="cpu",tier="exploratory"} 2
`))).To(Succeed())
}

func TestCount(t *testing.T) {
	w := newFixture(t)
	w.pass(turnLength)
	decided := func() float64 {
		return testutil.ToFloat64(w.metrics.decisions.WithLabelValues("Enforce", "cpu", v1beta1.SizedByUse))
	}
	count := func(before, after *v1beta1.SizingStatus, kills ...sizing.OOMKill) {
		w.CountSizing(training, "ads", "ctr", before, after, kills)
	}
	first := sized(v1beta1.SizingEnforce, "4")
	count(nil, first)
	w.Expect(decided()).To(Equal(2.0))
	count(first, first)
	w.Expect(decided()).To(Equal(2.0), "once for each attempt")
	next := first.DeepCopy()
	next.Time = metav1.NewTime(next.Time.Add(time.Minute))
	count(first, next)
	w.Expect(decided()).To(Equal(4.0))
	count(next, nil)

	killed := next.DeepCopy()
	sizing.NoteOOM(killed, sizing.Part{Role: sizing.Worker, Container: "trainer"}, w.clock)
	killed.Resources[1].Resource = "memory"
	now := metav1.NewTime(w.clock)
	killed.Resources[1].OOMKilledTime = &now
	kill := sizing.OOMKill{Pod: "p", Part: sizing.Part{Role: sizing.Worker, Container: "trainer"}, Restarts: 1, Limit: 5}
	count(next, killed, kill)
	count(killed, killed, kill)
	w.Expect(testutil.ToFloat64(w.metrics.rollBacks)).To(Equal(1.0))
	u := w.TaskHistory("ads", training, "ctr").Usage[sizing.Part{Role: sizing.Worker, Container: "trainer"}]
	w.Expect([]int64{u.OOMKills, u.OOMLimit}).To(Equal([]int64{1, 5}), "and other jobs of the task know")
}

func TestKillsThatJobsTellOfAreRecalled(t *testing.T) {
	w := newFixture(t)
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr-2", UID: "job"}}
	job.Spec.Task, job.Status.Sizing = "ctr", sized(v1beta1.SizingEnforce, "4")
	job.Status.Sizing.Resources[1].Resource = "memory"
	part := sizing.Part{Role: sizing.Worker, Container: "trainer"}
	sizing.NoteOOM(job.Status.Sizing, part, w.clock.Add(-time.Second))
	jobs := toolscache.NewStore(func(any) (string, error) { return "job", nil })
	w.Expect(jobs.Add(job)).To(Succeed())
	kills := func() int64 { return w.TaskHistory("ads", training, "ctr").Usage[part].OOMKills }
	for range 2 { // the second finds it in the ledger
		w.start()
		w.jobs = []toolscache.Store{jobs}
		w.Expect(kills()).To(BeZero(), "before the ledger was read")
		w.pass(2 * turnLength)
		w.Expect(kills()).To(Equal(int64(1)))
	}
	w.CountSizing(training, "ads", "ctr", nil, nil, []sizing.OOMKill{{Pod: "p", Part: part, Restarts: 1, Limit: 5}})
	w.Expect(kills()).To(Equal(int64(2)), "another one counts")
}
