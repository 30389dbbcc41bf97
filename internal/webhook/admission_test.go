package webhook

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// creation is a request of alice to create a job in JSON.
func creation(job string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "ads", Name: "ctr",
		Resource: metav1.GroupVersionResource{Group: "tideline.io", Version: "v1beta1", Resource: "elastictrainingjobs"},
		UserInfo: authenticationv1.UserInfo{
			Username: "alice", UID: "7", Groups: []string{"ml"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}},
		},
		Object: runtime.RawExtension{Raw: []byte(job)},
	}}
}

func TestOwnerDefaultsToTheUser(t *testing.T) {
	submitter := jsonpatch.JsonPatchOperation{
		Operation: "add", Path: "/spec/submitter", Value: v1beta1.Submitter{Username: "alice", Groups: []string{}},
	}
	patch := []jsonpatch.JsonPatchOperation{{Operation: "add", Path: "/spec/owner", Value: "alice"}, submitter}
	for job, want := range map[string][]jsonpatch.JsonPatchOperation{
		`{"spec":{}}`:              patch,
		`{"spec":{"owner":""}}`:    patch,
		`{"spec":{"owner":null}}`:  patch,
		`{"spec":{"owner":"bob"}}`: {submitter},
		// The schema refuses these afterwards, in its own words.
		`{"spec":{"owner":3}}`: nil,
		`{"spec":[]}`:          nil,
		`{}`:                   nil,
		// What else is wrong is not its business.
		`{"spec":{"minReplicas":"two"}}`: patch,
	} {
		t.Run(job, func(t *testing.T) {
			g := NewWithT(t)
			response := (&completer{&reviewer{}, forTraining}).Handle(t.Context(), creation(job))
			g.Expect(response.Allowed).To(BeTrue())
			g.Expect(response.Patches).To(Equal(want))
		})
	}
}

// reviewer answers SubjectAccessReviews by the verb, and keeps what it was asked. Namespace ads is team ads'.
type reviewer struct {
	client.Client

	profiles []v1beta1.ResourceQuotaProfile
	// unreadable is why there are no profiles.
	unreadable error
	may        string
	err        error
	asked      []authorizationv1.SubjectAccessReviewSpec
	// patience is how long it might have taken for the last answer.
	patience time.Duration
}

func (r *reviewer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if key.Name != "ads" {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), key.Name)
	}
	o.SetName(key.Name)
	o.SetLabels(map[string]string{"team": "ads"})
	return nil
}

func (r *reviewer) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*v1beta1.ResourceQuotaProfileList); ok {
		list.Items = r.profiles
	}
	r.bound(ctx)
	return r.unreadable
}

// bound notes how long an answer may take.
func (r *reviewer) bound(ctx context.Context) {
	r.patience = 0
	if until, bounded := ctx.Deadline(); bounded {
		r.patience = time.Until(until)
	}
}

func (r *reviewer) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	if review, ok := o.(*authorizationv1.SubjectAccessReview); ok {
		r.asked = append(r.asked, review.Spec)
		review.Status.Allowed = review.Spec.ResourceAttributes.Verb == r.may || r.may == "*"
	}
	r.bound(ctx)
	return r.err
}

// verbs are those that were asked for.
func (r *reviewer) verbs() []string {
	var all []string
	for i := range r.asked {
		all = append(all, r.asked[i].ResourceAttributes.Verb)
	}
	return all
}

