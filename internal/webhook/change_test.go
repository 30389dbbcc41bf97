package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// changing is a request of alice to change an object in JSON.
func changing(before, after string) admission.Request {
	req := creation(after)
	req.Operation, req.OldObject.Raw = admissionv1.Update, []byte(before)
	return req
}

// changingTo is a request of alice to change an object.
func changingTo(t *testing.T, before, after any) admission.Request {
	t.Helper()
	was, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	is, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	return changing(string(was), string(is))
}

func TestIdentityIsRestored(t *testing.T) {
	const (
		named = `{"spec":{"owner":"bob","submitter":{"username":"bob","groups":["ml"]}}}`
		by    = `{"username":"bob","groups":["ml"]}`
	)
	owner := jsonpatch.JsonPatchOperation{Operation: "add", Path: "/spec/owner", Value: json.RawMessage(`"bob"`)}
	submitter := jsonpatch.JsonPatchOperation{Operation: "add", Path: "/spec/submitter", Value: json.RawMessage(by)}
	remove := jsonpatch.JsonPatchOperation{Operation: "remove", Path: "/spec/submitter"}
	for name, c := range map[string]struct {
		before, after string
		patches       []jsonpatch.JsonPatchOperation
	}{
		"a manifest without both": {
			named, `{"spec":{"tier":"main-traffic"}}`, []jsonpatch.JsonPatchOperation{owner, submitter},
		},
		"both are null": {
			named, `{"spec":{"owner":null,"submitter":null}}`, []jsonpatch.JsonPatchOperation{owner, submitter},
		},
		"an empty owner": {
			named, `{"spec":{"owner":"","submitter":` + by + `}}`, []jsonpatch.JsonPatchOperation{owner},
		},
		"another owner": {named, `{"spec":{"owner":"carol","submitter":` + by + `}}`, nil},
		"another submitter": {
			named, `{"spec":{"owner":"bob","submitter":{"username":"alice"}}}`, []jsonpatch.JsonPatchOperation{submitter},
		},
		"other groups": {
			named, `{"spec":{"owner":"bob","submitter":{"username":"bob"}}}`, []jsonpatch.JsonPatchOperation{submitter},
		},
		"what is no submitter": {
			named, `{"spec":{"owner":"bob","submitter":3}}`, []jsonpatch.JsonPatchOperation{submitter},
		},
		"nothing": {named, named, nil},
		"a job that no webhook completed": {
			`{"spec":{}}`, `{"spec":{"owner":"bob","submitter":` + by + `}}`, []jsonpatch.JsonPatchOperation{remove},
		},
		"the same, to null": {`{"spec":{}}`, `{"spec":{"submitter":null}}`, []jsonpatch.JsonPatchOperation{remove}},
		"what is no job":    {named, `{"spec":3}`, nil},
		"no spec":           {named, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reviewer{unreadable: errors.New("it must not be read")}
			for _, of := range []words{forTraining, forMerge} {
				response := (&completer{r, of}).Handle(t.Context(), changing(c.before, c.after))
				NewWithT(t).Expect(response.Allowed).To(BeTrue())
				NewWithT(t).Expect(response.Patches).To(Equal(c.patches))
			}
		})
	}
}

// changed is a job that its owner carol created, with a change.
func changed(edits ...func(*v1beta1.ElasticTrainingJob)) *v1beta1.ElasticTrainingJob {
	job := &v1beta1.ElasticTrainingJob{}
	job.Spec.MinReplicas, job.Spec.MaxReplicas = 2, 4
	job.Spec.Owner, job.Spec.Submitter = "carol", &v1beta1.Submitter{Username: "carol"}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "a"}}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func tier(name string) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Spec.Tier = name }
}

func account(name string) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Spec.Template.Spec.ServiceAccountName = name }
}

func most(n int32) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Spec.MaxReplicas = n }
}

func grace(seconds int64) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To(seconds)
	}
}

func protected(seconds int32) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To(seconds) }
}

func gpus(n string) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
	}
}

func image(name string) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Spec.Template.Spec.Containers[0].Image = name }
}

func ownedBy(name string) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Spec.Owner = name }
}

func recordedTier(name string) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) { job.Status.Tier = name }
}

