package arbiter

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// capped gives the namespace of the fixture's jobs to a profile that lets a user hold so many GPUs, of a model if it is named.
func (s *fixture) capped(most int64, model string) {
	s.objects = append(s.objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ads", Labels: map[string]string{"team": "ads"}}},
		&v1beta1.ResourceQuotaProfile{
			ObjectMeta: metav1.ObjectMeta{Name: "ads"},
			Spec: v1beta1.ResourceQuotaProfileSpec{
				NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "ads"}},
				Caps: &v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{{
					Resource: "nvidia.com/gpu", Model: model, Max: *resource.NewQuantity(most, resource.DecimalSI),
				}}},
			},
		})
}

// asking is a job of alice's that has no gang yet.
func (s *fixture) asking(name string) *v1beta1.ElasticTrainingJob {
	job := s.job(name, 2, 0)
	job.Spec.Owner = "alice"
	job.Status.Attempt.StartTime = metav1.NewTime(now)
	s.objects = s.objects[:len(s.objects)-2] // its PodGroups
	return job
}

func (s *fixture) turn(name string) admission.Turn {
	s.t.Helper()
	a := s.arbiter()
	_, err := a.evaluate(s.t.Context(), now)
	NewWithT(s.t).Expect(err).NotTo(HaveOccurred())
	return a.TurnOf(key(name))
}

// notebook is a pod of nobody's job that holds two GPUs.
func notebook() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "notebook", UID: "notebook", Labels: map[string]string{
			v1beta1.AnnotationOwner: "alice",
		}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
		}}}},
	}
}

func TestWhatCountsForAUser(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(*fixture)
		used int64
	}{
		"nothing": {func(*fixture) {}, 0},
		"a gang and its surplus": {func(s *fixture) {
			s.job("ctr", 4, 3).Spec.Owner = "alice"
		}, 3},
		"a gang that is not placed yet": {func(s *fixture) {
			job := s.job("ctr", 4, 0)
			job.Spec.Owner, job.Spec.Accelerator = "alice", &v1beta1.Accelerator{Models: []string{"A100"}}
		}, 2},
		"one that may come to another model": {func(s *fixture) {
			job := s.job("ctr", 4, 0)
			job.Spec.Owner, job.Spec.Accelerator = "alice", &v1beta1.Accelerator{Models: []string{"A100", "H100"}}
			job.Status.Attempt.Model = "A100"
		}, 0},
		"one of several models, where it is": {func(s *fixture) {
			job := s.job("ctr", 4, 3)
			job.Spec.Owner, job.Spec.Accelerator = "alice", &v1beta1.Accelerator{Models: []string{"H100", "A100"}}
			job.Status.Attempt.Model = "H100"
		}, 3},
		"a gang of somebody else": {func(s *fixture) {
			s.job("ctr", 4, 3).Spec.Owner = "bob"
		}, 0},
		"pods of a job that is being stopped": {func(s *fixture) {
			job := s.job("ctr", 4, 3)
			job.Spec.Owner, job.Spec.Suspend = "alice", true
		}, 3},
		"pods of a job that is gone": {func(s *fixture) {
			job := s.job("ctr", 4, 0)
			job.Spec.Owner = "alice"
			s.bind(job, 3)
			s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool { return o == job })
		}, 3},
		"a notebook": {func(s *fixture) {
			s.objects = append(s.objects, notebook())
		}, 2},
		"a notebook that has ended": {func(s *fixture) {
			p := notebook()
			p.Status.Phase = corev1.PodSucceeded
			s.objects = append(s.objects, p)
		}, 0},
		"a notebook on another model": {func(s *fixture) {
			node, _ := s.objects[0].(*corev1.Node)
			other := node.DeepCopy()
			other.Name, other.Labels = "h", map[string]string{"nvidia.com/gpu.product": "H100"}
			p := notebook()
			p.Spec.NodeName = "h"
			s.objects = append(s.objects, other, p)
		}, 0},
		"pods in a namespace of nobody's": {func(s *fixture) {
			p := notebook()
			p.Namespace = "search"
			s.objects = append(s.objects, p)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			node, _ := s.objects[0].(*corev1.Node)
			node.Labels = map[string]string{"nvidia.com/gpu.product": "A100"}
			s.capped(2, "A100")
			job := s.asking("ranker")
			job.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100"}}
			c.add(s)
			turn := s.turn("ranker")
			g.Expect(turn.Admitted).To(Equal(c.used == 0))
			if c.used > 0 {
				g.Expect(turn.Blocked.Used).To(Equal(1000 * c.used))
			}
		})
	}
}

