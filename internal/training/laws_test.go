package training

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// planned is one decision and what it was made from.
type planned struct {
	o   *jobstate.Observed
	now time.Time
	// steps is true where the clock is put forward and back, so that of two times the later may be the earlier.
	steps bool
	d     *Decision
	// was is the status that the decision was made from, and st the one that it wants.
	was, st *v1beta1.ElasticTrainingJobStatus
}

// laws are what must be true of every decision, whatever was observed.
var laws = []struct {
	says string
	hold func(*planned) bool
}{
	{"no worker of the core that did not end badly is deleted while the job trains", (*planned).coreStays},
	{"worker 0 is never chosen to leave", (*planned).masterStays},
	{"nobody is deleted who is a living member in the written status", (*planned).memoryComesFirst},
	{"nobody is replaced who is a living member in the written status", (*planned).lossComesFirst},
	{"a pod is deleted by force only once its loss is written, on a node that does not answer", (*planned).forcesTheStuck},
	{"workers are deleted once, and by the name that they have", (*planned).deletesWhatIsThere},
	{"those beyond the maximum leave last in, first out: those that wait, then the highest", (*planned).lastInFirstOut},
	{"surplus with a node, within the maximum, leaves only when status says that it does", (*planned).choosesNobodyElse},
	{"workers are created only while the job trains, for the attempt that is in status", (*planned).createsForTheAttempt},
	{"no gang waits for workers that the API server refuses, of which one alone is tried", (*planned).refusedHaveNoGang},
	{"no worker of the core is created before the policy that isolates it", (*planned).isolatesFirst},
	{"no worker beyond the maximum is created, and none twice", (*planned).createsWhatIsMissing},
	{"the lowest missing worker is created first, of those whose loss is written", (*planned).createsTheLowest},
	{"surplus is created once the core runs", (*planned).coreComesFirst},
	{"surplus that gave way waits for the cooldown", (*planned).coolsDown},
	{"no more surplus is created than fits", (*planned).createsWhatFits},
	{"surplus is created within what has room for its step", (*planned).createsWithin},
	{"no checkpoint of before a request answers it", (*planned).asksAnew},
	{"marks are put back on pods of the attempt alone, and not before their time", (*planned).restoresItsOwn},
	{"a checkpoint is asked for only while a worker that runs is to leave, or surplus to join", (*planned).asksForAChange},
	{"counters never go down", (*planned).countersRise},
	{"times never go back, and what happened once stays", (*planned).historyStays},
	{"restarts are what losses cost", (*planned).restartsAreLosses},
	{"members are in order, each once, with a UID", (*planned).membersAreInOrder},
	{"back-offs, and workers of the last incident, are those of members, in order", (*planned).listsAreOfMembers},
	{"the evicted are surplus, in order, each once", (*planned).evictedAreInOrder},
	{"every condition, failure and event speaks in one line that fits, and of no time to come", (*planned).speaks},
	{"what time alone changes is never in the past", (*planned).looksAhead},
	{"PodGroups tell of no checkpoint to come", (*planned).tellsWhatIsSaved},
	{"a job that is being deleted gets nothing new", (*planned).givesTheDeletedNothing},
}

// brokenLaw is the first law that the decision breaks; empty for none.
func brokenLaw(o *jobstate.Observed, d *Decision, now time.Time, steps bool) string {
	m := &planned{o: o, now: now, steps: steps, d: d, was: &o.Job.Status, st: &d.Status}
	for _, law := range laws {
		if !law.hold(m) {
			return law.says
		}
	}
	return ""
}

// trains is true while the workers of the attempt are wanted.
func (m *planned) trains() bool {
	return m.was.Attempt != nil && m.was.MasterCompletionTime == nil && m.st.MasterCompletionTime == nil &&
		!jobstate.IsFinished(m.was) && !jobstate.IsStopped(m.was)
}

func (m *planned) current(p *podstate.Worker) bool {
	return m.was.Attempt != nil && p.Attempt == m.was.Attempt.ID()
}

// maximum is how many workers the job may have now.
func (m *planned) maximum() int32 {
	a := m.was.Attempt
	most := min(max(m.o.Job.Spec.MaxReplicas, a.MinReplicas), a.MaxReplicas)
	return a.MinReplicas + m.o.Job.Spec.Elasticity.WholeSteps(most-a.MinReplicas)
}

