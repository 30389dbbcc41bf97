package config

import (
	"math/rand/v2"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

const gpu, number, cores, memory, slice = "nvidia.com/gpu", "volcano.sh/vgpu-number", "volcano.sh/vgpu-cores",
	"volcano.sh/vgpu-memory", "nvidia.com/gpu.shared"

// shared is a configuration of Volcano's vGPUs and older GPU sharing, and of time slices.
func shared() *Configuration {
	c := DefaultConfiguration()
	c.Sharing = Sharing{
		{Resource: cores, CountsAs: gpu, Whole: 100, Times: number}, {Resource: memory, CountsAs: gpu, Whole: 40960, Times: number},
		{Resource: "volcano.sh/gpu-memory", CountsAs: gpu, Whole: 40960}, {Resource: slice, CountsAs: gpu, Whole: 3},
	}
	return c
}

// asks is what a container asks for.
type asks map[corev1.ResourceName]int64

func (a asks) container() corev1.Container {
	list := corev1.ResourceList{}
	for name, n := range a {
		list[name] = *apiresource.NewQuantity(n, apiresource.DecimalSI)
	}
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list}}
}

func pod(containers ...asks) *corev1.Pod {
	p := &corev1.Pod{}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, c.container())
	}
	return p
}

func TestPartsOfAccelerators(t *testing.T) {
	const huge = 1 << 62
	for name, c := range map[string]struct {
		pod *corev1.Pod
		n   int64
	}{
		"nothing":                                {pod(asks{"cpu": 4}), 0},
		"whole devices":                          {pod(asks{gpu: 2}), 2000},
		"whole devices of two vendors":           {pod(asks{gpu: 2}, asks{"amd.com/gpu": 1}), 3000},
		"what is not listed":                     {pod(asks{"example.com/npu": 5}), 0},
		"half of each of two":                    {pod(asks{number: 2, cores: 50}), 1000},
		"memory of one":                          {pod(asks{number: 1, memory: 10240}), 250},
		"cores and memory of the same":           {pod(asks{number: 1, cores: 20, memory: 10240}), 250},
		"more memory than one is said to have":   {pod(asks{number: 1, memory: 81920}), 1000},
		"neither cores nor memory, so all":       {pod(asks{number: 2}), 2000},
		"no number, so of one":                   {pod(asks{cores: 30}), 300},
		"what has no number":                     {pod(asks{"volcano.sh/gpu-memory": 61440}), 1500},
		"time slices":                            {pod(asks{slice: 1}), 333},
		"all slices of a device":                 {pod(asks{slice: 3}), 1000},
		"slices in three containers":             {pod(asks{slice: 1}, asks{slice: 1}, asks{slice: 1}), 999},
		"parts and whole devices":                {pod(asks{number: 1, cores: 50}, asks{gpu: 1}), 1500},
		"numbers of several containers":          {pod(asks{number: 1, cores: 50}, asks{number: 2, cores: 30}), 1100},
		"so little that it rounds to nothing":    {pod(asks{number: 1, memory: 1}), 1},
		"more than can be counted":               {pod(asks{"volcano.sh/gpu-memory": huge}), mostThousandths},
		"more numbers than can be counted":       {pod(asks{number: huge}, asks{number: huge, cores: huge}), mostThousandths},
		"more whole devices than can be counted": {pod(asks{gpu: huge}), mostThousandths},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := shared()
			counted := cfg.Sharing.CountedRequests(c.pod)
			NewWithT(t).Expect(cfg.AcceleratorsAmong(counted)).To(Equal(c.n))
		})
	}
}

func TestPartsCountBesideWhatTheyAre(t *testing.T) {
	g := NewWithT(t)
	p := pod(asks{number: 2, cores: 50, "cpu": 4})
	before := p.DeepCopy()
	counted := shared().Sharing.CountedRequests(p)
	want := asks{number: 2, cores: 50, "cpu": 4, gpu: 1}.container().Resources.Requests
	g.Expect(counted).To(HaveLen(len(want)))
	for name, n := range want {
		g.Expect(QuantityThousandths(counted[name])).To(Equal(QuantityThousandths(n)), string(name))
	}
	g.Expect(p).To(Equal(before), "the pod is somebody else's")
}

func TestInitContainersAndSidecarsCountAsTheSchedulerCounts(t *testing.T) {
	g := NewWithT(t)
	cfg := shared()
	p := pod(asks{number: 1, cores: 50})
	p.Spec.InitContainers = []corev1.Container{asks{number: 1, cores: 80}.container()}
	g.Expect(cfg.AcceleratorsAmong(cfg.Sharing.CountedRequests(p))).To(Equal(int64(800)), "it comes before the others")
	first := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: p.Spec.InitContainers}}
	g.Expect(cfg.AcceleratorsAmong(cfg.Sharing.CountedRequests(first))).To(Equal(int64(800)), "nothing is added after it")
	p.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	g.Expect(cfg.AcceleratorsAmong(cfg.Sharing.CountedRequests(p))).To(Equal(int64(1300)), "it runs beside them")
}

