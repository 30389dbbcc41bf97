package recorder

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// Journal takes decisions that are to be kept.
type Journal interface {
	// Decided never waits.
	Decided(ledger.Decision)
}

// TellTraining tells the journal what was decided about a training from one written status to the next.
func TellTraining(j Journal, job *v1beta1.ElasticTrainingJob, before, after *v1beta1.ElasticTrainingJobStatus, now time.Time) {
	for _, d := range decisionlog.TrainingDecisions(job, before, after, now) {
		j.Decided(d)
	}
	if a := after.Attempt; before.Attempt == nil && a != nil && a.Number == 1 {
		noteApproval(j, job, a.ID(), after.Profile, after.Tier, a.StartTime.Time)
	}
}

// TellMerge tells the journal what was decided about a merge from one written status to the next.
func TellMerge(j Journal, job *v1beta1.MergeJob, before, after *v1beta1.MergeJobStatus, now time.Time) {
	for _, d := range decisionlog.MergeDecisions(job, before, after, now) {
		j.Decided(d)
	}
	if run := after.Run; run != nil && run.Attempt == 1 && (before.Run == nil || before.Run.ID != run.ID) {
		noteApproval(j, job, run.ID, after.Profile, after.Tier, run.AskTime.Time)
	}
}

// noteApproval records the approval by which a job began. It uses only what the job itself says, so that every operator
// records the same decision at any time.
func noteApproval(j Journal, job client.Object, attempt, profile, tier string, at time.Time) {
	a, err := approval.Parse(job.GetAnnotations()[v1beta1.AnnotationApproval])
	if err != nil {
		return
	}
	if counts, _ := a.IsValidFor(job.GetUID(), profile, tier, at); !counts {
		return
	}
	j.Decided(ledger.Decision{
		At: at, Kind: decisionlog.Approved, Namespace: job.GetNamespace(), Name: job.GetName(), UID: string(job.GetUID()),
		Attempt: attempt,
		Reason:  decisionlog.Approved, Message: "The job began with the approval of " + a.By + ".", Other: a.By,
		Figures: map[string]string{
			"tier": a.Tier, "profile": a.Profile, "at": a.At.UTC().Format(time.RFC3339), "until": a.Until.UTC().Format(time.RFC3339),
		},
	})
}

// list is a journal that is recorded at once.
type list []ledger.Decision

// Decided keeps a decision.
func (l *list) Decided(d ledger.Decision) { *l = append(*l, d) }

// recallDecisions records the decisions that the statuses of all jobs contain. Some may be missing in the ledger, because
// the operator was killed or the ledger was down. Known decisions are not recorded again.
func (r *Recorder) recallDecisions(ctx context.Context, l Ledger) error {
	all := list{}
	for _, o := range r.trainings.List() {
		if job, ok := o.(*v1beta1.ElasticTrainingJob); ok {
			TellTraining(&all, job, &v1beta1.ElasticTrainingJobStatus{}, &job.Status, r.now())
		}
	}
	for _, o := range r.merges.List() {
		if job, ok := o.(*v1beta1.MergeJob); ok {
			TellMerge(&all, job, &v1beta1.MergeJobStatus{}, &job.Status, r.now())
		}
	}
	for i := range all {
		r.growths.noteMeasure(&all[i])
	}
	for part := range slices.Chunk(all, batch) {
		if err := r.recordEntries(ctx, l, ledger.Entries{Decisions: part}); err != nil {
			return err
		}
	}
	return nil
}
