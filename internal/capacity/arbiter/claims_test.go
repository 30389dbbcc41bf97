package arbiter

import (
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// claimant adds job gang of two workers, of the most important tier, which has waited for an hour while job ctr holds all
// eight GPUs.
func (s *fixture) claimant() *v1beta1.ElasticTrainingJob {
	holder := s.job("ctr", 8, 8)
	holder.Status.RunningSince = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
	j := s.job("gang", 4, 0)
	j.Spec.Tier, j.Spec.MaxReplicas = "main-traffic", 2
	waitingSince(j, now.Add(-time.Hour))
	return j
}

// hold has every pod of the job that waits pass through change.
func (s *fixture) hold(j *v1beta1.ElasticTrainingJob, change func(*corev1.Pod)) {
	s.wait()
	for _, o := range s.waits {
		if pod, ok := o.(*corev1.Pod); ok && pod.Labels[v1beta1.LabelJob] == j.Name {
			change(pod)
		}
	}
	s.objects, s.waits = append([]client.Object{}, s.objects...), nil
}

func TestWhoClaimsRoom(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *fixture, j *v1beta1.ElasticTrainingJob)
		// waits is true for a gang that claims room, and served for one that others leave for.
		waits, served bool
	}{
		"its pods wait": {func(*fixture, *v1beta1.ElasticTrainingJob) {}, true, true},
		"a core worker has completed, and the other runs": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.bind(j, 2)
			s.ofJob("gang")[1].Status.Phase = corev1.PodSucceeded
		}, false, false},
		"a core worker has completed, and its pod is gone": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.bind(j, 1)
			s.bare = map[string]bool{"gang": true}
			j.Status.Members = []v1beta1.Member{{Index: 1, UID: "u", State: v1beta1.MemberCompleted}}
		}, false, false},
		"a quota refuses its pods": {func(s *fixture, _ *v1beta1.ElasticTrainingJob) {
			s.bare = map[string]bool{"gang": true}
		}, false, false},
		"a quota refuses one of its pods": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.hold(j, func(p *corev1.Pod) {
				if p.Name == "gang-worker-1" {
					p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now)), []string{"x/y"}
				}
			})
		}, false, false},
		"its pods are refused, and one is there that nobody expects": {func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Status.Conditions = append(j.Status.Conditions, metav1.Condition{
				Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonRejected,
			})
		}, false, false},
		"its attempt has just begun": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.bare = map[string]bool{"gang": true}
			j.Status.Attempt.StartTime = metav1.NewTime(now.Add(-5 * time.Second))
			j.Spec.Elasticity.Shrink.StarvationSeconds = ptr.To[int32](0)
		}, true, false},
		"its attempt has just begun, in a back-off": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.bare = map[string]bool{"gang": true}
			j.Status.Attempt.StartTime = metav1.NewTime(now.Add(-5 * time.Second))
			j.Spec.Elasticity.Shrink.StarvationSeconds = ptr.To[int32](0)
			j.Status.Conditions[0].Reason = v1beta1.ReasonBackOff
		}, false, false},
		"its attempt began a while ago, and has no pods": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.bare = map[string]bool{"gang": true}
			j.Status.Attempt.StartTime = metav1.NewTime(now.Add(-2 * arriving))
		}, false, false},
		"its Queue is closed": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			queue := gang.NewQueue()
			queue.SetName("closed")
			set(t, queue, "Closed", "status", "state")
			s.objects = append(s.objects, queue)
			s.inQueue(j, "closed")
		}, false, false},
		"scheduling gates hold its pods": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.hold(j, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} })
		}, false, false},
		"a scheduling gate holds one of its pods": {func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.hold(j, func(p *corev1.Pod) {
				if p.Name == "gang-worker-1" {
					p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
				}
			})
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			c.change(s, s.claimant())
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			waits := a.VerdictFor(key("gang")).Waiting > 0
			g.Expect(waits).To(Equal(c.waits))
			if c.served {
				g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(ConsistOf(types.UID("ctr-worker-7"), types.UID("ctr-worker-6")))
				return
			}
			g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty(), "no worker leaves for it")
			g.Expect(a.VerdictFor(key("ctr")).Preempt).To(BeNil(), "and no training stops for it")
		})
	}
}

