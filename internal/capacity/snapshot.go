// Package capacity is the one model of free room: which gangs fit, what they lack, which surplus would have to give way, and how
// much of the free room is too fragmented to use. It is pure: a snapshot in, answers out. Nothing else in Tideline reasons about
// room, and Volcano alone places pods.
//
// For each node the model keeps three vectors over the resources that nodes have:
//
//	all                         what the node has
//	free = all - every pod      decides what fits now
//	soon = all - pods that stay decides who else must leave: pods that terminate count as gone
//
//	node n1   |<--------------------- all ---------------------->|
//	          | core, stays | surplus, stays | terminating | free |
//	                                         |<----- soon ------->|
//
// A gang fits if each of its workers fits on some node and the limit of its queue allows all of them:
//
//	sum over nodes of min over resources (free / request) >= workers   and   workers * request <= queue limit - allocated
//
// The model covers what decides placement in nearly all clusters: allocatable resources and pod counts of nodes, node selectors,
// required node affinity, the nodes of volumes, taints, host ports, required affinity and anti-affinity to other pods, topology
// spread, parts of shared GPUs (devices.go), and the limits of queues. If a pod asks for more than that (ListUnmodelled lists it)
// the answer is Unknown, never a guess: a wrong guess would evict workers for a gang that does not start. A gang may be confined
// to one HyperNode (domain.go).
package capacity

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity/devices"
	"github.com/tideline-io/tideline/internal/platform/topology"
)

// Amounts are quantities by resource: CPU in thousandths of a core, everything else in its whole unit (bytes, devices).
type Amounts map[corev1.ResourceName]int64

// AmountsOf converts a resource list.
func AmountsOf(list corev1.ResourceList) Amounts {
	a := make(Amounts, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			a[name] = quantity.MilliValue()
		} else {
			a[name] = quantity.Value()
		}
	}
	return a
}

// IsBytes is true for a resource that is counted in bytes.
func IsBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Snapshot is a cluster at one moment.
type Snapshot struct {
	Nodes []Node
	// Pods are bound to nodes. Pending is surplus that waits for a node.
	Pods, Pending []Pod
	Queues        []Queue
	// Domains are the HyperNodes, as package topology orders them.
	Domains []topology.Domain
	// Running are the gangs that may be stopped as a whole for a more important one.
	Running []Running
}

// Running is a gang that runs.
type Running struct {
	Job   types.NamespacedName
	Queue string
	// Tier is the name of the job's tier, and Priority its priority: the lowest is stopped first.
	Tier     string
	Priority int32
	// WorkAtStake is how many device-seconds of work the job loses when it stops: of one tier who loses the least is stopped first.
	WorkAtStake int64
	// Created is when the job was created: of those that lose the same the youngest is stopped first.
	Created time.Time
	// Unmodelled is true for a gang that asks for something the model does not cover. It is not stopped, because the model could not
	// say when it may resume.
	Unmodelled bool
}

// Node is a node that is ready. A cordoned node has Kubernetes' taint for that.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable Amounts
	// Held is what the pods on the node hold, and how many they are; nil if New is to add that up from Pods.
	Held Amounts
	// Devices are those that the node shares; nil for none.
	Devices *devices.Node
}

// LongestLeave is the longest grace period with which the operator deletes a worker. A pod that may take longer to terminate
// does not count as leaving, so that no gang waits for its room.
const LongestLeave = 2 * time.Minute

// CapGrace is the grace period with which the operator deletes a pod that has this one, in seconds: at most [LongestLeave].
func CapGrace(seconds int64) int64 { return min(seconds, int64(LongestLeave.Seconds())) }

// Pod is a pod that has not ended. A terminating pod holds its place until it is gone.
type Pod struct {
	// Node that it is bound to.
	Node     string
	Requests Amounts
	// Job that the pod is a worker of; zero for other pods.
	Job types.NamespacedName
	// Queue is the Volcano Queue that the pod counts in; empty for a pod that counts in none.
	Queue string
	// on is Node in the model; nil for one that is not ready.
	on *node
	// Leaving is true for a pod whose room will be free soon: it terminates, or its job is being stopped as a whole.
	Leaving bool
	// Surplus describes the pod as surplus; nil for a pod that no gang may take. Kept is true for surplus that none may take yet: it
	// only counts among the surplus of its job.
	Surplus *Surplus
	Kept    bool
	// Until is when the pod is expected to leave by itself; zero where that is unknown.
	Until time.Time
	// Kin is who the pod is to other pods; nil for one that no rule is about.
	Kin *Kin
	// Parts are what the pod has of devices that its node shares; nil for nothing.
	Parts *devices.Held
}

// Surplus is a worker that may have to give way.
type Surplus struct {
	Job types.NamespacedName
	UID types.UID
	// Index of the worker: the highest goes first.
	Index int32
	// Tier is the priority of the job's tier: the lowest goes first.
	Tier int32
	// Asked is true for one that was asked to leave before. It goes first of its tier, so that work that others save or do
	// meanwhile makes no one else be asked in its place.
	Asked bool
	// WorkAtStake is how many device-seconds of work the job loses when one of its workers leaves: the least goes first.
	WorkAtStake int64
	// Created is when the job was created: the youngest goes first.
	Created time.Time
	// Step is by how many surplus workers the job changes its size: what stays is a multiple of it. 0 stands for 1.
	Step int32
	// Within names the node or HyperNode in which the whole step is; empty for a step whose workers may be anywhere. What stays
	// there is a multiple of Step.
	Within string
	// queue of the pod; New sets it.
	queue string
}

