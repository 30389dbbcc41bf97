package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/losses"
)

var ranker = types.NamespacedName{Namespace: "ads", Name: "ranker"}

func TestWorkersThatLeftInVainComeBackAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		inVain []types.NamespacedName
		back   bool
	}{
		"the gang that they left for was not placed": {[]types.NamespacedName{ranker}, true},
		"so was another":                               {[]types.NamespacedName{ranker, {Namespace: "ads", Name: "other"}}, true},
		"another gang was not placed":                  {[]types.NamespacedName{{Namespace: "ads", Name: "other"}}, false},
		"nothing is known of the gang they left for":   {nil, false},
		"a gang of that name in another namespace was": {[]types.NamespacedName{{Namespace: "b", Name: "ranker"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 8).trains().told(7, 6).step().pass(statuspace.SoonDelay).step()
			w.o.Verdict = capacity.Verdict{}
			g.Expect(w.settle().indices()).To(HaveLen(6))
			w.o.Verdict.InVain = c.inVain
			w.settle().run().settle()
			if !c.back {
				g.Expect(w.indices()).To(HaveLen(6), "the cooldown holds")
				g.Expect(w.status().LeftInVain).To(BeNil())
				return
			}
			g.Expect(w.status().ReadyReplicas).To(Equal(int32(8)))
			g.Expect(w.status().LeftInVain).To(And(HaveField("For", v1beta1.RefTo(ranker)), HaveField("Workers", int32(2))))
			g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventLeftInVain))
			told := len(w.events)
			w.pass(time.Hour).settle()
			g.Expect(w.events).To(HaveLen(told), "it is told once, however long the verdict stands")
		})
	}
}

func TestWorkersThatLeftInVainWaitWithThoseThatLeaveForTheNextGang(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains().told(7, 6).step().pass(statuspace.SoonDelay).step()
	w.o.Verdict = capacity.Verdict{}
	w.settle().pass(time.Minute)
	next := types.NamespacedName{Namespace: "ads", Name: "next"}
	w.o.Verdict = capacity.Verdict{InVain: []types.NamespacedName{ranker}, GiveUp: []types.UID{w.worker(5).UID}, To: next}
	w.settle()
	g.Expect(w.indices()).To(HaveLen(5))
	g.Expect(w.status().LeftInVain).To(And(HaveField("For", v1beta1.RefTo(ranker)), HaveField("Workers", int32(2))))
	g.Expect(w.status().Elasticity.GaveWayTo).To(HaveValue(Equal(v1beta1.GangRef{Namespace: "ads", Name: "next"})))
	told := len(w.events)
	w.pass(time.Minute).settle()
	g.Expect(w.indices()).To(HaveLen(5), "the cooldown holds")
	g.Expect(w.events).To(HaveLen(told))
}

func TestJobThatStoppedInVainSaysSo(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: ranker, Tier: "main-traffic"}}
	w.settle()
	w.o.Verdict = capacity.Verdict{InVain: []types.NamespacedName{{Namespace: "ads", Name: "other"}, ranker}}
	w.settle()
	g.Expect(w.status().LeftInVain).To(And(HaveField("For", v1beta1.RefTo(ranker)), HaveField("Whole", true)))
	w.o.Verdict.Resume = true
	w.settle().run().settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventLeftInVain))
	m := describe.MeasureChange(&v1beta1.ElasticTrainingJobStatus{}, w.status(), nil)
	g.Expect(m.InVain).To(Equal(2))
	g.Expect(m.InVainReason).To(Equal(losses.EvictionPreempted))
}

func TestJobThatStoppedInVainSaysSoAlthoughTheClockWasSetBack(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	w.status().LeftInVain = &v1beta1.LeftInVain{
		For: v1beta1.GangRef{Namespace: "ads", Name: "other"}, Time: metav1.NewTime(w.now.Add(time.Hour)),
	}
	w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: ranker, Tier: "main-traffic"}}
	w.settle()
	w.o.Verdict = capacity.Verdict{InVain: []types.NamespacedName{ranker}}
	w.settle()
	g.Expect(w.status().LeftInVain).To(HaveField("For", v1beta1.RefTo(ranker)))
	told := w.status().LeftInVain.Time
	w.pass(time.Minute).settle()
	g.Expect(w.status().LeftInVain.Time).To(Equal(told), "it is said once")
}

func TestWhyAClaimIsNone(t *testing.T) {
	t.Run("scheduling gates", func(t *testing.T) {
		g := NewWithT(t)
		w := newSimulator(t, 2, 2).settle().change(1, func(worker *podstate.Worker) {
			worker.Gates = []string{"example.com/later"}
		}).settle()
		g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/" + v1beta1.ReasonSchedulingGated))
		g.Expect(w.status().Message).To(ContainSubstring("Worker 1 carries the scheduling gate example.com/later"))
	})
	t.Run("not placed in time", func(t *testing.T) {
		g := NewWithT(t)
		w := newSimulator(t, 2, 2).settle()
		w.o.Verdict = capacity.Verdict{
			Place: 1, Waiting: 1, Overdue: true, Since: w.now.Add(-time.Minute), From: []capacity.Holder{{Job: ranker, Workers: 3}},
		}
		w.settle()
		g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/" + v1beta1.ReasonNotPlaced))
		g.Expect(w.status().Message).To(And(ContainSubstring("within 1m0s"), ContainSubstring("ads/ranker (3)")))
		g.Expect(reasons(w.events)).To(ContainElement(v1beta1.ReasonNotPlaced))
		w.run()
		w.settle()
		g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTraining), "it was placed after all")
	})
	t.Run("back-off", func(t *testing.T) {
		g := NewWithT(t)
		w := newSimulator(t, 2, 2)
		w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{Action: v1beta1.ActionRestartJob}}}
		w.trains().change(1, func(worker *podstate.Worker) {
			worker.Phase, worker.Ready, worker.Failure.ExitCode = corev1.PodFailed, false, 1
		})
		w.step().step()
		g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
		g.Expect(condition(w, v1beta1.ConditionScheduled)).To(
			BeElementOf("False/"+v1beta1.ReasonRestarting, "False/"+v1beta1.ReasonBackOff))
		for range 6 {
			w.pass(time.Second).step()
		}
		g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/" + v1beta1.ReasonBackOff))
		g.Expect(w.status().Message).To(ContainSubstring("restart 1 of at most 10"))
		w.pass(time.Minute).settle().run().settle()
		g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTraining))
	})
}
