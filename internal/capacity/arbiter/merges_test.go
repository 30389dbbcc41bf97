package arbiter

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// merge adds a MergeJob of so many pods of a GPU, at least, that stands in the line.
func (s *fixture) merge(name string, minimum int32) *v1beta1.MergeJob {
	j := &v1beta1.MergeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: name, UID: types.UID("merge " + name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		},
		Spec: v1beta1.MergeJobSpec{
			Pool: "default", MinReplicas: minimum, MaxReplicas: 2 * minimum, Threshold: ptr.To[int32](100),
		},
		Status: v1beta1.MergeJobStatus{Phase: v1beta1.MergeQueued},
	}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "merge", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
	}}}
	s.objects = append(s.objects, j)
	return j
}

// asks adds what a merge has that has asked for its place two minutes ago.
func (s *fixture) asks(j *v1beta1.MergeJob) mergepod.Blueprint {
	j.Status.Run = &v1beta1.MergeRun{
		ID: "20261120t095800z-7b3f9c01", Attempt: 1, MinReplicas: j.Spec.MinReplicas, MaxReplicas: j.Spec.MaxReplicas,
	}
	b := mergepod.Blueprint{Job: j, Run: j.Status.Run, Tier: config.DefaultTiers()[0], Pool: "default"}
	core := b.CoreGroup().PodGroup()
	core.SetCreationTimestamp(metav1.NewTime(now.Add(-2 * time.Minute)))
	s.objects = append(s.objects, core, b.SurplusGroup().PodGroup())
	return b
}

// pod adds a pod of a merge, on that node; empty for one that waits.
func (s *fixture) pod(b mergepod.Blueprint, i int32, node string) {
	p := b.NewPod(i)
	p.UID, p.Spec.Priority = types.UID(p.Name), &b.Tier.Priority
	if p.Spec.NodeName, p.Status.Phase = node, corev1.PodPending; node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	s.objects = append(s.objects, p)
}

// evaluated is an arbiter that has evaluated once.
func (s *fixture) evaluated() *Arbiter {
	s.t.Helper()
	a := s.arbiter()
	_, err := a.evaluate(s.t.Context(), now)
	NewWithT(s.t).Expect(err).NotTo(HaveOccurred())
	return a
}

func TestMergeThatCouldNeverFit(t *testing.T) {
	nine := &capacity.Answer{
		Largest: 8, Free: capacity.Amounts{"nvidia.com/gpu": 8}, Short: capacity.Amounts{"nvidia.com/gpu": 1}, Nodes: 1,
	}
	limited := &capacity.Answer{
		Largest: 3, Free: capacity.Amounts{"nvidia.com/gpu": 8}, Short: capacity.Amounts{"nvidia.com/gpu": 6}, Nodes: 1,
		QueueLimit: true,
	}
	waits := func(weight int64) func(*v1beta1.MergeJob) {
		return func(j *v1beta1.MergeJob) { j.Status.Phase, j.Status.Weight = v1beta1.MergeWaiting, &weight }
	}
	for name, c := range map[string]struct {
		edit func(*v1beta1.MergeJob)
		want *capacity.Answer
	}{
		"in the line":               {func(*v1beta1.MergeJob) {}, nine},
		"in the line, not too many": {func(j *v1beta1.MergeJob) { j.Spec.MinReplicas = 8 }, nil},
		"not due":                   {waits(99), nil},
		"due":                       {waits(100), nine},
		"set aside":                 {func(j *v1beta1.MergeJob) { j.Status.Phase, j.Status.Reason = "Waiting", "NeverFits" }, nine},
		"running": {func(j *v1beta1.MergeJob) {
			j.Status.Phase, j.Status.Weight, j.Status.Run = "Running", ptr.To[int64](100), &v1beta1.MergeRun{MinReplicas: 9}
		}, nil},
		"asking with fewer":             {func(j *v1beta1.MergeJob) { j.Status.Run = &v1beta1.MergeRun{MinReplicas: 8} }, nil},
		"suspended":                     {func(j *v1beta1.MergeJob) { j.Spec.Suspend = true }, nil},
		"in another pool":               {func(j *v1beta1.MergeJob) { j.Spec.Pool = "small" }, limited},
		"still in another pool":         {func(j *v1beta1.MergeJob) { j.Status.Pool = "small" }, limited},
		"in a pool that does not exist": {func(j *v1beta1.MergeJob) { j.Spec.Pool = "nowhere" }, nil},
		"beyond the model":              {func(j *v1beta1.MergeJob) { beyondModel(&j.Spec.Template.Spec) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			small := gang.NewQueue()
			small.SetName("small")
			g.Expect(json.Unmarshal([]byte(`{"spec": {"capability": {"nvidia.com/gpu": "3"}}}`), small)).To(Succeed())
			s.objects = append(s.objects, small)
			s.job("ctr", 8, 8)
			c.edit(s.merge("ctr", 9))
			a := s.evaluated()
			g.Expect(a.MergeVerdict(key("ctr")).Never).To(Equal(c.want))
			g.Expect(a.VerdictFor(key("ctr")).Never).To(BeNil(), "the training of that name is another job")
		})
	}
}

