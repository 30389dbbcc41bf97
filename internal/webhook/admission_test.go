package webhook

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/internal/config"
)

// creation is a request of alice to create a job in JSON.
func creation(job string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "ads", Name: "ctr",
		Resource: metav1.GroupVersionResource{Group: "tideline.io", Version: "v1alpha1", Resource: "elastictrainingjobs"},
		UserInfo: authenticationv1.UserInfo{
			Username: "alice", UID: "7", Groups: []string{"ml"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}},
		},
		Object: runtime.RawExtension{Raw: []byte(job)},
	}}
}

func TestOwnerDefaultsToTheUser(t *testing.T) {
	patch := []jsonpatch.JsonPatchOperation{{Operation: "add", Path: "/spec/owner", Value: "alice"}}
	for job, want := range map[string][]jsonpatch.JsonPatchOperation{
		`{"spec":{}}`:              patch,
		`{"spec":{"owner":""}}`:    patch,
		`{"spec":{"owner":"bob"}}`: nil,
		// The schema refuses these afterwards, in its own words.
		`{"spec":{"owner":3}}`: nil,
		`{"spec":[]}`:          nil,
		`{}`:                   nil,
		// What else is wrong is not its business.
		`{"spec":{"minReplicas":"two"}}`: patch,
	} {
		t.Run(job, func(t *testing.T) {
			g := NewWithT(t)
			response := defaultOwner(t.Context(), creation(job))
			g.Expect(response.Allowed).To(BeTrue())
			g.Expect(response.Patches).To(Equal(want))
		})
	}
}

// reviewer answers SubjectAccessReviews and keeps what it was asked last.
type reviewer struct {
	client.Client

	allowed bool
	err     error
	asked   *authorizationv1.SubjectAccessReviewSpec
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if review, ok := o.(*authorizationv1.SubjectAccessReview); ok {
		r.asked, review.Status.Allowed = &review.Spec, r.allowed
	}
	return r.err
}

func TestValidator(t *testing.T) {
	const refusal = `ElasticTrainingJob.tideline.io "ctr" is invalid: spec.owner: Forbidden: "bob" is not "alice", ` +
		`who creates the job, and naming somebody else takes the right to assign-owner on elastictrainingjobs.tideline.io in ` +
		`namespace ads: leave the owner out, or have an admin bind ClusterRole tideline-assign-owner`
	for name, c := range map[string]struct {
		job  string
		may  bool
		err  error
		asks bool
		code int32 // 0 for allowed
		says string
	}{
		"oneself":                     {job: `{"spec":{"owner":"alice"}}`},
		"somebody else":               {job: `{"spec":{"owner":"bob"}}`, asks: true, code: 422, says: refusal},
		"somebody else, by right":     {job: `{"spec":{"owner":"bob"}}`, may: true, asks: true},
		"somebody else, unanswerable": {job: `{"spec":{"owner":"bob"}}`, err: errors.New("late"), asks: true, code: 500, says: "late"},
		"no job":                      {job: `{"spec":3}`, code: 400, says: "read the job"},
		"an unknown tier":             {job: `{"spec":{"owner":"alice","tier":"gold"}}`, code: 422, says: `spec.tier: Invalid`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &reviewer{allowed: c.may, err: c.err}
			response := (&validator{client: r, config: config.Defaults()}).Handle(t.Context(), creation(c.job))
			g.Expect(response.Allowed).To(Equal(c.code == 0))
			if !c.asks {
				g.Expect(r.asked).To(BeNil(), "it asks only when it must")
			} else {
				g.Expect(r.asked).NotTo(BeNil(), "it asks")
			}
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
	(&validator{client: r, config: config.Defaults()}).Handle(t.Context(), creation(`{"spec":{"owner":"bob"}}`))
	g.Expect(*r.asked).To(Equal(authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "7", Groups: []string{"ml"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "assign-owner", Group: "tideline.io", Version: "v1alpha1", Resource: "elastictrainingjobs",
			Namespace: "ads", Name: "ctr",
		},
	}))
}
