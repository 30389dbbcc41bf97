package mergejob

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
)

// memory holds what no cache keeps. Losing it, as a restart does, loses no decision: specs are checked anew, and what the API
// server refused it refuses again.
type memory struct {
	mu   sync.Mutex
	jobs map[types.UID]*remembered
	// pools are the jobs that each pool had when it was last decided about.
	pools map[string]map[types.UID]types.NamespacedName
}

type remembered struct {
	// checked is the generation whose spec was held to its rules, and invalid what they said.
	checked int64
	invalid string
	// attempt is the one of which the API server refused something, and problem what it said.
	attempt v1alpha1.MergeRun
	problem *merging.Problem
}

func newMemory() *memory {
	return &memory{jobs: map[types.UID]*remembered{}, pools: map[string]map[types.UID]types.NamespacedName{}}
}

func (m *memory) entryFor(job types.UID) *remembered {
	if m.jobs[job] == nil {
		m.jobs[job] = &remembered{}
	}
	return m.jobs[job]
}

// checkSpec holds a spec to its rules, once per generation.
func (m *memory) checkSpec(ctx context.Context, g *specvalidation.Guard, job *v1alpha1.MergeJob) (string, error) {
	m.mu.Lock()
	r := m.entryFor(job.UID)
	if r.checked == job.Generation {
		defer m.mu.Unlock()
		return r.invalid, nil
	}
	m.mu.Unlock()
	invalid, err := g.Check(ctx, job)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r = m.entryFor(job.UID)
	r.checked, r.invalid = job.Generation, invalid
	return invalid, nil
}

// noteRefusal notes that the API server refused an object of the job's attempt. It returns false where that changes no decision,
// because it is known of the attempt already, or because there is none that goes on. What may be mended by trying again counts
// from the first time.
func (m *memory) noteRefusal(job *v1alpha1.MergeJob, p merging.Problem) bool {
	if run := job.Status.Run; run == nil || run.Outcome != "" {
		return false
	}
	known := m.currentProblem(job)
	if known != nil && (known.Since.IsZero() || (!p.Since.IsZero() && known.Message == p.Message)) {
		return false
	}
	if known != nil && !p.Since.IsZero() {
		p.Since = known.Since
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.entryFor(job.UID)
	r.attempt, r.problem = attemptOf(job), &p
	return true
}

// noteMade notes that all that was decided for the job is made: what was tried again has succeeded.
func (m *memory) noteMade(job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.jobs[job]; r != nil && r.problem != nil && !r.problem.Since.IsZero() {
		r.problem = nil
	}
}

// currentProblem is what was refused of the attempt that the job has now; nil for none.
func (m *memory) currentProblem(job *v1alpha1.MergeJob) *merging.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.entryFor(job.UID); job.Status.Run != nil && r.attempt == attemptOf(job) {
		return r.problem
	}
	return nil
}

// attemptOf is the job's run as far as it tells one attempt from another.
func attemptOf(job *v1alpha1.MergeJob) v1alpha1.MergeRun {
	return v1alpha1.MergeRun{ID: job.Status.Run.ID, Attempt: job.Status.Run.Attempt}
}

// forgetGone drops the jobs that the pool has no more, and returns them. A job that went to another pool loses nothing that
// counts.
func (m *memory) forgetGone(pool string, have []*merging.Job) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	had, now := m.pools[pool], make(map[types.UID]types.NamespacedName, len(have))
	for _, job := range have {
		now[job.Object.UID] = job.Key()
	}
	if m.pools[pool] = now; len(now) == 0 {
		delete(m.pools, pool)
	}
	var gone []types.NamespacedName
	for job, key := range had {
		if _, stays := now[job]; !stays {
			delete(m.jobs, job)
			gone = append(gone, key)
		}
	}
	return gone
}
