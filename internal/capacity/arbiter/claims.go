package arbiter

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/devices"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// arriving is how long a new attempt claims room before its pods exist. After that a quota or a policy probably refuses them,
// and other gangs may have the room.
const arriving = 10 * time.Second

// roll is the pods of a PodGroup.
type roll struct {
	pods []*knownPod
	// bound pods have a node and do not terminate. completed pods succeeded and were not asked to leave.
	bound, completed int32
	// holds is what the bound pods hold together.
	holds capacity.Amounts
	// waiters are those of the waiting pods, and asOf the version of shapes that they are of; nil until somebody asks again.
	waiters []capacity.Waiter
	asOf    int
}

// standing is the state of a pod in its PodGroup.
type standing int

const (
	// standsAside is for a pod that is no member: it failed or terminates, or another scheduler places it.
	standsAside standing = iota
	standsBound
	standsCompleted
	// standsGated is for a pod without a node that scheduling gates hold, standsWaiting for one that Volcano is to place.
	standsGated
	standsWaiting
)

// standingOf is the state of a pod in its PodGroup.
func standingOf(p *corev1.Pod) standing {
	switch {
	case p.Status.Phase == corev1.PodFailed:
	case p.Status.Phase == corev1.PodSucceeded:
		if p.DeletionTimestamp == nil && !isDisrupted(p) {
			return standsCompleted
		}
	case p.DeletionTimestamp != nil:
	case p.Spec.NodeName != "":
		return standsBound
	case len(p.Spec.SchedulingGates) > 0:
		return standsGated
	case p.Spec.SchedulerName == gang.SchedulerName:
		return standsWaiting
	}
	return standsAside
}

// enroll counts a pod in its PodGroup, times 1 or -1.
func (m *mirror) enroll(p *knownPod, times int64) {
	if p.group.Name == "" {
		return
	}
	r := m.rolls[p.group]
	if r == nil {
		r = &roll{holds: capacity.Amounts{}}
		m.rolls[p.group] = r
	}
	r.waiters = nil
	r.pods = withOrWithout(r.pods, p, times)
	switch p.standing {
	case standsBound:
		r.bound += int32(times)
		for name, amount := range p.requests {
			if r.holds[name] += times * amount; r.holds[name] == 0 {
				delete(r.holds, name)
			}
		}
		m.book(p.group, p.requests, times)
	case standsCompleted:
		r.completed += int32(times)
	case standsAside, standsGated, standsWaiting:
	}
	if len(r.pods) == 0 {
		delete(m.rolls, p.group)
	}
	m.countShort(p.group)
}

// rollOf is the roll of a PodGroup; empty for one without pods.
func (m *mirror) rollOf(group types.NamespacedName) *roll {
	if r := m.rolls[group]; r != nil {
		return r
	}
	return &roll{}
}

// gated counts the pods that scheduling gates hold.
func (r *roll) gated() (count int32) {
	for _, p := range r.pods {
		if p.standing == standsGated {
			count++
		}
	}
	return count
}

// placedOf are the indices of a training's workers that are bound, or have completed.
func (m *mirror) placedOf(group types.NamespacedName, job *v1beta1.ElasticTrainingJob) map[int32]bool {
	r := m.rollOf(group)
	placed := m.completedOf(r, job)
	for _, p := range r.pods {
		if _, index, ok := m.workerOf(p); ok && p.standing == standsBound {
			placed[index] = true
		}
	}
	return placed
}

