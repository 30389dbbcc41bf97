package capacity

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var gpus = []corev1.ResourceName{gpu}

// anywhere has all surplus ask for so many GPUs, on any node.
func anywhere(each int64) func(types.NamespacedName) *Shape {
	return func(types.NamespacedName) *Shape { return &Shape{Requests: Amounts{gpu: each}} }
}

func waits(name string, workers int32, each int64) *Gang {
	g := gangOf(workers, each)
	g.Job, g.Created = types.NamespacedName{Name: name}, born
	return g
}

// told is the moves as "x-2 a>b".
func told(r *Repack) []string {
	all := []string{}
	if r != nil {
		for _, m := range r.Moves {
			all = append(all, fmt.Sprintf("%s %s>%s", m.UID, m.From, m.To))
		}
	}
	return all
}

func TestMovesThatMakeTheLargestGangFit(t *testing.T) {
	labelled := nodeOf("c", 8)
	labelled.Labels = map[string]string{"zone": "z"}
	stepped, leaving, kept := surplus("a", "x", 2, 2), surplus("a", "x", 2, 2), surplus("a", "x", 2, 2)
	stepped.Surplus.Step, leaving.Leaving, kept.Kept = 2, true, true
	full := used("c", 8)
	for name, c := range map[string]struct {
		pods    []Pod
		waiting []*Gang
		movable func(types.NamespacedName) *Shape
		limit   Amounts
		moves   []string
		by      string
	}{
		"one worker moves to where it fits tightest": {
			pods:    []Pod{surplus("a", "x", 2, 2), used("b", 6), used("c", 7)},
			waiting: []*Gang{waits("w", 1, 8)}, moves: []string{"x-2 a>b"}, by: "w",
		},
		"a core does not move": {pods: []Pod{used("a", 2), used("b", 6), full}, waiting: []*Gang{waits("w", 1, 8)}},
		"nor surplus that finds no other node": {
			pods: []Pod{surplus("a", "x", 2, 2), used("b", 7), full}, waiting: []*Gang{waits("w", 1, 8)},
		},
		"nor surplus that the caller keeps": {
			pods: []Pod{surplus("a", "x", 2, 2), used("b", 6), full}, waiting: []*Gang{waits("w", 1, 8)},
			movable: func(types.NamespacedName) *Shape { return nil },
		},
		"nor surplus of whole steps": {pods: []Pod{stepped, used("b", 6), full}, waiting: []*Gang{waits("w", 1, 8)}},
		"nor surplus that none may take yet": {
			pods: []Pod{kept, used("b", 6), full}, waiting: []*Gang{waits("w", 1, 8)},
		},
		"nor surplus that leaves anyway": {
			pods: []Pod{leaving, used("b", 6), full}, waiting: []*Gang{waits("w", 1, 8)},
		},
		"nor to a node that does not take it": {
			pods: []Pod{surplus("a", "x", 2, 2), used("b", 6), full}, waiting: []*Gang{waits("w", 1, 8)},
			movable: func(types.NamespacedName) *Shape {
				return &Shape{Requests: Amounts{gpu: 2}, NodeSelector: map[string]string{"zone": "z"}}
			},
		},
		"the next in order where the first finds no node": {
			pods: []Pod{surplus("a", "big", 2, 4), used("a", 1), surplus("b", "x", 2, 2), used("b", 3), used("c", 6)},
			movable: func(job types.NamespacedName) *Shape {
				return &Shape{Requests: Amounts{gpu: map[string]int64{"big": 4, "x": 2}[job.Name]}}
			},
			waiting: []*Gang{waits("w", 1, 5)}, moves: []string{"x-2 b>a"}, by: "w",
		},
		"the largest comes first": {
			pods:    []Pod{surplus("a", "x", 2, 2), used("b", 6), used("c", 6)},
			waiting: []*Gang{waits("small", 1, 7), waits("large", 1, 8)}, moves: []string{"x-2 a>b"}, by: "large",
		},
		"the next largest where it cannot be helped": {
			pods:    []Pod{surplus("a", "x", 2, 2), used("b", 6), used("c", 6)},
			waiting: []*Gang{waits("large", 2, 8), waits("small", 1, 7)}, moves: []string{"x-2 a>b"}, by: "small",
		},
		"room of a gang that fits is not taken": {
			pods:    []Pod{surplus("a", "x", 2, 2), used("b", 6), full},
			waiting: []*Gang{waits("w", 1, 8), waits("fits", 1, 2)},
		},
		"nor for more workers than moves are sought for": {
			pods: []Pod{surplus("a", "x", 2, 2), used("b", 6), used("c", 6)}, waiting: []*Gang{waits("w", 1+mostMissing, 8)},
		},
		"a gang at its queue's limit is not helped": {
			pods: []Pod{surplus("a", "x", 2, 2), used("b", 6), full}, limit: Amounts{gpu: 7},
			waiting: []*Gang{waits("w", 1, 8)},
		},
		"a gang without devices is not": {
			pods: []Pod{surplus("a", "x", 2, 2), used("b", 6), full}, waiting: []*Gang{waits("w", 1, 0)},
		},
		"several workers move": {
			pods: []Pod{
				surplus("a", "x", 2, 1), surplus("b", "x", 3, 1), surplus("c", "x", 4, 1), used("c", 2),
			},
			movable: anywhere(1), waiting: []*Gang{waits("w", 2, 8)}, moves: []string{"x-3 b>c", "x-2 a>c"}, by: "w",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := New(Snapshot{
				Nodes: []Node{nodeOf("a", 8), nodeOf("b", 8), labelled}, Pods: c.pods,
				Queues: []Queue{{Name: "default", Capability: c.limit}},
			})
			if c.movable == nil {
				c.movable = anywhere(2)
			}
			r, after := m.AdviseRepack(gpus, c.waiting, c.movable)
			g.Expect(told(r)).To(Equal(append([]string{}, c.moves...)))
			if len(c.moves) == 0 {
				return
			}
			g.Expect(r.For.Name).To(Equal(c.by))
			for _, w := range c.waiting {
				if w.Job == r.For {
					g.Expect(m.Ask(w).Fits).To(BeFalse())
					g.Expect(after.Ask(w).Fits).To(BeTrue(), "it fits after the moves")
				}
			}
		})
	}
}

