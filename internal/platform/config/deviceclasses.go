package config

import (
	"maps"
	"slices"
)

// DeviceClasses maps the name of a DeviceClass (resource.k8s.io) to the resource that one of its devices counts as: one of
// Configuration.Accelerators, or a part of one (Configuration.Sharing); empty for devices that are no accelerators.
type DeviceClasses map[string]string

// DefaultDeviceClasses has the class of whole GPUs of NVIDIA's driver (github.com/NVIDIA/k8s-dra-driver-gpu). Its classes for
// slices and vfio devices are left out, because a device of them is no whole GPU for a training.
func DefaultDeviceClasses() DeviceClasses { return DeviceClasses{"gpu.nvidia.com": "nvidia.com/gpu"} }

// deviceResources lists what devices may count as.
func (c *Configuration) deviceResources() []string {
	names := c.Accelerators.ResourceNames()
	for _, part := range c.Sharing {
		names = append(names, part.Resource)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sortedClasses lists the names of the classes.
func (d DeviceClasses) sortedClasses() []string { return slices.Sorted(maps.Keys(d)) }
