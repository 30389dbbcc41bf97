package webhook

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"gomodules.xyz/jsonpatch/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// naming is a profile whose members are these groups.
func naming(groups ...string) v1beta1.ResourceQuotaProfile {
	p := v1beta1.ResourceQuotaProfile{}
	for _, group := range groups {
		p.Spec.Members = append(p.Spec.Members, v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: group})
	}
	return p
}

func TestSubmitterIsRecorded(t *testing.T) {
	const (
		add   = "add"
		own   = `{"spec":{"owner":"alice"}}`
		leads = `{"spec":{"owner":"alice","submitter":{"username":"alice","groups":["leads"]}}}`
	)
	submitter := func(groups ...string) []jsonpatch.JsonPatchOperation {
		return []jsonpatch.JsonPatchOperation{{
			Operation: add, Path: "/spec/submitter", Value: v1beta1.Submitter{Username: "alice", Groups: slices.Clip(groups)},
		}}
	}
	none := submitter([]string{}...)
	owner := []jsonpatch.JsonPatchOperation{{Operation: add, Path: "/spec/owner", Value: "alice"}}
	for name, c := range map[string]struct {
		job     string
		named   []string // by profiles; alice is in ml and nlp
		patches []jsonpatch.JsonPatchOperation
	}{
		"profiles name one of the groups":      {own, []string{"leads", "ml"}, submitter("ml")},
		"profiles name all of them":            {own, []string{"nlp", "ml"}, submitter("ml", "nlp")},
		"profiles name none":                   {own, []string{"leads"}, none},
		"of an owner by default":               {`{"spec":{}}`, []string{"ml"}, slices.Concat(owner, submitter("ml"))},
		"other groups than the manifest":       {leads, []string{"ml", "leads"}, submitter("ml")},
		"no group, although the manifest does": {leads, []string{"leads"}, none},
		"in place of null":                     {`{"spec":{"owner":"alice","submitter":null}}`, nil, none},
		"in place of an empty one":             {`{"spec":{"owner":"alice","submitter":{}}}`, nil, none},
		"of a job of another owner":            {`{"spec":{"owner":"bob"}}`, []string{"ml"}, submitter("ml")},
		"as a backup has it": {
			`{"spec":{"owner":"bob","submitter":{"username":"bob","groups":["leads"]}}}`, []string{"ml"}, nil,
		},
		"of a job that the schema refuses": {`{"spec":{"owner":3}}`, []string{"ml"}, nil},
		"as a list":                        {`{"spec":{"owner":"alice","submitter":["ml"]}}`, []string{"ml"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			req := creation(c.job)
			req.UserInfo.Groups = []string{"nlp", "system:authenticated", "ml"}
			r := &reviewer{profiles: []v1beta1.ResourceQuotaProfile{naming(), naming(c.named...)}}
			for _, of := range []words{forTraining, forMerge} {
				response := (&completer{r, of}).Handle(t.Context(), req)
				g.Expect(response.Allowed).To(BeTrue())
				g.Expect(response.Patches).To(Equal(c.patches))
			}
		})
	}
}

// A user who may assign owners restores a backup with the submitters that it has. Other users may name only themselves.
func TestOnlyRestorersNameAnotherSubmitter(t *testing.T) {
	const refusal = `spec.submitter.username: Forbidden: "bob" is not "alice", who creates the %[1]s. To restore a %[1]s with its ` +
		`submitter, a user needs the verb assign-owner on %[2]s.tideline.io in namespace ads: leave the submitter out, or ask an ` +
		`administrator to bind ClusterRole tideline-assign-owner`
	req := creation(`{"spec":{"owner":"alice","pool":"tideline-merge","submitter":{"username":"bob","groups":["leads"]}}}`)
	for _, of := range []words{forTraining, forMerge} {
		for _, may := range []string{"", assignOwner} {
			g, r, cfg := NewWithT(t), &reviewer{may: may}, config.DefaultConfiguration()
			response := (map[string]*validator{
				"job": newJobValidator(r, cfg, nil, outlook.Tellers{}), "merge": newMergeValidator(r, cfg),
			})[of.job].Handle(t.Context(), req)
			g.Expect(response.Allowed).To(Equal(may != ""), of.job)
			g.Expect(r.verbs()).To(Equal([]string{assignOwner}))
			if may == "" {
				g.Expect(response.Result.Message).To(ContainSubstring(fmt.Sprintf(refusal, of.job, of.resource)))
			}
		}
	}
}