// Fields that a change leaves alone are never refused again, whatever the limits have become.
func TestOnlyWhatChangedIsJudged(t *testing.T) {
	type edits = []func(*v1beta1.ElasticTrainingJob)
	over := edits{tier("gold"), most(100), grace(900), protected(7), gpus("9"), ownedBy("dave")}
	for name, c := range map[string]struct {
		before, after edits
		refused       string // nothing for what is allowed
	}{
		"a job over all limits": {over, append(over, image("b")), ""},
		"more workers":          {nil, edits{most(65)}, "spec.maxReplicas"},
		"other too many":        {edits{most(100)}, edits{most(99)}, "spec.maxReplicas"},
		"as few as allowed":     {edits{most(100)}, edits{most(64)}, ""},
		"an unknown tier":       {nil, edits{tier("gold")}, "spec.tier"},
		"a closed tier":         {nil, edits{tier("main-traffic")}, "spec.tier"},
		"a tier closed to the new owner": {
			edits{tier("small-traffic")}, edits{tier("small-traffic"), ownedBy("intern")}, "spec.tier",
		},
		"a longer grace":      {nil, edits{grace(601)}, "spec.template.spec.terminationGracePeriodSeconds"},
		"a longer protection": {nil, edits{protected(1)}, "spec.elasticity.shrink.minRunSeconds"},
		"more than the cap":   {edits{gpus("1")}, edits{gpus("8")}, "spec.minReplicas"},
		"an owner without hours": {
			edits{gpus("1")}, edits{gpus("1"), ownedBy("dave")}, "spec.owner",
		},
		"devices of an owner without hours": {edits{ownedBy("dave")}, edits{ownedBy("dave"), gpus("1")}, "spec.owner"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, p := config.DefaultConfiguration(), &v1beta1.ResourceQuotaProfile{}
			cfg.Limits.MaxWorkersPerJob = 64
			p.Spec.Tiers = []v1beta1.ProfileTier{{Name: "exploratory", Default: true}, {Name: "small-traffic"}}
			p.Spec.Members = []v1beta1.ProfileMember{{Kind: v1beta1.MemberUser, Name: "intern", MaxTier: "exploratory"}}
			p.Spec.Caps = &v1beta1.ProfileCaps{PerJob: []v1beta1.ResourceCap{
				{Resource: "nvidia.com/gpu", Max: resource.MustParse("15")},
			}}
			p.Status.OverBudget = []v1beta1.OverBudget{{User: "dave", OnExceeded: v1beta1.ExceededDeny}}
			d := DecideChange(changed(c.before...), changed(c.after...), Creation{User: "alice"}, Rules{Config: cfg, Profile: p})
			if c.refused == "" {
				NewWithT(t).Expect(d.Refused).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(d.Refused).To(ConsistOf(HaveField("Field", c.refused)))
		})
	}
}

