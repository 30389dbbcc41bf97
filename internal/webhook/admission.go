package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// completer completes jobs of one kind that are being created, and keeps the identity of those that change.
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
		Owner     json.RawMessage `json:"owner"`
		Submitter json.RawMessage `json:"submitter"`
	} `json:"spec"`
}

// isGiven is false for a field that is absent, null or an empty string.
func isGiven(value json.RawMessage) bool {
	return len(value) > 0 && string(value) != "null" && string(value) != `""`
}

// Handle makes the user who creates a job its owner, and records who submitted it. It removes an approval, which
// belongs to the job from which this one was copied. A job that changes keeps its owner and submitter.
func (c *completer) Handle(ctx context.Context, req admission.Request) admission.Response {
	var job newJob
	if err := json.Unmarshal(req.Object.Raw, &job); err != nil || job.Spec == nil {
		return admission.Allowed("")
	}
	if req.Operation == admissionv1.Update {
		return restoreIdentity(req.OldObject.Raw, &job)
	}
	var owner string
	var by v1beta1.Submitter
	for into, value := range map[any]json.RawMessage{&owner: job.Spec.Owner, &by: job.Spec.Submitter} {
		if isGiven(value) && json.Unmarshal(value, into) != nil {
			return admission.Allowed("")
		}
	}
	var patches []jsonpatch.JsonPatchOperation
	if owner == "" {
		patches = append(patches, jsonpatch.NewOperation("add", "/spec/owner", req.UserInfo.Username))
	}
	// A job that is restored from a backup keeps the submitter that it names; the validating webhook asks who may do that.
	if by.Username == "" || by.Username == req.UserInfo.Username {
		groups, refusal := c.namedGroups(ctx, req)
		if refusal != nil {
			return *refusal
		}
		patches = append(patches, jsonpatch.NewOperation("add", "/spec/submitter",
			v1beta1.Submitter{Username: req.UserInfo.Username, Groups: groups}))
	}
	if _, copied := job.Metadata.Annotations[v1beta1.AnnotationApproval]; copied {
		patches = append(patches, jsonpatch.NewOperation("remove", pathOf(v1beta1.AnnotationApproval), nil))
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
	at := field.NewPath("spec", "submitter", "groups")
	refused := denyObject(c.of.kind, req.Name, field.ErrorList{field.Forbidden(at, fmt.Sprintf(
		"%s is in %d groups that ResourceQuotaProfiles name, and a job may have %d: ask an administrator to name fewer in profiles",
		req.UserInfo.Username, len(groups), mostGroups))})
	return nil, &refused
}

// validator refuses jobs of one kind, and changes of them, that their schema allows.
type validator struct {
	client client.Client
	config *config.Configuration
	// claims reads the resource claims of pods; nil where the validator's kind has none to judge.
	claims *claimcache.Reader
	of     words
	// advise is what the user of a dry run that would succeed is told of the job that would be created in a queue; nil for nothing.
	advise func(ctx context.Context, req admission.Request, queue string) []string
	// read reads the job of a request. It returns nil for a change of fields that the validator does not judge.
	read func(req admission.Request) (judge, error)
}

// judge judges a job that was read.
type judge func(by Creation, rules Rules) Decision

type profile = v1beta1.ResourceQuotaProfile

func newJobValidator(c client.Client, cfg *config.Configuration, claims *claimcache.Reader, tellers outlook.Tellers) *validator {
	v := &validator{client: c, config: cfg, claims: claims, of: forTraining, read: func(req admission.Request) (judge, error) {
		before, job, err := decodeBoth[v1beta1.ElasticTrainingJob](req)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the job: %w", err)
		case before != nil && !changesJob(before, job):
			return nil, nil
		}
		return func(by Creation, rules Rules) Decision {
			if before != nil {
				return DecideChange(before, job, by, rules)
			}
			d := DecideCreation(job, by, rules)
			d.refuseEarlyApproval(job.Annotations)
			return d
		}, nil
	}}
	if f := tellers.Start; f != nil {
		v.advise = func(ctx context.Context, req admission.Request, queue string) []string {
			_, job, err := decodeBoth[v1beta1.ElasticTrainingJob](req)
			if err != nil {
				return nil // It was read before.
			}
			return outlook.TellStart(ctx, f, job, queue)
		}
	}
	return v
}

func newMergeValidator(c client.Client, cfg *config.Configuration) *validator {
	return &validator{client: c, config: cfg, of: forMerge, read: func(req admission.Request) (judge, error) {
		before, merge, err := decodeBoth[v1beta1.MergeJob](req)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the merge: %w", err)
		case before != nil && !changesMerge(before, merge):
			return nil, nil
		}
		return func(by Creation, rules Rules) Decision {
			if before != nil {
				return DecideMergeChange(before, merge, by, rules)
			}
			d := DecideMerge(&merge.Spec, by, rules)
			d.refuseEarlyApproval(merge.Annotations)
			return d
		}, nil
	}}
}

// decodeBoth reads the object of a request, and the one that it replaces; before is nil for an object that is being created.
func decodeBoth[T any](req admission.Request) (before, now *T, err error) {
	now = new(T)
	if err := json.Unmarshal(req.Object.Raw, now); err != nil {
		return nil, nil, err
	}
	if req.Operation != admissionv1.Update {
		return nil, now, nil
	}
	before = new(T)
	if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("as it was: %w", err)
	}
	return before, now, nil
}

// reviewTimeout is the time to read profiles and to ask the API server for a user's rights, in all. It is well below the
// timeout of the webhook, so that the user reads which question had no answer, and not that a webhook was late.
const reviewTimeout = 5 * time.Second

// Handle reads profiles only for fields that it judges, and asks the API server for rights of the user only when the job claims
// something.
func (v *validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	decide, err := v.read(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if decide == nil {
		return admission.Allowed("")
	}
	namespace, of, err := profilecache.ProfileOf(ctx, v.client, req.Namespace)
	// The cache may not have a new namespace yet. The planner checks the job against the profile again, so nothing is lost.
	if err != nil && !apierrors.IsNotFound(err) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	rules := Rules{Config: v.config, Profile: of, ClaimsOf: func(pod *corev1.PodSpec) deviceclaim.Claims {
		claims, err := v.claims.ClaimsOf(ctx, req.Namespace, pod)
		if err != nil {
			return deviceclaim.Claims{} // The planner counts them again, so nothing is lost where they cannot be read.
		}
		return claims
	}}
	d := decide(Creation{
		User: req.UserInfo.Username, Groups: req.UserInfo.Groups, Job: types.NamespacedName{Namespace: req.Namespace, Name: req.Name},
	}, rules)
	verb := "create"
	if req.Operation == admissionv1.Update {
		verb = "change"
	}
	answer := d.answerRequest(ctx, v.client, req, v.of.kind, verb+" the "+v.of.job+" again")
	if v.advise != nil && answer.Allowed && namespace != nil && req.Operation == admissionv1.Create && ptr.Deref(req.DryRun, false) {
		answer.Warnings = v.advise(ctx, req, profilecache.QueueOf(namespace, of))
	}
	return answer
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
	refusal := apierrors.NewInvalid(v1beta1.GroupVersion.WithKind(kind).GroupKind(), name, why).Status()
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
