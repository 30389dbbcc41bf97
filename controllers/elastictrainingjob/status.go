package elastictrainingjob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/elastic"
	"github.com/tideline-io/tideline/internal/kube"
)

type status = v1alpha1.ElasticTrainingJobStatus

// report writes the status when it is due, also after a problem, and then tells the story in events.
func (r *Reconciler) report(
	ctx context.Context, o elastic.Observed, d elastic.Decision, p *problem, now time.Time,
) (reconcile.Result, error) {
	wanted, again := d.Status, d.RequeueAfter
	if p != nil {
		obstacle := elastic.Obstacle{Reason: p.Reason, Message: p.Message, Stalled: p.Class == kube.Terminal}
		wanted = elastic.Explain(o, now, d, obstacle)
		again = sooner(again, waitInterval)
	}
	wait, err := r.writeWhenDue(ctx, o, &wanted, d.Losses, now)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		if err := r.catchUp(ctx, o.Job); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: staleInterval}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	case p != nil && p.Class == kube.Retry:
		return reconcile.Result{}, p.err
	case p != nil && o.Job.Status.CompletionTime != nil:
		// An ended job keeps the words of its end.
		log.FromContext(ctx).Error(p.err, "Cannot clean up after the job", "reason", p.Reason)
	case wait > 0:
		again = sooner(again, wait)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// catchUp has a job left alone until the cache of jobs is as new as the API server, which knows another job than the one that was
// reconciled: it was changed, deleted, or created anew. While the watch sleeps, what is created for a job that is gone would be
// collected at once and created again, without end.
func (r *Reconciler) catchUp(ctx context.Context, job *v1alpha1.ElasticTrainingJob) error {
	key, live := client.ObjectKeyFromObject(job), &v1alpha1.ElasticTrainingJob{}
	err := r.creator.Live.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		r.writes.Deleted(key, job)
		return nil
	case err != nil:
		return fmt.Errorf("read the job that is newer than the cache: %w", err)
	}
	return r.writes.Wrote(key, live)
}

// writeWhenDue writes the status, or returns how long the change is to be held back.
func (r *Reconciler) writeWhenDue(
	ctx context.Context, o elastic.Observed, wanted *status, losses []elastic.Loss, now time.Time,
) (time.Duration, error) {
	key := client.ObjectKeyFromObject(o.Job)
	r.metrics.hold(o.Job, &o.Job.Status)
	pace := elastic.PaceOf(&o.Job.Status, wanted)
	if pace == elastic.PaceNever {
		r.pacer.Agrees(key)
		r.memory.settle(key, o.Departures)
		return 0, nil
	}
	noticed, written := r.pacer.Differs(key, int(pace), now)
	if wait := pace.Wait(noticed, written, now); wait > 0 {
		return wait, nil
	}
	if err := r.write(ctx, o.Job, *wanted); err != nil {
		return 0, err
	}
	r.pacer.Wrote(key, now)
	r.memory.settle(key, o.Departures)
	r.tell(ctx, o.Job, wanted)
	r.metrics.count(o.Job, elastic.Measure(&o.Job.Status, wanted, losses))
	r.metrics.hold(o.Job, wanted)
	return 0, nil
}

// sooner is the shorter of two times to wait, of which zero means for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// write patches the status. The resource version goes with it, so that an operator with an old view overwrites nothing.
func (r *Reconciler) write(ctx context.Context, job *v1alpha1.ElasticTrainingJob, wanted status) error {
	updated := job.DeepCopy()
	updated.Status = wanted
	patch := client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, updated, patch); err != nil {
		return err
	}
	return r.writes.Wrote(client.ObjectKeyFromObject(job), updated)
}

// tell emits the events of a transition and logs it, once.
func (r *Reconciler) tell(ctx context.Context, job *v1alpha1.ElasticTrainingJob, written *status) {
	if written.Reason != job.Status.Reason || written.Phase != job.Status.Phase {
		attempt := ""
		if written.Attempt != nil {
			attempt = written.Attempt.ID()
		}
		log.FromContext(ctx).Info("Job changed", "attempt", attempt, "queue", written.Queue,
			"decision", written.Phase, "reason", written.Reason, "workers", written.ReadyWorkers, "message", written.Message)
	}
	for _, e := range elastic.Events(&job.Status, written) {
		r.recorder.Eventf(job, nil, e.Type, e.Reason, "Reconcile", "%s", e.Message)
	}
}
