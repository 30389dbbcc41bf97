package capacity

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// workerOf is a pod of a training on node a.
func workerOf(of string, gpus int64) Pod {
	p := used("a", gpus)
	p.Job = job(of)
	return p
}

// lasting is a future in which each gang lasts so many hours, and 100 where it is not listed.
func lasting(hours map[string]int) Future {
	return Future{
		Lasts: func(of types.NamespacedName) time.Duration {
			if h, listed := hours[of.Name]; listed {
				return time.Duration(h) * time.Hour
			}
			return 100 * time.Hour
		}, Now: born, Horizon: 99 * time.Hour,
	}
}

func TestAGangIsForeseenOnceWhoHoldsItsRoomHasEnded(t *testing.T) {
	leaves := used("a", 2)
	leaves.Until = born.Add(5 * time.Hour)
	for name, c := range map[string]struct {
		pods   []Pod
		others []*Gang
		hours  map[string]int
		after  int // hours; less than 0 for never
	}{
		"it fits": {pods: []Pod{workerOf("x", 2)}, after: 0},
		"one must end": {
			pods: []Pod{workerOf("x", 2), workerOf("x", 2), workerOf("y", 4)}, hours: map[string]int{"x": 7, "y": 9}, after: 9,
		},
		"two end together":      {pods: []Pod{workerOf("x", 4), workerOf("y", 4)}, hours: map[string]int{"x": 7, "y": 7}, after: 7},
		"pods of others stay":   {pods: []Pod{used("a", 4), workerOf("x", 4)}, hours: map[string]int{"x": 1}, after: -1},
		"whose end is known":    {pods: []Pod{leaves, workerOf("x", 2)}, after: 5},
		"nothing ends in time":  {pods: []Pod{workerOf("x", 4)}, after: -1},
		"surplus gives way":     {pods: []Pod{surplus("a", "x", 3, 6)}, after: 0},
		"leaving pods are gone": {pods: []Pod{{Node: "a", Queue: "default", Requests: Amounts{gpu: 4}, Leaving: true}}, after: 0},
		"an older one goes first": {
			pods: []Pod{workerOf("x", 6)}, others: []*Gang{named("old", 8, time.Hour)}, hours: map[string]int{"x": 2, "old": 3}, after: 5,
		},
		"a younger one does not": {
			pods: []Pod{workerOf("x", 6)}, others: []*Gang{named("new", 8, -time.Hour)}, hours: map[string]int{"x": 2, "new": 3}, after: 2,
		},
		"a small one goes ahead": {
			pods: []Pod{workerOf("x", 6)}, others: []*Gang{named("new", 2, -time.Hour)}, hours: map[string]int{"x": 2, "new": 1}, after: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := cluster([]Node{nodeOf("a", 8)}, c.pods...)
			before := m.Ask(named("asked", 6, 0))
			after, placed := m.ForeseeStart(named("asked", 6, 0), c.others, lasting(c.hours))
			g.Expect(placed).To(Equal(c.after >= 0))
			if placed {
				g.Expect(after).To(Equal(time.Duration(c.after) * time.Hour))
			}
			g.Expect(m.Ask(named("asked", 6, 0))).To(Equal(before), "the model is as it was")
		})
	}
}

func TestTheLimitOfTheQueueIsForeseen(t *testing.T) {
	g := NewWithT(t)
	m := New(Snapshot{
		Nodes: []Node{nodeOf("a", 100)}, Pods: []Pod{workerOf("x", 4), workerOf("y", 2)},
		Queues: []Queue{{Name: "default", Capability: Amounts{gpu: 8}, Allocated: Amounts{gpu: 6}}},
	})
	first := named("first", 6, time.Hour)
	after, placed := m.ForeseeStart(named("asked", 6, 0), []*Gang{first}, lasting(map[string]int{"x": 3, "y": 4, "first": 1}))
	g.Expect(placed).To(BeTrue())
	g.Expect(after).To(Equal(4*time.Hour), "both fit the nodes; the limit lets the first in at 3, and the other when it has ended")
}

func TestWhatTheModelDoesNotCoverIsNotForeseen(t *testing.T) {
	asked := named("asked", 1, 0)
	asked.Shape.Unmodelled = "a volume"
	_, placed := cluster([]Node{nodeOf("a", 8)}).ForeseeStart(asked, nil, lasting(nil))
	NewWithT(t).Expect(placed).To(BeFalse())
}
