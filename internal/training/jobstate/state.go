// Package jobstate holds what was observed of an ElasticTrainingJob and the status that is being planned, and answers questions
// about both. A question changes nothing.
package jobstate

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// State is a job in one evaluation.
type State struct {
	Observed
	Now  time.Time
	Spec *v1beta1.ElasticTrainingJobSpec
	// Status is the status that is being planned. Job.Status is the one at the API server.
	Status *v1beta1.ElasticTrainingJobStatus
	// At holds the worker of each index in the current attempt, or nil; a slice, because a job may have thousands.
	At []*podstate.Worker
	// Left is true for the index of a worker that is not replaced in this attempt, and Completed if that is because it succeeded.
	// Both are empty before losses are settled.
	Left, Completed []bool
	// Strays are pods of other attempts.
	Strays []*podstate.Worker
	// strayAt is true for the index of a stray, and named for the pods that the arbiter named to leave.
	strayAt []bool
	named   map[types.UID]bool
	// Refused says what the next attempt of a job that has begun does not take over from its spec, and why.
	Refused Refused
	// Wanted is the number of workers that the spec aims at, from minReplicas to maxReplicas.
	Wanted int32
	// Minimum and Maximum bound the workers of the current attempt; both 0 without an attempt.
	Minimum, Maximum int32
}

// Refused are the changes of a job that has begun which a new job may not have either; nil for what may follow.
type Refused struct {
	Tier, Processes *Obstacle
}

// New returns the state of a job at a time. The planned status begins as a copy of the one at the API server.
func New(o Observed, now time.Time) *State {
	s := &State{Observed: o, Now: now, Spec: &o.Job.Spec, Wanted: o.Job.WantedReplicas()}
	if n := len(o.Verdict.GiveUp); n > 0 {
		s.named = make(map[types.UID]bool, n)
		for _, uid := range o.Verdict.GiveUp {
			s.named[uid] = true
		}
	}
	s.adoptStatus(o.Job.Status.DeepCopy())
	s.Status.ObservedGeneration = o.Job.Generation
	// A target that was set once is told from the default from then on, also if it is lowered to the same number.
	s.Status.Targeted = s.Status.Targeted || s.Spec.Replicas > v1beta1.NoTarget
	s.Status.Selector = v1beta1.LabelJob + "=" + o.Job.Name
	return s
}

// adoptStatus makes st the planned status, and derives the range and the order of workers from it.
func (s *State) adoptStatus(st *v1beta1.ElasticTrainingJobStatus) {
	s.Status, s.Minimum, s.Maximum = st, 0, 0
	if a := st.Attempt; a != nil {
		s.Minimum = a.MinReplicas
		// Workers may become fewer while agents run, but not more than what these were started with.
		s.Maximum = a.MinReplicas + s.Job.WantedSurplus(a.MinReplicas, a.MaxReplicas)
	}
	s.SortWorkers()
}

// AdoptStatus makes planned, in which losses are settled, the planned status.
func (s *State) AdoptStatus(planned *v1beta1.ElasticTrainingJobStatus) {
	s.adoptStatus(planned)
	s.Left, s.Completed = make([]bool, len(s.At)), make([]bool, len(s.At))
	for _, m := range planned.Members {
		s.Left[m.Index], s.Completed[m.Index] = m.HasLeft(), m.HasCompleted()
	}
}

// SortWorkers fills At with the pods of the current attempt and Strays with all others.
func (s *State) SortWorkers() {
	attempt, size := "", s.Maximum
	if s.Status.Attempt != nil {
		attempt = s.Status.Attempt.ID()
	}
	// Pods and members beyond maxReplicas have indices too, so At has room for the highest of all.
	for i := range s.Workers {
		size = max(size, s.Workers[i].Index+1)
	}
	for _, m := range s.Status.Members {
		size = max(size, m.Index+1)
	}
	s.At, s.Strays, s.strayAt = make([]*podstate.Worker, size), nil, nil
	for i := range s.Workers {
		if w := &s.Workers[i]; attempt != "" && w.Attempt == attempt {
			s.At[w.Index] = w
		} else {
			s.Strays = append(s.Strays, w)
		}
	}
	if len(s.Strays) > 0 {
		s.strayAt = make([]bool, size)
		for _, w := range s.Strays {
			s.strayAt[w.Index] = s.strayAt[w.Index] || !w.Misnamed
		}
	}
}

// HasStrayAt is true if a pod of another attempt has the name of the worker.
func (s *State) HasStrayAt(i int32) bool { return int(i) < len(s.strayAt) && s.strayAt[i] }

// AttemptWorkers yields the pods of the current attempt, by rising index.
func (s *State) AttemptWorkers() iter.Seq[*podstate.Worker] {
	return func(yield func(*podstate.Worker) bool) {
		for _, w := range s.At {
			if w != nil && !yield(w) {
				return
			}
		}
	}
}

// IsFinished is true for a job that has ended.
func IsFinished(st *v1beta1.ElasticTrainingJobStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionSucceeded) ||
		meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionFailed)
}

// IsStopped is true from when a stop is recorded until the next attempt.
func IsStopped(st *v1beta1.ElasticTrainingJobStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionSuspended)
}

// MustStop is true for a job that is suspended by its user or preempted.
func (s *State) MustStop() bool { return s.Spec.Suspend || s.Status.Preemption != nil }

// StatusTime is now as the API stores it, in whole seconds.
func (s *State) StatusTime() metav1.Time { return metav1.NewTime(s.Now.Truncate(time.Second)) }

// ConditionWriter writes conditions into the planned status.
func (s *State) ConditionWriter() conditions.Writer {
	return conditions.Writer{List: &s.Status.Conditions, Generation: s.Job.Generation, Now: s.StatusTime()}
}
