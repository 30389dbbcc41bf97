package quota

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

var now = metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))

// simulator is a cluster of 16 GPUs, and what happens to it when decisions are carried out.
type simulator struct {
	t   *testing.T
	o   Observed
	now time.Time
}

func newSimulator(t *testing.T) *simulator {
	t.Helper()
	return &simulator{t: t, now: now.Time, o: Observed{
		Config: config.DefaultConfiguration(), Nodes: capacity.Amounts{gpu: 16, corev1.ResourcePods: 110},
		Used: map[string]capacity.Amounts{}, Jobs: map[string]Jobs{}, Gangs: map[string]int{},
	}}
}

// profile adds a profile of the team of its name, created after those before it, with one namespace.
func (w *simulator) profile(name string, weight int32) *v1beta1.ResourceQuotaProfile {
	p := &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(len(w.o.Profiles)) * time.Second)),
		},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": name}},
			Queue:             v1beta1.ProfileQueue{Weight: weight},
		},
	}
	w.o.Profiles = append(w.o.Profiles, Profile{Object: p})
	w.namespace(name+"-dev", name)
	return p
}

func (w *simulator) namespace(name, team string) {
	w.o.Namespaces = append(w.o.Namespaces, Namespace{Name: name, Labels: map[string]string{"team": team}})
}

func (w *simulator) queue(name string, change func(*gang.QueueInfo)) {
	q := gang.QueueInfo{QueueLimits: gang.QueueLimits{Name: name, Reclaimable: true}, Weight: 1, UID: types.UID(name)}
	change(&q)
	w.o.Queues = append(w.o.Queues, q)
}

// plan decides, and has the next decision know what waits.
func (w *simulator) plan() Decision {
	d := Plan(w.o, w.now)
	w.o.Waits = d.Waits
	return d
}

// carryOut does what was decided.
func (w *simulator) carryOut(d Decision) {
	for _, p := range d.Profiles {
		p.Profile.Status = p.Status
		for _, share := range []*gang.Share{p.Create, p.Apply} {
			if share == nil {
				continue
			}
			q := gang.QueueInfoOf(share.NewQueue())
			q.UID = types.UID(share.Name)
			if share == p.Apply {
				q.Labels, q.Annotations = p.Have.Labels, p.Have.Annotations
			}
			w.drop(share.Name)
			w.o.Queues = append(w.o.Queues, q)
		}
	}
	for _, q := range d.DeleteQueues {
		w.drop(q.Name)
	}
}

func (w *simulator) drop(queue string) {
	var rest []gang.QueueInfo
	for _, q := range w.o.Queues {
		if q.Name != queue {
			rest = append(rest, q)
		}
	}
	w.o.Queues = rest
}

// settle decides until nothing changes, each time when the last decision wants to be looked at again.
func (w *simulator) settle() {
	w.t.Helper()
	for range 7 {
		d := w.plan()
		idle := len(d.DeleteQueues) == 0 && len(d.Waits.Empty) == 0 && d.Waits.Nodes.IsZero()
		for _, p := range d.Profiles {
			NewWithT(w.t).Expect(p.Create != nil && p.Apply != nil).To(BeFalse())
			idle = idle && p.Create == nil && p.Apply == nil && PaceOf(&p.Profile.Status, &p.Status) == statuspace.Never
		}
		if idle {
			return
		}
		w.carryOut(d)
		w.now = w.now.Add(d.Again)
	}
	w.t.Fatal("decisions do not come to rest")
}

func (w *simulator) deserved(queue string) int64 {
	for _, q := range w.o.Queues {
		if q.Name == queue {
			return capacity.AmountsOf(q.Deserved)[gpu]
		}
	}
	return -1
}

func condition(p *v1beta1.ResourceQuotaProfile, kind string) *metav1.Condition {
	return meta.FindStatusCondition(p.Status.Conditions, kind)
}

func list(n string) corev1.ResourceList { return corev1.ResourceList{gpu: resource.MustParse(n)} }

