package config

import (
	"maps"
	"slices"
	"strings"
)

// Accelerators maps the resource of an accelerator to the node label that names its model.
type Accelerators map[string]string

// DefaultAccelerators returns the labels of NVIDIA's GPU feature discovery, for whole and shared devices, and of AMD's node
// labeller.
func DefaultAccelerators() Accelerators {
	return Accelerators{
		"nvidia.com/gpu":         "nvidia.com/gpu.product",
		"nvidia.com/gpu.shared":  "nvidia.com/gpu.product",
		"volcano.sh/vgpu-number": "nvidia.com/gpu.product",
		"amd.com/gpu":            "amd.com/gpu.product-name",
	}
}

// defaultAccelerator is the resource that an accelerator without one means.
const defaultAccelerator = "nvidia.com/gpu"

// AcceleratorResource returns the resource, or the default for an empty one.
func AcceleratorResource(resource string) string {
	if resource == "" {
		return defaultAccelerator
	}
	return resource
}

// ModelLabel returns the node label that names the model of an accelerator's resource; false if the operator knows none.
func (a Accelerators) ModelLabel(resource string) (string, bool) {
	label, ok := a[AcceleratorResource(resource)]
	return label, ok
}

// ResourceNames lists the resources whose label is known, by name.
func (a Accelerators) ResourceNames() []string { return slices.Sorted(maps.Keys(a)) }

// JoinedNames lists the resources for messages.
func (a Accelerators) JoinedNames() string { return strings.Join(a.ResourceNames(), ", ") }
