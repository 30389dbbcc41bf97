package arbiter

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// starvation is how long a gang that is not ours waits before the operator deletes surplus for it.
const starvation = 60 * time.Second

// overdue is how long after its grace period a terminating pod still counts as leaving. After that a finalizer or a process
// that cannot be killed probably holds it, and no gang may wait for its room.
const overdue = 60 * time.Second

// inputs is what one evaluation works on.
type inputs struct {
	// dockets are those of queues in which a gang claims room.
	dockets map[string]*capacity.Docket
	// served are the gangs with promises that are placed, or were and are gone.
	served map[types.NamespacedName]bool
	// growers are the jobs that create only the surplus that fits.
	growers []capacity.Grower
	// preempted are the jobs that were stopped as a whole and may resume when there is room.
	preempted []*capacity.Gang
	// mergeCores maps the PodGroups of merges' cores to their MergeJobs.
	mergeCores map[types.NamespacedName]types.NamespacedName
	// ceilings are the cores of MergeJobs for which the model is asked whether they could ever fit, named as their MergeJobs.
	ceilings []*capacity.Gang
	// lines are the pools in which the head of the line asks for its place.
	lines map[string]*line
	// fair are the queues among which surplus is shared fairly. claims are the surplus workers there that wait.
	fair   map[string]bool
	claims []*knownPod
	// turns are what the limits of profiles leave to each training, and mergeTurns to each merge that asks. grants are what each
	// profile has granted.
	turns, mergeTurns map[types.NamespacedName]admission.Turn
	grants            map[string]admission.Grants
	// fairly asks the model which surplus leaves for waiting surplus.
	fairly func(*capacity.Model) (verdicts, time.Duration)
	// moved are the queues whose surplus the operator may move. movable returns which jobs may have their surplus moved now: see
	// [collector].
	moved   map[string]bool
	movable func(moved map[string]bool) func(types.NamespacedName) *capacity.Shape
	// devices are the accelerators that nodes have.
	devices func() []capacity.Device
	// model is that of the cluster at this moment, made when it is first asked for. isTraining tells trainings from other gangs.
	model      func() *capacity.Model
	isTraining func(types.NamespacedName) bool
	// reserved are the names of tasks for which profiles hold room.
	reserved map[string]bool
	// again is after what time the inputs change though nothing else does; zero for never.
	again time.Duration
}

// anybodyWaits is true if a gang, a merge or a job needs an answer of the model. Else nothing more is read.
func (in *inputs) anybodyWaits() bool {
	return len(in.dockets)+len(in.preempted)+len(in.ceilings)+len(in.claims) > 0 ||
		slices.ContainsFunc(in.growers, func(g capacity.Grower) bool { return g.Workers > 0 })
}

// showsFigures is true if a verdict may have figures that change as time passes. That of a job that has all it wants has none, so
// jobs at rest cause no evaluation outside of profiles with limits.
func (in *inputs) showsFigures() bool {
	return in.anybodyWaits() || len(in.turns)+len(in.mergeTurns) > 0
}

// waiting are the gangs that claim room, of all queues.
func (in *inputs) waiting() []capacity.Gang {
	var all []capacity.Gang
	for _, d := range in.dockets {
		for _, g := range d.Waiting {
			all = append(all, *g)
		}
	}
	return all
}

// collector makes the inputs of one evaluation from a mirror.
type collector struct {
	*mirror
	arbiter *Arbiter
	now     time.Time
	in      inputs

	// served is whether Volcano takes surplus, asked once so that it cannot change within an evaluation.
	served bool
	// idle is when gangs with missing members were last seen to claim nothing.
	idle map[types.NamespacedName]time.Time
	// asked is when others were first asked to leave for a waiting surplus worker.
	asked map[types.UID]time.Time
	// judgedFair is when it was last judged whether others leave for a waiting surplus worker.
	judgedFair map[types.UID]time.Time
	// told is surplus that the evaluation before told to leave for waiting surplus.
	told map[types.UID]bool
	// acting is since when reconciles are at work on jobs with a grant.
	acting map[admission.Key]time.Time
}

