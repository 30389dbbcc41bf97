package describe

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// sayCutOff says which node of a worker that is not asked to leave yet does not answer, and what comes next.
func (d *description) sayCutOff(w *podstate.Worker) string {
	return fmt.Sprintf("Node %s of worker %d has not answered since %s. Kubernetes asks the pod to leave once it no longer "+
		"tolerates that (after 300 s, unless the template says otherwise), and the operator creates the worker anew when the pod is "+
		"gone. ",
		w.Node, w.Index, Clock(d.Unreachable[w.Node])) + howToGiveUp(w.Node)
}

// sayUnreachable says which node does not answer, what waits for it, and what an administrator can do.
func (d *description) sayUnreachable(w *podstate.Worker) string {
	since, _ := d.OnSilentNode(w)
	message := fmt.Sprintf("Node %s has not answered since %s, and worker %d cannot leave it: its pod keeps its name until the "+
		"node answers or is known to be gone, and only then the worker is created anew. The time of "+
		"runPolicy.belowMinTimeoutSeconds stands until then.", w.Node, Clock(since), w.Index)
	if after := d.Spec.RunPolicy.ForceDeleteAfterSeconds; after != nil {
		message += fmt.Sprintf(" The operator deletes the pod by force at %s (runPolicy.forceDeleteAfterSeconds %d).",
			Clock(since.Add(time.Duration(ptr.Deref(after, 0))*time.Second)), *after)
	}
	return message + " " + howToGiveUp(w.Node)
}

// sayAvoided adds which node rejected a worker last, if the job avoids it, and until when.
func (d *description) sayAvoided() string {
	var last *v1alpha1.AvoidedNode
	for i := range d.Status.AvoidedNodes {
		if n := &d.Status.AvoidedNodes[i]; n.Until != nil && (last == nil || last.Time.Before(&n.Time)) {
			last = n
		}
	}
	if last == nil {
		return ""
	}
	words := fmt.Sprintf(" %s That costs the job no restart. It avoids the node until %s.", rejectedWords(last),
		Clock(last.Until.Time))
	if trainingpod.RejectedAgain(d.Status) {
		words += fmt.Sprintf(" A worker was rejected %d times in a row or more: no worker of another job leaves for this one until it "+
			"runs.", trainingpod.ManyRejections)
	}
	return words
}

// howToGiveUp says how an administrator declares a node to be gone.
func howToGiveUp(node string) string {
	return fmt.Sprintf("If the machine is off for certain, an administrator says so with `kubectl taint node %[1]s "+
		"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, or with `kubectl delete node %[1]s`.", node)
}

// rejectedWords says what a node did: "Node n2 rejected worker 3 (UnexpectedAdmissionError): no healthy devices."
func rejectedWords(n *v1alpha1.AvoidedNode) string {
	return fmt.Sprintf("Node %s rejected worker %d%s.", n.Name, n.Worker, podstate.Failure{Reason: n.Reason, Message: n.Message})
}
