package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

func (w *simulator) told(indices ...int32) *simulator {
	w.t.Helper()
	w.o.Verdict = capacity.Verdict{To: types.NamespacedName{Namespace: "ads", Name: "ranker"}}
	for _, i := range indices {
		w.o.Verdict.GiveUp = append(w.o.Verdict.GiveUp, w.worker(i).UID)
	}
	return w
}

func TestSurplusLeavesOnTheArbitersWord(t *testing.T) {
	for name, restart := range map[string]bool{"": false, "operator restarted in between": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 8).trains().told(7, 6).step()
			g.Expect(w.last.DeletePods).To(BeEmpty(), "who leaves, and for whom, is in status first")
			w.pass(statuspace.SoonDelay).step()
			g.Expect(w.status().Elasticity.Evicted).To(Equal([]int32{6, 7}))
			g.Expect(w.status().Elasticity.GaveWayTo).To(HaveValue(Equal(v1beta1.GangRef{Namespace: "ads", Name: "ranker"})))
			if restart {
				w.restart()
				w.o.Verdict = capacity.Verdict{}
			}
			w.step()
			g.Expect(w.last.DeletePods).To(HaveLen(2))
			w.o.Verdict = capacity.Verdict{}
			w.settle()
			g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3, 4, 5}))
			g.Expect(w.status().Restarts).To(BeZero())
			g.Expect(w.status().Message).To(ContainSubstring("Workers 6 and 7 gave way to ads/ranker"))
			g.Expect(reasons(w.events)[2:]).To(Equal([]string{"GaveWay"}))
			g.Expect(w.events[2].Message).To(Equal("Workers 6 and 7 gave way to ads/ranker; 6 workers ready."))
			w.pass(301 * time.Second).settle().run().settle()
			g.Expect(w.status().ReadyReplicas).To(Equal(int32(8)))
		})
	}
}

func TestWhoGaveWayIsDeletedOnce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains().told(7).step().pass(statuspace.SoonDelay).step().scale(7).step()
	g.Expect(w.last.DeletePods).To(HaveLen(1), "also if it is beyond the maximum by now")
	g.Expect(w.settle().indices()).To(Equal([]int32{0, 1, 2, 3, 4, 5, 6}))
}

func TestCoreNeverLeavesOnAnybodysWord(t *testing.T) {
	w := newSimulator(t, 2, 4).trains().told(0, 1).settle()
	NewWithT(t).Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
}

func TestFittingSurplusIsCreatedAsRoomAppears(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfFits
	w.settle().run().settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}), "nothing fits")
	w.o.Verdict.SurplusLimit = 3
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{2, 3, 4}))
	w.step()
	g.Expect(w.last.CreateWorkers).To(BeEmpty(), "those wait for the room already")
	w.run().settle()
	g.Expect(w.indices()).To(HaveLen(5), "the limit counts those that are placed")
	w.o.Verdict.SurplusLimit = 1
	w.settle()
	g.Expect(w.indices()).To(HaveLen(5))
}

