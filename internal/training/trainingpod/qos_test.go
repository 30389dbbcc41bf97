package trainingpod

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func requests(pairs ...string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: limits(pairs...).Limits}
}

func both(requested, limited corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requested.Requests, Limits: limited.Limits}
}

// One table for what is completed and what is refused: a container is one or the other, or stays as it is.
func TestQoS(t *testing.T) {
	const (
		at       = `spec.template.spec.containers[0].resources.`
		missing  = `: Required value: tier gold (Guaranteed) needs cpu and memory requests on every container, and "c" has `
		noCPU    = at + `requests[cpu]` + missing + `none for cpu: add it, or choose another tier`
		noMemory = at + `requests[memory]` + missing + `none for memory: add it, or choose another tier`
		neither  = at + `requests` + missing + `neither: add them, or choose another tier`
	)
	cpuAndMemory := func(cpu, memory string) []string { return []string{"cpu", cpu, "memory", memory} }
	for name, c := range map[string]struct {
		qos     config.QoS
		given   corev1.ResourceRequirements
		limits  corev1.ResourceRequirements // of the pod, where they differ from those given
		refused []string
	}{
		"Burstable leaves requests alone": {qos: config.QoSBurstable, given: requests(cpuAndMemory("1", "1Gi")...)},
		"Burstable leaves nothing alone":  {qos: config.QoSBurstable},
		"Burstable lets limits differ": {
			qos: config.QoSBurstable, given: both(requests("memory", "1Gi"), limits("memory", "2Gi")),
		},
		"a tier that says nothing is the same": {given: requests(cpuAndMemory("1", "1Gi")...)},
		"MemoryGuaranteed limits memory alone": {
			qos: config.QoSMemoryGuaranteed, given: requests(cpuAndMemory("1", "1Gi")...), limits: limits("memory", "1Gi"),
		},
		"MemoryGuaranteed keeps a limit of CPU": {
			qos: config.QoSMemoryGuaranteed, given: both(requests("cpu", "1", "memory", "1Gi"), limits("cpu", "2")),
			limits: limits("cpu", "2", "memory", "1Gi"),
		},
		"MemoryGuaranteed keeps a limit of memory": {qos: config.QoSMemoryGuaranteed, given: limits("memory", "1Gi")},
		"MemoryGuaranteed without memory":          {qos: config.QoSMemoryGuaranteed, given: limits("nvidia.com/gpu", "1")},
		"MemoryGuaranteed with a request of none":  {qos: config.QoSMemoryGuaranteed, given: requests("memory", "0")},
		"MemoryGuaranteed that contradicts": {
			qos: config.QoSMemoryGuaranteed, given: both(requests("memory", "1Gi"), limits("memory", "2Gi")),
			refused: []string{at + `limits[memory]: Invalid value: "2Gi": must equal the request (1Gi), because tier gold is ` +
				`MemoryGuaranteed: remove one of the two, or choose another tier`},
		},
		"Guaranteed limits both": {
			qos: config.QoSGuaranteed, given: requests(cpuAndMemory("1", "1Gi")...), limits: limits(cpuAndMemory("1", "1Gi")...),
		},
		"Guaranteed keeps limits": {qos: config.QoSGuaranteed, given: limits(cpuAndMemory("1", "1Gi")...)},
		"Guaranteed, written in other ways": {
			qos: config.QoSGuaranteed, given: both(requests(cpuAndMemory("1", "1Gi")...), limits(cpuAndMemory("1000m", "1024Mi")...)),
		},
		"Guaranteed, one limited and one requested": {
			qos: config.QoSGuaranteed, given: both(requests("cpu", "1"), limits("memory", "1Gi", "nvidia.com/gpu", "1")),
			limits: limits("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "1"),
		},
		"Guaranteed with GPUs alone": {
			qos: config.QoSGuaranteed, given: limits("nvidia.com/gpu", "1"), refused: []string{neither},
		},
		"Guaranteed without memory": {
			qos: config.QoSGuaranteed, given: requests("cpu", "1"), limits: limits("cpu", "1"), refused: []string{noMemory},
		},
		"Guaranteed with none of both": {
			qos: config.QoSGuaranteed, given: both(requests(cpuAndMemory("0", "1Gi")...), limits(cpuAndMemory("0", "1Gi")...)),
			refused: []string{noCPU},
		},
		"Guaranteed that contradicts": {
			qos: config.QoSGuaranteed, given: both(requests(cpuAndMemory("500m", "1Gi")...), limits("cpu", "2")),
			limits: limits("cpu", "2", "memory", "1Gi"),
			refused: []string{at + `limits[cpu]: Invalid value: "2": must equal the request (500m), because tier gold is Guaranteed: ` +
				`remove one of the two, or choose another tier`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: c.given}}}
			merge := &v1beta1.MergeJobSpec{Template: corev1.PodTemplateSpec{Spec: *spec}}
			var said []string
			for _, err := range CheckMergeQoS(merge, config.Tier{Name: "gold", QoS: c.qos}) {
				said = append(said, err.Error())
			}
			g.Expect(said).To(Equal(c.refused))
			made := spec.DeepCopy()
			ApplyQoS(made, c.qos)
			want := spec.DeepCopy()
			if c.limits.Limits != nil {
				want.Containers[0].Resources.Limits = c.limits.Limits
			}
			g.Expect(made).To(Equal(want))
			g.Expect(PodRequests(made)).To(Equal(PodRequests(spec)), "a gang asks for as much as before")
		})
	}
}

