package training

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// kubectl scale and an autoscaler write spec.replicas.
func TestWorkersFollowTheTarget(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Replicas = v1beta1.NoTarget
	w.trains()
	g.Expect(w.status().Summary).To(Equal("8/8 (2..8)"), "without a target it grows to its maximum")
	g.Expect(w.status().Targeted).To(BeFalse())
	attempt := w.status().Attempt.Number

	scale := func(n int32) {
		w.o.Job.Generation++
		w.o.Job.Spec.Replicas = n
		w.settle()
		w.run().settle()
	}
	scale(4)
	g.Expect(w.status().Summary).To(Equal("4/4 (2..8, target 4)"))
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("True/AtMaximum"), "four are all that are wanted")
	scale(6)
	g.Expect(w.status().Summary).To(Equal("6/6 (2..8, target 6)"))
	scale(1)
	g.Expect(w.status().Summary).To(Equal("2/2 (2..8, target 2)"), "the core alone, because no job trains with fewer")
	scale(100)
	g.Expect(w.status().Summary).To(Equal("8/8 (2..8)"), "the maximum is the user's")
	g.Expect(w.status().Attempt.Number).To(Equal(attempt), "no agent had to restart")
}

func TestWhyWorkersWereRemoved(t *testing.T) {
	const none = v1beta1.NoTarget
	for name, c := range map[string]struct {
		before, replicas, maximum int32
		says                      string
	}{
		"a first target":             {none, 4, 8, "workers 4 to 7 because replicas was lowered to 4; 4 workers"},
		"a lower target":             {6, 4, 8, "workers 4 and 5 because replicas was lowered to 4; 4 workers"},
		"a target below the core":    {6, 1, 8, "workers 2 to 5 because replicas was lowered to 1; 2 workers"},
		"a lower maximum":            {none, none, 4, "workers 4 to 7 because maxReplicas was lowered to 4; 4 workers"},
		"a maximum below the target": {6, 6, 4, "workers 4 and 5 because maxReplicas was lowered to 4; 4 workers"},
		"both, the target less":      {none, 3, 6, "workers 3 to 7 because replicas was lowered to 3; 3 workers"},
		"both to the same":           {6, 4, 4, "workers 4 and 5 because replicas or maxReplicas was lowered to 4; 4 workers"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 8)
			w.o.Job.Spec.Replicas = c.before
			w.trains()
			w.o.Job.Spec.Replicas = c.replicas
			w.scale(c.maximum).settle()
			g.Expect(w.events[len(w.events)-1].Message).To(Equal("Removed " + c.says + " ready."))
		})
	}
}

func TestWhyWorkersWereRemovedByAStep(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 7).trains()
	w.o.Job.Spec.Elasticity.Step = 2
	w.settle()
	g.Expect(w.status().Summary).To(HavePrefix("6/6"))
	g.Expect(w.events[len(w.events)-1].Message).To(
		Equal("Removed worker 6 because elasticity.step is 2, and they make no whole step; 6 workers ready."))
}

func TestTierFollows(t *testing.T) {
	t.Run("at once, while nothing is placed", func(t *testing.T) {
		g := NewWithT(t)
		w := guaranteed(newSimulator(t, 2, 4))
		w.settle()
		w.o.Job.Spec.Tier = "main-traffic"
		w.settle()
		g.Expect(w.status().Tier).To(Equal("main-traffic"))
		g.Expect(w.status().Attempt.Number).To(Equal(int32(2)), "pods carry the priority of their tier")
		w.trains()
		g.Expect(w.last.Blueprint.CoreGroup().PriorityClass).To(Equal("tideline-main-traffic"))
	})
	t.Run("with the next attempt, once workers run", func(t *testing.T) {
		g := NewWithT(t)
		w := guaranteed(newSimulator(t, 2, 4)).trains()
		w.o.Job.Spec.Tier = "main-traffic"
		w.settle()
		g.Expect(w.status().Tier).To(Equal("exploratory"), "nothing restarts for it")
		g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
		g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/NextAttempt"))
		const waits = "The workers were started in tier exploratory and keep it. The tier of the spec, main-traffic, takes effect " +
			"after a restart: suspend and resume the job."
		g.Expect(pending(w)).To(Equal(waits))
		g.Expect(w.events[len(w.events)-1]).To(And(HaveField("Reason", v1beta1.ConditionRangePending), HaveField("Message", waits)))
		w.scale(6).settle()
		g.Expect(pending(w)).To(And(ContainSubstring("The range of the spec, 2..6, takes effect"), HaveSuffix(" "+waits)), "both")
		w.scale(4).settle()
		g.Expect(pending(w)).To(Equal(waits))
		w.suspend(true).settle()
		w.suspend(false).settle()
		g.Expect(w.status().Tier).To(Equal("main-traffic"))
		g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("absent"), "it waits no more")
	})
	t.Run("not at all, if it is changed back", func(t *testing.T) {
		g := NewWithT(t)
		w := guaranteed(newSimulator(t, 2, 4)).trains()
		for _, back := range []string{"exploratory", ""} {
			w.o.Job.Spec.Tier = "main-traffic"
			w.settle()
			g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/NextAttempt"))
			w.o.Job.Spec.Tier = back
			w.settle()
			g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("absent"), "tier %q", back)
		}
	})
}

// guaranteed gives workers the resources that a tier which is Guaranteed wants.
func guaranteed(w *simulator) *simulator {
	asked := w.o.Job.Spec.Template.Spec.Containers[0].Resources.Limits
	asked[corev1.ResourceCPU], asked[corev1.ResourceMemory] = resource.MustParse("1"), resource.MustParse("1Gi")
	return w
}

// pending is what condition RangePending says.
func pending(w *simulator) string {
	return meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionRangePending).Message
}

// Pods that are created later in the attempt must agree with those that run.
func TestProcessesFollowTheNextAttempt(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	two := int32(2)
	w.o.Job.Spec.Framework.NprocPerNode = &two
	w.settle()
	g.Expect(w.status().Attempt.NprocPerNode).To(BeZero())
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/NextAttempt"))
	g.Expect(pending(w)).To(Equal("The workers were started with the default of framework.nprocPerNode and keep that. The spec's " +
		"framework.nprocPerNode 2 takes effect after a restart: suspend and resume the job."))
	w.suspend(true).settle()
	w.suspend(false).settle()
	g.Expect(w.status().Attempt.NprocPerNode).To(Equal(two))
}
