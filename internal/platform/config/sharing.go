package config

import (
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

// Part says how much of an accelerator a resource is. Device plugins that share devices have resources of their own:
//
//   - Volcano's and HAMi's vGPUs: a container asks for a number of vGPUs, each on another device, and of each for the same
//     percentage of cores and the same memory in MiB (volcano.sh/volcano/pkg/scheduler/api/devices/nvidia/vgpu, resourcereqs;
//     HAMi calls them nvidia.com/gpucores and nvidia.com/gpumem). One that says no memory has all of each.
//   - Volcano's older GPU sharing: memory of one device, in MiB (docs/user-guide/how_to_use_gpu_sharing.md there).
//   - Time slicing of NVIDIA's device plugin: as many replicas of each device as its configuration says, which are called
//     nvidia.com/gpu.shared where that has renameByDefault (github.com/NVIDIA/k8s-device-plugin, README). Slices of MIG are
//     alike.
type Part struct {
	// Resource that pods ask for.
	Resource string `json:"resource"`
	// CountsAs is the accelerator that the resource is a part of, one of Configuration.Accelerators.
	CountsAs string `json:"countsAs"`
	// Whole is how much of it is one accelerator, from 1 to 999999999.
	Whole int32 `json:"whole"`
	// Times is the resource by which a container says on how many accelerators it asks for this amount each; empty for a resource
	// that is the amount on all together.
	Times string `json:"times"`
}

// Sharing lists the resources that are parts of accelerators. The zero Sharing has none.
type Sharing []Part

// maxSharing is how many resources a file may list.
const maxSharing = 64

const (
	// vgpuNumber is the resource by which a container says on how many shared devices it asks for parts.
	vgpuNumber = "volcano.sh/vgpu-number"
	thousand   = 1000
	// mostDevices is the most that is counted of one accelerator, so that sums of many pods are numbers.
	mostDevices     = 1 << 40
	mostThousandths = mostDevices * thousand
)

// CountedRequests is what a pod asks for, as caps, budgets and the ledger count it: what the scheduler counts and, for parts of
// accelerators, thousandths of the whole ones. It does not count devices that the pod claims: see [Sharing.CountedWith].
func (s Sharing) CountedRequests(pod *corev1.Pod) corev1.ResourceList { return s.CountedWith(pod, nil) }

// CountedWith is CountedRequests with what the pod's devices count as (package deviceclaim), as if one more container
// requested it.
func (s Sharing) CountedWith(pod *corev1.Pod, claimed corev1.ResourceList) corev1.ResourceList {
	if len(claimed) > 0 {
		pod = &corev1.Pod{Spec: pod.Spec}
		pod.Spec.Containers = append(slices.Clone(pod.Spec.Containers),
			corev1.Container{Resources: corev1.ResourceRequirements{Requests: claimed}})
	}
	if slices.ContainsFunc(pod.Spec.Containers, s.partsOf) || slices.ContainsFunc(pod.Spec.InitContainers, s.partsOf) {
		pod = &corev1.Pod{Spec: pod.Spec}
		pod.Spec.Containers = s.withAccelerators(pod.Spec.Containers)
		pod.Spec.InitContainers = s.withAccelerators(pod.Spec.InitContainers)
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// partsOf is true if a container asks for parts of accelerators.
func (s Sharing) partsOf(c corev1.Container) bool {
	return slices.ContainsFunc(s, func(share Part) bool {
		return amountOf(c.Resources.Requests, share.Resource) > 0 || amountOf(c.Resources.Requests, share.Times) > 0
	})
}

// withAccelerators adds to the requests of each container the accelerators that it holds parts of. Summed over the pod first,
// the number of devices of one container would multiply the cores of another.
func (s Sharing) withAccelerators(containers []corev1.Container) []corev1.Container {
	counted := slices.Clone(containers)
	for i := range counted {
		asked := counted[i].Resources.Requests
		counted[i].Resources.Requests = addThousandths(asked, s.partsByName(asked))
	}
	return counted
}

// partsByName are the thousandths of accelerators that a container asks for by its parts, by accelerator.
func (s Sharing) partsByName(asked corev1.ResourceList) map[string]int64 {
	parts, seen := map[string]int64{}, map[string]bool{}
	for _, share := range s {
		switch {
		case share.Times == "":
			parts[share.CountsAs] = boundedSum(parts[share.CountsAs], share.thousandths(amountOf(asked, share.Resource), 1))
		case !seen[share.Times]:
			seen[share.Times] = true
			parts[share.CountsAs] = boundedSum(parts[share.CountsAs], s.ofDevices(share.Times, asked))
		}
	}
	return parts
}

// ofDevices are the thousandths of accelerators that a container asks for as a number of devices with cores or memory on each.
// The larger of cores and memory counts, and never more than the devices. Without either it is the whole devices; without a
// number, one device.
func (s Sharing) ofDevices(times string, asked corev1.ResourceList) int64 {
	devices, part := min(amountOf(asked, times), mostDevices), int64(0)
	for _, share := range s {
		if share.Times == times {
			part = max(part, share.thousandths(amountOf(asked, share.Resource), max(devices, 1)))
		}
	}
	if part == 0 {
		return devices * thousand
	}
	return min(part, max(devices, 1)*thousand)
}

// totalParts are the thousandths of accelerators in what nodes or queues have of such resources.
func (s Sharing) totalParts(of func(resource string) int64) int64 {
	all, ofDevices := int64(0), map[string]int64{}
	for _, share := range s {
		part := share.thousandths(of(share.Resource), 1)
		if share.Times == "" {
			all = boundedSum(all, part)
		} else {
			ofDevices[share.Times] = max(ofDevices[share.Times], part)
		}
	}
	for _, part := range ofDevices {
		all = boundedSum(all, part)
	}
	return all
}

// thousandths is how much of an accelerator an amount on each of some devices is. It is rounded down, so that the parts of one
// device never add up to more than the device, but is at least 1 for a positive amount.
func (s Part) thousandths(amount, devices int64) int64 {
	if amount <= 0 || devices <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), uint64(devices*thousand))
	if high >= uint64(s.Whole) {
		return mostThousandths
	}
	part, _ := bits.Div64(high, low, uint64(s.Whole))
	return int64(max(min(part, mostThousandths), 1))
}

// isListed is true for a resource that is a part of an accelerator, or counts the devices for one.
func (s Sharing) isListed(resource string) bool {
	return slices.ContainsFunc(s, func(share Part) bool { return resource == share.Resource || resource == share.Times })
}

// MeasuredAccelerators lists, by name, the resources by which free accelerators are measured: those that are counted, and
// Volcano's number of shared devices, of which the parts are known.
func (c *Configuration) MeasuredAccelerators() []string {
	all := c.CountedAccelerators()
	if c.Sharing.isListed(vgpuNumber) {
		all = append(all, vgpuNumber)
	}
	return all
}

// CountedAccelerators lists, by name, the accelerators that are counted: all whose label is known, except parts of others.
func (c *Configuration) CountedAccelerators() []string {
	return slices.DeleteFunc(c.Accelerators.ResourceNames(), c.Sharing.isListed)
}

// AcceleratorForms are the resources as which nodes have an accelerator: itself, and its parts.
func (c *Configuration) AcceleratorForms(accelerator string) []string {
	forms := []string{accelerator}
	for _, share := range c.Sharing {
		if share.CountsAs == accelerator {
			forms = append(forms, share.Resource)
		}
	}
	return forms
}

// AcceleratorsAmong counts the accelerators among what [Sharing.CountedRequests] returned, all together, in thousandths.
func (c *Configuration) AcceleratorsAmong(counted corev1.ResourceList) int64 {
	n := int64(0)
	for _, name := range c.CountedAccelerators() {
		n = boundedSum(n, QuantityThousandths(counted[corev1.ResourceName(name)]))
	}
	return n
}

// AcceleratorsIn counts the accelerators in what nodes or queues have of each resource, all together, in thousandths. Cores and
// memory of the same devices are one number of them, the larger.
func (c *Configuration) AcceleratorsIn(of func(resource string) int64) int64 {
	n := c.Sharing.totalParts(of)
	for _, name := range c.CountedAccelerators() {
		n = boundedSum(n, min(of(name), mostDevices)*thousand)
	}
	return n
}

// QuantityThousandths of a quantity; at most mostThousandths.
func QuantityThousandths(q apiresource.Quantity) int64 {
	if q.CmpInt64(mostDevices) > 0 {
		return mostThousandths
	}
	return q.MilliValue()
}

// amountOf is how much of a resource is asked for; zero for a negative amount.
func amountOf(asked corev1.ResourceList, resource string) int64 {
	quantity := asked[corev1.ResourceName(resource)]
	return max(quantity.Value(), 0)
}

// boundedSum adds without overflow.
func boundedSum(a, b int64) int64 { return min(a, mostThousandths) + min(b, mostThousandths) }

// addThousandths adds thousandths of accelerators to a copy of what is asked for.
func addThousandths(asked corev1.ResourceList, parts map[string]int64) corev1.ResourceList {
	all := asked.DeepCopy()
	for name, thousandths := range parts {
		if thousandths > 0 {
			total := all[corev1.ResourceName(name)]
			total.Add(*apiresource.NewMilliQuantity(thousandths, apiresource.DecimalSI))
			all[corev1.ResourceName(name)] = total
		}
	}
	return all
}
