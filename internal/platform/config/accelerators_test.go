package config

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestModelLabel(t *testing.T) {
	g := NewWithT(t)
	accelerators := DefaultAccelerators()
	for resource, want := range map[string]string{
		"": "nvidia.com/gpu.product", "nvidia.com/gpu": "nvidia.com/gpu.product", "amd.com/gpu": "amd.com/gpu.product-name",
	} {
		label, known := accelerators.ModelLabel(resource)
		g.Expect(known).To(BeTrue())
		g.Expect(label).To(Equal(want))
	}
	_, known := accelerators.ModelLabel("example.com/npu")
	g.Expect(known).To(BeFalse())
	g.Expect(strings.Split(accelerators.JoinedNames(), ", ")).To(ConsistOf("nvidia.com/gpu", "nvidia.com/gpu.shared",
		"volcano.sh/vgpu-number", "amd.com/gpu"))
}
