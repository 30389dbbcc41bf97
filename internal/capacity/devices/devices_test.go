package devices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// has is what so many devices have, and what is free of them: each of 10 slots and 16384 MiB, less what is taken of each.
func has(taken ...[]Wish) (all, free []int64) {
	for _, parts := range taken {
		all = append(all, 10, 16384, 100)
		room := []int64{10, 16384, 100}
		for _, p := range parts {
			room[0], room[1], room[2] = room[0]-1, room[1]-p.Memory, room[2]-p.Cores
		}
		free = append(free, room...)
	}
	return all, free
}

func TestPartsFitDeviceByDevice(t *testing.T) {
	half, quarter := Wish{1, 8192, 50}, Wish{1, 4096, 25}
	none := []Wish(nil)
	for name, c := range map[string]struct {
		ask   Wishes
		taken [][]Wish
		want  int32
	}{
		"two halves of one":                           {Wishes{half}, [][]Wish{none}, 2},
		"no half is pieced together":                  {Wishes{{1, 12288, 50}}, [][]Wish{{half}, {half}}, 0},
		"by memory":                                   {Wishes{{1, 6000, 0}}, [][]Wish{none, {half}}, 3},
		"by cores":                                    {Wishes{{1, 1, 30}}, [][]Wish{none, {half}}, 4},
		"by slots":                                    {Wishes{{1, 1, 0}}, [][]Wish{none, {half}}, 19},
		"without a number for memory all of it":       {Wishes{{1, 0, 10}}, [][]Wish{none, {quarter}, none}, 2},
		"a whole one only where nobody is":            {Wishes{{1, 1, 100}}, [][]Wish{none, {{1, 1, 0}}, none}, 2},
		"none without cores beside who has them all":  {Wishes{{1, 1, 0}}, [][]Wish{{{1, 1, 100}}}, 0},
		"more cores than there are":                   {Wishes{{1, 1, 101}}, [][]Wish{none}, 0},
		"several, each on another":                    {Wishes{{2, 8192, 50}}, [][]Wish{none, {half}, none}, 2},
		"more than there are":                         {Wishes{{3, 1, 1}}, [][]Wish{none, none}, 0},
		"two containers may share one":                {Wishes{half, half}, [][]Wish{none}, 1},
		"two containers with the rests of two":        {Wishes{half, half}, [][]Wish{{half}, {half}}, 1},
		"two containers of which one finds no device": {Wishes{quarter, {1, 0, 0}}, [][]Wish{none}, 0},
		"no devices":                                  {Wishes{quarter}, nil, 0},
	} {
		all, free := has(c.taken...)
		NewWithT(t).Expect(c.ask.CountFitting(all, free, 100)).To(Equal(c.want), name)
		NewWithT(t).Expect(c.ask.CountFitting(all, free, 1)).To(Equal(min(c.want, 1)), "%s, one at most", name)
	}
}

// The fullest device is taken first: so a part leaves whole ones for those who ask for whole ones.
func TestTheFullestDeviceIsTakenFirst(t *testing.T) {
	g := NewWithT(t)
	all, free := has(nil, []Wish{{1, 4096, 25}}, nil)
	g.Expect(Wishes{{1, 4096, 25}}.TakeDevices(all, free, 2)).To(BeEquivalentTo(2))
	g.Expect(free).To(Equal([]int64{10, 16384, 100, 7, 4096, 25, 10, 16384, 100}))
	before := slices.Clone(free)
	g.Expect(Wishes{{1, 1024, 0}, {1, 0, 100}, {2, 0, 0}}.TakeDevices(all, free, 1)).To(BeZero(), "the last container finds none")
	g.Expect(free).To(Equal(before), "and the first keeps nothing")
}

