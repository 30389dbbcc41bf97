package arbiter

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A job that waits counts by its template, a pod that runs by the devices that it got.
func TestDevicesThatPodsClaimCountAtCaps(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.capped(8, "")
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "three"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 3},
	}}
	held := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "all-of-them"}}
	held.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeAll,
	}}}
	held.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r"}, {Request: "r"}, {Request: "r"}, {Request: "r"}},
	}}
	runs := notebook()
	runs.Spec.Containers[0].Resources.Requests = nil
	runs.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &held.Name}}
	s.objects = append(s.objects, template, held, runs)
	job := s.asking("ctr") // two workers
	spec := &job.Spec.Template.Spec
	spec.Containers[0].Resources = corev1.ResourceRequirements{}
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("three")}}
	g.Expect(s.turn("ctr").Blocked).To(HaveValue(And(HaveField("Used", int64(4000)), HaveField("Asked", int64(6000)))))
}
