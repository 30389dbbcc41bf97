package config

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	g.Expect(strings.Split(accelerators.Names(), ", ")).To(ConsistOf("nvidia.com/gpu", "nvidia.com/gpu.shared",
		"volcano.sh/vgpu-number", "amd.com/gpu"))
}

func TestDevicesAmongResources(t *testing.T) {
	for name, c := range map[string]struct {
		asked corev1.ResourceList
		n     int64
	}{
		"none":           {corev1.ResourceList{"cpu": resource.MustParse("4")}, 0},
		"zero":           {corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}, 0},
		"of two vendors": {corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2"), "amd.com/gpu": resource.MustParse("1")}, 3},
	} {
		NewWithT(t).Expect(DefaultAccelerators().Among(c.asked)).To(Equal(c.n), name)
	}
}
