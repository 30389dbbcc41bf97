package webhook

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/quota/approval"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// guarded is the profile of namespace ads, where main-traffic takes approval.
func guarded() *v1beta1.ResourceQuotaProfile {
	return &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "ads"}},
			Tiers: []v1beta1.ProfileTier{
				{Name: "exploratory", Default: true}, {Name: "main-traffic", RequiresApproval: true},
			},
		},
	}
}

// approvable is a job with these annotations, in pairs of keys and values.
func approvable(annotations ...string) *Approvable {
	job := &Approvable{}
	job.Namespace, job.Name, job.UID, job.Spec.Tier = "ads", "ctr", "7", "main-traffic"
	job.Annotations = map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		job.Annotations[annotations[i]] = annotations[i+1]
	}
	return job
}

// recorded is the approval of alice for three days, given at noon, with changes.
func recorded(changes ...func(*approval.Approval)) string {
	a := approval.Approval{
		By: "alice", UID: "7", Profile: "team-ads", Tier: "main-traffic", At: metav1.NewTime(noon),
		Until: metav1.NewTime(noon.Add(72 * time.Hour)),
	}
	for _, change := range changes {
		change(&a)
	}
	return a.String()
}

func TestRecord(t *testing.T) {
	for name, c := range map[string]struct {
		asks    string
		change  func(*Approvable, *Rules)
		refused string // nothing for what is recorded
	}{
		"for three days": {asks: "72h"},
		"for ever": {asks: "forever", refused: `metadata.annotations[tideline.io/approve]: Invalid value: "forever": is not a ` +
			`duration from 1m to 8760h: write how long the approval counts, for example 72h or 30m`},
		"without a profile": {asks: "72h", change: func(_ *Approvable, r *Rules) { r.Profile = nil },
			refused: `metadata.annotations[tideline.io/approve]: Forbidden: namespace ads belongs to no ResourceQuotaProfile, so ` +
				`its jobs require no approval: leave it out`},
		"in a tier that takes none": {asks: "72h", change: func(job *Approvable, _ *Rules) { job.Spec.Tier = "" },
			refused: `metadata.annotations[tideline.io/approve]: Forbidden: tier exploratory requires no approval in profile team-ads: ` +
				`leave it out`},
		"in a tier that is not allowed": {asks: "72h", change: func(job *Approvable, _ *Rules) { job.Spec.Tier = "small-traffic" },
			refused: `metadata.annotations[tideline.io/approve]: Forbidden: profile team-ads does not allow tier "small-traffic" ` +
				`of the job; it allows exploratory, main-traffic: ask an administrator to allow it first`},
		"in a tier beyond its owner's": {asks: "72h", change: func(job *Approvable, r *Rules) {
			job.Spec.Owner, r.Profile.Spec.Members = "ivy", []v1beta1.ProfileMember{
				{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "exploratory"},
			}
		}, refused: `metadata.annotations[tideline.io/approve]: Forbidden: profile team-ads does not allow tier "main-traffic" ` +
			`of the job; it allows exploratory to ivy: ask an administrator to allow it first`},
		"in a tier beyond its owner's group": {asks: "72h", change: func(job *Approvable, r *Rules) {
			job.Spec.Owner, job.Spec.Submitter = "ivy", &v1beta1.Submitter{Username: "ivy", Groups: []string{"interns"}}
			r.Profile.Spec.Members = []v1beta1.ProfileMember{{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"}}
		}, refused: `metadata.annotations[tideline.io/approve]: Forbidden: profile team-ads does not allow tier "main-traffic" ` +
			`of the job; it allows exploratory to ivy as a member of interns: ask an administrator to allow it first`},
		"in a tier of an unchecked group": {asks: "72h", change: func(job *Approvable, r *Rules) {
			job.Spec.Owner, job.Spec.Submitter = "ivy", &v1beta1.Submitter{Username: "ivy", Groups: []string{"leads"}}
			job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionOwnerChecked, Status: metav1.ConditionFalse}}
			r.Profile.Spec.Members = []v1beta1.ProfileMember{
				{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "exploratory"}, {Kind: v1beta1.MemberGroup, Name: "leads"},
			}
		}, refused: `metadata.annotations[tideline.io/approve]: Forbidden: profile team-ads does not allow tier "main-traffic" ` +
			`of the job; it allows exploratory to ivy: ask an administrator to allow it first`},
		"in a tier by default": {asks: "72h", change: func(job *Approvable, r *Rules) {
			job.Spec.Tier, r.Profile.Spec.Tiers[0].Default, r.Profile.Spec.Tiers[1].Default = "", false, true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job, rules := approvable(v1beta1.AnnotationApprove, c.asks), Rules{Config: config.DefaultConfiguration(), Profile: guarded()}
			if c.change != nil {
				c.change(job, &rules)
			}
			a, refusal := rules.RecordApproval(job, "alice", noon.Add(999*time.Millisecond).In(time.FixedZone("here", 3600)))
			if c.refused != "" {
				g.Expect(refusal).To(MatchError(c.refused))
				return
			}
			g.Expect(refusal).NotTo(HaveOccurred())
			g.Expect(a.String()).To(Equal(recorded()))
		})
	}
}

