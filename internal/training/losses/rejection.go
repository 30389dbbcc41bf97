package losses

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// A kubelet may reject a pod that a scheduler has bound to its node: a device plugin does not answer, or another pod was
// quicker. That says something of the node, and nothing of the training. So a rejection costs no restart. The worker is created
// anew after a back-off, and the job avoids the node for a time: the scheduler, which does not know, would choose it again.

const (
	// FirstAvoidance is how long a job avoids a node that rejected a worker of it. It doubles with each rejection by the same node
	// up to LongestAvoidance, and the node's rejections are forgotten that long after it may be used again.
	FirstAvoidance, LongestAvoidance = 10 * time.Minute, time.Hour
)

// recordRejection books a rejection: the worker's back-off, and the node that the job avoids from now on. Where it avoids as many
// nodes as status holds, the worker is created anew all the same.
func (b *Books) recordRejection(l *loss, m *v1alpha1.Member) {
	m.Rejections++
	retry := metav1.NewTime(b.Now.Add(Backoff(m.Rejections)).Truncate(time.Second))
	m.RetryTime = &retry
	avoided := b.Status.AvoidedNodes
	at := slices.IndexFunc(avoided, func(n v1alpha1.AvoidedNode) bool { return n.Name == l.node })
	if at < 0 {
		if len(avoided) >= v1alpha1.MaxAvoidedNodes {
			return
		}
		avoided, at = append(avoided, v1alpha1.AvoidedNode{Name: l.node}), len(avoided)
	}
	n := &avoided[at]
	n.Rejections++
	n.Worker, n.Time = l.index, b.Time()
	n.Reason, n.Message = text.Clip(l.failure.Reason, 256), text.Clip(l.failure.LastLine(), 512)
	until := metav1.NewTime(n.Time.Add(Avoidance(n.Rejections)))
	n.Until = &until
	b.Status.AvoidedNodes = avoided
}

// Avoidance is how long a node is avoided that rejected workers for the nth time.
func Avoidance(rejections int32) time.Duration {
	d := FirstAvoidance
	for range rejections - 1 {
		if d *= 2; d >= LongestAvoidance {
			return LongestAvoidance
		}
	}
	return d
}
