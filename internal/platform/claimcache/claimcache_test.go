package claimcache

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

func asking(mode resourcev1.DeviceAllocationMode, count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: mode, Count: count},
	}}}}
}

func stripped(t *testing.T, o client.Object) client.Object {
	t.Helper()
	kept, err := kube.StripOthers(o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return kept.(client.Object)
}

// What the cache keeps of claims is enough to count them.
func TestClaimsAreRead(t *testing.T) {
	g := NewWithT(t)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ads", Name: name} }
	held := &resourcev1.ResourceClaim{ObjectMeta: named("ctr-0-gpus-x"), Spec: asking(resourcev1.DeviceAllocationModeAll, 0)}
	held.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r"}, {Request: "r"}, {Request: "r"}},
	}}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: named("eight")}
	template.Spec.Spec = asking(resourcev1.DeviceAllocationModeExactCount, 8)
	r := NewReader(fake.NewClientBuilder().WithObjects(stripped(t, held), stripped(t, template)).Build(),
		config.DefaultDeviceClasses())

	pod := &corev1.Pod{ObjectMeta: named("ctr-0"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "gpus", ResourceClaimTemplateName: ptr.To("eight")},
	}}}
	devices := func() int64 {
		claims, err := r.HeldBy(t.Context(), pod)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claims.Count().Missing).To(BeEmpty())
		return claims.Count().Devices
	}
	g.Expect(devices()).To(BeEquivalentTo(8), "by its template")
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: ptr.To("ctr-0-gpus-x")}}
	g.Expect(devices()).To(BeEquivalentTo(3), "by what it has")
	pod.Status.ResourceClaimStatuses[0].ResourceClaimName = ptr.To("gone")
	g.Expect(devices()).To(BeEquivalentTo(8), "by its template again")
	pod.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "gpus", ResourceClaimName: ptr.To("ctr-0-gpus-x")}
	pod.Status.ResourceClaimStatuses = nil
	g.Expect(devices()).To(BeEquivalentTo(3), "by the claim that it names")

	pod.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "gpus", ResourceClaimTemplateName: ptr.To("none")}
	claims, err := r.ClaimsOf(t.Context(), "ads", &pod.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claims.Count().Missing).To(HaveExactElements("ResourceClaimTemplate none"))
	g.Expect((*Reader)(nil).CountedOf(t.Context(), pod)).To(BeNil())

	for i := range 40 {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{
			Name: strconv.Itoa(i), ResourceClaimTemplateName: ptr.To("eight"),
		})
	}
	claims, err = r.ClaimsOf(t.Context(), "ads", &pod.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claims.All).To(HaveLen(32))
	g.Expect(claims.More).To(Equal(9))
}

func TestWithoutResourceClaimsNothingIsCached(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Setup(t.Context(), meta.NewDefaultRESTMapper(nil), nil, nil, nil)).To(BeNil())
}
