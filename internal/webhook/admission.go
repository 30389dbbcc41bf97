package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
)

// defaultOwner makes the user who creates a job its owner. It reads nothing but the owner: what else is wrong with an object is
// for its schema to say, which the API server checks after this.
func defaultOwner(_ context.Context, req admission.Request) admission.Response {
	var object struct {
		Spec *struct {
			Owner string `json:"owner"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil || object.Spec == nil || object.Spec.Owner != "" {
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/owner", req.UserInfo.Username))
}

// validator refuses jobs that their schema allows.
type validator struct {
	client client.Client
	config *config.Configuration
}

// Handle asks the API server for the right to assign-owner only when it is needed.
func (v *validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	job := &v1alpha1.ElasticTrainingJob{}
	if err := json.Unmarshal(req.Object.Raw, job); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the job: %w", err))
	}
	d := Decide(&job.Spec, req.UserInfo.Username, v.config)
	if d.NamesAnother {
		allowed, err := v.mayAssignOwner(ctx, req)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if !allowed {
			d.Refused = append(d.Refused, notAssignable(job.Spec.Owner, req.UserInfo.Username, req.Namespace))
		}
	}
	if len(d.Refused) == 0 {
		return admission.Allowed("")
	}
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.ElasticTrainingJobKind).GroupKind()
	refusal := apierrors.NewInvalid(kind, req.Name, d.Refused).Status()
	response := admission.Denied("")
	response.Result = &refusal
	return response
}

// mayAssignOwner asks whether the user who makes the request may name somebody else.
func (v *validator) mayAssignOwner(ctx context.Context, req admission.Request) (bool, error) {
	user := req.UserInfo
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: assignOwner, Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource,
			Namespace: req.Namespace, Name: req.Name,
		},
	}}
	if err := v.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether %s may %s: %w", user.Username, assignOwner, err)
	}
	return review.Status.Allowed, nil
}
