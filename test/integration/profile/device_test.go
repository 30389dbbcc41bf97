package profile

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Devices that workers claim", Serial, func() {
	It("behaviour 5: count at caps, and a template that comes late is waited for", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").PerUser(8))
		job := ads.job("claiming", 2, 2).Owner("alice").Obj()
		job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}
		job.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("five")}}
		ads.Create(job)
		Eventually(ads.Fetch("claiming")).Should(testutil.Wait(v1beta1.ReasonResourceClaimNotFound))
		Expect(ads.Pods("claiming")).To(BeEmpty())

		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ads.Namespace, Name: "five"}}
		template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
			Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 5},
		}}
		ads.Create(template)
		Eventually(ads.Fetch("claiming")).Should(testutil.BeStalled(v1beta1.ReasonQuotaExceeded))
		Expect(ads.Read("claiming").Status.Message).To(Equal("The job asks for at least 10 nvidia.com/gpu, and profile ads " +
			"lets a user " +
			"hold at most 8 nvidia.com/gpu. Lower minReplicas, or ask an administrator to raise the limit."))
	})
})