func TestApprovalsCannotBeForged(t *testing.T) {
	const forged = `metadata.annotations[tideline.io/approval]: Forbidden: only the webhook writes it: leave it out, and set ` +
		`annotation tideline.io/approve: 72h to approve`
	for name, c := range map[string]struct {
		before, after string
		tier          string
		noProfile     bool
		later         time.Duration
		refused       string
		claims        bool
	}{
		"the record of the webhook":         {after: recorded(), claims: true},
		"by a replica whose clock is ahead": {after: recorded(), later: -time.Minute, claims: true},
		"in place of another's": {
			before: recorded(func(a *approval.Approval) { a.By = "bob" }), after: recorded(), claims: true,
		},
		"a record that stays":                           {before: recorded(), after: recorded(), later: time.Hour},
		"a record that is taken away":                   {before: recorded(), claims: true},
		"a record that is taken away where none counts": {before: recorded(), noProfile: true},

		"by another's name":  {after: recorded(func(a *approval.Approval) { a.By = "bob" }), refused: forged},
		"of another job":     {after: recorded(func(a *approval.Approval) { a.UID = "8" }), refused: forged},
		"for another tier":   {after: recorded(func(a *approval.Approval) { a.Tier = "exploratory" }), refused: forged},
		"by another profile": {after: recorded(func(a *approval.Approval) { a.Profile = "search" }), refused: forged},
		"for ever": {after: recorded(func(a *approval.Approval) {
			a.Until = metav1.NewTime(noon.Add(approval.Longest + time.Second))
		}), refused: forged},
		"into the past": {after: recorded(func(a *approval.Approval) {
			a.Until = metav1.NewTime(noon.Add(-time.Hour))
		}), refused: forged},
		"given long ago":       {after: recorded(), later: approvalSkew + time.Second, refused: forged},
		"given in the future":  {after: recorded(), later: -approvalSkew - time.Second, refused: forged},
		"in another form":      {after: recorded() + " ", refused: forged},
		"no record":            {after: "72h", refused: forged},
		"where none counts":    {after: recorded(), noProfile: true, refused: forged},
		"where none is needed": {after: recorded(), tier: "exploratory", refused: forged},
		"longer than it was": {before: recorded(), after: recorded(func(a *approval.Approval) {
			a.Until = metav1.NewTime(noon.Add(99 * time.Hour))
		}), later: time.Hour, refused: forged},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := approvable(), approvable()
			for job, record := range map[*Approvable]string{before: c.before, after: c.after} {
				if record != "" {
					job.Annotations[v1beta1.AnnotationApproval] = record
				}
			}
			if c.tier != "" {
				after.Spec.Tier = c.tier
			}
			rules := Rules{Config: config.DefaultConfiguration(), Profile: guarded()}
			if c.noProfile {
				rules.Profile = nil
			}
			d := rules.CheckApproval(before, after, "alice", noon.Add(c.later))
			if c.refused == "" {
				g.Expect(d.Refused).To(BeEmpty())
			} else {
				g.Expect(d.Refused.ToAggregate()).To(MatchError(c.refused))
			}
			if !c.claims {
				g.Expect(d.Claims).To(BeEmpty())
				return
			}
			g.Expect(d.Claims).To(ConsistOf(HaveField("Rights", ConsistOf(authorizationv1.ResourceAttributes{
				Verb: "approve", Group: "tideline.io", Version: "v1beta1", Resource: "resourcequotaprofiles", Name: "team-ads",
			}))))
		})
	}
}