// victims are those that are deleted of the workers that are wanted and did not end, or ended well and are not called back.
func (m *planned) victims() []*podstate.Worker {
	var all []*podstate.Worker
	for i := range m.d.DeletePods {
		if p := &m.d.DeletePods[i]; m.trains() && m.current(p) && !m.movesOn(p) && !m.leavesDoubt(p) &&
			(!p.HasEnded() || (p.HasSucceeded() && !calledBack(m.was, p))) {
			all = append(all, p)
		}
	}
	return all
}

// movesOn tells whether a worker without a node avoids one that may be used again.
func (m *planned) movesOn(p *podstate.Worker) bool {
	return !p.Scheduled && slices.ContainsFunc(m.was.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
		return n.Until == nil && slices.Contains(p.Avoids, n.Name)
	})
}

// leavesDoubt tells whether a worker failed in place on a node that the job avoids for that.
func (m *planned) leavesDoubt(p *podstate.Worker) bool {
	failed := p.IsRunning() && p.ContainerRestarts > 0 && p.Disruption == ""
	return failed && !m.alive(p) && slices.ContainsFunc(m.was.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
		return n.Name == p.Node && n.Failed
	})
}

func (m *planned) forcesTheStuck() bool {
	after := m.o.Job.Spec.Deadlines.ForceDeleteSeconds
	return !slices.ContainsFunc(m.d.ForceDeletePods, func(p podstate.Worker) bool {
		since, silent := m.o.Unreachable[p.Node]
		return after == nil || !silent || !p.Terminating || m.alive(&p) || m.now.Sub(since) < time.Duration(*after)*time.Second
	})
}

// calledBack tells whether a worker that succeeded is needed again.
func calledBack(st *v1beta1.ElasticTrainingJobStatus, w *podstate.Worker) bool {
	return slices.ContainsFunc(st.Members, func(k v1beta1.Member) bool { return k.UID == w.UID && k.IsLost() && !k.HasLeft() })
}

func (m *planned) tellsWhatIsSaved() bool {
	groups := slices.Clone(m.d.CreateGroups)
	for _, r := range m.d.RestoreGroups {
		groups = append(groups, r.Group)
	}
	return m.steps || !slices.ContainsFunc(groups, func(g gang.Group) bool { return g.LastCheckpoint.After(m.now.Add(time.Second)) })
}

func (m *planned) coreStays() bool {
	return !slices.ContainsFunc(m.victims(), func(p *podstate.Worker) bool {
		return p.Index > 0 && p.Index < m.was.Attempt.MinReplicas
	})
}

func (m *planned) masterStays() bool {
	return !slices.ContainsFunc(m.victims(), func(p *podstate.Worker) bool { return p.Index == 0 })
}

// member is what the written status knows of the pod; nil for nothing.
func (m *planned) member(p *podstate.Worker) *v1beta1.Member {
	for i := range m.was.Members {
		if m.was.Members[i].UID == p.UID {
			return &m.was.Members[i]
		}
	}
	return nil
}

func (m *planned) alive(p *podstate.Worker) bool {
	known := m.member(p)
	return known != nil && !known.IsLost()
}

func (m *planned) toldToLeave(p *podstate.Worker) bool {
	known := m.member(p)
	return known != nil && known.IsLost()
}

func (m *planned) memoryComesFirst() bool {
	return !slices.ContainsFunc(m.d.DeletePods, func(p podstate.Worker) bool { return m.alive(&p) })
}

func (m *planned) lossComesFirst() bool {
	return !slices.ContainsFunc(m.d.CreateWorkers, m.livesAt)
}

// livesAt tells whether the written status has a living member at the index.
func (m *planned) livesAt(i int32) bool {
	return slices.ContainsFunc(m.was.Members, func(k v1beta1.Member) bool { return k.Index == i && !k.IsLost() })
}

func (m *planned) deletesWhatIsThere() bool {
	for i := range m.d.DeletePods {
		p := &m.d.DeletePods[i]
		same := func(o podstate.Worker) bool { return o.UID == p.UID && o.Index == p.Index }
		if p.Terminating || !slices.ContainsFunc(m.o.Workers, same) || slices.ContainsFunc(m.d.DeletePods[:i], same) {
			return false
		}
	}
	return true
}

