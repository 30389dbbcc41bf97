package rendezvous

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// GPUs counts the GPUs that a container sees: devices of NVIDIA, AMD and Intel, slices of devices, and shared devices, because
// each is a device to the training. A container that asks for a share by memory alone sees one.
func GPUs(c *corev1.Container) int64 {
	asked := c.Resources.Limits // For extended resources limits and requests are equal where both are given.
	if len(asked) == 0 {
		asked = c.Resources.Requests
	}
	var n int64
	share := false
	for name, quantity := range asked {
		if isGPU(string(name)) {
			n += quantity.Value()
		}
		share = share || (isPart(string(name)) && !quantity.IsZero())
	}
	if n == 0 && share {
		return 1
	}
	return n
}

func isGPU(resource string) bool {
	switch resource {
	case "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe":
		return true
	// Time slices of NVIDIA's device plugin, and Volcano's two ways of sharing.
	case "nvidia.com/gpu.shared", "volcano.sh/vgpu-number", "volcano.sh/gpu-number":
		return true
	}
	return strings.HasPrefix(resource, "nvidia.com/mig-")
}

// isPart is true for a resource that is an amount of one GPU and not a number of GPUs.
func isPart(resource string) bool {
	return resource == "volcano.sh/gpu-memory" || resource == "aliyun.com/gpu-mem"
}
