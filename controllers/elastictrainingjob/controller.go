// Package elastictrainingjob reconciles ElasticTrainingJobs: it observes, lets internal/training decide, applies the decision
// and reports. It decides nothing itself.
package elastictrainingjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/fairqueue"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/platform/topologycache"
	"github.com/tideline-io/tideline/internal/platform/volcano"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/usage/collector"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

// +kubebuilder:rbac:groups=tideline.io,resources=elastictrainingjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=tideline.io,resources=elastictrainingjobs/status,verbs=patch
// +kubebuilder:rbac:groups=tideline.io,resources=elastictrainingjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=tideline.io,resources=resourcequotaprofiles,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=podgroups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=queues,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

const (
	// waitInterval is how often a job is looked at again that waits for something no watch reports, such as a right.
	waitInterval = 30 * time.Second
	// tellInterval is after what time the status tells what came of a try to have pages reached.
	tellInterval = 100 * time.Millisecond
	// Back-off of failed reconciles.
	firstRetry, lastRetry = 100 * time.Millisecond, time.Minute

	// Indexes of the caches.
	jobsByQueue = "queue"
	// workersByNode is the index of pods of jobs by the name of their node.
	workersByNode = "nodeName"
)

// Reconciler reconciles ElasticTrainingJobs.
type Reconciler struct {
	Dependencies
	children

	client   client.Client
	recorder events.EventRecorder
	config   *config.Configuration
	guard    *specvalidation.Guard
	pacer    *kube.Pacer
	memory   *memory
	outages  *outages
	metrics  *metrics
	// trainings follow what jobs say of their steps.
	trainings *trainings
	// suspects are nodes on which workers fail.
	suspects *suspects
	pages    *pageServer
	now      func() time.Time
}

// Dependencies are what the reconciler shares with those of other kinds.
type Dependencies struct {
	Arbiter *arbiter.Arbiter
	// Volcano knows whether the API server serves Volcano's kinds. It must have looked once before Setup.
	Volcano *kube.Kinds
	// Scheduler is the configuration of Volcano's scheduler.
	Scheduler *volcano.SchedulerConf
	// Claims counts the devices that workers claim; nil for an API server without resource claims.
	Claims *claimcache.Reader
	// HyperNodes reads which nodes are close to each other; nil for an API server without HyperNodes.
	HyperNodes *topologycache.Reader
	// RouteKinds knows whether the API server serves the kind of route to pages that the configuration asks for; nil if every API
	// server has it, or the configuration asks for no route. It must have looked once before Setup.
	RouteKinds *kube.Kinds
	// Journal records decisions in the ledger, and knows how growth fared before.
	Journal Journal
	// Usage has the measured use of tasks.
	Usage *collector.Collector
	// Now tells the time, by the API server's clock.
	Now func() time.Time
}

// Journal is what the reconciler tells the ledger, and asks it: a [recorder.Recorder]. Nothing of it waits.
type Journal interface {
	recorder.Journal
	// NoteTraining takes what was seen of a training.
	NoteTraining(ledger.Trained)
	// StayIn is how surplus fared in a queue; zero for unknown.
	StayIn(queue string) growth.Stay
	// OutageOf is for how long a change of size kept the training of a task from progress, as measured last; false for unknown.
	OutageOf(namespace, task string) (time.Duration, bool)
	// SpeedsOf are how fast the training of a task goes with how many workers, by rising number of workers; nil for unknown.
	SpeedsOf(namespace, task string) []v1beta1.MeasuredSpeed
	// RecallSuspects returns what earlier operators recorded last of nodes; false until that was read.
	RecallSuspects() (held []ledger.Decision, known bool)
}

