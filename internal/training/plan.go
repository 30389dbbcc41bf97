package training

import (
	"cmp"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Decision is what must be done for a job, in the order of its fields, and what must be said of it then.
type Decision struct {
	// DeletePods are deleted first, in this order, each with the grace that it has here.
	DeletePods []podstate.Worker
	// ForceDeletePods are taken out of the API server although no kubelet says that they have ended.
	ForceDeletePods []podstate.Worker
	// Blueprint makes what is created; it is set when anything is.
	Blueprint trainingpod.Blueprint
	// CreateService is true when the headless Service is missing.
	CreateService bool
	// WriteHosts is the ConfigMap with the names of the workers to be created, if it has no UID, or updated; nil when it is as it
	// should be.
	WriteHosts *Hosts
	// CreateSSHKeys is true when the Secret with the key pair must be there, because workers are created; it may be there already.
	CreateSSHKeys bool
	// CreateNetworkPolicy is true when the NetworkPolicy must be there, because workers are created; it may be there already.
	CreateNetworkPolicy bool
	// CreateGroups are PodGroups to create before any pod.
	CreateGroups []gang.Group
	// RestoreGroups are PodGroups that somebody changed.
	RestoreGroups []gang.Restore
	// CreateWorkers are the indices of pods to create, in this order.
	CreateWorkers []int32
	// DeleteGroups and DeleteService remove what a job that ended, or that can have no workers, does not need.
	DeleteGroups  []gang.Ref
	DeleteService types.UID
	// RequestCheckpoint asks worker 0 for a checkpoint; nil for none.
	RequestCheckpoint *CheckpointRequest
	// DeleteJob is true when an ended job has outlived its time.
	DeleteJob bool

	// Status is what the job's status should say.
	Status v1alpha1.ElasticTrainingJobStatus
	// Losses are what Status records of lost workers for the first time, for those who count.
	Losses []Loss
	// OOMKills are containers that ran out of memory, as far as Status records the loss for the first time.
	OOMKills []sizing.OOMKill
	// RequeueAfter is when time alone changes the decision; zero for never.
	RequeueAfter time.Duration
}

// Plan decides what becomes of the job. It depends on its arguments alone: whatever it must remember is in the job's status,
// and nothing is deleted on account of a memory that is not yet there.
func Plan(o Observed, now time.Time) Decision {
	if o.Job.DeletionTimestamp != nil || o.Job.Spec.RunPolicy.ManagedBy == v1alpha1.ManagedByMultiKueue {
		return Decision{Status: o.Job.Status}
	}
	p := newPlanner(o, now)
	p.forceDelete()
	if !finished(&o.Job.Status) {
		p.reviewAvoidedNodes()
	}
	switch {
	case finished(&o.Job.Status):
		p.cleanUp()
		p.expire()
	case stopped(&o.Job.Status):
		p.stayStopped()
	case o.Job.Status.Attempt == nil && p.mustStop():
		p.stop()
	case o.Job.Status.Attempt == nil:
		if !p.blocked() {
			p.recordAttempt(1)
		}
	default:
		p.keepRunning()
	}
	p.summarize()
	return p.d
}

// planner carries the facts of one evaluation and the decision as it grows.
type planner struct {
	o    Observed
	now  time.Time
	d    Decision
	st   *v1alpha1.ElasticTrainingJobStatus
	spec *v1alpha1.ElasticTrainingJobSpec
	// at holds the worker of each index in the current attempt, or nil; a slice, because a job may have thousands.
	at []*podstate.Worker
	// left tells of each index whether its worker is not replaced in this attempt, and completed whether that is because it
	// succeeded; both empty before losses are settled.
	left, completed []bool
	// strays are pods of other attempts.
	strays []*podstate.Worker
	// minimum and maximum bound the workers of the current attempt; both 0 without an attempt.
	minimum, maximum int32
	obstacle         *Obstacle
	// departing is true when workers are about to leave.
	departing bool
	// outcome is where what happened leads to.
	outcome outcome
	// deleting are the pods that the decision deletes.
	deleting map[types.UID]bool
	// progressed is true when the training reported progress.
	progressed bool
}

func newPlanner(o Observed, now time.Time) *planner {
	p := &planner{o: o, now: now, spec: &o.Job.Spec}
	p.d.Status = *o.Job.Status.DeepCopy()
	p.st = &p.d.Status
	p.st.ObservedGeneration = o.Job.Generation
	p.st.Selector = v1alpha1.LabelJob + "=" + o.Job.Name
	if a := p.st.Attempt; a != nil {
		p.minimum = a.MinReplicas
		p.maximum = min(max(p.spec.MaxReplicas, a.MinReplicas), a.MaxReplicas)
	}
	p.sortWorkers()
	return p
}

// sortWorkers puts the workers of the current attempt at their indices and the others aside.
func (p *planner) sortWorkers() {
	attempt, size := "", p.maximum
	if p.st.Attempt != nil {
		attempt = p.st.Attempt.ID()
	}
	for i := range p.o.Workers {
		size = max(size, p.o.Workers[i].Index+1)
	}
	for _, m := range p.st.Members {
		size = max(size, m.Index+1)
	}
	p.at, p.strays = make([]*podstate.Worker, size), nil
	for i := range p.o.Workers {
		if w := &p.o.Workers[i]; attempt != "" && w.Attempt == attempt {
			p.at[w.Index] = w
		} else {
			p.strays = append(p.strays, w)
		}
	}
}

// workers are the pods of the current attempt, by rising index.
func (p *planner) workers() iter.Seq[*podstate.Worker] {
	return func(yield func(*podstate.Worker) bool) {
		for _, w := range p.at {
			if w != nil && !yield(w) {
				return
			}
		}
	}
}

func finished(st *v1alpha1.ElasticTrainingJobStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionSucceeded) ||
		meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionFailed)
}

