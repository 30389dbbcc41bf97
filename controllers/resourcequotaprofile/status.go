package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota"
)

// report writes the status when it is due, also after a problem, and then emits events. It returns when to reconcile again;
// zero for never.
func (r *Reconciler) report(ctx context.Context, d *quota.ProfileDecision, a applied, now time.Time) (time.Duration, error) {
	if a.queue != nil && isStale(a.queue) {
		return 0, a.queue.Err // The status would say what is not so.
	}
	wait, err := r.writeWhenDue(ctx, d, now)
	switch {
	case err != nil || a.placeholders != nil || a.guard != nil || a.notebooks != nil:
		return 0, errors.Join(err, a.placeholders, a.guard, a.notebooks)
	case a.queue == nil:
		return wait, nil
	case a.known:
		return quota.RefusedInterval, nil
	}
	log.FromContext(ctx).Error(a.queue.Err, "Cannot write the Queue of a profile", "queue", d.Profile.Name, "reason", a.queue.Reason)
	return time.Millisecond, nil // The next plan says so.
}

// writeWhenDue writes the status, or returns how long the change is to be held back.
func (r *Reconciler) writeWhenDue(ctx context.Context, d *quota.ProfileDecision, now time.Time) (time.Duration, error) {
	key := types.NamespacedName{Name: d.Profile.Name}
	pace := quota.PaceOf(&d.Profile.Status, &d.Status)
	if pace == statuspace.Never {
		r.pacer.NoteAgreement(key)
		return 0, nil
	}
	_, written := r.pacer.NoteDifference(key, pace, now)
	if wait := quota.HoldBack(pace, written, now); wait > 0 {
		return wait, nil
	}
	err := r.applier.PatchStatus(ctx, all, d.Profile, &d.Profile.Status, &d.Status)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return kube.StaleInterval, r.applier.CatchUp(ctx, all, d.Profile, &v1beta1.ResourceQuotaProfile{})
	case err != nil:
		return 0, fmt.Errorf("write the status: %w", err)
	}
	r.pacer.NoteWrite(key, now)
	r.emitEvent(ctx, d)
	return 0, nil
}

// noteLimit is how long the note of an event may be, by the API server.
const noteLimit = 1024

// emitEvent emits an event, and logs, when the reason of the profile changed.
func (r *Reconciler) emitEvent(ctx context.Context, d *quota.ProfileDecision) {
	if d.Status.Reason == d.Profile.Status.Reason || d.Status.Reason == v1beta1.ReasonQueueChanging {
		return
	}
	kind := corev1.EventTypeWarning
	if d.Status.Reason == v1beta1.ReasonQueueReady {
		kind = corev1.EventTypeNormal
	}
	r.recorder.Eventf(d.Profile, nil, kind, d.Status.Reason, "Reconcile", "%s", text.ClipLine(d.Status.Message, noteLimit))
	log.FromContext(ctx).Info("Profile changed", "queue", d.Profile.Name, "reason", d.Status.Reason, "message", d.Status.Message)
}
