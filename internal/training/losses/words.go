package losses

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Reasons of condition DisruptionTarget that mean a lost node. Both are kube-controller-manager's: of its pod garbage collector,
// for a pod whose node is gone or out of service, and of its taint eviction, for one whose node is unreachable.
const (
	reasonNodeGone = "DeletionByPodGC"
	reasonTaint    = "DeletionByTaintManager"
)

// failureEvent is what happened, in the words of the failure policy.
func (l *loss) failureEvent() v1beta1.FailureEvent {
	switch {
	case l.completed:
		return v1beta1.OnTaskCompleted
	case l.disruption == reasonNodeGone, l.disruption == reasonTaint, l.rejected:
		return v1beta1.OnNodeLost
	case l.disruption != "":
		return v1beta1.OnPodEvicted
	}
	return v1beta1.OnPodFailed
}

// occurrence is what happened to a worker, as the rules of a failure policy see it.
type occurrence struct {
	index      int32
	event      v1beta1.FailureEvent
	exitCode   int32
	conditions []string
	reasons    []string
	// aside is true if a container that does not train restarted in its pod.
	aside bool
}

// asOccurrence is the loss as rules see it.
func (l *loss) asOccurrence() occurrence {
	o := occurrence{index: l.index, event: l.failureEvent(), exitCode: l.failure.ExitCode, conditions: l.conditions}
	for _, reason := range []string{l.disruption, l.failure.Reason} {
		if reason != "" {
			o.reasons = append(o.reasons, reason)
		}
	}
	return o
}

// oneWord is one word for what happened, for status.lastFailure.reason.
func (l *loss) oneWord() string {
	switch {
	case l.disruption != "":
		return l.disruption
	case l.failure.Reason != "":
		return l.failure.Reason
	case l.failure.ExitCode != 0:
		return "Error"
	}
	return Deleted
}

// GangServed names the gang for which the operator last evicted surplus; empty if Volcano evicted it.
func GangServed(e *v1beta1.ElasticityStatus) string {
	switch {
	case e.GaveWayTo != nil:
		return e.GaveWayTo.String()
	case e.LastEvictionReason == Told:
		return "the core of its own job"
	}
	return ""
}

// describeLoss says what happened to the worker: "worker 3 failed with exit code 1 (Error): last line".
func (l *loss) describeLoss() string {
	who := fmt.Sprintf("worker %d", l.index)
	switch {
	case l.hangs:
		return "the training took no steps"
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