func TestHeadOfTheLineIsJudgedByItsGang(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 7)
	b := s.asks(s.merge("ctr", 2))
	s.pod(b, 0, "")
	s.pod(b, 1, "")
	a := s.evaluated()
	v := a.MergeVerdict(key("ctr"))
	g.Expect(v.Place).To(Equal(int32(1)))
	g.Expect(v.Answer.Largest).To(Equal(int32(1)))
	g.Expect(v.Answer.Short).To(Equal(capacity.Amounts{"nvidia.com/gpu": 1}))
	g.Expect(v.Holders).To(Equal([]capacity.Holder{{Job: key("ctr"), Workers: 5}}))
	g.Expect(v.Never).To(BeNil())
	g.Expect(a.VerdictFor(key("ctr-merge"))).To(BeZero(), "a training of that name has none")
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(Equal([]types.UID{"ctr-worker-6"}), "it has starved")
	g.Expect(a.VerdictFor(key("ctr")).To).To(Equal(key("ctr-merge")))
}

func TestMergesTakeTheirTurnByTierAndAge(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 8)
	waitingSince(s.job("ranker", 4, 0), now)
	exploratory, important := s.asks(s.merge("a", 2)), s.asks(s.merge("z", 2))
	important.Tier = config.DefaultTiers()[2]
	for i := range int32(2) {
		s.pod(exploratory, i, "")
		s.pod(important, i, "")
	}
	a := s.evaluated()
	g.Expect(a.MergeVerdict(key("z")).Place).To(Equal(int32(1)))
	g.Expect(a.VerdictFor(key("ranker")).Place).To(Equal(int32(2)), "of the tier of the other, and an hour old")
	g.Expect(a.MergeVerdict(key("a")).Place).To(Equal(int32(3)))
}

func TestPodGroupOfAStrangerIsNoMergesGang(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	j := s.merge("ctr", 2)
	b := s.asks(j)
	s.pod(b, 0, "")
	j.UID = "a later job of that name"
	a := s.evaluated()
	g.Expect(a.MergeVerdict(key("ctr"))).To(BeZero())
}

func TestSurplusOfMergesGivesWayToVolcanoAlone(t *testing.T) {
	for name, c := range map[string]struct {
		served  bool
		holders []capacity.Holder
	}{
		"Volcano serves":         {true, []capacity.Holder{{Job: key("ctr-merge"), Workers: 2}}},
		"Volcano does not serve": {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = c.served
			s.job("ctr", 2, 2)
			j := s.merge("ctr", 3)
			j.Status.Phase = v1beta1.MergeRunning
			b := s.asks(j)
			for i := range int32(5) {
				s.pod(b, i, "n")
			}
			s.pod(b, 5, "")
			waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
			a := s.evaluated()
			v := a.VerdictFor(key("ranker"))
			g.Expect(v.Answer.Largest).To(Equal(int32(1)))
			g.Expect(v.Holders).To(Equal(c.holders))
			g.Expect(v.From).To(BeEmpty())
			for _, holder := range []capacity.Verdict{a.VerdictFor(key("ctr")), a.VerdictFor(key("ctr-merge")),
				a.MergeVerdict(key("ctr"))} {
				g.Expect(holder.GiveUp).To(BeEmpty(), "it leaves on Volcano's word")
			}
		})
	}
}