// set writes a field of an object whose type only package gang knows.
func set(t *testing.T, o client.Object, value string, fields ...string) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(unstructured.SetNestedField(content, value, fields...)).To(Succeed())
	NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(content, o)).To(Succeed())
}

// inQueue moves the core of a job to another queue.
func (s *fixture) inQueue(j *v1beta1.ElasticTrainingJob, queue string) {
	j.Status.Queue = queue
	for _, o := range s.objects {
		if reflect.TypeOf(o) == reflect.TypeOf(gang.NewPodGroup()) && metav1.IsControlledBy(o, j) {
			set(s.t, o, queue, "spec", "queue")
		}
	}
}

func TestRuntimeClassChoosesNodesToo(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	j := s.claimant()
	j.Spec.Template.Spec.RuntimeClassName = ptr.To("sandbox")
	s.objects = append(s.objects, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox"},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"sandbox": "yes"}},
	})
	s.bare = map[string]bool{"gang": true}
	j.Status.Attempt.StartTime = metav1.NewTime(now)
	j.Spec.Elasticity.Shrink.StarvationSeconds = ptr.To[int32](0)
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("gang")).Waiting).To(Equal(int32(1)))
	g.Expect(a.VerdictFor(key("gang")).Answer.Nodes).To(BeZero(), "no node has the label that the class asks for")
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty())
}

func TestGangsOfTwoShapesAreSummed(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 8)
	s.objects = append(s.objects, gang.Group{Namespace: "ads", Name: "mpi", MinMember: 3, Queue: "default"}.PodGroup())
	for _, pod := range []struct{ name, resource string }{
		{"launcher", "cpu"}, {"worker-0", "nvidia.com/gpu"}, {"worker-1", "nvidia.com/gpu"},
	} {
		requests := corev1.ResourceList{corev1.ResourceName(pod.resource): resource.MustParse("1")}
		member := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ads", Name: pod.name, UID: types.UID(pod.name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
			}}},
		}
		gang.Member{Group: "mpi"}.JoinGang(member)
		s.objects = append(s.objects, member)
	}
	node, _ := s.objects[0].(*corev1.Node)
	node.Status.Allocatable["cpu"] = resource.MustParse("4")
	for range 20 { // Whatever order pods are listed in.
		a := s.arbiter()
		_, err := a.evaluate(t.Context(), now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(ConsistOf(types.UID("ctr-worker-7"), types.UID("ctr-worker-6")))
	}
}

func TestClaimBeginsWhenGatesAreLifted(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	j := s.claimant()
	var held []*corev1.Pod
	s.hold(j, func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
		held = append(held, p)
	})
	before := s.arbiter()
	_, err := before.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	for _, p := range held {
		p.Spec.SchedulingGates = nil
	}
	a := s.arbiter()
	a.idle = before.idle
	for _, after := range []time.Duration{time.Second, 59 * time.Second} {
		_, err = a.evaluate(t.Context(), now.Add(after))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty(), "it waits since now, and not since its pods were created")
	}
	_, err = a.evaluate(t.Context(), now.Add(time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(HaveLen(2))
}

func TestPodsOfLongGraceAreNotWaitedFor(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.claimant()
	for _, p := range s.ofJob("ctr")[6:] {
		p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now.Add(365*24*time.Hour))), []string{"x/y"}
	}
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("gang")).Answer.Leaving).To(BeNil())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(ConsistOf(types.UID("ctr-worker-5"), types.UID("ctr-worker-4")))
}

