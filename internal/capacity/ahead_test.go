package capacity

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// until is a pod that leaves so long after the test's beginning.
func until(gpus int64, in time.Duration) Pod {
	p := used("a", gpus)
	p.Until = born.Add(in)
	return p
}

func TestWhoGoesAheadKnowsWhenTheHeadHasRoom(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 8)}, until(2, time.Hour), until(2, 2*time.Hour), until(1, 2*time.Hour))
	head := named("head", 6, 0)
	ahead := m.JudgeAhead(head, []*Gang{named("small", 1, 0), named("mid", 2, 0), named("three", 3, 0), named("large", 4, 0)})
	g.Expect(ahead).To(Equal(map[types.NamespacedName]Ahead{
		job("small"): {HeadAt: born.Add(2 * time.Hour), Spare: true},
		job("mid"):   {HeadAt: born.Add(2 * time.Hour), Spare: true},
		job("three"): {HeadAt: born.Add(2 * time.Hour)},
	}))
	g.Expect(m.fitsNow(named("three", 3, 0))).To(BeTrue(), "the model itself is as before")
}

func TestNoOneGoesAheadOfAHeadWhoseRoomNothingTells(t *testing.T) {
	g := NewWithT(t)
	small := []*Gang{named("small", 1, 0)}
	for name, m := range map[string]*Model{
		"it fits":                    cluster([]Node{nodeOf("a", 8)}, until(2, time.Hour)),
		"others stay, for all known": cluster([]Node{nodeOf("a", 8)}, used("a", 4), until(2, time.Hour)),
	} {
		g.Expect(m.JudgeAhead(named("head", 6, 0), small)).To(BeEmpty(), name)
	}
	unmodelled := named("head", 6, 0)
	unmodelled.Shape.Unmodelled = "a volume"
	g.Expect(cluster([]Node{nodeOf("a", 4)}, until(2, time.Hour)).JudgeAhead(unmodelled, small)).To(BeEmpty())
}

func TestRoomThatSurplusOrLeavingPodsGiveUpIsTheHeads(t *testing.T) {
	g := NewWithT(t)
	leaving := used("a", 4)
	leaving.Leaving = true
	for name, p := range map[string]Pod{"leaving": leaving, "surplus": surplus("a", "x", 3, 4)} {
		m := cluster([]Node{nodeOf("a", 8)}, p, until(2, time.Hour))
		g.Expect(m.JudgeAhead(named("head", 6, 0), []*Gang{named("small", 1, 0)})).To(Equal(
			map[types.NamespacedName]Ahead{job("small"): {}}), name)
	}
}

func TestTheLimitOfTheQueueCountsForTheHead(t *testing.T) {
	g := NewWithT(t)
	m := New(Snapshot{
		Nodes: []Node{nodeOf("a", 100)}, Pods: []Pod{until(4, time.Hour), until(2, 2*time.Hour)},
		Queues: []Queue{{Name: "default", Capability: Amounts{gpu: 8}, Allocated: Amounts{gpu: 6}}},
	})
	g.Expect(m.JudgeAhead(named("head", 5, 0), []*Gang{named("small", 1, 0), named("two", 2, 0)})).To(Equal(
		map[types.NamespacedName]Ahead{
			job("small"): {HeadAt: born.Add(time.Hour), Spare: true}, job("two"): {HeadAt: born.Add(time.Hour)},
		}))
}

// TestGoingAheadNeverDelaysTheHead plays what JudgeAhead allows on one node, with pods that leave when they are expected to.
func TestGoingAheadNeverDelaysTheHead(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c, allowed := rand.New(rand.NewPCG(seed, 0)), 0
	for range 2000 {
		size := 4 + c.Int64N(12)
		free := size
		var pods []Pod
		for range c.IntN(6) {
			if n := 1 + c.Int64N(4); n <= free {
				free -= n
				pods = append(pods, until(n, time.Duration(c.IntN(8))*time.Hour))
			}
		}
		head, other := named("head", 1+c.Int32N(int32(size)), 0), named("other", 1+c.Int32N(6), 0)
		// startOf is the hour in which the head fits.
		startOf := func(extra int64, end int) int {
			for hour := range 30 {
				held := int64(0)
				for i := range pods {
					if pods[i].Until.After(born.Add(time.Duration(hour) * time.Hour)) {
						held += pods[i].Requests[gpu]
					}
				}
				if hour < end {
					held += extra
				}
				if held+int64(head.Workers) <= size {
					return hour
				}
			}
			return -1
		}
		lasts := c.IntN(10)
		a, may := cluster([]Node{nodeOf("a", size)}, pods...).JudgeAhead(head, []*Gang{other})[other.Job]
		if may = may && (a.Spare || !born.Add(time.Duration(lasts)*time.Hour).After(a.HeadAt)); !may {
			continue
		}
		allowed++
		if without, with := startOf(0, 0), startOf(int64(other.Workers), lasts); with != without {
			t.Fatalf("seed %d: the head of %d in %d begins in hour %d and not in %d, behind %d for %d hours: %+v",
				seed, head.Workers, size, with, without, other.Workers, lasts, pods)
		}
	}
	if allowed < 20 {
		t.Errorf("seed %d: only %d went ahead", seed, allowed)
	}
}