// hasEnded is true for a pod that will not run again.
func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// isDisrupted is true for a pod that was asked to leave. Kubelets report such pods as Succeeded too.
func isDisrupted(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// collectShort opens a docket for every queue in which a gang with a PodGroup claims room.
func (c *collector) collectShort() {
	for key := range c.short {
		g := c.groups[key]
		if job := c.jobs[key]; job != nil && isCoreOf(g, job) {
			c.claimOurs(key, g.Queue, job)
			continue
		}
		c.claimOther(key, g)
	}
}

// collectClaims adds the claims that follow from turns, and lists the jobs that could grow.
func (c *collector) collectClaims(bound map[types.NamespacedName]bool) {
	c.collectAsking()
	for queue, promises := range c.arbiter.promises {
		if promises.AnyMade() {
			c.docket(queue) // Others left for a gang there that may not wait any more: ReviewClaims must end its claim.
		}
		for _, gang := range promises.AllNamed() {
			if c.isPlaced(gang) {
				c.in.served[gang] = true
			}
		}
	}
	c.serveBound(bound)
	c.arbiter.idle = c.idle
}

// collectAsking lists the trainings that need an answer though their PodGroups lack no member.
func (c *collector) collectAsking() {
	for key := range c.asking {
		job := c.jobs[key]
		g, there := c.groups[key]
		switch {
		case job.Status.Preemption != nil:
			c.in.preempted = append(c.in.preempted, c.stoppedCore(key, job))
		case there && !c.short[key] && isCoreOf(g, job):
			c.claimOurs(key, g.Queue, job) // It has its places, and may grow.
		case !there && c.in.turns[key].Blocked == nil && c.isArriving(job):
			// A new attempt claims room before its PodGroup exists, so that a resumed job does not lose the room that it resumed for.
			c.claimOurs(key, job.Status.Queue, job)
		}
	}
	c.in.growers = slices.Grow(c.in.growers, len(c.growing))
	for key := range c.growing {
		if g, there := c.groups[key]; there && !c.short[key] && isCoreOf(g, c.jobs[key]) {
			c.claimOurs(key, g.Queue, c.jobs[key])
		}
	}
}

// isPlaced is true for a gang all of whose members are placed.
func (m *mirror) isPlaced(key types.NamespacedName) bool {
	g, there := m.groups[key]
	if job := m.jobs[key]; there && job != nil && isCoreOf(g, job) {
		return wantsCore(job) && m.missing(key, job) <= 0
	}
	r := m.rollOf(key)
	return there && g.MinMember <= r.bound+r.completed
}

// serveBound marks as placed the gangs that no longer wait and had a pod bound since others left for them. Volcano binds the
// pods of a gang together, so one bound pod stands for all. Such a gang may have ended already, and its claim must not count as
// in vain.
func (c *collector) serveBound(bound map[types.NamespacedName]bool) {
	for _, d := range c.in.dockets {
		for _, g := range d.Waiting {
			delete(bound, g.Job)
		}
	}
	maps.Copy(c.in.served, bound)
}

// claimOther claims room for a merge or for a gang that is not ours.
func (c *collector) claimOther(key types.NamespacedName, g gang.Membership) {
	r := c.rollOf(key)
	if g.MinMember <= r.bound+r.completed {
		return
	}
	ask, waiters := &capacity.Gang{Job: key, Queue: g.Queue, Created: g.Created}, c.waitersOf(r)
	for i := range waiters {
		// A rank is a negated priority: the gang has that of its most important pod.
		ask.Tier = max(ask.Tier, -waiters[i].Rank)
	}
	if g.Closeness != nil {
		// Volcano's preempt leaves out gangs with a network topology.
		ask.Unserved = true
		if g.Closeness.Hard {
			ask.Within, ask.Beside = &g.Closeness.Highest, c.nodesOf(key)
		}
	}
	c.submit(ask, &capacity.Standing{
		MinMember: g.MinMember, Placed: r.bound + r.completed, Waiting: waiters, Gated: r.gated(), Unread: g.Unread,
	})
}

// wantsCore is true for a training that has a core, or asks for one.
func wantsCore(job *v1beta1.ElasticTrainingJob) bool {
	st := &job.Status
	return st.Attempt != nil && !job.Spec.Suspend && st.Preemption == nil && st.MasterCompletionTime == nil &&
		st.CompletionTime == nil && job.DeletionTimestamp == nil
}

// missing is how many workers of a training's core have no place.
func (m *mirror) missing(key types.NamespacedName, job *v1beta1.ElasticTrainingJob) int32 {
	r := m.rollOf(key)
	return job.Status.Attempt.MinReplicas - r.bound - m.completedCore(r, job)
}

// claimOurs claims room for the core of a training, or lists it among the growers if its core is placed.
func (c *collector) claimOurs(key types.NamespacedName, queue string, job *v1beta1.ElasticTrainingJob) {
	if !wantsCore(job) {
		return
	}
	st, missing := &job.Status, c.missing(key, job)
	if missing <= 0 {
		c.addGrower(key, queue, job)
		return
	}
	ask, r := c.gangOf(key, queue, job), c.rollOf(key)
	ask.Others = c.otherModels(key, job, missing)
	c.submit(ask, &capacity.Standing{
		MinMember: st.Attempt.MinReplicas, Placed: st.Attempt.MinReplicas - missing, Waiting: c.waitersOf(r), Gated: r.gated(),
		Hindered: isHindered(job), Began: st.Attempt.StartTime.Time, Arriving: c.isArriving(job),
		Expected: func() (capacity.Shape, []capacity.Shape, bool) {
			return c.shapesOf(job, ask.Model, missing, c.placedOf(key, job))
		},
	})
}

// claimsOf returns for each training that a reservation waits for whether its gang claims room by these verdicts, or has it
// already.
func (c *collector) claimsOf(judged verdicts) map[types.NamespacedName]bool {
	claims := map[types.NamespacedName]bool{}
	if len(c.in.reserved) == 0 {
		return claims
	}
	for key := range c.jobs {
		if c.in.reserved[key.Name] {
			v := judged[key]
			claims[key] = c.isPlaced(key) || v.Waiting > 0 && !v.Overdue && v.Never == nil
		}
	}
	return claims
}

// askForCeilings adds the ceiling to the verdicts of trainings that wait and do not fit: such a training is told if it could
// never fit, is shown no surplus that could not help it, and is handed no reservation's room.
func (in *inputs) askForCeilings(model *capacity.Model, judged verdicts) {
	for _, d := range in.dockets {
		for _, g := range d.Waiting {
			v, told := judged[g.Job]
			if !told || v.Answer.Fits || v.Answer.Leaving != nil || !in.isTraining(g.Job) {
				continue
			}
			if v.Never = model.CeilingFor(g); v.Never != nil {
				v.Holders = nil
				judged[g.Job] = v
			}
		}
	}
}

// completedCore counts the core workers that have completed.
func (m *mirror) completedCore(r *roll, job *v1beta1.ElasticTrainingJob) int32 {
	count := int32(0)
	for index := range m.completedOf(r, job) {
		if index < job.Status.Attempt.MinReplicas {
			count++
		}
	}
	return count
}

// completedOf are the indices of the workers that have completed: by their pods, and by the status for pods that are gone.
func (m *mirror) completedOf(r *roll, job *v1beta1.ElasticTrainingJob) map[int32]bool {
	finished := map[int32]bool{}
	if r.completed > 0 {
		for _, p := range r.pods {
			if _, index, ok := m.workerOf(p); ok && p.standing == standsCompleted {
				finished[index] = true
			}
		}
	}
	for _, member := range job.Status.Members {
		if member.HasCompleted() {
			finished[member.Index] = true
		}
	}
	return finished
}

// submit adds the gang to the docket of its queue if it claims room. The wait of a gang that claimed nothing for a while begins
// when it claims again: a gang whose gate is lifted after an hour has waited for a second.
func (c *collector) submit(ask *capacity.Gang, s *capacity.Standing) {
	s.QueueShut = !c.isOpen(ask.Queue)
	if idle, seen := c.arbiter.idle[ask.Job]; seen {
		c.idle[ask.Job] = idle
		if idle.After(s.Began) {
			s.Began = idle
		}
	}
	if none := s.CompleteClaim(ask); none != "" {
		c.idle[ask.Job] = c.now
		return
	}
	d := c.docket(ask.Queue)
	d.Waiting = append(d.Waiting, ask)
}

// waitersOf reads the waiting pods of a PodGroup, once for each change of its pods.
func (c *collector) waitersOf(r *roll) []capacity.Waiter {
	if version := c.shapes.now(); r.waiters == nil || r.asOf != version {
		var waiting []*corev1.Pod
		for _, p := range r.pods {
			if p.standing == standsWaiting {
				waiting = append(waiting, p.pod)
			}
		}
		slices.SortFunc(waiting, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		r.waiters, r.asOf = c.readWaiters(waiting), version
	}
	return r.waiters
}

// readWaiters reads pods. Those that ask for the same share one shape.
func (c *collector) readWaiters(pods []*corev1.Pod) []capacity.Waiter {
	all := make([]capacity.Waiter, 0, len(pods))
	var kinds []*corev1.Pod
	var shapes []*capacity.Shape
	for _, p := range pods {
		// Each pod is compared with every kind so far. Once there are more kinds than the model covers, comparing stops, or a gang of a
		// thousand different pods would take a million comparisons.
		kind := len(kinds) - 1
		if len(kinds) <= capacity.MostShapes {
			kind = slices.IndexFunc(kinds, func(known *corev1.Pod) bool { return c.askAlike(known, p) })
		}
		if kind < 0 {
			requests := resource.PodRequests(p, resource.PodResourcesOptions{})
			shape := capacity.ShapeOf(&p.ObjectMeta, &p.Spec, requests, c.volumesIn(p.Namespace))
			if len(kinds) == capacity.MostShapes {
				shape.Unmodelled = capacity.ManyShapes
			}
			kind, kinds, shapes = len(kinds), append(kinds, p), append(shapes, &shape)
		}
		all = append(all, capacity.Waiter{
			UID: p.UID, Rank: -ptr.Deref(p.Spec.Priority, 0), Index: capacity.IndexIn(p.Name), Since: p.CreationTimestamp.Time,
			Shape: shapes[kind],
		})
	}
	return all
}

// askAlike is true if two pods of a PodGroup have the same shape. Only what a shape reads is compared: names and many volumes
// differ from pod to pod, and labels count only where a rule about pods may be about them.
func (m *mirror) askAlike(one, other *corev1.Pod) bool {
	a, b := &one.Spec, &other.Spec
	if !devices.AnnotatedAlike(one.Annotations, other.Annotations) {
		return false
	}
	if (m.avoiding > 0 || readsLabels(a)) && !capacity.LookAlike(one.Labels, other.Labels) {
		return false
	}
	return equality.Semantic.DeepEqual(a.NodeSelector, b.NodeSelector) && equality.Semantic.DeepEqual(a.Affinity, b.Affinity) &&
		equality.Semantic.DeepEqual(a.Tolerations, b.Tolerations) && sameContainers(a.Containers, b.Containers) &&
		sameContainers(a.InitContainers, b.InitContainers) && equality.Semantic.DeepEqual(a.Overhead, b.Overhead) &&
		equality.Semantic.DeepEqual(a.Resources, b.Resources) && a.HostNetwork == b.HostNetwork &&
		equality.Semantic.DeepEqual(a.ResourceClaims, b.ResourceClaims) &&
		equality.Semantic.DeepEqual(a.TopologySpreadConstraints, b.TopologySpreadConstraints) && sameClaims(a.Volumes, b.Volumes)
}

// readsLabels is true for a pod with rules that may be about other pods of its gang.
func readsLabels(spec *corev1.PodSpec) bool {
	return spec.Affinity != nil && (spec.Affinity.PodAffinity != nil || spec.Affinity.PodAntiAffinity != nil) ||
		len(spec.TopologySpreadConstraints) > 0
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

// isArriving is true if the job's attempt has just begun, so that its pods are about to be created.
func (c *collector) isArriving(job *v1beta1.ElasticTrainingJob) bool {
	if job.Status.Attempt == nil || job.Status.RunningSince != nil {
		return false
	}
	// The operator may have been killed between recording the attempt and creating its PodGroup, so its own start counts too.
	since := job.Status.Attempt.StartTime.Time
	if c.arbiter.began.After(since) {
		since = c.arbiter.began
	}
	left := since.Add(arriving).Sub(c.now)
	if left <= 0 || left > arriving {
		return false // It began long ago, maybe by a clock that was set back since: it must not claim room until then.
	}
	c.in.again = kube.SoonerOf(c.in.again, left)
	return true
}

// isCoreOf is true if the PodGroup is the core of the job.
func isCoreOf(g gang.Membership, job *v1beta1.ElasticTrainingJob) bool {
	return g.Owner != nil && g.Owner.UID == job.UID
}
