package training

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestOwnerThatNobodyCheckedIsSaidForGood(t *testing.T) {
	for owner, says := range map[string]string{
		"alice": `The operator ran without webhooks (--webhooks=false) when the job was created or changed. Webhooks ` +
			`check the owner, so ` +
			`spec.owner "alice" is only what a user wrote.`,
		"": `The operator ran without webhooks (--webhooks=false) when the job was created or changed. Webhooks set the owner, ` +
			`so the job has ` +
			`none, and its use counts for no user.`,
	} {
		g := NewWithT(t)
		w := newSimulator(t, 1, 2)
		w.o.Job.Spec.Owner, w.o.WebhooksOff = owner, true
		w.step()
		g.Expect(w.written).To(Equal(1), "it costs no write of its own")
		said := meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionOwnerChecked)
		g.Expect(condition(w, v1beta1.ConditionOwnerChecked)).To(Equal("False/WebhooksOff"))
		g.Expect(said.Message).To(Equal(says))
		w.o.WebhooksOff = false
		w.settle().run().settle()
		g.Expect(condition(w, v1beta1.ConditionOwnerChecked)).To(Equal("False/WebhooksOff"), "webhooks that come later change nothing")
		g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"), "and it keeps nothing from going on")
	}
}

func TestGroupsThatNobodyCheckedDoNotCount(t *testing.T) {
	for name, webhooksOff := range map[string]bool{"checked": false, "not checked": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 1, 2)
			w.o.Profile = profile()
			w.o.Profile.Spec.Members = []v1beta1.ProfileMember{
				{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "exploratory"}, {Kind: v1beta1.MemberGroup, Name: "leads"},
			}
			w.o.Job.Spec.Tier, w.o.Job.Spec.Owner = "small-traffic", "ivy"
			w.o.Job.Spec.Submitter = &v1beta1.Submitter{Username: "ivy", Groups: []string{"leads"}}
			w.o.WebhooksOff = webhooksOff
			held := func() bool { return w.status().Reason == v1beta1.ReasonTierNotAllowed }
			w.step()
			g.Expect(held()).To(Equal(webhooksOff))
			if webhooksOff {
				said := meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionOwnerChecked)
				g.Expect(said.Message).To(HaveSuffix(`"ivy" is only what a user wrote. The groups in spec.submitter do not count.`))
			}
			w.o.WebhooksOff = !webhooksOff
			w.settle()
			g.Expect(held()).To(Equal(webhooksOff), "webhooks of today say nothing of it")
		})
	}
}

func TestServiceAccountThatNobodyCheckedIsSaid(t *testing.T) {
	for account, says := range map[string]string{
		"":        "counts for no user.",
		"default": "counts for no user.",
		"trainer": `counts for no user. It was not checked whether that user may use ServiceAccount "trainer".`,
	} {
		w := newSimulator(t, 1, 2)
		w.o.Job.Spec.Template.Spec.ServiceAccountName, w.o.WebhooksOff = account, true
		w.step()
		said := meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionOwnerChecked)
		NewWithT(t).Expect(said.Message).To(HaveSuffix(says))
	}
}

func TestOwnerThatWasCheckedStaysSo(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 1, 2).step()
	w.o.WebhooksOff = true
	w.settle().run().settle()
	g.Expect(condition(w, v1beta1.ConditionOwnerChecked)).To(Equal("absent"), "webhooks that are switched off later change nothing")
}

func TestOwnerIsSaidOfAJobThatIsBlocked(t *testing.T) {
	w := newSimulator(t, 1, 2)
	w.o.WebhooksOff, w.o.Job.Spec.Tier = true, "platinum"
	w.step()
	NewWithT(t).Expect(condition(w, v1beta1.ConditionOwnerChecked)).To(Equal("False/WebhooksOff"))
}
