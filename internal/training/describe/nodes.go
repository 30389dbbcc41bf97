package describe

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// sayCutOff says that a worker's node does not answer, while Kubernetes has not evicted its pod yet, and what comes next.
func (d *description) sayCutOff(w *podstate.Worker) string {
	return fmt.Sprintf("Node %s of worker %d has not answered since %s. Kubernetes evicts the pod when its toleration ends (after "+
		"300 s, unless the template says otherwise), and the operator creates the worker again once the pod is gone. ",
		w.Node, w.Index, FormatTime(d.Unreachable[w.Node])) + howToGiveUp(w.Node)
}

// sayUnreachable says that a worker's pod cannot end because its node does not answer, and what an administrator can do.
func (d *description) sayUnreachable(w *podstate.Worker) string {
	since, _ := d.OnSilentNode(w)
	message := fmt.Sprintf("Node %s has not answered since %s, so the pod of worker %d cannot end. The worker is created again "+
		"once the node answers or is declared gone; deadlines.belowMinSeconds does not run until then.",
		w.Node, FormatTime(since), w.Index)
	if after := d.Spec.Deadlines.ForceDeleteSeconds; after != nil {
		message += fmt.Sprintf(" The operator deletes the pod by force at %s (deadlines.forceDeleteSeconds %d).",
			FormatTime(since.Add(time.Duration(ptr.Deref(after, 0))*time.Second)), *after)
	}
	return message + " " + howToGiveUp(w.Node)
}

// sayAvoided says which node last rejected a worker or failed it, if the job still avoids it.
func (d *description) sayAvoided() string {
	var last *v1beta1.AvoidedNode
	for i := range d.Status.AvoidedNodes {
		if n := &d.Status.AvoidedNodes[i]; n.Until != nil && (last == nil || last.Time.Before(&n.Time)) {
			last = n
		}
	}
	if last == nil {
		return ""
	}
	if last.Failed {
		return " " + failedWords(last)
	}
	words := fmt.Sprintf(" %s This does not count as a restart. The job avoids the node until %s.", rejectedWords(last),
		FormatTime(last.Until.Time))
	if trainingpod.RejectedAgain(d.Status) {
		words += fmt.Sprintf(" Nodes rejected a worker at least %d times in a row, so no other job makes room for this one until that "+
			"worker runs.", trainingpod.ManyRejections)
	}
	return words
}

// howToGiveUp says how an administrator declares a node to be gone.
func howToGiveUp(node string) string {
	return fmt.Sprintf("If the machine is certainly off, an administrator declares it gone with `kubectl taint node %[1]s "+
		"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute` or `kubectl delete node %[1]s`.", node)
}

// rejectedWords says what a node did: "Node n2 rejected worker 3 (UnexpectedAdmissionError): no healthy devices."
func rejectedWords(n *v1beta1.AvoidedNode) string {
	return fmt.Sprintf("Node %s rejected worker %d%s.", n.Name, n.Worker, podstate.Failure{Reason: n.Reason, Message: n.Message})
}

// failedWords says that a worker failed on a node under suspicion, which the job avoids for that.
func failedWords(n *v1beta1.AvoidedNode) string {
	return fmt.Sprintf("Worker %d failed on node %s%s. More workers failed there before than chance explains, so the job avoids it "+
		"until %s.", n.Worker, n.Name, podstate.Failure{Reason: n.Reason, Message: n.Message}, FormatTime(n.Until.Time))
}
