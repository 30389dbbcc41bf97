// Package resourcequotaprofile reconciles ResourceQuotaProfiles, all at once: it observes, lets internal/quota decide, applies
// the decision and reports. It decides nothing itself.
package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/dutycycle"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// +kubebuilder:rbac:groups=tideline.io,resources=resourcequotaprofiles,verbs=get;list;watch
// +kubebuilder:rbac:groups=tideline.io,resources=resourcequotaprofiles/status,verbs=patch
// +kubebuilder:rbac:groups=tideline.io,resources=elastictrainingjobs,verbs=list;watch
// +kubebuilder:rbac:groups=tideline.io,resources=mergejobs,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=podgroups,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=queues,verbs=create;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;list;watch;patch;delete
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=tideline-other-workloads,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Stopping Notebooks (spec.stopIdleAfter) takes getting statefulsets and getting and patching notebooks.kubeflow.org too, which
// are in no default role: component notebook-culling grants them.

const (
	// gathering is how long changes of pods and jobs are collected at least. They are many, and change only figures.
	gathering = time.Second
	// Back-off of failed reconciles.
	firstRetry, lastRetry = 100 * time.Millisecond, time.Minute
)

// rest is for how long changes are collected where a reconcile takes long, because it reads all PodGroups. They cost a twentieth
// of a processor as long as one takes 1.5 s or less.
var rest = dutycycle.Rest{Times: 19, Most: 30 * time.Second}

// all is the one key of the reconciler: the shares of profiles depend on one another.
var all = types.NamespacedName{Name: "profiles"}

// Reconciler reconciles all ResourceQuotaProfiles.
type Reconciler struct {
	Dependencies

	client client.Client
	// guards reads ConfigMaps of guards and what the API server reads them by.
	guards   client.Reader
	applier  kube.Applier
	live     client.Reader
	recorder events.EventRecorder
	config   *config.Configuration
	guard    *specvalidation.Guard
	pacer    *kube.Pacer
	memory   *memory
	now      func() time.Time
	// took is how long the last reconcile took, in nanoseconds.
	took atomic.Int64
}

// Dependencies are what the reconciler shares with the reconcilers of other kinds.
type Dependencies struct {
	// Namespace is the operator's own.
	Namespace string
	Arbiter   Arbiter
	// Volcano knows whether the API server serves Volcano's kinds. It must be ready.
	Volcano *kube.Kinds
	// Claims counts the devices that pods claim; nil for an API server without resource claims.
	Claims *claimcache.Reader
	// Spent tells what users of a profile have used of accelerators in a window of time.
	Spent func(profile string, window time.Duration) (admission.Spending, error)
	// IdleTime tells for how long the accelerators of pods that are not of Tideline's jobs have been without use, not before since;
	// false if that was not measured. nil where nothing is.
	IdleTime func(namespace, kind, name string, since time.Time) (time.Duration, bool)
	// PodIdleTime is IdleTime of one pod of them, as far as it was seen alone. nil where nothing is.
	PodIdleTime func(namespace, kind, name, pod string, since time.Time) time.Duration
	// IdleAsOf is until when IdleTime knows, zero for nothing known, and whether newer figures are due. nil where nothing is.
	IdleAsOf func() (asOf time.Time, old bool)
	// LedgerVolatile is in one sentence why the ledger goes with the operator's pod; empty if it does not, or that is unknown.
	LedgerVolatile string
	// Now tells the time, by the API server's clock.
	Now func() time.Time
}

// Arbiter is what is asked of one: an [arbiter.Arbiter].
type Arbiter interface {
	// Offers tells what there is for gangs of Queues, and how old that is; zero for what is of the moment.
	OffersFor(ctx context.Context, queues []string) (map[string][]arbiter.Offer, time.Duration, error)
	// Claims tells whether the gang of a training claims room, or has it. Judged is false while nothing is known of it.
	IsClaiming(training types.NamespacedName) (claims, judged bool)
	// WokenProfiles yields an event when other trainings than before claim room.
	WokenProfiles() <-chan event.GenericEvent
}

