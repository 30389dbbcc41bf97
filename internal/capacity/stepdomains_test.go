package capacity

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/topology"
)

// growsWithin is a grower whose steps are each within one node, or one HyperNode of a tier.
func growsWithin(tier int, gang *Gang, step int32, placed map[string]int32) Grower {
	g := Grower{Gang: *gang, Step: step, Domains: &StepDomains{Tier: tier, Placed: placed}}
	for _, n := range placed {
		g.Placed += n
	}
	return g
}

func TestEachStepFindsRoomOnOneNode(t *testing.T) {
	for name, c := range map[string]struct {
		free   map[string]int64
		misses int32
		placed map[string]int32
		where  map[string]int32
	}{
		"only where a whole step fits": {map[string]int64{"a": 3, "b": 9, "c": 4}, 16, nil, map[string]int32{"b": 8, "c": 4}},
		"where the least is left over": {map[string]int64{"a": 8, "b": 5}, 4, nil, map[string]int32{"b": 4}},
		"as many as it misses":         {map[string]int64{"a": 16}, 8, nil, map[string]int32{"a": 8}},
		"nowhere":                      {map[string]int64{"a": 3, "b": 3, "c": 3}, 8, nil, map[string]int32{}},
		"beside what it has": {
			map[string]int64{"a": 4, "b": 3}, 8, map[string]int32{"b": 4}, map[string]int32{"a": 4, "b": 4},
		},
		"the rest of a step first":          {map[string]int64{"a": 4, "b": 1}, 1, map[string]int32{"b": 3}, map[string]int32{"b": 4}},
		"no rest of a step, so it leaves":   {map[string]int64{"a": 4, "b": 0}, 5, map[string]int32{"b": 3}, map[string]int32{"a": 4}},
		"a rest on another node is no help": {map[string]int64{"a": 1, "b": 0}, 1, map[string]int32{"b": 7}, map[string]int32{"b": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var nodes []Node
			var pods []Pod
			for _, node := range []string{"a", "b", "c"} {
				nodes = append(nodes, nodeOf(node, 16))
				pods = append(pods, used(node, 16-c.free[node]))
			}
			grower := growsWithin(0, named("x", c.misses, time.Hour), 4, c.placed)
			limits, where := cluster(nodes, pods...).LimitGrowth([]Grower{grower}, nil)
			got, sum := map[string]int32{}, int32(0)
			for _, d := range where[grower.Job] {
				got[d.Name], sum = d.Workers, sum+d.Workers
			}
			g.Expect(got).To(Equal(c.where))
			g.Expect(limits).To(HaveKeyWithValue(grower.Job, sum))
		})
	}
}

func TestEachStepFindsRoomInOneHyperNode(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{
		Nodes: []Node{nodeOf("a1", 2), nodeOf("a2", 2), nodeOf("b1", 2), nodeOf("b2", 3)},
		Pods:  []Pod{used("a1", 1)}, Queues: []Queue{{Name: "default"}},
		Domains: []topology.Domain{
			{Name: "a", Tier: 1, Nodes: []string{"a1", "a2"}}, {Name: "b", Tier: 1, Nodes: []string{"b1", "b2"}},
			{Name: "all", Tier: 2, Nodes: []string{"a1", "a2", "b1", "b2"}},
		},
	}
	grow := func(misses int32, tier int, beside ...string) []StepDomain {
		grower := growsWithin(tier, named("x", misses, time.Hour), 4, nil)
		if grower.Beside = beside; len(beside) > 0 {
			within := 1
			grower.Within = &within
		}
		_, where := New(s).LimitGrowth([]Grower{grower}, nil)
		return where[grower.Job]
	}
	b := StepDomain{Name: "b", Workers: 4}
	g.Expect(grow(8, 1)).To(Equal([]StepDomain{b}), "a has room for three")
	g.Expect(grow(8, 2)).To(Equal([]StepDomain{{Name: "all", Workers: 8}}))
	g.Expect(grow(8, 1, "b1")).To(Equal([]StepDomain{b}))
	g.Expect(grow(8, 1, "a1")).To(BeEmpty(), "all workers share one HyperNode, and b is another")
	g.Expect(grow(8, 3)).To(BeEmpty(), "there is none of that tier")
}

