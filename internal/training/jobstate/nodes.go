package jobstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// A pod on a node that lost its power or its network stays in the API server: only the node's kubelet reports that a pod has
// ended, and it does not answer. The pod keeps its name, so its worker cannot be created again. That lasts until the node
// answers, an administrator declares the node gone, or, if the user chose that, the operator deletes the pod by force.

// OnSilentNode returns since when the node of a terminating worker has not answered, and false if it does answer or the worker is
// not terminating.
func (s *State) OnSilentNode(w *podstate.Worker) (time.Time, bool) {
	since, silent := s.Unreachable[w.Node]
	return since, silent && w.Terminating
}

// StuckWorker is the first core worker whose pod cannot end because its node does not answer; nil for none.
func (s *State) StuckWorker() *podstate.Worker {
	for _, w := range s.At[:s.Minimum] {
		if w != nil && s.IsStuck(w) {
			return w
		}
	}
	return nil
}

// StuckPod is like StuckWorker for all pods of the job, of any attempt.
func (s *State) StuckPod() *podstate.Worker {
	for i := range s.Workers {
		if w := &s.Workers[i]; s.IsStuck(w) {
			return w
		}
	}
	return nil
}

// IsStuck is true for a worker whose pod terminates on a node that does not answer.
func (s *State) IsStuck(w *podstate.Worker) bool {
	_, silent := s.OnSilentNode(w)
	return silent
}

// CutOff is the first worker that runs, as far as the API server knows, on a node that does not answer; nil for none. Kubernetes
// evicts its pod after a toleration of 300 s by default, and never if the template tolerates such nodes for ever.
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