func TestNoJobIsWithoutTheGroupsOfItsOwner(t *testing.T) {
	g := NewWithT(t)
	r := &reviewer{unreadable: errors.New("late")}
	c := &completer{r, forMerge}
	response := c.Handle(t.Context(), creation(`{"spec":{}}`))
	g.Expect(response.Allowed).To(BeFalse())
	g.Expect(response.Patches).To(BeEmpty())
	g.Expect(response.Result.Code).To(BeEquivalentTo(500))
	g.Expect(response.Result.Message).To(Equal(`spec.submitter: Tideline cannot read which groups of alice the profiles ` +
		`name (list the ` +
		`ResourceQuotaProfiles: late): create the merge again in a moment`))
	g.Expect(r.patience).To(And(BeNumerically(">", 0), BeNumerically("<=", reviewTimeout)), "it does not wait for ever")
	response = c.Handle(t.Context(), creation(`{"spec":{"owner":"bob"}}`))
	g.Expect(response.Allowed).To(BeFalse(), "nor for a job of another owner")
	response = c.Handle(t.Context(), creation(`{"spec":{"owner":"bob","submitter":{"username":"bob"}}}`))
	g.Expect(response.Allowed).To(BeTrue(), "a recorded submitter needs no groups")

	many := creation(`{"spec":{}}`)
	for i := range mostGroups + 1 {
		many.UserInfo.Groups = append(many.UserInfo.Groups, fmt.Sprintf("g%d", i))
	}
	r = &reviewer{profiles: []v1beta1.ResourceQuotaProfile{naming(many.UserInfo.Groups[1:]...)}}
	c = &completer{r, forTraining}
	response = c.Handle(t.Context(), many)
	g.Expect(response.Allowed).To(BeFalse())
	g.Expect(response.Result.Message).To(Equal(`ElasticTrainingJob.tideline.io "ctr" is invalid: spec.submitter.groups: ` +
		`Forbidden: alice is in 65 groups that ResourceQuotaProfiles name, and a job may have 64: ask an administrator to name ` +
		`fewer in profiles`))
	many.UserInfo.Groups = many.UserInfo.Groups[:mostGroups+1] // ml, which no profile names, and 64 others
	g.Expect(c.Handle(t.Context(), many).Allowed).To(BeTrue())
}

// Where the mutating webhook was not called, no user is in a group by writing so.
func TestGroupsThatNoWebhookWroteAreRefused(t *testing.T) {
	const refusal = "spec.submitter.groups: Forbidden: only the webhook writes this field, with groups of the user who creates " +
		"the job: leave it out"
	for name, c := range map[string]struct {
		groups []string
		fine   bool
	}{
		"none":    {nil, true},
		"hers":    {[]string{"ml", "nlp"}, true},
		"another": {[]string{"ml", "leads"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			by, rules := Creation{User: "alice", Groups: []string{"nlp", "ml"}}, Rules{Config: config.DefaultConfiguration()}
			job := &v1beta1.ElasticTrainingJob{Spec: v1beta1.ElasticTrainingJobSpec{
				Owner: "alice", Submitter: &v1beta1.Submitter{Username: "alice", Groups: c.groups},
			}}
			merge := mergeSpec()
			merge.Owner, merge.Submitter = job.Spec.Owner, job.Spec.Submitter
			for _, d := range []Decision{DecideCreation(job, by, rules), DecideMerge(merge, by, rules)} {
				if c.fine {
					NewWithT(t).Expect(d.Refused).To(BeEmpty())
				} else {
					NewWithT(t).Expect(d.Refused.ToAggregate()).To(MatchError(refusal))
				}
			}
		})
	}
	req := creation(`{"spec":{"owner":"alice","submitter":{"username":"alice","groups":["ml"]}}}`)
	NewWithT(t).Expect(newJobValidator(&reviewer{}, config.DefaultConfiguration(), nil, outlook.Tellers{}).Handle(t.Context(),
		req).Allowed).To(BeTrue(),
		"she is in ml")
}

