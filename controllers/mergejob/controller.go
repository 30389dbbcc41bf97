// Package mergejob reconciles MergeJobs. Their line is one decision: the key of the reconciler is a pool, it observes all merges
// of the pool, lets internal/merging decide, applies the decision and reports. It decides nothing itself and reads no store: a
// second queue, whose key is a MergeJob, observes the stores.
package mergejob

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/platform/volcano"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/usage/collector"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

// +kubebuilder:rbac:groups=tideline.io,resources=mergejobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=tideline.io,resources=mergejobs/status,verbs=patch
// +kubebuilder:rbac:groups=tideline.io,resources=mergejobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=tideline.io,resources=resourcequotaprofiles,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=podgroups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=queues,verbs=list;watch;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

const (
	// waitInterval is how often a refused request is tried again whose cause no watch reports.
	waitInterval = 30 * time.Second
	// Back-off of failed reconciles. It stays short, because a failure of one merge delays the other merges of its pool.
	firstRetry, lastRetry = 100 * time.Millisecond, 10 * time.Second

	// Indexes of the caches: of MergeJobs, of MergeJobs by where they merge and of their pods by that and by name, and of their core
	// PodGroups.
	jobsByPool, jobsByModel, coreByPool = "pool", "modelHash", "mergePool"
	// Index of MergeJobs that are set aside, by namespace and all together.
	setAside = "setAside"
)

// Reconciler reconciles the MergeJobs of a pool.
type Reconciler struct {
	Dependencies

	client   client.Client
	applier  kube.Applier
	recorder events.EventRecorder
	config   *config.Configuration
	guard    *specvalidation.Guard
	pacer    *kube.Pacer
	memory   *memory
	departed *departed
	changes  *changes
	stores   *stores
	metrics  *metrics
	now      func() time.Time
	// cores limits how many decisions are made at a time. To observe and to decide takes a whole CPU core, so more would only
	// slow each other down. Writing mostly waits for the API server, and is not limited.
	cores chan struct{}
}

// Dependencies are what the reconciler shares with the reconcilers of other kinds.
type Dependencies struct {
	Arbiter *arbiter.Arbiter
	// Volcano knows whether the API server serves Volcano's kinds. It must be ready.
	Volcano *kube.Kinds
	// Scheduler is the configuration of Volcano's scheduler.
	Scheduler *volcano.SchedulerConf
	// Journal keeps decisions.
	Journal recorder.Journal
	// Usage knows what tasks used.
	Usage *collector.Collector
	// Now tells the time, by the API server's clock.
	Now func() time.Time
}