func TestStoppedJobGoesOnOnceTheClaimForItHasEnded(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	// Four other GPUs are used; what is free fits the gang, which is not placed all the same.
	s.job("ctr", 4, 4)
	waits := s.job("gang", 2, 0)
	waits.Spec.Tier = "main-traffic"
	stopped := s.job("stopped", 2, 0)
	stopped.Status.Preemption = &v1beta1.PreemptionStatus{
		By: v1beta1.GangRef{Namespace: "ads", Name: "gang"}, Since: metav1.NewTime(now),
	}
	a := s.arbiter()
	for _, after := range []time.Duration{0, 59 * time.Second} {
		_, err := a.evaluate(t.Context(), now.Add(after))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.VerdictFor(key("stopped")).Resume).To(BeFalse())
	}
	again, err := a.evaluate(t.Context(), now.Add(time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).NotTo(BeZero())
	g.Expect(a.VerdictFor(key("stopped")).Resume).To(BeTrue())
	g.Expect(a.VerdictFor(key("gang"))).To(And(HaveField("Overdue", true), HaveField("Waiting", int32(1))))
	_, err = a.evaluate(t.Context(), now.Add(30*24*time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("stopped")).Resume).To(BeTrue(), "nothing about the gang has changed")
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty())
}

// Each pod would be compared with all kinds before it.
func TestKindsOfPodsAreBounded(t *testing.T) {
	g := NewWithT(t)
	var pods []*corev1.Pod
	for i := range 5000 {
		pods = append(pods, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(i+1), resource.DecimalSI)},
		}}}}})
	}
	kinds := map[*capacity.Shape]bool{}
	waiting := (&collector{mirror: newMirror(config.DefaultConfiguration())}).readWaiters(pods)
	for _, w := range waiting {
		kinds[w.Shape] = true
	}
	g.Expect(waiting).To(HaveLen(5000))
	g.Expect(kinds).To(HaveLen(capacity.MostShapes + 1))
	gang := &capacity.Gang{}
	g.Expect((&capacity.Standing{MinMember: 5000, Waiting: waiting}).CompleteClaim(gang)).To(BeEmpty())
	g.Expect(gang.Shape.Unmodelled).To(Equal(capacity.ManyShapes))
}

func TestTrainingThatCouldNeverFitIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		edit     func(*v1beta1.ElasticTrainingJob)
		oversize *capacity.Oversize
		largest  int32
		fits     bool
	}{
		"too many workers": {edit: func(j *v1beta1.ElasticTrainingJob) {
			j.Spec.MinReplicas, j.Spec.MaxReplicas = 64, 64
		}, largest: 8},
		"too large a worker": {edit: func(j *v1beta1.ElasticTrainingJob) {
			much := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("64")}
			j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: much, Requests: much}
		}, oversize: &capacity.Oversize{Resource: "nvidia.com/gpu", Asks: 64, Largest: 8}},
		"as many as there are": {edit: func(*v1beta1.ElasticTrainingJob) {}, fits: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.job("ctr", 4, 4)
			j := s.job("large", 8, 0)
			j.Spec.MinReplicas = 8
			c.edit(j)
			j.Status.Attempt.MinReplicas, j.Status.Attempt.MaxReplicas = j.Spec.MinReplicas, j.Spec.MaxReplicas
			waitingSince(j, now.Add(-time.Minute))
			v := s.evaluated().VerdictFor(key("large"))
			g.Expect(v.Waiting).To(Equal(int32(1)))
			if c.fits {
				g.Expect(v.Never).To(BeNil())
				g.Expect(v.Holders).NotTo(BeEmpty(), "surplus may give way")
				return
			}
			g.Expect(v.Never).NotTo(BeNil())
			g.Expect(v.Never.Largest).To(Equal(c.largest))
			g.Expect(v.Never.Oversize).To(Equal(c.oversize))
			g.Expect(v.Holders).To(BeEmpty(), "no surplus that left would help it")
		})
	}
}
