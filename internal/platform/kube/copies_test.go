package kube

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// worker is a pod of a job as a decoder makes it: it has nothing in common with another.
func worker(index int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("ctr-worker-", index), OwnerReferences: owned("ctr", "job").OwnerReferences,
			Labels:      map[string]string{v1beta1.LabelJob: "ctr", v1beta1.LabelWorkerIndex: strconv.Itoa(index)},
			Annotations: map[string]string{groupNameKey: "ctr"},
		},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "trainer", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi")},
		}}}},
	}
	return pod
}

func asking(requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
}

func TestPodsOfAJobShareWhatTheyHaveAlike(t *testing.T) {
	g := NewWithT(t)
	strip := StripPod("example.com/user")
	cached := func(pod *corev1.Pod) *corev1.Pod {
		o, err := strip(pod)
		g.Expect(err).NotTo(HaveOccurred())
		stripped, _ := o.(*corev1.Pod)
		return stripped
	}
	a, b := cached(worker(0)), cached(worker(1))
	g.Expect(&a.Spec.Containers[0]).To(BeIdenticalTo(&b.Spec.Containers[0]))
	g.Expect(reflect.ValueOf(a.Annotations).Pointer()).To(Equal(reflect.ValueOf(b.Annotations).Pointer()))
	g.Expect(a.Labels).NotTo(Equal(b.Labels), "their indices differ")

	larger := worker(2)
	larger.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("9")
	g.Expect(&cached(larger).Spec.Containers[0]).NotTo(BeIdenticalTo(&a.Spec.Containers[0]))
}

// An object that shares is equal to the one that would not, whatever came before it.
func TestSharingChangesNothing(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 1))
	amounts := []resource.Quantity{
		resource.MustParse("1"), resource.MustParse("1000m"), resource.MustParse("1Ki"), resource.MustParse("1024"),
		*resource.NewQuantity(1, resource.BinarySI), resource.MustParse("0.1"),
		// What is printed alike, or as it was written.
		resource.MustParse("1000E"), resource.MustParse("10000E"), resource.MustParse("10"), resource.MustParse("1125m"),
		resource.MustParse("1.125"), resource.MustParse("5E3"), resource.MustParse("5e3"), resource.MustParse("5k"),
		resource.MustParse("-1"), resource.MustParse("0"), resource.MustParse("0Mi"), resource.MustParse("10000Ti"),
	}
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	resources := func() corev1.ResourceList {
		list := corev1.ResourceList{}
		for range random.IntN(3) {
			list[corev1.ResourceName(pick("cpu", "memory", "a/b", "a/bb"))] = amounts[random.IntN(len(amounts))]
		}
		return list
	}
	var alike Copies
	for range 5000 {
		pod := worker(random.IntN(3))
		maps.Copy(pod.Annotations, map[string]string{pick("x", "xy", groupNameKey): pick("", "y", "z")})
		pod.Spec.Containers = append(pod.Spec.Containers, asking(resources()))
		pod.Spec.InitContainers = []corev1.Container{asking(resources())}
		if random.IntN(2) == 0 {
			pod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		if random.IntN(2) == 0 {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: int32(1 + random.IntN(2))}}
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionStatus(pick("True", "False"))}}
		shares := pod.DeepCopy()
		alike.sharePod(shares)
		g.Expect(equality.Semantic.DeepEqual(shares, pod)).To(BeTrue(), "%v\n%v", shares, pod)
		for name, quantity := range pod.Spec.Containers[1].Resources.Requests {
			shared := shares.Spec.Containers[1].Resources.Requests[name]
			g.Expect(shared.String()).To(Equal(quantity.String()))
		}
	}
}

func TestTemplatesOfJobsShareResources(t *testing.T) {
	g := NewWithT(t)
	var alike Copies
	job := func() *v1beta1.ElasticTrainingJob {
		j := &v1beta1.ElasticTrainingJob{}
		j.Spec.Template.Spec.Containers = worker(0).Spec.Containers
		return j
	}
	a, b := job(), job()
	alike.ShareObject(a)
	alike.ShareObject(b)
	g.Expect(a).To(Equal(job()))
	requests := func(j *v1beta1.ElasticTrainingJob) uintptr {
		return reflect.ValueOf(j.Spec.Template.Spec.Containers[0].Resources.Requests).Pointer()
	}
	g.Expect(requests(a)).To(Equal(requests(b)))
}
