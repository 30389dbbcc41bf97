package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// GuardPolicy is the name of the ValidatingAdmissionPolicy of config/guard, and of its binding, by which the API server refuses
// other workloads.
const GuardPolicy = "tideline-other-workloads"

// Keys of the ConfigMap that tells that policy of one profile. In lists a space parts the elements, which have none.
const (
	// guardNamespaces are the requirements of the profile's selector, parted by semicolons: "In team ads,search;Exists gpu".
	guardNamespaces = "namespaces"
	// guardExcept are namespaces that the selector chooses and older profiles have.
	guardExcept = "except"
	// guardResources are the resources that other pods may not ask for.
	guardResources = "resources"
	// guardOperator is the user who creates the pods of Tideline's jobs.
	guardOperator = "operator"
	// guardProfile is the profile, for the words of a refusal.
	guardProfile = "profile"
)

// Guarding is what is known of how the API server refuses other workloads.
type Guarding struct {
	// Operator is the user as whom the API server knows the operator; empty while that is unknown.
	Operator string
	// NotInForce is in one sentence why the API server judges no pods, and what to do; empty if it judges them.
	NotInForce string
	// ConfigMaps are those that tell the API server of profiles, by the UID of the profile that controls them.
	ConfigMaps map[types.UID]*corev1.ConfigMap
}

// GuardDecision is what to do about the ConfigMap of a profile's guard: at most one of them is set.
type GuardDecision struct {
	// Create is a ConfigMap that is missing, and Delete one that the profile does not want.
	Create, Delete *corev1.ConfigMap
	// Apply is what Have is to become.
	Apply, Have *corev1.ConfigMap
}

// RefusesOthers tells whether the API server is to refuse accelerators to pods that are not of Tideline's jobs.
func RefusesOthers(p *v1beta1.ResourceQuotaProfile) bool {
	return p.Spec.Caps != nil && p.Spec.Caps.OtherWorkloads == v1beta1.OtherWorkloadsRefuse
}

// GuardGap is in one sentence why the API server judges no pods, and what to do; empty if it judges them by the ConfigMaps of the
// operator's namespace. Policy and binding are those by the name [GuardPolicy], nil where there is none.
func GuardGap(
	policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding,
	namespace string,
) string {
	const apply = " Apply config/guard."
	switch {
	case policy == nil:
		return fmt.Sprintf("There is no ValidatingAdmissionPolicy %s.%s", GuardPolicy, apply)
	case binding == nil:
		return fmt.Sprintf("There is no ValidatingAdmissionPolicyBinding %s.%s", GuardPolicy, apply)
	case binding.Spec.PolicyName != GuardPolicy || binding.Spec.ParamRef == nil ||
		!slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s was changed, and refuses nothing.%s", GuardPolicy, apply)
	case binding.Spec.ParamRef.Namespace != namespace:
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s reads ConfigMaps of namespace %s, and the operator writes them in %s: "+
			"set spec.paramRef.namespace.", GuardPolicy, binding.Spec.ParamRef.Namespace, namespace)
	}
	return ""
}

// planGuard decides about the guard of a profile, and says whether it is in force. An invalid profile keeps what it has.
func (r *review) planGuard() {
	g, have := r.p.o.Guarding, r.p.o.Guarding.ConfigMaps[r.profile.UID]
	switch {
	case r.given.Invalid != "":
		return
	case !RefusesOthers(r.profile):
		r.d.Guard.Delete = have
		r.conditionWriter().Remove(v1beta1.ConditionOtherWorkloadsRefused)
		return
	case g.Operator == "":
		// Without that name the API server would refuse the pods of Tideline's jobs too.
		r.sayNoGuard("The operator does not know yet as whom the API server knows it.")
		r.p.wakeAfter(RefusedInterval)
		return
	}
	want := r.guard(g.Operator)
	switch {
	case have == nil:
		r.d.Guard.Create = want
	case !maps.Equal(have.Data, want.Data) || have.Labels[v1beta1.LabelGuard] != v1beta1.GuardOtherWorkloads:
		r.d.Guard.Apply, r.d.Guard.Have = want, have
	}
	r.sayGuard(want, have)
}

