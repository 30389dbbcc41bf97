package approval

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func given() Approval {
	return Approval{
		By: "bob@example.com", UID: "7", Profile: "ads", Tier: "main-traffic", At: metav1.NewTime(noon),
		Until: metav1.NewTime(noon.Add(72 * time.Hour)),
	}
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	g := NewWithT(t)
	written := given().String()
	g.Expect(written).To(Equal(`{"by":"bob@example.com","uid":"7","profile":"ads","tier":"main-traffic",` +
		`"at":"2026-11-22T12:00:00Z","until":"2026-11-25T12:00:00Z"}`))
	read, err := Parse(written)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.String()).To(Equal(written))
	for _, wrong := range []string{"", "72h", "[]", `{"by":3}`, `{"for":"ever"}`, written + written, written + "}"} {
		_, err := Parse(wrong)
		g.Expect(err).To(MatchError(HavePrefix("read the approval: ")), wrong)
	}
}

func TestHowLongAnApprovalMayCount(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1m": time.Minute, "72h": 72 * time.Hour, "1h30m": 90 * time.Minute, "8760h": Longest, "90.7s": 90 * time.Second,
	} {
		d, err := ParseDuration(value)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), value)
		NewWithT(t).Expect(d).To(Equal(want), value)
	}
	for _, value := range []string{"", "72", "3d", "forever", "59.9s", "0", "-72h", "8761h", "1000000000h", "true"} {
		_, err := ParseDuration(value)
		NewWithT(t).Expect(err).To(MatchError("is not a duration from 1m to 8760h: write how long the approval counts, for "+
			"example 72h or 30m"), value)
	}
}

func TestWhatAnApprovalCountsFor(t *testing.T) {
	a := given()
	for name, c := range map[string]struct {
		change func(*Approval)
		after  time.Duration
		why    string // nothing for one that counts
	}{
		"as it was given":   {},
		"to the last":       {after: 72*time.Hour - time.Second},
		"expired":           {after: 72 * time.Hour, why: "expired at 2026-11-25T12:00:00Z"},
		"of another job":    {change: func(a *Approval) { a.UID = "8" }, why: "is for an earlier object of this name"},
		"of no job":         {change: func(a *Approval) { a.UID = "" }, why: "is for an earlier object of this name"},
		"of another tier":   {change: func(a *Approval) { a.Tier = "small-traffic" }, why: "is for tier small-traffic"},
		"by another's team": {change: func(a *Approval) { a.Profile = "search" }, why: "is for profile search"},
		"without an end":    {change: func(a *Approval) { a.Until = metav1.Time{} }, why: "expired at 0001-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			a := a
			if c.change != nil {
				c.change(&a)
			}
			counts, why := a.IsValidFor("7", "ads", "main-traffic", noon.Add(c.after))
			NewWithT(t).Expect(counts).To(Equal(c.why == ""))
			NewWithT(t).Expect(why).To(Equal(c.why))
		})
	}
}

func TestWhoWaitsForApproval(t *testing.T) {
	const asks = "Tier main-traffic requires approval. A user with the right to approve on profile ads (ClusterRole " +
		"tideline-approve) runs: tideline approve ads-dev/ctr --for 72h, or kubectl annotate etj ctr -n ads-dev " +
		"tideline.io/approve=72h."
	for name, c := range map[string]struct {
		change func(*Question)
		after  time.Duration
		waits  string
		until  time.Time
	}{
		"without an approval": {waits: asks},
		"with one": {change: func(q *Question) {
			q.Job.SetAnnotations(map[string]string{v1beta1.AnnotationApproval: given().String()})
		}, until: noon.Add(72 * time.Hour)},
		"with one that expired": {change: func(q *Question) {
			q.Job.SetAnnotations(map[string]string{v1beta1.AnnotationApproval: given().String()})
		}, after: 73 * time.Hour, waits: asks + " The present approval by bob@example.com does not count: it expired at " +
			"2026-11-25T12:00:00Z."},
		"with what is none": {change: func(q *Question) {
			q.Job.SetAnnotations(map[string]string{v1beta1.AnnotationApproval: "yes"})
		}, waits: asks + " The webhook did not write the present annotation tideline.io/approval, so Tideline ignores it."},
		"in another tier": {change: func(q *Question) { q.Tier = "exploratory" }},
		"without profile": {change: func(q *Question) { q.Profile = nil }},
		"without webhooks": {change: func(q *Question) {
			q.WebhooksOff = true
			q.Job.SetAnnotations(map[string]string{v1beta1.AnnotationApproval: given().String()})
		}, waits: "Profile ads requires approval for tier main-traffic. Approval needs the webhooks, and this operator runs " +
			"without them (--webhooks=false). Ask an administrator to switch them on, or set spec.tier to another tier."},
	} {
		t.Run(name, func(t *testing.T) {
			q := Question{
				Job:      &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads-dev", Name: "ctr", UID: "7"}},
				Resource: "etj", Tier: "main-traffic",
				Profile: &v1beta1.ResourceQuotaProfile{
					ObjectMeta: metav1.ObjectMeta{Name: "ads"},
					Spec: v1beta1.ResourceQuotaProfileSpec{Tiers: []v1beta1.ProfileTier{
						{Name: "exploratory"}, {Name: "main-traffic", RequiresApproval: true},
					}},
				},
			}
			if c.change != nil {
				c.change(&q)
			}
			waits, until := q.AnswerAt(noon.Add(c.after))
			NewWithT(t).Expect(waits).To(Equal(c.waits))
			NewWithT(t).Expect(until.Equal(c.until)).To(BeTrue(), "until %s", until)
		})
	}
}
