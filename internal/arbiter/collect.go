package arbiter

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/caps"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/kube"
	"github.com/tideline-io/tideline/internal/rendezvous"
)

// starvation is how long a gang that is not ours waits before surplus is told to leave for it.
const starvation = 60 * time.Second

// overdue is how long after its grace period a pod that terminates may still be there. From then on its room is not counted on:
// a process that cannot be killed or a finalizer holds it.
const overdue = 60 * time.Second

// arriving is how long an attempt that has begun is counted on to have its PodGroup soon. One that gets none, because a quota or
// a policy refuses it, keeps nobody else from the room.
const arriving = 10 * time.Second

// inputs is what one evaluation works on.
type inputs struct {
	snapshot capacity.Snapshot
	// dockets are those of queues in which somebody waits.
	dockets map[string]*capacity.Docket
	jobs    map[types.NamespacedName]bool
	// growers are the jobs that create only the surplus that fits.
	growers []capacity.Grower
	// preempted are the gangs that were stopped whole, and may go on when there is room.
	preempted []*capacity.Gang
	// mergeCores are the PodGroups of the cores of MergeJobs, and whose they are.
	mergeCores map[types.NamespacedName]types.NamespacedName
	// ceilings are the cores of MergeJobs of which is asked whether they could ever fit, by the names of their MergeJobs.
	ceilings []*capacity.Gang
	// claims are surplus workers that wait.
	claims []*corev1.Pod
	// fair are the queues between which surplus is shared fairly.
	fair map[string]bool
	// turns are whose turn it is under the limits of profiles, and grants what each profile has allowed.
	turns  map[types.NamespacedName]caps.Turn
	grants map[string]caps.Grants
	// fairly asks the model who leaves for surplus that waits.
	fairly func(*capacity.Model) (verdicts, time.Duration)
	// again is when time alone changes the inputs; zero for never.
	again time.Duration
}

// fairClaims is how many surplus workers wait, where they may have places of others.
func (in *inputs) fairClaims() int {
	if len(in.fair) < 2 {
		return 0
	}
	return len(in.claims)
}

// waiting lists the gangs of all queues that wait.
func (in *inputs) waiting() []*capacity.Gang {
	var all []*capacity.Gang
	for _, d := range in.dockets {
		all = append(all, d.Waiting...)
	}
	return all
}

// collector reads the caches once.
type collector struct {
	arbiter *Arbiter
	now     time.Time
	in      inputs

	jobs   map[types.NamespacedName]*v1alpha1.ElasticTrainingJob
	merges map[types.NamespacedName]*v1alpha1.MergeJob
	groups map[types.NamespacedName]gang.Membership
	// bound counts the bound pods of each group, and waiting has one of its pods that are not.
	bound   map[types.NamespacedName]int32
	waiting map[types.NamespacedName]*corev1.Pod
	// masters are the groups whose worker 0 is bound.
	masters map[types.NamespacedName]bool
	// stopping are the jobs that are being stopped whole.
	stopping map[types.NamespacedName]bool
	// volumes are PersistentVolumes by name, and volumeClaims those who claim one.
	volumes      map[string]*corev1.PersistentVolume
	volumeClaims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// served holds the answer of the moment.
	served bool
}

func (a *Arbiter) collect(ctx context.Context, now time.Time) (inputs, error) {
	c, pods, nodes, err := a.read(ctx, now)
	if err != nil {
		return c.in, err
	}
	if err := c.turns(ctx, pods, nodes); err != nil {
		return c.in, err
	}
	c.gangs()
	c.in.fairly = c.fairly
	return c.in, nil
}