// sayGuard says whether the API server refuses other pods, with the ConfigMap that it is to judge by and the one that it has.
func (r *review) sayGuard(want, have *corev1.ConfigMap) {
	toWrite := r.d.Guard.Create != nil || r.d.Guard.Apply != nil
	switch missing := r.p.o.Guarding.NotInForce; {
	case missing != "":
		r.sayNoGuard(missing)
	case toWrite && r.given.GuardRefused != "":
		r.sayNoGuard(fmt.Sprintf("ConfigMap %s/%s cannot be written: %s.", want.Namespace, want.Name, r.given.GuardRefused))
	case have == nil:
		r.sayNoGuard(fmt.Sprintf("ConfigMap %s/%s is being written.", want.Namespace, want.Name))
	default:
		r.setCondition(v1beta1.ConditionOtherWorkloadsRefused, metav1.ConditionTrue, v1beta1.ReasonGuardInForce, fmt.Sprintf(
			"The API server refuses pods that are not of Tideline's jobs and ask for resource claims or %s.",
			strings.Join(r.guardedResources(), ", ")))
	}
}

func (r *review) sayNoGuard(why string) {
	r.setCondition(v1beta1.ConditionOtherWorkloadsRefused, metav1.ConditionFalse, v1beta1.ReasonGuardMissing,
		why+" Until then other pods get accelerators, and count.")
}

// guard is the ConfigMap by which the API server judges pods of the profile's namespaces. It has the selector itself, so that a
// new namespace is guarded from its first moment, also while no operator runs.
func (r *review) guard(operator string) *corev1.ConfigMap {
	except := make([]string, 0, len(r.p.conflicts[r.profile.Name]))
	for _, c := range r.p.conflicts[r.profile.Name] {
		except = append(except, c.Namespace)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.p.o.Namespace, Name: "tideline-guard-" + r.profile.Name,
			Labels: map[string]string{v1beta1.LabelGuard: v1beta1.GuardOtherWorkloads, v1beta1.LabelProfile: r.profile.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1beta1.OwnerVersion.String(), Kind: v1beta1.ResourceQuotaProfileKind, Name: r.profile.Name,
				UID: r.profile.UID, Controller: ptr.To(true),
			}},
		},
		Data: map[string]string{
			guardProfile: r.profile.Name, guardOperator: operator, guardNamespaces: requirements(&r.profile.Spec.NamespaceSelector),
			guardExcept: strings.Join(except, " "), guardResources: strings.Join(r.guardedResources(), " "),
		},
	}
}

// guardedResources are, by name, all accelerators in all their forms, and further devices that the profile limits. Cores and
// memory are everybody's.
func (r *review) guardedResources() []string {
	var all []string
	for _, name := range r.p.o.Config.CountedAccelerators() {
		all = append(all, r.p.o.Config.AcceleratorForms(name)...)
	}
	for _, share := range r.p.o.Config.Sharing {
		if share.Times != "" {
			all = append(all, share.Times)
		}
	}
	for _, c := range slices.Concat(r.profile.Spec.Caps.PerUser, r.profile.Spec.Caps.PerJob) {
		all = append(all, c.Resource)
	}
	for name := range r.profile.Spec.Queue.Capability {
		all = append(all, string(name))
	}
	all = slices.DeleteFunc(all, func(name string) bool { return !strings.Contains(name, "/") })
	slices.Sort(all)
	return slices.Compact(all)
}

// requirements writes a selector as the policy reads it. Keys and values of labels have neither space, comma nor semicolon.
func requirements(selector *metav1.LabelSelector) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		all = append(all, fmt.Sprintf("In %s %s", key, selector.MatchLabels[key]))
	}
	for _, e := range selector.MatchExpressions {
		words := []string{string(e.Operator), e.Key}
		if len(e.Values) > 0 {
			words = append(words, strings.Join(e.Values, ","))
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ";")
}
