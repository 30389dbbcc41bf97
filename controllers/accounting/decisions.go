package accounting

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/approval"
	"github.com/tideline-io/tideline/internal/ledger"
)

// Journal takes decisions that are to be kept.
type Journal interface {
	// Decided never waits.
	Decided(ledger.Decision)
}

// decisionApproved is the kind of decision by which a job began that somebody had approved.
const decisionApproved = "Approved"

// TrainingBegan tells the journal of a training whose first attempt has begun, if somebody approved that; of none twice.
func TrainingBegan(j Journal, job *v1alpha1.ElasticTrainingJob, st *v1alpha1.ElasticTrainingJobStatus) {
	if a := st.Attempt; a != nil && a.Number == 1 {
		began(j, job, a.ID(), st.Profile, st.Tier, a.StartTime.Time)
	}
}

// MergeBegan tells the journal of a merge whose run has begun, if somebody approved that; of none twice.
func MergeBegan(j Journal, job *v1alpha1.MergeJob, st *v1alpha1.MergeJobStatus) {
	if run := st.Run; run != nil && run.Attempt == 1 {
		began(j, job, run.ID, st.Profile, st.Tier, run.AskTime.Time)
	}
}

// began tells of a beginning by what the job itself says of it, so that it is the same decision whoever tells it, and when.
func began(j Journal, job client.Object, attempt, profile, tier string, at time.Time) {
	a, err := approval.Parse(job.GetAnnotations()[v1alpha1.AnnotationApproval])
	if err != nil {
		return
	}
	if counts, _ := a.Counts(job.GetUID(), profile, tier, at); !counts {
		return
	}
	j.Decided(ledger.Decision{
		At: at, Kind: decisionApproved, Namespace: job.GetNamespace(), Name: job.GetName(), UID: string(job.GetUID()), Attempt: attempt,
		Reason: decisionApproved, Message: "The job began by an approval of " + a.By + ".", Other: a.By,
		Figures: map[string]string{
			"tier": a.Tier, "profile": a.Profile, "at": a.At.UTC().Format(time.RFC3339), "until": a.Until.UTC().Format(time.RFC3339),
		},
	})
}

// recall tells of all jobs there are that began by an approval: of some nobody may have told, because the operator was killed at
// that moment, or the ledger was down.
func (r *Recorder) recall() {
	for _, o := range r.trainings.List() {
		if job, ok := o.(*v1alpha1.ElasticTrainingJob); ok {
			TrainingBegan(r, job, &job.Status)
		}
	}
	for _, o := range r.merges.List() {
		if job, ok := o.(*v1alpha1.MergeJob); ok {
			MergeBegan(r, job, &job.Status)
		}
	}
}
