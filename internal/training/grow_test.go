package training

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// growing has a job of 2..8 whose core has run for long, of a mode, with a cooldown of 30 s, and room for so much surplus.
func growing(t *testing.T, mode v1beta1.GrowthMode, room int32) *simulator {
	t.Helper()
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Elasticity.Growth.Mode = mode
	w.o.Job.Spec.Elasticity.Growth.CooldownSeconds = ptr.To[int32](30)
	w.o.Job.Spec.Elasticity.Growth.OutageSeconds = ptr.To[int32](60)
	w.settle().run().settle().pass(jobstate.RestartTime).settle()
	w.o.Verdict.SurplusLimit = room
	return w
}

// The first status of a job that runs is written before room was looked for, so it does not say that there is none.
func TestAJobThatFollowsRoomSaysWhenItGrows(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	w.step().settle()
	g.Expect(w.status().Message).To(Equal("2 of 8 workers ready. More are created when the operator sees room for them " +
		"(elasticity.growth.mode OnlyIfFits)."))
}

func TestATrickleOfRoomIsTakenInSteps(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	var sizes []int32
	for range 24 { // One place each 5 s for 2 minutes.
		w.o.Verdict.SurplusLimit = min(w.o.Verdict.SurplusLimit+1, 6)
		w.step().run().step().pass(5 * time.Second)
		if n := int32(len(w.indices())); len(sizes) == 0 || sizes[len(sizes)-1] != n {
			sizes = append(sizes, n)
		}
	}
	g.Expect(sizes).To(Equal([]int32{3, 8}), "the first at once, and what came since in one step")
}

func TestWaitingSurplusIsWithdrawnBetweenSteps(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 6)
	w.step().run(2, 3).step()
	g.Expect(w.indices()).To(HaveLen(8), "the others may still be placed in this step")
	w.pass(6 * time.Second).step().step()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
	g.Expect(w.settle().status().Reason).To(Equal(v1beta1.ReasonCoolingDown))
	w.pass(31 * time.Second).step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{4, 5, 6, 7}))
}

func TestGrowthThatDoesNotPayWaits(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 2)
	w.o.Stay = growth.Stay{Held: 11 * time.Hour, Left: 359}
	w.settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}))
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/" + v1beta1.ReasonDoesNotPay))
	g.Expect(w.status().Message).To(Equal("2 of 8 workers ready. 2 workers more fit, but would gain 120 and cost 120 GPU-seconds, " +
		"so the job waits: surplus stays 2m0s in queue default, and a change of size keeps 2 workers from progress for 1m0s."))
	g.Expect(w.last.RequeueAfter).To(Equal(weighAgain), "nothing else tells it that surplus has fared better since")
	w.o.Verdict.SurplusLimit = 4
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{2, 3, 4, 5}), "4 workers gain twice as much in the same time")
}

// A clock that was far ahead noted when the job began to run.
func TestARestartOfAnotherClockMakesNoGrowthFree(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 2)
	w.o.Stay = growth.Stay{Held: 11 * time.Hour, Left: 359}
	ahead := metav1.NewTime(w.now.Add(time.Hour))
	w.o.Job.Status.RunningSince = &ahead
	w.settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}), "growth does not pay")
	w.pass(59*time.Minute + 30*time.Second).settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}), "nor a minute before that time")
}

func TestLaterGrowthWaitsUntilAsMuchWasMissedAsItCosts(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 2)
	w.step().run().settle().pass(time.Hour).settle()
	g.Expect(w.indices()).To(HaveLen(4), "the first growth waits for nothing")
	w.o.Verdict.SurplusLimit, w.o.Verdict.RoomSince = 3, w.now
	w.step()
	g.Expect(w.last.CreateWorkers).To(BeEmpty())
	g.Expect(w.last.Status.Reason).To(Equal(v1beta1.ReasonDoesNotPayYet))
	g.Expect(w.last.RequeueAfter).To(Equal(4*time.Minute), "a minute without 4 workers costs what one misses in 4")
	g.Expect(w.last.Status.Message).To(Equal("4 of 8 workers ready. 1 worker more fits, and would gain 3,500 and cost 240 " +
		"GPU-seconds: surplus stays 1h0m0s in queue default, and a change of size keeps 4 workers from progress for 1m0s. " +
		"The job grows at 2026-11-20 11:05:20 UTC, if it fits until then: when it has missed as much without it."))
	w.pass(4 * time.Minute).step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{4}))
}

