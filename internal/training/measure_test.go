package training

import (
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
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// measured adds up what the writes of a job's status counted.
func (w *simulator) measured() describe.Measures {
	sum := describe.Measures{Evictions: map[string]int{}, Restarts: map[string]int{}}
	for _, m := range w.measures {
		if m.Wait != nil {
			sum.Wait = m.Wait
		}
		if m.Placement != nil {
			sum.Placement = m.Placement
		}
		sum.Resizes = append(sum.Resizes, m.Resizes...)
		for reason, n := range m.Evictions {
			sum.Evictions[reason] += n
		}
		for cause, n := range m.Restarts {
			sum.Restarts[cause] += n
		}
	}
	return sum
}

// Each case begins with a job of 2..4 workers that all run.
func TestWhatIsMeasured(t *testing.T) {
	type counts map[string]int
	for name, c := range map[string]struct {
		happens             func(w *simulator)
		resizes             []string
		evictions, restarts counts
	}{
		"at rest": {happens: func(w *simulator) { w.pass(time.Hour).settle() }},
		"Volcano takes two workers, which come back": {
			happens: func(w *simulator) {
				w.evict(2, 3).settle().pass(301 * time.Second).settle().run().settle()
			},
			resizes: []string{describe.ResizeEviction, describe.ResizeGrowth}, evictions: counts{losses.EvictionScheduler: 2},
		},
		"the operator tells one to leave": {
			happens: func(w *simulator) { w.told(3).settle() },
			resizes: []string{describe.ResizeTold}, evictions: counts{losses.EvictionTold: 1},
		},
		"one leaves while the operator is down": {
			happens: func(w *simulator) { w.deletePod(3).restart().settle() },
			resizes: []string{describe.ResizeEviction}, evictions: counts{losses.EvictionUnseen: 1},
		},
		"a node of the surplus is drained": {
			happens: func(w *simulator) {
				w.change(3, func(p *podstate.Worker) { p.Disruption = "EvictionByEvictionAPI" }).end(corev1.PodFailed, 3).settle()
			},
			resizes: []string{describe.ResizeEviction}, evictions: counts{losses.EvictionDrained: 1},
		},
		"a node of the core is lost": {
			happens: func(w *simulator) {
				w.change(1, func(p *podstate.Worker) { p.Disruption = "DeletionByTaintManager" }).remove(w.worker(1).UID)
				w.settle().run().settle()
			},
			evictions: counts{losses.EvictionNodeLost: 1},
		},
		"a gang without torchrun starts anew when one is evicted": {
			happens: func(w *simulator) {
				w.o.Job.Spec.Framework.Type = v1beta1.FrameworkCustom
				w.evict(3).settle().run().settle().run().settle()
			},
			resizes: []string{describe.ResizeGrowth}, evictions: counts{losses.EvictionScheduler: 1},
		},
		"the job is stopped for another": {
			happens: func(w *simulator) {
				w.o.Verdict.Preempt = &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}
				w.evict(3).settle()
			},
			evictions: counts{losses.EvictionScheduler: 1, losses.EvictionPreempted: 3},
		},
		"its user suspends it": {happens: func(w *simulator) { w.suspend(true).settle() }},
		"maxReplicas is lowered and raised": {
			happens: func(w *simulator) { w.scale(3).settle().scale(4).settle().run().settle() },
			resizes: []string{describe.ResizeScale, describe.ResizeGrowth},
		},
		"a worker fails, one runs out of memory, one is deleted": {
			happens: func(w *simulator) {
				w.fail(1, "once").recover()
				w.change(2, func(p *podstate.Worker) {
					p.Phase, p.Failure = corev1.PodFailed, podstate.Failure{ExitCode: 137, Reason: "OOMKilled"}
				}).settle()
				w.recover().deletePod(3).settle().run().settle()
			},
			restarts: counts{losses.RestartError: 1, losses.RestartOOM: 1, losses.RestartDeleted: 1},
		},
		"containers restart in place": {
			happens:  func(w *simulator) { w.restartContainers("once", 1).settle() },
			restarts: counts{losses.RestartError: 1},
		},
		"it succeeds": {happens: func(w *simulator) {
			w.change(0, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).pass(301 * time.Second).settle()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains()
			w.measures = nil
			c.happens(w)
			got := w.measured()
			g.Expect(got.Resizes).To(Equal(c.resizes))
			g.Expect(counts(got.Evictions)).To(Equal(nonNil(c.evictions)), "evictions")
			g.Expect(counts(got.Restarts)).To(Equal(nonNil(c.restarts)), "restarts")
			g.Expect(got.Wait).To(BeNil(), "a job waits once")
			for _, resize := range got.Resizes {
				g.Expect(describe.ResizeCauses()).To(ContainElement(resize))
			}
		})
	}
}

func nonNil[M ~map[string]int](m M) M {
	if m == nil {
		return M{}
	}
	return m
}

func TestWaitAndPlacementAreMeasured(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).settle()
	g.Expect(w.measured().Wait).To(BeNil())
	begun := w.status().Attempt.StartTime.Time
	w.pass(time.Minute)
	for i := range w.o.Workers {
		w.o.Workers[i].Scheduled = true
	}
	w.settle()
	placed := meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionScheduled).LastTransitionTime.Time
	g.Expect(placed.Sub(begun)).To(BeNumerically(">=", time.Minute))
	g.Expect(w.measured().Placement).To(BeNil(), "it is counted with those that ran")
	w.pass(time.Hour).run().settle()
	got := w.measured()
	g.Expect(*got.Placement).To(Equal(placed.Sub(begun)), "what comes after, such as the image, is not the scheduler's")
	g.Expect(*got.Wait).To(Equal(time.Duration(*w.status().WaitSeconds) * time.Second))
	g.Expect(*got.Wait).To(BeNumerically(">", *got.Placement+time.Hour))

	w.measures = nil
	w.suspend(true).settle().suspend(false).settle().run().settle()
	g.Expect(w.measured().Wait).To(BeNil())
	g.Expect(w.measured().Placement).NotTo(BeNil(), "the second attempt was placed too")
	g.Expect(*w.measured().Placement).To(BeNumerically("<", time.Minute))
}

func TestHeldGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(w *simulator)
		core, surplus int64
	}{
		"all run":              {func(*simulator) {}, 2, 2},
		"surplus was evicted":  {func(w *simulator) { w.evict(3).settle() }, 2, 1},
		"core was lost":        {func(w *simulator) { w.deletePod(1).settle() }, 1, 2},
		"a master without any": {func(w *simulator) { cpuMaster(w).settle() }, 1, 2},
		"suspended":            {func(w *simulator) { w.suspend(true).settle() }, 0, 0},
		"stopping":             {func(w *simulator) { w.suspend(true).step() }, 2, 2},
		"being deleted":        {func(w *simulator) { w.o.Job.DeletionTimestamp = &metav1.Time{Time: w.now} }, 0, 0},
		"not looked at":        {func(w *simulator) { w.o.Job.Status = v1beta1.ElasticTrainingJobStatus{} }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains()
			c.change(w)
			core, surplus := describe.HeldGPUs(w.o.Job, w.status(), 0)
			g.Expect([]int64{core, surplus}).To(Equal([]int64{c.core, c.surplus}))
		})
	}
}

// cpuMaster takes its GPU from worker 0.
func cpuMaster(w *simulator) *simulator {
	w.o.Job.Spec.Master = &v1beta1.Master{Resources: &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}}
	return w
}
