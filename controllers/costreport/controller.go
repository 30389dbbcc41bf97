// Package costreport reconciles CostReports: it observes, lets internal/cost/costreport decide which report is due, has
// internal/cost count and internal/cost/report write it, keeps it in the ledger, and mails it. It decides nothing itself.
package costreport

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// +kubebuilder:rbac:groups=tideline.io,resources=costreports,verbs=get;list;watch
// +kubebuilder:rbac:groups=tideline.io,resources=costreports/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

const (
	// startInterval is how often to check, after a start of the operator, whether the ledger has all that ran. That takes
	// seconds. After startTime the status says that it takes longer.
	startInterval, startTime = 2 * time.Second, time.Minute
	// makeTimeout bounds how long one report may take to be made, and ledgerTimeout how long the ledger may take to open.
	makeTimeout, ledgerTimeout = 10 * time.Minute, 30 * time.Second
	// Back-off of failed reconciles.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
)

// Reconciler reconciles CostReports, one after the other.
type Reconciler struct {
	Dependencies

	client   client.Client
	applier  kube.Applier
	live     client.Reader
	recorder events.EventRecorder
	config   *config.Configuration
	guard    *specvalidation.Guard
	// began is when this operator first looked at a report, which it does once it leads.
	began   time.Time
	metrics *metrics
	now     func() time.Time
}

// Dependencies are what the reconciler shares with others.
type Dependencies struct {
	// Namespace is the operator's own.
	Namespace string
	// OpenLedger opens the ledger. It is closed after each reconcile, because its location may change.
	OpenLedger func(context.Context) (*ledger.Ledger, error)
	// Complete is until when the ledger has all that ran; zero before it has.
	Complete func() time.Time
	// LedgerVolatile is in one sentence why the ledger goes with the operator's pod; empty if it does not, or that is unknown.
	LedgerVolatile string
	// Now tells the time, by the API server's clock.
	Now func() time.Time
}

// Setup registers the reconciler with the manager.
func Setup(mgr ctrl.Manager, cfg *config.Configuration, shared Dependencies) error {
	r := &Reconciler{
		Dependencies: shared, client: mgr.GetClient(), applier: kube.NewApplier(mgr),
		live:     kube.PatientReader{Reader: mgr.GetAPIReader()},
		recorder: mgr.GetEventRecorder("tideline"), config: cfg, metrics: newMetrics(), now: shared.Now,
		guard: specvalidation.New(crd.CostReport, v1beta1.GroupVersion.Version),
	}
	if err := r.metrics.register(); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("costreport").
		For(&v1beta1.CostReport{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
			predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			LogConstructor:          kube.LogFor(mgr, "costreport", "report"),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller of CostReport: %w", err)
	}
	return nil
}

// Reconcile brings one CostReport to what its spec asks: it makes one report, if one is due, and mails what is to be mailed.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if seen, err := r.applier.Writes.HasSeenAll(ctx, req.NamespacedName); err != nil {
		return reconcile.Result{}, err
	} else if !seen {
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	}
	object := &v1beta1.CostReport{}
	if err := r.client.Get(ctx, req.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.forgetReport(req.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read the CostReport: %w", err)
	}
	if object.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if r.began.IsZero() {
		r.began = r.now()
	}
	v, err := r.observe(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer v.close()
	now := r.now()
	decision := costreport.Plan(v.observed, now)
	problem := r.apply(ctx, v, &decision)
	return r.report(ctx, v, &decision, problem, now)
}