func TestProfileGetsItsQueueAndShare(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads, _ := w.profile("ads", 3), w.profile("search", 1)
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(12)))
	g.Expect(w.deserved("search")).To(Equal(int64(4)))
	g.Expect(condition(ads, v1beta1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(ads.Status.Message).To(Equal("Queue ads serves 1 namespace with a share of 12 nvidia.com/gpu."))
	g.Expect(ads.Status.Namespaces).To(Equal([]string{"ads-dev"}))
	g.Expect(ads.Status.Accelerators).To(Equal("0/12/-"))
}

func TestUsedBorrowedLent(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads, search := w.profile("ads", 3), w.profile("search", 1)
	w.o.Used["search-dev"], w.o.Used["ads-dev"] = gpus(9), gpus(2)
	w.o.Holdings = []Holding{{Namespace: "search-dev", Accelerators: 8500}, {Namespace: "search-dev", Accelerators: 500}}
	w.o.Jobs["search-dev"] = Jobs{Running: 2, Waiting: 1, AwaitingApproval: 3}
	w.settle()
	g.Expect(capacity.AmountsOf(search.Status.Borrowed)).To(Equal(gpus(5)))
	g.Expect(capacity.AmountsOf(ads.Status.Lent)).To(Equal(gpus(5)))
	g.Expect(ads.Status.Borrowed).To(BeEmpty())
	g.Expect(search.Status.Accelerators).To(Equal("9/4/-"))
	g.Expect([]int32{search.Status.Running, search.Status.Waiting, search.Status.AwaitingApproval}).To(Equal([]int32{2, 1, 3}))
}

func TestSharedDevicesAreTheDevicesThatTheyAre(t *testing.T) {
	g := NewWithT(t)
	const slice, number, memory = corev1.ResourceName("nvidia.com/gpu.shared"), "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
	w := newSimulator(t)
	w.o.Config.Sharing = config.Sharing{
		{Resource: string(slice), CountsAs: string(gpu), Whole: 4},
		{Resource: memory, CountsAs: string(gpu), Whole: 40960, Times: number},
	}
	w.o.Nodes = capacity.Amounts{slice: 24, number: 80, memory: 8 * 40960}
	ads := w.profile("ads", 1)
	w.o.Holdings = []Holding{{Namespace: "ads-dev", Accelerators: 500}}
	w.settle()
	g.Expect(ads.Status.Accelerators).To(Equal("0.5/14/-"))
	ads.Spec.Queue.Capability = corev1.ResourceList{slice: resource.MustParse("10")}
	w.settle()
	g.Expect(ads.Status.Accelerators).To(Equal("0.5/10.5/2.5"))
	w.o.Config.Sharing = nil
	w.settle()
	g.Expect(ads.Status.Accelerators).To(Equal("0.5/90/-"), "what is not said to be a part is a device")
}

func TestNamespaceBelongsToTheOlderProfile(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	older := w.profile("z-older", 1)
	younger := w.profile("a-younger", 1)
	younger.Spec.NamespaceSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"z-older", "a-younger"}},
	}}
	w.settle()
	g.Expect(older.Status.Namespaces).To(Equal([]string{"z-older-dev"}))
	g.Expect(condition(older, v1beta1.ConditionNamespaceConflict)).To(BeNil())
	g.Expect(younger.Status.Namespaces).To(Equal([]string{"a-younger-dev"}))
	g.Expect(condition(younger, v1beta1.ConditionNamespaceConflict).Message).To(HavePrefix("The selector matches 1 " +
		"namespace of older profiles, which keep them: z-older-dev belongs to profile z-older."))
	g.Expect(condition(younger, v1beta1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "what it has is served")
}

func TestQueueOfSomebodyElseStays(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 1)
	w.queue("ads", func(q *gang.QueueInfo) { q.Weight = 7 })
	w.settle()
	g.Expect(w.o.Queues[0].Weight).To(Equal(int32(7)))
	g.Expect(condition(ads, v1beta1.ConditionStalled).Reason).To(Equal(v1beta1.ReasonQueueTaken))
	g.Expect(ads.Status.Queue).To(BeEmpty())
	w.o.Queues[0].Labels = map[string]string{v1beta1.LabelProfile: "ads"}
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(16)), "it was handed over")
	g.Expect(condition(ads, v1beta1.ConditionStalled)).To(BeNil())
}

func TestEditedQueueIsRestored(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.settle()
	w.o.Queues[0].Deserved = list("1")
	g.Expect(w.plan().Profiles[0].Agrees).To(BeFalse())
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(16)))
}

func TestSharesOfOtherQueuesAreTheirs(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.queue("legacy", func(q *gang.QueueInfo) { q.Deserved, q.Guarantee = list("6"), list("2") })
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(10)))
}

func TestQueueOfDeletedProfileStaysWhileItHoldsGangs(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.profile("search", 1)
	w.settle()
	w.o.Profiles = w.o.Profiles[1:]
	w.o.Gangs["ads"] = 1
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(8)), "its jobs keep their share")
	g.Expect(w.deserved("search")).To(Equal(int64(8)))
	w.o.Gangs["ads"] = 0
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(-1)), "it is gone")
	g.Expect(w.deserved("search")).To(Equal(int64(16)))
}