// Of any cluster: after the moves the gang fits, no node has more than it has, and nothing but surplus moved.
func TestMovesKeepWhatTheyPromise(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("TIDELINE_SEED"), 10, 64); err == nil {
		seed = given
	}
	random := rand.New(rand.NewPCG(seed, 27))
	advised := 0
	for range 400 {
		g := NewWithT(t)
		var nodes []Node
		var pods []Pod
		sizes := map[string]int64{}
		for i := range 3 + random.IntN(6) {
			name := fmt.Sprintf("n%d", i)
			nodes = append(nodes, nodeOf(name, 8))
			for left := int64(8); left > 0 && random.IntN(4) > 0; {
				each := 1 + random.Int64N(min(left, 4))
				left -= each
				if random.IntN(2) == 0 {
					pods = append(pods, used(name, each))
					continue
				}
				job := fmt.Sprintf("j%d", each)
				sizes[job] = each
				pods = append(pods, surplus(name, job, int32(len(pods)), each))
			}
		}
		waiting := []*Gang{
			waits("w1", 1+random.Int32N(3), 1+random.Int64N(8)), waits("w2", 1+random.Int32N(3), 1+random.Int64N(8)),
		}
		m := cluster(nodes, pods...)
		r, after := m.AdviseRepack(gpus, waiting, func(job types.NamespacedName) *Shape {
			return &Shape{Requests: Amounts{gpu: sizes[job.Name]}}
		})
		if r == nil {
			continue
		}
		advised++
		held, there := map[string]int64{}, map[types.UID]bool{}
		for _, p := range pods {
			held[p.Node] += p.Requests[gpu]
			if p.Surplus != nil {
				there[p.Surplus.UID] = true
			}
		}
		for _, move := range r.Moves {
			each := sizes[move.Job.Name]
			held[move.From] -= each
			held[move.To] += each
			g.Expect(there[move.UID]).To(BeTrue(), "seed %d: it is surplus, and moves once", seed)
			delete(there, move.UID)
		}
		for node, amount := range held {
			g.Expect(amount).To(BeNumerically("<=", 8), "seed %d, node %s", seed, node)
		}
		for _, w := range waiting {
			if w.Job == r.For {
				g.Expect(after.Ask(w).Fits).To(BeTrue(), "seed %d", seed)
			}
		}
	}
	NewWithT(t).Expect(advised).To(BeNumerically(">", 20), "seed %d: too few clusters to say anything", seed)
}