// What is approved is checked with the groups that count, as it was recorded with them.
func TestUncheckedGroupsAreNotApproved(t *testing.T) {
	job := approvable(v1beta1.AnnotationApproval, recorded())
	job.Spec.Owner, job.Spec.Submitter = "ivy", &v1beta1.Submitter{Username: "ivy", Groups: []string{"leads"}}
	rules := Rules{Config: config.DefaultConfiguration(), Profile: guarded()}
	rules.Profile.Spec.Members = []v1beta1.ProfileMember{
		{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "exploratory"}, {Kind: v1beta1.MemberGroup, Name: "leads"},
	}
	NewWithT(t).Expect(rules.CheckApproval(approvable(), job, "alice", noon).Refused).To(BeEmpty())
	job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionOwnerChecked, Status: metav1.ConditionFalse}}
	NewWithT(t).Expect(rules.CheckApproval(approvable(), job, "alice", noon).Refused).To(HaveLen(1))
}

func TestSchemasTakeAsManyGroups(t *testing.T) {
	for _, content := range [][]byte{crd.ElasticTrainingJob, crd.MergeJob} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		NewWithT(t).Expect(yaml.Unmarshal(content, definition)).To(Succeed())
		spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		groups := spec.Properties["submitter"].Properties["groups"]
		NewWithT(t).Expect(groups.MaxItems).To(HaveValue(BeEquivalentTo(mostGroups)), definition.Name)
	}
}

func TestTiersByGroup(t *testing.T) {
	interns := naming()
	interns.Name, interns.Spec.NamespaceSelector.MatchLabels = "team-ads", map[string]string{"team": "ads"}
	interns.Spec.Members = []v1beta1.ProfileMember{
		{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"},
		{Kind: v1beta1.MemberGroup, Name: "ml", MaxTier: "small-traffic"}, {Kind: v1beta1.MemberUser, Name: "sam"},
	}
	r := &reviewer{profiles: []v1beta1.ResourceQuotaProfile{interns}}
	refusal := func(allowed string) string {
		return `spec.tier: Invalid value: "main-traffic": profile team-ads does not allow this tier; it allows ` + allowed +
			`: use one of these, or ask an administrator to allow it`
	}
	for job, says := range map[string]string{
		`{"spec":{"owner":"alice","tier":"main-traffic","submitter":{"username":"alice","groups":["interns"]}}}`: refusal(
			"exploratory to alice as a member of interns"),
		`{"spec":{"owner":"alice","tier":"main-traffic","submitter":{"username":"alice","groups":["interns","ml"]}}}`: refusal(
			"exploratory, small-traffic to alice as a member of interns and ml"),
		`{"spec":{"owner":"alice","tier":"exploratory","submitter":{"username":"alice","groups":["interns"]}}}`: "",
		`{"spec":{"owner":"sam","tier":"main-traffic","submitter":{"username":"alice","groups":["interns"]}}}`:  "",
		`{"spec":{"owner":"alice","tier":"main-traffic"}}`:                                                      "",
	} {
		t.Run(job, func(t *testing.T) {
			for _, v := range []*validator{newJobValidator(r, config.DefaultConfiguration(), nil, outlook.Tellers{}), newMergeValidator(r,
				config.DefaultConfiguration())} {
				said, req := "", creation(job)
				req.UserInfo.Groups = []string{"interns", "ml"}
				if result := v.Handle(t.Context(), req).Result; result != nil {
					said = result.Message
				}
				if says == "" {
					NewWithT(t).Expect(said).NotTo(ContainSubstring("spec.tier"))
				} else {
					NewWithT(t).Expect(said).To(ContainSubstring(says))
				}
			}
		})
	}
}