// Setup registers the reconciler with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, cfg *config.Configuration, shared Dependencies) error {
	r := &Reconciler{
		Dependencies: shared, client: mgr.GetClient(), applier: kube.NewApplier(mgr), live: mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder("tideline"), config: cfg, pacer: kube.NewPacer(), memory: newMemory(), now: shared.Now,
		guard: specvalidation.New(crd.ResourceQuotaProfile, v1beta1.GroupVersion.Version),
	}
	if err := registerMetrics(ctx, mgr); err != nil {
		return err
	}
	c, err := r.buildController(mgr)
	if err != nil {
		return fmt.Errorf("set up the controller of ResourceQuotaProfile: %w", err)
	}
	if err := r.watchGuards(mgr, c); err != nil {
		return err
	}
	return r.watchVolcano(ctx, mgr, c)
}

func (r *Reconciler) buildController(mgr ctrl.Manager) (controller.Controller, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("resourcequotaprofile").
		Watches(&v1beta1.ResourceQuotaProfile{}, wakeAfter(atOnce)).
		Watches(namespace, wakeAfter(atOnce), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&corev1.Node{}, wakeAfter(r.gather), onChangeOf(readNode)).
		Watches(&corev1.Pod{}, wakeAfter(r.gather), onChangeOf(readPod)).
		Watches(&v1beta1.ElasticTrainingJob{}, wakeAfter(r.gather), onChangeOf(readTraining)).
		Watches(&v1beta1.MergeJob{}, wakeAfter(r.gather), onChangeOf(readMerge)).
		Watches(&corev1.PersistentVolumeClaim{}, wakeAfter(r.gather), onChangeOf(readDataClaim)).
		WatchesRawSource(source.Channel(r.Arbiter.WokenProfiles(), wakeAfter(func() time.Duration { return gathering }))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			LogConstructor:          func(*reconcile.Request) logr.Logger { return mgr.GetLogger().WithName("resourcequotaprofile") },
		}).
		Build(r)
}

// gather is how long changes are collected.
func (r *Reconciler) gather() time.Duration {
	return max(gathering, rest.After(time.Duration(r.took.Load())))
}

func atOnce() time.Duration { return 0 }

// wakeAfter wakes the reconciler, some time after an event.
func wakeAfter(after func() time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(q queue) { q.AddAfter(reconcile.Request{NamespacedName: all}, after()) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { wake(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { wake(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { wake(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { wake(q) },
	}
}

// watchVolcano watches Volcano's kinds, at once or as soon as they are installed.
func (r *Reconciler) watchVolcano(ctx context.Context, mgr ctrl.Manager, c controller.Controller) error {
	watch := func(context.Context) error {
		if err := c.Watch(source.Kind(mgr.GetCache(), gang.NewPodGroup(), wakeAfter(r.gather), gang.MembershipChanged())); err != nil {
			return fmt.Errorf("watch PodGroups: %w", err)
		}
		if err := c.Watch(source.Kind(mgr.GetCache(), gang.NewQueue(), wakeAfter(atOnce), gang.QueueSpecChanged())); err != nil {
			return fmt.Errorf("watch Queues: %w", err)
		}
		return nil
	}
	if r.Volcano.MissingKinds() == "" {
		return watch(ctx)
	}
	installed := make(chan event.GenericEvent)
	if err := c.Watch(source.Channel(installed, wakeAfter(atOnce))); err != nil {
		return fmt.Errorf("watch for Volcano: %w", err)
	}
	r.Volcano.WatchThenWake(watch, func(ctx context.Context) error {
		select {
		case installed <- event.GenericEvent{Object: &v1beta1.ResourceQuotaProfile{}}:
		case <-ctx.Done():
		}
		return nil
	})
	return nil
}

// Reconcile brings all profiles to what their specs ask.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if seen, err := r.applier.Writes.HasSeenAll(ctx, all); err != nil {
		return reconcile.Result{}, err
	} else if !seen {
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	}
	began := time.Now() // By this machine's clock, which measures how long it works.
	defer func() { r.took.Store(int64(time.Since(began))) }()
	observed, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.now()
	decision := quota.Plan(observed, now)
	r.memory.waits = decision.Waits
	again := decision.Again
	for i := range decision.Profiles {
		d := &decision.Profiles[i]
		applied := r.apply(ctx, d, now)
		wait, profileErr := r.report(ctx, d, applied, now)
		again = kube.SoonerOf(again, kube.SoonerOf(wait, applied.again))
		if profileErr != nil && err == nil {
			// The others go on; this one is tried again with them.
			err = fmt.Errorf("ResourceQuotaProfile %s: %w", d.Profile.Name, profileErr)
		}
	}
	wait, goneErr := r.applyForGone(ctx, &decision)
	if err := errors.Join(err, goneErr); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: kube.SoonerOf(again, wait)}, nil
}
