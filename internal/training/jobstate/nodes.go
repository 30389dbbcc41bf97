package jobstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// A pod on a node that lost its power, or its network, stays: only the node's kubelet says that a pod has ended, and it does not
// answer. Its name stays taken as well, so that the worker cannot be created anew. That ends when the node answers, when an
// administrator says that it is gone, or, if the user chose so, when the operator deletes the pod by force.

// OnSilentNode tells since when the node of a worker that has to leave does not answer.
func (s *State) OnSilentNode(w *podstate.Worker) (time.Time, bool) {
	since, silent := s.Unreachable[w.Node]
	return since, silent && w.Terminating
}

// Stuck is the first core worker that cannot leave its node; nil for none.
func (s *State) Stuck() *podstate.Worker {
	for _, w := range s.At[:s.Minimum] {
		if w != nil && s.IsStuck(w) {
			return w
		}
	}
	return nil
}

// StuckPod is the first pod of the job, of any attempt, that cannot leave its node; nil for none.
func (s *State) StuckPod() *podstate.Worker {
	for i := range s.Workers {
		if w := &s.Workers[i]; s.IsStuck(w) {
			return w
		}
	}
	return nil
}

// IsStuck is true for a worker that cannot leave its node.
func (s *State) IsStuck(w *podstate.Worker) bool {
	_, silent := s.OnSilentNode(w)
	return silent
}

// CutOff is the first worker that runs, as far as the API server knows, on a node that does not answer; nil for none. Its pod is
// not asked to leave yet, and is not where pods tolerate such nodes for ever.
func (s *State) CutOff() *podstate.Worker {
	for _, w := range s.At {
		if w == nil || w.Terminating || w.Ready || w.Phase != corev1.PodRunning {
			continue
		}
		if _, silent := s.Unreachable[w.Node]; silent {
			return w
		}
	}
	return nil
}
