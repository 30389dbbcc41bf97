package training

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// told is the reason of an eviction on the operator's own word.
const told = "Told"

// unseen is the reason of an eviction that happened while the operator was down.
const unseen = "Unseen"

// deleted is the reason of a worker that somebody deleted.
const deleted = "Deleted"

// loss says how a worker was lost, or that its containers restarted in place.
type loss struct {
	index int32
	uid   types.UID
	// ran is true for a worker that others may have trained with.
	ran bool
	// counted losses cost a restart that is somebody's fault; evictions and lost nodes are nobody's.
	counted bool
	// completed is true for a worker that succeeded.
	completed bool
	// left is true for a worker that is not replaced in this attempt.
	left bool
	// stranded is true for a worker that succeeded in a training that worker 0 did not see to its end.
	stranded bool
	// again is true for a worker whose containers have restarted before it was lost, unseen.
	again bool
	// ended is when a worker that succeeded had; zero if that is not known.
	ended time.Time
	// inPlace is true when the pod lives on, and its containers restarted.
	inPlace bool
	// rejected losses are the fault of node, which did not take the pod.
	rejected bool
	node     string
	// eviction is why surplus gave way, which then waits for the cooldown; empty otherwise.
	eviction string
	// disruption is why the pod was asked to leave, if not by a plain deletion.
	disruption string
	conditions []string
	failure    podstate.Failure
	progress   int64
}

// settleLosses compares the workers that the job was known to have with those it has, and records each loss exactly once:
// in status.members as lost, among the evicted, and in restarts if it counts. What the failure policy says of it is noted in
// the same evaluation, so that neither happens without the other.
func (p *planner) settleLosses() {
	members := make([]v1alpha1.Member, len(p.at))
	for _, m := range p.st.Members {
		members[m.Index] = m
	}
	losses := p.losses(members)
	p.judgeSuccesses(members, losses)
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		r := p.ruleOn(l)
		p.record(l, m, r)
		p.noteOOM(l, r)
		p.answer(l, r)
		if l.inPlace {
			continue
		}
		m.Index, m.UID, m.Lost, m.Left, m.Completed = l.index, l.uid, true, l.left, l.completed && !l.stranded
		m.ContainerRestarts, m.Incident, m.StrandedTime = 0, 0, nil
	}
	p.strand(members, losses)
	for w := range p.workers() {
		known := &members[w.Index]
		if !w.Running() || (known.UID == w.UID && known.Lost) {
			continue
		}
		if known.UID != w.UID {
			*known = v1alpha1.Member{Index: w.Index, UID: w.UID, Failures: known.Failures, RetryTime: known.RetryTime}
		}
		if p.evicted(w.Index) {
			p.releaseEvicted(func(i int32) bool { return i == w.Index })
		}
	}
	p.left, p.completed = make([]bool, len(p.at)), make([]bool, len(p.at))
	for i := range members {
		p.left[i], p.completed[i] = members[i].Left, members[i].Completed
		if p.progressed && !members[i].Lost {
			members[i].Failures, members[i].Rejections, members[i].RetryTime = 0, 0, nil
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
			l := p.gone(known.Index, known.UID)
			l.ran = true
			all = append(all, l)
		}
		if w == nil || (w.UID == known.UID && known.Lost) {
			continue
		}
		if l, lost := p.happened(w, known); lost {
			all = append(all, l)
		}
	}
	// Pods that came and went between two writes of status. One whose successor lives on record went before that was written:
	// another operator recorded it, while the one that remembers it was paused.
	for _, d := range p.o.Departures {
		if d.Index >= p.maximum || !p.current(d) || d.Disruption == "" {
			continue
		}
		if known := members[d.Index]; known.UID != d.UID && (known.UID == "" || known.Lost) {
			all = append(all, p.gone(d.Index, d.UID))
		}
	}
	return all
}

