package capacity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/topology"
)

// withCores is a node that has GPUs and cores.
func withCores(name string, gpus, cores int64) Node {
	n := nodeOf(name, gpus)
	n.Allocatable[corev1.ResourceCPU] = 1000 * cores
	return n
}

// launched is a gang of workers and of some launchers that ask for cores alone.
func launched(launchers int, cores int64, workers int32, gpus, each int64) *Gang {
	g := gangOf(workers+int32(launchers), gpus)
	g.Shape.Requests[corev1.ResourceCPU] = 1000 * each
	for range launchers {
		g.Apart = append(g.Apart, Shape{Requests: Amounts{corev1.ResourceCPU: 1000 * cores}})
	}
	return g
}

func TestALauncherMayTakeThePlaceOfAWorker(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{withCores("a", 8, 4), withCores("b", 0, 4)}
	g.Expect(cluster(nodes).Ask(launched(1, 4, 1, 8, 4))).To(Equal(Answer{Unknown: InTurn}), "the scheduler chooses a or b")
	g.Expect(cluster(nodes[:1]).Ask(launched(1, 4, 1, 8, 4)).Fits).To(BeFalse(), "there is no b")
	nodes[0] = withCores("a", 8, 8)
	g.Expect(cluster(nodes).Ask(launched(1, 4, 1, 8, 4)).Fits).To(BeTrue(), "a has room for both")
	g.Expect(cluster(append(nodes, withCores("c", 8, 4))).Ask(launched(1, 4, 2, 8, 4)).Unknown).To(Equal(InTurn), "c has not")
	g.Expect(cluster([]Node{withCores("a", 8, 6)}).Ask(launched(2, 1, 1, 8, 4)).Fits).To(BeTrue(), "three on one node")
}

func TestWorkersMayTakeThePlaceOfALauncher(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{withCores("a", 8, 8), withCores("b", 8, 4)}
	gang := launched(1, 8, 1, 1, 4)
	g.Expect(cluster(nodes).Ask(gang).Fits).To(BeTrue(), "the launcher is placed first, and only a has room for it")
	gang.AnyOrder = true
	g.Expect(cluster(nodes).Ask(gang).Unknown).To(Equal(InTurn))
	inRack := within(1, ptr.To(*gang))
	s := Snapshot{Nodes: append(nodes, withCores("d", 0, 4)), Queues: []Queue{{Name: "default"}}, Domains: []topology.Domain{
		{Name: "none", Tier: 1, Nodes: []string{"d"}}, {Name: "some", Tier: 1, Nodes: []string{"a", "b"}},
		{Name: "all", Tier: 2, Nodes: []string{"a", "b", "d"}},
	}}
	g.Expect(New(s).Ask(inRack).Unknown).To(Equal(InTurn), "and it fits in no other rack")
	nodes = append(nodes, withCores("c", 8, 8))
	g.Expect(cluster(nodes).Ask(gang).Fits).To(BeTrue(), "one worker does not fill a and c")
}

func TestTurnsAreThoseOfTheScheduler(t *testing.T) {
	g := NewWithT(t)
	launcher, worker := &Shape{Requests: Amounts{corev1.ResourceCPU: 1000}}, &Shape{Requests: Amounts{gpu: 1}}
	claim := func(waiting ...Waiter) *Gang {
		s, gang := Standing{MinMember: int32(len(waiting)), Waiting: waiting}, &Gang{}
		g.Expect(s.CompleteClaim(gang)).To(BeEmpty())
		return gang
	}
	of := func(s *Shape, name string) Waiter {
		return Waiter{UID: types.UID(name), Index: IndexIn(name), Shape: s}
	}
	g.Expect(claim(of(worker, "j-worker-2"), of(worker, "j-worker-10"), of(launcher, "j-worker-0")).AnyOrder).To(BeFalse())
	g.Expect(claim(of(worker, "j-worker-2"), of(worker, "j-worker-3"), of(launcher, "j-worker-4")).AnyOrder).To(BeTrue())
	g.Expect(claim(of(worker, "b"), of(worker, "c"), of(launcher, "a")).AnyOrder).To(BeFalse(), "by UID")
	g.Expect(claim(of(worker, "a"), of(worker, "c"), of(launcher, "b")).AnyOrder).To(BeTrue())
	unborn := func(s *Shape) Waiter { return Waiter{Index: -1, Shape: s} }
	g.Expect(claim(unborn(launcher), unborn(worker), unborn(worker)).AnyOrder).To(BeTrue(), "UIDs decide, and are not known")
	urgent := of(launcher, "z")
	urgent.Rank = -1
	g.Expect(claim(of(worker, "a"), of(worker, "c"), urgent).AnyOrder).To(BeFalse(), "by priority")
	g.Expect(claim(of(worker, "a"), of(worker, "c")).AnyOrder).To(BeFalse(), "all are alike")
	for name, index := range map[string]int32{"j-worker-7": 7, "j-7": -1, "j-worker-": -1, "j-worker-a7": -1, "7": -1} {
		g.Expect(IndexIn(name)).To(Equal(index), name)
	}
}

