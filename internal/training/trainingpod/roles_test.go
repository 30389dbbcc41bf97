package trainingpod

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// cast is a job of two servers of parameters, a launcher that leads, and 3 to 5 workers.
func cast() Blueprint {
	b := plain()
	b.Attempt.MinReplicas, b.Attempt.MaxReplicas = 6, 8
	b.Job.Spec.MinReplicas, b.Job.Spec.MaxReplicas = 6, 8
	servers, launcher := limits("cpu", "4"), limits("cpu", "1")
	b.Job.Spec.Roles = []v1beta1.JobRole{
		{Name: "ps", Replicas: 2, Args: []string{"--serve"}, Master: v1beta1.Master{
			Resources: &servers, NodeSelector: map[string]string{"kind": "cpu"},
		}},
		{
			Name: "launcher", Replicas: 1, Lead: true, Image: "mpi", Command: []string{"mpirun"},
			Env:    []v1beta1.RoleVariable{{Name: "MINE", Value: "2"}, {Name: "ROLE", Value: "launcher"}},
			Master: v1beta1.Master{Resources: &launcher},
		},
	}
	return b
}

func TestWorkersAreWhatTheirRoleSays(t *testing.T) {
	g := NewWithT(t)
	b := cast()
	b.Job.Spec.Template.Spec.Containers[1].Command, b.Job.Spec.Template.Spec.Containers[1].Args = []string{"train"},
		[]string{"--all"}
	given := []corev1.EnvVar{{Name: "MINE", Value: "1"}, {Name: "OPTS", Value: "--mine=$(MINE)"}}
	b.Job.Spec.Template.Spec.Containers[1].Env = slices.Clone(given)
	launcher, server, worker, surplus := b.NewPod(0), b.NewPod(2), b.NewPod(3), b.NewPod(6)
	trainer := func(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[1] }

	g.Expect(trainer(launcher).Image).To(Equal("mpi"))
	g.Expect(trainer(launcher).Command).To(Equal([]string{"mpirun"}))
	g.Expect(trainer(launcher).Args).To(BeEmpty(), "they were the template's command's")
	g.Expect(trainer(launcher).Env[:3]).To(Equal([]corev1.EnvVar{
		{Name: "MINE", Value: "2"}, given[1], {Name: "ROLE", Value: "launcher"},
	}), "a variable stands before those that refer to it")
	g.Expect(launcher.Spec.Containers[0].Image).To(Equal("s"), "sidecars are the template's")
	g.Expect(trainer(server).Command).To(Equal([]string{"train"}))
	g.Expect(trainer(server).Args).To(Equal([]string{"--serve"}))
	g.Expect(server.Spec.NodeSelector).To(Equal(map[string]string{"kind": "cpu"}))
	g.Expect(trainer(worker).Args).To(Equal([]string{"--all"}))
	g.Expect(b.Job.Spec.Template.Spec.Containers[1].Env).To(Equal(given), "the template is not touched")

	for pod, want := range map[*corev1.Pod][]string{
		launcher: {"ctr-launcher-0", "launcher", "core", "launcher"}, server: {"ctr-ps-2", "ps", "core", "ps"},
		worker: {"ctr-worker-3", "", "core", "worker"}, surplus: {"ctr-worker-6", "", "surplus", "worker"},
	} {
		g.Expect([]string{
			pod.Name, pod.Labels["tideline.io/role"], pod.Labels["tideline.io/part"], pod.Annotations["volcano.sh/task-spec"],
		}).To(Equal(want))
		g.Expect(pod.Spec.Hostname).To(Equal(pod.Name))
	}
}