// randomPod asks for something of each of some resources in some containers.
func randomPod(r *rand.Rand, of ...string) *corev1.Pod {
	p := &corev1.Pod{}
	for range 1 + r.IntN(3) {
		c := asks{}
		for _, name := range of {
			c[corev1.ResourceName(name)] = r.Int64N(9)
		}
		p.Spec.Containers = append(p.Spec.Containers, c.container())
	}
	if r.IntN(2) == 0 {
		p.Spec.InitContainers = p.Spec.Containers[:1]
	}
	return p
}

func TestWholeDevicesCountAsBefore(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		p := randomPod(r, gpu, "amd.com/gpu", "cpu", "memory", number, slice)
		asked := resource.PodRequests(p, resource.PodResourcesOptions{})
		n := int64(0)
		for name := range DefaultAccelerators() {
			quantity := asked[corev1.ResourceName(name)]
			n += 1000 * quantity.Value()
		}
		byDefault := DefaultConfiguration()
		g.Expect(byDefault.Sharing.CountedRequests(p)).To(Equal(asked))
		g.Expect(byDefault.AcceleratorsAmong(asked)).To(Equal(n))
		whole := randomPod(r, gpu, "amd.com/gpu", "cpu", "memory")
		g.Expect(shared().Sharing.CountedRequests(whole)).To(Equal(resource.PodRequests(whole, resource.PodResourcesOptions{})))
	}
}

// As many equal parts as make up a device are never more than it, and less by one thousandth each at most.
func TestPartsOfADeviceFitIntoIt(t *testing.T) {
	g := NewWithT(t)
	for whole := int32(1); whole <= 1000; whole++ {
		cfg := DefaultConfiguration()
		cfg.Sharing = Sharing{{Resource: slice, CountsAs: gpu, Whole: whole}}
		sum := int64(whole) * cfg.AcceleratorsAmong(cfg.Sharing.CountedRequests(pod(asks{slice: 1})))
		g.Expect(sum).To(And(BeNumerically("<=", 1000), BeNumerically(">", 1000-int64(whole))), strconv.Itoa(int(whole)))
	}
}

func TestPartsThatAreMoreThanCanBeCounted(t *testing.T) {
	for _, whole := range []int32{1, 249, 250, 251} { // 2⁶² × 1000 is 250 × 2⁶⁴
		cfg := DefaultConfiguration()
		cfg.Sharing = Sharing{{Resource: slice, CountsAs: gpu, Whole: whole}}
		n := cfg.AcceleratorsAmong(cfg.Sharing.CountedRequests(pod(asks{slice: 1 << 62})))
		NewWithT(t).Expect(n).To(Equal(int64(mostThousandths)), strconv.Itoa(int(whole)))
	}
}

// Parts are monotone: who asks for more of anything holds no less; and containers are counted one by one.
func TestPartsAddUp(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(3, 4))
	cfg := shared()
	count := func(all ...asks) int64 { return cfg.AcceleratorsAmong(cfg.Sharing.CountedRequests(pod(all...))) }
	random := func() asks {
		return asks{number: 1 + r.Int64N(8), cores: r.Int64N(101), memory: r.Int64N(50000), slice: r.Int64N(9), gpu: r.Int64N(3)}
	}
	for range 1000 {
		a, b := random(), random()
		g.Expect(count(a, b)).To(Equal(count(a) + count(b)))
		more := asks{}
		for name, n := range a {
			more[name] = n
			if n > 0 {
				more[name] += r.Int64N(5)
			}
		}
		g.Expect(count(more)).To(BeNumerically(">=", count(a)), "%v, %v", a, more)
	}
}

func TestAcceleratorsOfNodes(t *testing.T) {
	for name, c := range map[string]struct {
		has asks
		n   int64
	}{
		"whole devices":                {asks{gpu: 8, "amd.com/gpu": 2}, 10_000},
		"cores and memory of the same": {asks{number: 80, cores: 800, memory: 8 * 40960}, 8000},
		"numbers alone":                {asks{number: 80}, 0},
		"time slices and whole ones":   {asks{slice: 24, gpu: 1}, 9000},
	} {
		t.Run(name, func(t *testing.T) {
			got := shared().AcceleratorsIn(func(resource string) int64 { return c.has[corev1.ResourceName(resource)] })
			NewWithT(t).Expect(got).To(Equal(c.n))
		})
	}
}
