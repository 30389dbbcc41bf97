package soak

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/weight"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	// megabyte is below etcd's limit of 1.5 MiB for a request.
	megabyte = 1_000_000
	// mostAnnotations is what annotations of an object may have together (k8s.io/apimachinery/pkg/api/validation).
	mostAnnotations = 256<<10 - 4096
)

// wave is a number of alike objects.
type wave struct {
	what   string
	n      int
	object func(i int) client.Object
}

// waves are 3,300 objects with 2.3 GB of JSON.
func waves() []wave {
	return []wave{
		{"ConfigMaps labelled as a job's, 1 MB of data", 600, configMap},
		{"trainings, 1 MB of environment", 400, func(i int) client.Object {
			return training(fmt.Sprintf("large-%d", i), values(16, megabyte/16)...)
		}},
		{"trainings, the largest that run", 400, func(i int) client.Object {
			return training(fmt.Sprintf("wide-%d", i), values(2, weight.MostOfTemplate/2-4096)...)
		}},
		{"trainings, 16,000 short variables", 200, terms},
		{"merges, 1 MB of environment", 200, func(i int) client.Object {
			return merge(fmt.Sprintf("large-%d", i), values(16, megabyte/16)...)
		}},
		{"merges, the largest that run", 200, func(i int) client.Object {
			return merge(fmt.Sprintf("wide-%d", i), values(2, weight.MostOfTemplate/2-4096)...)
		}},
		{"pods that wait, 0.25 MB of annotations, 0.7 MB of affinity", 600, pod},
		{"pods that wait, 5,000 containers", 60, crowd},
		{"PodGroups, 1 MB of tasks", 400, podGroup},
		{"PodGroups and ConfigMaps, 1 MB of labels and owners", 200, owned},
		{"profiles, the largest that their schema takes", 40, profile},
	}
}

func values(n, length int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat("x", length)
	}
	return all
}

func environment(values []string) []corev1.EnvVar {
	all := make([]corev1.EnvVar, len(values))
	for i, v := range values {
		all[i] = corev1.EnvVar{Name: fmt.Sprintf("v%d", i), Value: v}
	}
	return all
}

// sizeOf is the size of an object as JSON, in bytes.
func sizeOf(o client.Object) int {
	GinkgoHelper()
	content, err := json.Marshal(o)
	Expect(err).NotTo(HaveOccurred())
	return len(content)
}

func in(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: hostile, Name: name} }

func configMap(i int) client.Object {
	m := &corev1.ConfigMap{ObjectMeta: in(fmt.Sprintf("map-%d", i)), Data: map[string]string{"hosts": strings.Repeat("x", megabyte)}}
	m.Labels = map[string]string{v1beta1.LabelJob: "large-0"}
	return m
}

// training has two workers with these values in their environment, which ask for more GPUs than there are together.
func training(name string, values ...string) client.Object {
	job := testutil.Job(name).In(hostile).Range(2, 2).GPUs(8).Obj()
	job.Spec.Template.Spec.Containers[0].Env = environment(values)
	return job
}

// terms is a training with a thousand variables in each of 16 containers.
func terms(i int) client.Object {
	job := testutil.Job(fmt.Sprintf("terms-%d", i)).In(hostile).Range(2, 2).GPUs(8).Obj()
	spec := &job.Spec.Template.Spec
	spec.Containers[0].Env = environment(values(1000, 0))
	for n := range 15 {
		more := spec.Containers[0].DeepCopy()
		more.Name = fmt.Sprintf("more-%d", n)
		spec.Containers = append(spec.Containers, *more)
	}
	return job
}

func merge(name string, values ...string) client.Object {
	return testutil.Merge(name).In(hostile).Store(v1beta1.ModelStore{
		Type: v1beta1.StoreClaim, Claim: &v1beta1.ClaimStore{Name: "models", MountPath: "/models"},
	}).With(func(spec *v1beta1.MergeJobSpec) { spec.Template.Spec.Containers[0].Env = environment(values) }).Obj()
}

// pod waits for a node, in a group of its own that does not exist, with rules of 20,000 terms.
func pod(i int) client.Object {
	p := &corev1.Pod{ObjectMeta: in(fmt.Sprintf("pod-%d", i)), Spec: corev1.PodSpec{
		SchedulerName: "volcano", Containers: []corev1.Container{{Name: "c", Image: "registry.example/c:1"}},
	}}
	p.Annotations = map[string]string{
		"note": strings.Repeat("x", mostAnnotations/2), v1beta1.AnnotationOwner: strings.Repeat("y", mostAnnotations/2),
		schedulingv1beta1.KubeGroupNameAnnotationKey: "none",
	}
	terms := make([]string, 20_000)
	for n := range terms {
		terms[n] = fmt.Sprintf("value-%06d-of-a-rule-%d", n, i)
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpIn, Values: terms}},
		}}},
	}}
	return p
}

// crowd is a pod that waits too. A kubelet could not run it; KWOK would, and have the API server write thousands of states of
// containers for each change, which takes all of a small machine.
func crowd(i int) client.Object {
	p := &corev1.Pod{ObjectMeta: in(fmt.Sprintf("crowd-%d", i)), Spec: corev1.PodSpec{SchedulerName: "volcano"}}
	p.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: "none"}
	for n := range 5000 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", n), Image: "c:1"})
	}
	return p
}

func podGroup(i int) client.Object {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: in(fmt.Sprintf("group-%d", i))}
	g.Spec.MinMember, g.Spec.MinTaskMember = 1, map[string]int32{}
	for n := range 20_000 {
		g.Spec.MinTaskMember[fmt.Sprintf("task-%06d-of-a-group-that-is-not-ours-%d", n, i)] = 1
	}
	return g
}

// owned is a PodGroup or a ConfigMap with thousands of labels of ours and of owners.
func owned(i int) client.Object {
	var o client.Object = &schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{MinMember: 1}}
	if i%2 == 0 {
		o = &corev1.ConfigMap{}
	}
	meta := in(fmt.Sprintf("owned-%d", i))
	o.SetNamespace(meta.Namespace)
	o.SetName(meta.Name)
	labels := map[string]string{v1beta1.LabelJob: "a"}
	for n := range 6000 {
		labels[fmt.Sprintf("tideline.io/l%05d", n)] = strings.Repeat("x", 63)
	}
	o.SetLabels(labels)
	var owners []metav1.OwnerReference
	for n := range 4000 {
		owners = append(owners, metav1.OwnerReference{
			APIVersion: "v1", Kind: "Other", Name: strings.Repeat("x", 20), UID: types.UID(strconv.Itoa(n)),
		})
	}
	owners[0].Controller, owners[0].Name = ptr.To(true), strings.Repeat("x", megabyte/10)
	o.SetOwnerReferences(owners)
	return o
}

// profile is one of a team without namespaces, as large as its schema has it.
func profile(i int) client.Object {
	var selector metav1.LabelSelector
	for e := range 16 {
		terms := make([]string, 256)
		for n := range terms {
			terms[n] = fmt.Sprintf("v%d-%d-%d-%s", i, e, n, strings.Repeat("x", 45))
		}
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: fmt.Sprintf("k%d", e), Operator: metav1.LabelSelectorOpIn, Values: terms})
	}
	return testutil.Profile(fmt.Sprintf("hostile-%d", i)).With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
		spec.NamespaceSelector = selector
		for n := range 256 {
			spec.Members = append(spec.Members, v1beta1.ProfileMember{
				Kind: "User", Name: fmt.Sprintf("%d-%s", n, strings.Repeat("m", 200)),
			})
		}
	}).Obj()
}
