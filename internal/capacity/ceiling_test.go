package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestCeiling(t *testing.T) {
	queue := func(capability int64) Queue {
		return Queue{Name: "default", Capability: Amounts{gpu: capability}, Allocated: Amounts{gpu: 14}}
	}
	for name, c := range map[string]struct {
		queues []Queue
		ask    *Gang
		want   *Answer
	}{
		"it fits once others have gone": {ask: gangOf(4, 4)},
		"pieces too small": {ask: gangOf(1, 9), want: &Answer{
			Free: Amounts{gpu: 16}, Short: Amounts{}, Nodes: 2, Oversize: &Oversize{Resource: gpu, Asks: 9, Largest: 8},
		}},
		"too little in all": {ask: gangOf(5, 4), want: &Answer{
			Largest: 4, Free: Amounts{gpu: 16}, Short: Amounts{gpu: 4}, Nodes: 2,
		}},
		"within the capability": {queues: []Queue{queue(8)}, ask: gangOf(4, 2)},
		"beyond the capability": {queues: []Queue{queue(7)}, ask: gangOf(4, 2), want: &Answer{
			Largest: 3, Free: Amounts{gpu: 16}, Short: Amounts{gpu: 1}, Nodes: 2, QueueLimit: true,
		}},
		"beyond what guarantees leave": {
			queues: []Queue{queue(16), {Name: "other", Guarantee: Amounts{gpu: 12}}}, ask: gangOf(3, 2), want: &Answer{
				Largest: 2, Free: Amounts{gpu: 16}, Short: Amounts{gpu: 2}, Nodes: 2, QueueLimit: true,
				Guarantees: "other: 12 nvidia.com/gpu",
			},
		},
		"its own guarantee": {queues: []Queue{{Name: "default", Guarantee: Amounts{gpu: 12}}}, ask: gangOf(8, 2)},
		"no node has it": {
			ask: &Gang{Queue: "default", Workers: 1, Shape: Shape{Requests: Amounts{"example.com/fpga": 1}}},
			want: &Answer{Free: Amounts{"example.com/fpga": 0}, Short: Amounts{"example.com/fpga": 1},
				Oversize: &Oversize{Resource: "example.com/fpga", Asks: 1}},
		},
		"a queue that does not exist": {ask: &Gang{Queue: "nowhere", Workers: 99, Shape: Shape{Requests: Amounts{gpu: 9}}}},
		"what the model does not cover": {ask: &Gang{
			Queue: "default", Workers: 99, Shape: Shape{Requests: Amounts{gpu: 9}, Unmodelled: "volumes"},
		}},
		"worker 0 of another shape": {
			ask: &Gang{
				Queue: "default", Workers: 5, Shape: Shape{Requests: Amounts{gpu: 2}}, Apart: []Shape{{Requests: Amounts{gpu: 8}}},
			},
		},
		"worker 0 too large": {
			ask: &Gang{
				Queue: "default", Workers: 2, Shape: Shape{Requests: Amounts{gpu: 2}}, Apart: []Shape{{Requests: Amounts{gpu: 9}}},
			},
			want: &Answer{
				Free: Amounts{gpu: 16}, Short: Amounts{}, Nodes: 2, Oversize: &Oversize{Resource: gpu, Asks: 9, Largest: 8},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if c.queues == nil {
				c.queues = []Queue{{Name: "default", Allocated: Amounts{gpu: 14}}}
			}
			leaves := used("b", 2)
			leaves.Leaving = true
			m := New(Snapshot{
				Nodes: []Node{nodeOf("a", 8), nodeOf("b", 8)}, Queues: c.queues,
				Pods: []Pod{used("a", 6), surplus("b", "x", 2, 6), leaves},
			})
			before := m.Ask(c.ask)
			g.Expect(m.CeilingFor(c.ask)).To(Equal(c.want))
			g.Expect(m.CeilingFor(c.ask)).To(Equal(c.want), "asked again")
			g.Expect(m.Ask(c.ask)).To(Equal(before), "what is free now is as it was")
		})
	}
}

