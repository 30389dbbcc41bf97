package webhook

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/quota/whatif"
)

// tellTimeout is well below the timeout of the webhooks, which is ten seconds.
const tellTimeout = 8 * time.Second

// sharesValidator refuses changes of a profile, other than of its reservations and data sets, by users who may not set shares.
type sharesValidator struct {
	client client.Client
	// teller answers dry runs that ask what the profile would have changed; nil for not at all.
	teller outlook.ChangeTeller
}

// Handle judges a profile, and tells a dry run that asks for it what the profile would have changed.
func (v *sharesValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	before, now, err := decodeBoth[profile](req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the ResourceQuotaProfile: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	review, done := context.WithTimeout(ctx, reviewTimeout)
	defer done()
	answer := v.judge(review, req, changedShare(before, now))
	value, asked := now.Annotations[v1beta1.AnnotationWhatIf]
	if !asked || v.teller == nil || !answer.Allowed || !ptr.Deref(req.DryRun, false) {
		return answer
	}
	takesOthers := before == nil || !equality.Semantic.DeepEqual(before.Spec.NamespaceSelector, now.Spec.NamespaceSelector)
	window, names, refused := v.mayHear(review, req, value, takesOthers)
	if refused != "" {
		answer.Warnings = []string{refused}
		return answer
	}
	answer.Warnings = v.teller.TellChange(ctx, now, window, names)
	return answer
}

// mayHear reads for what time a dry run asks, and whether the user may hear the figures of all teams, which is who may set
// shares, and their names, which is who may see the profiles. Otherwise it returns why not. takesOthers is true for a profile
// that may take namespaces of other teams: figures of its team would then be theirs.
func (v *sharesValidator) mayHear(
	ctx context.Context, req admission.Request, value string, takesOthers bool,
) (window time.Duration, names bool, refused string) {
	window, err := whatif.ParseWindow(value)
	if err != nil {
		return 0, false, fmt.Sprintf("metadata.annotations[%s]: %v", v1beta1.AnnotationWhatIf, err)
	}
	may, err := v.mayProfiles(ctx, req, v1beta1.VerbSetShare, req.Name)
	if err == nil && !may {
		return 0, false, fmt.Sprintf("What profile %s would have changed is told to those who may change it: ask an administrator to "+
			"bind ClusterRole tideline-set-share.", req.Name)
	}
	if err == nil {
		names, err = v.mayProfiles(ctx, req, "list", "")
	}
	if err == nil && takesOthers && !names {
		return 0, false, fmt.Sprintf("What profile %s would have changed with namespaces of others is told to those who may list "+
			"ResourceQuotaProfiles: leave spec.namespaceSelector as it is.", req.Name)
	}
	if err != nil {
		return 0, false, fmt.Sprintf("What profile %s would have changed is not known: %v: ask again.", req.Name, err)
	}
	return window, names, ""
}

// mayProfiles asks the API server whether the user has a verb on profiles, or on the one of a name.
func (v *sharesValidator) mayProfiles(ctx context.Context, req admission.Request, verb, name string) (bool, error) {
	return mayOne(ctx, v.client, req.UserInfo, []authorizationv1.ResourceAttributes{{
		Verb: verb, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: "resourcequotaprofiles",
		Name: name,
	}})
}

// judge asks the API server for the right of the user only when more than reservations changed.
func (v *sharesValidator) judge(ctx context.Context, req admission.Request, changed []*field.Path) admission.Response {
	if len(changed) == 0 {
		return admission.Allowed("")
	}
	allowed, err := v.mayProfiles(ctx, req, v1beta1.VerbSetShare, req.Name)
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
			"an administrator to bind ClusterRole tideline-set-share", v1beta1.VerbSetShare, v1beta1.GroupVersion.Group, req.Name,
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