func (m *planned) lastInFirstOut() bool {
	var leave []*podstate.Worker
	for _, p := range m.victims() {
		if p.Index >= m.maximum() && !m.toldToLeave(p) {
			leave = append(leave, p)
		}
	}
	first := func(a, b *podstate.Worker) int {
		return cmp.Or(cmp.Compare(boolToInt(a.Scheduled), boolToInt(b.Scheduled)), cmp.Compare(b.Index, a.Index))
	}
	if len(leave) == 0 {
		return true
	}
	last := leave[len(leave)-1]
	for i := range m.o.Workers {
		p := &m.o.Workers[i]
		stays := m.current(p) && p.Index >= m.maximum() && !p.Terminating && !m.alive(p) && !slices.ContainsFunc(m.d.DeletePods,
			func(gone podstate.Worker) bool { return gone.UID == p.UID })
		if stays && first(p, last) < 0 {
			return false
		}
	}
	return slices.IsSortedFunc(leave, first)
}

func (m *planned) choosesNobodyElse() bool {
	return !slices.ContainsFunc(m.victims(), func(p *podstate.Worker) bool {
		withdrawn := !p.Scheduled && p.Index >= m.was.Attempt.MinReplicas
		return p.Index < m.maximum() && !withdrawn && !m.toldToLeave(p)
	})
}

func (m *planned) createsForTheAttempt() bool {
	if len(m.d.CreateWorkers) == 0 {
		return true
	}
	return m.trains() && m.d.Blueprint.Attempt.ID() == m.was.Attempt.ID() &&
		(m.o.Service != "" || m.d.CreateService) && (m.o.Core != nil || len(m.d.CreateGroups) > 0 || m.refused())
}

// refused tells whether the API server refuses the first worker, as the written status has it.
func (m *planned) refused() bool {
	stalled := meta.FindStatusCondition(m.was.Conditions, v1beta1.ConditionStalled)
	return m.trains() && len(m.o.Workers) == 0 && stalled != nil && stalled.Reason == v1beta1.ReasonRejected
}

func (m *planned) refusedHaveNoGang() bool {
	if !m.refused() {
		return true
	}
	return len(m.d.CreateGroups)+len(m.d.RestoreGroups) == 0 && (len(m.d.CreateWorkers) == 0 ||
		slices.Equal(m.d.CreateWorkers, []int32{0}) && m.o.Core == nil && m.o.Surplus == nil)
}

func (m *planned) isolatesFirst() bool {
	return m.o.Job.Spec.NetworkPolicy != v1beta1.NetworkPolicyIsolated || m.d.CreateNetworkPolicy ||
		len(m.d.CreateWorkers) == int(m.createsSurplus())
}

// podAt is true where a pod of any attempt holds the name.
func (m *planned) podAt(index int32) bool {
	return slices.ContainsFunc(m.o.Workers, func(p podstate.Worker) bool { return p.Index == index })
}

func (m *planned) createsWhatIsMissing() bool {
	for n, i := range m.d.CreateWorkers {
		if i < 0 || i >= m.maximum() || m.podAt(i) || (n > 0 && i <= m.d.CreateWorkers[n-1]) {
			return false
		}
	}
	return true
}

func (m *planned) createsTheLowest() bool {
	if len(m.d.CreateWorkers) == 0 {
		return true
	}
	for i := range m.d.CreateWorkers[len(m.d.CreateWorkers)-1] {
		left := slices.ContainsFunc(m.st.Members, func(k v1beta1.Member) bool { return k.Index == i && k.HasLeft() })
		if !m.podAt(i) && !left && !m.evicted(i) && !m.livesAt(i) && !slices.Contains(m.d.CreateWorkers, i) {
			return false
		}
	}
	return true
}

func (m *planned) evicted(i int32) bool {
	return m.st.Elasticity != nil && slices.Contains(m.st.Elasticity.Evicted, i)
}

// createsSurplus counts the surplus that is created.
func (m *planned) createsSurplus() int32 {
	var n int32
	for _, i := range m.d.CreateWorkers {
		if i >= m.was.Attempt.MinReplicas {
			n++
		}
	}
	return n
}

