package trainingpod

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestNoPartIsLargerThanItsDevice(t *testing.T) {
	for _, name := range []corev1.ResourceName{"volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory-percentage"} {
		g := NewWithT(t)
		asking := func(n string) *corev1.PodTemplateSpec {
			return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "trainer", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(n)}},
			}}}}
		}
		g.Expect(CheckDevices(asking("100"))).To(BeEmpty())
		g.Expect(CheckDevices(asking("150")).ToAggregate()).To(MatchError("spec.template.spec.containers[0].resources.limits[" +
			string(name) + `]: Invalid value: "150": must be at most 100, because it is per cent of each device, and no device has more` +
			": lower it, or ask for more devices by volcano.sh/vgpu-number"))
	}
}

func TestDevicesNeedTheirLimit(t *testing.T) {
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	of := func(name corev1.ResourceName, n string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(n)}
	}
	for name, c := range map[string]struct {
		requests, limits corev1.ResourceList
		refused          bool
	}{
		"a limit alone":       {nil, of(gpu, "1"), false},
		"both":                {of(gpu, "1"), of(gpu, "1"), false},
		"a request alone":     {of(gpu, "1"), nil, true},
		"more than its limit": {of(gpu, "2"), of(gpu, "1"), true},
		"CPU":                 {of(corev1.ResourceCPU, "1"), nil, false},
		"huge pages":          {of("hugepages-2Mi", "2Mi"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "trainer", Resources: corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}},
			}}}
			found := CheckDevices(&template)
			if !c.refused {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Field).To(Equal("spec.template.spec.containers[0].resources.requests[nvidia.com/gpu]"))
			g.Expect(found[0].Error()).To(HaveSuffix("write it under limits, and leave requests out"))
		})
	}
}
