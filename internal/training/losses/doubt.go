package losses

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Failure is a worker that failed by itself on a node, or that the node rejected, as evidence against the node.
type Failure struct {
	// Node that it was on.
	Node string
	// Rejected is true if the node's kubelet refused it.
	Rejected bool
}

// noteFailure notes what a loss says of its node. Memory that ran out says nothing: a limit is the job's.
func (b *Books) noteFailure(l *loss) {
	switch {
	case l.node == "" || l.failure == (podstate.Failure{}) || l.failure.OutOfMemory():
	case l.rejected:
		if l.failure.SpeaksOfNode() {
			b.Failed = append(b.Failed, Failure{Node: l.node, Rejected: true})
		}
	case l.counted:
		b.Failed = append(b.Failed, Failure{Node: l.node})
		if b.isDoubted(l) {
			b.avoidNode(l)
		}
	}
}

// isDoubted is true if enough workers failed on the node before for the job to avoid it now.
func (b *Books) isDoubted(l *loss) bool {
	return !l.rejected && slices.Contains(b.Doubted, l.node)
}

// leavesNode is true for a worker whose containers restarted in place on a node that the job avoids for it: it is created
// again elsewhere. The restart is counted already.
func (b *Books) leavesNode(l *loss) bool {
	return l.inPlace && b.isDoubted(l) && slices.ContainsFunc(b.Status.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
		return n.Name == l.node && n.Failed && n.Until != nil
	})
}