func TestGrowthIsTakenToRepeatStepsUnlessACheckpointIsSavedBefore(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(*v1beta1.ElasticTrainingJobSpec)
		seconds int
	}{
		"as it is":     {func(*v1beta1.ElasticTrainingJobSpec) {}, 360},
		"with a grace": {func(spec *v1beta1.ElasticTrainingJobSpec) { spec.Checkpoint.GraceSeconds = ptr.To[int32](30) }, 60},
		"as it says": {func(spec *v1beta1.ElasticTrainingJobSpec) {
			spec.Checkpoint.GraceSeconds, spec.Elasticity.Growth.OutageSeconds = ptr.To[int32](30), ptr.To[int32](0)
		}, 0},
	} {
		g := NewWithT(t)
		w := growing(t, v1beta1.GrowthOnlyIfPays, 2)
		w.o.Job.Spec.Elasticity.Growth.OutageSeconds = nil
		c.set(&w.o.Job.Spec)
		w.o.Stay = growth.Stay{Held: 11 * time.Hour, Left: 359} // Surplus stays for 2 minutes.
		w.step()
		if c.seconds < 60 {
			g.Expect(w.last.CreateWorkers).To(HaveLen(2), name)
			continue
		}
		g.Expect(w.settle().status().Message).To(ContainSubstring("and cost %d GPU-seconds", 2*c.seconds), name)
	}
}

func TestARestartTakesWhatFitsAlong(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 1)
	w.step().run().settle()
	g.Expect(w.indices()).To(HaveLen(3))
	w.o.Verdict.SurplusLimit = 4
	g.Expect(w.step().last.CreateWorkers).To(BeEmpty(), "it cools down")
	w.deletePod(0).settle().run().settle()
	g.Expect(w.indices()).To(HaveLen(6), "all meet again anyway")
}

func TestSizesComeInWholeSteps(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 9)
	w.o.Job.Spec.Elasticity.Step, w.o.Verdict.SurplusLimit = 4, 7
	w.trains()
	g.Expect(w.indices()).To(HaveLen(6), "four beyond the core, of seven")
	w.evict(5).settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}), "three of four train nothing")
	g.Expect(w.status().Restarts).To(BeZero())
	g.Expect(w.status().Elasticity.Evicted).To(Equal([]int32{2, 3, 4, 5}))
}

func TestAStepMayBePlacedWorkerByWorker(t *testing.T) {
	for _, mode := range []v1beta1.GrowthMode{v1beta1.GrowthAlways, v1beta1.GrowthOnlyIfFits, v1beta1.GrowthOnlyIfPays} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			w := growing(t, mode, 4)
			w.o.Job.Spec.Elasticity.Step = 4
			w.step().step()
			g.Expect(w.indices()).To(HaveLen(6))
			for i := int32(2); i < 6; i++ {
				w.run(i).step().pass(time.Second).step()
				g.Expect(w.last.DeletePods).To(BeEmpty(), "the others follow")
			}
			w.settle()
			g.Expect(w.indices()).To(HaveLen(6))
			g.Expect(w.status().ReadyReplicas).To(Equal(int32(6)))
		})
	}
}

