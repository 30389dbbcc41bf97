package elastictrainingjob

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
)

// memory holds what watches told and no cache keeps. Losing it, as a restart does, loses no decision: status remembers the
// workers, and Plan knows how to judge one that nobody saw leave.
type memory struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]*remembered
}

type remembered struct {
	departures []departure
	// alive are the pods that were seen and not seen to leave.
	alive map[types.UID]seen
	// checked is the generation of the job of that UID whose spec was held to its rules, and problem what they said.
	checked   int64
	checkedOf types.UID
	problem   string
}

type departure struct {
	owner types.UID
	podstate.Departure
}

// seen is how a living pod was last seen.
type seen struct {
	owner     types.UID
	succeeded bool
}

func newMemory() *memory { return &memory{jobs: map[types.NamespacedName]*remembered{}} }

func (m *memory) of(job types.NamespacedName) *remembered {
	if m.jobs[job] == nil {
		m.jobs[job] = &remembered{}
	}
	return m.jobs[job]
}

// noteSeen notes a pod as it is.
func (m *memory) noteSeen(job types.NamespacedName, owner, pod types.UID, w podstate.Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(job)
	if r.alive == nil {
		r.alive = map[types.UID]seen{}
	}
	r.alive[pod] = seen{owner: owner, succeeded: r.alive[pod].succeeded || w.Succeeded()}
}

// noteGone notes a pod that is gone, and how it was last seen; last is the zero Worker when that is not known.
func (m *memory) noteGone(job types.NamespacedName, owner, pod types.UID, last podstate.Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(job)
	if last.UID != "" {
		r.departures = append(r.departures, departure{owner, last.Departed(r.alive[pod].succeeded || last.Succeeded())})
	}
	delete(r.alive, pod)
}

// news returns the departures that are not settled, of pods that are not listed. It returns false when a pod is gone from the
// cache and the watch has not told yet how it left: the cache is always a moment ahead of what the watch tells. It must be
// called after the pods were listed.
func (m *memory) news(job *v1alpha1.ElasticTrainingJob, listed map[types.UID]bool) ([]podstate.Departure, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(client.ObjectKeyFromObject(job))
	for pod, s := range r.alive {
		if s.owner == job.UID && !listed[pod] {
			return nil, false
		}
	}
	var departures []podstate.Departure
	for _, d := range r.departures {
		if d.owner == job.UID && !listed[d.UID] {
			departures = append(departures, d.Departure)
		}
	}
	return departures, true
}

// settle drops departures that the status now knows.
func (m *memory) settle(job types.NamespacedName, known []podstate.Departure) {
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
func (m *memory) check(ctx context.Context, g *specvalidation.Guard, job *v1alpha1.ElasticTrainingJob) (string, error) {
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