func TestPiecesOfEachModelForEachQueue(t *testing.T) {
	g := NewWithT(t)
	of := func(name, model string) Node {
		n := nodeOf(name, 8)
		n.Labels = map[string]string{"gpu": model}
		return n
	}
	m := New(Snapshot{
		Nodes:  []Node{of("a", "a100"), of("b", "a100"), of("c", "h100"), nodeOf("cpu", 0)},
		Pods:   []Pod{used("a", 5), used("b", 5), used("c", 4)},
		Queues: []Queue{{Name: "ads"}, {Name: "shop"}},
	})
	devices := []Device{{Resource: gpu, Label: "gpu", Model: "a100"}, {Resource: gpu, Label: "gpu", Model: "h100"}}
	in := func(queue string, w *Gang) *Gang {
		w.Queue = queue
		return w
	}
	bound := in("shop", waits("h", 1, 4))
	bound.Shape.NodeSelector = map[string]string{"gpu": "h100"}
	beyond := in("shop", waits("u", 1, 4))
	beyond.Shape.Unmodelled = "volumes"
	pieces := m.MeasurePieces(devices, []*Gang{
		in("ads", waits("twos", 2, 2)), in("ads", waits("also twos", 2, 2)), in("ads", waits("too large", 3, 4)), bound, beyond,
	})
	g.Expect(pieces).To(HaveLen(3))
	g.Expect(pieces[0]).To(And(HaveField("Queue", "ads"), HaveField("Model", "a100"), HaveField("Free", 6.0),
		HaveField("Weight", 3.0)))
	g.Expect(pieces[0].Unusable).To(BeNumerically("~", (2*2.0/6+1)/3, 1e-9), "twos leave two of six, and the third fits nowhere")
	g.Expect(pieces[1]).To(And(HaveField("Queue", "ads"), HaveField("Model", "h100"), HaveField("Free", 4.0)))
	g.Expect(pieces[1].Unusable).To(BeNumerically("~", 1.0/3, 1e-9))
	g.Expect(pieces[2]).To(Equal(Pieces{Queue: "shop", Device: devices[1], Fragmentation: Fragmentation{Free: 4, Weight: 1}}),
		"it may have no a100, and uses each h100")
	g.Expect(m.MeasurePieces(devices, nil)).To(BeEmpty())
}

// BenchmarkRepack is on 5,000 nodes with 20,000 pods of 10,000 jobs, a quarter of them surplus, and 500 gangs of 20 shapes that
// wait: none has its place by moves, so that as many as may be are tried.
func BenchmarkRepack(b *testing.B) {
	for name, large := range map[string]int32{"helped": 22, "not helped": 60} {
		s := Snapshot{Queues: []Queue{{Name: "default"}}}
		for i := range 5000 {
			n := benchNode(i)
			n.Name = fmt.Sprintf("n%04d", i)
			s.Nodes = append(s.Nodes, n)
			s.Pods = append(s.Pods, used(n.Name, 3), used(n.Name, 2))
			for j := range 2 {
				s.Pods = append(s.Pods, surplus(n.Name, fmt.Sprintf("j%04d", i), int32(j), 1))
			}
			if large > 22 {
				s.Pods = append(s.Pods, used(n.Name, 1)) // All is held, so that who moves finds no other node.
			}
		}
		var waiting []*Gang
		for i := range benchGangs {
			each := int64(3)
			if large > 22 {
				each = 2
			}
			waiting = append(waiting, waits(fmt.Sprintf("w%03d", i), large-int32(i%20), each))
		}
		devices := []Device{{Resource: gpu, Label: "gpu", Model: "a100"}}
		b.Run("advise, "+name, func(b *testing.B) {
			for b.Loop() {
				New(s).AdviseRepack(gpus, waiting, anywhere(1))
			}
		})
		b.Run("measure, "+name, func(b *testing.B) {
			for b.Loop() {
				New(s).MeasurePieces(devices, waiting)
			}
		})
	}
}
