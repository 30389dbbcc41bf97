package training

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// A kubelet may reject a pod that a scheduler has bound to its node: a device plugin does not answer, or another pod was
// quicker. That says something of the node, and nothing of the training. So a rejection costs no restart. The worker is created
// anew after a back-off, and the job avoids the node for a time: the scheduler, which does not know, would choose it again.

const (
	// firstAvoidance is how long a job avoids a node that rejected a worker of it. It doubles with each rejection by the same node
	// up to longestAvoidance, and the node's rejections are forgotten that long after it may be used again.
	firstAvoidance, longestAvoidance = 10 * time.Minute, time.Hour
)

// recordRejection books a rejection: the worker's back-off, and the node that the job avoids from now on. Where it avoids as many
// nodes as status holds, the worker is created anew all the same.
func (p *planner) recordRejection(l *loss, m *v1alpha1.Member) {
	m.Rejections++
	retry := metav1.NewTime(p.now.Add(backoff(m.Rejections)).Truncate(time.Second))
	m.RetryTime = &retry
	avoided := p.st.AvoidedNodes
	at := slices.IndexFunc(avoided, func(n v1alpha1.AvoidedNode) bool { return n.Name == l.node })
	if at < 0 {
		if len(avoided) >= v1alpha1.MaxAvoidedNodes {
			return
		}
		avoided, at = append(avoided, v1alpha1.AvoidedNode{Name: l.node}), len(avoided)
	}
	n := &avoided[at]
	n.Rejections++
	n.Worker, n.Time = l.index, p.time()
	n.Reason, n.Message = text.Clip(l.failure.Reason, 256), text.Clip(l.failure.LastLine(), 512)
	until := metav1.NewTime(n.Time.Add(avoidance(n.Rejections)))
	n.Until = &until
	p.st.AvoidedNodes = avoided
}

// avoidance is how long a node is avoided that rejected workers for the nth time.
func avoidance(rejections int32) time.Duration {
	d := firstAvoidance
	for range rejections - 1 {
		if d *= 2; d >= longestAvoidance {
			return longestAvoidance
		}
	}
	return d
}

// reviewAvoidedNodes lets nodes be used again whose time has passed, and forgets those that have long been.
func (p *planner) reviewAvoidedNodes() {
	p.st.AvoidedNodes = slices.DeleteFunc(p.st.AvoidedNodes, func(n v1alpha1.AvoidedNode) bool {
		return p.passed(n.Time.Add(avoidance(n.Rejections) + longestAvoidance))
	})
	for i := range p.st.AvoidedNodes {
		if n := &p.st.AvoidedNodes[i]; n.Until != nil && p.passed(n.Until.Time) {
			n.Until = nil
		}
	}
}

// passed tells whether a time has come, and asks to be called when it does.
func (p *planner) passed(t time.Time) bool {
	left := t.Sub(p.now)
	if left > 0 {
		p.wake(left)
	}
	return left <= 0
}

// releaseNodes deletes workers that wait for room and still avoid a node that may be used again: the affinity of a pod cannot be
// changed. They come back without it.
func (p *planner) releaseNodes() {
	own := podstate.AvoidedBy(&p.spec.Template.Spec)
	for w := range p.workers() {
		if !w.Scheduled && slices.ContainsFunc(p.o.Job.Status.AvoidedNodes, func(n v1alpha1.AvoidedNode) bool {
			return n.Until == nil && slices.Contains(w.Avoids, n.Name) && !slices.Contains(own, n.Name)
		}) {
			p.delete(w)
		}
	}
}

// heldByNode tells whether the core is not whole because of a node: one does not answer that a worker has to leave, or one
// rejected a worker that has yet to come back, or that waits for room on another.
func (p *planner) heldByNode() bool {
	if p.stuck() != nil {
		return true
	}
	return slices.ContainsFunc(p.st.Members, func(m v1alpha1.Member) bool {
		if m.Index >= p.minimum || !m.Lost || m.Left || m.Rejections == 0 {
			return false
		}
		w := p.at[m.Index]
		return w == nil || w.UID == m.UID || !w.Scheduled && slices.ContainsFunc(p.st.AvoidedNodes, func(n v1alpha1.AvoidedNode) bool {
			return slices.Contains(w.Avoids, n.Name)
		})
	})
}

// sayAvoided adds which node rejected a worker last, if the job avoids it, and until when.
func (p *planner) sayAvoided() string {
	var last *v1alpha1.AvoidedNode
	for i := range p.st.AvoidedNodes {
		if n := &p.st.AvoidedNodes[i]; n.Until != nil && (last == nil || last.Time.Before(&n.Time)) {
			last = n
		}
	}
	if last == nil {
		return ""
	}
	words := fmt.Sprintf(" %s That costs the job no restart. It avoids the node until %s.", rejectedWords(last),
		clock(last.Until.Time))
	if trainingpod.RejectedAgain(p.st) {
		words += fmt.Sprintf(" A worker was rejected %d times in a row or more: no worker of another job leaves for this one until it "+
			"runs.", trainingpod.ManyRejections)
	}
	return words
}

// rejectedWords says what a node did: "Node n2 rejected worker 3 (UnexpectedAdmissionError): no healthy devices."
func rejectedWords(n *v1alpha1.AvoidedNode) string {
	return fmt.Sprintf("Node %s rejected worker %d%s.", n.Name, n.Worker, podstate.Failure{Reason: n.Reason, Message: n.Message})
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