func (m *planned) coreComesFirst() bool {
	if m.createsSurplus() == 0 {
		return true
	}
	ready := map[int32]bool{}
	for i := range m.o.Workers {
		if p := &m.o.Workers[i]; m.current(p) && p.Index < m.was.Attempt.MinReplicas &&
			(p.IsRunning() || (p.HasSucceeded() && !calledBack(m.st, p))) {
			ready[p.Index] = true
		}
	}
	for _, k := range m.st.Members {
		if k.HasCompleted() && k.Index < m.was.Attempt.MinReplicas {
			ready[k.Index] = true
		}
	}
	return len(ready) == int(m.was.Attempt.MinReplicas)
}

func (m *planned) coolsDown() bool {
	e := m.was.Elasticity
	return !slices.ContainsFunc(m.d.CreateWorkers, func(i int32) bool {
		cooldown := time.Duration(*m.o.Job.Spec.Elasticity.Growth.CooldownSeconds) * time.Second
		if m.evicted(i) || e == nil || !slices.Contains(e.Evicted, i) {
			return m.evicted(i)
		}
		// A time to come was written by a clock that has been put back since, and makes no job wait for hours.
		left := e.LastEvictionTime.Add(cooldown).Sub(m.now)
		return left > 0 && left <= cooldown
	})
}

func (m *planned) createsWhatFits() bool {
	if m.o.Job.Spec.Elasticity.Growth.Mode == v1beta1.GrowthAlways || m.o.Verdict.Unjudged || m.createsSurplus() == 0 {
		return true
	}
	surplus := m.createsSurplus()
	for i := range m.o.Workers {
		if p := &m.o.Workers[i]; m.current(p) && p.Index >= m.was.Attempt.MinReplicas && !p.Terminating && !p.HasEnded() {
			surplus++
		}
	}
	return surplus <= m.o.Verdict.SurplusLimit
}

func (m *planned) countersRise() bool {
	rises := m.st.Restarts >= m.was.Restarts && m.st.ActiveSeconds >= m.was.ActiveSeconds && m.st.Progress >= m.was.Progress &&
		m.st.ObservedGeneration >= m.was.ObservedGeneration
	a, b := m.was.Attempt, m.st.Attempt
	if a == nil {
		return rises && (b == nil || b.Number == 1)
	}
	if b == nil || b.Number < a.Number || b.Number > a.Number+1 || !m.steps && b.StartTime.Before(&a.StartTime) {
		return false
	}
	if b.Number > a.Number {
		return rises
	}
	if jobstate.IsFinished(m.st) || jobstate.IsStopped(m.st) {
		tierless := *a
		tierless.Tier = "" // A stopped job waits with the tier of its next attempt.
		return rises && (reflect.DeepEqual(a, b) || reflect.DeepEqual(&tierless, b))
	}
	if was, is := m.was.Incident, m.st.Incident; was != nil && (is == nil || is.Number < was.Number ||
		is.Number == was.Number && !is.Time.Equal(&was.Time)) {
		return false
	}
	for _, k := range m.was.Members {
		if slices.ContainsFunc(m.st.Members, func(n v1beta1.Member) bool {
			return n.UID == k.UID && !n.IsLost() && (k.IsLost() || n.Restarts < k.Restarts)
		}) {
			return false
		}
	}
	return rises && reflect.DeepEqual(a, b)
}

func (m *planned) historyStays() bool {
	for _, t := range [][2]*metav1.Time{
		{m.was.StartTime, m.st.StartTime}, {m.was.CompletionTime, m.st.CompletionTime},
		{m.was.MasterCompletionTime, m.st.MasterCompletionTime},
	} {
		if t[0] != nil && !t[0].Equal(t[1]) {
			return false
		}
	}
	if w := m.was.WaitSeconds; w != nil && (m.st.WaitSeconds == nil || *w != *m.st.WaitSeconds) {
		return false
	}
	for i := range m.was.Conditions {
		was := &m.was.Conditions[i]
		is := meta.FindStatusCondition(m.st.Conditions, was.Type)
		if !m.steps && is != nil && is.LastTransitionTime.Before(&was.LastTransitionTime) {
			return false
		}
		ended := was.Type == v1beta1.ConditionSucceeded || was.Type == v1beta1.ConditionFailed
		if ended && (is == nil || *is != *was) {
			return false
		}
	}
	return m.steps || slices.IsSortedFunc(m.st.RestartTimes, func(a, b metav1.Time) int { return a.Compare(b.Time) })
}