func TestParentThatHoldsJobs(t *testing.T) {
	for name, c := range map[string]struct {
		parent string
		queue  bool
		gangs  int
		reason string
		other  string
	}{
		"not there": {reason: v1beta1.ReasonParentNotFound},
		"busy":      {queue: true, gangs: 2, reason: v1beta1.ReasonParentBusy},
		"fit":       {queue: true, reason: v1beta1.ReasonQueueReady},
		"Volcano's": {parent: "default", queue: true, reason: v1beta1.ReasonParentBusy},
		"a pool":    {parent: "tideline-merge", queue: true, reason: v1beta1.ReasonParentBusy},
		"a profile": {parent: "search", reason: v1beta1.ReasonParentBusy, other: "search"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t)
			if c.other != "" {
				w.profile(c.other, 1)
				w.settle()
			}
			ads := w.profile("ads", 1)
			ads.Spec.Queue.Parent = cmp.Or(c.parent, "research")
			if c.queue {
				w.queue(ads.Spec.Queue.Parent, func(*gang.QueueInfo) {})
			}
			w.o.Gangs["research"] = c.gangs
			w.settle()
			g.Expect(ads.Status.Reason).To(Equal(c.reason))
			made := w.deserved("ads") >= 0
			g.Expect(made).To(Equal(c.reason == v1beta1.ReasonQueueReady))
		})
	}
}

func TestCapabilityListsAllThatIsShared(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.o.Nodes[corev1.ResourceCPU] = 64000
	ads := w.profile("ads", 1)
	ads.Spec.Queue.Capability = list("4")
	w.settle()
	g.Expect(capacity.AmountsOf(w.o.Queues[0].Capability)).To(Equal(capacity.Amounts{gpu: 4, corev1.ResourceCPU: 64000}))
	g.Expect(w.deserved("ads")).To(Equal(int64(4)))
	g.Expect(ads.Status.Accelerators).To(Equal("0/4/4"))
}

func TestOvercommitted(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 1)
	ads.Spec.Queue.Guarantee = list("20")
	w.settle()
	g.Expect(condition(ads, v1beta1.ConditionOvercommitted).Message).To(ContainSubstring(
		"exceed the nodes by 4 nvidia.com/gpu"))
	w.o.Nodes[gpu] = 32
	w.settle()
	g.Expect(condition(ads, v1beta1.ConditionOvercommitted)).To(BeNil())
}

func TestQueueThatWasHandedOverStaysWhenItsProfileGoes(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.queue("ads", func(q *gang.QueueInfo) { q.Labels = map[string]string{v1beta1.LabelProfile: "ads"} })
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(0)), "it is labelled before there is a profile, and stays")
	w.profile("ads", 1)
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(16)))
	w.o.Profiles = nil
	w.settle()
	g.Expect(w.deserved("ads")).To(Equal(int64(16)))
}

func TestParentOfOthersIsNotDeleted(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.settle()
	w.queue("below", func(q *gang.QueueInfo) { q.Parent = "ads" })
	w.o.Profiles = nil
	w.plan()
	w.now = w.now.Add(time.Hour)
	g.Expect(w.plan().DeleteQueues).To(BeEmpty())
}

func TestOwnWeightEditedByHandIsPutBackAtOnce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 2)
	w.settle()
	w.o.Queues[0].Weight = 9
	d := w.plan()
	g.Expect(d.Profiles[0].Apply).NotTo(BeNil())
	g.Expect(d.Profiles[0].Status.Reason).To(Equal(v1beta1.ReasonQueueChanging))
	w.settle()
	g.Expect(ads.Status.Reason).To(Equal(v1beta1.ReasonQueueReady))
}

func TestRefusalCountsWhileSomethingIsToBeWritten(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 1)
	w.settle()
	w.o.Profiles[0].Refused = "no"
	w.settle()
	g.Expect(ads.Status.Reason).To(Equal(v1beta1.ReasonQueueReady), "the Queue is as it should be")
}

func TestGuaranteeOfAnyResource(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.o.Nodes[corev1.ResourceEphemeralStorage] = 100 << 20
	ads := w.profile("ads", 1)
	w.profile("search", 1)
	ads.Spec.Queue.Guarantee = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("40Mi")}
	w.settle()
	g.Expect(condition(ads, v1beta1.ConditionOvercommitted)).To(BeNil())
	g.Expect(capacity.AmountsOf(ads.Status.Deserved)).To(HaveKeyWithValue(corev1.ResourceEphemeralStorage, int64(70<<20)))
}