// happened judges a worker that is there, given the member that status knows at its index. Of a pod that status does not
// know, a plain deletion is not counted: it may have been our own, when maxReplicas was lowered.
func (p *planner) happened(w *podstate.Worker, known v1alpha1.Member) (loss, bool) {
	if l, lost := p.leaving(w); lost {
		l.ran = w.UID == known.UID || w.Phase == corev1.PodRunning
		l.again = w.UID == known.UID && w.ContainerRestarts > known.ContainerRestarts
		return l, w.UID == known.UID || w.Disruption != "" || !w.Terminating
	}
	restarted := w.ContainerRestarts > 0 && (w.UID != known.UID || w.ContainerRestarts > known.ContainerRestarts)
	return p.restarted(w), restarted
}

func (p *planner) current(d podstate.Departure) bool { return d.Attempt == p.st.Attempt.ID() }

// leaving judges a pod that is still there: first by whether it was asked to leave, and only then by how it ended, because a
// kubelet lets a pod that was asked to leave end as Succeeded or Failed too.
func (p *planner) leaving(w *podstate.Worker) (loss, bool) {
	l := loss{index: w.Index, uid: w.UID, conditions: w.Conditions, progress: w.Progress}
	switch {
	case w.Disruption != "" && (w.Terminating || w.Ended()):
		l.disruption, l.eviction = w.Disruption, p.eviction(w.Index, w.Disruption)
	case w.Terminating:
		l.counted = true
	case w.Failed():
		l.counted, l.failure, l.rejected, l.node = !w.Rejected, w.Failure, w.Rejected, w.Node
	case w.Succeeded() && (w.Index > 0 || !p.masterDecides()):
		l.completed, l.left, l.ended = true, true, w.FinishedAt.Time
	default:
		return loss{}, false
	}
	return l, true
}

// restarted is a worker whose containers restarted where they are, as a kubelet does when one exits with an error.
func (p *planner) restarted(w *podstate.Worker) loss {
	return loss{
		index: w.Index, uid: w.UID, conditions: w.Conditions, progress: w.Progress, failure: w.Failure, counted: true, inPlace: true,
	}
}

// gone judges a pod that is no longer there, by how it was last seen. If nobody saw it leave, because the operator was down,
// surplus is taken to have given way, which is what surplus does, and core to have been deleted, because nobody evicts it.
func (p *planner) gone(index int32, uid types.UID) loss {
	l := loss{index: index, uid: uid}
	seen := slices.IndexFunc(p.o.Departures, func(d podstate.Departure) bool { return d.UID == uid })
	if seen < 0 {
		if l.counted = !p.isSurplus(index); !l.counted {
			l.eviction, l.disruption = unseen, unseen
		}
		return l
	}
	d := p.o.Departures[seen]
	l.conditions, l.progress = d.Conditions, d.Progress
	switch {
	case d.Disruption != "":
		l.disruption, l.eviction = d.Disruption, p.eviction(index, d.Disruption)
	case d.Succeeded:
		l.completed, l.left = true, index > 0 || !p.masterDecides()
	default:
		l.counted, l.rejected, l.node = !d.Rejected, d.Rejected, d.Node
		if d.Failed {
			l.failure = d.Failure
		}
	}
	return l
}

// eviction is the reason if the worker is surplus, which the cooldown holds back; core is replaced at once.
func (p *planner) eviction(index int32, reason string) string {
	if p.isSurplus(index) {
		return reason
	}
	return ""
}

