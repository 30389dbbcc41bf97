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

// starvation is how long a gang that is not ours waits before the operator deletes surplus for it.
const starvation = 60 * time.Second

// overdue is how long after its grace period a terminating pod still counts as leaving. After that a finalizer or a process
// that cannot be killed probably holds it, and no gang may wait for its room.
const overdue = 60 * time.Second

// inputs is what one evaluation works on.
type inputs struct {
	snapshot capacity.Snapshot
	// dockets are those of queues in which a gang claims room.
	dockets map[string]*capacity.Docket
	jobs    map[types.NamespacedName]bool
	// placed are the trainings whose gangs are placed. served are all gangs that are placed, or were and are gone.
	placed, served map[types.NamespacedName]bool
	// growers are the jobs that create only the surplus that fits.
	growers []capacity.Grower
	// preempted are the jobs that were stopped as a whole and may resume when there is room.
	preempted []*capacity.Gang
	// mergeCores maps the PodGroups of merges' cores to their MergeJobs.
	mergeCores map[types.NamespacedName]types.NamespacedName
	// ceilings are the cores of MergeJobs for which the model is asked whether they could ever fit, named as their MergeJobs.
	ceilings []*capacity.Gang
	// claims are waiting surplus workers.
	claims []*corev1.Pod
	// fair are the queues among which surplus is shared fairly.
	fair map[string]bool
	// turns are what the limits of profiles leave to each training. grants are what each profile has granted.
	turns  map[types.NamespacedName]admission.Turn
	grants map[string]admission.Grants
	// fairly asks the model which surplus leaves for waiting surplus.
	fairly func(*capacity.Model) (verdicts, time.Duration)
	// reserved are the names of tasks for which profiles hold room.
	reserved map[string]bool
	// again is after what time the inputs change though nothing else does; zero for never.
	again time.Duration
}

// fairClaims is how many surplus workers wait, if there are queues to share with.
func (in *inputs) fairClaims() int {
	if len(in.fair) < 2 {
		return 0
	}
	return len(in.claims)
}

// collector reads the caches once and makes the inputs of one evaluation.
type collector struct {
	arbiter *Arbiter
	now     time.Time
	in      inputs

	jobs   map[types.NamespacedName]*v1alpha1.ElasticTrainingJob
	merges map[types.NamespacedName]*v1alpha1.MergeJob
	groups map[types.NamespacedName]gang.Membership
	// members are the pods of each PodGroup, by their state.
	members map[types.NamespacedName]*roll
	// open are the Queues that place pods.
	open map[string]bool
	// runtimeClasses are those that pods may name.
	runtimeClasses map[string]*nodev1.RuntimeClass
	// crews are the running workers of each job.
	crews map[types.NamespacedName]*crew
	// masters are the PodGroups whose worker 0 is bound.
	masters map[types.NamespacedName]bool
	// stopping are the jobs that are being stopped as a whole.
	stopping map[types.NamespacedName]bool
	// volumes are PersistentVolumes by name; volumeClaims are PersistentVolumeClaims.
	volumes      map[string]*corev1.PersistentVolume
	volumeClaims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// served is whether Volcano takes surplus, asked once so that it cannot change within an evaluation.
	served bool
	// idle is when gangs with missing members were last seen to claim nothing.
	idle map[types.NamespacedName]time.Time
	// asked is when others were first asked to leave for a waiting surplus worker.
	asked map[types.UID]time.Time
	// told is surplus that the evaluation before told to leave for waiting surplus.
	told map[types.UID]bool
}

// collect reads the caches and makes the inputs of one evaluation.
func (a *Arbiter) collect(ctx context.Context, now time.Time) (inputs, error) {
	// Before the caches are read. A pod bound after this is seen as bound in the caches, so no gang is missed.
	bound := a.boundSince()
	c, pods, nodes, err := a.readCaches(ctx, now, a.told)
	if err != nil {
		return c.in, err
	}
	if err := c.decideTurns(ctx, pods, nodes); err != nil {
		return c.in, err
	}
	c.collectClaims()
	c.serveBound(bound)
	a.told = nil
	c.in.fairly = c.shareFairly
	return c.in, nil
}

