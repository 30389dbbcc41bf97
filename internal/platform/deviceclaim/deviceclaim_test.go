package deviceclaim

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/config"
)

var classes = config.DeviceClasses{
	"gpu.nvidia.com": "nvidia.com/gpu", "h100.example.com": "nvidia.com/gpu", "gpu.amd.com": "amd.com/gpu", "nic.example.com": "",
}

func exactly(name, class string, count int64) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
	}}
}

func all(name, class string) resourcev1.DeviceRequest { //nolint:unparam // beside exactly, which has other names
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeAll,
	}}
}

func firstOf( //nolint:unparam // beside exactly, which has other names
	name string, subs ...resourcev1.DeviceSubRequest,
) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, FirstAvailable: subs}
}

func sub(name, class string, count int64) resourcev1.DeviceSubRequest {
	return resourcev1.DeviceSubRequest{Name: name, DeviceClassName: class, Count: count}
}

func admin(r resourcev1.DeviceRequest) resourcev1.DeviceRequest {
	r.Exactly.AdminAccess = ptr.To(true)
	return r
}

func results(requests ...string) []resourcev1.DeviceRequestAllocationResult {
	var all []resourcev1.DeviceRequestAllocationResult
	for _, r := range requests {
		all = append(all, resourcev1.DeviceRequestAllocationResult{Request: r, Driver: "gpu.nvidia.com"})
	}
	return all
}

func claimOf(allocated []resourcev1.DeviceRequestAllocationResult, asked ...resourcev1.DeviceRequest) Claims {
	return Claims{Classes: classes, All: []Claim{{
		Name: "gpus", Object: "ResourceClaimTemplate eight", Requests: ReadRequests(asked, allocated),
	}}}
}

func TestClaimsAreCounted(t *testing.T) {
	const unlisted, allOf = "request r of ResourceClaimTemplate eight asks for devices of DeviceClass tpu.example.com, which the " +
		"operator's configuration does not list (deviceClasses)", "request r of ResourceClaimTemplate eight asks for all devices of " +
		"DeviceClass gpu.nvidia.com (allocationMode: All)"
	type amounts map[string]int64
	for name, c := range map[string]struct {
		asked     []resourcev1.DeviceRequest
		allocated []resourcev1.DeviceRequestAllocationResult
		want      amounts
		devices   int64
		unknown   []string
	}{
		"an exact count": {
			asked: []resourcev1.DeviceRequest{exactly("r", "gpu.nvidia.com", 8)}, want: amounts{"nvidia.com/gpu": 8}, devices: 8,
		},
		"no count is one": {asked: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu.nvidia.com"}}}, want: amounts{"nvidia.com/gpu": 1}, devices: 1},
		"requests add up": {
			asked: []resourcev1.DeviceRequest{
				exactly("a", "gpu.nvidia.com", 2), exactly("b", "h100.example.com", 4), exactly("c", "gpu.amd.com", 1),
			},
			want: amounts{"nvidia.com/gpu": 6, "amd.com/gpu": 1}, devices: 7,
		},
		"a class that is no accelerator":    {asked: []resourcev1.DeviceRequest{exactly("r", "nic.example.com", 8)}},
		"all of one that is no accelerator": {asked: []resourcev1.DeviceRequest{all("r", "nic.example.com")}},
		"administrative access":             {asked: []resourcev1.DeviceRequest{admin(all("r", "gpu.nvidia.com"))}},
		"the largest alternative": {
			asked: []resourcev1.DeviceRequest{firstOf("r", sub("one", "h100.example.com", 1), sub("two", "gpu.nvidia.com", 4))},
			want:  amounts{"nvidia.com/gpu": 4}, devices: 4,
		},
		"alternatives of several resources": {
			asked: []resourcev1.DeviceRequest{firstOf("r", sub("one", "gpu.amd.com", 2), sub("two", "gpu.nvidia.com", 4))},
			want:  amounts{"nvidia.com/gpu": 4, "amd.com/gpu": 2}, devices: 4,
		},
		"a class that is not listed": {asked: []resourcev1.DeviceRequest{exactly("r", "tpu.example.com", 4)},
			unknown: []string{unlisted}},
		"an alternative that is not listed": {
			asked:   []resourcev1.DeviceRequest{firstOf("r", sub("one", "gpu.nvidia.com", 1), sub("two", "tpu.example.com", 1))},
			unknown: []string{unlisted},
		},
		"all devices": {asked: []resourcev1.DeviceRequest{all("r", "gpu.nvidia.com")}, unknown: []string{allOf}},
		"all devices, allocated": {
			asked: []resourcev1.DeviceRequest{all("r", "gpu.nvidia.com")}, allocated: results("r", "r", "r"),
			want: amounts{"nvidia.com/gpu": 3}, devices: 3,
		},
		"the alternative that was allocated": {
			asked: []resourcev1.DeviceRequest{
				firstOf("r", sub("one", "gpu.amd.com", 2), sub("two", "gpu.nvidia.com", 4)), exactly("s", "gpu.nvidia.com", 1),
			},
			allocated: results("r/one", "r/one", "s"), want: amounts{"amd.com/gpu": 2, "nvidia.com/gpu": 1}, devices: 3,
		},
		"more than can be added": {
			asked: []resourcev1.DeviceRequest{exactly("r", "gpu.nvidia.com", math.MaxInt64), exactly("s", "gpu.nvidia.com",
				math.MaxInt64)},
			want: amounts{"nvidia.com/gpu": 2 * mostDevices}, devices: 2 * mostDevices,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := claimOf(c.allocated, c.asked...).Count()
			g.Expect(n.Devices).To(Equal(c.devices))
			g.Expect(n.Unknown).To(Equal(c.unknown))
			g.Expect(n.Resources).To(HaveLen(len(c.want)))
			for resource, amount := range c.want {
				quantity := n.Resources[corev1.ResourceName(resource)]
				g.Expect(quantity.Value()).To(Equal(amount), resource)
			}
		})
	}
}

