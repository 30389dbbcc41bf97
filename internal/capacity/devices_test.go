package capacity

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// sharedNode has so many devices of 16 GiB, with ten slots each.
func sharedNode(name string, count int64) Node {
	n := Node{Name: name, Devices: &devices.Node{}, Allocatable: Amounts{
		devices.Number: 10 * count, devices.Memory: 16384 * count, devices.Cores: 100 * count, corev1.ResourcePods: 110,
	}}
	for i := range count {
		n.Devices.IDs = append(n.Devices.IDs, fmt.Sprintf("GPU-%d", i))
		n.Devices.All = append(n.Devices.All, 10, 16384, 100)
	}
	return n
}

// part is a shape that asks for a part of one device.
func part(memory, cores int64) Shape {
	return Shape{
		Requests: Amounts{devices.Number: 1, devices.Memory: memory, devices.Cores: cores},
		Wishes:   devices.Wishes{{Devices: 1, Memory: memory, Cores: cores}},
	}
}

// holds is a pod that has a part of a node's device.
func holds(node string, device int, memory, cores int64) Pod {
	return Pod{
		Node: node, Queue: "default", Requests: maps.Clone(part(memory, cores).Requests),
		Parts: &devices.Held{Parts: []devices.Part{{Device: fmt.Sprintf("GPU-%d", device), Memory: memory, Cores: cores}}},
	}
}

func partsOf(workers int32, memory, cores int64) *Gang {
	g := gangOf(workers, 0)
	g.Job, g.Shape = types.NamespacedName{Name: fmt.Sprintf("asks-%d-%d", memory, cores)}, part(memory, cores)
	return g
}

func TestSharedDevicesAreJudgedOneByOne(t *testing.T) {
	g := NewWithT(t)
	full := cluster([]Node{sharedNode("a", 1)}, holds("a", 0, 8192, 50), holds("a", 0, 8192, 50))
	answer := full.Ask(partsOf(1, 8192, 50))
	g.Expect(answer.Fits).To(BeFalse(), "two halves are taken")
	g.Expect(answer.Unknown).To(BeEmpty())
	g.Expect(answer.SayFree()).To(Equal("Free for it: 0 volcano.sh/vgpu-cores, 0 volcano.sh/vgpu-memory, " +
		"8 volcano.sh/vgpu-number; the largest gang of such workers that fits now: 0. " +
		"It is short of 50 volcano.sh/vgpu-cores, 8192 volcano.sh/vgpu-memory."))

	rests := cluster([]Node{sharedNode("a", 2)}, holds("a", 0, 8192, 50), holds("a", 1, 8192, 50))
	g.Expect(rests.Ask(partsOf(2, 8192, 50)).Fits).To(BeTrue(), "a half on each")
	whole := rests.Ask(partsOf(1, 12288, 50))
	g.Expect(whole.Fits).To(BeFalse(), "the rests of two devices are no device")
	g.Expect(whole.SayFree()).To(HaveSuffix("Enough is free in all, but in pieces too small for its workers."))
	g.Expect(rests.CeilingFor(partsOf(1, 12288, 50))).To(BeNil(), "it would fit if nothing else ran")
	g.Expect(rests.CeilingFor(partsOf(3, 12288, 50))).To(HaveField("Largest", int32(2)))

	beside := cluster([]Node{sharedNode("a", 1), nodeOf("b", 8)}, holds("a", 0, 8192, 50))
	g.Expect(beside.Ask(gangOf(1, 8)).Fits).To(BeTrue(), "whole GPUs beside it")
	g.Expect(beside.Ask(partsOf(2, 8192, 50)).Largest).To(Equal(int32(1)))
}

// What nodes keep in sum of their pods is as if each pod were counted.
func TestPartsCountBesideSumsOfPods(t *testing.T) {
	g := NewWithT(t)
	n := sharedNode("a", 1)
	n.Held = Amounts{devices.Number: 1, devices.Memory: 8192, devices.Cores: 50, corev1.ResourcePods: 1}
	m := cluster([]Node{n}, holds("a", 0, 8192, 50))
	g.Expect(m.Ask(partsOf(2, 8192, 50)).Largest).To(Equal(int32(1)))
	g.Expect(m.Ask(partsOf(1, 8193, 50)).Largest).To(BeZero())
}

