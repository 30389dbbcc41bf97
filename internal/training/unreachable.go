package training

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// A pod on a node that lost its power, or its network, stays: only the node's kubelet says that a pod has ended, and it does not
// answer. Its name stays taken as well, so that the worker cannot be created anew. That ends when the node answers, when an
// administrator says that it is gone, or, if the user chose so, when the operator deletes the pod by force.

// onSilentNode tells since when the node of a worker that has to leave does not answer.
func (p *planner) onSilentNode(w *podstate.Worker) (time.Time, bool) {
	since, silent := p.o.Unreachable[w.Node]
	return since, silent && w.Terminating
}

// stuck is the first core worker that cannot leave its node; nil for none.
func (p *planner) stuck() *podstate.Worker {
	for _, w := range p.at[:p.minimum] {
		if w != nil && p.isStuck(w) {
			return w
		}
	}
	return nil
}

// stuckPod is the first pod of the job, of any attempt, that cannot leave its node; nil for none.
func (p *planner) stuckPod() *podstate.Worker {
	for i := range p.o.Workers {
		if w := &p.o.Workers[i]; p.isStuck(w) {
			return w
		}
	}
	return nil
}

func (p *planner) isStuck(w *podstate.Worker) bool {
	_, silent := p.onSilentNode(w)
	return silent
}

// forceDelete deletes pods by force that have to leave a node that does not answer, if the user wants that, once their loss is in
// status.
func (p *planner) forceDelete() {
	after := p.spec.RunPolicy.ForceDeleteAfterSeconds
	if after == nil {
		return
	}
	for i := range p.o.Workers {
		w := &p.o.Workers[i]
		since, silent := p.onSilentNode(w)
		if !silent || p.recordedMember(w) {
			continue
		}
		if left := since.Add(time.Duration(*after) * time.Second).Sub(p.now); left > 0 {
			p.wake(left)
		} else {
			p.d.ForceDeletePods = append(p.d.ForceDeletePods, *w)
		}
	}
}

// cutOff is the first worker that runs, as far as the API server knows, on a node that does not answer; nil for none. Its pod is
// not asked to leave yet, and is not where pods tolerate such nodes for ever.
func (p *planner) cutOff() *podstate.Worker {
	for _, w := range p.at {
		if w == nil || w.Terminating || w.Ready || w.Phase != corev1.PodRunning {
			continue
		}
		if _, silent := p.o.Unreachable[w.Node]; silent {
			return w
		}
	}
	return nil
}

// sayCutOff says which node of a worker that is not asked to leave yet does not answer, and what comes next.
func (p *planner) sayCutOff(w *podstate.Worker) string {
	return fmt.Sprintf("Node %s of worker %d has not answered since %s. Kubernetes asks the pod to leave once it no longer "+
		"tolerates that (after 300 s, unless the template says otherwise), and the operator creates the worker anew when the pod is "+
		"gone. ",
		w.Node, w.Index, clock(p.o.Unreachable[w.Node])) + howToGiveUp(w.Node)
}

// howToGiveUp says how an administrator declares a node to be gone.
func howToGiveUp(node string) string {
	return fmt.Sprintf("If the machine is off for certain, an administrator says so with `kubectl taint node %[1]s "+
		"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, or with `kubectl delete node %[1]s`.", node)
}

// sayUnreachable says which node does not answer, what waits for it, and what an administrator can do.
func (p *planner) sayUnreachable(w *podstate.Worker) string {
	since, _ := p.onSilentNode(w)
	message := fmt.Sprintf("Node %s has not answered since %s, and worker %d cannot leave it: its pod keeps its name until the "+
		"node answers or is known to be gone, and only then the worker is created anew. The time of "+
		"runPolicy.belowMinTimeoutSeconds stands until then.", w.Node, clock(since), w.Index)
	if after := p.spec.RunPolicy.ForceDeleteAfterSeconds; after != nil {
		message += fmt.Sprintf(" The operator deletes the pod by force at %s (runPolicy.forceDeleteAfterSeconds %d).",
			clock(since.Add(time.Duration(ptr.Deref(after, 0))*time.Second)), *after)
	}
	return message + " " + howToGiveUp(w.Node)
}
