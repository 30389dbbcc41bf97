package config

import (
	"maps"
	"slices"
	"strings"
)

// Accelerators are the node labels in which the model of an accelerator stands, by the accelerator's resource.
type Accelerators map[string]string

// DefaultAccelerators returns the labels of NVIDIA's GPU feature discovery, which speaks of the same devices whether they are
// shared or not, and of AMD's node labeller.
func DefaultAccelerators() Accelerators {
	return Accelerators{
		"nvidia.com/gpu":         "nvidia.com/gpu.product",
		"nvidia.com/gpu.shared":  "nvidia.com/gpu.product",
		"volcano.sh/vgpu-number": "nvidia.com/gpu.product",
		"amd.com/gpu":            "amd.com/gpu.product-name",
	}
}

// defaultAccelerator is the resource of an accelerator that names none.
const defaultAccelerator = "nvidia.com/gpu"

// AcceleratorResource is the resource that an accelerator speaks of; empty stands for the default.
func AcceleratorResource(resource string) string {
	if resource == "" {
		return defaultAccelerator
	}
	return resource
}

// ModelLabel returns the node label that names the model of an accelerator's resource, and false for a resource of whose label
// the operator knows nothing.
func (a Accelerators) ModelLabel(resource string) (string, bool) {
	label, ok := a[AcceleratorResource(resource)]
	return label, ok
}

// Resources lists the resources whose label is known, by name.
func (a Accelerators) Resources() []string { return slices.Sorted(maps.Keys(a)) }

// Names lists them for messages.
func (a Accelerators) Names() string { return strings.Join(a.Resources(), ", ") }