func TestTheRestOfAStepAwaitsItsOwnPlace(t *testing.T) {
	grown := func(placed int32) []StepDomain {
		pods := []Pod{used("a", int64(placed)), leaves(surplus("a", "x", 9, 1))}
		grower := growsWithin(0, named("x", 4-placed, time.Hour), 4, map[string]int32{"a": placed})
		_, all := cluster([]Node{nodeOf("a", 4)}, pods...).LimitGrowth([]Grower{grower}, nil)
		return all[grower.Job]
	}
	NewWithT(t).Expect(grown(3)).To(Equal([]StepDomain{{"a", 4}}), "a worker of it leaves")
	NewWithT(t).Expect(grown(0)).To(BeEmpty(), "a new step has no room yet")
}

func TestAStepStaysWithTheNodeThatItWasToldOf(t *testing.T) {
	g := NewWithT(t)
	where := func(d StepDomains) []StepDomain {
		grower := Grower{Gang: *named("x", 4, time.Hour), Step: 4, Domains: &d}
		_, all := cluster([]Node{nodeOf("a", 4), nodeOf("b", 5), nodeOf("c", 6)}).LimitGrowth([]Grower{grower}, nil)
		return all[grower.Job]
	}
	g.Expect(where(StepDomains{})).To(Equal([]StepDomain{{"a", 4}}), "the least room is left over")
	g.Expect(where(StepDomains{Before: map[string]bool{"b": true}})).To(Equal([]StepDomain{{"b", 4}}))
	waits := StepDomains{Before: map[string]bool{"b": true}, Waiting: map[string]int32{"c": 4}}
	g.Expect(where(waits)).To(Equal([]StepDomain{{"c", 4}}))
}

func TestStepsOfSeveralJobsShareTheRoom(t *testing.T) {
	g := NewWithT(t)
	first, second := growsWithin(0, named("first", 4, 2*time.Hour), 4, nil), Grower{Gang: *named("second", 8, time.Hour)}
	limits, _ := cluster([]Node{nodeOf("a", 4), nodeOf("b", 3)}).LimitGrowth([]Grower{first, second}, nil)
	g.Expect(limits).To(HaveKeyWithValue(first.Job, int32(4)))
	g.Expect(limits).To(HaveKeyWithValue(second.Job, int32(3)))
	limits, _ = New(Snapshot{
		Nodes: []Node{nodeOf("a", 9)}, Queues: []Queue{{Name: "default", Capability: Amounts{gpu: 6}}},
	}).LimitGrowth([]Grower{growsWithin(0, named("first", 8, time.Hour), 4, nil)}, nil)
	g.Expect(limits).To(HaveKeyWithValue(first.Job, int32(4)), "the queue has room for six")
}

// A job gets as many steps as nodes have room for, whatever the nodes and whatever it has.
func TestNoStepIsLeftOut(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			step, best := 1+random.Int32N(5), int32(0)
			placed := map[string]int32{}
			var nodes []Node
			var pods []Pod
			for i := range 1 + random.IntN(6) {
				name, room := strconv.Itoa(i), random.Int32N(12)
				nodes = append(nodes, nodeOf(name, 12))
				if has := min(12-room, random.Int32N(8)); has > 0 {
					placed[name] = has
				}
				pods = append(pods, used(name, int64(12-room)))
				best += (placed[name] + room) / step * step
			}
			grower := growsWithin(0, named("x", 200, time.Hour), step, placed)
			limits, where := cluster(nodes, pods...).LimitGrowth([]Grower{grower}, nil)
			NewWithT(t).Expect(limits).To(HaveKeyWithValue(grower.Job, best))
			for _, d := range where[grower.Job] {
				NewWithT(t).Expect(d.Workers % step).To(BeZero())
			}
		})
	}
}