func TestAbsurdQuantities(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.o.Nodes[corev1.ResourceMemory] = 1 << 40
	for _, name := range []string{"a", "b", "c"} {
		w.profile(name, 1).Spec.Queue.Deserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8E")}
	}
	rest := w.profile("rest", 1)
	w.queue("foreign", func(q *gang.QueueInfo) {
		q.Deserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8E")}
	})
	w.settle()
	g.Expect(capacity.AmountsOf(rest.Status.Deserved)[corev1.ResourceMemory]).To(BeZero())
	g.Expect(condition(rest, v1beta1.ConditionOvercommitted)).NotTo(BeNil())
}

func TestUnknownTierHarmsNoJob(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 1)
	ads.Spec.Tiers = []v1beta1.ProfileTier{{Name: "exploratory"}, {Name: "platinum"}}
	w.settle()
	g.Expect(ads.Status.Reason).To(Equal(v1beta1.ReasonUnknownTier))
	g.Expect(ads.Status.Message).To(Equal("spec: the operator's configuration does not have the tiers platinum, or the " +
		"profile does not list them. The configuration has exploratory, small-traffic, main-traffic. Use these, and list the " +
		"tiers of reservations in spec.tiers."))
	g.Expect(w.deserved("ads")).To(Equal(int64(16)), "the queue is there")

	ads.Spec.Tiers = nil
	ads.Spec.Members = []v1beta1.ProfileMember{
		{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "gold"}, {Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "silver"},
		{Kind: v1beta1.MemberGroup, Name: "leads"},
	}
	w.settle()
	g.Expect(ads.Status.Message).To(ContainSubstring(
		"does not have the tiers gold (maxTier of user ivy), silver (maxTier of group interns), or"))
}

func TestInvalidProfileKeepsWhatItHas(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 1)
	w.profile("search", 1)
	w.settle()
	w.o.Profiles[0].Invalid = "spec.queue.weight: 0 is less than 1"
	w.settle()
	g.Expect(ads.Status.Reason).To(Equal(v1beta1.ReasonInvalidSpec))
	g.Expect(ads.Status.Namespaces).To(Equal([]string{"ads-dev"}))
	g.Expect(w.deserved("ads")).To(Equal(int64(8)))
	g.Expect(w.deserved("search")).To(Equal(int64(8)), "what the queue of an invalid profile has is not given away")
}

func TestShrinkingSharesAreWrittenFirst(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads, search := w.profile("ads", 1), w.profile("search", 3)
	w.settle()
	ads.Spec.Queue.Weight, search.Spec.Queue.Weight = 3, 1
	ads.Generation, search.Generation = 2, 2
	d := w.plan()
	g.Expect(d.Profiles).To(HaveEach(HaveField("Apply", Not(BeNil()))), "who changes a profile waits for nothing")
	g.Expect([]string{d.Profiles[0].Profile.Name, d.Profiles[1].Profile.Name}).To(Equal([]string{"search", "ads"}))
}

func TestVolcanoRefusesTheQueue(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	ads := w.profile("ads", 1)
	w.o.Profiles[0].Refused = "parent queue research validation failed."
	d := w.plan()
	g.Expect(d.Profiles[0].Create).NotTo(BeNil(), "it is tried again")
	g.Expect(d.Profiles[0].Status.Message).To(Equal("Tideline could not write Queue ads: parent queue research validation " +
		"failed. Correct spec.queue or the cause; Tideline tries again every 30 s."))
	g.Expect(ads.Status.Message).To(BeEmpty(), "the input stays as it is")
}

func TestFiguresOfJobsAreWrittenCalmly(t *testing.T) {
	g := NewWithT(t)
	written := &v1beta1.ResourceQuotaProfileStatus{Running: 1, Waiting: 1, AwaitingApproval: 1}
	for _, wanted := range []v1beta1.ResourceQuotaProfileStatus{
		{Running: 2, Waiting: 1, AwaitingApproval: 1}, {Running: 1, AwaitingApproval: 1}, {Running: 1, Waiting: 1},
	} {
		g.Expect(PaceOf(written, &wanted)).To(Equal(statuspace.Calm))
	}
	g.Expect(PaceOf(written, written.DeepCopy())).To(Equal(statuspace.Never))
}