func TestWhyAJobWaits(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8, 8).settle()
	w.o.Verdict = capacity.Verdict{Place: 2, Waiting: 3, Answer: capacity.Answer{
		Nodes: 2, Free: capacity.Amounts{"nvidia.com/gpu": 5, corev1.ResourceCPU: 64000}, Largest: 4,
		Short: capacity.Amounts{"nvidia.com/gpu": 3},
	}, Holders: []capacity.Holder{{Job: types.NamespacedName{Namespace: "ads", Name: "ctr"}, Workers: 6}}}
	w.settle()
	g.Expect(w.status().Message).To(Equal("Place 2 of 3 in queue default, for the core of 8 workers (8 nvidia.com/gpu) as a " +
		"whole. Free for it: 5 nvidia.com/gpu; the largest gang of such workers that fits now: 4. " +
		"It is short of 3 nvidia.com/gpu. Surplus that may give way: ads/ctr (6)."))
	g.Expect(w.status().Place).To(Equal(int32(2)))
	w.o.Verdict.Moves = []capacity.Holder{{Job: types.NamespacedName{Namespace: "search", Name: "rank"}, Workers: 2}}
	w.settle()
	g.Expect(w.status().Message).To(HaveSuffix("It would fit if surplus moved to other nodes: search/rank (2). Tideline moves " +
		"surplus of queues whose profile has repacking: Move."))
	w.o.Verdict.Moves = nil
	for _, c := range []struct {
		answer capacity.Answer
		says   string
	}{
		{capacity.Answer{Unknown: "host ports"}, "Only Volcano can tell whether it fits, because it asks for host ports."},
		{capacity.Answer{Fits: true}, "It fits now, and waits for Volcano to place it. If that takes longer than a minute, check " +
			"that Volcano's scheduler runs."},
		{capacity.Answer{}, "No node takes its workers, not even an empty one. Check their nodeSelector, affinity, tolerations " +
			"and the resources that they ask for."},
		{
			capacity.Answer{Nodes: 1, Free: capacity.Amounts{"nvidia.com/gpu": 8}},
			"Enough is free in all, but in pieces too small for its workers.",
		},
		{capacity.Answer{
			Nodes: 1, Free: capacity.Amounts{"nvidia.com/gpu": 8, corev1.ResourceCPU: 1500, corev1.ResourceMemory: 1 << 40},
			Short: capacity.Amounts{corev1.ResourceCPU: 500},
		}, "Free for it: 8 nvidia.com/gpu, 1500m cpu; the largest gang of such workers that fits now: 0. It is short of 500m cpu."},
		{capacity.Answer{
			Nodes: 1, Free: capacity.Amounts{corev1.ResourceMemory: 3 << 30}, QueueLimit: true,
			Short: capacity.Amounts{corev1.ResourceMemory: 1 << 30},
		}, "Free for it: 3Gi memory; the largest gang of such workers that fits now: 0. " +
			"The limit of its Queue leaves it short of 1Gi memory."},
		{capacity.Answer{
			Nodes: 1, Free: capacity.Amounts{"nvidia.com/gpu": 1}, Largest: 1, Short: capacity.Amounts{"nvidia.com/gpu": 7},
			Leaving: capacity.Amounts{"nvidia.com/gpu": 8, corev1.ResourceCPU: 8000},
		}, "It is short of 7 nvidia.com/gpu. Pods that are terminating hold 8 nvidia.com/gpu. It fits once they are gone, so no " +
			"other worker has to leave for it."},
		{capacity.Answer{Nodes: 1, Leaving: capacity.Amounts{}},
			"Pods that are terminating hold places. It fits once they are gone, so no other worker has to leave for it."},
	} {
		w.o.Verdict.Answer, w.o.Verdict.Holders = c.answer, nil
		w.settle()
		g.Expect(w.status().Message).To(HaveSuffix(c.says))
	}
}

func TestJobThatCouldNeverFitIsToldWhatIsTooMuch(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 1, 1).settle()
	w.o.Verdict = capacity.Verdict{Place: 1, Waiting: 1, Answer: capacity.Answer{Nodes: 1}, Never: &capacity.Answer{
		Nodes: 1, Oversize: &capacity.Oversize{Resource: "nvidia.com/gpu", Asks: 64, Largest: 8},
	}}
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonNeverFits))
	g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/NeverFits"))
	g.Expect(w.status().Message).To(HaveSuffix("as a whole. It does not fit even if nothing else runs. One worker asks for 64 " +
		"nvidia.com/gpu; the largest node for it has 8. Ask for less (minReplicas, requests), or have an administrator add nodes or " +
		"raise the limit of the Queue; it then starts by itself."))
	w.o.Verdict = capacity.Verdict{}
	w.run().settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTraining), "a node that joined has room: nothing was refused")
}

func TestPlacedJobStandsInNoLine(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).settle()
	from := capacity.Holder{Job: types.NamespacedName{Name: "ctr"}, Workers: 2}
	w.o.Verdict = capacity.Verdict{Place: 1, Waiting: 1, From: []capacity.Holder{from}}
	w.settle()
	g.Expect(w.status().Place).To(Equal(int32(1)))
	g.Expect(w.status().RoomFrom).To(Equal([]v1beta1.RoomSource{{Name: "ctr", Workers: 2}}))
	w.run().settle()
	g.Expect(w.status().Place).To(BeZero(), "the verdict is a moment old")
	g.Expect(w.status().RoomFrom).To(BeEmpty())
	written := w.written
	w.o.Verdict = capacity.Verdict{}
	w.settle()
	g.Expect(w.written).To(Equal(written))
}

func TestPlacesFarBackAreNotNews(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).settle()
	at := func(place int32) statuspace.Pace {
		w.o.Verdict = capacity.Verdict{Place: place, Waiting: 500}
		d := Plan(w.o, w.now)
		return PaceOf(w.status(), &d.Status)
	}
	w.o.Verdict = capacity.Verdict{Place: 300, Waiting: 500}
	w.settle()
	g.Expect(at(299)).To(Equal(statuspace.Lazy))
	g.Expect(at(10)).To(Equal(statuspace.Calm))
}

func TestSchedulerConfigured(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	g.Expect(condition(w, v1beta1.ConditionSchedulerConfigured)).To(Equal("True/Configured"))
	w.o.SchedulerObstacles = []string{"action preempt is missing"}
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionSchedulerConfigured)).To(Equal("False/Incomplete"))
}
