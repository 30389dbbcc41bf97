package arbiter

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// fixture is a cluster of one node of eight GPUs.
type fixture struct {
	t       *testing.T
	objects []client.Object
	served  bool
	// spent is what alice has used; less than nothing is not known. unread is true while it is being read.
	spent  int64
	unread bool
	// waits are the pods that wait for a node.
	waits []client.Object
	// bare are the jobs whose missing workers have no pods.
	bare map[string]bool
	// sharing says which resources are parts of accelerators.
	sharing config.Sharing
}

func (s *fixture) spend(string, time.Duration) (admission.Spending, error) {
	switch {
	case s.unread:
		return admission.Spending{}, admission.ErrUnread
	case s.spent < 0:
		return admission.Spending{}, errors.New("the ledger was not read yet")
	}
	return admission.Spending{ByUser: map[string]int64{"alice": s.spent}}, nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	queue := gang.NewQueue()
	queue.SetName("default")
	return &fixture{t: t, objects: []client.Object{node, queue}}
}

// job adds a job of at least two workers whose first bound workers are on the node.
func (s *fixture) job(name string, maximum, bound int32) *v1beta1.ElasticTrainingJob {
	return s.jobIn("default", name, maximum, bound)
}

// jobIn adds one in a queue.
func (s *fixture) jobIn(queue, name string, maximum, bound int32) *v1beta1.ElasticTrainingJob {
	j := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		},
		Spec: v1beta1.ElasticTrainingJobSpec{
			MinReplicas: 2, MaxReplicas: maximum,
			Elasticity: v1beta1.Elasticity{Shrink: v1beta1.Shrink{Initiator: v1beta1.ShrinkAuto, StarvationSeconds: ptr.To[int32](60)}},
			Framework: v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
				JoinTimeoutSeconds:     ptr.To[int32](600),
				LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
			}},
		},
		Status: v1beta1.ElasticTrainingJobStatus{
			Queue: queue, Attempt: &v1beta1.AttemptStatus{Number: 1, MinReplicas: 2, MaxReplicas: maximum},
		},
	}
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	j.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Resources: corev1.ResourceRequirements{Limits: one, Requests: one},
	}}
	b := trainingpod.Blueprint{Job: j, Attempt: j.Status.Attempt, Tier: config.DefaultTiers()[0], Queue: queue}
	s.objects = append(s.objects, j, b.CoreGroup().PodGroup(), b.SurplusGroup().PodGroup())
	s.bind(j, bound)
	return j
}

// bind adds the pods of the job's first workers, on the node.
func (s *fixture) bind(j *v1beta1.ElasticTrainingJob, bound int32) {
	b := trainingpod.Blueprint{Job: j, Attempt: j.Status.Attempt, Tier: config.DefaultTiers()[0], Queue: "default"}
	for i := range bound {
		pod := b.NewPod(i)
		pod.UID = types.UID(pod.Name)
		pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning
		s.objects = append(s.objects, pod)
	}
}

// wait adds the core workers that jobs with an attempt are missing, as pods that wait for a node since their jobs do.
func (s *fixture) wait() {
	s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool { return slices.Contains(s.waits, o) })
	s.waits = nil
	there := map[string]bool{}
	for _, o := range s.objects {
		if pod, ok := o.(*corev1.Pod); ok {
			there[pod.Name] = true
		}
	}
	for _, o := range s.objects {
		j, ok := o.(*v1beta1.ElasticTrainingJob)
		if !ok || j.Status.Attempt == nil || j.Status.Preemption != nil || s.bare[j.Name] {
			continue
		}
		since := now.Add(-time.Hour)
		if scheduled := meta.FindStatusCondition(j.Status.Conditions, v1beta1.ConditionScheduled); scheduled != nil {
			since = scheduled.LastTransitionTime.Time
		}
		b := trainingpod.Blueprint{
			Job: j, Attempt: j.Status.Attempt, Tier: config.DefaultTiers()[0], Queue: j.Status.Queue,
			Accelerators: config.DefaultConfiguration().Accelerators,
		}
		for i := range j.Status.Attempt.MinReplicas {
			if pod := b.NewPod(i); !there[pod.Name] {
				pod.UID, pod.CreationTimestamp = types.UID(pod.Name), metav1.NewTime(since)
				s.waits = append(s.waits, pod)
			}
		}
	}
	s.objects = append(s.objects, s.waits...)
}

