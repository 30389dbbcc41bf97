package capacity

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/topology"
)

// racks are two of two nodes with four GPUs each, and a spine of both.
func racks(pods ...Pod) *Model {
	return New(Snapshot{
		Nodes: []Node{nodeOf("a0", 4), nodeOf("a1", 4), nodeOf("b0", 4), nodeOf("b1", 4)}, Pods: pods,
		Queues: []Queue{{Name: "default"}},
		Domains: []topology.Domain{
			{Name: "rack-a", Tier: 1, Nodes: []string{"a0", "a1"}}, {Name: "rack-b", Tier: 1, Nodes: []string{"b0", "b1"}},
			{Name: "spine", Tier: 2, Nodes: []string{"a0", "a1", "b0", "b1"}},
		},
	})
}

func within(tier int, g *Gang) *Gang {
	g.Within = ptr.To(tier)
	return g
}

func TestGangFitsOnlyWhereOneHyperNodeHasRoom(t *testing.T) {
	for name, c := range map[string]struct {
		gang    *Gang
		fits    bool
		largest int32
		domain  string
	}{
		"one rack has room":            {within(1, gangOf(7, 1)), true, 7, "rack-b"},
		"enough in all, in no rack":    {within(1, gangOf(8, 1)), false, 7, "rack-b"},
		"the spine has room":           {within(2, gangOf(8, 1)), true, 12, "spine"},
		"a tier above all is no limit": {within(3, gangOf(12, 1)), true, 12, ""},
		"no HyperNode is that low":     {within(0, gangOf(1, 1)), false, 0, ""},
		"a gang without a limit":       {gangOf(12, 1), true, 12, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := racks(used("a0", 3), used("b0", 1))
			answer := m.Ask(c.gang)
			g.Expect(answer.Fits).To(Equal(c.fits))
			g.Expect(answer.Largest).To(Equal(c.largest))
			g.Expect(answer.Domain).To(Equal(c.domain))
			g.Expect(m.fitsNow(c.gang)).To(Equal(c.fits))
		})
	}
}

func TestWhatIsSaidOfAGangInOneHyperNode(t *testing.T) {
	g := NewWithT(t)
	m := racks(used("a0", 3), used("b0", 1))
	answer := m.Ask(within(1, gangOf(8, 1)))
	g.Expect(answer.SayFree()).To(Equal("Free for it in HyperNode rack-b, the best of tier 1 or lower: 7 nvidia.com/gpu; the " +
		"largest gang of such workers that fits now: 7. It is short of 1 nvidia.com/gpu."))
	never := m.CeilingFor(within(1, gangOf(9, 1)))
	g.Expect(never.SayEmpty("pod")).To(Equal("At most 8 such pods would fit in HyperNode rack-a, the best of tier 1 or lower into " +
		"8 nvidia.com/gpu; short of 1 nvidia.com/gpu."))
	g.Expect(m.CeilingFor(within(2, gangOf(9, 1)))).To(BeNil(), "it is another question")
}

func TestMembersThatArePlacedBindTheOthers(t *testing.T) {
	g := NewWithT(t)
	m := racks(used("a0", 4), used("a1", 4))
	one := within(1, gangOf(1, 1))
	g.Expect(m.fitsNow(one)).To(BeTrue())
	one.Beside = []string{"a0"}
	g.Expect(m.fitsNow(one)).To(BeFalse(), "its rack is full")
	one.Within = ptr.To(2)
	g.Expect(m.fitsNow(one)).To(BeTrue())
}

func TestVictimsAreOfOneHyperNode(t *testing.T) {
	g := NewWithT(t)
	m := racks(used("a0", 2), used("b0", 3), surplus("a1", "s", 9, 1), surplus("b0", "s", 8, 1), surplus("b1", "s", 7, 1))
	g.Expect(uids(m.FindVictims(within(1, gangOf(6, 1)), anybody))).To(Equal([]string{"s-9"}),
		"rack b would be too small without all of its surplus")
	g.Expect(m.FindVictims(within(1, gangOf(7, 1)), anybody)).To(BeEmpty(), "all surplus of both racks is not enough for one")
	g.Expect(m.FindVictims(within(2, gangOf(11, 1)), anybody)).To(HaveLen(3))
}