// giveWay lets the surplus go that the arbiter named: it is recorded first, and deleted once that is in status, also after a
// restart in between.
func (p *planner) giveWay() {
	for w := range p.workers() {
		switch {
		case !p.isSurplus(w.Index) || w.Ended():
		case p.recordedLost(w):
			p.delete(w)
		case slices.Contains(p.o.Verdict.GiveUp, w.UID) && (!w.Running() || p.saved(forShrink)):
			l := &loss{index: w.Index, uid: w.UID, ran: w.Running(), eviction: told, disruption: told, conditions: w.Conditions}
			p.recordEviction(l)
			p.answer(l, p.ruleOn(l))
			p.st.Elasticity.GaveWayTo = p.served()
			if w.Scheduled && !w.Terminating && w.Disruption == "" {
				p.noteEviction(w.Index, told)
			}
			at, known := slices.BinarySearchFunc(p.st.Members, w.Index, compareIndex)
			if !known {
				p.st.Members = slices.Insert(p.st.Members, at, v1alpha1.Member{})
			}
			p.st.Members[at] = v1alpha1.Member{Index: w.Index, UID: w.UID, Lost: true, Left: l.left}
		}
	}
}

// takeRoomBack lets surplus that left for a gang come back at once, if that gang was not placed in time: its cooldown
// would cost the training room that serves no other job. Where others of its workers leave for the next gang, those that are gone
// wait with them.
func (p *planner) takeRoomBack() {
	e := p.st.Elasticity
	if e == nil || len(e.Evicted) == 0 || e.LastEvictionReason != told || !p.inVain(e.GaveWayTo) {
		return
	}
	if vain := p.st.LeftInVain; vain == nil || vain.For != e.GaveWayTo || vain.Time.Before(e.LastEvictionTime) {
		p.st.LeftInVain = &v1alpha1.LeftInVain{For: e.GaveWayTo, Time: p.time(), Workers: int32(len(e.Evicted))}
	}
	if len(p.o.Verdict.GiveUp) > 0 {
		return
	}
	p.forget(func(i int32) bool { return p.evicted(i) && p.at[i] == nil && !p.hasLeft(i) })
	p.releaseEvicted(func(int32) bool { return true })
}

// inVain tells whether the gang was not placed in time, for which workers left or the job stopped.
func (p *planner) inVain(gang string) bool {
	return slices.ContainsFunc(p.o.Verdict.InVain, func(ended types.NamespacedName) bool { return ended.String() == gang })
}

// served names the gang that the surplus leaves for.
func (p *planner) served() string {
	to := p.o.Verdict.To
	if to.Namespace == p.o.Job.Namespace && to.Name == p.o.Job.Name {
		return "the core of its own job"
	}
	return to.String()
}

// told tells whether the worker leaves by our word once that is in status.
func (p *planner) told(w *podstate.Worker) bool {
	return p.evicted(w.Index) && slices.Contains(p.o.Verdict.GiveUp, w.UID)
}

func compareIndex(m v1alpha1.Member, i int32) int { return int(m.Index - i) }

func (p *planner) isSurplus(i int32) bool { return i >= p.minimum }

// hasLeft tells whether the worker is not replaced in this attempt.
func (p *planner) hasLeft(i int32) bool { return int(i) < len(p.left) && p.left[i] }

// hasCompleted tells whether the worker succeeded while worker 0 runs on, and is not missed.
func (p *planner) hasCompleted(i int32) bool { return int(i) < len(p.completed) && p.completed[i] }

// record books a loss of a member.
func (p *planner) record(l *loss, m *v1alpha1.Member, r ruling) {
	if l.inPlace {
		p.recordRestart(l, m, r)
		return
	}
	if l.counted {
		if l.index == 0 {
			p.newIncident()
		}
		p.countRestarts(l, r, 1, m.Failures > 0)
	}
	if l.rejected {
		p.recordRejection(l, m)
		p.noteRejection(l.index)
	} else {
		m.Rejections = 0
	}
	if !l.rejected && l.failure != (podstate.Failure{}) && !r.starved {
		if p.progressed || (m.RetryTime != nil && p.now.Sub(m.RetryTime.Time) > sameFailureWindow) {
			m.Failures = 0
		}
		m.Failures++
		retry := metav1.NewTime(p.now.Add(backoff(m.Failures)).Truncate(time.Second))
		m.RetryTime = &retry
	}
	if l.eviction != "" {
		p.recordEviction(l)
	}
	if l.disruption != "" {
		p.noteEviction(l.index, l.disruption)
	}
}