func TestGangsAreTheSumOfTheirRoles(t *testing.T) {
	g := NewWithT(t)
	b := cast()
	asked := b.CoreGroup().MinResources
	gpus := asked["nvidia.com/gpu"]
	g.Expect(gpus.Value()).To(Equal(int64(3)), "of the three workers of the template")
	g.Expect(asked.Cpu().String()).To(Equal("11100m"), "2 × 4 + 1 + 3 × 0.5, and the overhead of each of the six")
	for n, want := range []string{"0", "1100m", "5200m", "9300m", "9900m"} {
		first := CoreRequests(b.Job, int32(n))
		g.Expect(first.Cpu().Cmp(resource.MustParse(want))).To(BeZero(), "the first %d", n)
	}
	each := EachCounted(b.Job, nil, nil)
	g.Expect(each.Cpu().String()).To(Equal("600m"))
	g.Expect([]int64{GPUs(b.Job, 0), GPUs(b.Job, 1), GPUs(b.Job, 3), GPUs(b.Job, Ordinary)}).To(Equal([]int64{0, 0, 1, 1}))
	g.Expect(ApartMembers(b.Job)).To(Equal([]int32{0, 1, 2}))
	b.Job.Spec.Roles[1].Lead = false
	g.Expect(ApartMembers(b.Job)).To(Equal([]int32{1, 2, 3}), "worker 0 is like the others")
}

func TestSizingKnowsRoles(t *testing.T) {
	g := NewWithT(t)
	b := cast()
	var roles []sizing.Role
	for _, ask := range RoleAsks(b.Job, config.QoSBurstable) {
		roles = append(roles, ask.Role)
	}
	g.Expect(roles).To(Equal([]sizing.Role{sizing.Master, sizing.Worker, "ps"}))
	for role, want := range map[sizing.Role]int32{sizing.Master: 1, "ps": 2, sizing.Worker: 5, "launcher": 0} {
		g.Expect(CountRole(&b.Job.Spec, role, 8)).To(Equal(want), string(role))
	}
	b.Job.Spec.Roles = b.Job.Spec.Roles[:1]
	roles = nil
	for _, ask := range RoleAsks(b.Job, config.QoSBurstable) {
		roles = append(roles, ask.Role)
	}
	g.Expect(roles).To(Equal([]sizing.Role{sizing.Master, sizing.Worker, "ps"}))
	g.Expect(CountRole(&b.Job.Spec, sizing.Worker, 8)).To(Equal(int32(5)), "8 without worker 0 and two servers")
	b.Job.Spec.Roles = nil
	g.Expect(RoleAsks(b.Job, config.QoSBurstable)).To(HaveLen(2))
	b.Job.Spec.MaxReplicas = 1
	g.Expect(RoleAsks(b.Job, config.QoSBurstable)).To(HaveLen(1))
}

// Limits of a profile know one model of a job.
func TestWorker0HasNoModelOfItsOwn(t *testing.T) {
	const product = "nvidia.com/gpu.product"
	allOn := func(model string) func(*v1beta1.ElasticTrainingJobSpec) {
		return func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Template.Spec.NodeSelector = map[string]string{product: model}
		}
	}
	for name, c := range map[string]struct {
		change  func(*v1beta1.ElasticTrainingJobSpec)
		refused bool
	}{
		"its own model":           {func(*v1beta1.ElasticTrainingJobSpec) {}, true},
		"another than all others": {allOn("H100"), true},
		"that of all others":      {allOn("A100"), false},
		"the job's": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Accelerator = &v1beta1.Accelerator{Models: []string{"A100"}}
		}, false},
		"one of the job's": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Accelerator = &v1beta1.Accelerator{Models: []string{"A100", "H100"}}
		}, true},
		"without accelerators": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Master.Resources = &corev1.ResourceRequirements{}
		}, false},
		"accelerators of a sidecar": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Master.Resources = &corev1.ResourceRequirements{}
			s.Template.Spec.InitContainers = []corev1.Container{{Resources: limits("nvidia.com/gpu", "1")}}
		}, true},
		"other nodes": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Master.NodeSelector = map[string]string{"disk": "ssd"}
		}, false},
		"nothing": {func(s *v1beta1.ElasticTrainingJobSpec) { s.Master = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := &v1beta1.ElasticTrainingJobSpec{Master: &v1beta1.Master{NodeSelector: map[string]string{product: "A100"}}}
			spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Resources: limits("nvidia.com/gpu", "1")}}
			c.change(spec)
			found := CheckModels(spec, config.DefaultAccelerators())
			if !c.refused {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(ConsistOf(MatchError(HavePrefix(
				`spec.master.nodeSelector[nvidia.com/gpu.product]: Invalid value: "A100": names the model of the accelerators of some `))))
		})
	}
}

