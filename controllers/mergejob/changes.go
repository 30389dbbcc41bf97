package mergejob

import (
	"context"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// everywhere is the index entry of set-aside MergeJobs of all namespaces. No namespace can have this name.
const everywhere = "*"

// changes remembers when something last changed that may keep a gang from being placed. A restart loses it, which counts as
// a change: merges that were set aside may ask once more.
type changes struct {
	mu             sync.Mutex
	now            func() time.Time
	all            merging.Changes
	queues, claims map[string]time.Time
}

func newChanges(now func() time.Time) *changes {
	return &changes{now: now, all: merging.Changes{Started: now()}, queues: map[string]time.Time{}, claims: map[string]time.Time{}}
}

// forPool are the changes that concern a pool.
func (c *changes) forPool(pool string) merging.Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	all.Queue = c.queues[pool]
	return all
}

// claimsOf is when claims of volumes in a namespace last changed.
func (c *changes) claimsOf(namespace string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.claims[namespace]
}

// seePod notes a pod that Volcano has placed.
func (c *changes) seePod(before, after client.Object) {
	was, isPod := before.(*corev1.Pod)
	is, both := after.(*corev1.Pod)
	if !isPod || !both || was.Spec.NodeName != "" || is.Spec.NodeName == "" || is.Spec.SchedulerName != gang.SchedulerName {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Placed = c.now()
}

func (c *changes) seeNode() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Nodes = c.now()
}

func (c *changes) seeClaim(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims[namespace] = c.now()
}

func (c *changes) seeQueue(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[name] = c.now()
}

// asideIn is where a MergeJob that is set aside may wait for a change.
func asideIn(job *v1beta1.MergeJob) []string {
	if job.Status.Reason != v1beta1.ReasonNotPlaced {
		return nil
	}
	return []string{everywhere, job.Namespace}
}

// noteNode records a change of a node, and returns the pools with merges that may ask again because of it.
func (r *Reconciler) noteNode(ctx context.Context, _ client.Object) []string {
	r.changes.seeNode()
	return r.poolsWhere(ctx, client.MatchingFields{setAside: everywhere})
}

// noteClaim does the same for the claim of a volume, on which only merges of its namespace may wait.
func (r *Reconciler) noteClaim(ctx context.Context, claim client.Object) []string {
	r.changes.seeClaim(claim.GetNamespace())
	return r.poolsWhere(ctx, client.MatchingFields{setAside: claim.GetNamespace()})
}

// noteLimits does the same for a Queue.
func (r *Reconciler) noteLimits(_ context.Context, queue client.Object) []string {
	r.changes.seeQueue(queue.GetName())
	return []string{queue.GetName()}
}

// onChangeOf passes on updates that change what read returns.
func onChangeOf(read func(client.Object) any) builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(read(e.ObjectOld), read(e.ObjectNew))
	}})
}

// readNode is the part of a node that decides which pods may be placed on it.
func readNode(o client.Object) any {
	n, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	ready := corev1.ConditionUnknown
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = c.Status
		}
	}
	return []any{n.Labels, n.Spec.Taints, n.Spec.Unschedulable, n.Status.Allocatable, ready}
}

// readClaim is the part of a volume claim that decides whether its pods can be placed.
func readClaim(o client.Object) any {
	c, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	return []any{c.Spec.VolumeName, c.Status.Phase, c.DeletionTimestamp != nil}
}
