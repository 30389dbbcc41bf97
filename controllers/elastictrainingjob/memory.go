package elastictrainingjob

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/elastic"
	"github.com/tideline-io/tideline/internal/guard"
)

// memory holds what watches told and no cache keeps. Losing it, as a restart does, loses no decision: status remembers the
// workers, and Plan knows how to judge one that nobody saw leave.
type memory struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]*remembered
}

type remembered struct {
	departures []departure
	// checked is the generation of the job of that UID whose spec was held to its rules, and problem what they said.
	checked   int64
	checkedOf types.UID
	problem   string
}

type departure struct {
	owner types.UID
	elastic.Departure
}

func newMemory() *memory { return &memory{jobs: map[types.NamespacedName]*remembered{}} }

func (m *memory) of(job types.NamespacedName) *remembered {
	if m.jobs[job] == nil {
		m.jobs[job] = &remembered{}
	}
	return m.jobs[job]
}

// departed notes a pod that is gone.
func (m *memory) departed(job types.NamespacedName, owner types.UID, d elastic.Departure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(job)
	r.departures = append(r.departures, departure{owner, d})
}

// departures lists the pods of the job of that UID that are gone and not settled.
func (m *memory) departures(job types.NamespacedName, owner types.UID) []elastic.Departure {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []elastic.Departure
	for _, d := range m.of(job).departures {
		if d.owner == owner {
			all = append(all, d.Departure)
		}
	}
	return all
}

// settle drops departures that the status now knows.
func (m *memory) settle(job types.NamespacedName, known []elastic.Departure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	settled := map[types.UID]bool{}
	for _, d := range known {
		settled[d.UID] = true
	}
	r := m.of(job)
	kept := r.departures[:0]
	for _, d := range r.departures {
		if !settled[d.UID] {
			kept = append(kept, d)
		}
	}
	r.departures = kept
}

func (m *memory) forget(job types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, job)
}

// check holds a spec to its rules, once per generation.
func (m *memory) check(ctx context.Context, g *guard.Guard, job *v1alpha1.ElasticTrainingJob) (string, error) {
	key := client.ObjectKeyFromObject(job)
	m.mu.Lock()
	r := m.of(key)
	if r.checkedOf == job.UID && r.checked == job.Generation {
		defer m.mu.Unlock()
		return r.problem, nil
	}
	m.mu.Unlock()
	problem, err := g.Check(ctx, job)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r = m.of(key)
	r.checkedOf, r.checked, r.problem = job.UID, job.Generation, problem
	return problem, nil
}
