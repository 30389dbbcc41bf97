package trainingpod

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func blueprint() Blueprint {
	j := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	j.Spec.Framework = v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
		JoinTimeoutSeconds:     ptr.To[int32](600),
		LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
	}}
	j.Spec.Template.Labels = map[string]string{"team": "ads", v1beta1.LabelJob: "somebody else's"}
	j.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "sidecar", Image: "s"},
			{Name: "trainer", Image: "t", Env: []corev1.EnvVar{{Name: "MINE", Value: "1"}}, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")},
			}},
		},
		Overhead: corev1.ResourceList{"cpu": resource.MustParse("100m")},
	}
	tier, _ := config.DefaultTiers().FindTier("small-traffic")
	return Blueprint{
		Job: j, Tier: tier, Queue: "gpus", Accelerators: config.DefaultAccelerators(),
		Attempt: &v1beta1.AttemptStatus{
			Number: 1, StartTime: metav1.NewTime(time.Unix(1700000000, 0)), MinReplicas: 2, MaxReplicas: 4,
		},
	}
}

func TestCorePod(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	pod := b.NewPod(0)
	g.Expect(pod.Name).To(Equal("ctr-worker-0"))
	g.Expect(pod.Labels).To(Equal(map[string]string{
		"team": "ads", "tideline.io/task": "ctr", "tideline.io/job": "ctr", "tideline.io/worker-index": "0", "tideline.io/part": "core",
		"tideline.io/attempt": "1-1700000000",
	}))
	g.Expect(pod.Annotations).To(Equal(map[string]string{
		"scheduling.k8s.io/group-name": "ctr", "volcano.sh/task-spec": "master", "volcano.sh/task-priority": "65536",
		"volcano.sh/preemptable": "false",
	}))
	g.Expect(pod.Spec.SchedulerName).To(Equal("volcano"))
	g.Expect(pod.Spec.PriorityClassName).To(Equal("tideline-small-traffic"))
	g.Expect(pod.Spec.Hostname).To(Equal("ctr-worker-0"))
	g.Expect(pod.Spec.Subdomain).To(Equal("ctr-workers"))
	g.Expect(pod.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyOnFailure))
	g.Expect(*pod.Spec.ShareProcessNamespace).To(BeTrue())
	g.Expect(pod.Spec.Containers[0].Env).To(BeEmpty(), "only the training container gets the variables")
	g.Expect(pod.Spec.Containers[1].Env[0].Name).To(Equal("MINE"))
	g.Expect(len(pod.Spec.Containers[1].Env)).To(BeNumerically(">", 5))
	g.Expect(pod.OwnerReferences[0].UID).To(BeEquivalentTo("u-1"))
	g.Expect(*pod.OwnerReferences[0].Controller).To(BeTrue())
	g.Expect(b.Job.Spec.Template.Spec.Hostname).To(BeEmpty(), "the template is not touched")
}

func TestSurplusPod(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To[int32](86400)
	b.Tier.MaxMinSurplusRunSeconds = 120
	b.Job.Spec.Template.Spec.ShareProcessNamespace = ptr.To(false)
	pod := b.NewPod(3)
	g.Expect(pod.Annotations).To(Equal(map[string]string{
		"scheduling.k8s.io/group-name": "ctr-surplus", "volcano.sh/task-spec": "worker", "volcano.sh/task-priority": "65533",
		"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "120s",
	}))
	g.Expect(pod.Spec.PriorityClassName).To(Equal("tideline-small-traffic-surplus"))
	g.Expect(pod.Labels["tideline.io/part"]).To(Equal("surplus"))
	g.Expect(*pod.Spec.ShareProcessNamespace).To(BeFalse(), "the user's word stands")
	b.Tier.MaxMinSurplusRunSeconds = 0
	g.Expect(b.NewPod(3).Annotations).NotTo(HaveKey("volcano.sh/cooldown-time"), "a tier that protects no surplus")
}

func TestGroups(t *testing.T) {
	g := NewWithT(t)
	core, surplus := blueprint().CoreGroup(), blueprint().SurplusGroup()
	g.Expect(core.MinMember).To(Equal(int32(2)))
	g.Expect(core.PriorityClass).To(Equal("tideline-small-traffic"))
	g.Expect(core.Queue).To(Equal("gpus"))
	g.Expect(core.MinResources.Cpu().String()).To(Equal("1200m"), "requests and overhead of two workers")
	gpus := core.MinResources["nvidia.com/gpu"]
	g.Expect(gpus.String()).To(Equal("2"), "a limit stands in for a missing request")
	g.Expect(surplus.Name).To(Equal("ctr-surplus"))
	g.Expect(surplus.MinMember).To(BeZero())
	g.Expect(surplus.MinResources).To(BeNil())
}

func TestCoreRequestsCountsInitContainers(t *testing.T) {
	asks := func(memory string) []corev1.Container {
		return []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
		}}}
	}
	j := blueprint().Job
	j.Spec.Template.Spec = corev1.PodSpec{InitContainers: asks("8Gi"), Containers: asks("1Gi")}
	asked := CoreRequests(j, 3)
	NewWithT(t).Expect(asked.Memory().String()).To(Equal("24Gi"))
}

// The API server requests for a pod what its containers request, and its limits where they request nothing.
func TestRequestsOfAPodAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		whole     corev1.ResourceRequirements
		container corev1.ResourceRequirements
		memory    string
	}{
		"requests":                           {requests("memory", "4Gi"), requests("memory", "1Gi"), "4Gi"},
		"limits alone":                       {limits("memory", "4Gi"), corev1.ResourceRequirements{}, "4Gi"},
		"limits, and requests of containers": {limits("memory", "4Gi"), requests("memory", "1Gi"), "1Gi"},
		"limits, and limits of containers":   {limits("memory", "4Gi"), limits("memory", "1Gi"), "1Gi"},
	} {
		spec := &corev1.PodSpec{Resources: &c.whole, Containers: []corev1.Container{{Resources: c.container}}}
		NewWithT(t).Expect(PodRequests(spec)).To(Equal(requests("memory", c.memory).Requests), name)
	}
}

func TestPodsCarryTheOwner(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Job.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationOwner: "mallory", "note": "kept"}
	pod := b.NewPod(0)
	g.Expect(pod.Annotations).NotTo(HaveKey("tideline.io/owner"), "a template cannot name an owner")
	g.Expect(pod.Annotations).To(HaveKeyWithValue("note", "kept"))
	g.Expect(pod.Labels).NotTo(HaveKey("tideline.io/owner-hash"))

	b.Job.Spec.Owner = "alice@example.com"
	for _, i := range []int32{0, 3} {
		pod = b.NewPod(i)
		g.Expect(pod.Annotations).To(HaveKeyWithValue("tideline.io/owner", "alice@example.com"))
		// printf alice@example.com | sha256sum | cut -c1-16
		g.Expect(pod.Labels).To(HaveKeyWithValue("tideline.io/owner-hash", "ff8d9819fc0e12bf"))
	}
	g.Expect(b.Job.Spec.Template.Annotations).To(HaveKeyWithValue("tideline.io/owner", "mallory"), "the template is not touched")
}
