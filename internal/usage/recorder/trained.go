package recorder

import (
	"context"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// NoteTraining records soon what was seen of a training. It never waits, and does nothing in an operator without a ledger or that
// does not lead.
func (r *Recorder) NoteTraining(e ledger.Trained) { r.keepTrained(nil, e) }

// TrainedOf is an entry of a job that tells only what it counts for, as its pods do.
func TrainedOf(job *v1beta1.ElasticTrainingJob, queue string) ledger.Trained {
	return ledger.Trained{
		UID: string(job.UID), Namespace: job.Namespace, Profile: job.Status.Profile, Queue: queue,
		User: job.Annotations[v1beta1.AnnotationOwner], Tier: job.Status.Tier, Kind: v1beta1.ElasticTrainingJobKind,
		Task: trainingpod.TaskOf(job),
	}
}

// keepTrained keeps entries, after others that were not recorded.
func (b *backlog) keepTrained(before []ledger.Trained, entries ...ledger.Trained) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.leading {
		return
	}
	if len(before) > 0 {
		b.trained = slices.Concat(before, b.trained)
	}
	b.trained = append(b.trained, entries...)
	if len(b.trained) > mostTrained { // A tenth more, so that not each entry moves all others.
		more := len(b.trained) - mostTrained + mostTrained/10
		b.trained = slices.Delete(b.trained, 0, more)
		b.metrics.trained.Add(float64(more))
	}
}

// takeTrained takes the entries that wait.
func (b *backlog) takeTrained() []ledger.Trained {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.trained
	b.trained = nil
	return taken
}

// writeTrained records the entries of trainings that wait.
func (r *Recorder) writeTrained(ctx context.Context, l Ledger) error {
	waiting := r.takeTrained()
	for part := range slices.Chunk(waiting, batch) {
		if err := r.recordEntries(ctx, l, ledger.Entries{Trained: part}); err != nil {
			r.keepTrained(waiting) // Those that are recorded already count once.
			return err
		}
	}
	return nil
}

// recallSuccesses records which trainings have succeeded: one that did while no operator ran keeps its last steps.
func (r *Recorder) recallSuccesses(ctx context.Context, l Ledger) error {
	var all []ledger.Trained
	now := r.now()
	for _, o := range r.trainings.List() {
		job, ok := o.(*v1beta1.ElasticTrainingJob)
		if !ok || job.Spec.Progress == nil || job.Status.Phase != v1beta1.PhaseSucceeded {
			continue
		}
		e := TrainedOf(job, job.Status.Queue)
		e.From, e.To, e.Succeeded = now, now, true
		all = append(all, e)
	}
	for part := range slices.Chunk(all, batch) {
		if err := r.recordEntries(ctx, l, ledger.Entries{Trained: part}); err != nil {
			return err
		}
	}
	return nil
}
