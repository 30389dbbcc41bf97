package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
)

func TestDecideCountsDevicesThatWorkersClaim(t *testing.T) {
	g := NewWithT(t)
	job, profile := &v1beta1.ElasticTrainingJob{}, &v1beta1.ResourceQuotaProfile{}
	job.Spec.MinReplicas, job.Spec.MaxReplicas = 2, 2
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer"}}
	profile.Name = "ads"
	profile.Spec.Caps = &v1beta1.ProfileCaps{PerJob: []v1beta1.ResourceCap{{Resource: "nvidia.com/gpu",
		Max: resource.MustParse("15")}}}
	refused := func(of *v1beta1.ResourceQuotaProfile, requests ...deviceclaim.Request) error {
		claimed := func(*corev1.PodSpec) deviceclaim.Claims {
			return deviceclaim.Claims{Classes: config.DefaultDeviceClasses(), All: []deviceclaim.Claim{{
				Name: "gpus", Object: "ResourceClaimTemplate eight", Requests: requests,
			}}}
		}
		rules := Rules{Config: config.DefaultConfiguration(), Profile: of, ClaimsOf: claimed}
		return DecideCreation(job, Creation{}, rules).Refused.ToAggregate()
	}
	request := func(class string, count int64) deviceclaim.Request {
		return deviceclaim.Request{Name: "r", Alternatives: []deviceclaim.Alternative{{Class: class, Count: count}}}
	}
	g.Expect(refused(profile, request("gpu.nvidia.com", 7))).To(Succeed())
	g.Expect(refused(profile, request("gpu.nvidia.com", 8))).To(MatchError("spec.minReplicas: Invalid value: 2: The job " +
		"asks for at " +
		"least 16 nvidia.com/gpu, and profile ads lets a job hold at most 15 nvidia.com/gpu: lower minReplicas, or ask an " +
		"administrator " +
		"to raise the limit"))
	g.Expect(refused(profile, request("gpu.nvidia.com", 0))).To(MatchError("spec.template.spec.resourceClaims: " +
		"Forbidden: profile ads " +
		"limits what jobs hold, and how many accelerators a worker claims is unknown: request r of ResourceClaimTemplate " +
		"eight asks for " +
		"all devices of DeviceClass gpu.nvidia.com (allocationMode: All): claim a number of devices of a listed class, or ask an " +
		"administrator to list the class"))
	g.Expect(refused(nil, request("gpu.nvidia.com", 0))).To(Succeed(), "without a limit their number does not matter")

	profile.Spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{PerUser: 0, OnExceeded: v1beta1.ExceededDeny}}}
	g.Expect(refused(profile)).To(Succeed())
	g.Expect(refused(profile, request("gpu.nvidia.com", 1))).To(MatchError(ContainSubstring("gives users no accelerator hours")))
}
