package elastictrainingjob

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// elastic is a job of 1..4 workers with two that train, which may grow.
func elastic(name string) *v1beta1.ElasticTrainingJob {
	job := jobNamed(name)
	job.Spec.MinReplicas, job.Spec.MaxReplicas, job.Spec.Task = 1, 4, "clicks"
	began := metav1.NewTime(newClock().now.Add(-time.Hour))
	job.Status = status{
		Phase: v1beta1.PhaseRunning, StartTime: &began, RunningSince: &began,
		Attempt: &v1beta1.AttemptStatus{Number: 1, StartTime: began, MinReplicas: 1, MaxReplicas: 4},
		Members: []v1beta1.Member{{Index: 0, UID: "p-0"}, {Index: 1, UID: "p-1"}},
	}
	return job
}

// trainee is a job, the operator that serves it, and worker 0, which reports progress.
type trainee struct {
	*WithT
	t        *testing.T
	clock    *clock
	job      *v1beta1.ElasticTrainingJob
	r        *Reconciler
	answer   error
	progress int
	woken    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newTrainee(t *testing.T) *trainee {
	w := &trainee{WithT: NewWithT(t), t: t, clock: newClock(), job: elastic("ctr")}
	w.r = reconcilerOf(w.job, w.clock, &w.answer)
	w.r.now = func() time.Time { return w.clock.now }
	w.woken = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(w.woken.ShutDown)
	w.Expect(w.r.client.Get(t.Context(), client.ObjectKeyFromObject(w.job), w.job)).To(Succeed())
	return w
}

// pod is a worker of the job as it reported progress.
func (w *trainee) pod(index, progress int) *corev1.Pod {
	job, yes := w.job, true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: "ctr-worker-" + strconv.Itoa(index), UID: types.UID("p-" + strconv.Itoa(index)),
		Labels:      map[string]string{v1beta1.LabelAttempt: job.Status.Attempt.ID()},
		Annotations: map[string]string{v1beta1.AnnotationProgress: strconv.Itoa(progress)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ElasticTrainingJobKind, Name: job.Name, UID: job.UID,
			Controller: &yes,
		}},
	}}
}

// updated has the watch report that a pod is another one now.
func (w *trainee) updated(from, to *corev1.Pod) {
	w.r.podHandler().Update(w.t.Context(), event.UpdateEvent{ObjectOld: from, ObjectNew: to}, w.woken)
}

// advances has the training advance n times, after a pause each.
func (w *trainee) advances(n int, pause time.Duration) {
	for range n {
		w.clock.pass(pause)
		w.updated(w.pod(0, w.progress), w.pod(0, w.progress+1))
		w.progress++
	}
}

// evaluate is a reconcile that wants to change the status, and returns what it was handed.
func (w *trainee) evaluate(change func(*status)) jobstate.Observed {
	w.t.Helper()
	w.Expect(w.r.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.job), w.job)).To(Succeed())
	o := jobstate.Observed{Job: w.job}
	o.Queue.Name = "ads"
	w.r.observeGrowth(&o)
	d := training.Decision{Status: *w.job.Status.DeepCopy()}
	if seconds := int32(o.MeasuredOutage.Seconds()); seconds > 0 { // as the planner does
		d.Status.Elasticity = &v1beta1.ElasticityStatus{OutageSeconds: seconds}
	}
	if change != nil {
		change(&d.Status)
	}
	for held := true; held; { // A write may be held back for some seconds.
		result, err := w.r.report(w.t.Context(), o, d, nil, w.clock.now)
		w.Expect(err).NotTo(HaveOccurred())
		w.clock.pass(result.RequeueAfter)
		held = result.RequeueAfter > 0 && w.answer == nil
	}
	return o
}

