package elastictrainingjob

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// forgetJob forgets a job that the cache has no more, and deletes what it left.
func (r *Reconciler) forgetJob(ctx context.Context, job types.NamespacedName) (reconcile.Result, error) {
	r.pacer.ForgetObject(job)
	r.outages.forget(job)
	r.metrics.forget(job)
	r.trainings.forget(job)
	r.suspects.forget(job)
	r.pages.forget(job)
	c := cleaner{children: r.children, client: r.client, volcano: r.Volcano, memory: r.memory}
	left, err := c.leftovers(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(left) > 0 {
		return c.deleteLeftovers(ctx, job, left)
	}
	r.applier.Writes.ForgetOwner(job)
	r.memory.forget(job)
	return reconcile.Result{}, nil
}

// cleaner deletes what deleted jobs left.
type cleaner struct {
	children

	client  client.Client
	volcano *kube.Kinds
	memory  *memory
}

// isLeftover is true for what a job of that name controls and nothing deletes yet. What has other owners too is left to the
// garbage collector, which asks about each of them.
func isLeftover(o client.Object, job types.NamespacedName) bool {
	of, _, ours := jobOf(o)
	return ours && of == job && o.GetDeletionTimestamp() == nil && len(o.GetOwnerReferences()) == 1
}

// leftovers are the pods and PodGroups that deleted jobs of that name left, pods first.
func (c cleaner) leftovers(ctx context.Context, job types.NamespacedName) (left []client.Object, err error) {
	groups, err := c.leftGroups(ctx, job)
	if err != nil {
		return nil, err
	}
	owners := sets.New(c.memory.ownersOf(job)...)
	for _, group := range groups {
		_, owner, _ := jobOf(group)
		owners.Insert(owner)
	}
	for owner := range owners {
		pods := &corev1.PodList{}
		err := c.client.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingFields{kube.PodsByOwner: string(owner)},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list the pods of a deleted job: %w", err)
		}
		for i := range pods.Items {
			if isLeftover(&pods.Items[i], job) {
				left = append(left, &pods.Items[i])
			}
		}
	}
	return append(left, groups...), nil
}

// leftGroups are the PodGroups among them.
func (c cleaner) leftGroups(ctx context.Context, job types.NamespacedName) (groups []client.Object, err error) {
	if c.volcano.MissingKinds() != "" {
		return nil, nil
	}
	for _, name := range []string{gang.CoreName(job.Name), gang.SurplusName(job.Name)} {
		group := gang.NewPodGroup()
		err := c.client.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, group, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read PodGroup %s of a deleted job: %w", name, err)
		}
		if err == nil && isLeftover(group, job) {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// deleteLeftovers deletes what a deleted job left, so that its room is free at once. The garbage collector would come to it
// later: it sends 40 requests a second for the whole cluster by default, and needs two for each object.
func (c cleaner) deleteLeftovers(
	ctx context.Context, job types.NamespacedName, left []client.Object,
) (reconcile.Result, error) {
	living, err := c.livingJob(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	var lags atomic.Bool
	p := inBatches(left, func(o client.Object) *kube.Problem {
		// The cache of pods may be ahead of that of jobs.
		if _, owner, _ := jobOf(o); owner == living {
			lags.Store(true)
			return nil
		}
		err := c.deleteLeftover(ctx, job, o)
		if apierrors.IsConflict(err) {
			lags.Store(true)
			return nil
		}
		return kube.ProblemOf(err, "delete "+o.GetName())
	})
	switch {
	case p != nil:
		return reconcile.Result{}, p.Err
	case lags.Load():
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	}
	log.FromContext(ctx).V(1).Info("Deleted what a deleted job left", "objects", len(left))
	return reconcile.Result{}, nil // Their events wake this name again.
}

// livingJob asks the API server for the UID of the job of that name; empty for none.
func (c cleaner) livingJob(ctx context.Context, job types.NamespacedName) (types.UID, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.ElasticTrainingJobKind))
	err := c.applier.Live.Get(ctx, job, live)
	// An API server that does not serve the kind for a moment knows nothing of its jobs.
	if apierrors.IsNotFound(err) && !kube.IsNotServed(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask whether the job of pods is gone: %w", err)
	}
	return live.UID, nil
}

// deleteLeftover deletes an object as the cache has it. The API server refuses it for one that has changed since, which may be
// because the job was deleted with --cascade=orphan: then what it left has no owner any more, and stays.
func (c cleaner) deleteLeftover(ctx context.Context, job types.NamespacedName, o client.Object) error {
	options := []client.DeleteOption{
		client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: ptr.To(o.GetUID()), ResourceVersion: ptr.To(o.GetResourceVersion())},
	}
	if pod, ok := o.(*corev1.Pod); ok {
		options = append(options, client.GracePeriodSeconds(capacity.CapGrace(podstate.ReadWorker(pod, 0).GraceSeconds)))
	}
	err := c.client.Delete(ctx, o, options...)
	if err == nil {
		c.applier.Writes.NoteDelete(job, o)
	}
	return client.IgnoreNotFound(err)
}