func TestCeilingKeepsGangsApart(t *testing.T) {
	g := NewWithT(t)
	labelled := nodeOf("b", 4)
	labelled.Labels = map[string]string{"disk": "ssd"}
	m := New(Snapshot{Nodes: []Node{nodeOf("a", 8), labelled}, Queues: []Queue{
		{Name: "default"}, {Name: "small", Capability: Amounts{gpu: 2}},
	}})
	ask := gangOf(3, 4)
	g.Expect(m.CeilingFor(ask)).To(BeNil())
	for name, edit := range map[string]func(*Gang){
		"workers":     func(g *Gang) { g.Workers = 4 },
		"requests":    func(g *Gang) { g.Shape.Requests = Amounts{gpu: 5} },
		"constraints": func(g *Gang) { g.Shape.NodeSelector = map[string]string{"disk": "ssd"} },
		"queue":       func(g *Gang) { g.Queue = "small" },
		"worker 0":    func(g *Gang) { g.Apart = []Shape{{Requests: Amounts{gpu: 9}}} },
	} {
		other := *ask
		edit(&other)
		g.Expect(m.CeilingFor(&other)).NotTo(BeNil(), name)
	}
}

func TestCeilingCountsEveryModelThatTheGangMayChoose(t *testing.T) {
	g := NewWithT(t)
	small, large := nodeOf("a", 4), nodeOf("b", 8)
	small.Labels, large.Labels = map[string]string{"model": "old"}, map[string]string{"model": "new"}
	m := cluster([]Node{small, large})
	on := func(model string, gpus int64) Shape {
		return Shape{Requests: Amounts{gpu: gpus}, NodeSelector: map[string]string{"model": model}}
	}
	ask := &Gang{Queue: "default", Workers: 1, Shape: on("old", 8), Others: []Variant{{Model: "new", Shape: on("new", 8)}}}
	g.Expect(m.CeilingFor(ask)).To(BeNil(), "it fits on the other model")
	ask.Shape, ask.Others[0].Shape = on("old", 9), on("new", 9)
	g.Expect(m.CeilingFor(ask).Oversize).To(Equal(&Oversize{Resource: gpu, Asks: 9, Largest: 4}), "about its own model")
}

func TestWhatIsTooLargeIsSaid(t *testing.T) {
	g := NewWithT(t)
	whole := nodeOf("a", 8)
	whole.Allocatable[corev1.ResourceCPU] = 64000
	m := cluster([]Node{whole, nodeOf("b", 8)})
	says := func(edit func(*Gang)) string {
		ask := gangOf(1, 1)
		edit(ask)
		return m.CeilingFor(ask).SayEmpty("worker")
	}
	g.Expect(says(func(g *Gang) { g.Shape.Requests[gpu] = 64 })).
		To(Equal("One worker asks for 64 nvidia.com/gpu; the largest node for it has 8."))
	g.Expect(says(func(g *Gang) { g.Shape.Requests[corev1.ResourceCPU] = 96500 })).
		To(Equal("One worker asks for 96500m cpu; the largest node for it has 64."))
	g.Expect(says(func(g *Gang) { g.Shape.Requests["example.com/fpga"] = 1 })).
		To(Equal("One worker asks for 1 example.com/fpga; no ready node has any."))
	g.Expect(says(func(g *Gang) { g.Workers = 64 })).
		To(Equal("At most 16 such workers would fit into 16 nvidia.com/gpu; short of 48 nvidia.com/gpu."))
}