func TestSurplusLeavesTheDeviceThatIsNeeded(t *testing.T) {
	g := NewWithT(t)
	held := func(job string, device int, memory int64) Pod {
		p := holds("a", device, memory, 10)
		p.Surplus = surplus("a", job, 0, 0).Surplus
		return p
	}
	pods := []Pod{held("left", 0, 8192), held("right", 1, 8192), holds("a", 1, 8192, 10)}
	m := cluster([]Node{sharedNode("a", 2)}, pods...)
	g.Expect(uids(m.FindVictims(partsOf(1, 16384, 10), anybody))).To(Equal([]string{"left-0"}), "a core stays on the other device")
	g.Expect(m.FindVictims(partsOf(2, 16384, 10), anybody)).To(BeEmpty(), "it would be in vain")
	g.Expect(m.bottleneckOf(partsOf(1, 16384, 10), &Answer{}).holders()).To(ContainElement(HaveField("Job.Name", "left")))

	pods[0].Leaving = true
	leaving := cluster([]Node{sharedNode("a", 2)}, pods...)
	answer := leaving.Ask(partsOf(1, 16384, 10))
	g.Expect(answer.Fits).To(BeFalse())
	g.Expect(answer.Leaving).NotTo(BeNil(), "it fits once the device is left")
	rest := leaving.clone()
	g.Expect(rest.placeIfFits(partsOf(1, 16384, 10))).To(BeTrue())
	g.Expect(rest.placeIfFits(partsOf(1, 8192, 10))).To(BeFalse(), "the device is promised")
}

func TestWorkersOfSeveralShapesShareDevices(t *testing.T) {
	g := NewWithT(t)
	ask := partsOf(3, 8192, 50)
	ask.Apart = []Shape{part(16384, 100)}
	g.Expect(cluster([]Node{sharedNode("a", 2)}).Ask(ask).Fits).To(BeTrue(), "one device for worker 0, one for two others")
	g.Expect(cluster([]Node{sharedNode("a", 2)}, holds("a", 1, 1, 0)).Ask(ask).Fits).To(BeFalse())
}

// A node that does not say what is free of its devices leaves open whether a gang fits only as far as that matters.
func TestDevicesThatAreNotKnownAreUnknownOnlyWhereTheyMatter(t *testing.T) {
	g := NewWithT(t)
	stranger := holds("b", 0, 4096, 10)
	stranger.Parts = &devices.Held{Unclear: true}
	migs := sharedNode("c", 1)
	migs.Devices = &devices.Node{Unclear: true}
	for name, unclear := range map[string]*Model{
		"a pod that does not say what it has": cluster([]Node{sharedNode("a", 1), sharedNode("b", 1)}, stranger),
		"a device that the node has not":      cluster([]Node{sharedNode("a", 1), sharedNode("b", 1)}, holds("b", 7, 4096, 10)),
		"a node of slices":                    cluster([]Node{sharedNode("a", 1), migs}),
	} {
		g.Expect(unclear.Ask(partsOf(2, 8192, 50)).Fits).To(BeTrue(), "%s: it fits on the other node", name)
		g.Expect(unclear.Ask(partsOf(3, 8192, 50)).Unknown).To(Equal(devices.Unclear), name)
		never := partsOf(9, 8192, 50)
		g.Expect(unclear.Ask(never)).To(And(HaveField("Unknown", ""), HaveField("Fits", false)), "%s: it fits in no case", name)
		g.Expect(unclear.FindVictims(partsOf(3, 8192, 50), anybody)).To(BeEmpty(), name)
		grower := &Grower{Gang: *partsOf(3, 8192, 50)}
		g.Expect(grower.IsJudgedBy(unclear)).To(BeFalse(), name)
		grower.Workers = 2
		g.Expect(grower.IsJudgedBy(unclear)).To(BeTrue(), name)
		g.Expect(unclear.Ask(gangOf(1, 1))).To(HaveField("Unknown", ""), "%s: whole GPUs do not matter", name)
	}
	g.Expect(cluster([]Node{migs}).CeilingFor(partsOf(1, 8192, 50))).To(BeNil(), "it may fit")
}

