package training

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// kubectl scale and an autoscaler write spec.replicas.
func TestWorkersFollowTheTarget(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Replicas = v1alpha1.NoTarget
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
	g.Expect(condition(w, v1alpha1.ConditionFullSize)).To(Equal("True/AtMaximum"), "four are all that are wanted")
	scale(6)
	g.Expect(w.status().Summary).To(Equal("6/6 (2..8, target 6)"))
	scale(1)
	g.Expect(w.status().Summary).To(Equal("2/2 (2..8, target 2)"), "the core alone, because no job trains with fewer")
	scale(100)
	g.Expect(w.status().Summary).To(Equal("8/8 (2..8)"), "the maximum is the user's")
	g.Expect(w.status().Attempt.Number).To(Equal(attempt), "no agent had to restart")
}

func TestTierFollows(t *testing.T) {
	t.Run("at once, while nothing is placed", func(t *testing.T) {
		g := NewWithT(t)
		w := newSimulator(t, 2, 4)
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
		w := newSimulator(t, 2, 4).trains()
		w.o.Job.Spec.Tier = "main-traffic"
		w.settle()
		g.Expect(w.status().Tier).To(Equal("exploratory"), "nothing restarts for it")
		g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
		w.suspend(true).settle()
		w.suspend(false).settle()
		g.Expect(w.status().Tier).To(Equal("main-traffic"))
	})
}

// Pods that are created later in the attempt must agree with those that run.
func TestProcessesFollowTheNextAttempt(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	two := int32(2)
	w.o.Job.Spec.Framework.NprocPerNode = &two
	w.settle()
	g.Expect(w.status().Attempt.NprocPerNode).To(BeZero())
	w.suspend(true).settle()
	w.suspend(false).settle()
	g.Expect(w.status().Attempt.NprocPerNode).To(Equal(two))
}
