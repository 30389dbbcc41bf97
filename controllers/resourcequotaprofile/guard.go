package resourcequotaprofile

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota"
)

// watchGuards watches what keeps other workloads from accelerators, whole and in a cache of its own: the manager's holds the
// ConfigMaps of jobs, without their content.
func (r *Reconciler) watchGuards(mgr ctrl.Manager, c controller.Controller) error {
	named := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", quota.GuardPolicy)}
	ours := labels.SelectorFromSet(labels.Set{v1beta1.LabelGuard: v1beta1.GuardOtherWorkloads})
	guards, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{r.Namespace: {LabelSelector: ours}}},
			&admissionregistrationv1.ValidatingAdmissionPolicy{}:        named,
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}: named,
		},
	})
	if err != nil {
		return fmt.Errorf("make the cache of guards: %w", err)
	}
	if err := mgr.Add(guards); err != nil {
		return fmt.Errorf("add the cache of guards to the manager: %w", err)
	}
	r.guards = guards
	for _, o := range []client.Object{
		&corev1.ConfigMap{}, &admissionregistrationv1.ValidatingAdmissionPolicy{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	} {
		if err := c.Watch(source.Kind(guards, o, wakeAfter(atOnce))); err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
	}
	return nil
}

// observeGuards reads how the API server refuses other workloads, and whether it does.
func (r *Reconciler) observeGuards(ctx context.Context, o *quota.Observed) error {
	written := &corev1.ConfigMapList{}
	if err := r.guards.List(ctx, written, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("list the ConfigMaps of guards: %w", err)
	}
	o.Guarding.ConfigMaps = map[types.UID]*corev1.ConfigMap{}
	for i := range written.Items {
		c := &written.Items[i]
		if owner := metav1.GetControllerOf(c); owner != nil && owner.Kind == v1beta1.ResourceQuotaProfileKind {
			o.Guarding.ConfigMaps[owner.UID] = c
		}
	}
	wanted := slices.ContainsFunc(o.Profiles, func(p quota.Profile) bool { return quota.RefusesOthers(p.Object) })
	if !wanted {
		return nil
	}
	o.Guarding.Operator = r.askWhoWeAre(ctx)
	var err error
	o.Guarding.NotInForce, err = r.findGap(ctx)
	return err
}

// findGap is in one sentence why the API server judges no pods, and what to do; empty if it judges them.
func (r *Reconciler) findGap(ctx context.Context) (string, error) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	var gone [2]bool
	for i, into := range []client.Object{policy, binding} {
		err := r.guards.Get(ctx, client.ObjectKey{Name: quota.GuardPolicy}, into)
		if gone[i] = apierrors.IsNotFound(err); err != nil && !gone[i] {
			return "", fmt.Errorf("read %T %s: %w", into, quota.GuardPolicy, err)
		}
	}
	if gone[0] {
		policy = nil
	}
	if gone[1] {
		binding = nil
	}
	return quota.GuardGap(policy, binding, r.Namespace), nil
}

// askWhoWeAre is the user as whom the API server knows the operator; empty if it does not say so.
func (r *Reconciler) askWhoWeAre(ctx context.Context) string {
	if r.memory.operator == "" {
		review := &authenticationv1.SelfSubjectReview{}
		if err := r.client.Create(ctx, review); err != nil {
			log.FromContext(ctx).Error(err, "Cannot ask as whom the API server knows the operator")
			return ""
		}
		r.memory.operator = review.Status.UserInfo.Username
	}
	return r.memory.operator
}

// applyGuard carries out what is decided about the guard of a profile. Its cache tells of each write, which wakes the reconciler.
func (r *Reconciler) applyGuard(ctx context.Context, d *quota.ProfileDecision) error {
	err := r.writeGuard(ctx, d.Guard)
	r.memory.noteGuard(d.Profile, err)
	if err != nil {
		return fmt.Errorf("write what keeps other workloads out: %w", err)
	}
	return nil
}

func (r *Reconciler) writeGuard(ctx context.Context, d quota.GuardDecision) error {
	switch {
	case d.Create != nil:
		return r.applier.Creator.Create(ctx, d.Create)
	case d.Apply != nil:
		changed := d.Have.DeepCopy()
		changed.Data, changed.BinaryData, changed.Labels = d.Apply.Data, nil, d.Apply.Labels
		patch := client.MergeFromWithOptions(d.Have, client.MergeFromWithOptimisticLock{})
		return r.client.Patch(ctx, changed, patch, client.FieldOwner(kube.FieldManager))
	case d.Delete != nil:
		return client.IgnoreNotFound(r.client.Delete(ctx, d.Delete, client.Preconditions{UID: &d.Delete.UID}))
	}
	return nil
}