func TestAPartOfAStepDoesNotStay(t *testing.T) {
	for _, mode := range []v1beta1.GrowthMode{v1beta1.GrowthAlways, v1beta1.GrowthOnlyIfFits} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			w := growing(t, mode, 4)
			w.o.Job.Spec.Elasticity.Step = 4
			w.step().run(2, 3).step()
			w.o.Verdict.SurplusLimit = 0 // Others have taken the room of the other two.
			w.settle()
			g.Expect(w.indices()).To(Equal([]int32{0, 1}), "two of four train nothing, and two wait in vain")
		})
	}
}

// onNodes has each step of the job be on one node, and some have room.
func onNodes(w *simulator, step int32, rooms ...capacity.StepDomain) {
	e := &w.o.Job.Spec.Elasticity
	e.Step, e.StepWithin = step, &v1beta1.StepWithin{Level: v1beta1.StepOnNode}
	w.o.StepHosts = map[string][]string{}
	for _, room := range rooms {
		w.o.StepHosts[room.Name] = []string{room.Name}
	}
	haveRoom(w, rooms...)
}

// haveRoom says how much surplus the job may have on which nodes.
func haveRoom(w *simulator, rooms ...capacity.StepDomain) {
	w.o.Verdict.StepDomains, w.o.Verdict.SurplusLimit = slices.Concat([]capacity.StepDomain{}, rooms), 0
	for _, room := range rooms {
		w.o.Verdict.SurplusLimit += room.Workers
	}
}

// nodesOf are the nodes of surplus that has not ended, by index.
func nodesOf(w *simulator) map[int32]string {
	all := map[int32]string{}
	for i := range w.o.Workers {
		if p := &w.o.Workers[i]; p.Index >= 2 && !p.HasEnded() {
			all[p.Index] = p.StepDomain
		}
	}
	return all
}

func TestStepsComeAndLeaveNodeByNode(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	onNodes(w, 2, capacity.StepDomain{Name: "a", Workers: 2}, capacity.StepDomain{Name: "b", Workers: 4})
	w.step().run().settle()
	both := map[int32]string{2: "a", 3: "a", 4: "b", 5: "b", 6: "b", 7: "b"}
	g.Expect(nodesOf(w)).To(Equal(both))
	w.evict(2, 5).settle()
	left := map[int32]string{4: "b", 6: "b"}
	g.Expect(nodesOf(w)).To(Equal(left), "each step that lacks a worker leaves as a whole")
	g.Expect(w.status().Elasticity.Evicted).To(Equal([]int32{2, 3, 5, 7}))
	w.pass(time.Minute).settle().run().settle()
	g.Expect(nodesOf(w)).To(Equal(both))
}

func TestAFailedWorkerIsReplacedInItsStep(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	onNodes(w, 2, capacity.StepDomain{Name: "a", Workers: 2}, capacity.StepDomain{Name: "b", Workers: 2})
	w.step().run().settle()
	g.Expect(nodesOf(w)).To(Equal(map[int32]string{2: "a", 3: "a", 4: "b", 5: "b"}))
	w.end(corev1.PodFailed, 3).settle().pass(time.Minute).settle()
	g.Expect(nodesOf(w)).To(Equal(map[int32]string{2: "a", 6: "a", 4: "b", 5: "b"}))
}

func TestAStepWithoutRoomForItsRestLeaves(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	onNodes(w, 2, capacity.StepDomain{Name: "a", Workers: 2}, capacity.StepDomain{Name: "b", Workers: 2})
	w.step().run().settle()
	haveRoom(w, capacity.StepDomain{Name: "b", Workers: 2}) // Others have taken the place that becomes free.
	w.end(corev1.PodFailed, 3).settle().pass(time.Minute).settle()
	g.Expect(nodesOf(w)).To(Equal(map[int32]string{4: "b", 5: "b"}), "one of two trains nothing")
	w.pass(time.Hour).settle()
	haveRoom(w, capacity.StepDomain{Name: "b", Workers: 4})
	w.settle().run().settle()
	g.Expect(nodesOf(w)).To(HaveLen(4))
	w.o.Verdict = capacity.Verdict{} // The operator has restarted.
	w.end(corev1.PodFailed, 4).settle()
	g.Expect(nodesOf(w)).To(HaveLen(3), "it is not known yet where there is room")
}