// Of parts of one device each, the number that fits does not depend on the order in which devices are taken.
func TestAnyOrderOfDevicesFitsAsMany(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		taken := make([][]Wish, 1+random.IntN(4))
		for i := range taken {
			for range random.IntN(3) {
				taken[i] = append(taken[i], Wish{1, random.Int64N(6000), random.Int64N(40)})
			}
		}
		ask := Wishes{{1, random.Int64N(3) * 3000, random.Int64N(5) * 25}}
		all, free := has(taken...)
		want, count := ask.CountFitting(all, free, 1000), int32(0)
		for {
			var takers []int
			for i := 0; i < len(all); i += Columns {
				if ask.CountFitting(all[i:i+Columns], free[i:i+Columns], 1) == 1 {
					takers = append(takers, i)
				}
			}
			if len(takers) == 0 {
				break
			}
			i := takers[random.IntN(len(takers))]
			count += ask.TakeDevices(all[i:i+Columns], free[i:i+Columns], 1)
		}
		NewWithT(t).Expect(count).To(Equal(want), "%v of %v", ask, taken)
	}
}

func shared(devices int64) corev1.ResourceList {
	return corev1.ResourceList{
		Number: *resource.NewQuantity(devices*10, resource.DecimalSI), Memory: *resource.NewQuantity(devices*16384, resource.DecimalSI),
		Cores: *resource.NewQuantity(devices*100, resource.DecimalSI),
	}
}

func TestNodesSayWhichDevicesTheyShare(t *testing.T) {
	g := NewWithT(t)
	read := func(text string) *Node { return ReadNode(map[string]string{Registered: text}, shared(2)) }
	g.Expect(read("GPU-a,10,16384,NVIDIA-A100,true,hami-core:GPU-b,4,8192,NVIDIA-V100,false,hami-core,0:")).To(Equal(&Node{
		IDs: []string{"GPU-a", "GPU-b"}, All: []int64{10, 16384, 100, 4, 8192, 100},
	}), "also one that is not healthy, as for the scheduler")
	g.Expect(read("GPU-a,10,16384,DCU,true,hami-core:").All).To(Equal([]int64{0, 16384, 100}), "no device of NVIDIA")
	many := strings.Repeat("GPU-%d,10,16384,NVIDIA,true,hami-core:", most+1)
	numbers := make([]any, most+1)
	for i := range numbers {
		numbers[i] = 100 + i
	}
	for name, text := range map[string]string{
		"nothing": "", "no devices": ":", "too few words": "GPU-a,10,16384,NVIDIA,true:",
		"a count of nonsense": "GPU-a,x,1,NVIDIA,true,hami-core:",
		"memory below zero":   "GPU-a,10,-1,NVIDIA,true,hami-core:", "slices": "GPU-a,10,16384,NVIDIA,true,mig:",
		"no name": ",10,16384,NVIDIA,true,hami-core:", "too many": fmt.Sprintf(many, numbers...),
		"a name that contains another": "GPU-1,10,1,NVIDIA,true,hami-core:GPU-10,10,1,NVIDIA,true,hami-core:",
	} {
		g.Expect(read(text)).To(Equal(&Node{Unclear: true}), name)
	}
	text := map[string]string{Registered: "GPU-a,10,16384,NVIDIA-A100,true,hami-core:"}
	g.Expect(ReadNode(text, nil)).To(BeNil(), "it has none to share now")
	some := shared(1)
	delete(some, Cores)
	g.Expect(ReadNode(text, some)).To(Equal(&Node{Unclear: true}), "without one of the amounts Volcano looks at no device")
}

func asking(limits ...corev1.ResourceList) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	for _, l := range limits {
		spec.Containers = append(spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Limits: l}})
	}
	return spec
}

func amounts(words ...any) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(words); i += 2 {
		list[words[i].(corev1.ResourceName)] = resource.MustParse(words[i+1].(string))
	}
	return list
}

