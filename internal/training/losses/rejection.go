package losses

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// A kubelet may reject a pod that a scheduler has bound to its node, because a device plugin does not answer or another pod was
// quicker. That says something about the node and nothing about the training, so a rejection costs no restart. The worker is
// created again after a back-off, and the job avoids the node for a time, because the scheduler would choose it again.

const (
	// FirstAvoidance is how long a job avoids a node that rejected one of its workers, or on which one failed under suspicion. It
	// doubles each time with the same node up to LongestAvoidance. They are forgotten LongestAvoidance after it may be used again.
	FirstAvoidance, LongestAvoidance = 10 * time.Minute, time.Hour
)

// recordRejection notes a rejection: the worker's back-off, and the node that the job avoids from now on.
func (b *Books) recordRejection(l *loss, m *member) {
	m.retry.Rejections++
	m.retry.Time = metav1.NewTime(b.Now.Add(BackoffAfter(m.retry.Rejections)).Truncate(time.Second))
	b.avoidNode(l)
}

// avoidNode has the job avoid the node of a loss from now on, for longer each time.
func (b *Books) avoidNode(l *loss) {
	avoided := b.Status.AvoidedNodes
	at := slices.IndexFunc(avoided, func(n v1beta1.AvoidedNode) bool { return n.Name == l.node })
	if at < 0 {
		if len(avoided) >= v1beta1.MaxAvoidedNodes {
			return // The list is full: the worker is created again after its back-off and may land on this node.
		}
		avoided, at = append(avoided, v1beta1.AvoidedNode{Name: l.node}), len(avoided)
	}
	n := &avoided[at]
	n.Rejections++
	n.Worker, n.Time, n.Failed = l.index, b.StatusTime(), !l.rejected
	n.Reason, n.Message = text.ClipLine(l.failure.Reason, 256), text.ClipLine(l.failure.LastLine(), 512)
	until := metav1.NewTime(n.Time.Add(AvoidanceAfter(n.Rejections)))
	n.Until = &until
	b.Status.AvoidedNodes = avoided
}

// AvoidanceAfter is how long a job avoids a node after its nth rejection, from FirstAvoidance to LongestAvoidance.
func AvoidanceAfter(rejections int32) time.Duration {
	d := FirstAvoidance
	for range rejections - 1 {
		if d *= 2; d >= LongestAvoidance {
			return LongestAvoidance
		}
	}
	return d
}