func TestReservedRoomIsThatOfHyperNodesThatWouldDo(t *testing.T) {
	g := NewWithT(t)
	m := racks(used("a0", 2), used("b0", 1))
	limits, _ := m.LimitGrowth([]Grower{{Gang: *gangOf(9, 1)}}, []*Gang{within(1, gangOf(7, 1))})
	for _, limit := range limits {
		g.Expect(limit).To(Equal(int32(6)), "the gang takes the seven of rack b")
	}
	limits, _ = m.LimitGrowth([]Grower{{Gang: *within(1, gangOf(9, 1))}}, nil)
	for _, limit := range limits {
		g.Expect(limit).To(Equal(int32(7)), "no more than one rack has")
	}
}

// A gang fits into one of the HyperNodes if it fits into a cluster of that one's nodes.
func TestHyperNodeIsAClusterOfItsOwn(t *testing.T) {
	for seed := range uint64(300) {
		g, r := NewWithT(t), rand.New(rand.NewPCG(seed, 1))
		var s Snapshot
		s.Queues = []Queue{{Name: "default"}}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			s.Nodes = append(s.Nodes, nodeOf(name, 1+r.Int64N(4)))
			if r.IntN(2) == 0 {
				s.Pods = append(s.Pods, used(name, 1))
			}
		}
		for i := range 3 {
			d := topology.Domain{Name: string(rune('x' + i)), Tier: 1 + i/2}
			for _, n := range s.Nodes {
				if r.IntN(2) == 0 {
					d.Nodes = append(d.Nodes, n.Name)
				}
			}
			s.Domains = append(s.Domains, d)
		}
		gang := within(1+r.IntN(2), gangOf(1+r.Int32N(8), 1+r.Int64N(2)))
		if r.IntN(3) == 0 {
			gang.Apart, gang.Workers = []Shape{{Requests: Amounts{gpu: 2, corev1.ResourceCPU: 0}}}, gang.Workers+1
		}
		fits := false
		for _, d := range s.Domains {
			if d.Tier > *gang.Within {
				continue
			}
			of := Snapshot{Queues: s.Queues}
			for _, n := range s.Nodes {
				if d.HasAll([]string{n.Name}) {
					of.Nodes = append(of.Nodes, n)
				}
			}
			for _, p := range s.Pods {
				if d.HasAll([]string{p.Node}) {
					of.Pods = append(of.Pods, p)
				}
			}
			alone := *gang
			alone.Within = nil
			fits = fits || roomAlone(of, &alone)
		}
		g.Expect(New(s).fitsNow(gang)).To(Equal(fits), "seed %d", seed)
	}
}

// roomAlone tells whether a gang has room in a cluster, whatever its queue may hold of it.
func roomAlone(s Snapshot, g *Gang) bool {
	m := New(s)
	return len(s.Nodes) > 0 && m.demandOf(g).roomBy(m.freeView()) >= g.Workers
}

func TestAGangIsForeseenInOneHyperNode(t *testing.T) {
	g := NewWithT(t)
	on := func(node, of string) Pod {
		p := used(node, 4)
		p.Job = job(of)
		return p
	}
	m := racks(on("a0", "x"), on("b0", "y"))
	ends := lasting(map[string]int{"x": 7, "y": 9})
	after, placed := m.ForeseeStart(named("asked", 8, 0), nil, ends)
	g.Expect(placed).To(BeTrue())
	g.Expect(after).To(BeZero(), "half of it would be in each rack")
	after, placed = m.ForeseeStart(within(1, named("asked", 8, 0)), nil, ends)
	g.Expect(placed).To(BeTrue())
	g.Expect(after).To(Equal(7*time.Hour), "rack-a is empty then")
	older := within(1, named("older", 8, time.Hour))
	after, placed = m.ForeseeStart(within(1, named("asked", 8, 0)), []*Gang{older}, ends)
	g.Expect(placed).To(BeTrue())
	g.Expect(after).To(Equal(9*time.Hour), "the older gang has that rack, and this one the other")
}
