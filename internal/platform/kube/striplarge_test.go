package kube

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// A template that is too large to be run is not kept, and the job says what it weighed, however often it is stripped.
func TestTemplatesThatAreTooLargeAreNotKept(t *testing.T) {
	for kind, c := range map[string]func() (client.Object, *corev1.PodTemplateSpec){
		"training": func() (client.Object, *corev1.PodTemplateSpec) {
			job := &v1beta1.ElasticTrainingJob{}
			return job, &job.Spec.Template
		},
		"merge": func() (client.Object, *corev1.PodTemplateSpec) {
			job := &v1beta1.MergeJob{}
			return job, &job.Spec.Template
		},
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			job, template := c()
			job.SetAnnotations(map[string]string{weight.OversizedAnnotation: "7", "note": "mine"})
			template.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "i", Args: []string{strings.Repeat("x", 120<<10)}}}
			g.Expect(StripJob(job)).To(BeIdenticalTo(job))
			g.Expect(template.Spec.Containers[0].Image).To(Equal("i"), "what can be run is kept")
			g.Expect(WeightOfDropped(job)).To(BeZero(), "whatever its user notes")

			template.Spec.Containers[0].Args[0] = strings.Repeat("x", 1<<20)
			for range 2 {
				g.Expect(StripJob(job)).To(BeIdenticalTo(job))
				g.Expect(WeightOfDropped(job)).To(BeNumerically("~", 1<<20, 8<<10))
				g.Expect(weight.Of(*template)).To(BeNumerically("<", 4<<10))
				g.Expect(template.Spec.Containers[0].Image).To(BeEmpty(), "no pod can be made of it")
				g.Expect(job.GetAnnotations()).To(HaveKeyWithValue("note", "mine"))
			}
		})
	}
}

func TestRolesAreDroppedWithTheirTemplate(t *testing.T) {
	g := NewWithT(t)
	job := &v1beta1.ElasticTrainingJob{}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "i", Args: []string{strings.Repeat("x",
		100<<10)}}}
	job.Spec.Roles = []v1beta1.JobRole{{Name: "ps", Args: []string{strings.Repeat("x", 20<<10)}}}
	g.Expect(StripJob(job)).To(BeIdenticalTo(job))
	g.Expect(job.Spec.Roles).To(HaveLen(1))
	job.Spec.Roles[0].Args[0] = strings.Repeat("x", 40<<10)
	g.Expect(StripJob(job)).To(BeIdenticalTo(job))
	g.Expect(WeightOfDropped(job)).To(BeNumerically("~", 140<<10, 8<<10))
	g.Expect(job.Spec.Roles).To(BeEmpty())
	g.Expect(weight.Of(job.Spec.Template)).To(BeNumerically("<", 4<<10))

	job = &v1beta1.ElasticTrainingJob{}
	job.Spec.Master = &v1beta1.Master{NodeSelector: map[string]string{"a": strings.Repeat("x", 1<<20)}}
	g.Expect(StripJob(job)).To(BeIdenticalTo(job))
	g.Expect(WeightOfDropped(job)).To(BeNumerically("~", 1<<20, 8<<10))
	g.Expect(job.Spec.Master).To(BeNil(), "and so is what worker 0 has of its own")
}

// Of pods with rules, owners, labels and containers without end as much is kept as others have, and what they ask for.
func TestPodsWithoutEndTakeNoMemory(t *testing.T) {
	g := NewWithT(t)
	var values []string
	requests := corev1.ResourceList{"nvidia.com/gpu": quantity.MustParse("1"), corev1.ResourceCPU: quantity.MustParse("2")}
	for i := range 5000 {
		values = append(values, fmt.Sprintf("value-%d", i))
		requests[corev1.ResourceName(fmt.Sprintf("zz.example/r%d", i))] = quantity.MustParse("1")
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{
		v1beta1.AnnotationOwner: strings.Repeat("x", 200_000), groupNameKey: "group",
	}}}
	for i := range 5000 {
		pod.OwnerReferences = append(pod.OwnerReferences,
			metav1.OwnerReference{Name: fmt.Sprintf("owner-%d", i), Controller: ptr.To(i == 7)})
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: strconv.Itoa(i)})
	}
	pod.Spec.Containers[3].Resources.Requests = requests
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}},
	}}
	o, err := StripPod("")(pod.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	stripped := o.(*corev1.Pod)
	g.Expect(weight.Of(*stripped)).To(BeNumerically("<", weight.MostOfPod))
	g.Expect(stripped.Annotations).To(Equal(map[string]string{groupNameKey: "group"}))
	g.Expect(stripped.OwnerReferences).To(ConsistOf(HaveField("Name", "owner-7"), HaveField("Name", weight.Oversized)),
		"who controls it, and that there are others")
	asks := resource.PodRequests(stripped, resource.PodResourcesOptions{})
	g.Expect(asks).To(And(HaveKey(corev1.ResourceName("nvidia.com/gpu")), HaveKey(corev1.ResourceCPU)))
	g.Expect(len(asks)).To(BeNumerically("<", 200))
	g.Expect(stripped.Spec.Volumes).To(ConsistOf(HaveField("Name", weight.Oversized)), "the model sees that it does not see all")
	g.Expect(stripped.Spec.Affinity).To(BeNil())

	spec := corev1.PodSpec{Affinity: &corev1.Affinity{}, Containers: make([]corev1.Container, 3)}
	usual, err := StripPod("")(&corev1.Pod{Spec: spec})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usual.(*corev1.Pod).Spec.Containers).To(HaveLen(3), "a usual pod is kept as it is")
	g.Expect(usual.(*corev1.Pod).Spec.Affinity).NotTo(BeNil())
}

func TestLabelsAndOwnersWithoutEndTakeNoMemory(t *testing.T) {
	g := NewWithT(t)
	meta := metav1.ObjectMeta{Labels: map[string]string{}, Finalizers: []string{strings.Repeat("f", 100_000)}}
	for i := range 5000 {
		meta.Labels[fmt.Sprintf("tideline.io/l%d", i)] = "x"
		meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{Name: fmt.Sprintf("owner-%d", i)})
	}
	meta.OwnerReferences[0].Controller, meta.OwnerReferences[0].Name = ptr.To(true), strings.Repeat("x", 100_000)
	strip := StripConfigMap(nil)
	for _, o := range []client.Object{&v1beta1.ElasticTrainingJob{ObjectMeta: meta}, &corev1.Namespace{ObjectMeta: meta}} {
		g.Expect(StripMetadata(o.DeepCopyObject())).To(WithTransform(weight.Of, BeNumerically("<", 20<<10)))
	}
	g.Expect(strip(&corev1.ConfigMap{ObjectMeta: meta})).To(WithTransform(weight.Of, BeNumerically("<", 20<<10)))
}