// read reads the caches into a snapshot.
func (a *Arbiter) read(ctx context.Context, now time.Time) (*collector, []corev1.Pod, []corev1.Node, error) {
	c := &collector{
		arbiter: a, now: now, served: a.served(),
		in: inputs{
			dockets: map[string]*capacity.Docket{}, jobs: map[types.NamespacedName]bool{},
			mergeCores: map[types.NamespacedName]types.NamespacedName{},
		},
		jobs:    map[types.NamespacedName]*v1alpha1.ElasticTrainingJob{},
		merges:  map[types.NamespacedName]*v1alpha1.MergeJob{},
		groups:  map[types.NamespacedName]gang.Membership{},
		bound:   map[types.NamespacedName]int32{},
		waiting: map[types.NamespacedName]*corev1.Pod{},
		masters: map[types.NamespacedName]bool{}, stopping: map[types.NamespacedName]bool{},
		volumes: map[string]*corev1.PersistentVolume{}, volumeClaims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
	}
	jobs, merges := &v1alpha1.ElasticTrainingJobList{}, &v1alpha1.MergeJobList{}
	pods, nodes, groups, queues := &corev1.PodList{}, &corev1.NodeList{}, gang.NewPodGroupList(), gang.NewQueueList()
	volumes, claims := &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{jobs, merges, pods, nodes, groups, queues, volumes, claims} {
		if err := a.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return c, nil, nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	for i := range volumes.Items {
		c.volumes[volumes.Items[i].Name] = &volumes.Items[i]
	}
	for i := range claims.Items {
		c.volumeClaims[client.ObjectKeyFromObject(&claims.Items[i])] = &claims.Items[i]
	}
	for i := range jobs.Items {
		key := client.ObjectKeyFromObject(&jobs.Items[i])
		c.jobs[key], c.in.jobs[key] = &jobs.Items[i], true
		c.job(key, &jobs.Items[i])
	}
	for _, g := range gang.AllMemberships(groups) {
		c.groups[g.Key] = g
	}
	for i := range merges.Items {
		c.merge(&merges.Items[i])
	}
	for i := range nodes.Items {
		c.node(&nodes.Items[i])
	}
	allocated := map[string]capacity.Amounts{}
	for i := range pods.Items {
		c.pod(&pods.Items[i], allocated)
	}
	for _, q := range gang.AllQueueLimits(queues) {
		c.in.snapshot.Queues = append(c.in.snapshot.Queues, capacity.Queue{
			Name: q.Name, Guarantee: capacity.AmountsOf(q.Guarantee), Deserved: capacity.AmountsOf(q.Deserved),
			Capability: capacity.AmountsOf(q.Capability), Allocated: allocated[q.Name], Protected: !q.Reclaimable,
		})
	}
	return c, pods.Items, nodes.Items, nil
}

// node takes a ready node in. One that is cordoned is open to those who tolerate that, as for kube-scheduler and Volcano.
func (c *collector) node(n *corev1.Node) {
	ready := slices.ContainsFunc(n.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	if !ready {
		return
	}
	taints := n.Spec.Taints
	if n.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	c.in.snapshot.Nodes = append(c.in.snapshot.Nodes, capacity.Node{
		Name: n.Name, Labels: n.Labels, Taints: taints, Allocatable: capacity.AmountsOf(n.Status.Allocatable),
	})
}

// pod takes a pod in: what it holds, whose surplus it is, and what its gang waits for.
func (c *collector) pod(p *corev1.Pod, allocated map[string]capacity.Amounts) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	group := types.NamespacedName{Namespace: p.Namespace, Name: gang.GroupOf(p)}
	if p.Spec.NodeName == "" {
		if p.DeletionTimestamp == nil {
			c.waiting[group] = p
			if s := c.surplus(p); s != nil {
				c.in.snapshot.Pending = append(c.in.snapshot.Pending, capacity.Pod{Queue: c.groups[group].Queue, Surplus: s})
				c.in.claims = append(c.in.claims, p)
			}
		}
		return
	}
	if p.DeletionTimestamp == nil {
		c.bound[group]++
		if _, index, ok := c.workerOf(p); ok && index == 0 {
			c.masters[group] = true
		}
	}
	pod := c.placed(p, c.groups[group].Queue)
	c.in.snapshot.Pods = append(c.in.snapshot.Pods, pod)
	if pod.Queue == "" {
		return
	}
	if allocated[pod.Queue] == nil {
		allocated[pod.Queue] = capacity.Amounts{}
	}
	for name, amount := range pod.Requests {
		allocated[pod.Queue][name] += amount
	}
}

// placed is a pod on its node. One that terminates stands in no queue's books, as in Volcano's plugins, which count it no more;
// one that should be gone by now is nobody's, so that nothing is expected of it.
func (c *collector) placed(p *corev1.Pod, queue string) capacity.Pod {
	pod := capacity.Pod{
		Node: p.Spec.NodeName, Requests: capacity.AmountsOf(resource.PodRequests(p, resource.PodResourcesOptions{})),
	}
	if p.DeletionTimestamp != nil {
		left := p.DeletionTimestamp.Add(overdue).Sub(c.now)
		if pod.Leaving = left > 0; pod.Leaving {
			c.in.again = kube.Sooner(c.in.again, left)
			pod.Surplus = c.surplus(p)
		}
		return pod
	}
	pod.Queue = queue
	if key, _, ok := c.workerOf(p); ok {
		pod.Job, pod.Leaving = key, c.stopping[key]
	}
	if pod.Surplus = c.surplus(p); pod.Surplus != nil && c.mayStay(p, pod.Surplus.Job) {
		pod.Surplus = nil
	}
	return pod
}

// workerOf is the job that controls the pod, and the worker's index; false for a pod of nobody that is known. Labels do not
// count, because whoever may write pods may write them.
func (c *collector) workerOf(p *corev1.Pod) (types.NamespacedName, int32, bool) {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return types.NamespacedName{}, 0, false
	}
	key := types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}
	job := c.jobs[key]
	if job == nil || job.UID != owner.UID {
		return key, 0, false
	}
	index, ok := rendezvous.WorkerIndex(owner.Name, p.Name)
	return key, index, ok
}

