package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// completer completes jobs of one kind that are being created.
type completer struct {
	client client.Reader
	of     words
}

// newJob is the part of a job that completers read. The API server checks the schema after this webhook, so any other error
// in the object is reported there.
type newJob struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec *struct {
		Owner     string `json:"owner"`
		Submitter *struct {
			Username string `json:"username"`
		} `json:"submitter"`
	} `json:"spec"`
}

// Handle makes the user who creates a job its owner, and records who submitted it. It removes an approval, which
// belongs to the job from which this one was copied.
func (c *completer) Handle(ctx context.Context, req admission.Request) admission.Response {
	var job newJob
	if err := json.Unmarshal(req.Object.Raw, &job); err != nil || job.Spec == nil {
		return admission.Allowed("")
	}
	var patches []jsonpatch.JsonPatchOperation
	if job.Spec.Owner == "" {
		patches = append(patches, jsonpatch.NewOperation("add", "/spec/owner", req.UserInfo.Username))
	}
	// A job that is restored from a backup keeps the submitter that it names; the validating webhook asks who may do that.
	if by := job.Spec.Submitter; by == nil || by.Username == "" || by.Username == req.UserInfo.Username {
		groups, refusal := c.namedGroups(ctx, req)
		if refusal != nil {
			return *refusal
		}
		patches = append(patches, jsonpatch.NewOperation("add", "/spec/submitter",
			v1alpha1.Submitter{Username: req.UserInfo.Username, Groups: groups}))
	}
	if _, copied := job.Metadata.Annotations[v1alpha1.AnnotationApproval]; copied {
		patches = append(patches, jsonpatch.NewOperation("remove", pathOf(v1alpha1.AnnotationApproval), nil))
	}
	return admission.Patched("", patches...)
}

// mostGroups is how many groups the schema lets a job have.
const mostGroups = 64

// namedGroups are the groups of the user that profiles name. Others are left out: a user may have thousands, and they decide
// nothing. The response is a refusal, or nil.
func (c *completer) namedGroups(ctx context.Context, req admission.Request) ([]string, *admission.Response) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	profiles, err := profilecache.ReadProfiles(ctx, c.client)
	if err != nil {
		unknown := admission.Errored(http.StatusInternalServerError, fmt.Errorf(
			"spec.submitter: Tideline cannot read which groups of %s the profiles name (%w): create the %s again in a moment",
			req.UserInfo.Username, err, c.of.job))
		return nil, &unknown
	}
	groups := ownership.NamedGroups(req.UserInfo.Groups, profiles.All())
	if len(groups) <= mostGroups {
		return groups, nil
	}
	refused := denyObject(c.of.kind, req.Name, field.ErrorList{field.Forbidden(field.NewPath("spec", "submitter", "groups"), fmt.Sprintf(
		"%s is in %d groups that ResourceQuotaProfiles name, and a job may have %d: ask an administrator to name fewer in profiles",
		req.UserInfo.Username, len(groups), mostGroups))})
	return nil, &refused
}

// validator refuses jobs of one kind that their schema allows.
type validator struct {
	client client.Client
	of     words
	// decide reads a job in JSON and judges it.
	decide func(job []byte, by Creation, of *profile) (Decision, error)
}

type profile = v1alpha1.ResourceQuotaProfile

func newJobValidator(c client.Client, cfg *config.Configuration) *validator {
	return &validator{client: c, of: forTraining, decide: func(content []byte, by Creation, p *profile) (Decision, error) {
		job := &v1alpha1.ElasticTrainingJob{}
		if err := json.Unmarshal(content, job); err != nil {
			return Decision{}, fmt.Errorf("read the job: %w", err)
		}
		d := DecideCreation(job, by, Rules{cfg, p})
		d.refuseEarlyApproval(job.Annotations)
		return d, nil
	}}
}

func newMergeValidator(c client.Client, cfg *config.Configuration) *validator {
	return &validator{client: c, of: forMerge, decide: func(content []byte, by Creation, p *profile) (Decision, error) {
		merge := &v1alpha1.MergeJob{}
		if err := json.Unmarshal(content, merge); err != nil {
			return Decision{}, fmt.Errorf("read the merge: %w", err)
		}
		d := DecideMerge(&merge.Spec, by, Rules{cfg, p})
		d.refuseEarlyApproval(merge.Annotations)
		return d, nil
	}}
}

// reviewTimeout is the time to read profiles and to ask the API server for a user's rights, in all. It is well below the
// timeout of the webhook, so that the user reads which question had no answer, and not that a webhook was late.
const reviewTimeout = 5 * time.Second

// Handle asks the API server for rights of the user only when the job claims something.
func (v *validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	_, of, err := profilecache.ProfileOf(ctx, v.client, req.Namespace)
	// The cache may not have a new namespace yet. The planner checks the job against the profile again, so nothing is lost.
	if err != nil && !apierrors.IsNotFound(err) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	d, err := v.decide(req.Object.Raw, Creation{
		User: req.UserInfo.Username, Groups: req.UserInfo.Groups, Job: types.NamespacedName{Namespace: req.Namespace, Name: req.Name},
	}, of)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return d.answerRequest(ctx, v.client, req, v.of.kind, "create the "+v.of.job+" again")
}

// answerRequest asks the API server for the claimed rights, and answers the request. again is what the user does if the API
// server gives no answer.
func (d *Decision) answerRequest(
	ctx context.Context, c client.Client, req admission.Request, kind, again string,
) admission.Response {
	for _, claim := range d.Claims {
		allowed, err := mayOne(ctx, c, req.UserInfo, claim.Rights)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("%s: %w: %s in a moment", claim.Refusal.Field, err, again))
		}
		if !allowed {
			d.Refused = append(d.Refused, claim.Refusal)
		}
	}
	if len(d.Refused) == 0 {
		return admission.Allowed("")
	}
	return denyObject(kind, req.Name, d.Refused)
}

// denyObject refuses an object in the form of the API server's own errors, so that kubectl shows one line a field.
func denyObject(kind, name string, why field.ErrorList) admission.Response {
	refusal := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), name, why).Status()
	response := admission.Denied("")
	response.Result = &refusal
	return response
}

// mayOne asks whether the user has one of these rights.
func mayOne(
	ctx context.Context, c client.Client, user authenticationv1.UserInfo, rights []authorizationv1.ResourceAttributes,
) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	for i := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: &rights[i],
		}}
		if err := c.Create(ctx, review); err != nil {
			where := rights[i].Name
			if rights[i].Namespace != "" {
				where = "in namespace " + rights[i].Namespace
			}
			return false, fmt.Errorf("the API server did not answer whether %s may %s %s %s (%w)", user.Username, rights[i].Verb,
				rights[i].Resource, where, err)
		}
		if review.Status.Allowed {
			return true, nil
		}
	}
	return false, nil
}