func TestMergesWakeWhoReadsThem(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	j := s.merge("ctr", 9)
	a := s.arbiter()
	// An arbiter that waits for a reader waits until then.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	evaluate := func(why string) {
		_, err := a.evaluate(ctx, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ctx.Err()).NotTo(HaveOccurred(), why)
	}
	evaluate("nobody has asked to be told")
	g.Expect(a.MergeVerdict(key("ctr")).Never).NotTo(BeNil())
	events := a.WokenMerges()
	g.Expect(a.WokenMerges()).To(BeIdenticalTo(events))
	resize := func(gpus string) {
		cl, _ := a.reader.(client.Client)
		node := &corev1.Node{}
		g.Expect(cl.Get(ctx, client.ObjectKey{Name: "n"}, node)).To(Succeed())
		node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(gpus)
		g.Expect(cl.Status().Update(ctx, node)).To(Succeed())
	}
	resize("7")
	evaluate("figures are told once a minute")
	g.Expect(a.MergeVerdict(key("ctr")).Never.Largest).To(Equal(int32(7)))

	resize("9")
	woken := make(chan client.Object, 1)
	go func() {
		e := <-events
		woken <- e.Object
	}()
	evaluate("the merge is woken")
	var o client.Object
	g.Eventually(woken).Should(Receive(&o), "its verdict is gone")
	g.Expect(o).To(BeAssignableToTypeOf(j))
	g.Expect(client.ObjectKeyFromObject(o)).To(Equal(key("ctr")))
	g.Expect(a.MergeVerdict(key("ctr"))).To(BeZero())
	evaluate("nothing changed")
}

func TestWeightIsReadAtTheThresholdAlone(t *testing.T) {
	g := NewWithT(t)
	at := func(weight int64) any {
		j := newFixture(t).merge("ctr", 2)
		j.Status.Phase, j.Status.Weight = v1beta1.MergeWaiting, &weight
		return readMerge(j)
	}
	g.Expect(at(99)).To(Equal(at(10)), "it grows by itself")
	g.Expect(reflect.DeepEqual(at(99), at(100))).To(BeFalse())
	g.Expect(at(250)).To(Equal(at(100)))
}

// turnAsker is a merge of alice's that asks for its turn at the caps.
func (s *fixture) turnAsker(name string, minimum int32) *v1beta1.MergeJob {
	j := s.merge(name, minimum)
	j.Spec.Owner, j.Status.TurnTime = "alice", ptr.To(metav1.NewTime(now.Add(-time.Second)))
	return j
}

func TestMergesCountAtTheCapsOfTheirUser(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(8, "")
	run := s.merge("run", 2) // of two pods, which may be four
	run.Spec.Owner = "alice"
	s.pod(s.asks(run), 0, "n")
	s.job("run", 2, 2).Spec.Owner = "alice" // a training of that name, with two GPUs
	first, second := s.turnAsker("first", 1), s.turnAsker("second", 2)
	second.CreationTimestamp = metav1.NewTime(now)
	training := s.asking("training")
	training.CreationTimestamp = metav1.NewTime(now.Add(time.Second))
	a := s.evaluated()
	g.Expect(a.MergeTurn(key("first"))).To(Equal(admission.Turn{
		Ask: "merge first/turn at " + strconv.FormatInt(first.Status.TurnTime.Unix(), 10), Admitted: true,
	}), "one GPU of eight is left for its core beside six, and another waits for the second")
	waits := a.MergeTurn(key("second"))
	g.Expect(waits.Admitted).To(BeFalse())
	g.Expect([]int64{waits.Blocked.Used, waits.Blocked.Asked}).To(Equal([]int64{7000, 2000}))
	behind := a.TurnOf(key("training")).Blocked
	g.Expect(behind.Place).To(Equal(int32(2)))
	g.Expect(behind.DescribeBlock("ads")).To(HaveSuffix("Position 2 in the queue for this limit, after MergeJob ads/second."))
	g.Expect(a.MergeTurn(key("run"))).To(BeZero(), "it does not ask")
}

func TestAMergeWakesWhenItsTurnIsDecided(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(4, "")
	s.turnAsker("first", 2)
	a := s.arbiter()
	woken, _, err := a.decide(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(woken.merges).To(ContainElement(key("first")))
}