func TestValidator(t *testing.T) {
	const refusal = `ElasticTrainingJob.tideline.io "ctr" is invalid: spec.owner: Forbidden: "bob" is not "alice", who ` +
		`creates the job. To name another owner, a user needs the verb assign-owner on elastictrainingjobs.tideline.io in ` +
		`namespace ads: leave the owner out, or ask an administrator to bind ClusterRole tideline-assign-owner`
	const (
		own     = `{"spec":{"owner":"alice"}}`
		others  = `{"spec":{"owner":"bob"}}`
		account = `{"spec":{"owner":"alice","template":{"spec":{"serviceAccountName":"trainer"}}}}`
		both    = `{"spec":{"owner":"bob","template":{"spec":{"serviceAccount":"trainer"}}}}`

		accountRefusal = `ElasticTrainingJob.tideline.io "ctr" is invalid: spec.template.spec.serviceAccountName: Forbidden: to ` +
			`run workers as ServiceAccount "trainer", a user needs the right to create pods in namespace ads, or to use ` +
			`serviceaccounts trainer there. "alice" has neither: leave serviceAccountName out, or ask an administrator for one of ` +
			`these rights`
		unanswered = `spec.template.spec.serviceAccountName: the API server did not answer whether alice may create pods in ` +
			`namespace ` +
			`ads (late): create the job again in a moment`
	)
	for name, c := range map[string]struct {
		job  string
		may  string
		err  error
		asks []string
		code int32 // 0 for allowed
		says []string
	}{
		"oneself":                 {job: own},
		"somebody else":           {job: others, asks: []string{"assign-owner"}, code: 422, says: []string{refusal}},
		"somebody else, by right": {job: others, may: "assign-owner", asks: []string{"assign-owner"}},
		"somebody else, unanswerable": {
			job: others, err: errors.New("late"), asks: []string{"assign-owner"}, code: 500, says: []string{"spec.owner: ", "late"},
		},
		"an account": {job: account, asks: []string{"create", "use"}, code: 422, says: []string{accountRefusal}},
		"an account, by creating pods": {
			job: account, may: "create", asks: []string{"create"},
		},
		"an account, by its own right": {job: account, may: "use", asks: []string{"create", "use"}},
		"an account, unanswerable": {
			job: account, may: "create", err: errors.New("late"), asks: []string{"create"}, code: 500, says: []string{unanswered},
		},
		"an account, by a right to something else": {
			job: account, may: "assign-owner", asks: []string{"create", "use"}, code: 422, says: []string{accountRefusal},
		},
		"both, and a right to one": {
			job: both, may: "assign-owner", asks: []string{"assign-owner", "create", "use"}, code: 422,
			says: []string{"spec.template.spec.serviceAccount: Forbidden"},
		},
		"both": {
			job: both, asks: []string{"assign-owner", "create", "use"}, code: 422,
			says: []string{"spec.owner: Forbidden", "spec.template.spec.serviceAccount: Forbidden"},
		},
		"no job":          {job: `{"spec":3}`, code: 400, says: []string{"read the job"}},
		"an unknown tier": {job: `{"spec":{"owner":"alice","tier":"gold"}}`, code: 422, says: []string{`spec.tier: Invalid`}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &reviewer{may: c.may, err: c.err}
			response := newJobValidator(r, config.DefaultConfiguration(), nil, outlook.Tellers{}).Handle(t.Context(), creation(c.job))
			g.Expect(response.Allowed).To(Equal(c.code == 0))
			g.Expect(r.verbs()).To(Equal(c.asks), "it asks for what it must know, and no more")
			if len(c.asks) > 0 {
				g.Expect(r.patience).To(And(BeNumerically(">", 0), BeNumerically("<=", reviewTimeout)), "it does not wait for ever")
			}
			if c.code != 0 {
				g.Expect(response.Result.Code).To(Equal(c.code))
				for _, says := range c.says {
					g.Expect(response.Result.Message).To(ContainSubstring(says))
				}
			}
		})
	}
}