func (m *planned) restartsAreLosses() bool {
	restarts := m.was.Restarts
	for _, l := range m.d.Losses {
		restarts += l.Restarts
	}
	return m.st.Restarts == restarts
}

func (m *planned) speaks() bool {
	if m.o.Job.DeletionTimestamp != nil {
		return true
	}
	for i := range m.st.Conditions {
		c := &m.st.Conditions[i]
		if c.Reason == "" || c.Message == "" || !speakable(c.Message, 4096) || m.isToCome(c.LastTransitionTime) ||
			(i > 0 && c.Type == m.st.Conditions[i-1].Type) {
			return false
		}
	}
	if f := m.st.LastFailure; f != nil && (!speakable(f.Reason, 256) || !speakable(f.Message, 1024)) {
		return false
	}
	for i := range m.st.AvoidedNodes {
		if n := &m.st.AvoidedNodes[i]; !speakable(n.Reason, 256) || !speakable(n.Message, 512) || m.isToCome(n.Time) {
			return false
		}
	}
	for _, e := range describe.EventsBetween(&m.o.Job.Spec, m.was, m.st) {
		if !speakable(e.Message, statuspace.MessageLimit) {
			return false
		}
	}
	if !speakable(m.st.Queue, validation.DNS1123SubdomainMaxLength) {
		return false
	}
	return m.st.Phase != "" && m.st.Reason != "" && m.st.Message != "" && len(m.st.Reason) <= 64 && speakable(m.st.Message, 4096)
}

// isToCome holds for a time after now, where the clock never goes back.
func (m *planned) isToCome(t metav1.Time) bool { return !m.steps && t.After(m.now) }

// speakable tells whether a text is one line that fits and steers no terminal, whoever wrote it.
func speakable(s string, limit int) bool { return len(s) <= limit && text.SingleLine(s) == s }

// looksAhead: the clock of these worlds goes in whole seconds, so a shorter time is one that has passed.
func (m *planned) looksAhead() bool { return m.d.RequeueAfter == 0 || m.d.RequeueAfter >= time.Second }

func (m *planned) givesTheDeletedNothing() bool {
	d := *m.d
	d.DeletePods, d.DeleteGroups = nil, nil
	return m.o.Job.DeletionTimestamp == nil || reflect.DeepEqual(d, Decision{Status: *m.was})
}

// impure says how Plan is more than a function of what was observed; empty when it is not.
func impure(o *jobstate.Observed, now time.Time) string {
	before := clone(*o)
	first, again := Plan(*o, now), Plan(*o, now)
	switch {
	case !reflect.DeepEqual(*o, before):
		return "Plan changed what was observed"
	case !reflect.DeepEqual(first, again):
		return "Plan decides twice, and not the same"
	}
	return ""
}

// restless says what a job does that should be at rest; empty for nothing.
func restless(o jobstate.Observed, now time.Time) string {
	d := Plan(o, now)
	if what := busy(&o, &d); what != "" {
		return what
	}
	// Time alone changes nothing before it is said to.
	then := now.Add(24 * time.Hour)
	if d.RequeueAfter > 0 {
		then = now.Add(d.RequeueAfter - time.Millisecond)
	}
	later := Plan(o, then)
	if what := busy(&o, &later); what != "" {
		return what + " before its time"
	}
	return ""
}

// busy says what a decision does.
func busy(o *jobstate.Observed, d *Decision) string {
	switch {
	case PaceOf(&o.Job.Status, &d.Status) != statuspace.Never:
		return "writes its status"
	case len(d.DeletePods)+len(d.ForceDeletePods)+len(d.CreateWorkers) > 0:
		return "creates or deletes pods"
	case len(d.CreateGroups)+len(d.RestoreGroups)+len(d.DeleteGroups) > 0:
		return "writes its groups"
	case d.CreateService, d.DeleteService != "", d.WriteHosts != nil, d.CreateSSHKeys, d.CreateNetworkPolicy, d.DeleteJob,
		d.RequestCheckpoint != nil, len(d.RestoreMarks) > 0, d.Pages.Serve != nil, d.Pages.Remove != "":
		return "writes other objects"
	}
	return ""
}
