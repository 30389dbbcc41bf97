package capacity

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// twoShares are queues a and b that deserve half of a node each, and c that deserves nothing.
func twoShares() []Queue {
	half := Amounts{gpu: 4}
	return []Queue{{Name: "a", Deserved: half}, {Name: "b", Deserved: half}, {Name: "c"}}
}

func TestWhoHoldsTheLeastOfItsShareIsServedFirst(t *testing.T) {
	g := NewWithT(t)
	in := func(queue string, p PastGang) PastGang {
		p.Queue = queue
		return p
	}
	m := New(Snapshot{Nodes: []Node{nodeOf("n", 8)}, Queues: twoShares()})
	fates, whole := m.ReplayPast(Past{End: 24 * time.Hour, Gangs: []PastGang{
		in("a", came("first", 4, 0, 9)), in("c", came("brief", 4, 0, 3)),
		in("c", came("of c", 4, 1, 2)), in("a", came("of a", 4, 1, 2)), in("b", came("of b", 4, 2, 2)),
	}})
	g.Expect(whole).To(BeTrue())
	waited := make([]time.Duration, len(fates))
	for i := range fates {
		waited[i] = fates[i].Waited / time.Hour
	}
	g.Expect(waited).To(Equal([]time.Duration{0, 0, 6, 4, 1}), "b holds nothing; a holds its share, and c has none")
}

func TestAGangOfAQueueWithLittleIsForeseenBeforeOlderOnes(t *testing.T) {
	start := func(queue string) time.Duration {
		asked, old := named("new", 4, -time.Hour), named("old", 4, time.Hour)
		x, y := workerOf("x", 4), workerOf("y", 4)
		asked.Queue, old.Queue, x.Queue, y.Queue = queue, "a", "a", "a"
		m := New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Queues: []Queue{
			{Name: "a", Deserved: Amounts{gpu: 4}, Allocated: Amounts{gpu: 8}}, twoShares()[1],
		}, Pods: []Pod{x, y}})
		after, placed := m.ForeseeStart(asked, []*Gang{old}, lasting(map[string]int{"x": 1, "y": 2, "old": 50}))
		NewWithT(t).Expect(placed).To(BeTrue())
		return after
	}
	NewWithT(t).Expect(start("a")).To(Equal(2*time.Hour), "an older one of the same queue goes first")
	NewWithT(t).Expect(start("b")).To(Equal(time.Hour), "of another queue, which has its share, it does not")
}

func TestQueuesTakeTurnsAsTheyFill(t *testing.T) {
	qs := newQuotas(twoShares())
	qs.total = Amounts{gpu: 8}
	var order []int
	still := qs.tryByShare([]string{"a", "a", "a", "b", "b", "c", "b"}, func(i int) bool {
		order = append(order, i)
		queue := []string{"a", "a", "a", "b", "b", "c", "b"}[i]
		if queue == "b" && i == 4 {
			return false // It has no room.
		}
		qs.addAllocated(queue, Amounts{gpu: 1})
		return true
	})
	g := NewWithT(t)
	g.Expect(order).To(Equal([]int{0, 3, 1, 4, 6, 2, 5}))
	g.Expect(still).To(Equal([]bool{false, false, false, false, true, false, false}))
}

func TestAQueueDeservesItsGuaranteeAndNoMoreThanItsLimit(t *testing.T) {
	qs := newQuotas([]Queue{
		{Name: "guaranteed", Guarantee: Amounts{gpu: 2}, Allocated: Amounts{gpu: 1}},
		{Name: "limited", Deserved: Amounts{gpu: 4}, Capability: Amounts{gpu: 2}, Allocated: Amounts{gpu: 1}},
		{Name: "nothing", Deserved: Amounts{gpu: 0}, Allocated: Amounts{gpu: 1}},
	})
	qs.total = Amounts{gpu: 8}
	g := NewWithT(t)
	for name, half := range map[string]bool{"guaranteed": true, "limited": true, "nothing": false, "unknown": false} {
		share, deserves := qs.shareOf(name)
		g.Expect(deserves).To(Equal(half), name)
		g.Expect(share).To(Equal(map[bool]float64{true: 0.5, false: 1}[half]), name)
	}
}
