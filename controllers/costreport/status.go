package costreport

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// report writes the status if it changed, also after a problem, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, v *view, d *costreport.Decision, problem error, now time.Time,
) (reconcile.Result, error) {
	r.metrics.observeDecision(v.report.Name, d)
	if v.ledger != nil {
		r.metrics.observeNumbers(v.report.Name, v.numbers)
	}
	if v.ledger != nil && !v.observed.MailUnknown {
		r.metrics.observeMails(v.report.Name, d.Mails)
	}
	stale, err := r.writeStatus(ctx, v.report, d)
	switch {
	case problem != nil || err != nil:
		return reconcile.Result{}, errors.Join(problem, err)
	case stale:
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	case d.Make != nil || sendsMails(d):
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil // The next plan says what came of it.
	}
	return reconcile.Result{RequeueAfter: timeUntil(d.Again, now)}, nil
}

// timeUntil is how long it is until a time; at least a moment.
func timeUntil(until, now time.Time) time.Duration {
	if until.IsZero() {
		return 0
	}
	return max(until.Sub(now), time.Millisecond)
}

// writeStatus writes the status if it changed. stale is true if the object was replaced meanwhile.
func (r *Reconciler) writeStatus(
	ctx context.Context, object *v1beta1.CostReport, d *costreport.Decision,
) (stale bool, err error) {
	if equality.Semantic.DeepEqual(object.Status, d.Status) {
		return false, nil
	}
	key := types.NamespacedName{Name: object.Name}
	err = r.applier.PatchStatus(ctx, key, object, &object.Status, &d.Status)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return true, r.applier.CatchUp(ctx, key, object, &v1beta1.CostReport{})
	case err != nil:
		return false, fmt.Errorf("write the status: %w", err)
	}
	r.emitEvent(ctx, object, &d.Status)
	return false, nil
}

// emitEvent emits an event, and logs, when the reason of the report changed.
func (r *Reconciler) emitEvent(ctx context.Context, object *v1beta1.CostReport, st *v1beta1.CostReportStatus) {
	anew := st.Last != nil && (object.Status.Last == nil || *st.Last != *object.Status.Last)
	if st.Reason == v1beta1.ReasonReportDue || st.Reason == object.Status.Reason && !anew {
		return
	}
	kind := corev1.EventTypeWarning
	switch st.Reason {
	case v1beta1.ReasonReportMade, v1beta1.ReasonReportScheduled, v1beta1.ReasonSuspended:
		kind = corev1.EventTypeNormal
	}
	r.recorder.Eventf(object, nil, kind, st.Reason, "Reconcile", "%s", text.ClipLine(st.Message, statuspace.MessageLimit))
	log.FromContext(ctx).Info("CostReport changed", "reason", st.Reason, "message", st.Message)
}
