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
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
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
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/platform/topologycache"
	"github.com/tideline-io/tideline/internal/platform/volcano"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/growth"
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
		Watches(&v1beta1.ElasticTrainingJob{}, changedBeforeStart()).
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