func TestChangesTakeTheRightsOfCreations(t *testing.T) {
	type edits = []func(*v1beta1.ElasticTrainingJob)
	const (
		owner = `spec.owner: Forbidden: the owner is "carol". To make %q the owner, a user needs the verb assign-owner on ` +
			`elastictrainingjobs.tideline.io in namespace ads, which "alice" does not have: leave the owner as it is, or ask an ` +
			`administrator to bind ClusterRole tideline-assign-owner`
		raised = `spec.tier: Forbidden: to raise the tier of a job from %s to main-traffic, a user needs the right to approve ` +
			`resourcequotaprofiles.tideline.io team-ads, which "alice" does not have: ask a user who has it, or ask an ` +
			`administrator to bind ClusterRole tideline-approve`
		use = `spec.template.spec.serviceAccountName: Forbidden: to run workers as ServiceAccount "trainer"`
	)
	for name, c := range map[string]struct {
		before, after edits
		noProfile     bool
		asks          []string
		says          string
	}{
		"another owner": {
			after: edits{ownedBy("bob")}, asks: []string{"assign-owner"}, says: fmt.Sprintf(owner, "bob"),
		},
		"oneself as the owner": {
			after: edits{ownedBy("alice")}, asks: []string{"assign-owner"}, says: fmt.Sprintf(owner, "alice"),
		},
		"a higher tier": {
			after: edits{tier("main-traffic")}, asks: []string{"approve"}, says: fmt.Sprintf(raised, "exploratory"),
		},
		"a higher tier than by name": {
			before: edits{tier("exploratory")}, after: edits{tier("main-traffic")}, asks: []string{"approve"},
			says: fmt.Sprintf(raised, "exploratory"),
		},
		"a higher tier without a profile": {
			after: edits{tier("main-traffic")}, noProfile: true,
		},
		"a lower tier":                 {before: edits{tier("main-traffic")}, after: edits{tier("exploratory")}},
		"the default tier by its name": {after: edits{tier("exploratory")}},
		"the tier of the status": {
			before: edits{recordedTier("main-traffic")}, after: edits{tier("main-traffic"), recordedTier("main-traffic")},
		},
		"a lower tier of a closed one":  {before: edits{tier("small-traffic")}, after: edits{tier("exploratory")}},
		"the lowest tier of an unknown": {before: edits{tier("gold")}, after: edits{tier("exploratory")}},
		"a higher tier of an unknown": {
			before: edits{tier("gold")}, after: edits{tier("main-traffic")}, asks: []string{"approve"},
			says: fmt.Sprintf(raised, "gold"),
		},
		"another account": {after: edits{account("trainer")}, asks: []string{"create", "use"}, says: use},
		"what runs as an account": {
			before: edits{account("trainer")}, after: edits{account("trainer"), image("b")}, asks: []string{"create", "use"},
			says: use,
		},
		"the default account":             {before: edits{account("trainer")}, after: edits{account("default")}},
		"another field beside an account": {before: edits{account("trainer")}, after: edits{account("trainer"), most(8)}},
		"another field beside an owner":   {before: edits{ownedBy("bob")}, after: edits{ownedBy("bob"), most(8)}},
	} {
		t.Run(name, func(t *testing.T) {
			req := changingTo(t, changed(c.before...), changed(c.after...))
			for _, may := range append([]string{"-"}, c.asks...) {
				g, r := NewWithT(t), &reviewer{may: may}
				if !c.noProfile {
					r.profiles = []v1beta1.ResourceQuotaProfile{*guarded()}
				}
				cfg := config.DefaultConfiguration()
				for i := range cfg.Tiers {
					cfg.Tiers[i].QoS = ""
				}
				response := newJobValidator(r, cfg, nil, outlook.Tellers{}).Handle(t.Context(), req)
				g.Expect(response.Allowed).To(Equal(may != "-" || len(c.asks) == 0))
				if may == "-" {
					g.Expect(r.verbs()).To(Equal(c.asks), "it asks for what it must know, and no more")
				}
				if !response.Allowed {
					g.Expect(response.Result.Message).To(HavePrefix(`ElasticTrainingJob.tideline.io "ctr" is invalid: ` + c.says))
				}
			}
		})
	}
}