// Kubernetes looks at all of these for the QoS class of a pod.
func TestQoSOfAllThatHasResources(t *testing.T) {
	g := NewWithT(t)
	asks := requests("cpu", "1", "memory", "1Gi")
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "fetch", Resources: *asks.DeepCopy()}, {Name: "mounter"}},
		Containers: []corev1.Container{
			{Name: "trainer", Resources: *asks.DeepCopy()}, {Name: "logs", Resources: requests("cpu", "1")},
		},
	}
	gold := config.Tier{Name: "gold", QoS: config.QoSGuaranteed}
	job := &v1beta1.ElasticTrainingJobSpec{Master: &v1beta1.Master{}}
	job.Template.Spec = *spec
	g.Expect(CheckJobQoS(job, gold)).To(HaveLen(2))
	job.Master.Resources = asks.DeepCopy()
	g.Expect(CheckJobQoS(job, gold)).To(HaveLen(2), "those of worker 0 are as they should be")
	job.Master.Resources.Limits = limits("cpu", "2").Limits
	found := CheckJobQoS(job, gold)
	paths := make([]string, len(found))
	for i := range found {
		paths[i] = found[i].Field
	}
	g.Expect(paths).To(HaveExactElements(
		"spec.template.spec.initContainers[1].resources.requests",
		"spec.template.spec.containers[1].resources.requests[memory]", "spec.master.resources.limits[cpu]",
	))
	g.Expect(DescribeErrors(found)).To(And(HavePrefix(found[0].Error()), HaveSuffix(" (and 2 more like it)")))
	g.Expect(DescribeErrors(found[2:])).To(Equal(found[2].Error()))

	ApplyQoS(spec, gold.QoS)
	want := asks.Requests
	g.Expect(spec.InitContainers[0].Resources.Limits).To(Equal(want))
	g.Expect(spec.Containers[0].Resources.Limits).To(Equal(want))
	g.Expect(spec.InitContainers[1].Resources).To(BeZero(), "no amount is guessed")
	g.Expect(spec.Resources).To(BeNil())
}