// change is a request of alice to change a merge of namespace ads.
func change(t *testing.T, before, after *Approvable) admission.Request {
	t.Helper()
	req := creation("")
	req.Operation, req.Kind.Kind = admissionv1.Update, v1beta1.MergeJobKind
	for raw, job := range map[*runtime.RawExtension]*Approvable{&req.OldObject: before, &req.Object: after} {
		content, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		raw.Raw = content
	}
	return req
}

func newApprover(r *reviewer) *approver {
	r.profiles = []v1beta1.ResourceQuotaProfile{*guarded()}
	return &approver{client: r, config: config.DefaultConfiguration(), now: func() time.Time { return noon }}
}

func TestWhatIsAskedIsRecorded(t *testing.T) {
	asks := func(value string) *Approvable { return approvable(v1beta1.AnnotationApprove, value) }
	want := []jsonpatch.JsonPatchOperation{
		{Operation: "remove", Path: "/metadata/annotations/tideline.io~1approve"},
		{Operation: "add", Path: "/metadata/annotations/tideline.io~1approval", Value: recorded()},
	}
	for name, c := range map[string]struct {
		before, after *Approvable
		patches       []jsonpatch.JsonPatchOperation
	}{
		"asked":              {approvable(), asks("72h"), want},
		"asked otherwise":    {asks("1h"), asks("72h"), want},
		"asked and forged":   {approvable(), approvable(v1beta1.AnnotationApprove, "72h", v1beta1.AnnotationApproval, "me"), want},
		"asked long ago":     {asks("72h"), asks("72h"), nil},
		"asked no more":      {asks("72h"), approvable(), nil},
		"something else":     {approvable(), approvable("example.com/note", "72h"), nil},
		"recorded long ago ": {approvable(), approvable(v1beta1.AnnotationApproval, recorded()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := newApprover(&reviewer{}).recordApprover(t.Context(), change(t, c.before, c.after))
			NewWithT(t).Expect(response.Allowed).To(BeTrue())
			NewWithT(t).Expect(response.Patches).To(Equal(c.patches))
		})
	}
	t.Run("refused", func(t *testing.T) {
		response := newApprover(&reviewer{}).recordApprover(t.Context(), change(t, approvable(), asks("soon")))
		NewWithT(t).Expect(response.Allowed).To(BeFalse())
		NewWithT(t).Expect(response.Result.Message).To(HavePrefix(`MergeJob.tideline.io "ctr" is invalid: metadata.annotations` +
			`[tideline.io/approve]: Invalid value: "soon": is not a duration`))
	})
}

