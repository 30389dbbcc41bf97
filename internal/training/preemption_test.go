package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

func TestPreemptedJobStopsWholeAndGoesOn(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	by := types.NamespacedName{Namespace: "ads", Name: "launch"}
	w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: by, Tier: "main-traffic"}}
	w.step()
	g.Expect(w.last.DeletePods).To(BeEmpty(), "for whom is in status first")
	g.Expect(w.status().Preemption.By).To(Equal(v1beta1.GangRef{Namespace: "ads", Name: "launch"}))
	w.restart()
	w.o.Verdict = capacity.Verdict{}
	w.settle()
	g.Expect(w.o.Workers).To(BeEmpty())
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSuspended))
	g.Expect(condition(w, v1beta1.ConditionSuspended)).To(Equal("True/Preempted"))
	g.Expect(w.status().Message).To(ContainSubstring("for ads/launch of tier main-traffic"))
	g.Expect(w.o.Job.Spec.Suspend).To(BeFalse(), "spec is the user's")
	g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventPreempted))
	g.Expect(w.status().Restarts).To(BeZero())

	w.suspend(true).settle()
	w.o.Verdict.Resume = true
	w.settle()
	g.Expect(w.o.Workers).To(BeEmpty(), "its user has suspended it meanwhile")
	w.suspend(false).settle().run().settle()
	g.Expect(w.status().Preemption).To(BeNil())
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
}

func TestPreemptedJobSavesFirst(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](60)
	w.trains()
	w.o.Verdict.Preempt = &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}
	w.settle()
	g.Expect(w.indices()).To(HaveLen(2))
	g.Expect(w.worker(0).CheckpointRequested).NotTo(BeZero())
	saved := w.worker(0).CheckpointRequested
	w.done().settle()
	g.Expect(w.o.Workers).To(BeEmpty())
	g.Expect(w.status().Preemption.LostSince.Unix()).To(Equal(saved), "what it saved is not lost")
}

func TestWhatIsSavedWithinASecondIsNotLost(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t).pass(time.Hour)
	w.o.Verdict.Preempt = &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}
	w.atOnce().done().atOnce()
	g.Expect(w.worker(0)).To(BeNil())
	g.Expect(w.status().Preemption.LostSince.Time).To(BeTemporally("==", w.now))
}

func TestWhatPreemptionAndRestartsLose(t *testing.T) {
	for name, c := range map[string]struct{ saved, since time.Duration }{
		"all that was done":          {-time.Hour, 0},
		"since the checkpoint":       {time.Minute, time.Minute},
		"a checkpoint of the future": {2 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			trained := func() (w *simulator, since time.Time) {
				w = newSimulator(t, 2, 2).trains()
				began := w.status().RunningSince.Time
				w.pass(time.Hour).change(0, func(p *podstate.Worker) { p.CheckpointDone = began.Add(c.saved).Unix() })
				return w, began.Add(c.since)
			}
			w, since := trained()
			w.fail(1, "").settle()
			g.Expect(w.status().LastFailure.LostSince.Time).To(BeTemporally("==", since))
			w, since = trained()
			w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}}
			w.settle()
			g.Expect(w.status().Preemption.LostSince.Time).To(BeTemporally("==", since))
		})
	}
}

func TestDeadlinesStandStillWhilePreempted(t *testing.T) {
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Deadlines.ActiveSeconds = ptr.To[int32](3600)
	w.trains()
	w.o.Verdict.Preempt = &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}
	w.settle().pass(5 * time.Hour).step()
	NewWithT(t).Expect(w.status().Phase).To(Equal(v1beta1.PhaseSuspended))
}
