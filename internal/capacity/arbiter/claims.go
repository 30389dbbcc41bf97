package arbiter

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// arriving is how long an attempt that has begun is counted on to have its pods soon. One that gets none, because a quota
// or a policy refuses them, keeps no other gang from the room.
const arriving = 10 * time.Second

// roll is how the pods of a group stand.
type roll struct {
	// bound hold a node and do not terminate, completed ended well of their own will, and gated wait for their gates.
	bound, completed, gated int32
	// finished are the indices of completed workers of a job of ours.
	finished map[int32]bool
	// waiting have no node and no gates, do not terminate, and are Volcano's to place.
	waiting []*corev1.Pod
}

// enroll counts a pod in its group.
func (c *collector) enroll(group types.NamespacedName, p *corev1.Pod) {
	if group.Name == "" || p.Status.Phase == corev1.PodFailed {
		return
	}
	r := c.members[group]
	if r == nil {
		r = &roll{}
		c.members[group] = r
	}
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		if p.DeletionTimestamp == nil && !disrupted(p) {
			c.complete(r, p)
		}
	case p.DeletionTimestamp != nil:
	case p.Spec.NodeName != "":
		r.bound++
	case len(p.Spec.SchedulingGates) > 0:
		r.gated++
	case p.Spec.SchedulerName == gang.SchedulerName:
		r.waiting = append(r.waiting, p)
	}
}

// complete counts a member that has completed. Of a job of ours the status may know more than the pods that are left.
func (c *collector) complete(r *roll, p *corev1.Pod) {
	r.completed++
	if _, index, ok := c.workerOf(p); ok {
		if r.finished == nil {
			r.finished = map[int32]bool{}
		}
		r.finished[index] = true
	}
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// disrupted tells of a pod that was asked to leave: a kubelet lets it end as Succeeded too.
func disrupted(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// rollOf is the roll of a group, empty for one without pods.
func (c *collector) rollOf(group types.NamespacedName) *roll {
	if r := c.members[group]; r != nil {
		return r
	}
	return &roll{}
}

// claim opens a docket for every queue in which a gang claims room, and lists the jobs that could grow.
func (c *collector) claim() {
	for key, g := range c.groups {
		if job := c.jobs[key]; job != nil && ours(g, job) {
			c.claimOurs(key, g.Queue, job)
			continue
		}
		c.claimOther(key, g)
	}
	for key, job := range c.jobs {
		if _, there := c.groups[key]; !there && c.in.turns[key].Blocked == nil && c.arrives(job) {
			c.claimOurs(key, job.Status.Queue, job)
		}
	}
	for queue, promises := range c.arbiter.promises {
		if promises.Made() {
			c.docket(queue) // Others left for a gang there, which may wait no more.
		}
	}
	c.arbiter.idle = c.idle
}

// serveBound counts gangs that wait no more among those that have their places if they were placed since others left for them:
// Volcano binds the pods of a gang all together, so one that got its node stands for all.
func (c *collector) serveBound(bound map[types.NamespacedName]bool) {
	for _, d := range c.in.dockets {
		for _, g := range d.Waiting {
			delete(bound, g.Job)
		}
	}
	maps.Copy(c.in.served, bound)
}

// claimOther claims for a gang that is no training of ours: a merge, or a gang that somebody else made.
func (c *collector) claimOther(key types.NamespacedName, g gang.Membership) {
	r := c.rollOf(key)
	if g.MinMember <= r.bound+r.completed {
		c.in.served[key] = true
		return
	}
	ask := &capacity.Gang{Job: key, Queue: g.Queue, Created: g.Created}
	for _, p := range r.waiting {
		ask.Tier = max(ask.Tier, ptr.Deref(p.Spec.Priority, 0))
	}
	c.submit(ask, &capacity.Standing{
		MinMember: g.MinMember, Placed: r.bound + r.completed, Waiting: c.waiters(r.waiting), Gated: r.gated,
	})
}

// claimOurs claims for the core of a job, and lists the job among those that grow once it has its places.
func (c *collector) claimOurs(key types.NamespacedName, queue string, job *v1alpha1.ElasticTrainingJob) {
	st := &job.Status
	if st.Attempt == nil || job.Spec.RunPolicy.Suspend || st.Preemption != nil || st.MasterCompletionTime != nil ||
		st.CompletionTime != nil || job.DeletionTimestamp != nil {
		return
	}
	r := c.rollOf(key)
	placed := r.bound + c.completed(r, job)
	missing := st.Attempt.MinReplicas - placed
	if missing <= 0 {
		c.in.placed[key], c.in.served[key] = true, true
		c.grow(key, queue, job)
		return
	}
	ask := c.ask(key, queue, job)
	ask.Others = c.otherModels(key, job, missing)
	c.submit(ask, &capacity.Standing{
		MinMember: st.Attempt.MinReplicas, Placed: placed, Waiting: c.waiters(r.waiting), Gated: r.gated,
		Hindered: hindered(job), Began: st.Attempt.StartTime.Time, Arriving: c.arrives(job),
		Expected: func() (capacity.Shape, []capacity.Shape) { return c.shapesOf(job, ask.Model, missing, !c.masters[key]) },
	})
}

// claimsOf tells of each training whether its gang claims room, by what was judged, or has it already.
func (in *inputs) claimsOf(judged verdicts) map[types.NamespacedName]bool {
	claims := make(map[types.NamespacedName]bool, len(in.jobs))
	for job := range in.jobs {
		v := judged[job]
		claims[job] = in.placed[job] || v.Waiting > 0 && !v.Overdue && v.Never == nil
	}
	return claims
}

// askForReserved adds to the verdicts of trainings that have the name of a reservation whether they could ever fit: room is not
// handed over to one that could not.
func (in *inputs) askForReserved(model *capacity.Model, judged verdicts) {
	if len(in.reserved) == 0 {
		return
	}
	for _, d := range in.dockets {
		for _, g := range d.Waiting {
			if v, told := judged[g.Job]; told && in.jobs[g.Job] && in.reserved[g.Job.Name] {
				v.Never = model.Ceiling(g)
				judged[g.Job] = v
			}
		}
	}
}

// completed counts the core workers that have completed, by their pods and by what status remembers of pods that are gone.
func (c *collector) completed(r *roll, job *v1alpha1.ElasticTrainingJob) int32 {
	count := int32(0)
	for _, m := range job.Status.Members {
		if m.Completed && m.Index < job.Status.Attempt.MinReplicas && !r.finished[m.Index] {
			count++
		}
	}
	for index := range r.finished {
		if index < job.Status.Attempt.MinReplicas {
			count++
		}
	}
	return count
}

// submit adds the gang to the docket of its queue if it claims room. A gang that was seen to claim nothing begins to wait
// when it claims again.
func (c *collector) submit(ask *capacity.Gang, s *capacity.Standing) {
	s.QueueShut = !c.open[ask.Queue]
	if idle, seen := c.arbiter.idle[ask.Job]; seen {
		c.idle[ask.Job] = idle
		if idle.After(s.Began) {
			s.Began = idle
		}
	}
	if none := s.Claim(ask); none != "" {
		c.idle[ask.Job] = c.now
		return
	}
	d := c.docket(ask.Queue)
	d.Waiting = append(d.Waiting, ask)
}

// waiters reads pods that wait. Pods that ask for the same share one shape: those of a gang are mostly alike. Beyond as many
// shapes as the model covers they are not compared any more, because each would be with all the others.
func (c *collector) waiters(pods []*corev1.Pod) []capacity.Waiter {
	all := make([]capacity.Waiter, 0, len(pods))
	var kinds []*corev1.PodSpec
	var shapes []*capacity.Shape
	for _, p := range pods {
		kind := len(kinds) - 1
		if len(kinds) <= capacity.MostShapes {
			kind = slices.IndexFunc(kinds, func(known *corev1.PodSpec) bool { return askAlike(known, &p.Spec) })
		}
		if kind < 0 {
			shape := capacity.ShapeOf(&p.Spec, resource.PodRequests(p, resource.PodResourcesOptions{}), c.claimed(p.Namespace))
			if len(kinds) == capacity.MostShapes {
				shape.Unmodelled = capacity.ManyShapes
			}
			kind, kinds, shapes = len(kinds), append(kinds, &p.Spec), append(shapes, &shape)
		}
		all = append(all, capacity.Waiter{
			UID: p.UID, Rank: -ptr.Deref(p.Spec.Priority, 0), Since: p.CreationTimestamp.Time, Shape: shapes[kind],
		})
	}
	return all
}

// askAlike tells whether two pods ask for the same, as far as a shape knows. Names, and volumes that hold nothing to a
// node, differ from pod to pod.
func askAlike(a, b *corev1.PodSpec) bool {
	return equality.Semantic.DeepEqual(a.NodeSelector, b.NodeSelector) && equality.Semantic.DeepEqual(a.Affinity, b.Affinity) &&
		equality.Semantic.DeepEqual(a.Tolerations, b.Tolerations) && sameContainers(a.Containers, b.Containers) &&
		sameContainers(a.InitContainers, b.InitContainers) && equality.Semantic.DeepEqual(a.Overhead, b.Overhead) &&
		equality.Semantic.DeepEqual(a.Resources, b.Resources) && a.HostNetwork == b.HostNetwork &&
		equality.Semantic.DeepEqual(a.ResourceClaims, b.ResourceClaims) &&
		equality.Semantic.DeepEqual(a.TopologySpreadConstraints, b.TopologySpreadConstraints) && sameClaims(a.Volumes, b.Volumes)
}

func sameContainers(a, b []corev1.Container) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equality.Semantic.DeepEqual(a[i].Resources, b[i].Resources) || !equality.Semantic.DeepEqual(a[i].Ports, b[i].Ports) ||
			!equality.Semantic.DeepEqual(a[i].RestartPolicy, b[i].RestartPolicy) {
			return false
		}
	}
	return true
}

