package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/progress"
)

// reports has the job follow its progress, with a policy for hangs, and be at a step.
func (w *simulator) reports(policy v1beta1.StallPolicy, step int64) *simulator {
	w.o.Job.Spec.Progress = &v1beta1.JobProgress{Stall: v1beta1.Stall{Factor: 3, Policy: policy}}
	w.o.Trained = &progress.Figures{Step: step, Total: 1000, Checkpoint: -1, StepTime: 2 * time.Second}
	return w
}

func (w *simulator) hang() *simulator {
	w.o.Trained.Stall = &progress.Stall{Since: w.now.Add(-time.Minute), Usual: 2 * time.Second, Limit: 44 * time.Second}
	return w
}

func (w *simulator) stalled() string {
	if c := meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionStalled); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

func TestProgressIsWrittenWhenAWordOfItChanges(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().reports(v1beta1.StallTell, 420).pass(time.Minute).settle()
	g.Expect(w.status().Training).To(HaveValue(And(HaveField("Progress", "42%"), HaveField("StepsPerSecond", "0.5"),
		HaveField("TimeLeft", "20m"))))
	before := w.status().DeepCopy()
	w.o.Trained.Step = 421
	d := Plan(w.o, w.now)
	g.Expect(PaceOf(before, &d.Status)).To(Equal(statuspace.Never), "a step that changes no word")
	w.o.Trained.Step = 430
	d = Plan(w.o, w.now)
	g.Expect(PaceOf(before, &d.Status)).To(Equal(statuspace.Lazy), "once a minute is soon enough")
	w.o.Job.Spec.Suspend, w.o.Trained = true, nil
	w.settle()
	g.Expect(w.status().Training).To(HaveValue(And(HaveField("Progress", "42%"), HaveField("StepsPerSecond", ""),
		HaveField("TimeLeft", ""))), "a stopped training has no pace")
	w.o.Job.Spec.Progress = nil
	w.o.Job.Spec.Suspend = false
	w.settle().run().settle()
	g.Expect(w.status().Training).To(BeNil())
}

func TestAHangIsToldUntilTheNextStep(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().reports(v1beta1.StallTell, 420).settle()
	w.change(1, func(p *podstate.Worker) { p.Node, p.Scheduled, p.Ready = "node-7", true, false })
	attempt := w.status().Attempt.Number
	w.hang().settle()
	g.Expect(w.stalled()).To(And(HavePrefix("NoSteps: No step since "), ContainSubstring("after step 420: usually one takes 2s"),
		ContainSubstring("Worker 1 on node node-7 is not ready.")))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonNoSteps))
	g.Expect(meta.IsStatusConditionTrue(w.status().Conditions, v1beta1.ConditionReady)).To(BeTrue(), "its core runs")
	g.Expect(w.events).To(ContainElement(HaveField("Reason", v1beta1.ReasonNoSteps)))
	g.Expect(w.status().Attempt.Number).To(Equal(attempt), "it is only told")

	w.o.Trained = nil
	w.settle()
	g.Expect(w.stalled()).To(HavePrefix("NoSteps"), "an operator that has heard nothing yet does not take it back")
	w.reports(v1beta1.StallTell, 420).settle()
	g.Expect(w.stalled()).To(HavePrefix("NoSteps"), "the last step is no new one")
	w.reports(v1beta1.StallTell, 421).settle()
	g.Expect(w.stalled()).To(BeEmpty())
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
}

// The step that ends a hang changes words of the figures more often than not: the long step is a slower pace.
func TestAHangEndsWithAStepThatChangesWhatIsShown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().reports(v1beta1.StallTell, 420).settle().hang().settle()
	g.Expect(w.stalled()).To(HavePrefix("NoSteps"))
	w.reports(v1beta1.StallTell, 440).o.Trained.StepTime = 3 * time.Second
	w.settle()
	g.Expect(w.stalled()).To(BeEmpty())
	g.Expect(w.status().Training).To(HaveValue(HaveField("Progress", "44%")))
}

// Surplus that joins keeps all from steps, minutes after it became ready perhaps. That is no hang to act on.
func TestAHangIsOnlyToldWhileSurplusJoins(t *testing.T) {
	for _, policy := range []v1beta1.StallPolicy{v1beta1.StallRestart, v1beta1.StallFail} {
		t.Run(string(policy), func(t *testing.T) {
			g := NewWithT(t)
			w := growing(t, v1beta1.GrowthOnlyIfFits, 2).reports(policy, 420)
			w.settle().placed(2, 3).pass(2 * joinTime).run().settle().pass(time.Minute).hang().settle()
			attempt := w.status().Attempt.Number
			g.Expect(w.indices()).To(HaveLen(4))
			g.Expect(w.stalled()).To(HavePrefix("NoSteps"), "it is told")
			g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
			g.Expect(w.last.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", joinTime)))
			w.pass(joinTime).step().step()
			if policy == v1beta1.StallFail {
				g.Expect(w.settle().status().Phase).To(Equal(v1beta1.PhaseFailed))
			} else {
				g.Expect(w.status().Attempt.Number).To(Equal(attempt+1), "it hangs for longer than that takes")
			}
		})
	}
}

func TestAHangNamesWorkersOnDoubtedNodes(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().reports(v1beta1.StallTell, 420).settle()
	node := w.doubt(1)
	w.hang().settle()
	g.Expect(w.stalled()).To(And(ContainSubstring("Worker 1 is on node "+node+", where more workers failed than chance explains."),
		Not(ContainSubstring("All workers look alive"))))
	g.Expect(w.status().AvoidedNodes).To(BeEmpty(), "a hang is no failure of that worker")
}

func TestAHangRestartsTheTrainingWithinItsBudget(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().reports(v1beta1.StallRestart, 420)
	w.o.Job.Spec.Restarts.Max = ptr.To[int32](1)
	w.settle().hang().step()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
	g.Expect(w.status().LastFailure).To(HaveValue(HaveField("Reason", v1beta1.ReasonNoSteps)))
	g.Expect(w.last.Losses).To(ContainElement(HaveField("Cause", losses.RestartHang)))
	g.Expect(w.events).To(ContainElement(And(HaveField("Reason", v1beta1.EventRestarted),
		HaveField("Message", ContainSubstring("No step since")))))

	w.o.Trained = nil
	w.settle().pass(time.Minute).settle().run().settle()
	g.Expect(w.stalled()).To(BeEmpty())
	w.reports(v1beta1.StallRestart, 400).settle().hang().step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTooManyRestarts), "it hung again before it came further")
}

func TestAHangFailsTheJob(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().reports(v1beta1.StallFail, 420).settle().hang().settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonNoSteps))
}
