package training

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

// Each changes a job so that a rule which new jobs must meet refuses it.
var changesThatNoNewJobMayHave = map[string]struct {
	change func(*simulator)
	reason string
}{
	"a tier whose QoS its template contradicts": {func(w *simulator) {
		w.o.Job.Spec.Tier = "main-traffic"
	}, v1beta1.ReasonQoSNotMet},
	"a template that contradicts its tier": {func(w *simulator) {
		w.o.Job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	}, v1beta1.ReasonQoSNotMet},
	"a longer grace period of its pods": {func(w *simulator) {
		w.o.Job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](86400)
	}, v1beta1.ReasonLimitExceeded},
	"a longer grace period of its checkpoint": {func(w *simulator) {
		w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](86400)
	}, v1beta1.ReasonLimitExceeded},
	"a longer protection of its surplus": {func(w *simulator) {
		w.o.Job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To[int32](86400)
	}, v1beta1.ReasonLimitExceeded},
	"devices that cannot be counted": {func(w *simulator) {
		claiming(&w.o, "tpu.example.com", 8)
	}, v1beta1.ReasonDevicesNotCounted},
	"devices that cannot be counted, by default": {func(w *simulator) {
		w.o.Job.Spec.Framework.NprocPerNode = nil
	}, v1beta1.ReasonDevicesNotCounted},
}

// begun is a job that has trained, and that a new job's rules would refuse in one of these ways after a change.
func begun(t *testing.T, name string) *simulator {
	t.Helper()
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Tier = "exploratory"
	if name == "a template that contradicts its tier" {
		w.o.Job.Spec.Tier = "small-traffic"
		w.o.Job.Spec.Template.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("2Gi")
	}
	if name == "devices that cannot be counted, by default" {
		claiming(&w.o, "tpu.example.com", 8)
		w.o.Job.Spec.Framework.NprocPerNode = ptr.To[int32](8)
	}
	return w.trains()
}

func TestJobThatWasChangedWhileSuspendedIsCheckedAgain(t *testing.T) {
	for name, c := range changesThatNoNewJobMayHave {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := begun(t, name).suspend(true).settle()
			was := w.o.Job.Spec.DeepCopy()
			claims := w.o.Claims
			c.change(w)
			w.suspend(false).settle()
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/" + c.reason))
			g.Expect(w.o.Workers).To(BeEmpty(), "as a new one it does not begin")
			g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
			w.restart().settle()
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/"+c.reason), "nor later")

			w.o.Job.Spec, w.o.Claims = *was, claims
			w.suspend(false).settle()
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"), "as it was before it goes on")
			g.Expect(w.indices()).To(Equal([]int32{0, 1}))
		})
	}
}

func TestJobThatWasChangedWhilePreemptedIsCheckedAgain(t *testing.T) {
	for name, c := range changesThatNoNewJobMayHave {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := begun(t, name)
			w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}}
			w.settle()
			w.o.Verdict = capacity.Verdict{}
			w.suspend(true).settle()
			c.change(w)
			w.suspend(false).settle()
			w.o.Verdict.Resume = true
			w.settle()
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/" + c.reason))
			g.Expect(w.o.Workers).To(BeEmpty(), "as a new one it does not begin")
		})
	}
}

func TestPreemptedJobOutlivesTighterRules(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
	w.trains()
	w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}}
	w.settle()
	w.o.Config.Limits.MaxGraceSeconds = 30
	w.o.Queue.State = "Closed"
	w.o.Verdict = capacity.Verdict{Resume: true}
	w.settle()
	g.Expect(w.status().Preemption).To(BeNil(), "nothing but its queue keeps it")
	w.o.Queue.State = "Open"
	w.settle().run().settle()
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
}

func TestRunningJobOutlivesItsChanges(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.o.Job.Spec.Tier = "main-traffic"
	w.o.Job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To[int32](86400)
	w.o.Job.Generation++
	w.settle()
	w.deletePod(1).settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
	g.Expect(w.indices()).To(Equal([]int32{0, 1}), "it does not stop for what waits for its next attempt")
}

// Who upgrades has jobs that are stopped, with the hash that the release before wrote: they must still be what was checked.
func TestJobsWithoutRolesHaveTheHashOfTheReleaseBefore(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	g.Expect(w.status().Attempt.Checked).To(Equal("a00bc46e64056175"))
	w = newSimulator(t, 3, 3)
	w.o.Job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
	g.Expect(w.trains().status().Attempt.Checked).NotTo(Equal("a00bc46e64056175"), "roles are checked too")
}
