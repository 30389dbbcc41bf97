package claimcache

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// indexed reads claims as a cache does that was told not to copy: one look into a map.
type indexed struct {
	client.Reader
	store cache.Store
}

func (i indexed) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, _, err := i.store.GetByKey(key.String())
	if claim, ok := object.(*resourcev1.ResourceClaim); ok {
		*into.(*resourcev1.ResourceClaim) = *claim
	}
	return err
}

// claimed are n pods, each with a claim of eight devices that it has, and who reads them.
func claimed(n int) (*Reader, []*corev1.Pod) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		name := fmt.Sprintf("ctr-%d-gpus", i)
		claim := &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name}, Spec: asking(resourcev1.DeviceAllocationModeExactCount, 8),
		}
		claim.Status.Allocation = &resourcev1.AllocationResult{}
		for range 8 {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Request: "r"})
		}
		_ = store.Add(claim)
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads"}}
		pods[i].Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("eight")}}
		pods[i].Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: &name}}
	}
	return NewReader(indexed{store: store}, config.DefaultDeviceClasses()), pods
}

// What a pod costs must not rise with how many claims there are.
func TestCountingReadsNothingOfOthers(t *testing.T) {
	g := NewWithT(t)
	perPod := func(n int) float64 {
		r, pods := claimed(n)
		g.Expect(r.CountedOf(t.Context(), pods[n-1])).To(HaveKey(corev1.ResourceName("nvidia.com/gpu")))
		return testing.AllocsPerRun(100, func() { r.CountedOf(t.Context(), pods[n-1]) })
	}
	few, many := perPod(10), perPod(10_000)
	g.Expect(many).To(BeNumerically("<=", few+1))
	g.Expect(many).To(BeNumerically("<", 40), "allocations for a pod")
}

// BenchmarkTenThousandClaims counts the devices of 10,000 pods, as one evaluation of the arbiter does.
func BenchmarkTenThousandClaims(b *testing.B) {
	r, pods := claimed(10_000)
	b.ReportAllocs()
	for b.Loop() {
		for _, pod := range pods {
			r.CountedOf(b.Context(), pod)
		}
	}
}