// recordAttempt starts an attempt and creates nothing yet: it must be in status before its first pod.
func (p *planner) recordAttempt(number int32) {
	p.st.Attempt = &v1alpha1.AttemptStatus{
		Number: number, StartTime: p.time(), MinReplicas: p.spec.MinReplicas, MaxReplicas: p.spec.MaxReplicas,
		Model: p.model(),
	}
	p.st.Sizing = p.sized()
	p.closeAttempt()
	p.minimum, p.maximum = p.spec.MinReplicas, p.spec.MaxReplicas
	// Those that gave way wait for their cooldown in the new attempt too: it was not started for their sake.
	p.releaseEvicted(func(i int32) bool { return i < p.minimum || i >= p.maximum })
	p.sortWorkers()
}

// closeAttempt forgets what concerns the pods of an attempt only, and adds up the time that it trained.
func (p *planner) closeAttempt() {
	p.st.Members, p.st.Incident = nil, nil
	p.st.ActiveSeconds = int64(p.active() / time.Second)
	p.st.RunningSince, p.st.BelowMinSince, p.st.Checkpoint = nil, nil, nil
}

// adoptRange starts the next attempt for a range that the attempt's workers cannot follow: when nothing is placed, because
// nobody has read the old one yet, and otherwise if the job asks for it. It records the attempt and does nothing else in this
// evaluation; pods of the old one are strays from then on.
func (p *planner) adoptRange() bool {
	a := p.st.Attempt
	placed := p.st.RunningSince != nil || p.countCore(func(w *podstate.Worker) bool { return w.Scheduled }) > 0
	switch {
	case !placed && (a.MinReplicas != p.spec.MinReplicas || a.MaxReplicas != p.spec.MaxReplicas):
	case placed && p.spec.Elasticity.OnRangeChange == v1alpha1.RangeChangeRestart && p.rangePending() && p.saved(forRestart):
	default:
		return false
	}
	p.recordAttempt(a.Number + 1)
	return true
}

// keepRunning brings the workers of the attempt to what the spec asks. What happened to them is settled first: an obstacle
// keeps the job from creating anything, not from seeing the end or a loss.
func (p *planner) keepRunning() {
	tier, _ := p.tier()
	p.d.Blueprint = trainingpod.Blueprint{
		Job: p.o.Job, Attempt: p.st.Attempt, Tier: tier, Queue: p.queue(), Accelerators: p.o.Config.Accelerators,
	}
	p.deleteStrays()
	if p.completing() {
		return
	}
	p.settleLosses()
	if p.conclude() {
		return
	}
	p.keepTime()
	if p.overdue() {
		return
	}
	p.heedPreemption()
	if p.mustStop() && p.saved(forStop) {
		p.stop()
		return
	}
	defer p.tellCheckpoint()
	p.takeRoomBack()
	p.giveWay()
	if p.conclude() || p.blocked() || p.adoptRange() || p.adoptModel() {
		return
	}
	p.replaceFailed()
	p.releaseNodes()
	p.shrinkToMaximum()
	if wait := p.restartBackoff(); wait > 0 {
		p.obstacle = p.backsOff(wait)
		p.wake(wait)
		return
	}
	if p.awaitsTurn() {
		return
	}
	p.d.CreateService = p.o.Service == ""
	if p.obstacle = p.refused(); p.obstacle != nil {
		p.askAgain()
		return
	}
	p.ensureGroup(p.o.Core, p.coreGroup())
	p.createMissing(0, p.minimum)
	p.prepareWorkers()
	if p.coreRuns() && !p.mustStop() {
		p.grow()
	}
}

