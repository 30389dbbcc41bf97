package webhook

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// setShare is the verb on resourcequotaprofiles that lets a user change more of a profile than its reservations and data sets.
const setShare = "set-share"

// sharesValidator refuses changes of a profile, other than of its reservations and data sets, by users who may not set shares.
type sharesValidator struct {
	client client.Client
}

// Handle asks the API server for the right of the user only when more than reservations changed.
func (v *sharesValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	before, now, err := decodeBoth[profile](req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the ResourceQuotaProfile: %w", err))
	}
	changed := changedShare(before, now)
	if len(changed) == 0 {
		return admission.Allowed("")
	}
	allowed, err := mayOne(ctx, v.client, req.UserInfo, []authorizationv1.ResourceAttributes{{
		Verb: setShare, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version,
		Resource: "resourcequotaprofiles", Name: req.Name,
	}})
	if err != nil {
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("%s: %w: write the profile again in a moment", changed[0], err))
	}
	if allowed {
		return admission.Allowed("")
	}
	var d Decision
	for _, at := range changed {
		d.Refused = append(d.Refused, field.Forbidden(at, fmt.Sprintf("to write more of a profile than spec.reservations and "+
			"spec.dataSets, a user needs the verb %s on resourcequotaprofiles.%s %s, which %q does not have: change only these, or ask "+
			"an administrator to bind ClusterRole tideline-set-share", setShare, v1beta1.GroupVersion.Group, req.Name,
			req.UserInfo.Username)))
	}
	return denyObject(v1beta1.ResourceQuotaProfileKind, req.Name, d.Refused)
}

// changedShare are the fields of a profile, apart from its reservations and data sets, that a change concerns. A new profile is
// one change, of its spec.
func changedShare(before, now *profile) []*field.Path {
	at := field.NewPath("spec")
	if before == nil {
		return []*field.Path{at}
	}
	was, is := before.Spec, now.Spec
	was.Reservations, is.Reservations = nil, nil
	was.DataSets, is.DataSets = nil, nil
	changed := changedFields(at, reflect.ValueOf(was), reflect.ValueOf(is))
	// Owners decide when Kubernetes deletes the profile.
	if !equality.Semantic.DeepEqual(before.OwnerReferences, now.OwnerReferences) {
		changed = append(changed, field.NewPath("metadata", "ownerReferences"))
	}
	return changed
}

// changedFields are the fields in which two structs of one type differ; of fields that are structs themselves, their fields.
func changedFields(at *field.Path, was, is reflect.Value) []*field.Path {
	var changed []*field.Path
	for i := range was.NumField() {
		name, _, _ := strings.Cut(was.Type().Field(i).Tag.Get("json"), ",")
		switch old, now := was.Field(i), is.Field(i); {
		case equality.Semantic.DeepEqual(old.Interface(), now.Interface()):
		case old.Kind() == reflect.Struct:
			changed = append(changed, changedFields(at.Child(name), old, now)...)
		default:
			changed = append(changed, at.Child(name))
		}
	}
	return changed
}
