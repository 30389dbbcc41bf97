package elastictrainingjob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

type status = v1beta1.ElasticTrainingJobStatus

// report writes the status if it is due, also after a problem with applying the decision, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, o jobstate.Observed, d training.Decision, p *kube.Problem, now time.Time,
) (reconcile.Result, error) {
	wanted, again := d.Status, d.RequeueAfter
	if p != nil {
		obstacle := jobstate.Obstacle{Reason: p.Reason, Message: p.Message, Stalled: p.Class == kube.Terminal}
		wanted = training.ExplainObstacle(o, now, d, obstacle)
		again = kube.SoonerOf(again, waitInterval)
	}
	wait, err := r.writeWhenDue(ctx, o, &wanted, d, now)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// The job is newer than our cache: changed, deleted or created again. It is left alone until the cache knows as much.
		key := client.ObjectKeyFromObject(o.Job)
		if err := r.applier.CatchUp(ctx, key, o.Job, &v1beta1.ElasticTrainingJob{}); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: kube.StaleInterval}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	case p != nil && p.Class == kube.Retry:
		// With the error the queue tries again by its back-off.
		return reconcile.Result{}, p.Err
	case p != nil && o.Job.Status.CompletionTime != nil:
		// The status of an ended job keeps saying how it ended, so this problem is only in the log.
		log.FromContext(ctx).Error(p.Err, "Could not clean up after the job", "reason", p.Reason)
	case wait > 0:
		again = kube.SoonerOf(again, wait)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// writeWhenDue writes the status and reports the change, or returns how long the write must wait.
func (r *Reconciler) writeWhenDue(
	ctx context.Context, o jobstate.Observed, wanted *status, d training.Decision, now time.Time,
) (time.Duration, error) {
	key := client.ObjectKeyFromObject(o.Job)
	claimed := o.Claims.Count().Devices
	r.metrics.holdGPUs(o.Job, &o.Job.Status, claimed)
	pace := training.PaceOf(&o.Job.Status, wanted)
	if pace == statuspace.Never {
		r.pacer.NoteAgreement(key)
		r.settle(o, false, now)
		return 0, nil
	}
	noticed, written := r.pacer.NoteDifference(key, pace, now)
	if wait := pace.TimeToWait(noticed, written, now); wait > 0 {
		return wait, nil
	}
	if err := r.applier.PatchStatus(ctx, key, o.Job, &o.Job.Status, wanted); err != nil {
		return 0, err
	}
	r.pacer.NoteWrite(key, now)
	measures := describe.MeasureChange(&o.Job.Status, wanted, d.Losses)
	r.settle(o, len(measures.Resizes) > 0, now)
	r.suspects.note(o.Job, d.Failed, o.WebhooksOff)
	r.tellChange(ctx, o.Job, wanted)
	recorder.TellTraining(r.Journal, o.Job, &o.Job.Status, wanted, now)
	task, sized := trainingpod.TaskOf(o.Job), o.Job.Status.Sizing
	r.Usage.CountSizing(v1beta1.ElasticTrainingJobKind, o.Job.Namespace, task, sized, wanted.Sizing, d.OOMKills)
	r.metrics.addMeasures(o.Job, measures)
	r.metrics.holdGPUs(o.Job, wanted, claimed)
	return 0, nil
}

// settle forgets what was observed once and the status has now. resized says that the job changed its size with it.
func (r *Reconciler) settle(o jobstate.Observed, resized bool, now time.Time) {
	r.memory.settle(o.Job, o.Departures)
	if fresh := r.outages.noteWrite(o.Job, o.Measurements, resized, now); fresh {
		r.metrics.addOutage(o.Job, o.MeasuredOutage)
	}
}

// tellChange emits the events of a transition and logs it, once.
func (r *Reconciler) tellChange(ctx context.Context, job *v1beta1.ElasticTrainingJob, written *status) {
	if written.Reason != job.Status.Reason || written.Phase != job.Status.Phase {
		attempt := ""
		if written.Attempt != nil {
			attempt = written.Attempt.ID()
		}
		logger := log.FromContext(ctx)
		if written.Phase == job.Status.Phase {
			logger = logger.V(1) // A job of a long queue may change its reason many times before its phase.
		}
		logger.Info("Job changed", "attempt", attempt, "queue", written.Queue,
			"decision", written.Phase, "reason", written.Reason, "workers", written.Summary, "message", written.Message)
	}
	for _, e := range describe.EventsBetween(&job.Spec, &job.Status, written) {
		r.recorder.Eventf(job, nil, e.Type, e.Reason, "Reconcile", "%s", e.Message)
	}
}
