package mergejob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

// report writes the status when it is due, also after a problem, and then emits events. It returns when to reconcile again;
// zero for never.
func (r *Reconciler) report(
	ctx context.Context, pool types.NamespacedName, d *merging.JobDecision, p *kube.Problem, now time.Time,
) (time.Duration, error) {
	if p == nil {
		r.memory.noteMade(d.Job.Object.UID)
	}
	wait, err := r.writeWhenDue(ctx, pool, d, now)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return kube.StaleInterval, r.applier.CatchUp(ctx, pool, d.Job.Object, &v1beta1.MergeJob{})
	case err != nil:
		return 0, fmt.Errorf("write the status: %w", err)
	case p != nil && p.Class == kube.Retry:
		// An API server that does not answer says nothing about the job.
		if apierrors.ReasonForError(p.Err) != metav1.StatusReasonUnknown {
			r.memory.noteRefusal(d.Job.Object, merging.Problem{Reason: p.Reason, Message: p.Message, Since: now})
		}
		return 0, p.Err
	case p != nil && p.Reason == v1beta1.ReasonPredecessorLeaving:
		return kube.StaleInterval, nil // What has the name is being deleted.
	case p != nil:
		log.FromContext(ctx).Error(p.Err, "Cannot apply a decision", "job", d.Job.Key().String(), "reason", p.Reason)
		if r.memory.noteRefusal(d.Job.Object, merging.Problem{Reason: p.Reason, Message: p.Message}) {
			return time.Millisecond, nil // The next plan knows of it, and says what becomes of the run.
		}
		return waitInterval, nil
	}
	return wait, nil
}

// writeWhenDue writes the status, or returns how long the change is to be held back.
func (r *Reconciler) writeWhenDue(
	ctx context.Context, pool types.NamespacedName, d *merging.JobDecision, now time.Time,
) (time.Duration, error) {
	job, wanted, key := d.Job.Object, &d.Status, d.Job.Key()
	pace := merging.PaceOf(&job.Status, wanted)
	if pace == statuspace.Never {
		r.pacer.NoteAgreement(key)
		return 0, nil
	}
	noticed, written := r.pacer.NoteDifference(key, pace, now)
	if wait := pace.TimeToWait(noticed, written, now); wait > 0 {
		return wait, nil
	}
	if err := r.applier.PatchStatus(ctx, pool, job, &job.Status, wanted); err != nil {
		return 0, err
	}
	r.pacer.NoteWrite(key, now)
	r.emitEvents(ctx, job, wanted)
	recorder.TellMerge(r.Journal, job, &job.Status, wanted, now)
	r.Usage.CountSizing(v1beta1.MergeJobKind, job.Namespace, job.Name, job.Status.Sizing, wanted.Sizing, d.OOMKills)
	r.metrics.countTransition(job, wanted)
	return 0, nil
}

// emitEvents emits the events of a change of the status, and logs it.
func (r *Reconciler) emitEvents(ctx context.Context, job *v1beta1.MergeJob, written *v1beta1.MergeJobStatus) {
	if written.Reason != job.Status.Reason || written.Phase != job.Status.Phase {
		attempt := ""
		if written.Run != nil {
			attempt = fmt.Sprintf("%s-%d", written.Run.ID, written.Run.Attempt)
		}
		logger := log.FromContext(ctx)
		if written.Phase == job.Status.Phase {
			logger = logger.V(1) // A merge that waits in a long line may change its reason many times before its phase.
		}
		logger.Info("Merge changed", "job", client.ObjectKeyFromObject(job).String(), "attempt", attempt,
			"decision", written.Phase, "reason", written.Reason, "message", written.Message)
	}
	for _, e := range merging.EventsBetween(&job.Status, written) {
		r.recorder.Eventf(job, nil, e.Type, e.Reason, "Reconcile", "%s", e.Message)
	}
}