// job takes in a job that runs, that was preempted, or that is being stopped.
func (c *collector) job(key types.NamespacedName, job *v1alpha1.ElasticTrainingJob) {
	st := &job.Status
	tier, _ := c.arbiter.config.Tiers.Of(job.Spec.Tier, job.Status.Tier)
	switch {
	case st.CompletionTime != nil || job.DeletionTimestamp != nil || st.Attempt == nil ||
		job.Spec.RunPolicy.ManagedBy == v1alpha1.ManagedByMultiKueue:
	case st.Preemption != nil && !job.Spec.RunPolicy.Suspend:
		c.in.preempted = append(c.in.preempted, c.waitingCore(key, st.Queue, job, job.Spec.MinReplicas))
		c.stopping[key] = true
	case st.MasterCompletionTime != nil:
	case job.Spec.RunPolicy.Suspend:
		c.stopping[key] = true
	case st.RunningSince != nil:
		c.in.snapshot.Running = append(c.in.snapshot.Running, capacity.Running{
			Job: key, Queue: st.Queue, Tier: tier.Name, Priority: tier.Priority, Created: job.CreationTimestamp.Time,
			Unmodelled: c.shapeOf(job, st.Attempt.Model, 0).Unmodelled+c.shapeOf(job, st.Attempt.Model, 1).Unmodelled != "",
		})
	}
}

// mayStay tells whether the pod, bound, has not run for its job's minSurplusRunSeconds yet.
func (c *collector) mayStay(p *corev1.Pod, job types.NamespacedName) bool {
	if c.jobs[job] == nil {
		return false // Surplus of a merge has no such time.
	}
	stay := time.Duration(ptr.Deref(c.jobs[job].Spec.Elasticity.MinSurplusRunSeconds, 0)) * time.Second
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			if left := condition.LastTransitionTime.Add(stay).Sub(c.now); left > 0 {
				c.in.again = kube.Sooner(c.in.again, left)
				return true
			}
		}
	}
	return false
}

// surplus tells whose surplus the pod is; nil for a pod that is none.
func (c *collector) surplus(p *corev1.Pod) *capacity.Surplus {
	key, index, ok := c.workerOf(p)
	if !ok {
		return c.mergeSurplus(p)
	}
	if c.jobs[key].Status.Attempt == nil || index < c.jobs[key].Status.Attempt.MinReplicas {
		return nil
	}
	return &capacity.Surplus{
		Job: key, UID: p.UID, Index: index, Tier: c.priority(c.jobs[key]), Created: c.jobs[key].CreationTimestamp.Time,
	}
}

func (c *collector) priority(job *v1alpha1.ElasticTrainingJob) int32 {
	tier, _ := c.arbiter.config.Tiers.Of(job.Spec.Tier, job.Status.Tier)
	return tier.Priority
}