// conclude ends the job, or starts its next attempt, if what happened leads to that.
func (p *planner) conclude() bool {
	switch o := p.outcome; o.action {
	case v1alpha1.ActionFailJob:
		p.end(v1alpha1.PhaseFailed, v1alpha1.ConditionFailed, o.reason, o.message)
	case v1alpha1.ActionCompleteJob:
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, o.reason, o.message)
	case v1alpha1.ActionRestartJob:
		p.recordAttempt(p.st.Attempt.Number + 1)
	default:
		return false
	}
	return true
}

// restartBackoff is how much longer an attempt that began because of failures waits before it creates workers.
func (p *planner) restartBackoff() time.Duration {
	f := p.st.LastFailure
	if p.st.RunningSince != nil || p.st.Attempt.Number == 1 || f == nil || f.Time.After(p.st.Attempt.StartTime.Time) ||
		len(p.st.RestartTimes) == 0 {
		return 0
	}
	return min(f.Time.Add(backoff(int32(len(p.st.RestartTimes)))).Sub(p.now), longestBackoff)
}

// queue is the queue of the job's gang.
func (p *planner) queue() string { return p.o.Queue.Name }

func (p *planner) ensureGroup(state *gang.State, g gang.Group) {
	switch {
	case state == nil:
		p.d.CreateGroups = append(p.d.CreateGroups, g)
	case g.Drifted(*state):
		p.d.RestoreGroups = append(p.d.RestoreGroups, gang.Restore{Group: g, UID: state.UID})
	}
}

// deleteStrays removes pods that no current attempt knows: they would wait in a rendezvous of their own for ever.
func (p *planner) deleteStrays() {
	for _, w := range p.strays {
		p.delete(w)
	}
}

// delete has a worker leave, in no more time than others wait for its room: what it has to save, it was asked for before.
func (p *planner) delete(w *podstate.Worker) {
	if !w.Terminating && !p.deleting[w.UID] {
		if p.deleting == nil {
			p.deleting = map[types.UID]bool{}
		}
		p.deleting[w.UID] = true // One pod may have to leave for two reasons, and is deleted once.
		gone := *w
		gone.GraceSeconds = min(w.GraceSeconds, int64(capacity.LongestLeave.Seconds()))
		p.d.DeletePods = append(p.d.DeletePods, gone)
	}
}

