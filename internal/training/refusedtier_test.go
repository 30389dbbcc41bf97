package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

// tiersThatNoNewJobMayHave change a job of exploratory, in profile ads, so that a new job would not get tier main-traffic.
var tiersThatNoNewJobMayHave = map[string]struct {
	change       func(*simulator)
	reason, says string
}{
	"that contradicts the template": {func(w *simulator) {
		delete(w.o.Job.Spec.Template.Spec.Containers[0].Resources.Limits, corev1.ResourceCPU)
	}, v1beta1.ReasonQoSNotMet, "Set spec.tier to another tier"},
	"that the profile does not allow": {func(w *simulator) {
		w.o.Profile = profile("exploratory", "small-traffic")
	}, v1beta1.ReasonTierNotAllowed, "ask an administrator to allow the tier"},
	"that takes approval": {func(w *simulator) {
		w.o.Profile.Spec.Tiers[1].RequiresApproval = true
	}, v1beta1.ReasonAwaitingApproval, "A user with the right to approve on profile ads"},
	"that takes approval, without webhooks": {func(w *simulator) {
		w.o.Profile.Spec.Tiers[1].RequiresApproval, w.o.WebhooksOff = true, true
	}, v1beta1.ReasonAwaitingApproval, "Ask an administrator to switch them on, or set spec.tier to another tier."},
	"that the configuration does not have": {func(w *simulator) {
		w.o.Config.Tiers[2].Name = "renamed"
	}, v1beta1.ReasonUnknownTier, "Set spec.tier to one of these"},
}

// asking has a job of exploratory, which has begun, ask for main-traffic. begin brings it to where it stands before.
func asking(t *testing.T, change func(*simulator), begin func(*simulator)) *simulator {
	t.Helper()
	w := guaranteed(newSimulator(t, 2, 2))
	w.o.Profile = profile("exploratory", "main-traffic")
	change(w)
	begin(w)
	w.o.Job.Spec.Tier = "main-traffic"
	w.o.Job.Generation++
	return w
}

// keepsTier expects that the job goes on in exploratory, and says why not in main-traffic.
func keepsTier(t *testing.T, w *simulator, reason, says string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(w.status().Tier).To(Equal("exploratory"))
	g.Expect(w.status().Attempt.Tier).To(Equal("exploratory"))
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"), "it keeps its place")
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/" + reason))
	g.Expect(pending(w)).To(And(HavePrefix("The job keeps tier exploratory, because it may not have the tier of its spec, "+
		"main-traffic. "), ContainSubstring(says)))
}

func TestWaitingJobKeepsItsTierUntilItMayHaveAnother(t *testing.T) {
	for name, c := range tiersThatNoNewJobMayHave {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := asking(t, c.change, func(w *simulator) { w.settle() }).settle()
			keepsTier(t, w, c.reason, c.says)
			g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
			g.Expect(w.events[len(w.events)-1].Message).To(ContainSubstring(c.says), "it is told once")
			w.o.Job.Spec.MinReplicas = 1
			w.settle()
			keepsTier(t, w, c.reason, c.says)
			g.Expect(w.status().Attempt.MinReplicas).To(Equal(int32(1)), "another range takes effect without the tier")

			w.o.Job.Spec.Tier = ""
			w.settle()
			g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("absent"))
			g.Expect(w.status().Tier).To(Equal("exploratory"), "no tier is the one that it began with")
		})
	}
}

func TestRestartKeepsTheTierUntilTheJobMayHaveAnother(t *testing.T) {
	for name, c := range tiersThatNoNewJobMayHave {
		for how, restart := range map[string]func(*simulator){
			"with another range": func(w *simulator) {
				w.o.Job.Spec.Elasticity.RangeUpdate = v1beta1.RangeUpdateRestart
				w.scale(4)
			},
			"after a failure": func(w *simulator) {
				w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{Action: v1beta1.ActionRestartJob}}}
				w.fail(1, "out of luck")
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				w := asking(t, c.change, func(w *simulator) { w.trains() })
				restart(w)
				w.settle()
				keepsTier(t, w, c.reason, c.says)
				NewWithT(t).Expect(w.status().Attempt.Number).To(Equal(int32(2)))
				NewWithT(t).Expect(w.last.Blueprint.CoreGroup().PriorityClass).To(Equal("tideline-exploratory"))
			})
		}
	}
}

