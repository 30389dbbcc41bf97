package mergejob

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// memory holds what no cache has. A restart loses it without harm: specs are checked again, and the API server repeats its
// refusals.
type memory struct {
	mu   sync.Mutex
	jobs map[types.UID]*remembered
	// pools are the jobs that each pool had when it was last decided about.
	pools map[string]map[types.UID]types.NamespacedName
}

type remembered struct {
	// checked is the generation whose spec was validated, and invalid the result.
	checked int64
	invalid string
	// attempt is the attempt whose object the API server refused, and problem the refusal.
	attempt v1beta1.MergeRun
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

// checkSpec validates a spec, once per generation.
func (m *memory) checkSpec(ctx context.Context, g *specvalidation.Guard, job *v1beta1.MergeJob) (string, error) {
	if n := kube.WeightOfDropped(job); n > 0 {
		return trainingpod.TooHeavy(n).Error(), nil
	}
	m.mu.Lock()
	r := m.entryFor(job.UID)
	if r.checked == job.Generation {
		defer m.mu.Unlock()
		return r.invalid, nil
	}
	m.mu.Unlock()
	invalid, err := g.CheckSpec(ctx, job)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r = m.entryFor(job.UID)
	r.checked, r.invalid = job.Generation, invalid
	return invalid, nil
}

// noteRefusal records that the API server refused an object of the job's attempt. It returns false if that changes no
// decision: the refusal is known already, or no attempt goes on. A refusal that a later try may overcome counts from the
// first time.
func (m *memory) noteRefusal(job *v1beta1.MergeJob, p merging.Problem) bool {
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

// noteMade records that all objects of the decision exist, so that no refusal remains.
func (m *memory) noteMade(job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.jobs[job]; r != nil && r.problem != nil && !r.problem.Since.IsZero() {
		r.problem = nil
	}
}

// currentProblem is the refusal that concerns the job's present attempt; nil for none.
func (m *memory) currentProblem(job *v1beta1.MergeJob) *merging.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.entryFor(job.UID); job.Status.Run != nil && r.attempt == attemptOf(job) {
		return r.problem
	}
	return nil
}

// attemptOf identifies the job's attempt.
func attemptOf(job *v1beta1.MergeJob) v1beta1.MergeRun {
	return v1beta1.MergeRun{ID: job.Status.Run.ID, Attempt: job.Status.Run.Attempt}
}

// forgetGone drops jobs that left the pool, and returns them. A job that moved to another pool loses nothing that matters.
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
