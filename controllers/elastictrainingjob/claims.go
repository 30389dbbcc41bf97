package elastictrainingjob

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// watchClaims wakes the jobs that name a claim or a template that comes, goes or changes, if the API server serves them.
func (r *Reconciler) watchClaims(mgr ctrl.Manager, c controller.Controller) error {
	if r.Claims == nil {
		return nil
	}
	for _, object := range []client.Object{&resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceClaim{}} {
		jobs := handler.EnqueueRequestsFromMapFunc(r.jobsClaiming)
		if err := c.Watch(source.Kind(mgr.GetCache(), object, jobs)); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

// jobsClaiming are the jobs whose template names this claim or template of claims. Claims that were created for pods are
// many, and no job names them.
func (r *Reconciler) jobsClaiming(ctx context.Context, claim client.Object) []reconcile.Request {
	_, isTemplate := claim.(*resourcev1.ResourceClaimTemplate)
	jobs := &v1beta1.ElasticTrainingJobList{}
	if err := r.client.List(ctx, jobs, client.InNamespace(claim.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // A job that waits is looked at again by itself.
	}
	var named []reconcile.Request
	for i := range jobs.Items {
		if slices.ContainsFunc(jobs.Items[i].Spec.Template.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			if isTemplate {
				return ptr.Deref(c.ResourceClaimTemplateName, "") == claim.GetName()
			}
			return ptr.Deref(c.ResourceClaimName, "") == claim.GetName()
		}) {
			named = append(named, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])})
		}
	}
	return named
}