// outages is how many outages the metrics have.
func (w *trainee) outages() uint64 {
	families, err := served(w.t, w.r.metrics).Gather()
	w.Expect(err).NotTo(HaveOccurred())
	sum := uint64(0)
	for _, family := range families {
		if family.GetName() == "tideline_job_outage_seconds" {
			for _, m := range family.GetMetric() {
				sum += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return sum
}

func grows(st *status) { st.Members = append(st.Members, v1beta1.Member{Index: 2, UID: "p-2"}) }

func TestOutageOfAGrowthIsMeasuredAndWrittenOnce(t *testing.T) {
	w := newTrainee(t)
	w.evaluate(nil)
	w.advances(20, 10*time.Second)
	w.Expect(w.evaluate(grows).MeasuredOutage).To(BeZero())
	w.Expect(w.woken.Len()).To(BeZero(), "progress wakes no job")
	w.advances(1, 95*time.Second)
	w.Expect(w.evaluate(nil).MeasuredOutage).To(BeZero(), "another pause may come")
	w.advances(10, 10*time.Second)
	w.Expect(w.woken.Len()).To(Equal(1), "what was measured wakes the job, once")

	conflict := apierrors.NewConflict(v1beta1.GroupVersion.WithResource("elastictrainingjobs").GroupResource(), "ctr", nil)
	w.answer = conflict
	handed := w.evaluate(nil)
	w.Expect(handed.MeasuredOutage).To(BeNumerically("~", 88*time.Second, 3*time.Second), "95 s and the time of the write, less "+
		"the "+
		"usual 10")
	w.Expect(handed.Measurements).To(Equal(1))
	w.answer = nil
	w.Expect(w.outages()).To(BeZero())
	w.Expect(w.evaluate(nil).MeasuredOutage).To(Equal(handed.MeasuredOutage), "the write was refused, so it is handed out again")
	w.Expect(w.outages()).To(Equal(uint64(1)))
	w.Expect(w.evaluate(nil).MeasuredOutage).To(BeZero(), "it is in the status")
	w.Expect(w.job.Status.Elasticity.OutageSeconds).To(Equal(int32(handed.MeasuredOutage.Seconds())))
	w.advances(100, 10*time.Second)
	w.Expect(w.evaluate(nil).MeasuredOutage).To(BeZero())
	w.Expect(w.outages()).To(Equal(uint64(1)))
	w.Expect(w.r.Journal).To(HaveValue(ConsistOf(And(
		HaveField("Kind", decisionlog.OutageMeasured), HaveField("Figures", HaveKeyWithValue(decisionlog.Task, "clicks"))))))

	w.evaluate(func(st *status) { st.Members = st.Members[:2] })
	w.advances(1, 35*time.Second)
	w.advances(20, 10*time.Second)
	w.Expect(w.evaluate(nil).MeasuredOutage).To(BeNumerically("~", 28*time.Second, 3*time.Second), "of one that became smaller too")
	w.Expect(w.outages()).To(Equal(uint64(2)))
}

// A smoothed value may be what the status has already. Then nothing is written, and the measurement is done with.
func TestAMeasurementThatChangesNothingIsHandedOutOnce(t *testing.T) {
	w := newTrainee(t)
	w.evaluate(nil)
	w.advances(20, 10*time.Second)
	w.evaluate(grows)
	w.advances(1, 95*time.Second)
	w.advances(10, 10*time.Second)
	same := func(st *status) { st.Elasticity = nil }
	w.Expect(w.evaluate(same).MeasuredOutage).NotTo(BeZero())
	w.Expect(w.evaluate(same).MeasuredOutage).To(BeZero())
	w.Expect(w.outages()).To(Equal(uint64(1)))
}

func TestOnlyProgressOfWorker0OfTheAttemptIsMeasured(t *testing.T) {
	w := newTrainee(t)
	meter := func() growth.Meter { return w.r.outages.jobs[client.ObjectKeyFromObject(w.job)].meter }
	w.evaluate(nil)
	w.advances(3, time.Second)
	before := meter()
	w.clock.pass(time.Second)
	w.updated(w.pod(1, 0), w.pod(1, 99))
	old := func(progress int) *corev1.Pod {
		pod := w.pod(0, progress)
		pod.Labels[v1beta1.LabelAttempt] = "0-1"
		return pod
	}
	w.updated(old(0), old(99))
	stranger := func(progress int) *corev1.Pod {
		pod := w.pod(0, progress)
		pod.OwnerReferences[0].UID = "another"
		return pod
	}
	w.updated(stranger(0), stranger(99))
	w.updated(w.pod(0, 2), w.pod(0, 3))
	w.Expect(meter()).To(Equal(before))
	w.updated(w.pod(0, 3), w.pod(0, 4))
	w.Expect(meter()).NotTo(Equal(before))
	w.Expect(w.woken.Len()).To(BeZero())
}

func TestAPauseBetweenTwoAttemptsIsNoOutage(t *testing.T) {
	for name, change := range map[string]func(*status){
		"restarted": func(st *status) { st.Attempt.Number++ },
		"suspended": func(st *status) {
			st.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: "Suspended"}}
		},
		"ended": func(st *status) {
			st.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Succeeded"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTrainee(t)
			w.evaluate(nil)
			w.advances(20, 10*time.Second)
			w.evaluate(grows)
			w.evaluate(change)
			w.evaluate(nil)
			w.advances(30, time.Minute)
			w.Expect(w.evaluate(nil).MeasuredOutage).To(BeZero())
			w.Expect(w.woken.Len()).To(BeZero())
		})
	}
}