func TestAContainerSeesWhatItLists(t *testing.T) {
	g := NewWithT(t)
	claims := claimOf(nil, exactly("a", "gpu.nvidia.com", 2), exactly("b", "gpu.nvidia.com", 4))
	claims.All = append(claims.All, Claim{Name: "gone", Object: "ResourceClaim gone", Missing: true})
	container := func(listed ...corev1.ResourceClaim) *corev1.Container {
		return &corev1.Container{Resources: corev1.ResourceRequirements{Claims: listed}}
	}
	g.Expect(claims.CountFor(container())).To(BeZero())
	g.Expect(claims.CountFor(container(corev1.ResourceClaim{Name: "gpus"})).Devices).To(BeEquivalentTo(6))
	g.Expect(claims.CountFor(container(corev1.ResourceClaim{Name: "gpus", Request: "b"})).Devices).To(BeEquivalentTo(4))
	g.Expect(claims.CountFor(container(corev1.ResourceClaim{Name: "gone", Request: "b"})).Missing).To(
		HaveExactElements("ResourceClaim gone"))
	g.Expect(claims.Count().DescribeMissing()).To(Equal("ResourceClaim gone"))
}

func TestClaimsBeyondTheBoundAreUnknown(t *testing.T) {
	g := NewWithT(t)
	claims := Claims{More: 3}
	g.Expect(claims.Count().DescribeUnknown()).To(Equal("the pod has 35 claims, and Tideline counts the first 32"))
	g.Expect(joinFirst([]string{"a", "b", "c", "d"})).To(Equal("a, b (and 2 more)"))
}

// Devices count as if a container requested them, so parts of devices count as parts.
func TestDevicesCountBesideRequests(t *testing.T) {
	g := NewWithT(t)
	slices := config.Sharing{{Resource: "nvidia.com/mig-1g.10gb", CountsAs: "nvidia.com/gpu", Whole: 7}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("2")},
	}}}}}
	claimed := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4"), "nvidia.com/mig-1g.10gb": resource.MustParse("7")}
	counted := slices.CountedWith(pod, claimed)
	g.Expect(counted.Cpu().Value()).To(BeEquivalentTo(2))
	gpus := counted["nvidia.com/gpu"]
	g.Expect(gpus.Value()).To(BeEquivalentTo(6))
	g.Expect(pod.Spec.Containers).To(HaveLen(1), "the pod stays as it is")
}