// gangs opens a docket for every queue in which a gang waits, and lists the jobs that could grow.
func (c *collector) gangs() {
	for key, g := range c.groups {
		switch job := c.jobs[key]; {
		case job != nil && ours(g, job):
			c.ourGang(key, g, job)
		case g.MinMember > c.bound[key] && c.waiting[key] != nil:
			p := c.waiting[key]
			d := c.docket(g.Queue)
			d.Waiting = append(d.Waiting, &capacity.Gang{
				Job: key, Queue: g.Queue, Tier: ptr.Deref(p.Spec.Priority, 0), Created: g.Created, Workers: g.MinMember - c.bound[key],
				Shape: capacity.ShapeOf(&p.Spec, resource.PodRequests(p, resource.PodResourcesOptions{}), c.claimed(p.Namespace)),
			})
		}
	}
	for key, job := range c.jobs {
		if _, there := c.groups[key]; !there && c.in.turns[key].Blocked == nil && c.arrives(job) {
			c.ourGang(key, gang.Membership{Queue: job.Status.Queue}, job)
		}
	}
}

// arrives tells whether the job's attempt has just begun, as that of a preempted job that goes on: it needs its room already. An
// operator that has just begun itself may have been killed before it created the PodGroup.
func (c *collector) arrives(job *v1alpha1.ElasticTrainingJob) bool {
	if job.Status.Attempt == nil || job.Status.RunningSince != nil {
		return false
	}
	since := job.Status.Attempt.StartTime.Time
	if c.arbiter.began.After(since) {
		since = c.arbiter.began
	}
	left := since.Add(arriving).Sub(c.now)
	if left > 0 {
		c.in.again = kube.Sooner(c.in.again, left)
	}
	return left > 0
}

// ours tells whether the PodGroup is the core of the job.
func ours(g gang.Membership, job *v1alpha1.ElasticTrainingJob) bool {
	return g.Owner != nil && g.Owner.UID == job.UID
}

func (c *collector) ourGang(key types.NamespacedName, g gang.Membership, job *v1alpha1.ElasticTrainingJob) {
	st := &job.Status
	if st.Attempt == nil || job.Spec.RunPolicy.Suspend || st.Preemption != nil || st.MasterCompletionTime != nil ||
		st.CompletionTime != nil || job.DeletionTimestamp != nil {
		return
	}
	if missing := st.Attempt.MinReplicas - c.bound[key]; missing > 0 {
		d := c.docket(g.Queue)
		d.Waiting = append(d.Waiting, c.waitingCore(key, g.Queue, job, missing))
		return
	}
	if job.Spec.Elasticity.Surplus == v1alpha1.SurplusFitting {
		placed := c.bound[types.NamespacedName{Namespace: key.Namespace, Name: gang.SurplusName(key.Name)}]
		ask := c.ask(key, g.Queue, job)
		ask.Workers = st.Attempt.MaxReplicas - st.Attempt.MinReplicas - placed
		ask.Shape = c.shapeOf(job, st.Attempt.Model, 1)
		c.in.growers = append(c.in.growers, capacity.Grower{Gang: *ask, Placed: placed})
	}
}

func (c *collector) docket(queue string) *capacity.Docket {
	if c.in.dockets[queue] == nil {
		c.in.dockets[queue] = &capacity.Docket{Queue: queue, Starved: c.starved, Yields: c.yields, Leaves: c.leaves}
	}
	return c.in.dockets[queue]
}

// starved tells whether a gang has waited long enough, counted from when its job's core was last known to be without a place.
func (c *collector) starved(g *capacity.Gang) (bool, time.Duration) {
	since, limit := g.Created, starvation
	if job := c.jobs[g.Job]; job != nil {
		limit = time.Duration(ptr.Deref(job.Spec.Elasticity.StarvationSeconds, 60)) * time.Second
		scheduled := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionScheduled)
		if scheduled != nil && scheduled.Status == metav1.ConditionFalse {
			since = scheduled.LastTransitionTime.Time
		}
		if a := job.Status.Attempt; a != nil && a.StartTime.After(since) {
			since = a.StartTime.Time // It was stopped before.
		}
	}
	left := since.Add(limit).Sub(c.now)
	return left <= 0, left
}

// leaves tells whether the job's surplus leaves for a waiting gang, on whoever's word.
func (c *collector) leaves(job types.NamespacedName) bool { return c.served || c.yields(job) }

// yields tells whether the job's surplus leaves on the operator's word.
func (c *collector) yields(job types.NamespacedName) bool {
	j := c.jobs[job]
	if j == nil {
		return false
	}
	switch j.Spec.Elasticity.ShrinkBy {
	case v1alpha1.ShrinkByOperator:
		return true
	case v1alpha1.ShrinkByScheduler:
		return false
	case v1alpha1.ShrinkByAuto:
	}
	return !c.served
}