func TestRolesThatContradict(t *testing.T) {
	tooLarge := limits("nvidia.com/gpu", "1")
	tooLarge.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	for name, c := range map[string]struct {
		change func(*v1beta1.ElasticTrainingJobSpec)
		want   string
	}{
		"fine": {func(*v1beta1.ElasticTrainingJobSpec) {}, ""},
		"and a master": {func(s *v1beta1.ElasticTrainingJobSpec) { s.Master = &v1beta1.Master{} }, "spec.master: Forbidden: " +
			"roles and master"},
		"two that lead": {func(s *v1beta1.ElasticTrainingJobSpec) { s.Roles[0].Lead = true }, `spec.roles: Invalid value: "ps and ` +
			`launcher"`},
		"no worker left": {func(s *v1beta1.ElasticTrainingJobSpec) { s.MinReplicas = 3 },
			"spec.minReplicas: Invalid value: 3: must be more than the 3 workers of roles"},
		"too many": {func(s *v1beta1.ElasticTrainingJobSpec) { s.Roles[0].Replicas = 31 },
			"spec.roles: Invalid value: 32: is how many workers roles have together, and they may have 31"},
		"one leads torchrun": {func(s *v1beta1.ElasticTrainingJobSpec) { s.Framework.Type = "" },
			"spec.roles[1].lead: Invalid value: true: framework.type Torchrun"},
		"devices without a limit": {func(s *v1beta1.ElasticTrainingJobSpec) { s.Roles[0].Resources = &tooLarge },
			`spec.roles[0].resources.requests[nvidia.com/gpu]: Invalid value: "2": must be its limit too`},
		"a model of its own": {func(s *v1beta1.ElasticTrainingJobSpec) {
			own := limits("nvidia.com/gpu", "1")
			s.Roles[0].Resources, s.Roles[0].NodeSelector = &own, map[string]string{"nvidia.com/gpu.product": "T4"}
		}, `spec.roles[0].nodeSelector[nvidia.com/gpu.product]: Invalid value: "T4": names the model`},
		"a model of its own for a sidecar": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Template.Spec.Containers = append(s.Template.Spec.Containers, corev1.Container{
				Name: "sidecar", Resources: limits("nvidia.com/gpu", "1"),
			})
			s.Roles[0].NodeSelector = map[string]string{"nvidia.com/gpu.product": "T4"}
		}, `spec.roles[0].nodeSelector[nvidia.com/gpu.product]: Invalid value: "T4": names the model`},
		"no accelerators of a model": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Roles[0].NodeSelector = map[string]string{"nvidia.com/gpu.product": "T4"}
		}, ""},
		"unknown to TensorFlow": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Framework.Type, s.MaxReplicas = v1beta1.FrameworkTensorFlow, 6
		}, `spec.roles[1].name: Unsupported value: "launcher": supported values: "chief", "master", "ps", "evaluator"`},
		"TensorFlow that stretches": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Framework.Type, s.Roles = v1beta1.FrameworkTensorFlow, nil
		}, "spec.maxReplicas: Invalid value: 8: must equal minReplicas (6)"},
		"TensorFlow of a thousand": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Framework.Type, s.Roles, s.MinReplicas, s.MaxReplicas = v1beta1.FrameworkTensorFlow, nil, 1000, 1000
		}, "spec.maxReplicas: Invalid value: 1000: must be at most 512"},
		"TensorFlow on the host": {func(s *v1beta1.ElasticTrainingJobSpec) {
			s.Framework.Type, s.Roles, s.MaxReplicas, s.Template.Spec.HostNetwork = v1beta1.FrameworkTensorFlow, nil, 6, true
		}, "spec.template.spec.hostNetwork: Invalid value: true"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := cast().Job.Spec
			c.change(&spec)
			found := append(CheckRoles(&spec), CheckModels(&spec, config.DefaultAccelerators())...)
			if c.want == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Error()).To(HavePrefix(c.want))
		})
	}
}

func TestHelpersOfTorchrunKnowNothingOfIt(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Attempt.MinReplicas = 3
	b.Job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
	for _, v := range b.NewPod(1).Spec.Containers[1].Env {
		g.Expect(v.Name).NotTo(HavePrefix("PET_"))
	}
	g.Expect(names(b.NewPod(2).Spec.Containers[1].Env)).To(ContainElement("PET_NNODES"))
}
