// Package devices counts the parts of shared GPUs device by device, as Volcano's plugin deviceshare does for its vGPUs:
//
//	node's annotation   GPU-0 10 slots 16384 MiB 100 % | GPU-1 ...          what each device has
//	pods' annotations   GPU-0 8192 MiB 50 % | GPU-0 4096 MiB 25 % | ...     what each pod has
//	containers' limits  1 device, 8192 MiB, 50 %                            what a worker asks
//
// A container gets devices that each have a free slot and the memory and the cores that it asks for; 100 % of the cores only of
// an unused device. It is pure. What annotations do not tell is unclear, and never guessed.
package devices

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotations by which device plugin and scheduler agree. Volcano's scheduler writes Assigned before it binds a pod.
const (
	Registered = "volcano.sh/node-vgpu-register"
	Assigned   = "volcano.sh/vgpu-ids-new"
	// Mode, Policy, Uses and Avoids are what a pod asks of devices beyond amounts.
	Mode   = "volcano.sh/vgpu-mode"
	Policy = "volcano.sh/vgpu-podgroup-policy"
	Uses   = "nvidia.com/use-gputype"
	Avoids = "nvidia.com/nouse-gputype"
)

// The resources that containers ask for. Cores are per cent, memory is MiB, both of each device.
const (
	Number     = corev1.ResourceName("volcano.sh/vgpu-number")
	Memory     = corev1.ResourceName("volcano.sh/vgpu-memory")
	Cores      = corev1.ResourceName("volcano.sh/vgpu-cores")
	percentage = corev1.ResourceName("volcano.sh/vgpu-memory-percentage")
)

const (
	// Columns is how many amounts a device has in a vector: slots, MiB of memory and per cent of cores, in this order.
	Columns = 3
	// most is how many devices a node may have, and a pod parts. It bounds what an annotation costs, which users may write.
	most = 64
	// mostAmount is the largest amount that the scheduler reads as it is.
	mostAmount = 1<<31 - 1
	// sharing is the mode in which any part of a device can be had. Slices of MIG are not counted here.
	sharing  = "hami-core"
	allCores = 100
	thousand = 1000
)

// Node is the devices that a node shares. It is never changed.
type Node struct {
	// IDs are theirs, in the order in which the node lists them.
	IDs []string
	// All is what they have, Columns amounts for each.
	All []int64
	// Unclear is true if the node shares devices and does not say which, or says it in a way that is not read.
	Unclear bool
}

// ReadNode reads the devices that a node shares; nil for one that shares none.
func ReadNode(annotations map[string]string, allocatable corev1.ResourceList) *Node {
	if amountIn(allocatable, Number) == 0 && amountIn(allocatable, Memory) == 0 {
		return nil
	}
	n := &Node{}
	for entry := range strings.SplitSeq(annotations[Registered], ":") {
		if entry != "" && !n.add(strings.Split(entry, ",")) {
			return &Node{Unclear: true}
		}
	}
	// Without one of these amounts Volcano looks at no device.
	if len(n.IDs) == 0 || min(amountIn(allocatable, Number), amountIn(allocatable, Memory), amountIn(allocatable, Cores)) <= 0 {
		return &Node{Unclear: true}
	}
	return n
}

// add adds a device: ID, slots, memory, type, health, mode, and maybe more. The scheduler does not look at the health.
func (n *Node) add(words []string) (read bool) {
	if len(words) < 6 || len(n.IDs) == most || words[0] == "" || words[5] == "mig" {
		return false
	}
	slots, err1 := strconv.ParseUint(words[1], 10, 31)
	memory, err2 := strconv.ParseUint(words[2], 10, 31)
	// The scheduler finds a device by an ID that contains its own.
	alike := slices.ContainsFunc(n.IDs, func(id string) bool {
		return strings.Contains(id, words[0]) || strings.Contains(words[0], id)
	})
	if err1 != nil || err2 != nil || alike {
		return false
	}
	if !strings.Contains(words[3], "NVIDIA") {
		slots = 0 // The scheduler gives out no device of another type.
	}
	n.IDs, n.All = append(n.IDs, words[0]), append(n.All, int64(slots), int64(memory), allCores)
	return true
}

