package training

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// claiming has every worker claim devices, as many of that class; 0 for all.
func claiming(o *jobstate.Observed, class string, count int64) {
	template := &o.Job.Spec.Template.Spec
	template.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("eight")}}
	template.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}
	asked := []deviceclaim.Request{{Name: "r", Alternatives: []deviceclaim.Alternative{{Class: class, Count: count}}}}
	o.Claims = deviceclaim.Claims{Classes: config.DefaultDeviceClasses(), All: []deviceclaim.Claim{{
		Name: "gpus", Object: "ResourceClaimTemplate eight", Requests: asked, Asked: asked,
	}}}
}

func TestDevicesThatWorkersClaimAreShown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	claiming(&w.o, "gpu.nvidia.com", 8)
	w.trains()
	g.Expect(w.status().Accelerators).To(BeEquivalentTo(16))
	pod := trainingpod.Blueprint{Job: w.o.Job, Attempt: w.status().Attempt, Tier: w.o.Config.Tiers[0], Claims: w.o.Claims}.NewPod(0)
	g.Expect(pod.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: "8"}))
}

func TestClaimsThatHoldAJob(t *testing.T) {
	const noClass = "request r of ResourceClaimTemplate eight asks for devices of DeviceClass tpu.example.com, which the " +
		"operator's " +
		"configuration does not list (deviceClasses). "
	const allOf = "request r of ResourceClaimTemplate eight asks for all devices of DeviceClass gpu.nvidia.com " +
		"(allocationMode: All). "
	for name, c := range map[string]struct {
		change          func(*jobstate.Observed)
		reason, message string
		stalled         string
	}{
		"missing": {
			func(o *jobstate.Observed) {
				claiming(o, "gpu.nvidia.com", 8)
				o.Claims.All[0].Missing = true
			}, v1beta1.ReasonResourceClaimNotFound, "Namespace team-a has no ResourceClaimTemplate eight, which " +
				"spec.template.spec.resourceClaims names. Create it; the job then continues by itself.", "absent",
		},
		"not listed": {
			func(o *jobstate.Observed) { claiming(o, "tpu.example.com", 8) }, v1beta1.ReasonDevicesNotCounted,
			"How many processes a worker runs is unknown: " + noClass + "Set spec.framework.nprocPerNode, or claim a number of devices " +
				"of a listed class.", "True/DevicesNotCounted",
		},
		"all": {
			func(o *jobstate.Observed) { claiming(o, "gpu.nvidia.com", 0) }, v1beta1.ReasonDevicesNotCounted,
			"How many processes a worker runs is unknown: " + allOf + "Set spec.framework.nprocPerNode, or claim a number of devices " +
				"of a listed class.", "True/DevicesNotCounted",
		},
		"under a limit": {
			func(o *jobstate.Observed) {
				claiming(o, "gpu.nvidia.com", 0)
				o.Profile, o.Job.Spec.Framework.NprocPerNode = capped(), ptr.To[int32](8)
			}, v1beta1.ReasonDevicesNotCounted, "Profile ads limits what jobs hold, and how many accelerators a worker claims is " +
				"unknown: " + allOf + "Claim a number of devices of a listed class, or ask an administrator to list the class.",
			"True/DevicesNotCounted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2)
			w.o.Job.Namespace = "team-a"
			c.change(&w.o)
			w.settle()
			g.Expect(w.status().Reason).To(Equal(c.reason))
			g.Expect(w.status().Message).To(Equal(c.message))
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal(c.stalled))
			g.Expect(w.changes).To(BeZero(), "nothing is created before")
			w.o.Profile = nil
			claiming(&w.o, "gpu.nvidia.com", 8)
			g.Expect(w.trains().status().Reason).To(Equal(v1beta1.ReasonTraining), "it goes on by itself")
		})
	}
}

func TestDevicesOfUnknownNumberHoldNoJobThatDoesNotDependOnIt(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	claiming(&w.o, "nic.example.com", 1)
	w.o.Job.Spec.Framework.NprocPerNode = ptr.To[int32](4)
	w.trains()
	w.o.Claims.All[0].Missing = true
	g.Expect(w.settle().indices()).To(Equal([]int32{0, 1}), "a template that goes away stops no worker")
}
