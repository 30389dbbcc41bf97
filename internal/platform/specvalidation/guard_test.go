package specvalidation

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
)

type job = v1beta1.ElasticTrainingJob

func good() *job {
	j := &job{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr"}}
	j.Spec = v1beta1.ElasticTrainingJobSpec{MinReplicas: 2, MaxReplicas: 8}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "t"}}
	j.Spec.Cleanup.PodPolicy = v1beta1.CleanPodPolicyRunning
	return j
}

func TestCheck(t *testing.T) {
	guard := New(crd.ElasticTrainingJob, v1beta1.GroupVersion.Version)
	for name, c := range map[string]struct {
		edit func(*job)
		says []string
	}{
		"good": {func(*job) {}, nil},
		"range": {func(j *job) { j.Spec.MinReplicas = 9 },
			[]string{"spec.minReplicas", "minReplicas (9)", "maxReplicas (8)"}},
		"zero": {func(j *job) { j.Spec.MinReplicas = 0 },
			[]string{"spec.minReplicas", "greater than or equal to 1"}},
		"cooldown": {func(j *job) { j.Spec.Elasticity.Growth.CooldownSeconds = ptr.To[int32](-1) },
			[]string{"spec.elasticity.growth.cooldownSeconds", "-1"}},
		"scheduler": {func(j *job) { j.Spec.Template.Spec.SchedulerName = "mine" },
			[]string{"spec.template.spec.schedulerName", "mine"}},
		"containers": {func(j *job) { j.Spec.Template.Spec.Containers = []corev1.Container{} },
			[]string{"spec.template.spec.containers"}},
		"unnamed": {func(j *job) { j.Spec.Template.Spec.Containers[0].Name = "" },
			[]string{"spec.template.spec.containers[0].name: Required value"}},
		"no image": {func(j *job) { j.Spec.Template.Spec.Containers[0].Image = "" },
			[]string{"spec.template.spec.containers: Invalid value: container trainer has no image", "set its image"}},
		"an init container without image": {
			func(j *job) { j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "fetch"}} },
			[]string{"spec.template.spec.initContainers: Invalid value: init container fetch has no image"}},
		"empty list": {func(j *job) { j.Spec.Framework.Torchrun = &v1beta1.Torchrun{RdzvConf: []v1beta1.RdzvConf{}} },
			[]string{"spec.framework.torchrun.rdzvConf", "at least 1 items"}},
		"key twice": {func(j *job) {
			j.Spec.Framework.Torchrun = &v1beta1.Torchrun{RdzvConf: []v1beta1.RdzvConf{{Key: "a", Value: "1"}, {Key: "a", Value: "2"}}}
		},
			[]string{"spec.framework.torchrun.rdzvConf[1]: Duplicate value"}},
		"reserved variable": {func(j *job) { j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RANK"}} },
			[]string{"spec.template.spec.containers", "env RANK of container trainer is reserved"}},
		"a variable that only torchrun reserves": {func(j *job) {
			j.Spec.Framework.Type = v1beta1.FrameworkCustom
			j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RANK"}}
		}, nil},
		"ssh keys for torchrun": {func(j *job) { j.Spec.Framework.SSH = v1beta1.SSHKeyPair },
			[]string{"spec.framework.ssh", "needs type Custom"}},
		"ssh keys for MPI": {func(j *job) {
			j.Spec.Framework.Type, j.Spec.Framework.SSH = v1beta1.FrameworkCustom, v1beta1.SSHKeyPair
		}, nil},
		"targets": {func(j *job) { j.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "all"}} },
			[]string{"spec.successPolicy.targets[0].indexes", "all", "should match"}},
		"a former name": {func(j *job) { j.Spec.FormerRunPolicy = &v1beta1.FormerObject{} },
			[]string{"spec.runPolicy: Invalid value: runPolicy has been split"}},
		"a former name with the zero value": {func(j *job) { j.Spec.Elasticity.FormerCooldownSeconds = ptr.To[int32](0) },
			[]string{"spec.elasticity.cooldownSeconds: Invalid value: 0: cooldownSeconds has moved"}},
		"name": {func(j *job) { j.Name = "a.b" },
			[]string{"metadata.name", "a.b", "DNS-1035"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := good()
			c.edit(object)
			words, err := guard.CheckSpec(t.Context(), object)
			g.Expect(err).NotTo(HaveOccurred())
			if c.says == nil {
				g.Expect(words).To(BeEmpty())
			}
			for _, s := range c.says {
				g.Expect(words).To(ContainSubstring(s))
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	guard := New(crd.ElasticTrainingJob, v1beta1.GroupVersion.Version)
	for b.Loop() {
		if words, err := guard.CheckSpec(b.Context(), good()); words != "" || err != nil {
			b.Fatal(words, err)
		}
	}
}

func TestVersionsAreFoundByName(t *testing.T) {
	g := NewWithT(t)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.Unmarshal(crd.ElasticTrainingJob, definition)).To(Succeed())
	later := *definition.Spec.Versions[0].DeepCopy()
	later.Name, later.Schema = "v2", &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"later"}},
	}
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{later, definition.Spec.Versions[0]}
	both, err := yaml.Marshal(definition)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(New(both, v1beta1.GroupVersion.Version).CheckSpec(t.Context(), good())).To(BeEmpty())
	g.Expect(New(both, "v2").CheckSpec(t.Context(), good())).To(ContainSubstring("later"))
	_, err = New(both, "v1").CheckSpec(t.Context(), good())
	g.Expect(err).To(MatchError("the CustomResourceDefinition elastictrainingjobs.tideline.io has no schema of version v1"))
}

func TestADefinitionIsCompiledOnce(t *testing.T) {
	g := NewWithT(t)
	first := New(crd.CostReport, v1beta1.GroupVersion.Version)
	g.Expect(New(crd.CostReport, v1beta1.GroupVersion.Version)).To(BeIdenticalTo(first))
	g.Expect(New(crd.MergeJob, v1beta1.GroupVersion.Version)).NotTo(BeIdenticalTo(first))
}