// The same is asked and said of merges, in their words, and of the Secret by which they read their store.
func TestValidatorOfMerges(t *testing.T) {
	const (
		begin  = `MergeJob.tideline.io "ctr" is invalid: `
		merge  = `"pool":"tideline-merge","store":{"type":"S3","s3":{"bucket":"models","credentialsRef":{"name":"key"}}}`
		secret = `spec.store.s3.credentialsRef.name: Forbidden: to use Secret "key", a user needs the right to get it in ` +
			`namespace ads, which "alice" does not have: name a Secret that you may read, or ask an administrator for the right`
	)
	for name, c := range map[string]struct {
		merge string
		may   string
		err   error
		asks  []string
		code  int32 // 0 for allowed
		says  string
	}{
		"a Secret that she may read":     {merge: `{"spec":{` + merge + `}}`, may: "get", asks: []string{"get"}},
		"a Secret that she may not read": {merge: `{"spec":{` + merge + `}}`, asks: []string{"get"}, code: 422, says: begin + secret},
		"a Secret, by a right to another": {
			merge: `{"spec":{` + merge + `}}`, may: "list", asks: []string{"get"}, code: 422, says: secret,
		},
		"unanswerable": {
			merge: `{"spec":{` + merge + `}}`, err: errors.New("late"), asks: []string{"get"}, code: 500,
			says: `spec.store.s3.credentialsRef.name: the API server did not answer whether alice may get secrets in namespace ads ` +
				`(late): ` +
				`create the merge again in a moment`,
		},
		"somebody else": {
			merge: `{"spec":{"owner":"bob",` + merge + `}}`, may: "get", asks: []string{"assign-owner", "get"}, code: 422,
			says: begin + `spec.owner: Forbidden: "bob" is not "alice", who creates the merge. To name another owner, a user needs ` +
				`the verb assign-owner on mergejobs.tideline.io in namespace ads: leave the owner out, or ask an administrator to ` +
				`bind ClusterRole ` +
				`tideline-assign-owner`,
		},
		"an account": {
			merge: `{"spec":{"template":{"spec":{"serviceAccountName":"merger"}},` + merge + `}}`, may: "get",
			asks: []string{"create", "use", "get"}, code: 422,
			says: begin + `spec.template.spec.serviceAccountName: Forbidden: to run pods as ServiceAccount "merger", a user needs ` +
				`the right to create pods in namespace ads, or to use serviceaccounts merger there. "alice" has neither: leave ` +
				`serviceAccountName out, or ask an administrator for one of these rights`,
		},
		"no merge": {merge: `{"spec":3}`, code: 400, says: "read the merge"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &reviewer{may: c.may, err: c.err}
			response := newMergeValidator(r, config.DefaultConfiguration()).Handle(t.Context(), creation(c.merge))
			g.Expect(response.Allowed).To(Equal(c.code == 0))
			g.Expect(r.verbs()).To(Equal(c.asks), "it asks for what it must know, and no more")
			if c.code != 0 {
				g.Expect(response.Result.Code).To(Equal(c.code))
				g.Expect(response.Result.Message).To(ContainSubstring(c.says))
			}
		})
	}
}

func TestRightIsAskedForTheUserAsTheyCame(t *testing.T) {
	g := NewWithT(t)
	r := &reviewer{}
	v := newJobValidator(r, config.DefaultConfiguration(), nil, outlook.Tellers{})
	v.Handle(t.Context(), creation(`{"spec":{"owner":"bob"}}`))
	g.Expect(r.asked).To(ConsistOf(authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "7", Groups: []string{"ml"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "assign-owner", Group: "tideline.io", Version: "v1beta1", Resource: "elastictrainingjobs",
			Namespace: "ads", Name: "ctr",
		},
	}))
}

func TestProfileOfTheNamespaceDecides(t *testing.T) {
	profile := v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "ads"}},
			Tiers:             []v1beta1.ProfileTier{{Name: "exploratory"}, {Name: "small-traffic"}},
			Merges:            &v1beta1.ProfileMerges{Pools: []string{"merge-ads"}},
		},
	}
	cfg := config.DefaultConfiguration()
	cfg.Merges.Pools = []string{"tideline-merge", "merge-ads"}
	r := &reviewer{profiles: []v1beta1.ResourceQuotaProfile{profile}}
	for job, refusal := range map[string]string{
		`{"spec":{"owner":"alice","tier":"main-traffic"}}`: `spec.tier: Invalid value: "main-traffic": profile team-ads does ` +
			`not allow this tier; it allows exploratory, small-traffic: use one of these, or ask an administrator to allow it`,
		`{"spec":{"owner":"alice","tier":"small-traffic"}}`: "",
		`{"spec":{"owner":"alice"}}`:                        "",
	} {
		t.Run(job, func(t *testing.T) {
			response := newJobValidator(r, cfg, nil, outlook.Tellers{}).Handle(t.Context(), creation(job))
			NewWithT(t).Expect(response.Allowed).To(Equal(refusal == ""))
			if refusal != "" {
				NewWithT(t).Expect(response.Result.Message).To(ContainSubstring(refusal))
			}
		})
	}
	t.Run("a pool", func(t *testing.T) {
		g := NewWithT(t)
		response := newMergeValidator(r, cfg).Handle(t.Context(), creation(`{"spec":{"owner":"alice","pool":"tideline-merge"}}`))
		g.Expect(response.Result.Message).To(ContainSubstring(`spec.pool: Invalid value: "tideline-merge": profile team-ads ` +
			`does not allow this pool; it allows merge-ads: use one of these, or ask an administrator to allow it`))
	})
	t.Run("another namespace", func(t *testing.T) {
		other := creation(`{"spec":{"owner":"alice","tier":"main-traffic"}}`)
		other.Namespace = "search"
		allowed := newJobValidator(r, cfg, nil, outlook.Tellers{}).Handle(t.Context(), other).Allowed
		NewWithT(t).Expect(allowed).To(BeTrue(), "its cache lags, and no profile is known")
	})
}
