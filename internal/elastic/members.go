package elastic

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// loss says how a worker was lost.
type loss struct {
	index int32
	uid   types.UID
	// counted losses cost a restart that is somebody's fault; evictions and lost nodes are nobody's.
	counted bool
	// yielded surplus gave way and waits for the cooldown.
	yielded         bool
	reason, message string
}

// settleLosses compares the workers that the job was known to have with those it has, and records each loss exactly once:
// in status.members as lost, among the evicted, and in restarts if it counts.
func (p *planner) settleLosses() {
	members := make([]v1alpha1.Member, len(p.at))
	for _, m := range p.st.Members {
		members[m.Index] = m
	}
	for _, l := range p.losses(members) {
		members[l.index] = v1alpha1.Member{Index: l.index, UID: l.uid, Lost: true}
		p.record(l)
	}
	for w := range p.workers() {
		if w.running() {
			members[w.Index] = v1alpha1.Member{Index: w.Index, UID: w.UID}
			if p.evicted(w.Index) {
				p.releaseEvicted(func(i int32) bool { return i == w.Index })
			}
		}
	}
	p.st.Members = slices.DeleteFunc(members, func(m v1alpha1.Member) bool { return m.UID == "" })
}

// losses lists the losses that status does not know yet, given the known members by index.
func (p *planner) losses(members []v1alpha1.Member) []loss {
	var all []loss
	for i, w := range p.at[:p.maximum] {
		known := members[i]
		if known.UID != "" && !known.Lost && (w == nil || w.UID != known.UID) {
			all = append(all, p.gone(known.Index, known.UID))
		}
		if w == nil || (w.UID == known.UID && known.Lost) {
			continue
		}
		// Of a pod that status does not know, a plain deletion is not counted: it may have been our own, when maxReplicas was
		// lowered.
		if l, lost := p.leaving(w); lost && (w.UID == known.UID || w.Disrupted || w.ended()) {
			all = append(all, l)
		}
	}
	// Pods that came and went between two writes of status.
	for _, d := range p.o.Departures {
		if d.Index < p.maximum && members[d.Index].UID != d.UID && (d.Disrupted || d.Phase == corev1.PodFailed) {
			all = append(all, p.gone(d.Index, d.UID))
		}
	}
	return all
}

// leaving judges a pod that is still there.
func (p *planner) leaving(w *Worker) (loss, bool) {
	l := loss{index: w.Index, uid: w.UID}
	switch {
	case w.Phase == corev1.PodSucceeded && w.Index > 0:
		return l, true // It left of its own will: neither counted nor replaced.
	case w.Phase == corev1.PodFailed:
		l.counted, l.reason, l.message = !w.Disrupted, w.Reason, w.Message
	case w.Terminating && (w.Phase == corev1.PodRunning || w.Disrupted):
		l.counted, l.reason = !w.Disrupted, "Deleted"
	default:
		return loss{}, false
	}
	l.yielded = w.Disrupted && p.isSurplus(w.Index)
	return l, true
}

// gone judges a pod that is no longer there, by how it was last seen. If nobody saw it leave, because the operator was down,
// surplus is taken to have given way, which is what surplus does, and core to have been deleted, because nobody evicts it.
func (p *planner) gone(index int32, uid types.UID) loss {
	l := loss{index: index, uid: uid, reason: "Deleted"}
	seen := slices.IndexFunc(p.o.Departures, func(d Departure) bool { return d.UID == uid })
	if seen < 0 {
		l.counted, l.yielded = !p.isSurplus(index), p.isSurplus(index)
		return l
	}
	d := p.o.Departures[seen]
	if d.Phase == corev1.PodSucceeded {
		return l
	}
	l.counted, l.yielded = !d.Disrupted, d.Disrupted && p.isSurplus(index)
	return l
}

func (p *planner) isSurplus(i int32) bool { return i >= p.minimum }

func (p *planner) record(l loss) {
	if l.counted {
		p.st.Restarts++
		p.st.LastFailure = &v1alpha1.WorkerFailure{
			Worker: l.index, Time: p.time(), Reason: clip(l.reason, 256), Message: clip(l.message, 1024),
		}
	}
	if !l.yielded {
		return
	}
	if p.st.Elasticity == nil {
		p.st.Elasticity = &v1alpha1.ElasticityStatus{}
	}
	e := p.st.Elasticity
	if !slices.Contains(e.Evicted, l.index) {
		e.Evicted = append(e.Evicted, l.index)
		slices.Sort(e.Evicted)
	}
	// Rounded up, so that the cooldown is never shorter than asked.
	t := metav1.NewTime(p.now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
	e.LastEvictionTime = &t
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-3] + "..."
}

// replaceFailed deletes pods that ended badly, so that their names are free for new ones: Volcano does not count a failed pod
// as a member. The loss is in status first.
func (p *planner) replaceFailed() {
	for i := range p.maximum {
		w := p.at[i]
		if w == nil || w.Phase != corev1.PodFailed {
			continue
		}
		if !p.recordedLost(w) {
			continue
		}
		if wait := p.backoff(); wait > 0 && !w.Disrupted {
			p.wake(wait)
			continue
		}
		p.delete(w)
	}
}

// backoff is how much longer failed pods stay.
func (p *planner) backoff() time.Duration {
	if p.st.LastFailure == nil {
		return 0
	}
	return p.st.LastFailure.Time.Add(failedPodBackoff).Sub(p.now)
}

// recordedLost tells whether the status at the API server, not the one being planned, knows that the pod is lost.
func (p *planner) recordedLost(w *Worker) bool {
	return slices.ContainsFunc(p.o.Job.Status.Members, func(m v1alpha1.Member) bool { return m.UID == w.UID && m.Lost })
}

// forget drops workers that the job gave up on purpose, or whose cooldown has passed: coming back is growth.
func (p *planner) forget(drop func(int32) bool) {
	p.st.Members = slices.DeleteFunc(p.st.Members, func(m v1alpha1.Member) bool { return drop(m.Index) })
	p.releaseEvicted(drop)
}

func (p *planner) evicted(i int32) bool {
	return p.st.Elasticity != nil && slices.Contains(p.st.Elasticity.Evicted, i)
}

func (p *planner) releaseEvicted(release func(int32) bool) {
	if p.st.Elasticity != nil {
		p.st.Elasticity.Evicted = slices.DeleteFunc(p.st.Elasticity.Evicted, release)
	}
}
