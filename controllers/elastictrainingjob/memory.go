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
	// alive are the owners of pods that were seen and not seen to leave, by the pods' UIDs.
	alive map[types.UID]types.UID
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

// came notes a pod that exists.
func (m *memory) came(job types.NamespacedName, owner, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(job)
	if r.alive == nil {
		r.alive = map[types.UID]types.UID{}
	}
	r.alive[pod] = owner
}

// departed notes a pod that is gone, and how it was last seen; d is nil when its last state is not known.
func (m *memory) departed(job types.NamespacedName, owner, pod types.UID, d *elastic.Departure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(job)
	delete(r.alive, pod)
	if d != nil {
		r.departures = append(r.departures, departure{owner, *d})
	}
}

// expectsNews is true when a pod of the job is gone from the cache and the watch has not told yet how it left. The cache is
// always a moment ahead of what the watch tells.
func (m *memory) expectsNews(job *v1alpha1.ElasticTrainingJob, workers []elastic.Worker) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	cached := make(map[types.UID]bool, len(workers))
	for i := range workers {
		cached[workers[i].UID] = true
	}
	for pod, owner := range m.of(client.ObjectKeyFromObject(job)).alive {
		if owner == job.UID && !cached[pod] {
			return true
		}
	}
	return false
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
