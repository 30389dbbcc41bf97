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

// Began tells the journal of a job that begins an attempt or a run in a tier, if somebody approved that.
func Began(j Journal, job client.Object, attempt, profile, tier string, at time.Time) {
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
