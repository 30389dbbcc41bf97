package costreport

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// noteLimit is how long the note of an event may be, by the API server.
const noteLimit = 1024

// report writes the status if it says anything new, and tells what became otherwise. Stale says that the object is another one by
// now.
func (r *Reconciler) report(ctx context.Context, object *v1alpha1.CostReport, d *costreport.Decision) (stale bool, err error) {
	r.metrics.observe(object.Name, d)
	if equality.Semantic.DeepEqual(object.Status, d.Status) {
		return false, nil
	}
	key := types.NamespacedName{Name: object.Name}
	updated := object.DeepCopy()
	updated.Status = d.Status
	err = r.applier.PatchStatus(ctx, key, object, updated)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return true, r.applier.CatchUp(ctx, key, object, &v1alpha1.CostReport{})
	case err != nil:
		return false, fmt.Errorf("write the status: %w", err)
	}
	r.tell(ctx, object, &d.Status)
	return false, nil
}

// tell emits an event and logs when the report came to be otherwise, once.
func (r *Reconciler) tell(ctx context.Context, object *v1alpha1.CostReport, st *v1alpha1.CostReportStatus) {
	anew := st.Last != nil && (object.Status.Last == nil || *st.Last != *object.Status.Last)
	if st.Reason == v1alpha1.ReasonReportDue || st.Reason == object.Status.Reason && !anew {
		return
	}
	kind := corev1.EventTypeWarning
	switch st.Reason {
	case v1alpha1.ReasonReportMade, v1alpha1.ReasonReportScheduled, v1alpha1.ReasonSuspended:
		kind = corev1.EventTypeNormal
	}
	r.recorder.Eventf(object, nil, kind, st.Reason, "Reconcile", "%s", text.Clip(st.Message, noteLimit))
	log.FromContext(ctx).Info("CostReport changed", "reason", st.Reason, "message", st.Message)
}