// Queue is a Volcano Queue.
type Queue struct {
	Name string
	// Guarantee is reserved for the queue: no other queue may use it.
	Guarantee Amounts
	// Deserved is the queue's share. Others may reclaim what the queue uses beyond it, and the queue may reclaim up to it. From a
	// queue without a share others may always reclaim, and it reclaims nothing, as in Volcano's capacity plugin.
	Deserved Amounts
	// Protected is true for a queue from which nothing is reclaimed (reclaimable: false).
	Protected bool
	// Capability is the queue's limit. A resource that is not listed has none.
	Capability Amounts
	// Allocated is what the queue's pods hold.
	Allocated Amounts
}

// Shape is what one worker asks and where it may run.
type Shape struct {
	Requests     Amounts
	NodeSelector map[string]string
	Affinity     *corev1.NodeSelector
	// Volumes are, for each volume that only some nodes can use, those nodes. A node must match all of them.
	Volumes     []*corev1.NodeSelector
	Tolerations []corev1.Toleration
	// Kin is who the pod is to other pods, and which of them it wants beside it or not; nil for a pod that no rule is about.
	Kin *Kin
	// Wishes are what the pod asks of shared devices; nil for a pod that asks for none.
	Wishes devices.Wishes
	// Unmodelled names what the pod asks beyond the model; empty when the model covers it.
	Unmodelled string

	// domain is the HyperNode that the worker is bound to; nil for none.
	domain *domain
	// constraints and worker are what keys returns; empty until ShapeOf has computed them, once for the many times it is asked for.
	constraints, worker string
}

// Volume says where pods may run that use a PersistentVolumeClaim.
type Volume struct {
	// Nodes are those that can use the volume; nil for all.
	Nodes *corev1.NodeSelector
	// Unmodelled says why that is unknown: "a PersistentVolumeClaim that is not bound"; empty if it is known.
	Unmodelled string
}

// ShapeOf reads a pod template: namespace, labels and annotations that its pods get, and their spec. requests are what a
// scheduler counts, which is more than the containers ask for. claimed looks up the pod's PersistentVolumeClaims by name.
func ShapeOf(
	of *metav1.ObjectMeta, spec *corev1.PodSpec, requests corev1.ResourceList, claimed func(name string) Volume,
) Shape {
	kin, beyondRules := KinOf(of.Namespace, of.Labels, spec)
	wishes, unjudged := devices.WishesOf(of.Annotations, spec)
	s := Shape{
		Requests: AmountsOf(requests), NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, Kin: kin, Wishes: wishes,
		Unmodelled: cmp.Or(beyondRules, beyondModel(of.Annotations, spec)),
	}
	for i := range spec.Volumes {
		if claim := spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			volume := claimed(claim.ClaimName)
			s.Unmodelled = cmp.Or(s.Unmodelled, volume.Unmodelled)
			if volume.Nodes != nil {
				s.Volumes = append(s.Volumes, volume.Nodes)
			}
		}
	}
	s.Unmodelled = cmp.Or(s.Unmodelled, unjudged)
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		s.Affinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	s.rememberKeys()
	return s
}

// Gang is a core that waits to be placed.
type Gang struct {
	Job   types.NamespacedName
	Queue string
	// Tier is the priority of the job's tier: the highest comes first.
	Tier int32
	// Created is when the job was created: the oldest comes first.
	Created time.Time
	// Since is when the last of the pods that must be placed began to wait.
	Since time.Time
	// Pods are the waiting pods, ordered by UID. Pods that have yet to be created are missing here.
	Pods []types.UID
	// Shape is the shape of every worker that is not in Apart.
	Shape Shape
	// Apart are the shapes of workers that differ from Shape, one entry each: worker 0 of a training, the launcher of a Volcano Job.
	// The model places them first.
	Apart []Shape
	// AnyOrder is true if the scheduler may place others before those in Apart.
	AnyOrder bool
	// Workers is how many must be placed together, those of Apart included.
	Workers int32
	// TierName is the name of the job's tier. Preempts names the tiers whose gangs may be stopped as a whole for this one.
	TierName string
	Preempts []string
	// Model is the model of accelerator that the shapes are bound to. Others are alternatives in the order of preference. Both are
	// empty for a gang that is bound to no model; Others also for one that can no longer choose.
	Model  string
	Others []Variant
	// Within is the highest tier of the one HyperNode in which all workers must be; nil for a gang that may be anywhere. Beside are
	// the nodes of those of its members that are placed, which must be in it too.
	Within *int
	Beside []string
	// Unserved is true for a gang for which Volcano's preempt evicts nobody, so that the operator must.
	Unserved bool
	// in is the HyperNode that the gang is bound to while it is judged there; nil for none.
	in *domain
}