func (s *fixture) arbiter() *Arbiter {
	s.t.Helper()
	s.wait()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, gang.AddToScheme} {
		NewWithT(s.t).Expect(add(scheme)).To(Succeed())
	}
	cfg := config.DefaultConfiguration()
	cfg.Sharing = s.sharing
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.objects...).Build()
	a := New(reader, cfg, func() bool { return s.served }, s.spend, logr.Discard())
	a.CountClaims(claimcache.NewReader(reader, cfg.DeviceClasses))
	go func() {
		for range a.WakeEvents() { //nolint:revive // nobody is there to wake
		}
	}()
	return a
}

// snapshotNow is the cluster as an evaluation would see it.
func (a *Arbiter) snapshotNow(t *testing.T) capacity.Snapshot {
	t.Helper()
	m, done, err := a.mirrored(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer done()
	return a.newCollector(m, now).snapshot(t.Context())
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ads", Name: name} }

func waitingSince(j *v1beta1.ElasticTrainingJob, since time.Time) {
	j.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionScheduled, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(since),
	}}
}

func TestWhoWaitsAndWhoHoldsSurplus(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 7)
	waitingSince(s.job("ranker", 4, 0), now.Add(-10*time.Second))
	a := s.arbiter()
	again, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(50 * time.Second))
	v := a.VerdictFor(key("ranker"))
	g.Expect(v.Place).To(Equal(int32(1)))
	g.Expect(v.Answer.Largest).To(Equal(int32(1)))
	g.Expect(v.Holders).To(HaveLen(1))
	g.Expect(v.Holders[0].Workers).To(Equal(int32(5)))
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty(), "the gang has not starved")
}

func TestCordonedNodeIsForThoseWhoTolerateIt(t *testing.T) {
	for name, c := range map[string]struct {
		tolerations []corev1.Toleration
		largest     int32
	}{
		"not tolerated": {nil, 0},
		"tolerated":     {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			node, _ := s.objects[0].(*corev1.Node)
			node.Spec.Unschedulable = true
			s.job("ranker", 4, 0).Spec.Template.Spec.Tolerations = c.tolerations
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("ranker")).Answer.Largest).To(Equal(c.largest))
		})
	}
}

func TestLabelsMakeNobodySurplus(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 7)
	for _, o := range s.objects {
		if pod, ok := o.(*corev1.Pod); ok && pod.Name == "ctr-worker-6" {
			stranger := pod.DeepCopy()
			stranger.Name, stranger.UID, stranger.OwnerReferences = "stranger", "stranger", nil
			pod.OwnerReferences[0].UID = "an earlier job of that name"
			s.objects = append(s.objects, stranger)
		}
	}
	waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(ConsistOf(types.UID("ctr-worker-5"), types.UID("ctr-worker-4")),
		"who carries the labels of surplus is none by that")
}

func TestSurplusThatMayStayIsNotTaken(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	holder := s.job("ctr", 8, 8)
	holder.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To[int32](86400)
	for _, o := range s.objects {
		if pod, ok := o.(*corev1.Pod); ok {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-9 * time.Minute)),
			}}
		}
	}
	waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
	a := s.arbiter()
	a.config.Tiers[0].MaxMinSurplusRunSeconds = 600
	again, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty())
	g.Expect(again).To(Equal(time.Minute), "its tier allows it ten minutes of the day that it asks for")
	_, err = a.evaluate(t.Context(), now.Add(again))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(HaveLen(2))
}

func TestStarvedGangMakesSurplusLeave(t *testing.T) {
	for name, c := range map[string]struct {
		served   bool
		shrinkBy v1beta1.ShrinkInitiator
		leave    []types.UID
	}{
		"auto, Volcano does not serve": {false, v1beta1.ShrinkAuto, []types.UID{"ctr-worker-6"}},
		"auto, Volcano serves":         {true, v1beta1.ShrinkAuto, nil},
		"scheduler":                    {false, v1beta1.ShrinkByScheduler, nil},
		"operator, Volcano serves":     {true, v1beta1.ShrinkByOperator, []types.UID{"ctr-worker-6"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = c.served
			s.job("ctr", 8, 7).Spec.Elasticity.Shrink.Initiator = c.shrinkBy
			waitingSince(s.job("ranker", 4, 0), now.Add(-time.Minute))
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(Equal(c.leave))
		})
	}
}