// collect makes the inputs of one evaluation. bound are the gangs that had a pod bound since others leave for them, and acting is
// since when reconciles are at work on jobs with a grant: both were asked for before the mirror was.
func (a *Arbiter) collect(
	ctx context.Context, m *mirror, bound map[types.NamespacedName]bool, acting map[admission.Key]time.Time, now time.Time,
) (*collector, error) {
	c := a.newCollector(m, now)
	c.acting = acting
	// If surplus is shared again, shareFairly says anew who was told.
	c.told, a.told = a.told, nil
	c.in.model = sync.OnceValue(func() *capacity.Model { return capacity.New(c.snapshot(ctx)) })
	// The order of turns asks who claims room already, so the dockets come first; claims of new attempts depend on turns.
	c.collectShort()
	if err := c.decideTurns(ctx); err != nil {
		c.arbiter.told = c.told
		return nil, err
	}
	for _, job := range c.merges {
		c.addMerge(job)
	}
	c.collectClaims(bound)
	c.limitRules()
	c.collectFairClaims()
	c.in.fairly, c.in.movable, c.in.devices = c.shareFairly, c.movable, c.devices
	return c, nil
}

// limitRules bounds what gangs with rules about other pods cost. Of surplus that waits few claims are judged anyway.
func (c *collector) limitRules() {
	gangs := slices.Clone(c.in.preempted)
	for _, d := range c.in.dockets {
		gangs = append(gangs, d.Waiting...)
	}
	for i := range c.in.growers {
		gangs = append(gangs, &c.in.growers[i].Gang)
	}
	capacity.LimitRules(gangs)
}

// newCollector returns a collector for an evaluation, or for those who only measure: profiles and metrics read beside the
// evaluation, so they must not see what it writes.
func (a *Arbiter) newCollector(m *mirror, now time.Time) *collector {
	c := &collector{
		mirror: m, arbiter: a, now: now, served: a.served(), idle: map[types.NamespacedName]time.Time{},
		in: inputs{
			dockets: map[string]*capacity.Docket{}, served: map[types.NamespacedName]bool{},
			mergeCores: map[types.NamespacedName]types.NamespacedName{},
			lines:      map[string]*line{},
		},
	}
	c.in.isTraining = func(key types.NamespacedName) bool { return m.jobs[key] != nil }
	return c
}

// snapshot is the cluster at this moment.
func (c *collector) snapshot(ctx context.Context) capacity.Snapshot {
	s := capacity.Snapshot{Nodes: make([]capacity.Node, 0, len(c.ready)), Pods: make([]capacity.Pod, 0, len(c.pods))}
	for _, name := range c.ready {
		node := *c.nodes[name].ready
		node.Held = c.held[name]
		if node.Held == nil {
			node.Held = capacity.Amounts{}
		}
		s.Nodes = append(s.Nodes, node)
	}
	s.Running = make([]capacity.Running, 0, len(c.jobs))
	for key, job := range c.jobs {
		// Pods of one job stand together, so that the model looks it up once: see addCrew.
		stake := c.addPods(ctx, &s, job, c.controlled[controller{key, job.UID}])
		c.addRunning(&s, key, job, stake)
	}
	for of, pods := range c.controlled {
		if job := c.jobs[of.NamespacedName]; job == nil || job.UID != of.uid {
			c.addPods(ctx, &s, nil, pods)
		}
	}
	// Maps yield any order, and a job whose GiveUp is the same in another order would be woken for nothing.
	slices.SortFunc(s.Pending, func(a, b capacity.Pod) int { return cmp.Compare(a.Surplus.UID, b.Surplus.UID) })
	s.Queues = c.queuesNow()
	s.Domains = c.domains(ctx)
	return s
}

// queuesNow are the Queues, with what their pods hold. Terminating pods are in no books, as for Volcano's plugins.
func (m *mirror) queuesNow() []capacity.Queue {
	var all []capacity.Queue
	for name, q := range m.queues {
		all = append(all, capacity.Queue{
			Name: name, Guarantee: capacity.AmountsOf(q.Guarantee), Deserved: capacity.AmountsOf(q.Deserved),
			Capability: capacity.AmountsOf(q.Capability), Allocated: m.booked[name], Protected: !q.Reclaimable,
		})
	}
	return all
}

// isOpen is true for a Queue that places pods. One without a state has not been seen by Volcano yet, and is about to open.
func (m *mirror) isOpen(queue string) bool {
	q, there := m.queues[queue]
	return there && (q.State == "" || q.State == gang.QueueOpen)
}

