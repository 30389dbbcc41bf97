package training

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/losses"
)

func TestEvictedSurplusWaitsForTheCooldown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains()
	w.evict(7, 3).step().pass(statuspace.SoonDelay).step()
	g.Expect(w.status().Elasticity.Evicted).To(Equal([]int32{3, 7}))
	g.Expect(w.status().Restarts).To(BeZero())
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/CoolingDown"))
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 4, 5, 6}))
	g.Expect(w.last.RequeueAfter).To(BeNumerically("~", 300*time.Second, 2*time.Second))
	w.pass(298 * time.Second).step()
	g.Expect(w.last.CreateWorkers).To(BeEmpty(), "the cooldown has not passed")
	w.pass(4 * time.Second).step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{3, 7}), "lowest missing index first")
	w.run().settle()
	g.Expect(w.status().Elasticity.Evicted).To(BeEmpty())
	g.Expect(w.status().ReadyReplicas).To(Equal(int32(8)))
}

func TestFirstGrowthIsNotHeldByAnothersCooldown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains().scale(4).settle().evict(3).settle().scale(8).step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{4, 5, 6, 7}), "3 gave way, 4 to 7 did not")
}

func TestEvictionNobodySawIsStillAnEviction(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().evict(2).restart().step().pass(statuspace.SoonDelay).step()
	g.Expect(w.status().Elasticity.Evicted).To(Equal([]int32{2}))
	g.Expect(w.status().Restarts).To(BeZero())
}

func TestLossOfWorkerZeroCountsOnce(t *testing.T) {
	for name, restart := range map[string]bool{"seen": false, "while the operator was down": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains().deletePod(0)
			if restart {
				w.restart()
			}
			w.step()
			g.Expect(w.last.CreateWorkers).To(BeEmpty(), "the loss is not in status yet")
			g.Expect(w.status().Restarts).To(Equal(int32(1)), "at once")
			w.step()
			g.Expect(w.last.CreateWorkers).To(Equal([]int32{0}))
			g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("False/Recovering"))
			w.settle().run().settle()
			g.Expect(w.status().Restarts).To(Equal(int32(1)))
			g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
			g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventWorkerLost))
		})
	}
}

func TestNoGrowthWhileTheCoreRecovers(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains().evict(5).settle().deletePod(0).step().pass(20 * time.Minute).step()
	g.Expect(w.indices()).NotTo(ContainElement(int32(5)))
	w.run().step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{5}))
}

func TestFailedWorkerIsRecordedThenReplaced(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.change(1, func(p *podstate.Worker) {
		p.Phase, p.Ready, p.Failure = corev1.PodFailed, false, podstate.Failure{ExitCode: 1, Message: "out of memory"}
	})
	w.step()
	g.Expect(w.last.DeletePods).To(BeEmpty(), "the loss is not in status yet")
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
	g.Expect(w.status().LastFailure.Message).To(Equal("out of memory"))
	w.step()
	g.Expect(w.last.DeletePods).To(BeEmpty(), "the failed pod stays for the back-off")
	w.pass(losses.FirstBackoff).step()
	g.Expect(w.last.DeletePods).To(HaveLen(1))
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{1}))
	w.run().settle()
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
}

func TestEvictedCoreWorkerIsReplacedAndNotCounted(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().evict(1).step()
	g.Expect(w.last.CreateWorkers).To(BeEmpty(), "the loss is not in status yet")
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{1}))
	w.settle().run().settle()
	g.Expect(w.status().Restarts).To(BeZero())
	g.Expect(w.status().Elasticity).To(BeNil())
}

func TestEvictionThatAnotherOperatorRecordedIsNotRecordedAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().evict(3)
	remembered := slices.Clone(w.o.Departures)
	w.settle().pass(20 * time.Minute).settle().run().settle()
	g.Expect(w.status().ReadyReplicas).To(Equal(int32(4)), "another took its place")
	before := w.written
	w.o.Departures = remembered
	w.settle()
	g.Expect(w.written).To(Equal(before))
	g.Expect(w.status().Elasticity.Evicted).To(BeEmpty())
}

func TestEvictedSurplusThatEndsWellIsStillEvicted(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		t.Run(string(phase), func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains()
			w.change(3, func(p *podstate.Worker) { p.Disruption = corev1.PodReasonPreemptionByScheduler }).end(phase, 3)
			w.step().pass(statuspace.SoonDelay).step()
			g.Expect(w.status().Elasticity.Evicted).To(Equal([]int32{3}))
			w.deletePod(3).settle()
			g.Expect(w.status().Restarts).To(BeZero())
			g.Expect(w.indices()).To(HaveLen(3), "it waits for the cooldown")
			g.Expect(reasons(w.events)[2:]).To(Equal([]string{"GaveWay"}))
		})
	}
}

func TestScaleDownThatTakesItsTimeCountsNothing(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains().scale(3).step()
	g.Expect(w.last.DeletePods).To(BeEmpty(), "they are members in status until this write")
	w.o.Workers = append([]podstate.Worker(nil), w.o.Workers...)
	d := Plan(w.o, w.now)
	g.Expect(d.DeletePods).To(HaveLen(5))
	for _, p := range d.DeletePods {
		w.change(p.Index, func(p *podstate.Worker) { p.Terminating = true })
	}
	w.scale(8).step()
	w.end(corev1.PodFailed, 3, 4, 5, 6, 7).step()
	for i := int32(3); i < 8; i++ {
		w.deletePod(i)
	}
	w.settle().run().settle()
	g.Expect(w.status().Restarts).To(BeZero())
	g.Expect(w.indices()).To(HaveLen(8))
}

func TestCooldownShorterThanTheTerminationCountsOnce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	w.change(3, func(p *podstate.Worker) { p.Disruption, p.Terminating = corev1.PodReasonPreemptionByScheduler, true })
	w.o.Job.Spec.Elasticity.Growth.CooldownSeconds = new(int32(10))
	w.settle()
	first := *w.status().Elasticity.LastEvictionTime
	for range 5 {
		w.pass(8 * time.Second).step()
		g.Expect(*w.status().Elasticity.LastEvictionTime).To(Equal(first))
		g.Expect(w.last.CreateWorkers).To(BeEmpty())
	}
	w.deletePod(3).step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{3}), "the cooldown has long passed")
	g.Expect(reasons(w.events)[2:]).To(Equal([]string{"GaveWay"}))
}

func TestWorkerThatLeftIsNotMissed(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).trains()
	w.change(1, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).settle()
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("True/AtMaximum"))
	w.deletePod(1).settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 2}))
}