// attempt places a gang as a scheduler may: in some order, each pod on some node that has room for it. In order, those in Apart
// come first.
func attempt(random *rand.Rand, nodes []Node, g *Gang) bool {
	turns := slices.Clone(g.Apart)
	for range int(g.Workers) - len(g.Apart) {
		turns = append(turns, g.Shape)
	}
	if g.AnyOrder {
		random.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	}
	free := make([]Amounts, len(nodes))
	for i := range nodes {
		free[i] = Amounts{gpu: nodes[i].Allocatable[gpu], corev1.ResourceCPU: nodes[i].Allocatable[corev1.ResourceCPU]}
	}
	for _, s := range turns {
		var room []int
		for i := range free {
			if free[i][gpu] >= s.Requests[gpu] && free[i][corev1.ResourceCPU] >= s.Requests[corev1.ResourceCPU] {
				room = append(room, i)
			}
		}
		if len(room) == 0 {
			return false
		}
		on := free[room[random.IntN(len(room))]]
		for name, amount := range s.Requests {
			on[name] -= amount
		}
	}
	return true
}

// What fits is placed whichever nodes a scheduler chooses, and few gangs of which that holds are unknown.
func TestWhatFitsIsPlacedInAnyTurns(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 14))
	fits, blocked, careful := 0, 0, 0
	for range 3000 {
		var nodes []Node
		for i := range 1 + random.IntN(4) {
			nodes = append(nodes, withCores(fmt.Sprintf("n%d", i), random.Int64N(9), 1+random.Int64N(16)))
		}
		gang := launched(1+random.IntN(3), 1+random.Int64N(6), 1+random.Int32N(5), 1+random.Int64N(4), random.Int64N(6))
		gang.AnyOrder = random.IntN(2) == 0
		if random.IntN(3) == 0 { // They differ.
			gang.Apart[0].Requests[gpu] = random.Int64N(3)
		}
		answer, failed := cluster(nodes).Ask(gang), false
		for range 200 {
			failed = failed || !attempt(random, nodes, gang)
		}
		switch {
		case answer.Fits && failed:
			t.Fatalf("the model says that it fits, and a scheduler may fail: %+v on %+v", gang, nodes)
		case answer.Fits:
			fits++
		case answer.Unknown != "" && failed:
			blocked++
		case answer.Unknown != "":
			careful++
		}
	}
	t.Logf("%d fit, %d may fail, %d are unknown although no attempt of 200 failed", fits, blocked, careful)
	if fits < 300 || blocked < 100 || careful*10 > fits {
		t.Errorf("%d fit, %d may fail, %d are unknown although no attempt of 200 failed", fits, blocked, careful)
	}
}

// BenchmarkTurns asks about a gang with a launcher on 1,000 nodes: one that has room to spare, and one that has not.
func BenchmarkTurns(b *testing.B) {
	var nodes []Node
	for i := range 1000 {
		nodes = append(nodes, withCores(fmt.Sprintf("n%d", i), 8, 32))
	}
	m := cluster(nodes)
	for name, workers := range map[string]int32{"spare": 100, "tight": 999} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m.Ask(launched(1, 4, workers, 8, 30))
			}
		})
	}
}
