package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/progress"
)

// takes has the training say that a step of 1,000 takes so long, as of enough steps with its present workers.
func (w *simulator) takes(step time.Duration) *simulator {
	w.o.Job.Spec.Progress = &v1beta1.JobProgress{}
	w.o.Trained = &progress.Figures{Step: 10, Total: 1000, Checkpoint: -1, StepTime: step, Settled: true}
	return w
}

func (w *simulator) speeds() map[int32]string {
	all := map[int32]string{}
	if e := w.status().Elasticity; e != nil {
		for _, s := range e.Speeds {
			all[s.Workers] = s.PercentPerHour
		}
	}
	return all
}

func TestSpeedIsMeasuredBySize(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0).takes(12 * time.Second).settle()
	g.Expect(w.speeds()).To(Equal(map[int32]string{2: "30"}), "300 steps an hour are 30 % of 1,000")
	before := w.status().DeepCopy()
	d := Plan(w.takes(11*time.Second).o, w.now.Add(time.Hour))
	g.Expect(d.Status.Elasticity).To(Equal(before.Elasticity), "within a tenth it is the same")
	w.takes(6 * time.Second).pass(time.Minute).settle()
	g.Expect(w.speeds()).To(Equal(map[int32]string{2: "30"}), "it was measured just now")
	w.pass(10 * time.Minute).settle()
	g.Expect(w.speeds()).To(Equal(map[int32]string{2: "60"}))
	w.o.Verdict.SurplusLimit = 2
	w.step().run(2).step().takes(4 * time.Second).step()
	g.Expect(w.speeds()).To(HaveLen(1), "one is still to come")
	w.o.Trained.Settled = false
	w.run().settle()
	g.Expect(w.speeds()).To(HaveLen(1), "too few steps with these workers")
	w.takes(4 * time.Second).settle()
	g.Expect(w.speeds()).To(Equal(map[int32]string{2: "60", 4: "90"}))
	w.o.Job.Spec.Suspend, w.o.Trained = true, nil
	w.settle()
	g.Expect(w.speeds()).To(HaveLen(2), "what was measured holds for the next attempt")
}

func TestWithoutATotalNothingIsLearnt(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0).takes(12 * time.Second)
	w.o.Trained.Total = 0
	g.Expect(w.settle().speeds()).To(BeEmpty(), "a step may be of another size with other workers")
}

func TestAJobBeginsWithWhatItsTaskHasLearnt(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 6)
	w.o.Job.Spec.Progress = &v1beta1.JobProgress{}
	w.o.TaskSpeeds = []v1beta1.MeasuredSpeed{
		{Workers: 2, PercentPerHour: "10", Time: metav1.NewTime(w.now.Add(-24 * time.Hour))},
		{Workers: 6, PercentPerHour: "12", Time: metav1.NewTime(w.now.Add(-24 * time.Hour))},
	}
	w.settle()
	g.Expect(w.speeds()).To(Equal(map[int32]string{2: "10", 6: "12"}))
}

func TestGrowthStopsWhereOneMoreGainsTooLittle(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 6)
	w.o.Job.Spec.Progress = &v1beta1.JobProgress{}
	w.o.TaskSpeeds = []v1beta1.MeasuredSpeed{{Workers: 2, PercentPerHour: "10"}, {Workers: 8, PercentPerHour: "16"}}
	w.step().step().run().settle().pass(time.Minute).settle()
	g.Expect(w.indices()).To(HaveLen(7), "2 / 10 and 8 / 16 are 0.1 and 0.05 for each worker: the eighth adds 9 %%")
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/" + v1beta1.ReasonGainsTooLittle))
	g.Expect(w.status().Message).To(Equal("7 of 8 workers ready. One more would add 9 % of what a worker of the core adds to the " +
		"speed, as measured with other numbers of workers (status.elasticity.speeds); the least is 10 % " +
		"(elasticity.growth.leastGainPercent)."))
	w.o.Job.Spec.Elasticity.Growth.LeastGainPercent = ptr.To[int32](0)
	w.pass(time.Hour).settle().run().settle()
	g.Expect(w.indices()).To(HaveLen(8))
	w.o.Job.Spec.Elasticity.Growth.LeastGainPercent = ptr.To[int32](20)
	w.settle()
	g.Expect(w.indices()).To(HaveLen(8), "what trains is not stopped for it")
}

func TestAStepThatGainsLessIsWorthLess(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfPays, 6)
	w.o.Job.Spec.Progress = &v1beta1.JobProgress{}
	w.o.Job.Spec.Elasticity.Growth.LeastGainPercent = ptr.To[int32](0)
	w.o.TaskSpeeds = []v1beta1.MeasuredSpeed{{Workers: 2, PercentPerHour: "10"}, {Workers: 8, PercentPerHour: "9"}}
	w.step().step()
	g.Expect(w.indices()).To(HaveLen(2), "more workers made it slower")
	g.Expect(w.settle().last.Status.Reason).To(Equal(v1beta1.ReasonDoesNotPay))
}

func TestSpeedsAreWrittenWithoutHurry(t *testing.T) {
	g := NewWithT(t)
	w := growing(t, v1beta1.GrowthOnlyIfFits, 0)
	before := w.status().DeepCopy()
	d := Plan(w.takes(12*time.Second).o, w.now)
	g.Expect(PaceOf(before, &d.Status)).To(BeNumerically("<=", statuspace.Calm))
}