func TestOnlyChangedVerdictsWakeJobs(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 8)
	s.job("ranker", 4, 0)
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.jobs.replace(a.jobs.verdicts, now)).To(BeEmpty())
	figures := verdicts{key("ranker"): a.VerdictFor(key("ranker")), key("ctr"): a.VerdictFor(key("ctr"))}
	more := figures[key("ranker")]
	more.Waiting++
	figures[key("ranker")] = more
	g.Expect(a.jobs.replace(figures, now.Add(time.Second))).To(BeEmpty(), "only a figure changed")
	g.Expect(a.jobs.replace(figures, now.Add(time.Minute))).To(ConsistOf(key("ranker")))
	more.Answer.Leaving = capacity.Amounts{"nvidia.com/gpu": 2}
	figures[key("ranker")] = more
	g.Expect(a.jobs.replace(figures, now.Add(time.Minute+time.Second))).To(ConsistOf(key("ranker")), "that its room comes is told")
	more.Never = &capacity.Answer{Largest: 1}
	figures[key("ranker")] = more
	g.Expect(a.jobs.replace(figures, now.Add(time.Minute+2*time.Second))).To(ConsistOf(key("ranker")), "that it never fits too")
	g.Expect(a.jobs.replace(nil, now)).To(ConsistOf(key("ranker"), key("ctr")), "their verdicts are gone")
}

func TestNothingIsJudgedWhereNobodyWaits(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 8)
	a := s.arbiter()
	again, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeZero())
	g.Expect(a.jobs.verdicts).To(BeEmpty())
}

// Jobs that have all they want cause no evaluation as time passes; one that would grow has the figures of its wait shown.
func TestJobsAtRestAreNotJudgedAgain(t *testing.T) {
	for placed, again := range map[int32]time.Duration{8: 0, 7: figuresInterval} {
		g := NewWithT(t)
		s := newFixture(t)
		s.job("ctr", 8, placed).Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfFits
		a := s.arbiter()
		for range 2 {
			g.Expect(a.evaluate(t.Context(), now)).To(Equal(again), "%d of 8 are placed", placed)
		}
		g.Expect(a.jobs.verdicts).To(HaveKey(key("ctr")))
	}
}

func TestPlainVolcanoGangsWaitToo(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 8)
	foreign := gang.Group{Namespace: "ads", Name: "vcjob", Queue: "default", MinMember: 1}.PodGroup()
	foreign.SetCreationTimestamp(metav1.NewTime(now.Add(-2 * time.Minute)))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "vcjob-0"}}
	pod.Status.Phase = corev1.PodPending
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
	}}}
	gang.Member{Group: "vcjob"}.JoinGang(pod)
	s.objects = append(s.objects, foreign, pod)
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(Equal([]types.UID{"ctr-worker-7"}))
	g.Expect(a.VerdictFor(key("ctr")).To).To(Equal(key("vcjob")))
}

func TestRoomIsForThePreemptedGangThatGoesOnAlready(t *testing.T) {
	for name, tc := range map[string]struct {
		began time.Duration
		// operator is for how long it has run; zero for long.
		operator time.Duration
		resumes  bool
	}{
		"it has just begun":            {began: time.Second},
		"it should be there by now":    {began: arriving, resumes: true},
		"it began by a clock set back": {began: -time.Hour, resumes: true},
		"the operator has just begun":  {began: time.Hour, operator: time.Second},
		"the operator should be there": {began: time.Hour, operator: arriving, resumes: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			for _, running := range []string{"a", "b", "c"} {
				s.job(running, 2, 2)
			}
			goesOn, next := s.job("ranker", 2, 0), s.job("speech", 2, 0)
			s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool {
				kind := o.GetObjectKind().GroupVersionKind().Kind
				return kind == gang.NewPodGroup().GetObjectKind().GroupVersionKind().Kind && metav1.IsControlledBy(o, goesOn)
			})
			goesOn.Status.Queue, goesOn.Status.Attempt.StartTime = "default", metav1.NewTime(now.Add(-tc.began))
			next.Status.Queue, next.Status.Preemption = "default", &v1beta1.PreemptionStatus{}
			a := s.arbiter()
			if tc.operator > 0 {
				a.began = now.Add(-tc.operator)
			}
			again, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("speech")).Resume).To(Equal(tc.resumes))
			if !tc.resumes {
				g.Expect(again).To(BeNumerically("<=", arriving-time.Second), "it is looked at again")
			}
		})
	}
}