// addPods adds the pods of one controller to the snapshot, a training or nil for any other, and returns how much work the
// training would lose, in device-seconds.
func (c *collector) addPods(
	ctx context.Context, to *capacity.Snapshot, job *v1beta1.ElasticTrainingJob, pods []*knownPod,
) (stake int64) {
	var of crew
	var group types.NamespacedName
	queue, first := "", len(to.Pods)
	for _, p := range pods {
		if p.group != group {
			group, queue = p.group, c.groups[p.group].Queue // Most pods of a training follow another of their PodGroup.
		}
		if p.node == "" {
			if s := c.waitingSurplus(p, job); s != nil {
				to.Pending = append(to.Pending, capacity.Pod{Queue: queue, Surplus: s})
			}
			continue
		}
		to.Pods = append(to.Pods, c.boundPod(p, job, queue))
		if job != nil && p.isWorker && p.pod.DeletionTimestamp == nil {
			of.join(p)
		}
	}
	if job == nil {
		return 0
	}
	stake = c.workAtStake(ctx, job, &of)
	for i := first; i < len(to.Pods); i++ {
		if s := to.Pods[i].Surplus; s != nil {
			s.WorkAtStake = stake
		}
	}
	return stake
}

// waitingSurplus describes a pod without a node, of a training or of none, as surplus that waits for one; nil for a pod that is
// none.
func (c *collector) waitingSurplus(p *knownPod, job *v1beta1.ElasticTrainingJob) *capacity.Surplus {
	if p.pod.DeletionTimestamp != nil || len(p.pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	return c.surplusOf(p, job)
}

// boundPod is a pod on its node, of a training or of none, as the model sees it.
func (c *collector) boundPod(p *knownPod, job *v1beta1.ElasticTrainingJob, queue string) capacity.Pod {
	pod := capacity.Pod{Node: p.node, Requests: p.requests, Kin: p.kin, Parts: p.parts}
	if p.pod.DeletionTimestamp != nil {
		// It has no Queue: Volcano's plugins do not count terminating pods either.
		end := p.pod.DeletionTimestamp.Sub(c.now) // The API server has added the grace period to it.
		switch {
		case end > capacity.LongestLeave && !soonGone(p.pod):
			c.in.again = kube.SoonerOf(c.in.again, end-capacity.LongestLeave)
		case end+overdue > 0:
			c.in.again = kube.SoonerOf(c.in.again, end+overdue)
			pod.Leaving, pod.Surplus, pod.Job = true, c.surplusOf(p, job), p.owner.NamespacedName
		} // A pod that should be gone by now just holds its place, and nothing is expected of it.
		return pod
	}
	pod.Queue = queue
	switch {
	case job == nil:
		pod.Until = c.mergeUntil(p)
	case p.isWorker:
		pod.Job, pod.Leaving = p.owner.NamespacedName, isStopping(job)
	}
	if pod.Surplus = c.surplusOf(p, job); pod.Surplus != nil {
		pod.Kept = c.mayStay(p.pod, job)
	}
	return pod
}

// soonGone is true if a terminating pod was given at most the longest leave. The grace period is compared and not the time
// left: a second between the API server's clock and ours would make a worker with the whole two minutes one that stays.
func soonGone(p *corev1.Pod) bool {
	grace := p.DeletionGracePeriodSeconds
	return grace != nil && time.Duration(*grace)*time.Second <= capacity.LongestLeave
}

// jobOf is the training that controls the pod; nil if none does. Labels do not count, because users may write them.
func (m *mirror) jobOf(p *knownPod) *v1beta1.ElasticTrainingJob {
	job := m.jobs[p.owner.NamespacedName]
	if job == nil || job.UID != p.owner.uid {
		return nil
	}
	return job
}

// workerOf is the training that the pod is a worker of, and the worker's index; false for a pod that is no worker.
func (m *mirror) workerOf(p *knownPod) (types.NamespacedName, int32, bool) {
	return p.owner.NamespacedName, p.index, p.isWorker && m.jobOf(p) != nil
}

// isStopping is true for a job that is being stopped as a whole.
func isStopping(job *v1beta1.ElasticTrainingJob) bool {
	st := &job.Status
	switch {
	case st.CompletionTime != nil || job.DeletionTimestamp != nil || st.Attempt == nil:
		return false
	case st.Preemption != nil && !job.Spec.Suspend:
		return true
	}
	return st.MasterCompletionTime == nil && job.Spec.Suspend // After that it is about to end by itself.
}

// addRunning adds a training that runs, and so may be stopped. stake is how much work it would lose.
func (c *collector) addRunning(to *capacity.Snapshot, key types.NamespacedName, job *v1beta1.ElasticTrainingJob, stake int64) {
	st := &job.Status
	if !wantsCore(job) || st.RunningSince == nil {
		return
	}
	tier := c.tierOf(job)
	to.Running = append(to.Running, capacity.Running{
		Job: key, Queue: st.Queue, Tier: tier.Name, Priority: tier.Priority, Created: job.CreationTimestamp.Time,
		WorkAtStake: stake, Unmodelled: c.isUnmodelled(job, st.Attempt.Model),
	})
}

// mayStay is true for a bound surplus pod that has not run for its job's shrink.minRunSeconds yet, as far as its tier allows
// those.
func (c *collector) mayStay(p *corev1.Pod, job *v1beta1.ElasticTrainingJob) bool {
	if job == nil {
		return false // Surplus of a merge has no such time.
	}
	stay := c.tierOf(job).SurplusProtection(ptr.Deref(job.Spec.Elasticity.Shrink.MinRunSeconds, 0))
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			if left := condition.LastTransitionTime.Add(stay).Sub(c.now); left > 0 {
				c.in.again = kube.SoonerOf(c.in.again, left)
				return true
			}
		}
	}
	return false
}