// readCaches lists all kinds from the caches and makes the snapshot. told is surplus that was told to leave before; nil where it
// does not matter. Profiles and metrics read the caches beside the evaluation, so they must not see what it writes.
func (a *Arbiter) readCaches(
	ctx context.Context, now time.Time, told map[types.UID]bool,
) (*collector, []corev1.Pod, []corev1.Node, error) {
	c := &collector{
		arbiter: a, now: now, served: a.served(), told: told, idle: map[types.NamespacedName]time.Time{},
		in: inputs{
			dockets: map[string]*capacity.Docket{}, jobs: map[types.NamespacedName]bool{}, placed: map[types.NamespacedName]bool{},
			served: map[types.NamespacedName]bool{}, mergeCores: map[types.NamespacedName]types.NamespacedName{},
		},
		jobs:    map[types.NamespacedName]*v1alpha1.ElasticTrainingJob{},
		merges:  map[types.NamespacedName]*v1alpha1.MergeJob{},
		groups:  map[types.NamespacedName]gang.Membership{},
		members: map[types.NamespacedName]*roll{}, open: map[string]bool{}, runtimeClasses: map[string]*nodev1.RuntimeClass{},
		crews:   map[types.NamespacedName]*crew{},
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
	// The order matters: pods are read by the jobs and PodGroups that they belong to.
	for i := range jobs.Items {
		key := client.ObjectKeyFromObject(&jobs.Items[i])
		c.jobs[key], c.in.jobs[key] = &jobs.Items[i], true
		c.addJob(key, &jobs.Items[i])
	}
	for _, g := range gang.AllMemberships(groups) {
		c.groups[g.Key] = g
	}
	for i := range merges.Items {
		c.addMerge(&merges.Items[i])
	}
	for i := range nodes.Items {
		c.addNode(&nodes.Items[i])
	}
	allocated := map[string]capacity.Amounts{}
	for i := range pods.Items {
		c.addPod(&pods.Items[i], allocated)
	}
	c.weighWork(ctx)
	for _, q := range gang.AllQueueLimits(queues) {
		// A Queue without a state has not been seen by Volcano yet, and is about to open.
		c.open[q.Name] = q.State == "" || q.State == gang.QueueOpen
		c.in.snapshot.Queues = append(c.in.snapshot.Queues, capacity.Queue{
			Name: q.Name, Guarantee: capacity.AmountsOf(q.Guarantee), Deserved: capacity.AmountsOf(q.Deserved),
			Capability: capacity.AmountsOf(q.Capability), Allocated: allocated[q.Name], Protected: !q.Reclaimable,
		})
	}
	return c, pods.Items, nodes.Items, nil
}

// addNode adds a ready node. A cordoned node takes pods that tolerate it, as for kube-scheduler and Volcano.
func (c *collector) addNode(n *corev1.Node) {
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

// addPod adds a pod: to the count of its gang, to what its node and queue hold, and to the surplus.
func (c *collector) addPod(p *corev1.Pod, allocated map[string]capacity.Amounts) {
	group := types.NamespacedName{Namespace: p.Namespace, Name: gang.GroupOf(p)}
	c.enroll(group, p)
	if hasEnded(p) {
		return
	}
	if p.Spec.NodeName == "" {
		if p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 {
			return
		}
		if s := c.surplusOf(p); s != nil {
			c.in.snapshot.Pending = append(c.in.snapshot.Pending, capacity.Pod{Queue: c.groups[group].Queue, Surplus: s})
			c.in.claims = append(c.in.claims, p)
		}
		return
	}
	if key, index, ok := c.workerOf(p); ok && p.DeletionTimestamp == nil {
		if index == 0 {
			c.masters[group] = true
		}
		c.joinCrew(key, index, p)
	}
	pod := c.boundPod(p, c.groups[group].Queue)
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

// boundPod is a pod on its node, as the model sees it.
func (c *collector) boundPod(p *corev1.Pod, queue string) capacity.Pod {
	pod := capacity.Pod{
		Node: p.Spec.NodeName, Requests: capacity.AmountsOf(resource.PodRequests(p, resource.PodResourcesOptions{})),
	}
	if p.DeletionTimestamp != nil {
		// It has no Queue: Volcano's plugins do not count terminating pods either.
		end := p.DeletionTimestamp.Sub(c.now) // The API server has added the grace period to it.
		switch {
		case end > capacity.LongestLeave && !soonGone(p):
			c.in.again = kube.SoonerOf(c.in.again, end-capacity.LongestLeave)
		case end+overdue > 0:
			c.in.again = kube.SoonerOf(c.in.again, end+overdue)
			pod.Leaving, pod.Surplus = true, c.surplusOf(p)
			pod.Job, _, _ = c.workerOf(p)
		} // A pod that should be gone by now just holds its place, and nothing is expected of it.
		return pod
	}
	pod.Queue = queue
	if key, _, ok := c.workerOf(p); ok {
		pod.Job, pod.Leaving = key, c.stopping[key]
	}
	if pod.Surplus = c.surplusOf(p); pod.Surplus != nil {
		pod.Kept = c.mayStay(p, pod.Surplus.Job)
	}
	return pod
}

// soonGone is true if a terminating pod was given at most the longest leave. The grace period is compared and not the time
// left: a second between the API server's clock and ours would make a worker with the whole two minutes one that stays.
func soonGone(p *corev1.Pod) bool {
	grace := p.DeletionGracePeriodSeconds
	return grace != nil && time.Duration(*grace)*time.Second <= capacity.LongestLeave
}

// workerOf is the training that controls the pod, and the worker's index; false if none does. Labels do not count, because
// users may write them.
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

// addJob adds a training that runs, that was preempted, or that is being stopped.
func (c *collector) addJob(key types.NamespacedName, job *v1alpha1.ElasticTrainingJob) {
	st := &job.Status
	tier := c.tierOf(job)
	switch {
	case st.CompletionTime != nil || job.DeletionTimestamp != nil || st.Attempt == nil:
	case st.Preemption != nil && !job.Spec.Suspend:
		c.in.preempted = append(c.in.preempted, c.stoppedCore(key, job))
		c.stopping[key] = true
	case st.MasterCompletionTime != nil: // It is about to end by itself.
	case job.Spec.Suspend:
		c.stopping[key] = true
	case st.RunningSince != nil:
		c.in.snapshot.Running = append(c.in.snapshot.Running, capacity.Running{
			Job: key, Queue: st.Queue, Tier: tier.Name, Priority: tier.Priority, Created: job.CreationTimestamp.Time,
			Unmodelled: c.shapeOf(job, st.Attempt.Model, 0).Unmodelled+c.shapeOf(job, st.Attempt.Model, 1).Unmodelled != "",
		})
	}
}

// mayStay is true for a bound surplus pod that has not run for its job's shrink.minRunSeconds yet, as far as its tier allows
// those.
func (c *collector) mayStay(p *corev1.Pod, job types.NamespacedName) bool {
	j := c.jobs[job]
	if j == nil {
		return false // Surplus of a merge has no such time.
	}
	stay := c.tierOf(j).SurplusProtection(ptr.Deref(j.Spec.Elasticity.Shrink.MinRunSeconds, 0))
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

// surplusOf describes the pod as surplus; nil for a pod that is not surplus.
func (c *collector) surplusOf(p *corev1.Pod) *capacity.Surplus {
	key, index, ok := c.workerOf(p)
	if !ok {
		return c.mergeSurplus(p)
	}
	if c.jobs[key].Status.Attempt == nil || index < c.jobs[key].Status.Attempt.MinReplicas {
		return nil
	}
	return &capacity.Surplus{
		Job: key, UID: p.UID, Index: index, Tier: c.tierOf(c.jobs[key]).Priority, Created: c.jobs[key].CreationTimestamp.Time,
		Asked: c.told[p.UID], Step: c.jobs[key].Spec.Elasticity.Step,
	}
}

// tierOf is the tier that a job asks for or has in its status; zero if the configuration no longer has it.
func (c *collector) tierOf(job *v1alpha1.ElasticTrainingJob) config.Tier {
	tier, _ := c.arbiter.config.Tiers.InEffect(job.EffectiveTier(), job.Status.Tier)
	return tier
}

// docket is the docket of a queue, created when a gang first claims room there.
func (c *collector) docket(queue string) *capacity.Docket {
	if c.in.dockets[queue] == nil {
		c.in.dockets[queue] = &capacity.Docket{
			Queue: queue, Starved: c.hasStarved, Yields: c.yieldsToOperator, Leaves: c.surplusLeaves,
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
	case v1alpha1.ShrinkByOperator:
		return true
	case v1alpha1.ShrinkByScheduler:
		return false
	case v1alpha1.ShrinkAuto:
	}
	return !c.served
}