// Where the pod as a whole has resources, Kubernetes looks at nothing else for its QoS class.
func TestQoSOfAPodAsAWhole(t *testing.T) {
	const at = "spec.template.spec.resources."
	asks := func(cpu, memory string) corev1.ResourceRequirements { return requests("cpu", cpu, "memory", memory) }
	all := limits("cpu", "2", "memory", "4Gi")
	for name, c := range map[string]struct {
		qos       config.QoS
		whole     corev1.ResourceRequirements
		container corev1.ResourceRequirements
		limits    corev1.ResourceList // of the pod as a whole
		refused   []string            // fields
	}{
		"containers may ask for nothing": {qos: config.QoSGuaranteed, whole: asks("2", "4Gi"), limits: all.Limits},
		"containers may differ": {
			config.QoSGuaranteed, all, both(asks("1", "1Gi"), limits("memory", "3Gi")), all.Limits,
			[]string{at + "limits[cpu]", at + "limits[memory]"},
		},
		"containers are not limited":      {config.QoSGuaranteed, asks("2", "4Gi"), asks("1", "1Gi"), all.Limits, nil},
		"what containers ask for counts":  {config.QoSGuaranteed, requests("cpu", "2"), requests("memory", "4Gi"), all.Limits, nil},
		"nothing is written of the whole": {qos: config.QoSGuaranteed, container: asks("2", "4Gi"), limits: all.Limits},
		"memory alone": {
			config.QoSMemoryGuaranteed, asks("2", "4Gi"), asks("1", "1Gi"), limits("memory", "4Gi").Limits, nil,
		},
		"without memory": {
			qos: config.QoSGuaranteed, whole: requests("cpu", "2"), limits: limits("cpu", "2").Limits,
			refused: []string{at + "requests[memory]"},
		},
		"limits that differ": {
			qos: config.QoSMemoryGuaranteed, whole: both(requests("memory", "1Gi"), limits("memory", "2Gi")),
			limits: limits("memory", "2Gi").Limits, refused: []string{at + "limits[memory]"},
		},
		"Burstable": {qos: config.QoSBurstable, whole: asks("2", "4Gi"), container: asks("1", "1Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: c.container}}, Resources: &c.whole}
			job := &v1beta1.ElasticTrainingJobSpec{Master: &v1beta1.Master{
				Resources: ptr.To(both(asks("1", "1Gi"), limits("cpu", "7"))),
			}}
			job.Template.Spec = *spec.DeepCopy()
			var fields []string
			for _, err := range CheckJobQoS(job, config.Tier{Name: "gold", QoS: c.qos}) {
				fields = append(fields, err.Field)
			}
			g.Expect(fields).To(Equal(c.refused))
			made := spec.DeepCopy()
			ApplyQoS(made, c.qos)
			g.Expect(made.Resources.Limits).To(Equal(c.limits))
			g.Expect(made.Containers).To(Equal(spec.Containers), "containers stay as they are")
			g.Expect(PodRequests(made)).To(Equal(PodRequests(spec)), "a gang asks for as much as before")
		})
	}
	spec := &corev1.PodSpec{Resources: ptr.To(requests("cpu", "1"))}
	NewWithT(t).Expect(checkTemplate(spec, config.Tier{Name: "gold", QoS: config.QoSGuaranteed}).ToAggregate()).To(MatchError(
		ContainSubstring("cpu and memory requests on every container, and the pod as a whole has none for memory")))
}

func TestPodsAreHeldToTheirTier(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	trainer := &b.Job.Spec.Template.Spec.Containers[1]
	trainer.Resources = requests("cpu", "1", "memory", "1Gi")
	own := requests("cpu", "4", "memory", "8Gi")
	b.Job.Spec.Master = &v1beta1.Master{Resources: &own}
	asked := b.CoreGroup().MinResources
	for qos, want := range map[config.QoS][]corev1.ResourceList{
		config.QoSBurstable:        {nil, nil},
		config.QoSMemoryGuaranteed: {limits("memory", "8Gi").Limits, limits("memory", "1Gi").Limits},
		config.QoSGuaranteed:       {own.Requests, trainer.Resources.Requests},
	} {
		b.Tier.QoS = qos
		for i, limited := range []corev1.ResourceList{want[0], want[1], want[1], want[1]} {
			g.Expect(b.NewPod(int32(i)).Spec.Containers[1].Resources.Limits).To(Equal(limited), "%s: worker %d", qos, i)
		}
		g.Expect(b.CoreGroup().MinResources).To(Equal(asked), "%s: a gang that is there need not be changed", qos)
	}
	g.Expect(trainer.Resources.Limits).To(BeNil(), "the template is not touched")
	g.Expect(own.Limits).To(BeNil(), "and neither is the master's part")
}