// sameClaims compares the volumes that bind a pod to nodes.
func sameClaims(a, b []corev1.Volume) bool {
	return equality.Semantic.DeepEqual(bindingVolumes(a), bindingVolumes(b))
}

func bindingVolumes(all []corev1.Volume) []corev1.VolumeSource {
	var binding []corev1.VolumeSource
	for i := range all {
		if all[i].PersistentVolumeClaim != nil || all[i].Ephemeral != nil {
			binding = append(binding, all[i].VolumeSource)
		}
	}
	return binding
}

// arrives tells whether the job's attempt has just begun, as that of a preempted job that goes on: it needs its room
// already. An operator that has just begun itself may have been killed before it created the PodGroup.
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

// grow lists a job whose core has its places among those that create only the surplus that fits, if it is one.
func (c *collector) grow(key types.NamespacedName, queue string, job *v1alpha1.ElasticTrainingJob) {
	if job.Spec.Elasticity.Surplus != v1alpha1.SurplusFitting {
		return
	}
	st := &job.Status
	placed := c.rollOf(types.NamespacedName{Namespace: key.Namespace, Name: gang.SurplusName(key.Name)}).bound
	ask := c.ask(key, queue, job)
	ask.Workers = st.Attempt.MaxReplicas - st.Attempt.MinReplicas - placed
	ask.Shape = c.shapeOf(job, st.Attempt.Model, 1)
	c.in.growers = append(c.in.growers, capacity.Grower{Gang: *ask, Placed: placed})
}