// surplusOf describes the pod, of a training or of none, as surplus; nil for a pod that is not surplus.
func (c *collector) surplusOf(p *knownPod, job *v1beta1.ElasticTrainingJob) *capacity.Surplus {
	if job == nil || !p.isWorker {
		return c.mergeSurplus(p)
	}
	if job.Status.Attempt == nil || p.index < job.Status.Attempt.MinReplicas || job.DeletionTimestamp != nil {
		return nil
	}
	return &capacity.Surplus{
		Job: p.owner.NamespacedName, UID: p.pod.UID, Index: p.index, Tier: c.tierOf(job).Priority, Created: job.CreationTimestamp.Time,
		Asked: c.told[p.pod.UID], Step: job.Spec.Elasticity.Step, Within: stepWithin(p, job),
	}
}

// tierOf is the tier that a job asks for or has in its status; zero if the configuration no longer has it.
func (c *collector) tierOf(job *v1beta1.ElasticTrainingJob) config.Tier {
	tier, _ := c.arbiter.config.Tiers.InEffect(job.EffectiveTier(), job.Status.Tier)
	return tier
}

// docket is the docket of a queue, created when a gang first claims room there.
func (c *collector) docket(queue string) *capacity.Docket {
	if c.in.dockets[queue] == nil {
		c.in.dockets[queue] = &capacity.Docket{
			Queue: queue, Starved: c.hasStarved, Yields: c.yieldsToOperator, Leaves: c.surplusLeaves,
			YieldsUnserved:   c.yieldsUnserved,
			PlacementTimeout: c.arbiter.config.Claims.PlacementTimeout(), Promises: c.arbiter.promises[queue], Placed: c.in.served,
		}
	}
	return c.in.dockets[queue]
}

// hasStarved returns whether a gang has waited long enough for others to leave, and if not, after what time it will have.
func (c *collector) hasStarved(g *capacity.Gang) (bool, time.Duration) {
	if len(g.Pods) < int(g.Workers) {
		return false, arriving // Pods that do not exist yet may still be refused, and then others would leave in vain.
	}
	limit := starvation
	if job := c.jobs[g.Job]; job != nil {
		limit = time.Duration(ptr.Deref(job.Spec.Elasticity.Shrink.StarvationSeconds, 60)) * time.Second
	}
	left := g.Since.Add(limit).Sub(c.now)
	return left <= 0, left
}

// surplusLeaves is true if Volcano or the operator takes the job's surplus for a waiting gang.
func (c *collector) surplusLeaves(job types.NamespacedName) bool {
	return c.served || c.yieldsToOperator(job)
}

// yieldsToOperator is true if the operator, and not Volcano, deletes the job's surplus for a waiting gang.
func (c *collector) yieldsToOperator(job types.NamespacedName) bool {
	j := c.jobs[job]
	if j == nil {
		return false
	}
	switch j.Spec.Elasticity.Shrink.Initiator {
	case v1beta1.ShrinkByOperator:
		return true
	case v1beta1.ShrinkByScheduler:
		return false
	case v1beta1.ShrinkAuto:
	}
	return !c.served
}

// yieldsUnserved is true if the operator may delete the job's surplus for a gang that Volcano makes no room for.
func (m *mirror) yieldsUnserved(job types.NamespacedName) bool {
	j := m.jobs[job]
	return j != nil && j.Spec.Elasticity.Shrink.Initiator != v1beta1.ShrinkByScheduler
}