func TestPartsOfDevicesCountAsParts(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.sharing = config.Sharing{{
		Resource: "volcano.sh/vgpu-cores", CountsAs: "nvidia.com/gpu", Whole: 100, Times: "volcano.sh/vgpu-number",
	}}
	node, _ := s.objects[0].(*corev1.Node)
	node.Labels = map[string]string{"nvidia.com/gpu.product": "A100"}
	s.capped(1, "A100")
	quarters := func(n string) corev1.ResourceList {
		return corev1.ResourceList{"volcano.sh/vgpu-number": resource.MustParse(n), "volcano.sh/vgpu-cores": resource.MustParse("25")}
	}
	for i, name := range []string{"second", "third"} {
		job := s.asking(name) // two workers, so half a device
		job.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(i) * time.Second))
		job.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100"}}
		job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: quarters("1")}
	}
	first := notebook()
	first.Spec.Containers[0].Resources.Requests = quarters("2")
	s.objects = append(s.objects, first)
	g.Expect(s.turn("second").Admitted).To(BeTrue(), "half a device is left")
	third := s.turn("third")
	g.Expect(third.Admitted).To(BeFalse())
	g.Expect([]int64{third.Blocked.Used, third.Blocked.Asked, third.Blocked.Limit.Max}).To(Equal([]int64{1000, 500, 1000}))
}

func TestSurplusCountsAsParts(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.sharing = config.Sharing{{Resource: "nvidia.com/gpu.shared", CountsAs: "nvidia.com/gpu", Whole: 4}}
	s.capped(1, "")
	for _, job := range []*v1beta1.ElasticTrainingJob{s.job("ctr", 4, 3), s.asking("second")} {
		job.Spec.Owner = "alice"
		job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("1")},
		}
	}
	g.Expect(s.turn("second").Blocked).To(HaveValue(And(HaveField("Used", int64(750)), HaveField("Asked", int64(500)))))
}

func TestAJobThatWaitsForSomethingElseKeepsNobodyFromTheTurn(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(2, "")
	first := s.asking("first")
	s.asking("second").CreationTimestamp = metav1.NewTime(now)
	g.Expect(s.turn("second").Admitted).To(BeFalse())
	first.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonQueueClosed,
	}}
	g.Expect(s.turn("second").Admitted).To(BeTrue())
}

func TestStandingByGroup(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(2, "")
	profile, _ := s.objects[len(s.objects)-1].(*v1beta1.ResourceQuotaProfile)
	profile.Spec.Members = []v1beta1.ProfileMember{{Kind: v1beta1.MemberGroup, Name: "leads", Standing: v1beta1.StandingSenior}}
	s.asking("first")
	second := s.asking("second")
	second.CreationTimestamp = metav1.NewTime(now)
	second.Spec.Submitter = &v1beta1.Submitter{Username: second.Spec.Owner, Groups: []string{"leads"}}
	g.Expect(s.turn("second").Admitted).To(BeTrue(), "seniors first")
	second.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionOwnerChecked, Status: metav1.ConditionFalse}}
	g.Expect(s.turn("second").Admitted).To(BeFalse(), "by what nobody checked she is none")
	g.Expect(s.turn("first").Admitted).To(BeTrue())
}

func TestSurplusIsToldToLeaveForWhoWaitsAtACap(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(4, "")
	s.job("ctr", 4, 4).Spec.Owner = "alice"
	s.asking("ranker")
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(Equal([]types.UID{"ctr-worker-3", "ctr-worker-2"}))
	g.Expect(a.VerdictFor(key("ctr")).To).To(Equal(key("ranker")))
	g.Expect(a.VerdictFor(key("ranker")).Waiting).To(BeZero(), "it stands in no line of Volcano's")
}

func TestAllowedTurnsAreRemembered(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(2, "")
	s.asking("first")
	a := s.arbiter()
	again, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.TurnOf(key("first")).Admitted).To(BeTrue())
	g.Expect(again).To(BeNumerically("<=", admission.Arrival))
	older := s.asking("older")
	older.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour))
	a.reader = s.arbiter().reader
	_, err = a.evaluate(t.Context(), now.Add(time.Second))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.TurnOf(key("older")).Admitted).To(BeFalse(), "the other's gang may be there, unseen")
}

func TestNothingIsDecidedWhereNothingIsLimited(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.asking("first")
	g.Expect(s.turn("first")).To(Equal(admission.Turn{}))
}

func TestBudgetsAreHeldByTheLedger(t *testing.T) {
	for name, c := range map[string]struct {
		spent    int64
		unread   bool
		admitted bool
	}{
		"enough is left": {admission.Hour - 1, false, true}, "nothing is left": {admission.Hour, false, false},
		"not known": {-1, false, true}, "an operator that has just been started": {0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.spent, s.unread = c.spent, c.unread
			s.capped(2, "")
			profile, _ := s.objects[len(s.objects)-1].(*v1beta1.ResourceQuotaProfile)
			profile.Spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{
				Window: metav1.Duration{Duration: time.Hour}, PerUser: 1, OnExceeded: v1beta1.ExceededQueue,
			}}}
			s.asking("first")
			NewWithT(t).Expect(s.turn("first").Admitted).To(Equal(c.admitted))
		})
	}
}

