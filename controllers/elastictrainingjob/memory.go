package elastictrainingjob

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// memory holds what watches reported and caches do not keep. A restart loses it, but no decision with it: status remembers the
// workers, and Plan knows how to judge a pod whose end it did not see.
type memory struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]*remembered
}

type remembered struct {
	departures []departure
	// alive are the pods that the watch has reported and not yet reported as deleted.
	alive map[types.UID]seen
	// checked is the generation that was validated last, of the job with UID checkedOf, and problem the result.
	checked   int64
	checkedOf types.UID
	problem   string
	// putBack is what was put back on workers of the job with UID putBackOf.
	putBack   jobstate.PutBack
	putBackOf types.UID
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

func (m *memory) entryOf(job types.NamespacedName) *remembered {
	if m.jobs[job] == nil {
		m.jobs[job] = &remembered{}
	}
	return m.jobs[job]
}

// noteSeen notes the state of a living pod.
func (m *memory) noteSeen(job types.NamespacedName, owner, pod types.UID, w podstate.Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.entryOf(job)
	if r.alive == nil {
		r.alive = map[types.UID]seen{}
	}
	r.alive[pod] = seen{owner: owner, succeeded: r.alive[pod].succeeded || w.HasSucceeded()}
}

// noteGone notes that a pod is gone. last is how it was last seen; the zero Worker if that is not known.
func (m *memory) noteGone(job types.NamespacedName, owner, pod types.UID, last podstate.Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.entryOf(job)
	if last.UID != "" {
		r.departures = append(r.departures, departure{owner, last.AsDeparture(r.alive[pod].succeeded || last.HasSucceeded())})
	}
	delete(r.alive, pod)
}

// unsettled returns the departures that no status has recorded yet, of pods that are not listed. It returns false if a pod is
// gone from the cache but its handler has not run yet, so that it is unknown how the pod ended: the cache is always a moment
// ahead. It must be called after the pods were listed.
func (m *memory) unsettled(job *v1beta1.ElasticTrainingJob, listed map[types.UID]bool) ([]podstate.Departure, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.entryOf(client.ObjectKeyFromObject(job))
	for pod, s := range r.alive {
		if s.owner == job.UID && !listed[pod] {
			return nil, false
		}
	}
	var departures []podstate.Departure
	for _, d := range r.departures {
		if d.owner == job.UID && !listed[d.UID] {
			d.Attempt = jobstate.AttemptOf(&job.Status, d.Index, d.UID, d.Attempt)
			departures = append(departures, d.Departure)
		}
	}
	return departures, true
}

// settle drops departures that the written status has recorded, and those of pods that say of themselves that another job of that
// name controls them: it is gone, or never was, because a pod of a later one comes after this reconcile.
func (m *memory) settle(job *v1beta1.ElasticTrainingJob, known []podstate.Departure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	settled := map[types.UID]bool{}
	for _, d := range known {
		settled[d.UID] = true
	}
	r := m.entryOf(client.ObjectKeyFromObject(job))
	kept := r.departures[:0]
	for _, d := range r.departures {
		if d.owner == job.UID && !settled[d.UID] {
			kept = append(kept, d)
		}
	}
	r.departures = kept
}

// putBackOn is what was put back on workers of the job.
func (m *memory) putBackOn(job *v1beta1.ElasticTrainingJob) jobstate.PutBack {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.entryOf(client.ObjectKeyFromObject(job)); r.putBackOf == job.UID {
		return r.putBack
	}
	return jobstate.PutBack{}
}

// notePutBack notes what was put back on workers of the job.
func (m *memory) notePutBack(job *v1beta1.ElasticTrainingJob, now jobstate.PutBack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.entryOf(client.ObjectKeyFromObject(job))
	r.putBack, r.putBackOf = now, job.UID
}

// ownersOf are the UIDs of jobs of that name whose pods are not gone yet.
func (m *memory) ownersOf(job types.NamespacedName) []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	owners := sets.New[types.UID]()
	if r := m.jobs[job]; r != nil {
		for _, s := range r.alive {
			owners.Insert(s.owner)
		}
	}
	return owners.UnsortedList()
}

func (m *memory) forget(job types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, job)
}

// validateSpec checks a spec against its schema and rules, once per generation: CEL is expensive and the result cannot change.
func (m *memory) validateSpec(ctx context.Context, g *specvalidation.Guard, job *v1beta1.ElasticTrainingJob) (string, error) {
	if n := kube.WeightOfDropped(job); n > 0 {
		return trainingpod.TooHeavy(n).Error(), nil
	}
	key := client.ObjectKeyFromObject(job)
	m.mu.Lock()
	r := m.entryOf(key)
	if r.checkedOf == job.UID && r.checked == job.Generation {
		defer m.mu.Unlock()
		return r.problem, nil
	}
	m.mu.Unlock()
	problem, err := g.CheckSpec(ctx, job)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r = m.entryOf(key)
	r.checkedOf, r.checked, r.problem = job.UID, job.Generation, problem
	return problem, nil
}
