// Package capacity is the one model of free room: which gangs fit, what is short, who would have to give way, and how much
// of what is free is too fragmented to use. It is pure: a snapshot in, answers out. Nothing else in Tideline reasons about
// room, and placement remains Volcano's.
//
// It models what decides placement in nearly all clusters: allocatable resources and pod counts of nodes, node selectors,
// required node affinity, the nodes of volumes, taints, and the limits of queues. What a pod asks beyond that (topology,
// affinity between pods, volumes of one node at a time) makes the answer Unknown, never a guess.
package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// IsBytes tells of a resource that is counted in bytes.
func IsBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Snapshot is a cluster at one moment.
type Snapshot struct {
	Nodes []Node
	// Pods are bound; Pending are surplus that waits for a node.
	Pods, Pending []Pod
	Queues        []Queue
	// Running are the gangs that may be stopped whole for a more important one.
	Running []Running
}

// Running is a gang that runs.
type Running struct {
	Job   types.NamespacedName
	Queue string
	// Tier is the name of the job's tier, and Priority its priority: the lowest is stopped first.
	Tier     string
	Priority int32
	// Created is when the job was created: the youngest is stopped first.
	Created time.Time
	// Unmodelled is true for one of which the model could not say when it may go on; it is not stopped.
	Unmodelled bool
}

// Node is a node that is ready. One that is cordoned has Kubernetes' taint for that.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable Amounts
}

// LongestLeave is how soon the room of a pod that terminates must come for others to wait for it, and so the longest grace with
// which the operator deletes a worker.
const LongestLeave = 2 * time.Minute

// Pod is a pod that has not ended; one that terminates holds its place until it is gone.
type Pod struct {
	// Node that it is bound to.
	Node     string
	Requests Amounts
	// Job that the pod is a worker of; zero for others.
	Job types.NamespacedName
	// Queue is the queue in whose books the pod stands; empty for a pod that is not Volcano's or no longer counts there.
	Queue string
	// Leaving is true for a pod whose room is on its way: it terminates, or its job is being stopped whole.
	Leaving bool
	// Surplus says whose surplus the pod is; nil for a pod that nobody may take.
	Surplus *Surplus
}

// Surplus is a worker that may have to give way.
type Surplus struct {
	Job types.NamespacedName
	UID types.UID
	// Index of the worker: the highest goes first.
	Index int32
	// Tier is the priority of the job's tier: the lowest goes first.
	Tier int32
	// Created is when the job was created: the youngest goes first.
	Created time.Time
	// queue of the pod, which New notes.
	queue string
}

// Queue is a Volcano Queue.
type Queue struct {
	Name string
	// Guarantee is what nobody else may use.
	Guarantee Amounts
	// Deserved is the queue's share: what it uses beyond may be reclaimed, and up to it the queue may reclaim. A queue without any
	// share may be reclaimed from at any time and reclaims nothing, as in Volcano's capacity plugin.
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
	// Volumes are the nodes from which each of its volumes that is bound to some can be used; a node must be among those of all.
	Volumes     []*corev1.NodeSelector
	Tolerations []corev1.Toleration
	// Unmodelled names what the pod asks beyond the model; empty when the model covers it.
	Unmodelled string
}

// Volume is what the volume of a PersistentVolumeClaim means for where its pods may run.
type Volume struct {
	// Nodes are those from which it can be used; nil for all.
	Nodes *corev1.NodeSelector
	// Unmodelled says of a volume what makes that unknown: "a PersistentVolumeClaim that is not bound"; empty if it is known.
	Unmodelled string
}

// ShapeOf reads a pod template. Requests are given, because admission and schedulers count more than the containers. Of
// the pod's PersistentVolumeClaims claimed tells, by name.
func ShapeOf(spec *corev1.PodSpec, requests corev1.ResourceList, claimed func(name string) Volume) Shape {
	s := Shape{
		Requests: AmountsOf(requests), NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, Unmodelled: unmodelled(spec),
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
	if s.Unmodelled == "" && slices.ContainsFunc(slices.Collect(maps.Keys(requests)), isPart) {
		s.Unmodelled = "shares of GPUs"
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		s.Affinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return s
}

func unmodelled(spec *corev1.PodSpec) string {
	switch a := spec.Affinity; {
	case a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0:
		return "affinity to other pods"
	case a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0:
		return "anti-affinity to other pods"
	case len(spec.ResourceClaims) > 0:
		return "resource claims"
	}
	for _, t := range spec.TopologySpreadConstraints {
		if t.WhenUnsatisfiable == corev1.DoNotSchedule {
			return "topology spread constraints"
		}
	}
	for _, v := range spec.Volumes {
		if v.Ephemeral != nil {
			return "volumes that are made for each pod"
		}
	}
	// A sidecar is an init container that goes on running, and kubelets hold it to its host ports as any other.
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if slices.ContainsFunc(containers[i].Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }) {
				return "host ports"
			}
		}
	}
	if spec.HostNetwork {
		return "the host's network"
	}
	return ""
}

// isPart tells whether a resource is part of a device, which schedulers count device by device: that a node has enough of
// it in all says nothing. Slices that a node counts as devices of their own (MIG, NVIDIA's gpu.shared) are no shares.
func isPart(name corev1.ResourceName) bool {
	switch string(name) {
	case "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores",
		"volcano.sh/gpu-number", "volcano.sh/gpu-memory", "aliyun.com/gpu-mem",
		"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores":
		return true
	}
	return false
}

// Gang is a core that waits for its place.
type Gang struct {
	Job   types.NamespacedName
	Queue string
	// Tier is the priority of the job's tier: the highest comes first.
	Tier int32
	// Created is when the job was created: the oldest comes first.
	Created time.Time
	// Since is when the last of the pods that must be placed began to wait.
	Since time.Time
	// Pods are the pods that wait for their place, in the order of their UIDs; pods that are still to be created are missing here.
	Pods []types.UID
	// Shape is that of every worker that has none of its own.
	Shape Shape
	// Apart are the shapes of workers that have one of their own, one entry each: worker 0 of a training, the launcher of a
	// Volcano Job. They get their places first.
	Apart []Shape
	// Workers is how many must be placed together, those of Apart included.
	Workers int32
	// TierName is the name of the job's tier, and Preempts names the tiers whose gangs may be stopped whole for this one.
	TierName string
	Preempts []string
	// Model is the model of accelerator that the shapes are bound to, and Others are those that would do as well, in the order of
	// preference; empty for a gang that is bound to none, or can no longer choose.
	Model  string
	Others []Variant
}
