// Package outlook says in words what would be: when a training that does not exist yet would start.
package outlook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Foreteller simulates when trainings that do not exist yet would start. *[arbiter.Arbiter] is one.
type Foreteller interface {
	ForetellStart(ctx context.Context, job *v1beta1.ElasticTrainingJob, queue string) (*arbiter.Outlook, error)
}

// ChangeTeller says what a profile, as it would be, would have changed in a time that ends now. names says whether other teams
// may be named.
type ChangeTeller interface {
	TellChange(ctx context.Context, changed *v1beta1.ResourceQuotaProfile, window time.Duration, names bool) []string
}

// Tellers answer those who ask what would be; nil for no answer.
type Tellers struct {
	// Start of a training, and Change by a profile.
	Start  Foreteller
	Change ChangeTeller
}

// TellStart says when a training that may be created would start in a queue, or why that is not known. It names no other job:
// whoever asks may see less than the operator.
func TellStart(ctx context.Context, f Foreteller, job *v1beta1.ElasticTrainingJob, queue string) []string {
	switch outlook, err := f.ForetellStart(ctx, job, queue); {
	case errors.Is(err, arbiter.ErrNotJudging):
		return []string{"When this job would start is not known: the replica of the operator that answered does not lead, or has " +
			"just begun. Ask again."}
	case errors.Is(err, arbiter.ErrResting):
		return []string{"When this job would start is not known: the operator simulates for others now. Ask again in ten seconds."}
	case err != nil:
		return []string{fmt.Sprintf("When this job would start is not known: %v. Ask again.", err)}
	default:
		return sayOutlook(outlook)
	}
}

// fewFutures have no twentieth to leave out at either end.
const fewFutures = 20

// sayOutlook says when a training would start, at whose expense, and what that is from.
func sayOutlook(o *arbiter.Outlook) []string {
	workers := text.FormatCount(o.Gang.Workers, "core worker")
	switch {
	case o.Answer.Unknown != "":
		return []string{fmt.Sprintf("When this job would start is not known: Tideline does not model %s.", o.Answer.Unknown)}
	case o.Never != nil:
		return []string{fmt.Sprintf("This job would never start: its %s do not fit, even if nothing else ran. %s",
			workers, o.Never.SayEmpty("worker"))}
	case o.Answer.Fits && o.Before == 0:
		return []string{fmt.Sprintf("This job would start now: its %s fit.", workers)}
	case o.Surplus > 0 && o.Before == 0:
		return []string{fmt.Sprintf("This job would start in about 2 minutes: %s of %s would leave for it.",
			text.FormatCount(o.Surplus, "surplus worker"), text.FormatCount(o.Jobs, "other job"))}
	case o.Futures == 0:
		return []string{"When this job would start is not known: the cluster is too large to be simulated in a second."}
	}
	share, first, last := "9 of 10 simulations", 0.05, 0.95
	if o.Futures < fewFutures {
		share, first, last = "All simulations that there was time for", 0, 1
	}
	said := fmt.Sprintf("This job would start in %s. %s have it start between %s and %s from now.",
		sayStart(o, 0.5), share, sayStart(o, first), sayStart(o, last))
	if o.Before > 0 {
		said += fmt.Sprintf(" Before it in order: %s.", text.FormatCount(o.Before, "waiting gang"))
	}
	return []string{said, sayBasis(o)}
}

// sayStart is by when a part of the simulations has the training start.
func sayStart(o *arbiter.Outlook, part float64) string {
	start, known := o.StartBy(part)
	if !known {
		return "more than two weeks"
	}
	return text.FormatRoughly(start)
}

// sayBasis says what the lifetimes of running jobs are taken from, and what is left out.
func sayBasis(o *arbiter.Outlook) string {
	from, most := lifetime.FromAge, 0
	for _, source := range []lifetime.Source{lifetime.FromTask, lifetime.FromQueue, lifetime.FromAll, lifetime.FromAge} {
		if o.From[source] > most {
			from, most = source, o.From[source]
		}
	}
	last := "as long as " + string(from) + " did"
	if from == lifetime.FromAge {
		last = "with even odds as long again as they have run, because too few jobs have ended"
	}
	return fmt.Sprintf("From %s, in which running jobs last %s. Jobs that come later, and limits of the profile, are "+
		"left out.", text.FormatCount(o.Futures, "simulation"), last)
}