func TestStoppedJobBeginsInNoTierThatItMayNotHave(t *testing.T) {
	for name, c := range tiersThatNoNewJobMayHave {
		for how, stop := range map[string]func(*simulator){
			"suspended": func(w *simulator) { w.suspend(true).settle() },
			"preempted": func(w *simulator) {
				w.o.Verdict = capacity.Verdict{Preempt: &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}}
				w.settle()
				w.o.Verdict = capacity.Verdict{}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				g := NewWithT(t)
				w := asking(t, c.change, func(w *simulator) { stop(w.trains()) }).settle()
				g.Expect(w.status().Tier).To(Equal("exploratory"), "others compare it by what it may have")
				w.o.Verdict.Resume = true
				w.suspend(false).settle()
				g.Expect(w.status().Reason).To(Equal(c.reason))
				g.Expect(w.o.Workers).To(BeEmpty())
				w.o.Job.Spec.Tier = ""
				w.settle().run().settle()
				g.Expect(w.status().Attempt.Tier).To(Equal("exploratory"), "it goes on as it was")
			})
		}
	}
}

func TestRaisedTierFollowsItsApproval(t *testing.T) {
	g := NewWithT(t)
	w := asking(t, tiersThatNoNewJobMayHave["that takes approval"].change, func(w *simulator) { w.settle() }).settle()
	w.approve(time.Hour)
	w.settle()
	g.Expect(w.status().Tier).To(Equal("main-traffic"), "at once, while nothing is placed")
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("absent"))
	w.trains().pass(2 * time.Hour)
	w.suspend(true).settle()
	w.suspend(false).settle()
	g.Expect(w.status().Attempt.Tier).To(Equal("main-traffic"), "who has begun in a tier is not asked again")
}

func TestApprovalExpiresBeforeTheNextAttempt(t *testing.T) {
	g := NewWithT(t)
	w := asking(t, tiersThatNoNewJobMayHave["that takes approval"].change, func(w *simulator) { w.trains() })
	w.approve(time.Hour)
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/NextAttempt"))
	g.Expect(Plan(w.o, w.now).RequeueAfter).To(BeNumerically("<=", time.Hour), "it is looked at again then")
	w.pass(time.Hour).settle()
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/AwaitingApproval"))
}

func TestTierThatTheProfileNoLongerAllowsIsKept(t *testing.T) {
	g := NewWithT(t)
	w := guaranteed(newSimulator(t, 2, 2))
	w.o.Job.Spec.Tier = "main-traffic"
	w.trains()
	w.o.Profile = profile("exploratory")
	w.suspend(true).settle()
	w.suspend(false).settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.status().Tier).To(Equal("main-traffic"), "a job keeps what it began with")
}

func TestProcessesThatCannotBeCountedAreNotTakenOver(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	claiming(&w.o, "tpu.example.com", 8)
	w.o.Job.Spec.Framework.NprocPerNode = ptr.To[int32](8)
	w.settle()
	w.o.Job.Spec.Framework.NprocPerNode = nil
	w.settle()
	g.Expect(w.status().Attempt.NprocPerNode).To(Equal(int32(8)), "by default it would be 1 on 8 devices")
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/DevicesNotCounted"))
	g.Expect(pending(w)).To(HavePrefix("The job keeps framework.nprocPerNode 8. How many processes a worker runs is unknown"))
}

// A template of claims cannot be changed, but deleted and created anew.
func TestClaimsThatWereReplacedWhileSuspendedAreChecked(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Profile = capped()
	claiming(&w.o, "gpu.nvidia.com", 8)
	w.trains().suspend(true).settle()
	was := w.o.Claims
	claiming(&w.o, "gpu.nvidia.com", 0)
	w.suspend(false).settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/DevicesNotCounted"))
	g.Expect(w.o.Workers).To(BeEmpty())
	w.o.Claims = was
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)), "with what it began with it goes on")
}
