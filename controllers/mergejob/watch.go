package mergejob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// poolOf is the pool in which a MergeJob stands: that of its run, or the one that its spec names.
func poolOf(job *v1beta1.MergeJob) string {
	if job.Status.Run != nil {
		return job.Status.Pool
	}
	return job.Spec.Pool
}

// gathering is how long events of a pool are collected before a decision. The pods of a gang are created, placed and
// started within moments, and one decision covers them all.
const gathering = 20 * time.Millisecond

// wakePools wakes the pools that an object concerns.
func wakePools(of func(context.Context, client.Object) []string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, o client.Object, q queue) {
		for _, pool := range of(ctx, o) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}}, gathering)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			// What moves from one pool to another concerns both.
			wake(ctx, e.ObjectOld, q)
			wake(ctx, e.ObjectNew, q)
		},
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, e.Object, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { wake(ctx, e.Object, q) },
	}
}

// poolsOfJob are the job's own, and those of other MergeJobs of its model.
func (r *Reconciler) poolsOfJob(ctx context.Context, o client.Object) []string {
	job, ok := o.(*v1beta1.MergeJob)
	if !ok {
		return nil
	}
	pools := []string{poolOf(job)}
	for _, place := range mergepod.PlaceHashes(job) {
		pools = append(pools, r.poolsWhere(ctx, client.MatchingFields{jobsByModel: place})...)
	}
	return pools
}

// poolsOfModel are the pools in which the pod's model is merged. Pods of a deleted job make others wait too.
func (r *Reconciler) poolsOfModel(ctx context.Context, o client.Object) []string {
	if _, _, ours := ownerOf(o); !ours {
		return nil
	}
	model := client.MatchingFields{jobsByModel: o.GetLabels()[v1beta1.LabelModelHash]}
	return append(r.poolsOfOwner(ctx, o), r.poolsWhere(ctx, model)...)
}

// poolsOfOwner are that of the MergeJob which controls the object.
func (r *Reconciler) poolsOfOwner(ctx context.Context, o client.Object) []string {
	key, _, ours := ownerOf(o)
	if !ours {
		return nil
	}
	return r.poolsOf(ctx, key)
}

// poolsOfCore is the pool of a PodGroup that is the core of a merge. The pool of other PodGroups is known only from their
// MergeJob.
func poolsOfCore(o client.Object) []string {
	key, _, ours := ownerOf(o)
	if !ours || o.GetName() != mergepod.CoreName(key.Name) {
		return nil
	}
	return []string{gang.MembershipOf(o).Queue}
}

// poolsOfGroup are the pools that a PodGroup concerns, also after its MergeJob was deleted: the next merge waits until the
// PodGroup is gone.
func (r *Reconciler) poolsOfGroup(ctx context.Context, o client.Object) []string {
	return append(r.poolsOfOwner(ctx, o), poolsOfCore(o)...)
}

// poolsOfKey is the pool of a MergeJob that an object names.
func (r *Reconciler) poolsOfKey(ctx context.Context, o client.Object) []string {
	return r.poolsOf(ctx, client.ObjectKeyFromObject(o))
}

func (r *Reconciler) poolsOf(ctx context.Context, key types.NamespacedName) []string {
	job := &v1beta1.MergeJob{}
	if err := r.client.Get(ctx, key, job); err != nil {
		return nil // It is gone, or the cache is not there yet.
	}
	return []string{poolOf(job)}
}

// allPools wakes every pool. Changes that concern them all are rare.
func (r *Reconciler) allPools(ctx context.Context, _ client.Object) []string {
	return r.poolsWhere(ctx)
}

func (r *Reconciler) poolsWhere(ctx context.Context, of ...client.ListOption) []string {
	jobs := &v1beta1.MergeJobList{}
	if err := r.client.List(ctx, jobs, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // The cache of jobs is not there yet; each job is looked at when it comes.
	}
	names := sets.New[string]()
	for i := range jobs.Items {
		names.Insert(poolOf(&jobs.Items[i]))
	}
	return names.UnsortedList()
}

// poolsOfNamespace are those in which merges of the namespace take turns.
func (r *Reconciler) poolsOfNamespace(ctx context.Context, namespace client.Object) []string {
	return r.poolsWhere(ctx, client.InNamespace(namespace.GetName()))
}

func poolOfQueue(_ context.Context, queue client.Object) []string { return []string{queue.GetName()} }

// notePods passes on changes of pods that the reconciler reads, and records when Volcano placed any pod.
func (r *Reconciler) notePods() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		r.changes.seePod(e.ObjectOld, e.ObjectNew)
		if _, _, ours := ownerOf(e.ObjectOld); !ours {
			return false // Most pods of a cluster.
		}
		return !readPod(e.ObjectNew).PlansAlike(readPod(e.ObjectOld))
	}})
}

func readPod(o client.Object) podstate.Worker {
	key, _, _ := ownerOf(o)
	index, _ := mergepod.PodIndex(key.Name, o.GetName())
	if pod, ok := o.(*corev1.Pod); ok {
		return podstate.ReadWorker(pod, index)
	}
	return podstate.Worker{}
}