// Setup registers the reconciler with the manager, whose cache has the index [kube.PodsByOwner].
func Setup(ctx context.Context, mgr ctrl.Manager, cfg *config.Configuration, shared Dependencies) error {
	applier := kube.NewApplier(mgr)
	r := &Reconciler{
		Dependencies: shared,
		client:       mgr.GetClient(),
		children:     children{applier},
		recorder:     mgr.GetEventRecorder("tideline"),
		config:       cfg,
		guard:        specvalidation.New(crd.ElasticTrainingJob, v1beta1.GroupVersion.Version),
		pacer:        kube.NewPacer(),
		memory:       newMemory(),
		outages:      newOutages(),
		pages:        newPageServer(mgr.GetClient(), children{applier}, shared.RouteKinds),
		now:          shared.Now,
	}
	shared.Arbiter.FollowTrainings(applier.Writes.UnsettledSince)
	if err := r.followTrainings(ctx, mgr); err != nil {
		return err
	}
	if err := r.judgeNodes(mgr); err != nil {
		return err
	}
	jobs, err := kube.StoreOf(ctx, mgr.GetCache(), &v1beta1.ElasticTrainingJob{})
	if err != nil {
		return err
	}
	r.metrics = newMetrics(cfg.Tiers, r.now, jobs, r.Arbiter.CountUnjudged, mgr.Elected())
	if err := ctrlmetrics.Registry.Register(r.metrics); err != nil {
		return fmt.Errorf("register the metrics of jobs: %w", err)
	}
	if err := ctrlmetrics.Registry.Register(collectPieces(r.Arbiter.ReadPieces, mgr.Elected())); err != nil {
		return fmt.Errorf("register the metrics of free room in pieces: %w", err)
	}
	if err := indexCaches(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c, err := r.buildController(mgr)
	if err != nil {
		return fmt.Errorf("set up the controller of ElasticTrainingJob: %w", err)
	}
	if err := r.watchClaims(mgr, c); err != nil {
		return err
	}
	if err := r.awaitRoutes(c); err != nil {
		return err
	}
	return r.watchVolcano(mgr, c)
}

// followTrainings makes ready to read logs of workers. No right to that is part of the operator's role: component
// training-progress grants it.
func (r *Reconciler) followTrainings(ctx context.Context, mgr ctrl.Manager) error {
	patient, err := gatheringClient(mgr.GetConfig())
	if err != nil {
		return err
	}
	logs, err := newLogs(mgr.GetConfig(), patient)
	if err != nil {
		return err
	}
	r.trainings = newTrainings(ctx, r.now)
	r.trainings.open = logs.open
	r.trainings.record = r.Journal.NoteTraining
	r.trainings.tell = func(job *v1beta1.ElasticTrainingJob, reason, message string) {
		r.recorder.Eventf(job, nil, corev1.EventTypeWarning, reason, "Follow", "%s", message)
	}
	if err := ctrlmetrics.Registry.Register(r.trainings); err != nil {
		return fmt.Errorf("register the metrics of trainings: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(r.trainings.wakeDue)); err != nil {
		return fmt.Errorf("add what follows trainings to the manager: %w", err)
	}
	return nil
}

// judgeNodes makes ready to hold against nodes that workers fail on them.
func (r *Reconciler) judgeNodes(mgr ctrl.Manager) error {
	r.suspects = newSuspects(r.now)
	r.suspects.tell, r.suspects.journal, r.suspects.webhooksOff = r.accuse, r.Journal, !r.config.Webhooks.Enabled
	if err := ctrlmetrics.Registry.Register(r.suspects); err != nil {
		return fmt.Errorf("register the metrics of nodes: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(r.suspects.judge)); err != nil {
		return fmt.Errorf("add what judges nodes to the manager: %w", err)
	}
	return nil
}

// indexCaches adds the indexes by which jobs of a queue, jobs that name data and workers on a node are found.
func indexCaches(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, workersByNode, func(o client.Object) []string {
		pod, isPod := o.(*corev1.Pod)
		if _, _, ours := jobOf(o); !isPod || !ours || pod.Spec.NodeName == "" {
			return nil
		}
		return []string{pod.Spec.NodeName}
	})
	if err != nil {
		return fmt.Errorf("index workers by node: %w", err)
	}
	err = indexer.IndexField(ctx, &v1beta1.ElasticTrainingJob{}, jobsByQueue, func(o client.Object) []string {
		if job, ok := o.(*v1beta1.ElasticTrainingJob); ok && job.Status.Queue != "" {
			return []string{job.Status.Queue}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index jobs by queue: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1beta1.ElasticTrainingJob{}, jobsWithData, indexData); err != nil {
		return fmt.Errorf("index jobs that name data: %w", err)
	}
	return nil
}

// buildController builds the controller with the watches that need no Volcano.
func (r *Reconciler) buildController(mgr ctrl.Manager) (controller.Controller, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("elastictrainingjob").
		For(&v1beta1.ElasticTrainingJob{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Pod{}, r.podHandler()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.jobsOnNode), builder.WithPredicates(answersChanged())).
		Watches(namespace, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace), builder.WithPredicates(
			predicate.Or(predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&v1beta1.ResourceQuotaProfile{}, besideProfile(r.client, r.requestsFor),
			builder.WithPredicates(profilecache.ProfileChanged())).
		Watches(&corev1.PersistentVolumeClaim{}, besideClaim(r.requestsFor), builder.WithPredicates(comesOrGoes())).
		WatchesRawSource(r.Scheduler.ChangeSource(handler.EnqueueRequestsFromMapFunc(r.allJobs))).
		WatchesRawSource(source.Channel(r.Arbiter.WakeEvents(), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.trainings.wakes, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: int(r.config.Concurrency.ElasticTrainingJobs),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			// Each namespace may have all workers if no other needs them: a job is reconciled in milliseconds.
			NewQueue: func(
				name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
			) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				return fairqueue.NewQueue(name, int(r.config.Concurrency.ElasticTrainingJobs), limiter)
			},
			LogConstructor: kube.LogFor(mgr, "elastictrainingjob", "job"),
		}).
		Build(r)
}

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

// Reconcile brings one job towards its spec: it observes, plans, applies the plan, and writes the status, in this order.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// Before anything is read: a cache that has not seen our last writes would have us decide the same again.
	if seen, err := r.applier.Writes.HasSeenAll(ctx, req.NamespacedName); err != nil {
		return reconcile.Result{}, err
	} else if !seen {
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	}
	defer r.applier.Writes.Begin(req.NamespacedName, r.now())() // Before it asks for its turn, which counts until it ends.
	job := &v1beta1.ElasticTrainingJob{}
	if err := r.client.Get(ctx, req.NamespacedName, job); err != nil {
		if apierrors.IsNotFound(err) {
			return r.forgetJob(ctx, req.NamespacedName)
		}
		return reconcile.Result{}, err
	}
	observed, complete, err := r.observe(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !complete {
		// A pod is gone from the cache, but the watch has not said yet how it ended.
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	}
	now := r.now()
	decision := training.Plan(observed, now)
	problem := r.apply(ctx, observed, decision)
	r.restoreMarks(ctx, observed, decision, now)
	if r.pages.serve(ctx, observed, decision.Pages, now) {
		decision.RequeueAfter = kube.SoonerOf(decision.RequeueAfter, tellInterval)
	}
	return r.report(ctx, observed, decision, problem, now)
}
