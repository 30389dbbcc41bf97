package capacity

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// fairness is two queues on two nodes of eight GPUs each.
type fairness struct{ s Snapshot }

func newFairness(ads, search int64) *fairness {
	f := &fairness{}
	for _, name := range []string{"a", "b"} {
		f.s.Nodes = append(f.s.Nodes, Node{Name: name, Allocatable: Amounts{gpu: 8}})
	}
	for name, deserved := range map[string]int64{"ads": ads, "search": search} {
		f.s.Queues = append(f.s.Queues, Queue{Name: name, Deserved: Amounts{gpu: deserved}, Allocated: Amounts{}})
	}
	return f
}

// hold places so many workers of a queue's job with so many GPUs on a node; surplus may be taken.
func (f *fairness) hold(queue, node string, n int, each int64, surplus bool) {
	for range n {
		p := Pod{Node: node, Queue: queue, Requests: Amounts{gpu: each}}
		if i := len(f.s.Pods); surplus {
			p.Surplus = &Surplus{Job: types.NamespacedName{Name: queue}, UID: types.UID(fmt.Sprint(queue, i)), Index: int32(i)}
		}
		f.s.Pods = append(f.s.Pods, p)
		for i := range f.s.Queues {
			if f.s.Queues[i].Name == queue {
				f.s.Queues[i].Allocated[gpu] += each
			}
		}
	}
}

// leave counts who must leave for so many workers of ads that wait with so many GPUs each.
func (f *fairness) leave(n int, each int64) int {
	var claims []*Gang
	for range n {
		claims = append(claims, &Gang{
			Job: types.NamespacedName{Name: "ads"}, Queue: "ads", Workers: 1, Shape: Shape{Requests: Amounts{gpu: each}},
		})
	}
	told, _ := New(f.s).ShareFairly(claims, func(_ *Gang, job types.NamespacedName) bool { return job.Name != "ads" })
	return len(told[types.NamespacedName{Name: "search"}].GiveUp)
}

func TestTheRestOfAStepServesTheNextClaim(t *testing.T) {
	f := newFairness(8, 8)
	f.hold("search", "a", 8, 1, true)
	f.hold("search", "b", 8, 1, true)
	for i := range f.s.Pods {
		f.s.Pods[i].Surplus.Step = 4
	}
	g := NewWithT(t)
	g.Expect(f.leave(3, 1)).To(Equal(4))
	g.Expect(f.leave(4, 1)).To(Equal(4), "one step makes room for all four")
	g.Expect(f.leave(5, 1)).To(Equal(8))
}

func TestFairSurplus(t *testing.T) {
	for name, c := range map[string]struct {
		shares [2]int64
		hold   func(*fairness)
		waits  int
		each   int64
		leave  int
	}{
		"up to the shares of both": {[2]int64{8, 8}, func(f *fairness) {
			f.hold("ads", "a", 1, 1, false)
			f.hold("search", "a", 7, 1, true)
			f.hold("search", "b", 8, 1, true)
		}, 15, 1, 7},
		"only as many as wait": {[2]int64{8, 8}, func(f *fairness) {
			f.hold("search", "a", 8, 1, true)
			f.hold("search", "b", 8, 1, true)
		}, 3, 1, 3},
		"not a core": {[2]int64{8, 8}, func(f *fairness) {
			f.hold("search", "a", 8, 1, false)
			f.hold("search", "b", 6, 1, false)
			f.hold("search", "b", 2, 1, true)
		}, 5, 1, 2},
		"not below the share of who gives": {[2]int64{8, 14}, func(f *fairness) {
			f.hold("search", "a", 8, 1, true)
			f.hold("search", "b", 8, 1, true)
		}, 5, 1, 2},
		"not above the share of who takes": {[2]int64{2, 8}, func(f *fairness) {
			f.hold("ads", "a", 1, 1, true)
			f.hold("search", "a", 7, 1, true)
			f.hold("search", "b", 8, 1, true)
		}, 5, 1, 1},
		"not by more than a step": {[2]int64{8, 8}, func(f *fairness) {
			f.hold("ads", "a", 7, 1, true)
			f.hold("search", "a", 1, 1, true)
			f.hold("search", "b", 8, 1, true)
		}, 2, 2, 0},
		"whole workers, on one node": {[2]int64{8, 8}, func(f *fairness) {
			f.hold("search", "a", 8, 1, true)
			f.hold("search", "b", 2, 4, true)
		}, 1, 8, 2},
		"nobody where room is free": {[2]int64{8, 8}, func(f *fairness) {
			f.hold("search", "a", 8, 1, true)
			f.hold("search", "b", 4, 1, true)
		}, 4, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFairness(c.shares[0], c.shares[1])
			c.hold(f)
			NewWithT(t).Expect(f.leave(c.waits, c.each)).To(Equal(c.leave))
		})
	}
}