func TestMergesFollowChangesByRight(t *testing.T) {
	const begin = `MergeJob.tideline.io "ctr" is invalid: `
	merge := func(edit func(*v1beta1.MergeJobSpec)) *v1beta1.MergeJob {
		spec := mergeSpec()
		spec.Owner, spec.Submitter = "carol", &v1beta1.Submitter{Username: "carol"}
		edit(spec)
		return &v1beta1.MergeJob{Spec: *spec}
	}
	for name, c := range map[string]struct {
		edit func(*v1beta1.MergeJobSpec)
		asks []string
		says string
	}{
		"another Secret": {func(s *v1beta1.MergeJobSpec) { s.Store.S3.CredentialsRef.Name = "other" }, []string{"get"},
			`spec.store.s3.credentialsRef.name: Forbidden: to use Secret "other"`},
		"another account": {
			func(s *v1beta1.MergeJobSpec) { s.Template.Spec.ServiceAccountName = "merger" }, []string{"create", "use"},
			`spec.template.spec.serviceAccountName: Forbidden: to run pods as ServiceAccount "merger"`},
		"another owner": {func(s *v1beta1.MergeJobSpec) { s.Owner = "alice" }, []string{"assign-owner"},
			`spec.owner: Forbidden: the owner is "carol". To make "alice" the owner, a user needs the verb assign-owner on mergejobs.`},
		"a higher tier": {func(s *v1beta1.MergeJobSpec) { s.Tier = "main-traffic" }, []string{"approve"},
			`spec.tier: Forbidden: to raise the tier of a merge from exploratory to main-traffic, a user`},
		"another submitter": {func(s *v1beta1.MergeJobSpec) { s.Submitter = nil }, nil,
			`spec.submitter: Forbidden: it records who created the merge, and only the webhook writes it: leave it as it is`},
		"another pool": {func(s *v1beta1.MergeJobSpec) { s.Pool = "other" }, nil, `spec.pool: Invalid value: "other"`},
		"a wrong cron": {
			func(s *v1beta1.MergeJobSpec) { s.Schedule = &v1beta1.MergeSchedule{Cron: "x"} }, nil, "spec.schedule: Invalid",
		},
		"a wrong limit": {func(s *v1beta1.MergeJobSpec) { s.MaxReplicas = 5000 }, nil, "spec.maxReplicas: Invalid"},
		"a threshold":   {func(s *v1beta1.MergeJobSpec) { s.Threshold = ptr.To[int32](7) }, nil, ""},
		"more pods":     {func(s *v1beta1.MergeJobSpec) { s.MaxReplicas = 8 }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, cfg := NewWithT(t), config.DefaultConfiguration()
			for i := range cfg.Tiers {
				cfg.Tiers[i].QoS = ""
			}
			req := changingTo(t, merge(func(*v1beta1.MergeJobSpec) {}), merge(c.edit))
			r := &reviewer{profiles: []v1beta1.ResourceQuotaProfile{*guarded()}}
			response := newMergeValidator(r, cfg).Handle(t.Context(), req)
			g.Expect(response.Allowed).To(Equal(c.says == ""))
			g.Expect(r.verbs()).To(Equal(c.asks))
			if c.says != "" {
				g.Expect(response.Result.Message).To(HavePrefix(begin + c.says))
			}
			for _, may := range c.asks {
				r.may = may
				g.Expect(newMergeValidator(r, cfg).Handle(t.Context(), req).Allowed).To(BeTrue(), may)
			}
		})
	}
}

// The API server calls the webhooks for the fields that they judge, and they read nothing for others.
func TestChangesOfOtherFieldsAreNotLookedInto(t *testing.T) {
	content, err := os.ReadFile("../../config/webhook/conditions.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	condition := func(webhook string) string {
		_, rest, _ := strings.Cut(string(content), "name: "+webhook)
		rest, _, _ = strings.Cut(rest, "\n- name")
		return rest
	}
	r := &reviewer{unreadable: errors.New("it is read")}
	cfg := config.DefaultConfiguration()
	for webhook, c := range map[string]struct {
		hook  *validator
		empty func() (object any, spec reflect.Value)
	}{
		"validate.elastictrainingjobs.tideline.io": {newJobValidator(r, cfg, nil, outlook.Tellers{}), func() (any, reflect.Value) {
			job := &v1beta1.ElasticTrainingJob{}
			return job, reflect.ValueOf(&job.Spec).Elem()
		}},
		"validate.mergejobs.tideline.io": {newMergeValidator(r, cfg), func() (any, reflect.Value) {
			merge := &v1beta1.MergeJob{}
			return merge, reflect.ValueOf(&merge.Spec).Elem()
		}},
	} {
		before, spec := c.empty()
		for i := range spec.NumField() {
			name, _, _ := strings.Cut(spec.Type().Field(i).Tag.Get("json"), ",")
			t.Run(webhook+" "+name, func(t *testing.T) {
				after, edited := c.empty()
				fill(edited.Field(i))
				read := c.hook.Handle(t.Context(), changingTo(t, before, after)).Result
				NewWithT(t).Expect(read != nil && strings.Contains(read.Message, "it is read")).To(
					Equal(strings.Contains(condition(webhook), "'"+name+"'")))
			})
		}
	}
}

// fill sets a field to a value that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Type().Elem().Kind() == reflect.Struct {
			return
		}
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "metadata" {
				fill(v.Field(i))
				return
			}
		}
		fill(v.Field(1)) // spec of a template
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(7)
	}
}