func TestDevicesAreFreeAgainWhenTheirGangEnds(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{sharedNode("a", 1)})
	first, second := partsOf(2, 8192, 50), partsOf(1, 16384, 10)
	second.Created = born.Add(time.Second)
	after, placed := m.ForeseeStart(second, []*Gang{first}, Future{
		Lasts: func(types.NamespacedName) time.Duration { return time.Hour }, Now: born, Horizon: 2 * time.Hour,
	})
	g.Expect(placed).To(BeTrue())
	g.Expect(after).To(Equal(time.Hour))
}

// A gang that is placed in thought takes what its pods take once they are there.
func TestPartsInThoughtAreThoseOfPods(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var nodes []Node
		for i := range 1 + random.IntN(3) {
			nodes = append(nodes, sharedNode(fmt.Sprintf("n%d", i), 1+random.Int64N(3)))
		}
		var pods []Pod
		inThought := cluster(nodes).clone()
		for range 12 {
			memory, cores := 1024*(1+random.Int64N(12)), 20*random.Int64N(6)
			g := partsOf(1, memory, cores)
			there := cluster(nodes, pods...).clone()
			now := there.Ask(g)
			NewWithT(t).Expect(inThought.Ask(g).Largest).To(Equal(now.Largest), "%v on %v", pods, nodes)
			if !now.Fits {
				continue
			}
			inThought.placeWorkers(g, 1, inThought.freeView())
			there.seatWorkers(g, 1, there.freeView(), func(a *ask, _ *Kin, on *node, _ int32) {
				before := slices.Clone(a.devicesIn(on, there.freeOn(on)))
				a.takeDevices(on, there.freeOn(on), 1)
				taken := lessThan(before, a.devicesIn(on, there.freeOn(on)))
				pods = append(pods, holds(on.Name, slices.Index(taken, 1)/devices.Columns, memory, cores))
			})
		}
	}
}

// What is free of shared devices is counted in devices, and not in slots, of which each has ten.
func TestPartsOfDevicesAreInPiecesToo(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{sharedNode("a", 2), nodeOf("b", 4)}, holds("a", 0, 8192, 50), holds("a", 1, 8192, 25), used("b", 3))
	of := func(gang *Gang) []Drawn { return []Drawn{{Gang: *gang, Weight: 1}} }
	halves := m.MeasureFragmentation(devices.Number, of(partsOf(2, 8192, 50)))
	g.Expect(halves).To(Equal(Fragmentation{Free: 1, Weight: 1}), "two halves are free, and two workers take them")
	wide := m.MeasureFragmentation(devices.Number, of(partsOf(1, 4096, 50)))
	g.Expect(wide.Unusable).To(BeNumerically("~", 0.25, 1e-9), "of one device no cores are left, of the other a quarter of all")
	large := m.MeasureFragmentation(devices.Number, of(partsOf(1, 12288, 25)))
	g.Expect(large).To(Equal(Fragmentation{Free: 1, Unusable: 1, Weight: 1}), "the rests of two devices are no device")
	quarter := m.MeasureFragmentation(devices.Number, of(partsOf(1, 6144, 0)))
	g.Expect(quarter.Unusable).To(BeNumerically("~", 0.25, 1e-9), "of each half an eighth of a device is left over")
	all := m.FragmentationOf([]corev1.ResourceName{gpu, devices.Number}, append(of(partsOf(2, 8192, 50)), of(gangOf(1, 1))...))
	g.Expect(all).To(Equal(Fragmentation{Free: 2, Weight: 2}), "beside a whole GPU")

	known := []Device{{Resource: gpu}, {Resource: devices.Number}}
	pieces := m.MeasurePieces(known, []*Gang{partsOf(3, 8192, 50), gangOf(1, 1)})
	g.Expect(pieces).To(ConsistOf(
		And(HaveField("Resource", gpu), HaveField("Free", 1.0), HaveField("Unusable", 0.0)),
		And(HaveField("Resource", devices.Number), HaveField("Free", 1.0), HaveField("Unusable", 1.0))))
	unclear := sharedNode("a", 2)
	unclear.Devices.Unclear = true
	g.Expect(cluster([]Node{unclear}).MeasureFragmentation(devices.Number, nil)).To(BeZero(), "it does not tell")
}