func TestApprovalTakesTheRight(t *testing.T) {
	const refusal = `MergeJob.tideline.io "ctr" is invalid: metadata.annotations[tideline.io/approval]: Forbidden: to ` +
		`approve a job, or to remove an approval, a user needs the right to approve resourcequotaprofiles.tideline.io team-ads, ` +
		`which "alice" does not have: ask a user who has it, or ask an administrator to bind ClusterRole tideline-approve`
	with := approvable(v1beta1.AnnotationApproval, recorded())
	for name, c := range map[string]struct {
		before *Approvable
		after  *Approvable
		may    string
		err    error
		asks   []string
		code   int32 // 0 for allowed
		says   string
	}{
		"with the right": {before: approvable(), after: with, may: "approve", asks: []string{"approve"}},
		"without it": {
			before: approvable(), after: with, asks: []string{"approve"}, code: 422,
			says: refusal,
		},
		"taken back": {before: with, after: approvable(), may: "approve", asks: []string{"approve"}},
		"taken back without the right": {
			before: with, after: approvable(), asks: []string{"approve"}, code: 422, says: refusal +
				"; to change something else, keep the annotation, or use kubectl apply or kubectl patch, which keep it",
		},
		"unanswerable": {
			before: approvable(), after: with, err: errors.New("late"), asks: []string{"approve"}, code: 500,
			says: `metadata.annotations[tideline.io/approval]: the API server did not answer whether alice may approve ` +
				`resourcequotaprofiles team-ads (late): approve it again in a moment`,
		},
		"some other change": {before: with, after: approvable(v1beta1.AnnotationApproval, recorded(), "a", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &reviewer{may: c.may, err: c.err}
			response := newApprover(r).checkRecords(t.Context(), change(t, c.before, c.after))
			g.Expect(response.Allowed).To(Equal(c.code == 0))
			g.Expect(r.verbs()).To(Equal(c.asks), "it asks for what it must know, and no more")
			if c.code != 0 {
				g.Expect(response.Result.Code).To(Equal(c.code))
				g.Expect(response.Result.Message).To(Equal(c.says), "the whole answer")
			}
		})
	}
	t.Run("no job", func(t *testing.T) {
		req := change(t, approvable(), approvable())
		req.Object.Raw = []byte(`{"spec":3}`)
		NewWithT(t).Expect(newApprover(&reviewer{}).checkRecords(t.Context(), req).Result.Code).To(BeEquivalentTo(400))
		NewWithT(t).Expect(newApprover(&reviewer{}).recordApprover(t.Context(), req).Result.Code).To(BeEquivalentTo(400))
	})
}

// Where the API server does not know the conditions of these webhooks, they are called for every change.
func TestOtherChangesAreNotLookedInto(t *testing.T) {
	g := NewWithT(t)
	before := approvable(v1beta1.AnnotationApproval, recorded())
	req := change(t, before, approvable(v1beta1.AnnotationApproval, recorded(), "a", "b"))
	req.Namespace = "unknown"
	a := newApprover(&reviewer{})
	g.Expect(a.checkRecords(t.Context(), req).Allowed).To(BeTrue(), "no profile is read")
	g.Expect(a.recordApprover(t.Context(), req).Allowed).To(BeTrue(), "no profile is read")
}

func TestNothingIsApprovedBeforeItExists(t *testing.T) {
	g := NewWithT(t)
	by := creation(`{"metadata":{"annotations":{"tideline.io/approve":"72h"}},"spec":{"owner":"alice"}}`)
	judged := newJobValidator(&reviewer{}, config.DefaultConfiguration(), nil, outlook.Tellers{}).Handle(t.Context(), by)
	g.Expect(judged.Result.Message).To(Equal(
		`ElasticTrainingJob.tideline.io "ctr" is invalid: metadata.annotations[tideline.io/approve]: Forbidden: a job can be ` +
			`approved only after it was created: leave it out, and approve the job then`))
	by = creation(`{"metadata":{"annotations":{"tideline.io/approve":""}},"spec":{"owner":"alice","pool":"tideline-merge"}}`)
	g.Expect(newMergeValidator(&reviewer{}, config.DefaultConfiguration()).Handle(t.Context(),
		by).Result.Message).To(ContainSubstring(
		`only after it was created`))

	copied := creation(`{"metadata":{"annotations":{"tideline.io/approval":"copied"}},"spec":{"owner":"alice"}}`)
	g.Expect((&completer{&reviewer{}, forTraining}).Handle(t.Context(), copied).Patches).To(ContainElement(
		jsonpatch.JsonPatchOperation{Operation: "remove", Path: "/metadata/annotations/tideline.io~1approval"},
	), "that of another object is taken off")
}