// Setup registers the reconciler with the manager, whose cache has the index [kube.PodsByOwner]. It returns an error if the API
// server does not answer.
func Setup(ctx context.Context, mgr ctrl.Manager, cfg *config.Configuration, shared Dependencies) error {
	if err := indexFields(ctx, mgr); err != nil {
		return err
	}
	r := &Reconciler{
		Dependencies: shared,

		client:   mgr.GetClient(),
		applier:  kube.NewApplier(mgr),
		recorder: mgr.GetEventRecorder("tideline"),
		config:   cfg,
		guard:    specvalidation.New(crd.MergeJob, v1beta1.GroupVersion.Version),
		pacer:    kube.NewPacer(),
		memory:   newMemory(),
		departed: newDeparted(shared.Now),
		changes:  newChanges(shared.Now),
		stores:   newStores(mgr.GetClient(), mgr.GetAPIReader(), cfg, shared.Now),
		now:      shared.Now,
		cores:    make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	shared.Arbiter.FollowMerges(r.actingOn)
	jobs, err := kube.StoreOf(ctx, mgr.GetCache(), &v1beta1.MergeJob{})
	if err != nil {
		return err
	}
	if err := r.departed.watchDepartures(ctx, mgr.GetCache()); err != nil {
		return err
	}
	r.metrics = newMetrics(r.now, jobs, mgr.Elected())
	if err := ctrlmetrics.Registry.Register(r.metrics); err != nil {
		return fmt.Errorf("register the metrics of merges: %w", err)
	}
	if err := r.stores.buildController(mgr); err != nil {
		return fmt.Errorf("set up the observer of stores: %w", err)
	}
	c, err := r.buildController(mgr)
	if err != nil {
		return fmt.Errorf("set up the controller of MergeJob: %w", err)
	}
	return r.watchVolcano(ctx, mgr, c)
}

func indexFields(ctx context.Context, mgr ctrl.Manager) error {
	for name, values := range map[string]func(*v1beta1.MergeJob) []string{
		jobsByPool:  func(job *v1beta1.MergeJob) []string { return []string{poolOf(job)} },
		jobsByModel: mergepod.PlaceHashes,
		setAside:    asideIn,
	} {
		err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.MergeJob{}, name, func(o client.Object) []string {
			if job, ok := o.(*v1beta1.MergeJob); ok {
				return values(job)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("index MergeJobs by %s: %w", name, err)
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, jobsByModel, modelsOfPod); err != nil {
		return fmt.Errorf("index pods by model: %w", err)
	}
	return nil
}

// modelsOfPod are the model and the MergeJob that a pod names. Users can write both.
func modelsOfPod(o client.Object) []string {
	key, _, ours := ownerOf(o)
	if !ours {
		return nil
	}
	return []string{o.GetLabels()[v1beta1.LabelModelHash], nameIndex(key)}
}

// nameIndex finds the pods of all MergeJobs of a name, also of deleted ones.
func nameIndex(job types.NamespacedName) string { return "name " + job.String() }

func (r *Reconciler) buildController(mgr ctrl.Manager) (controller.Controller, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("mergejob").
		Watches(&v1beta1.MergeJob{}, wakePools(r.poolsOfJob)).
		Watches(&corev1.Pod{}, wakePools(r.poolsOfModel), r.notePods()).
		Watches(&corev1.ConfigMap{}, wakePools(r.poolsOfOwner)).
		Watches(&v1beta1.ResourceQuotaProfile{}, wakePools(r.allPools), builder.WithPredicates(profilecache.ProfileChanged())).
		Watches(&corev1.Node{}, wakePools(r.noteNode), onChangeOf(readNode)).
		Watches(&corev1.PersistentVolumeClaim{}, wakePools(r.noteClaim), onChangeOf(readClaim)).
		Watches(namespace, wakePools(r.poolsOfNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(r.Scheduler.ChangeSource(wakePools(r.allPools))).
		WatchesRawSource(source.Channel(r.Arbiter.WokenMerges(), wakePools(r.poolsOfKey))).
		WatchesRawSource(source.Channel(r.stores.read, wakePools(r.poolsOfKey))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: int(r.config.Concurrency.MergePools),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			LogConstructor:          kube.LogFor(mgr, "mergejob", "queue"),
		}).
		Build(r)
}

// watchVolcano watches Volcano's kinds, at once or as soon as they are installed; then every pool is looked at again.
func (r *Reconciler) watchVolcano(ctx context.Context, mgr ctrl.Manager, c controller.Controller) error {
	watch := func(ctx context.Context) error {
		err := mgr.GetFieldIndexer().IndexField(ctx, gang.NewPodGroup(), coreByPool, poolsOfCore)
		if err != nil {
			return fmt.Errorf("index PodGroups by pool: %w", err)
		}
		if err := c.Watch(source.Kind(mgr.GetCache(), gang.NewPodGroup(), wakePools(r.poolsOfGroup),
			gang.PodGroupChanged())); err != nil {
			return fmt.Errorf("watch PodGroups: %w", err)
		}
		if err := c.Watch(source.Kind(mgr.GetCache(), gang.NewQueue(), wakePools(poolOfQueue), gang.QueueChanged())); err != nil {
			return fmt.Errorf("watch Queues: %w", err)
		}
		limits := source.Kind(mgr.GetCache(), gang.NewQueue(), wakePools(r.noteLimits), gang.QueueLimitsChanged())
		if err := c.Watch(limits); err != nil {
			return fmt.Errorf("watch limits of Queues: %w", err)
		}
		return nil
	}
	if r.Volcano.MissingKinds() == "" {
		return watch(ctx)
	}
	installed := make(chan event.GenericEvent)
	if err := c.Watch(source.Channel(installed, wakePools(r.allPools))); err != nil {
		return fmt.Errorf("watch for Volcano: %w", err)
	}
	r.Volcano.WatchThenWake(watch, func(ctx context.Context) error {
		select {
		case installed <- event.GenericEvent{Object: &v1beta1.MergeJob{}}:
		case <-ctx.Done():
		}
		return nil
	})
	return nil
}

// Reconcile brings the merges of one pool to what their specs ask.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if seen, err := r.applier.Writes.HasSeenAll(ctx, req.NamespacedName); err != nil {
		return reconcile.Result{}, err
	} else if !seen {
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	}
	defer r.applier.Writes.Begin(req.NamespacedName, r.now())() // Before it asks for turns, which count until it ends.
	decision, now, err := r.decidePool(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	result := reconcile.Result{RequeueAfter: decision.RequeueAfter}
	if decision.CreateQueue {
		// The merges of the pool say meanwhile that it has none.
		err = client.IgnoreAlreadyExists(r.client.Create(ctx, gang.NewPool(req.Name)))
		if err != nil {
			err = fmt.Errorf("create Queue %s: %w", req.Name, err)
		}
	}
	for i := range decision.Jobs {
		d := &decision.Jobs[i]
		problem := r.apply(ctx, req.NamespacedName, d)
		again, jobErr := r.report(ctx, req.NamespacedName, d, problem, now)
		result.RequeueAfter = kube.SoonerOf(result.RequeueAfter, again)
		if jobErr != nil && err == nil {
			// The other merges of the pool continue; this one is tried again with the next decision.
			err = fmt.Errorf("MergeJob %s: %w", d.Job.Key(), jobErr)
		}
		if d.ReadStore {
			r.stores.readSoon(d.Job.Key())
		}
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// actingOn is since when a reconcile of a merge's pool is at work, or the caches may not have seen what it wrote; zero for none.
func (r *Reconciler) actingOn(ctx context.Context, merge types.NamespacedName) time.Time {
	job := &v1beta1.MergeJob{}
	if err := r.client.Get(ctx, merge, job, client.UnsafeDisableDeepCopy); err != nil {
		return time.Time{} // The cache has it no longer.
	}
	return r.applier.Writes.UnsettledSince(ctx, types.NamespacedName{Name: poolOf(job)})
}

// decidePool observes a pool and decides about it, in its turn for a core. It returns the time at which it did.
func (r *Reconciler) decidePool(ctx context.Context, pool string) (decision merging.Decision, now time.Time, err error) {
	select {
	case r.cores <- struct{}{}:
		defer func() { <-r.cores }()
	case <-ctx.Done():
		return decision, now, ctx.Err()
	}
	observed, err := r.observe(ctx, pool)
	if err != nil {
		return decision, now, err
	}
	for _, gone := range r.memory.forgetGone(pool, observed.Jobs) {
		r.pacer.ForgetObject(gone)
	}
	now = r.now()
	began := time.Now()
	decision = merging.Plan(observed, now)
	r.metrics.observeDecision(time.Since(began))
	return decision, now, nil
}

// ownerOf is the MergeJob that controls an object, by its reference.
func ownerOf(o client.Object) (types.NamespacedName, types.UID, bool) {
	owner := v1beta1.ControllerOf(o, v1beta1.MergeJobKind)
	if owner == nil {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, owner.UID, true
}
