package sharing

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	vgpus  = corev1.ResourceName("volcano.sh/vgpu-number")
	memory = corev1.ResourceName("volcano.sh/vgpu-memory")
	cores  = corev1.ResourceName("volcano.sh/vgpu-cores")

	// devicesOn is what the device plugin writes of a node's devices, and placedOn what the scheduler writes of a pod's.
	devicesOn = "volcano.sh/node-vgpu-register"
	placedOn  = "volcano.sh/vgpu-ids-new"
)

// half asks for half of a device of 16 GiB.
var half = asks("8192", "50")

// asks makes a worker ask for some MiB and some hundredths of the cores of one device.
func asks(mebibytes, percent string) func(*corev1.PodTemplateSpec) {
	limits := corev1.ResourceList{
		vgpus: resource.MustParse("1"), memory: resource.MustParse(mebibytes), cores: resource.MustParse(percent),
	}
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits.DeepCopy()}
		t.Annotations = map[string]string{"volcano.sh/vgpu-mode": "hami-core"}
	}
}

// addSharedNode adds a node with some devices of 16 GiB that up to ten pods share each.
func addSharedNode(s *testutil.Scenario, devices int64) {
	GinkgoHelper()
	node := testutil.NewNode(s.Namespace+"-shared", s.Namespace, 0)
	delete(node.Status.Allocatable, testutil.GPUResource)
	for i := range devices {
		node.Annotations[devicesOn] += fmt.Sprintf("GPU-%d,10,16384,NVIDIA-A100,true,hami-core:", i)
	}
	has := func(n int64) resource.Quantity { return *resource.NewQuantity(devices*n, resource.DecimalSI) }
	node.Status.Allocatable[vgpus], node.Status.Allocatable[memory], node.Status.Allocatable[cores] = has(10), has(16384), has(100)
	node.Status.Capacity = node.Status.Allocatable
	Expect(s.World.AddNode(s.Context(), node)).To(Succeed(), "add a node that shares its devices")
	DeferCleanup(func(ctx SpecContext) { Expect(s.Client.Delete(ctx, node)).To(Succeed(), "remove it") })
}

// says checks what a waiting job says of room. Words follow within a minute.
func says(s *testutil.Scenario, job, room string) {
	GinkgoHelper()
	Eventually(s.Fetch(job)).WithTimeout(90*time.Second).Should(HaveField("Status.Message", ContainSubstring(room)),
		"job %s says what it lacks", job)
}

var _ = Describe("A shared GPU", func() {
	It("takes two workers that each ask for half of it, and no third, beside whole GPUs", func() {
		s := shared.World.NewScenario(GinkgoT(), "halves", 1)
		addSharedNode(s, 1)
		s.Submit(s.Job("a").Range(2, 2).Template(half))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "both train")
		for i := range 2 {
			Expect(s.Worker("a", i).Annotations[placedOn]).To(HavePrefix("GPU-0,NVIDIA,8192,50"), "worker %d has half of the device", i)
		}
		s.Submit(s.Job("b").Range(1, 1).Template(half), s.Job("whole").Range(1, 1))
		Eventually(s.Fetch("whole")).Should(testutil.Train(1), "a whole GPU is free beside it")
		Eventually(s.Fetch("b")).Should(testutil.Wait(v1beta1.ReasonUnschedulable), "no half is left")
		says(s, "b", "Free for it: 0 volcano.sh/vgpu-cores, 0 volcano.sh/vgpu-memory, "+
			"8 volcano.sh/vgpu-number; the largest gang of such workers that fits now: 0. "+
			"It is short of 50 volcano.sh/vgpu-cores, 8192 volcano.sh/vgpu-memory.")
		Consistently(s.Workers("b", testutil.Bound)).Should(BeEmpty())
		s.DeleteJob("a")
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "it trains when a half is free")
	})

	// A gang that may evict is one that Volcano admitted: the totals of a node have room for it, no device has. Then it looks at
	// nodes without shared GPUs as well (docs/decisions/0071-shared-gpus.md).
	It("leaves the scheduler alive when it waits for a device beside nodes of whole GPUs", func() {
		s := shared.World.NewScenario(GinkgoT(), "alive", 1)
		addSharedNode(s, 2)
		s.Submit(s.Job("a").Range(3, 3).Template(asks("6554", "40")))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "20 of one device are free, 60 of the other")
		s.Submit(s.Job("b").Range(1, 1).Template(asks("11468", "70")))
		Eventually(s.Fetch("b")).Should(testutil.Wait(v1beta1.ReasonUnschedulable), "70 are on no device")
		s.Submit(s.Job("whole").Range(1, 1))
		Eventually(s.Fetch("whole")).Should(testutil.Train(1), "others are placed meanwhile")
		s.DeleteJob("a")
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "it trains when a device is free")
	})

	It("is not pieced together from the rests of two", func() {
		s := shared.World.NewScenario(GinkgoT(), "rests")
		addSharedNode(s, 2)
		s.Submit(s.Job("a").Range(3, 3).Template(half))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "one device is full, and half of the other")
		s.Submit(s.Job("b").Range(1, 1).Template(asks("12288", "50")))
		Eventually(s.Fetch("b")).Should(testutil.Wait(v1beta1.ReasonUnschedulable), "12 GiB are on no device")
		says(s, "b", "Free for it: 50 volcano.sh/vgpu-cores, 8192 volcano.sh/vgpu-memory, "+
			"17 volcano.sh/vgpu-number; the largest gang of such workers that fits now: 0. "+
			"It is short of 4096 volcano.sh/vgpu-memory.")
		Consistently(s.Workers("b", testutil.Bound)).Should(BeEmpty())
	})
})