// shrinkToMaximum lets the workers beyond maxReplicas go: those that still wait first, then the highest index. Workers that are
// members in status go once they are members no more, so that nothing takes their leaving for a loss.
func (p *planner) shrinkToMaximum() {
	var beyond []*podstate.Worker
	for w := range p.workers() {
		if w.Index >= p.maximum {
			beyond = append(beyond, w)
		}
	}
	slices.SortFunc(beyond, func(a, b *podstate.Worker) int {
		return cmp.Or(cmp.Compare(order(a.Scheduled), order(b.Scheduled)), cmp.Compare(b.Index, a.Index))
	})
	trains := func(w *podstate.Worker) bool { return w.Running() && p.recordedMember(w) }
	if slices.ContainsFunc(beyond, trains) && !p.saved(forShrink) {
		return
	}
	for _, w := range beyond {
		if gaveWay := p.recordedLost(w) && !w.Ended(); !p.recordedMember(w) && !gaveWay {
			p.delete(w)
		}
	}
	p.forget(func(i int32) bool { return i >= p.maximum })
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// createMissing creates the workers of [from, to) that have no pod, lowest index first. A pod that is still leaving holds its
// name, and is waited for. A lost one is replaced once its loss is in status, which cannot be written of a job that was
// deleted: the workers of such a job may be seen to go long before the job is.
func (p *planner) createMissing(from, to int32) {
	for i := from; i < to; i++ {
		if p.at[i] == nil && !p.hasLeft(i) && !p.strayAt(i) && !p.livesOnRecord(i) {
			p.d.CreateWorkers = append(p.d.CreateWorkers, i)
		}
	}
}

func (p *planner) strayAt(i int32) bool {
	return slices.ContainsFunc(p.strays, func(w *podstate.Worker) bool { return w.Index == i })
}

// grow creates the surplus. Indices that gave way wait for the cooldown; those that the job never had do not.
func (p *planner) grow() {
	if p.maximum <= p.minimum {
		return
	}
	if p.o.Surplus == nil {
		if p.obstacle = p.queueShut(); p.obstacle != nil {
			return // Volcano's webhook would refuse the group.
		}
	}
	p.ensureGroup(p.o.Surplus, p.d.Blueprint.SurplusGroup())
	if wait := p.cooldown(); wait > 0 {
		p.wake(wait)
	} else {
		p.forget(func(i int32) bool { return p.evicted(i) && p.at[i] == nil && !p.hasLeft(i) })
	}
	for i := p.minimum; i < p.maximum && !p.full(); i++ {
		if !p.evicted(i) {
			p.createMissing(i, i+1)
		}
	}
}

// full tells whether a job that creates only what fits, or what the limits of its profile allow, has created that.
func (p *planner) full() bool {
	limit := p.allowance()
	if p.spec.Elasticity.Surplus == v1alpha1.SurplusFitting {
		limit = min(limit, p.o.Verdict.SurplusLimit)
	}
	var surplus int32
	for w := range p.workers() {
		if p.isSurplus(w.Index) && !w.Terminating && !w.Ended() {
			surplus++
		}
	}
	for _, i := range p.d.CreateWorkers {
		if p.isSurplus(i) {
			surplus++
		}
	}
	return surplus >= limit
}

// cooldown is how much of the cooldown is left.
func (p *planner) cooldown() time.Duration {
	e := p.st.Elasticity
	if e == nil || e.LastEvictionTime == nil || len(e.Evicted) == 0 {
		return 0
	}
	return min(e.LastEvictionTime.Add(p.cooldownTime()).Sub(p.now), p.cooldownTime()+time.Second)
}

func (p *planner) cooldownTime() time.Duration {
	return time.Duration(ptr.Deref(p.spec.Elasticity.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)) * time.Second
}

// coreRuns is true while every core worker runs. One that succeeded has left of its own will and is not missed.
func (p *planner) coreRuns() bool { return p.countCore(workerRuns) == p.minimum }

func (p *planner) corePlaced() bool {
	placed := func(w *podstate.Worker) bool { return w.Scheduled && !w.Terminating && w.Phase != corev1.PodFailed }
	return p.countCore(placed) == p.minimum
}

func workerRuns(w *podstate.Worker) bool { return w.Running() || w.Succeeded() }

// countCore counts the core workers of which is holds, and those that have succeeded and left.
func (p *planner) countCore(is func(*podstate.Worker) bool) int32 {
	var n int32
	for i, w := range p.at[:p.minimum] {
		if p.hasCompleted(int32(i)) || (w != nil && is(w) && (!w.Succeeded() || p.trained(w))) {
			n++
		}
	}
	return n
}

func (p *planner) markStarted() {
	t := p.time()
	p.st.StartTime = &t
	waited := max(0, int64(p.now.Sub(p.o.Job.CreationTimestamp.Time)/time.Second))
	p.st.WaitSeconds = &waited
}

// cleanUp removes what an ended job does not need. Its conditions are in status already.
func (p *planner) cleanUp() {
	active := false
	for i := range p.o.Workers {
		w := &p.o.Workers[i]
		switch p.spec.RunPolicy.CleanPodPolicy {
		case v1alpha1.CleanPodPolicyAll:
			p.delete(w)
		case v1alpha1.CleanPodPolicyNone:
			active = active || !w.Ended()
		default:
			if !w.Ended() {
				p.delete(w)
			}
		}
	}
	if active {
		return
	}
	p.deleteGroups()
	p.d.DeleteService = p.o.Service
}

func (p *planner) deleteGroups() {
	for _, g := range []struct {
		name  string
		state *gang.State
	}{{gang.CoreName(p.o.Job.Name), p.o.Core}, {gang.SurplusName(p.o.Job.Name), p.o.Surplus}} {
		if g.state != nil {
			p.d.DeleteGroups = append(p.d.DeleteGroups, gang.Ref{Name: g.name, UID: g.state.UID})
		}
	}
}

// time is now as the API stores it, in whole seconds.
func (p *planner) time() metav1.Time { return metav1.NewTime(p.now.Truncate(time.Second)) }

// wake asks to be called again after d, or earlier.
func (p *planner) wake(d time.Duration) {
	if p.d.RequeueAfter == 0 || d < p.d.RequeueAfter {
		p.d.RequeueAfter = max(d, time.Millisecond)
	}
}