// TestCeilingIsThatOfTheEmptyCluster compares with every way to put the workers on the nodes, in random clusters.
func TestCeilingIsThatOfTheEmptyCluster(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	never, limited := 0, 0
	for n := range 200 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		s, ask := randomCeiling(random)
		got := New(s).CeilingFor(ask)
		if want := !placeable(s, ask); (got != nil) != want {
			t.Fatalf("seed %d, cluster %d: %+v, brute force says never: %t: %+v asks %+v", seed, n, got, want, s, ask)
		}
		if got == nil {
			continue
		}
		never++
		largest := *ask
		for largest.Workers = 1; largest.Workers < ask.Workers && placeable(s, &largest); {
			largest.Workers++
		}
		if got.Largest != largest.Workers-1 {
			t.Fatalf("seed %d, cluster %d: %+v, the largest is %d: %+v asks %+v", seed, n, got, largest.Workers-1, s, ask)
		}
		if got.QueueLimit {
			limited++
		}
	}
	if never < 20 || never > 180 || limited < 5 {
		t.Errorf("seed %d: %d gangs never fit, %d by the limits of queues: the test proves little", seed, never, limited)
	}
}

// randomCeiling is a cluster that is in use, and a gang.
func randomCeiling(random *rand.Rand) (Snapshot, *Gang) {
	s := Snapshot{}
	for i := range 1 + random.IntN(3) {
		n := nodeOf(fmt.Sprintf("n%d", i), random.Int64N(9))
		n.Allocatable[corev1.ResourceCPU] = 1000 * random.Int64N(17)
		n.Labels = map[string]string{"zone": string(rune('a' + random.IntN(2)))}
		s.Nodes = append(s.Nodes, n)
		for range random.IntN(4) {
			p := used(n.Name, random.Int64N(4))
			p.Leaving = random.IntN(2) == 0
			s.Pods = append(s.Pods, p)
		}
	}
	books := func() Amounts { return Amounts{gpu: random.Int64N(9)} }
	s.Queues = []Queue{{Name: "default", Allocated: books()}, {Name: "other", Allocated: books()}}
	if random.IntN(2) == 0 {
		s.Queues[0].Capability = Amounts{gpu: random.Int64N(25)}
	}
	if random.IntN(2) == 0 {
		s.Queues[0].Guarantee, s.Queues[1].Guarantee = books(), books()
	}
	ask := gangOf(1+random.Int32N(4), random.Int64N(4))
	ask.Shape.Requests[corev1.ResourceCPU] = 1000 * random.Int64N(5)
	if random.IntN(3) == 0 {
		ask.Shape.NodeSelector = map[string]string{"zone": "a"}
	}
	return s, ask
}

// placeable tries every way to put the gang's workers on empty nodes, within what its queue may take.
func placeable(s Snapshot, ask *Gang) bool {
	for name, each := range ask.Shape.Requests {
		limit := int64(0)
		for _, n := range s.Nodes {
			limit += n.Allocatable[name]
		}
		limit -= s.Queues[1].Guarantee[name]
		if capability, limited := s.Queues[0].Capability[name]; limited {
			limit = min(limit, capability)
		}
		if each > 0 && each*int64(ask.Workers) > limit {
			return false
		}
	}
	placed := make([]int64, len(s.Nodes))
	var next func(left int32) bool
	next = func(left int32) bool {
		if left == 0 {
			return true
		}
		for i, n := range s.Nodes {
			zone, selected := ask.Shape.NodeSelector["zone"]
			fits := !selected || n.Labels["zone"] == zone
			for name, each := range ask.Shape.Requests {
				fits = fits && (placed[i]+1)*each <= n.Allocatable[name]
			}
			if !fits {
				continue
			}
			placed[i]++
			if next(left - 1) {
				return true
			}
			placed[i]--
		}
		return false
	}
	return next(ask.Workers)
}

// BenchmarkCeiling asks for 5,000 gangs of 20 shapes and sizes in a cluster of 1,000 nodes.
func BenchmarkCeiling(b *testing.B) {
	s := Snapshot{Queues: []Queue{{Name: "default"}}}
	for i := range benchNodes {
		s.Nodes = append(s.Nodes, benchNode(i))
	}
	waiting := benchDocket(4, func(*Gang) {}).Waiting
	m := New(s)
	b.ReportAllocs()
	for b.Loop() {
		m.ceilings = nil
		for range 10 {
			for _, g := range waiting {
				m.CeilingFor(g)
			}
		}
	}
}