func TestTheNextAttemptIsMeasuredAnew(t *testing.T) {
	w := newTrainee(t)
	w.evaluate(nil)
	w.advances(20, 10*time.Second)
	w.evaluate(func(st *status) { st.Attempt.Number++ })
	w.evaluate(nil)
	w.clock.pass(time.Hour)
	w.advances(3, 10*time.Second)
	w.evaluate(grows)
	w.advances(1, 60*time.Second)
	w.advances(12, 10*time.Second)
	w.Expect(w.evaluate(nil).MeasuredOutage).To(BeNumerically("~", 53*time.Second, 4*time.Second),
		"the hour between the attempts is no usual pause")
}

func TestMetersAreBoundedAndForgotten(t *testing.T) {
	g, o := NewWithT(t), newOutages()
	fixed := elastic("fixed")
	fixed.Spec.MinReplicas = 4
	o.read(fixed)
	g.Expect(o.jobs).To(BeEmpty(), "it cannot change its size")
	for i := range mostMeters + 10 {
		o.read(elastic(strconv.Itoa(i)))
	}
	g.Expect(o.jobs).To(HaveLen(mostMeters))
	again := elastic("5")
	again.UID = "again"
	o.read(again)
	g.Expect(o.jobs[client.ObjectKeyFromObject(again)].job).To(Equal(again.UID), "a job that was created again begins anew")
	o.forget(client.ObjectKeyFromObject(again))
	g.Expect(o.jobs).To(HaveLen(mostMeters - 1))
	o.noteWrite(again, 1, true, newClock().now)
	g.Expect(o.jobs).To(HaveLen(mostMeters - 1))
}

func TestGrowthIsObservedWhereItCanBe(t *testing.T) {
	w := newTrainee(t)
	o := w.evaluate(nil)
	w.Expect(o.Stay).To(Equal(growth.Stay{Held: time.Hour, Left: 3}))
	w.Expect(o.TaskOutage).To(Equal(42 * time.Second))
	w.Expect(o.TaskSpeeds).To(HaveLen(1))
	w.job.Spec.Task, w.job.Spec.MinReplicas = "other", 4
	fixed := jobstate.Observed{Job: w.job}
	fixed.Queue.Name = "ads"
	w.r.observeGrowth(&fixed)
	w.Expect(fixed.Stay).To(BeZero())
	w.Expect(fixed.TaskOutage).To(BeZero())
}