func TestAStepThatWaitsInVainGoesElsewhere(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	onNodes(w, 2, capacity.StepDomain{Name: "a", Workers: 2}, capacity.StepDomain{Name: "b"})
	w.step().settle()
	g.Expect(nodesOf(w)).To(Equal(map[int32]string{2: "a", 3: "a"}))
	haveRoom(w, capacity.StepDomain{Name: "b", Workers: 2})
	w.settle()
	g.Expect(nodesOf(w)).To(Equal(map[int32]string{2: "b", 3: "b"}), "they could not be placed on node a any more")
}

// Whatever the planner does next, it comes to rest: settle fails if it does not.
func TestAStepThatIsBrokenAndOneThatComesDoNotQuarrel(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](60)
	onNodes(w, 2, capacity.StepDomain{Name: "a", Workers: 2}, capacity.StepDomain{Name: "b"})
	w.step().run().settle()
	haveRoom(w, capacity.StepDomain{Name: "b", Workers: 2})
	w.end(corev1.PodFailed, 3).settle()
	w.run().settle().pass(10 * time.Minute).settle().run().settle()
	for index, node := range nodesOf(w) {
		g.Expect(node).To(Equal("b"), "worker %d", index)
	}
	g.Expect(nodesOf(w)).To(HaveLen(2))
}

func TestTheRestOfAStepKeepsToWhatTheProfileAllows(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	onNodes(w, 2, capacity.StepDomain{Name: "a", Workers: 2}, capacity.StepDomain{Name: "b", Workers: 2})
	w.step().run().settle()
	w.o.Verdict.SurplusLimit = 2 // As when others of the team hold what was allowed.
	w.end(corev1.PodFailed, 5).settle().pass(time.Minute).settle()
	g.Expect(nodesOf(w)).To(Equal(map[int32]string{2: "a", 3: "a"}), "the other of two trains nothing, and none may come")
}

func TestOnlyWholeStepsAreCreated(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	onNodes(w, 4, capacity.StepDomain{Name: "a", Workers: 4}, capacity.StepDomain{Name: "b"})
	w.step().run().settle()
	g.Expect(nodesOf(w)).To(HaveLen(4))
	haveRoom(w, capacity.StepDomain{Name: "b", Workers: 4})
	w.end(corev1.PodFailed, 3).step()
	for _, node := range nodesOf(w) {
		g.Expect(node).To(Equal("a"), "no single worker on node b, though one is missing")
	}
}

func TestStepsWaitWhereTheModelDoesNotJudge(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 0)
	onNodes(w, 2)
	w.o.Verdict.Unjudged = true
	w.settle()
	g.Expect(w.indices()).To(HaveLen(2), "no node is known to have room for a step")
	said := func() string {
		return meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionFullSize).Message
	}
	g.Expect(said()).To(Equal("2 of 8 workers ready. It cannot grow: the operator cannot tell which has room for 2 workers on one " +
		"node (elasticity.stepWithin), because they ask for something that its model of capacity does not cover."))
	w.o.Verdict.Unjudged = false
	w.o.Job.Spec.Elasticity.StepWithin = &v1beta1.StepWithin{Level: v1beta1.StepInHyperNode, Tier: ptr.To[int32](1)}
	w.settle()
	g.Expect(said()).To(ContainSubstring("sees room for 2 workers in one HyperNode of tier 1 (elasticity.stepWithin)."))
}

func TestWorkersThatLeftForGoodAreNotMissing(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 0)
	w.o.Job.Spec.Elasticity.Step, w.o.Verdict.Unjudged = 2, true
	w.settle().run().settle()
	g.Expect(w.indices()).To(HaveLen(8))
	w.change(7, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).settle()
	for range 5 {
		w.pass(time.Minute).settle()
		g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3, 4, 5, 7}), "7 succeeded, and without it 6 is no whole step")
	}
}
