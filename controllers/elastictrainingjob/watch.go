package elastictrainingjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// watchVolcano watches Volcano's kinds, at once or as soon as they are installed. In that case it also wakes every job.
func (r *Reconciler) watchVolcano(mgr ctrl.Manager, c controller.Controller) error {
	if r.Volcano.MissingKinds() == "" {
		return r.watchGangs(mgr, c)
	}
	return r.wakeWhenServed(c, r.Volcano, func(context.Context) error { return r.watchGangs(mgr, c) })
}

// awaitRoutes wakes every job once the kind of route is served that their pages need. Nothing watches routes.
func (r *Reconciler) awaitRoutes(c controller.Controller) error {
	if r.RouteKinds == nil || r.RouteKinds.MissingKinds() == "" {
		return nil
	}
	return r.wakeWhenServed(c, r.RouteKinds, func(context.Context) error { return nil })
}

// wakeWhenServed watches kinds, and wakes every job, once others have installed them.
func (r *Reconciler) wakeWhenServed(c controller.Controller, kinds *kube.Kinds, watch func(context.Context) error) error {
	installed := make(chan event.GenericEvent)
	if err := c.Watch(source.Channel(installed, &handler.EnqueueRequestForObject{})); err != nil {
		return fmt.Errorf("watch for %s: %w", kinds.MissingKinds(), err)
	}
	kinds.WatchThenWake(watch, func(ctx context.Context) error {
		jobs := &v1beta1.ElasticTrainingJobList{}
		if err := r.client.List(ctx, jobs); err != nil {
			return fmt.Errorf("list the jobs that wait for a kind: %w", err)
		}
		for i := range jobs.Items {
			select {
			case installed <- event.GenericEvent{Object: &jobs.Items[i]}:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	return nil
}

func (r *Reconciler) watchGangs(mgr ctrl.Manager, c controller.Controller) error {
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.ElasticTrainingJob{},
		handler.OnlyControllerOwner())
	if err := c.Watch(source.Kind(mgr.GetCache(), gang.NewPodGroup(), owner, gang.PodGroupChanged())); err != nil {
		return fmt.Errorf("watch PodGroups: %w", err)
	}
	jobs := handler.EnqueueRequestsFromMapFunc(r.jobsOfQueue)
	if err := c.Watch(source.Kind(mgr.GetCache(), gang.NewQueue(), jobs, gang.QueueChanged())); err != nil {
		return fmt.Errorf("watch Queues: %w", err)
	}
	return nil
}

// changedBeforeStart has jobs that users created, changed or deleted while no operator reconciled come before all that are merely
// listed at its start: looking at 10,000 of them once takes tens of seconds.
func changedBeforeStart() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			job, isJob := e.Object.(*v1beta1.ElasticTrainingJob)
			ranked, isRanked := q.(priorityqueue.PriorityQueue[reconcile.Request])
			if !isJob || !isRanked || job.Status.ObservedGeneration == job.Generation && job.DeletionTimestamp == nil {
				return
			}
			key := client.ObjectKeyFromObject(job)
			ranked.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(0)}, reconcile.Request{NamespacedName: key})
		},
	}
}

// podHandler wakes a pod's job when something changed that planning reads, and remembers how pods were last seen.
func (r *Reconciler) podHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if job, owner, ok := jobOf(e.Object); ok {
				r.memory.noteSeen(job, owner, e.Object.GetUID(), readWorker(e.Object))
				q.Add(reconcile.Request{NamespacedName: job})
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			job, owner, ok := jobOf(e.ObjectNew)
			if before, formerly, was := jobOf(e.ObjectOld); was && (!ok || owner != formerly) {
				// Somebody changed the pod's controller, so the job has lost it.
				r.memory.noteGone(before, formerly, e.ObjectOld.GetUID(), podstate.Worker{})
				q.Add(reconcile.Request{NamespacedName: before})
			}
			if !ok {
				return
			}
			now, last := readWorker(e.ObjectNew), readWorker(e.ObjectOld)
			if !now.PlansAlike(last) {
				r.memory.noteSeen(job, owner, e.ObjectNew.GetUID(), now)
				q.Add(reconcile.Request{NamespacedName: job})
			}
			if now.Index == 0 && now.Progress != last.Progress {
				// Progress itself needs no new plan, but what it ended the measurement of must be written.
				if ended := r.outages.noteProgress(job, owner, now.Attempt, now.Progress, r.now()); ended {
					q.Add(reconcile.Request{NamespacedName: job})
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			job, owner, ok := jobOf(e.Object)
			if !ok {
				return
			}
			last := podstate.Worker{}
			if !e.DeleteStateUnknown {
				last = readWorker(e.Object)
			}
			r.memory.noteGone(job, owner, e.Object.GetUID(), last)
			q.Add(reconcile.Request{NamespacedName: job})
		},
	}
}

func readWorker(o client.Object) podstate.Worker {
	if pod, ok := o.(*corev1.Pod); ok {
		w, _ := jobstate.WorkerOf(pod)
		return w
	}
	return podstate.Worker{}
}

// jobOf returns the job that controls an object, and its UID.
func jobOf(o client.Object) (job types.NamespacedName, uid types.UID, ok bool) {
	owner := v1beta1.ControllerOf(o, v1beta1.ElasticTrainingJobKind)
	if owner == nil {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, owner.UID, true
}

func (r *Reconciler) jobsOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.requestsFor(ctx, client.InNamespace(namespace.GetName()))
}

// allJobs wakes every job. Volcano's configuration may concern them all, and changes rarely.
func (r *Reconciler) allJobs(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requestsFor(ctx)
}

// jobsOnNode wakes the jobs that have workers on a node.
func (r *Reconciler) jobsOnNode(ctx context.Context, node client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.MatchingFields{workersByNode: node.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // The cache of pods is not filled yet; once it is, every job is reconciled.
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if job, _, ok := jobOf(&pods.Items[i]); ok {
			requests = append(requests, reconcile.Request{NamespacedName: job})
		}
	}
	return requests
}

// answersChanged passes a node that stopped answering or answers again.
func answersChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return isSilent(e.ObjectOld) != isSilent(e.ObjectNew) },
	}
}

// isSilent is true for a node that does not answer.
func isSilent(o client.Object) bool {
	node, ok := o.(*corev1.Node)
	if !ok {
		return false
	}
	_, is := podstate.UnreachableSince(node)
	return is
}

func (r *Reconciler) jobsOfQueue(ctx context.Context, queue client.Object) []reconcile.Request {
	return r.requestsFor(ctx, client.MatchingFields{jobsByQueue: queue.GetName()})
}

// requestsFor lists a request for each job that the options select.
func (r *Reconciler) requestsFor(ctx context.Context, of ...client.ListOption) []reconcile.Request {
	jobs := &v1beta1.ElasticTrainingJobList{}
	if err := r.client.List(ctx, jobs, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // The cache of jobs is not filled yet; once it is, every job is reconciled.
	}
	requests := make([]reconcile.Request, len(jobs.Items))
	for i := range jobs.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&jobs.Items[i])
	}
	return requests
}
