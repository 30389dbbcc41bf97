package arbiter

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// starvation is how long a gang that is not ours waits before surplus is told to leave for it.
const starvation = 60 * time.Second

// overdue is how long after its grace period a pod that terminates may still be there. From then on its room is not counted on:
// a process that cannot be killed or a finalizer holds it.
const overdue = 60 * time.Second

// inputs is what one evaluation works on.
type inputs struct {
	snapshot capacity.Snapshot
	// dockets are those of queues in which somebody waits.
	dockets map[string]*capacity.Docket
	jobs    map[types.NamespacedName]bool
	// placed are the trainings whose gangs have all places, and served are all gangs that have them, or had them and are gone.
	placed, served map[types.NamespacedName]bool
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
	turns  map[types.NamespacedName]admission.Turn
	grants map[string]admission.Grants
	// fairly asks the model who leaves for surplus that waits.
	fairly func(*capacity.Model) (verdicts, time.Duration)
	// reserved are the names for which profiles keep room.
	reserved map[string]bool
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

// collector reads the caches once.
type collector struct {
	arbiter *Arbiter
	now     time.Time
	in      inputs

	jobs   map[types.NamespacedName]*v1alpha1.ElasticTrainingJob
	merges map[types.NamespacedName]*v1alpha1.MergeJob
	groups map[types.NamespacedName]gang.Membership
	// members are the pods of each group, by how they stand.
	members map[types.NamespacedName]*roll
	// open are the Queues that place pods.
	open map[string]bool
	// runtimeClasses are those that pods may name.
	runtimeClasses map[string]*nodev1.RuntimeClass
	// masters are the groups whose worker 0 is bound.
	masters map[types.NamespacedName]bool
	// stopping are the jobs that are being stopped whole.
	stopping map[types.NamespacedName]bool
	// volumes are PersistentVolumes by name, and volumeClaims those who claim one.
	volumes      map[string]*corev1.PersistentVolume
	volumeClaims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// served holds the answer of the moment.
	served bool
	// idle is when gangs with members missing were last seen to claim nothing.
	idle map[types.NamespacedName]time.Time
	// asked is when others were first told to leave for a surplus worker that waits.
	asked map[types.UID]time.Time
}

func (a *Arbiter) collect(ctx context.Context, now time.Time) (inputs, error) {
	bound := a.boundSince() // Before the caches are read: what they show bound, and was not noted yet, has its places by them.
	c, pods, nodes, err := a.read(ctx, now)
	if err != nil {
		return c.in, err
	}
	if err := c.turns(ctx, pods, nodes); err != nil {
		return c.in, err
	}
	c.claim()
	c.serveBound(bound)
	c.in.fairly = c.fairly
	return c.in, nil
}

// read reads the caches into a snapshot.
func (a *Arbiter) read(ctx context.Context, now time.Time) (*collector, []corev1.Pod, []corev1.Node, error) {
	c := &collector{
		arbiter: a, now: now, served: a.served(), idle: map[types.NamespacedName]time.Time{},
		in: inputs{
			dockets: map[string]*capacity.Docket{}, jobs: map[types.NamespacedName]bool{}, placed: map[types.NamespacedName]bool{},
			served: map[types.NamespacedName]bool{}, mergeCores: map[types.NamespacedName]types.NamespacedName{},
		},
		jobs:    map[types.NamespacedName]*v1alpha1.ElasticTrainingJob{},
		merges:  map[types.NamespacedName]*v1alpha1.MergeJob{},
		groups:  map[types.NamespacedName]gang.Membership{},
		members: map[types.NamespacedName]*roll{}, open: map[string]bool{}, runtimeClasses: map[string]*nodev1.RuntimeClass{},
		masters: map[types.NamespacedName]bool{}, stopping: map[types.NamespacedName]bool{},
		volumes: map[string]*corev1.PersistentVolume{}, volumeClaims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
	}
	jobs, merges := &v1alpha1.ElasticTrainingJobList{}, &v1alpha1.MergeJobList{}
	pods, nodes, groups, queues := &corev1.PodList{}, &corev1.NodeList{}, gang.NewPodGroupList(), gang.NewQueueList()
	volumes, claims, classes := &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &nodev1.RuntimeClassList{}
	for _, list := range []client.ObjectList{jobs, merges, pods, nodes, groups, queues, volumes, claims, classes} {
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
	for i := range classes.Items {
		c.runtimeClasses[classes.Items[i].Name] = &classes.Items[i]
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
		// A Queue that Volcano has not seen yet is about to open.
		c.open[q.Name] = q.State == "" || q.State == gang.QueueOpen
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

// pod takes a pod in: how it stands in its gang, what it holds, and whose surplus it is.
func (c *collector) pod(p *corev1.Pod, allocated map[string]capacity.Amounts) {
	group := types.NamespacedName{Namespace: p.Namespace, Name: gang.GroupOf(p)}
	c.enroll(group, p)
	if ended(p) {
		return
	}
	if p.Spec.NodeName == "" {
		if p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 {
			return
		}
		if s := c.surplus(p); s != nil {
			c.in.snapshot.Pending = append(c.in.snapshot.Pending, capacity.Pod{Queue: c.groups[group].Queue, Surplus: s})
			c.in.claims = append(c.in.claims, p)
		}
		return
	}
	if p.DeletionTimestamp == nil {
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
		end := p.DeletionTimestamp.Sub(c.now) // The API server has added the grace.
		switch {
		case end > capacity.LongestLeave && !soonGone(p):
			c.in.again = kube.Sooner(c.in.again, end-capacity.LongestLeave)
		case end+overdue > 0:
			c.in.again = kube.Sooner(c.in.again, end+overdue)
			pod.Leaving, pod.Surplus = true, c.surplus(p)
			pod.Job, _, _ = c.workerOf(p)
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

// soonGone tells whether the pod that terminates was given no longer than the longest leave, whatever the clocks say: that of the
// API server may be ahead of ours.
func soonGone(p *corev1.Pod) bool {
	grace := p.DeletionGracePeriodSeconds
	return grace != nil && time.Duration(*grace)*time.Second <= capacity.LongestLeave
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
	tier := c.tier(job)
	switch {
	case st.CompletionTime != nil || job.DeletionTimestamp != nil || st.Attempt == nil ||
		job.Spec.RunPolicy.ManagedBy == v1alpha1.ManagedByMultiKueue:
	case st.Preemption != nil && !job.Spec.RunPolicy.Suspend:
		c.in.preempted = append(c.in.preempted, c.stoppedCore(key, job))
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

// mayStay tells whether the pod, bound, has not run for its job's minSurplusRunSeconds yet, as far as its tier allows them.
func (c *collector) mayStay(p *corev1.Pod, job types.NamespacedName) bool {
	j := c.jobs[job]
	if j == nil {
		return false // Surplus of a merge has no such time.
	}
	stay := c.tier(j).SurplusProtection(ptr.Deref(j.Spec.Elasticity.MinSurplusRunSeconds, 0))
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
		Job: key, UID: p.UID, Index: index, Tier: c.tier(c.jobs[key]).Priority, Created: c.jobs[key].CreationTimestamp.Time,
	}
}

// tier is the one that a job asks for or has on record; one with nothing to it if the configuration does not know it any more.
func (c *collector) tier(job *v1alpha1.ElasticTrainingJob) config.Tier {
	tier, _ := c.arbiter.config.Tiers.InEffect(job.Spec.Tier, job.Status.Tier)
	return tier
}

func (c *collector) docket(queue string) *capacity.Docket {
	if c.in.dockets[queue] == nil {
		c.in.dockets[queue] = &capacity.Docket{
			Queue: queue, Starved: c.starved, Yields: c.yields, Leaves: c.leaves,
			PlacementTimeout: c.arbiter.config.Claims.PlacementTimeout(), Promises: c.arbiter.promises[queue], Placed: c.in.served,
		}
	}
	return c.in.dockets[queue]
}

// starved tells whether a gang has waited long enough for others to leave, and otherwise in what time it will have.
func (c *collector) starved(g *capacity.Gang) (bool, time.Duration) {
	if len(g.Pods) < int(g.Workers) {
		return false, arriving // Its pods may be refused yet.
	}
	limit := starvation
	if job := c.jobs[g.Job]; job != nil {
		limit = time.Duration(ptr.Deref(job.Spec.Elasticity.StarvationSeconds, 60)) * time.Second
	}
	left := g.Since.Add(limit).Sub(c.now)
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
