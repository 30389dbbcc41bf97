package capacity

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// falling is the gain of a training whose workers have a part of the work of their own.
func falling(own float64) func(int32) float64 {
	return func(surplus int32) float64 {
		x := 1 + own*float64(surplus)
		return 1 / (x * x)
	}
}

func TestFreeRoomGoesToWhoGainsMost(t *testing.T) {
	grower := func(name string, missing int32, gain func(int32) float64) Grower {
		return Grower{Gain: gain, Gang: Gang{
			Job: job(name), Queue: "default", Workers: missing, Shape: Shape{Requests: Amounts{gpu: 1}},
		}}
	}
	flat := func(gain float64) func(int32) float64 { return func(int32) float64 { return gain } }
	for name, c := range map[string]struct {
		a, b       Grower
		forA, forB int32
	}{
		"all to the larger gain":         {grower("a", 8, flat(0.5)), grower("b", 8, flat(0.9)), 0, 8},
		"in order where gains are alike": {grower("a", 6, flat(0.9)), grower("b", 8, flat(0.9)), 6, 2},
		"in turns where they fall":       {grower("a", 8, falling(0.2)), grower("b", 8, falling(0.2)), 4, 4},
		"more to who scales better":      {grower("a", 8, falling(0.7)), grower("b", 8, falling(0.1)), 1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			limits, _ := cluster([]Node{nodeOf("x", 4), nodeOf("y", 4)}).LimitGrowth([]Grower{c.a, c.b}, nil)
			NewWithT(t).Expect(limits).To(Equal(map[types.NamespacedName]int32{job("a"): c.forA, job("b"): c.forB}))
		})
	}
	t.Run("a higher tier first", func(t *testing.T) {
		g := NewWithT(t)
		high, low := grower("z", 5, flat(0.1)), grower("a", 8, flat(0.9))
		high.Tier = 1
		g.Expect(cluster([]Node{nodeOf("x", 8)}).LimitGrowth([]Grower{low, high}, nil)).To(Equal(
			map[types.NamespacedName]int32{job("z"): 5, job("a"): 3}))
	})
	t.Run("whole steps", func(t *testing.T) {
		g := NewWithT(t)
		a, b := grower("a", 8, falling(0.2)), grower("b", 8, falling(0.2))
		a.Step, b.Step = 4, 3
		limits, _ := cluster([]Node{nodeOf("x", 9)}).LimitGrowth([]Grower{a, b}, nil)
		g.Expect(limits[job("a")] % 4).To(BeZero())
		g.Expect(limits[job("b")] % 3).To(BeZero())
		g.Expect(limits[job("a")]+limits[job("b")]).To(BeNumerically(">=", 7), "what is left is too little for a step")
	})
}

// The division is as good as giving one worker after the other to whom it gains most, but for the size of a part.
func TestDividingInPartsIsNearlyTheBest(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			g := NewWithT(t)
			random := rand.New(rand.NewPCG(seed, 0))
			var growers []Grower
			var own []float64
			for i := range 2 + random.IntN(6) {
				own = append(own, random.Float64()*0.5)
				growers = append(growers, Grower{Gain: falling(own[i]), Gang: Gang{
					Job: job(fmt.Sprintf("j%d", i)), Queue: "default", Workers: 1 + random.Int32N(60), Shape: Shape{Requests: Amounts{gpu: 1}},
				}})
			}
			room := 8 * (1 + random.Int32N(12))
			var nodes []Node
			for i := range room / 8 {
				nodes = append(nodes, nodeOf(fmt.Sprintf("n%d", i), 8))
			}
			limits, _ := cluster(nodes).LimitGrowth(growers, nil)
			best, sum := make([]int32, len(growers)), int32(0)
			for ; sum < room; sum++ {
				at := -1
				for i := range growers {
					if best[i] < growers[i].Workers && (at < 0 || growers[i].Gain(best[i]) > growers[at].Gain(best[at])) {
						at = i
					}
				}
				if at < 0 {
					break
				}
				best[at]++
			}
			worth := func(of func(int) int32) (all float64) {
				for i := range growers {
					for n := range of(i) {
						all += growers[i].Gain(n)
					}
				}
				return all
			}
			held := int32(0)
			for i := range growers {
				held += limits[growers[i].Job]
			}
			g.Expect(held).To(Equal(sum), "no room is left that somebody could use")
			g.Expect(worth(func(i int) int32 { return limits[growers[i].Job] })).To(
				BeNumerically(">=", 0.97*worth(func(i int) int32 { return best[i] })))
		})
	}
}