func TestPodsSayWhichPartsTheyHave(t *testing.T) {
	g := NewWithT(t)
	read := func(text string) *Held {
		has := metav1.ObjectMeta{Annotations: map[string]string{Assigned: text}}
		return ReadPod(&corev1.Pod{ObjectMeta: has, Spec: *asking(amounts(Number, "1"))})
	}
	both := read("GPU-a,NVIDIA,8192,50:GPU-b,NVIDIA,8192,50:;GPU-c,NVIDIA,1,0:;")
	g.Expect(both).To(Equal(&Held{Parts: []Part{{"GPU-a", 8192, 50}, {"GPU-b", 8192, 50}, {"GPU-c", 1, 0}}}))
	for name, text := range map[string]string{
		"nothing": "", "too few words": "GPU-a,NVIDIA,8192:", "nonsense": "GPU-a,NVIDIA,x,50:", "below zero": "GPU-a,NVIDIA,8192,-1:",
		"two parts of one device": "GPU-a,NVIDIA,1,1:;GPU-a,NVIDIA,1,1:", "too many": strings.Repeat("GPU-a,NVIDIA,1,1:", most+1),
	} {
		g.Expect(read(text)).To(Equal(&Held{Unclear: true}), name)
	}
	none := asking(amounts(Cores, "50"), amounts(corev1.ResourceCPU, "1"))
	g.Expect(ReadPod(&corev1.Pod{Spec: *none})).To(BeNil(), "it asks for none")
	const two = "GPU-a,10,16384,NVIDIA,true,hami-core:GPU-b,10,16384,NVIDIA,true,hami-core:"
	n := ReadNode(map[string]string{Registered: two}, shared(2))
	g.Expect(n.KnowsParts(both)).To(BeFalse(), "GPU-c is not there")
	free := slices.Clone(n.All)
	n.AddParts(free, both, -1)
	g.Expect(free).To(Equal([]int64{9, 8192, 50, 9, 8192, 50}))
}

func TestWhatPodsAskOfDevices(t *testing.T) {
	g := NewWithT(t)
	all, beyond := WishesOf(map[string]string{Mode: "hami-core", Policy: "binpack"}, asking(
		amounts(Number, "2", Memory, "8192", Cores, "50"), amounts(corev1.ResourceCPU, "1"), amounts(Memory, "100"),
		amounts(Cores, "10")))
	g.Expect(beyond).To(BeEmpty())
	g.Expect(all).To(Equal(Wishes{{2, 8192, 50}, {1, 100, 0}}), "cores alone are no device for Volcano")
	init := asking()
	init.InitContainers = asking(amounts(Number, "1")).Containers
	for want, pods := range map[string][]*corev1.PodSpec{
		"": {asking(amounts(corev1.ResourceName("nvidia.com/gpu"), "1")), asking()},
		OtherShares: {
			asking(amounts(corev1.ResourceName("volcano.sh/gpu-memory"), "1")),
			asking(amounts(corev1.ResourceName("nvidia.com/gpucores"), "1")),
			asking(amounts(Number, "0")), asking(amounts(Number, "1", Memory, "8Gi")), init,
		},
		Percentage: {asking(amounts(Number, "1", percentage, "50"))},
	} {
		for i, spec := range pods {
			_, beyond := WishesOf(nil, spec)
			g.Expect(beyond).To(Equal(want), "%q %d", want, i)
		}
	}
	for want, annotations := range map[string]map[string]string{
		OtherMode: {Mode: "mig"}, SomeModels: {Uses: "A100"}, Spread: {Policy: "spread"},
	} {
		_, beyond := WishesOf(annotations, asking(amounts(Number, "1")))
		g.Expect(beyond).To(Equal(want))
		_, beyond = WishesOf(annotations, asking(amounts(corev1.ResourceCPU, "1")))
		g.Expect(beyond).To(BeEmpty(), "a pod without parts may say what it likes")
		g.Expect(AnnotatedAlike(annotations, nil)).To(BeFalse())
	}
	_, beyond = WishesOf(map[string]string{Avoids: "V100"}, asking(amounts(Number, "1")))
	g.Expect(beyond).To(Equal(SomeModels))
}
