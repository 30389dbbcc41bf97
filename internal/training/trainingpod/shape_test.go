package trainingpod

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

func limits(pairs ...string) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return corev1.ResourceRequirements{Limits: list}
}

func TestMasterHasItsOwnResourcesAndSelector(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a", "disk": "hdd"}
	own := limits("cpu", "16", "nvidia.com/gpu", "8")
	b.Job.Spec.Master = &v1beta1.Master{Resources: &own, NodeSelector: map[string]string{"disk": "ssd"}}

	master, other := b.NewPod(0), b.NewPod(1)
	g.Expect(master.Spec.Containers[1].Resources).To(Equal(own), "in place of the template's, not added to them")
	g.Expect(master.Spec.NodeSelector).To(Equal(map[string]string{"zone": "a", "disk": "ssd"}))
	g.Expect(master.Spec.Containers[1].Env).To(ContainElement(corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: "8"}))
	g.Expect(other.Spec.Containers[1].Resources).To(Equal(b.Job.Spec.Template.Spec.Containers[1].Resources))
	g.Expect(other.Spec.NodeSelector).To(Equal(map[string]string{"zone": "a", "disk": "hdd"}))
	g.Expect(other.Spec.Containers[1].Env).To(ContainElement(corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: "1"}))

	b.Attempt.MinReplicas = 3
	asked := b.CoreGroup().MinResources
	gpus := asked["nvidia.com/gpu"]
	g.Expect(gpus.Value()).To(Equal(int64(8+2*1)), "worker 0's 8 and one for each of the two others")
	g.Expect(asked.Cpu().String()).To(Equal("17300m"), "16 + 2 × 0.5, and the overhead of each")
	g.Expect([]int64{GPUs(b.Job, 0), GPUs(b.Job, 1)}).To(Equal([]int64{8, 1}))
}

func TestSharesOfGPUsPassThroughAndAreCounted(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	shares := limits("volcano.sh/vgpu-number", "1", "volcano.sh/vgpu-memory", "3000", "nvidia.com/gpu.shared", "2")
	b.Job.Spec.Template.Spec.Containers[1].Resources = shares
	g.Expect(b.NewPod(0).Spec.Containers[1].Resources).To(Equal(shares))
	memory := b.CoreGroup().MinResources["volcano.sh/vgpu-memory"]
	g.Expect(memory.Value()).To(Equal(int64(6000)), "those of two workers")
	g.Expect(GPUs(b.Job, 0)).To(Equal(int64(3)))
}

// required are the terms of the node affinity that worker i's pod needs.
func required(b Blueprint, i int32) []corev1.NodeSelectorTerm {
	a := b.NewPod(i).Spec.Affinity
	if a == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func TestAcceleratorsModelsAreRequired(t *testing.T) {
	g := NewWithT(t)
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	b := blueprint()
	g.Expect(required(b, 0)).To(BeEmpty(), "any model will do")

	b.Job.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100", "H100"}, Mixing: v1beta1.MixingAllowed}
	g.Expect(required(b, 0)).To(Equal([]corev1.NodeSelectorTerm{term(in("nvidia.com/gpu.product", "A100", "H100"))}))
	g.Expect(required(b, 3)).To(Equal(required(b, 0)), "surplus too")
	b.Attempt.Model = "H100"
	g.Expect(required(b, 0)).To(Equal([]corev1.NodeSelectorTerm{term(in("nvidia.com/gpu.product", "H100"))}))

	zones := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("zone", "b")), {}}}
	b.Job.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: zones,
	}}
	b.Job.Spec.Accelerator.ResourceName = "amd.com/gpu"
	model := in("amd.com/gpu.product-name", "H100")
	g.Expect(required(b, 0)).To(Equal([]corev1.NodeSelectorTerm{
		term(in("zone", "a"), model), term(in("zone", "b"), model), {},
	}), "every alternative needs the model; one that matches nothing stays so")
	g.Expect(zones.NodeSelectorTerms[0].MatchExpressions).To(HaveLen(1), "the template is not touched")
}

func TestMasterWithoutGPUNeedsNoModel(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	own := limits("cpu", "4")
	b.Job.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100"}}
	b.Job.Spec.Master = &v1beta1.Master{Resources: &own}
	g.Expect(required(b, 0)).To(BeEmpty())
	g.Expect(required(b, 1)).To(HaveLen(1))
}