func TestARoomThatIsHeldCountsForTheQueueAlone(t *testing.T) {
	for name, c := range map[string]struct {
		task, owner string
		admitted    bool
	}{
		"for another task": {"launch", "alice", false}, "for the one that asks": {"first", "alice", true},
		"for one of its name, of another owner": {"first", "bob", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.capped(8, "")
			profile, _ := s.objects[len(s.objects)-1].(*v1beta1.ResourceQuotaProfile)
			profile.Spec.Queue.Capability = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
			profile.Spec.Reservations = []v1beta1.ProfileReservation{{
				Name: "room", JobRef: v1beta1.ObjectRef{Name: c.task}, Owner: c.owner,
			}}
			group := gang.Group{Namespace: "tideline-system", Name: "room", Queue: "ads", MinMember: 1}
			p := notebook()
			p.Namespace, p.Labels = "tideline-system", map[string]string{v1beta1.LabelReservation: "room"}
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("7")
			gang.Member{Group: "room"}.JoinGang(p)
			s.objects = append(s.objects, group.PodGroup(), p)
			s.asking("first").Status.Queue = "ads"
			NewWithT(t).Expect(s.turn("first").Admitted).To(Equal(c.admitted))
		})
	}
}

func TestALargerAttemptAsksAgain(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(2, "")
	s.job("ctr", 4, 0).Spec.Owner = "alice"
	job := s.job("other", 4, 0)
	job.Spec.Owner, job.Status.Attempt.MinReplicas = "bob", 3
	g.Expect(s.turn("ctr").Admitted).To(BeTrue())
	g.Expect(s.turn("other").Blocked.Never).To(BeTrue(), "its gang is of two")
}

func TestSurplusIsAllowedToWhoWouldCreateIt(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1beta1.ElasticTrainingJob)
		surplus int32
	}{
		"one that trains":             {func(*v1beta1.ElasticTrainingJob) {}, 4},
		"one whose core does not run": {func(job *v1beta1.ElasticTrainingJob) { job.Status.RunningSince = nil }, 0},
		"one that cools down": {func(job *v1beta1.ElasticTrainingJob) {
			last := metav1.NewTime(now.Add(-time.Second))
			job.Status.Elasticity = &v1beta1.ElasticityStatus{LastEvictionTime: &last, Evicted: []int32{3, 5}}
		}, 2},
		"one that creates what fits": {func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfFits
		}, 0},
		"one that creates what fits and pays": {func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfPays
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.capped(6, "")
			job := s.job("ctr", 6, 2)
			since := metav1.NewTime(now.Add(-time.Minute))
			job.Spec.Owner, job.Status.RunningSince = "alice", &since
			c.change(job)
			NewWithT(t).Expect(s.turn("ctr").Surplus).To(Equal(c.surplus))
		})
	}
}

func TestPodsCountAtACap(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(3, "")
	profile, _ := s.objects[len(s.objects)-1].(*v1beta1.ResourceQuotaProfile)
	profile.Spec.Caps.PerUser[0].Resource = "pods"
	p := notebook()
	p.Labels, p.Annotations = nil, map[string]string{v1beta1.AnnotationOwner: "alice@example.com"}
	p.Spec.Containers[0].Resources.Requests = nil
	s.objects = append(s.objects, p)
	s.asking("ctr").Spec.Owner = "alice@example.com"
	g.Expect(s.turn("ctr").Blocked).To(BeNil(), "a notebook without anything, and two workers")
	second := p.DeepCopy()
	second.Name, second.UID = "second", "second"
	s.objects = append(s.objects, second)
	g.Expect(s.turn("ctr").Blocked).To(HaveValue(And(
		HaveField("Limit.Resource", corev1.ResourcePods), HaveField("Used", int64(2000)))))
}

// A reconcile that takes longer than a grant holds may still create its gang, so the next job has no turn meanwhile.
func TestATurnIsKeptForTheReconcileThatActsOnIt(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(2, "")
	s.asking("first")
	s.asking("second").CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	a := s.arbiter()
	at, acting := now, time.Time{}
	a.FollowTrainings(func(_ context.Context, job types.NamespacedName) time.Time {
		g.Expect(job).To(Equal(key("first")), "no other job has a grant")
		g.Expect(a.TurnOf(job).Admitted).To(Equal(at.Before(now.Add(admission.Arrival))),
			"whoever begins once this was asked is told of no turn that lapses now")
		return acting
	})
	evaluate := func() {
		_, err := a.evaluate(t.Context(), at)
		g.Expect(err).NotTo(HaveOccurred())
	}
	evaluate()
	acting, at = now.Add(9*time.Second), now.Add(admission.Arrival+time.Second)
	g.Expect(a.TurnOf(key("first")).Admitted).To(BeTrue())
	evaluate()
	g.Expect(a.TurnOf(key("first")).Admitted).To(BeFalse(), "a reconcile that begins now may not act on it")
	g.Expect(a.TurnOf(key("second")).Admitted).To(BeFalse())
	acting, at = time.Time{}, at.Add(admission.Arrival)
	evaluate()
	g.Expect(a.TurnOf(key("second")).Admitted).To(BeTrue(), "the reconcile ended without a gang")
}
