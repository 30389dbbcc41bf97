package resourcequotaprofile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/quota"
)

// memory holds what no cache has. A restart loses it without harm: specs are checked again, and Volcano repeats its
// refusals. It needs no lock, because one reconcile runs at a time.
type memory struct {
	profiles map[types.UID]*remembered
	// waits are those of the last decision.
	waits quota.Waits
	// operator is the user as whom the API server knows the operator; empty while that was not asked.
	operator string
	// notebooks are what became of the last try to stop the Notebook of a pod.
	notebooks map[types.UID]*notebookTry
	// stopping is whether Notebooks can be stopped, and asked when that was asked.
	stopping quota.Stopping
	asked    time.Time
}

// notebookTry is what became of a try to stop the Notebook of a pod: either what it is, or why that was refused.
type notebookTry struct {
	is      quota.NotebookState
	refused string
	at      time.Time
}

type remembered struct {
	// checked is the generation whose spec was validated, and invalid the result.
	checked int64
	invalid string
	// refusal is what was said against the Queue, for that generation; empty for nothing.
	refusal    string
	generation int64
	// tried is when that was said.
	tried time.Time
	// placeholders are what was last said against what holds the room of reservations, by their names.
	placeholders map[string]quota.Refusal
	// guardRefusal is what was last said against the guard; empty for nothing.
	guardRefusal string
	// stopped are Notebooks that were stopped, the last ones.
	stopped []v1beta1.StoppedNotebook
}

func newMemory() *memory {
	return &memory{profiles: map[types.UID]*remembered{}, notebooks: map[types.UID]*notebookTry{}}
}

func (m *memory) entryFor(p *v1beta1.ResourceQuotaProfile) *remembered {
	if m.profiles[p.UID] == nil {
		m.profiles[p.UID] = &remembered{}
	}
	return m.profiles[p.UID]
}

// forgetGone drops deleted profiles.
func (m *memory) forgetGone(there []v1beta1.ResourceQuotaProfile) {
	stay := make(map[types.UID]*remembered, len(there))
	for i := range there {
		stay[there[i].UID] = m.entryFor(&there[i])
	}
	m.profiles = stay
}

// checkSpec validates a spec, once per generation.
func (m *memory) checkSpec(ctx context.Context, g *specvalidation.Guard, p *v1beta1.ResourceQuotaProfile) (string, error) {
	known := m.entryFor(p)
	if known.checked != p.Generation {
		invalid, err := g.CheckSpec(ctx, p)
		if err != nil {
			return "", err
		}
		known.checked, known.invalid = p.Generation, invalid
	}
	return known.invalid, nil
}

// noteRefusal records a refusal of the Queue and its time. It returns false if it is known already.
func (m *memory) noteRefusal(p *v1beta1.ResourceQuotaProfile, said string, now time.Time) bool {
	known := m.entryFor(p)
	known.tried = now
	if known.refusal == said && known.generation == p.Generation {
		return false
	}
	known.refusal, known.generation = said, p.Generation
	return true
}

// notePlaceholders records the result of creating placeholders. An error that a new try alone does not solve is a refusal.
func (m *memory) notePlaceholders(p *v1beta1.ResourceQuotaProfile, reservation string, err error) {
	known := m.entryFor(p)
	problem := kube.ProblemOf(err, "create what holds the room")
	switch {
	case problem == nil:
		delete(known.placeholders, reservation)
	case problem.Class != kube.Retry:
		if known.placeholders == nil {
			known.placeholders = map[string]quota.Refusal{}
		}
		known.placeholders[reservation] = quota.Refusal{Reason: problem.Reason, Said: err.Error()}
	}
}

// refusalOf is the last refusal of a reservation's placeholders; nil for none.
func (m *memory) refusalOf(p *v1beta1.ResourceQuotaProfile, reservation string) *quota.Refusal {
	if refusal, refused := m.entryFor(p).placeholders[reservation]; refused {
		return &refusal
	}
	return nil
}

// noteGuard records the result of writing the guard. An error that a new try alone does not solve is a refusal.
func (m *memory) noteGuard(p *v1beta1.ResourceQuotaProfile, err error) {
	switch problem := kube.ProblemOf(err, "write the guard"); {
	case problem == nil:
		m.entryFor(p).guardRefusal = ""
	case !isStale(problem):
		m.entryFor(p).guardRefusal = err.Error()
	}
}

// forgetRefusal records that the Queue was written.
func (m *memory) forgetRefusal(p *v1beta1.ResourceQuotaProfile) { m.entryFor(p).refusal = "" }

// lastRefusal is the last refusal of the Queue for this generation, and its time; empty for none.
func (m *memory) lastRefusal(p *v1beta1.ResourceQuotaProfile) (said string, at time.Time) {
	if known := m.entryFor(p); known.generation == p.Generation && known.refusal != "" {
		return known.refusal, known.tried
	}
	return "", time.Time{}
}
