package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/quota/approval"
)

// newGuarded has a job of main-traffic, in a profile where that takes approval.
func newGuarded(t *testing.T) *simulator {
	t.Helper()
	w := newSimulator(t, 2, 2)
	w.o.Profile = profile("exploratory", "main-traffic")
	w.o.Profile.Spec.Tiers[1].RequiresApproval = true
	w.o.Job.Spec.Tier = "main-traffic"
	return guaranteed(w)
}

// approve has bob approve the job for a time.
func (w *simulator) approve(d time.Duration) {
	w.o.Job.Annotations = map[string]string{v1beta1.AnnotationApproval: approval.Approval{
		By: "bob@example.com", UID: w.o.Job.UID, Profile: "ads", Tier: "main-traffic", At: metav1.NewTime(w.now),
		Until: metav1.NewTime(w.now.Add(d)),
	}.String()}
}

func TestJobWaitsForApproval(t *testing.T) {
	g := NewWithT(t)
	w := newGuarded(t).settle()
	g.Expect(w.status().Attempt).To(BeNil(), "nothing begins")
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhasePending))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval))
	g.Expect(w.status().Message).To(ContainSubstring("tideline approve ads/ctr --for 72h, or kubectl annotate etj ctr -n ads "))
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
	g.Expect(condition(w, v1beta1.ConditionReconciling)).To(Equal("True/AwaitingApproval"))
	g.Expect(w.events).To(Equal([]statuspace.Event{{
		Type: corev1.EventTypeNormal, Reason: v1beta1.ReasonAwaitingApproval, Message: w.status().Message,
	}}))
	g.Expect(w.written).To(Equal(1))

	w.approve(72 * time.Hour)
	w.settle()
	g.Expect(w.status().Attempt).NotTo(BeNil(), "it begins")
	g.Expect(w.status().Tier).To(Equal("main-traffic"))
}

func TestApprovalsThatLetNothingBegin(t *testing.T) {
	for name, change := range map[string]func(*simulator){
		"of an earlier job of the name": func(w *simulator) { w.o.Job.UID = "another" },
		"that expired":                  func(w *simulator) { w.pass(72 * time.Hour) },
		"for another tier": func(w *simulator) {
			w.o.Job.Spec.Tier, w.o.Profile.Spec.Tiers[0].RequiresApproval = "exploratory", true
		},
		"by another profile":  func(w *simulator) { w.o.Profile.Name = "search" },
		"that nobody checked": func(w *simulator) { w.o.WebhooksOff = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newGuarded(t)
			w.approve(72 * time.Hour)
			change(w)
			w.settle()
			NewWithT(t).Expect(w.status().Attempt).To(BeNil())
			NewWithT(t).Expect(w.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval))
		})
	}
}

func TestApprovalExpiresBeforeTheJobBegins(t *testing.T) {
	g := NewWithT(t)
	w := newGuarded(t)
	w.approve(time.Hour)
	until := w.now.Add(time.Hour)
	w.o.Queue.State = "Closed"
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonQueueClosed), "it is approved, and something else keeps it")
	g.Expect(w.now.Add(Plan(w.o, w.now).RequeueAfter)).To(Equal(until), "it is looked at again then")
	w.pass(time.Hour).settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval))
	w.o.Queue.State = "Open"
	w.settle()
	g.Expect(w.status().Attempt).To(BeNil(), "it waits again")
}

func TestApprovalIsForTheBeginningAlone(t *testing.T) {
	g := NewWithT(t)
	w := newGuarded(t)
	w.approve(time.Hour)
	w.trains().pass(2 * time.Hour).settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTraining), "a job that runs stays")
	w.o.Job.Spec.Suspend = true
	w.settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSuspended))
	w.o.Job.Spec.Suspend = false
	w.settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)), "what is stopped and goes on has begun")
}

func TestSuspensionIsNoWayRoundApproval(t *testing.T) {
	g := NewWithT(t)
	w := newGuarded(t)
	w.o.Job.Spec.Suspend = true
	w.settle()
	w.o.Job.Spec.Suspend = false
	w.settle()
	g.Expect(w.status().Attempt).To(BeNil())
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval))
}