// Held is what a pod has of its node's devices. It is never changed.
type Held struct {
	Parts []Part
	// Unclear is true for a pod that asks for parts, and does not say which it has.
	Unclear bool
}

// Part is what a pod has of one device: MiB of memory, and per cent of its cores.
type Part struct {
	Device        string
	Memory, Cores int64
}

// ReadPod reads what a pod on a node has of its devices; nil for one that has nothing.
func ReadPod(p *corev1.Pod) *Held {
	text, assigned := p.Annotations[Assigned]
	if !assigned || text == "" {
		if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return asks(&c, Number) || asks(&c, Memory) }) {
			return nil
		}
		return &Held{Unclear: true}
	}
	h := &Held{}
	for container := range strings.SplitSeq(text, ";") {
		for entry := range strings.SplitSeq(container, ":") {
			if entry != "" && !h.add(strings.Split(entry, ",")) {
				return &Held{Unclear: true}
			}
		}
	}
	return h
}

// add adds a part: device, type, memory, cores. Of two parts of one device the scheduler counts both only until it is told of the
// pod again, so they are not read.
func (h *Held) add(words []string) (read bool) {
	if len(words) != 4 || len(h.Parts) == most || slices.ContainsFunc(h.Parts, func(p Part) bool { return p.Device == words[0] }) {
		return false
	}
	memory, err1 := strconv.ParseUint(words[2], 10, 31)
	cores, err2 := strconv.ParseUint(words[3], 10, 31)
	h.Parts = append(h.Parts, Part{Device: words[0], Memory: int64(memory), Cores: int64(cores)})
	return err1 == nil && err2 == nil
}

// SameAs is true for pods that have the same parts of the same devices.
func (h *Held) SameAs(o *Held) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.Unclear == o.Unclear && slices.Equal(h.Parts, o.Parts)
}

// KnowsParts is true if it is clear what a pod has of the node's devices.
func (n *Node) KnowsParts(h *Held) bool {
	return !n.Unclear && !h.Unclear && !slices.ContainsFunc(h.Parts, func(p Part) bool { return !slices.Contains(n.IDs, p.Device) })
}

// AddParts adds what a pod has to amounts of the node's devices, times 1 or -1. What it has of unknown devices is left out.
func (n *Node) AddParts(to []int64, h *Held, times int64) {
	for _, p := range h.Parts {
		if i := slices.Index(n.IDs, p.Device) * Columns; i >= 0 {
			to[i] += times
			to[i+1] += times * p.Memory
			to[i+2] += times * p.Cores
		}
	}
}

// CountFree is how much of the node's devices is free, in thousandths of one. Of each it is the smaller share of memory and
// cores, because a part takes both, and nothing of one without a free slot.
func (n *Node) CountFree(free []int64) (thousandths int64) {
	for i := 0; i < len(n.All); i += Columns {
		if free[i] <= 0 {
			continue
		}
		share := int64(thousand)
		for _, at := range []int{i + 1, i + 2} {
			if n.All[at] > 0 {
				share = min(share, max(0, free[at])*thousand/n.All[at])
			}
		}
		thousandths += share
	}
	return thousandths
}

// asks is true for a container that asks for a resource. Cached pods have requests only: of such resources they equal the limits.
func asks(c *corev1.Container, name corev1.ResourceName) bool {
	_, limited := c.Resources.Limits[name]
	_, requested := c.Resources.Requests[name]
	return limited || requested
}

func amountOf(c *corev1.Container, name corev1.ResourceName) int64 {
	if _, limited := c.Resources.Limits[name]; limited {
		return amountIn(c.Resources.Limits, name)
	}
	return amountIn(c.Resources.Requests, name)
}

func amountIn(list corev1.ResourceList, name corev1.ResourceName) int64 {
	quantity := list[name]
	return quantity.Value()
}
