package losses

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Reasons of condition DisruptionTarget that stand for a lost node: of kube-controller-manager's pod garbage collector, for a pod
// whose node is gone or out of service, and of its taint eviction, for one whose node is unreachable.
const (
	reasonNodeGone = "DeletionByPodGC"
	reasonTaint    = "DeletionByTaintManager"
)

// event is what happened, in the words of the failure policy.
func (l *loss) event() v1alpha1.FailureEvent {
	switch {
	case l.completed:
		return v1alpha1.OnTaskCompleted
	case l.disruption == reasonNodeGone, l.disruption == reasonTaint, l.rejected:
		return v1alpha1.OnNodeLost
	case l.disruption != "":
		return v1alpha1.OnPodEvicted
	}
	return v1alpha1.OnPodFailed
}

// occurrence is what happened to a worker, as the rules of a failure policy see it.
type occurrence struct {
	index      int32
	event      v1alpha1.FailureEvent
	exitCode   int32
	conditions []string
	reasons    []string
}

func (l *loss) occurrence() occurrence {
	o := occurrence{index: l.index, event: l.event(), exitCode: l.failure.ExitCode, conditions: l.conditions}
	for _, reason := range []string{l.disruption, l.failure.Reason} {
		if reason != "" {
			o.reasons = append(o.reasons, reason)
		}
	}
	return o
}

// reason is one word for what happened.
func (l *loss) reason() string {
	switch {
	case l.disruption != "":
		return l.disruption
	case l.failure.Reason != "":
		return l.failure.Reason
	case l.failure.ExitCode != 0:
		return "Error"
	}
	return deleted
}

// describe says what happened to the worker: "worker 3 failed with exit code 1 (Error): last line".
func (l *loss) describe() string {
	who := fmt.Sprintf("worker %d", l.index)
	switch {
	case l.completed:
		return who + " succeeded"
	case l.disruption != "":
		return who + " was evicted (" + l.disruption + ")"
	case l.rejected:
		return who + " was rejected by node " + l.node + l.failure.String()
	case l.failure == (podstate.Failure{}):
		return who + " was deleted"
	}
	return who + " failed" + l.failure.String()
}