// recordRestart books containers that restarted in place. Those of different workers that belong to one incident are one
// restart of the job.
func (p *planner) recordRestart(l *loss, m *v1alpha1.Member, r ruling) {
	if m.UID != l.uid {
		*m = v1alpha1.Member{Index: l.index, UID: l.uid}
	}
	restarts, again := p.at[l.index].ContainerRestarts-m.ContainerRestarts, m.ContainerRestarts > 0
	m.ContainerRestarts, m.StrandedTime = p.at[l.index].ContainerRestarts, nil
	if i := p.st.Incident; i != nil && m.Incident < i.Number && p.now.Sub(i.Time.Time) <= incidentWindow {
		restarts--
	} else {
		p.newIncident()
	}
	m.Incident = p.st.Incident.Number
	if restarts > 0 {
		p.countRestarts(l, r, restarts, again)
	}
}

func (p *planner) newIncident() {
	next := v1alpha1.Incident{Number: 1, Time: p.time()}
	if p.st.Incident != nil {
		next.Number += p.st.Incident.Number
	}
	p.st.Incident = &next
}

func (p *planner) recordEviction(l *loss) {
	if p.st.Elasticity == nil {
		p.st.Elasticity = &v1alpha1.ElasticityStatus{}
	}
	e := p.st.Elasticity
	if !slices.Contains(e.Evicted, l.index) {
		e.Evicted = append(e.Evicted, l.index)
		slices.Sort(e.Evicted)
	}
	// Rounded up, so that the cooldown is never shorter than asked.
	e.GaveWayTo = ""
	t := metav1.NewTime(p.now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
	e.LastEvictionTime, e.LastEvictionReason = &t, text.Clip(l.eviction, 256)
}

// replaceFailed deletes pods that ended badly, or that are stranded, so that their names are free for new ones: Volcano
// does not count a failed pod as a member. The loss is in status first, and each worker has a back-off of its own.
func (p *planner) replaceFailed() {
	retry := map[int32]time.Duration{}
	for _, m := range p.st.Members {
		if m.Lost && m.RetryTime != nil {
			retry[m.Index] = min(m.RetryTime.Sub(p.now), longestBackoff)
		}
	}
	for i := range p.maximum {
		w := p.at[i]
		if w == nil || !w.Ended() || w.Terminating || !p.recordedLost(w) || p.recordedLeft(w) || p.hasLeft(i) ||
			p.trained(w) {
			continue
		}
		if wait := retry[i]; wait > 0 && w.Disruption == "" {
			p.wake(wait)
			continue
		}
		p.delete(w)
	}
}

// livesOnRecord tells whether the status at the API server has a living member at the index.
func (p *planner) livesOnRecord(i int32) bool {
	recorded := p.o.Job.Status.Members
	at, known := slices.BinarySearchFunc(recorded, i, compareIndex)
	return known && !recorded[at].Lost
}

// recordedMember tells whether the status at the API server has the pod as a living member.
func (p *planner) recordedMember(w *podstate.Worker) bool {
	return slices.ContainsFunc(p.o.Job.Status.Members, func(m v1alpha1.Member) bool { return m.UID == w.UID && !m.Lost })
}

// recordedLost tells whether the status at the API server, not the one being planned, knows that the pod is lost.
func (p *planner) recordedLost(w *podstate.Worker) bool {
	return slices.ContainsFunc(p.o.Job.Status.Members, func(m v1alpha1.Member) bool { return m.UID == w.UID && m.Lost })
}

// recordedLeft tells whether the status at the API server says that the pod's worker is not replaced.
func (p *planner) recordedLeft(w *podstate.Worker) bool {
	return slices.ContainsFunc(p.o.Job.Status.Members, func(m v1alpha1.Member) bool { return m.UID == w.UID && m.Left })
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