func TestHostNetworkAsksTheClustersDNS(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	g.Expect(b.NewPod(0).Spec.DNSPolicy).To(BeEmpty())
	b.Job.Spec.Template.Spec.HostNetwork = true
	g.Expect(b.NewPod(0).Spec.DNSPolicy).To(Equal(corev1.DNSClusterFirstWithHostNet))
	b.Job.Spec.Template.Spec.DNSPolicy = corev1.DNSNone
	g.Expect(b.NewPod(0).Spec.DNSPolicy).To(Equal(corev1.DNSNone), "the user's word stands")
}

// What Tideline does not know it leaves alone: volumes of every kind, sidecars, what pods say of themselves.
func TestTemplatePassesThrough(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	given := corev1.PodSpec{
		ServiceAccountName:           "trainer",
		AutomountServiceAccountToken: ptr.To(false),
		ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "registry"}},
		SecurityContext:              &corev1.PodSecurityContext{FSGroup: ptr.To[int64](1000)},
		RuntimeClassName:             ptr.To("nvidia"),
		Tolerations:                  []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
		NodeSelector:                 map[string]string{"zone": "a"},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: true},
			}},
			{Name: "bucket", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
				Driver: "s3.csi.example.com", VolumeAttributes: map[string]string{"bucket": "ads"},
			}}},
			{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("64Gi")),
			}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{},
			}}},
		},
		InitContainers: []corev1.Container{
			{Name: "mounter", Image: "goofys", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			{Name: "fetch", Image: "fetch"},
		},
		Containers: []corev1.Container{
			{Name: "trainer", Image: "t", VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: "/data"}, {Name: "bucket", MountPath: "/bucket"}, {Name: "shm", MountPath: "/dev/shm"},
			}, SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"IPC_LOCK"}}}},
			{Name: "logs", Image: "logs"},
		},
	}
	b.Job.Spec.Template.Spec = *given.DeepCopy()
	made := b.NewPod(1).Spec
	// What Tideline says beside it, which other tests look at.
	made.Hostname, made.Subdomain, made.RestartPolicy, made.ShareProcessNamespace = "", "", "", nil
	made.SchedulerName, made.PriorityClassName = "", ""
	made.Containers[0].Env, made.Containers[0].TerminationMessagePolicy = nil, ""
	g.Expect(made).To(Equal(given))
}

func TestWorkersKeepOffNodesThatRejectedThem(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	until := metav1.Now()
	b.Job.Status.AvoidedNodes = []v1beta1.AvoidedNode{{Name: "n1", Until: &until}, {Name: "n2"}, {Name: "n3", Until: &until}}
	off := func(node string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}
	}
	g.Expect(required(b, 1)).To(Equal([]corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{off("n1"), off("n3")}},
	}), "one requirement for each, as the API server wants it")
	g.Expect(podstate.AvoidedBy(&b.NewPod(1).Spec)).To(Equal([]string{"n1", "n3"}))
	g.Expect(podstate.AvoidedBy(&corev1.PodSpec{})).To(BeEmpty())

	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	b.Job.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{zone}}, {},
		}},
	}}
	g.Expect(required(b, 1)).To(Equal([]corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{zone},
		MatchFields:      []corev1.NodeSelectorRequirement{off("n1"), off("n3")},
	}, {}}), "beside what the user requires; an alternative that matches nothing stays so")
}

func TestOnlyWorker0DeclaresItsPortOnTheHostsNetwork(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	g.Expect(b.NewPod(0).Spec.Containers[1].Ports).To(BeEmpty(), "a pod has addresses of its own")
	b.Job.Spec.Template.Spec.HostNetwork, b.Job.Spec.Framework.Port = true, ptr.To[int32](25000)
	own := corev1.ContainerPort{ContainerPort: 25000, HostPort: 25000, Protocol: corev1.ProtocolTCP}
	g.Expect(b.NewPod(0).Spec.Containers[1].Ports).To(Equal([]corev1.ContainerPort{own}))
	g.Expect(b.NewPod(1).Spec.Containers[1].Ports).To(BeEmpty())
	b.Job.Spec.Template.Spec.Containers[1].Ports = []corev1.ContainerPort{{Name: "store", ContainerPort: 25000}}
	g.Expect(b.NewPod(0).Spec.Containers[1].Ports).To(HaveLen(1), "the user has declared it")
}
