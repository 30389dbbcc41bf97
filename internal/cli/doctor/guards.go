package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota"
)

// guards are the policies of config/guard, by which the API server keeps the operator's account to what is its own.
var guards = []string{
	"tideline-operator-jobs", "tideline-operator-owned", "tideline-operator-pods", "tideline-operator-webhooks",
}

// ledgerClaim is the claim of config/manager.
const ledgerClaim = "tideline-ledger"

// gatherGuards reads which policies are missing, or in force nowhere, and which profiles need the one against other workloads.
func gatherGuards(ctx context.Context, c client.Client, f *Facts) error {
	policies := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	bindings := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
	for _, list := range []client.ObjectList{policies, bindings} {
		if err := c.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("list ValidatingAdmissionPolicies and their bindings: %w", err)
		}
	}
	profiles := &v1beta1.ResourceQuotaProfileList{}
	if err := c.List(ctx, profiles); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list ResourceQuotaProfiles: %w", err)
	}
	noteOthers(f, policies.Items, bindings.Items, profiles.Items)
	there, inForce := map[string]bool{}, map[string]bool{}
	for i := range policies.Items {
		there[policies.Items[i].Name] = true
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if there[b.Spec.PolicyName] && slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny) {
			inForce[b.Spec.PolicyName] = true
		}
	}
	missing := map[string]bool{}
	for _, name := range guards {
		if !inForce[name] {
			missing[name] = true
		}
	}
	f.MissingGuards = slices.Sorted(maps.Keys(missing))
	return nil
}

// guarded judges whether the operator's account is kept to what is its own. An operator outside the cluster has none.
func guarded(f Facts) Finding {
	switch {
	case f.Local:
		return Finding{Level: OK, What: "The operator runs outside the cluster, with the rights of a kubeconfig: no policy is needed."}
	case len(f.MissingGuards) > 0:
		return Finding{
			Level: Warn,
			What: fmt.Sprintf("Whoever has the token of the operator's account may write what others own: no "+
				"ValidatingAdmissionPolicy is in force by the name of %s.", strings.Join(f.MissingGuards, ", ")),
			Do: "kubectl apply -k config/guard",
		}
	}
	return Finding{Level: OK, What: fmt.Sprintf("Policies keep the operator's account to what is its own (%d).", len(guards))}
}

// noteOthers notes which profiles refuse other workloads, and why the API server does not.
func noteOthers(
	f *Facts, policies []admissionregistrationv1.ValidatingAdmissionPolicy,
	bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding, profiles []v1beta1.ResourceQuotaProfile,
) {
	f.RefusingOthers, f.OthersGap = nil, ""
	for i := range profiles {
		if quota.RefusesOthers(&profiles[i]) {
			f.RefusingOthers = append(f.RefusingOthers, profiles[i].Name)
		}
	}
	var policy *admissionregistrationv1.ValidatingAdmissionPolicy
	for i := range policies {
		if policies[i].Name == quota.GuardPolicy {
			policy = &policies[i]
		}
	}
	var binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for i := range bindings {
		if bindings[i].Name == quota.GuardPolicy {
			binding = &bindings[i]
		}
	}
	f.OthersGap = quota.GuardGap(policy, binding, f.Namespace)
}

// others judges whether the API server refuses other workloads where profiles want that: nothing is to be said where none does.
func others(f Facts) []Finding {
	slices.Sort(f.RefusingOthers)
	names := strings.Join(f.RefusingOthers, ", ")
	switch {
	case names == "":
		return nil
	case f.OthersGap != "":
		return []Finding{{
			Level: Warn,
			What: fmt.Sprintf("Pods that are not of Tideline's jobs get accelerators in the namespaces of profiles that refuse them "+
				"(%s), and pass their caps: no ValidatingAdmissionPolicy %s is in force.", names, quota.GuardPolicy),
			Do: f.OthersGap,
		}}
	}
	return []Finding{{Level: OK, What: fmt.Sprintf("Pods that are not of Tideline's jobs get no accelerators of the profiles that "+
		"refuse them (%s).", names)}}
}

// gatherClaim reads whether the ledger's claim has a volume.
func gatherClaim(ctx context.Context, c client.Client, f *Facts) error {
	claim := &corev1.PersistentVolumeClaim{}
	err := c.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: ledgerClaim}, claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read PersistentVolumeClaim %s: %w", ledgerClaim, err)
	}
	f.ClaimUnbound = err == nil && claim.Status.Phase != corev1.ClaimBound
	return nil
}

// claims judges the ledger's claim: nothing is to be said of one that has its volume, or is not there.
func claims(f Facts) []Finding {
	if !f.ClaimUnbound {
		return nil
	}
	return []Finding{{
		What: fmt.Sprintf("PersistentVolumeClaim %s/%s, which the ledger is on, has no volume, and the operator's pod waits for it.",
			f.Namespace, ledgerClaim),
		Do: fmt.Sprintf("See why, by kubectl describe --namespace %s pvc %s. Without a default StorageClass, name one, or leave the "+
			"claim out by component volatile-ledger.", f.Namespace, ledgerClaim),
	}}
}
