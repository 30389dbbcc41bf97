package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

// came is a gang of so many workers of one GPU that came after so many hours, in the order of hours, and lasts for some.
func came(name string, workers int32, after, lasts int) PastGang {
	hours := func(n int) time.Duration { return time.Duration(n) * time.Hour }
	g := PastGang{Gang: *named(name, workers, 0), Came: hours(after), Lasts: hours(lasts)}
	g.Created = born.Add(g.Came)
	return g
}

// inTier has a gang be of a tier, which may stop another.
func inTier(g PastGang, tier string, priority int32, preempts ...string) PastGang {
	g.TierName, g.Tier, g.Priority, g.Preempts = tier, priority, priority, preempts
	return g
}

func TestReplayPast(t *testing.T) {
	began := came("old", 6, 0, 3)
	began.Began = true
	outside := PastPod{Pod: used("a", 4), From: time.Hour, To: 4 * time.Hour}
	before := outside
	before.From = 0
	second := came("y", 2, 1, 3)
	second.Follows = ptr.To(0)
	const unplaced = -1
	type fate struct{ waited, held, stopped int } // hours; waited is unplaced for one without room
	for name, c := range map[string]struct {
		gangs []PastGang
		pods  []PastPod
		queue Queue
		admit func(at time.Duration, asking, inside []int) []int
		fates []fate
	}{
		"room for all": {gangs: []PastGang{came("x", 4, 1, 2), came("y", 4, 1, 30)}, fates: []fate{{0, 2, 0}, {0, 23, 0}}},
		"one waits until another ends": {
			gangs: []PastGang{came("x", 6, 0, 5), came("y", 4, 1, 2)}, fates: []fate{{0, 5, 0}, {4, 2, 0}},
		},
		"a small one goes ahead": {
			gangs: []PastGang{came("x", 6, 0, 5), came("y", 8, 1, 2), came("z", 2, 2, 1)}, fates: []fate{{0, 5, 0}, {4, 2, 0}, {0, 1, 0}},
		},
		"one that ran already comes before": {
			gangs: []PastGang{began, came("y", 8, 0, 2)}, fates: []fate{{0, 3, 0}, {3, 2, 0}},
		},
		"never": {gangs: []PastGang{came("x", 9, 4, 5)}, fates: []fate{{unplaced, 0, 0}}},
		"other pods hold what they held": {
			gangs: []PastGang{came("x", 8, 2, 5)}, pods: []PastPod{outside}, fates: []fate{{2, 5, 0}},
		},
		"those that were there come before gangs that ran": {
			gangs: []PastGang{began, came("y", 2, 0, 1)}, pods: []PastPod{before}, fates: []fate{{4, 3, 0}, {0, 1, 0}},
		},
		"another attempt comes once the one before has ended": {
			gangs: []PastGang{came("x", 6, 0, 5), second, came("z", 2, 2, 3)}, fates: []fate{{0, 5, 0}, {0, 3, 0}, {0, 3, 0}},
		},
		"the limit of a queue": {
			gangs: []PastGang{came("x", 2, 0, 5), came("y", 3, 1, 5)}, queue: Queue{Capability: Amounts{gpu: 4}},
			fates: []fate{{0, 5, 0}, {4, 5, 0}},
		},
		"a gate": {
			gangs: []PastGang{came("x", 2, 0, 5), came("y", 3, 1, 5)},
			admit: func(_ time.Duration, asking, inside []int) []int {
				if len(inside) > 0 {
					return nil
				}
				return asking[:1]
			},
			fates: []fate{{0, 5, 0}, {4, 5, 0}},
		},
		"who is stopped goes on": {
			gangs: []PastGang{
				inTier(came("x", 5, 0, 5), "low", 1), inTier(came("y", 3, 0, 9), "low", 1),
				inTier(came("z", 4, 2, 3), "high", 2, "low"),
			},
			fates: []fate{{0, 5, 1}, {0, 9, 0}, {0, 3, 0}},
		},
		"who is stopped leaves more room than was needed": {
			gangs: []PastGang{
				inTier(came("x", 8, 0, 9), "low", 1), inTier(came("small", 2, 1, 9), "low", 1),
				inTier(came("z", 4, 2, 3), "high", 2, "low"),
			},
			fates: []fate{{0, 9, 1}, {1, 9, 0}, {0, 3, 0}},
		},
		"gangs that are alike but for their tiers": {
			gangs: []PastGang{
				inTier(came("x", 8, 0, 9), "dev", 1), inTier(came("y", 4, 1, 2), "high", 3, "batch"),
				inTier(came("z", 4, 2, 3), "mid", 2, "batch", "dev"),
			},
			fates: []fate{{0, 9, 1}, {1, 2, 0}, {0, 3, 0}},
		},
		"only another tier is stopped": {
			gangs: []PastGang{inTier(came("x", 5, 0, 5), "low", 1), inTier(came("z", 4, 2, 3), "mid", 2, "other")},
			fates: []fate{{0, 5, 0}, {3, 3, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.queue.Name = "default"
			m := New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Queues: []Queue{c.queue}})
			past := Past{Gangs: c.gangs, Pods: c.pods, End: 24 * time.Hour, Admit: c.admit}
			fates, whole := m.ReplayPast(past)
			g.Expect(whole).To(BeTrue())
			for i, want := range c.fates {
				got := fates[i]
				g.Expect(got.Placed).To(Equal(want.waited != unplaced), "%d is placed", i)
				if got.Placed {
					g.Expect(got.Waited).To(Equal(time.Duration(want.waited)*time.Hour), "%d waited", i)
				}
				g.Expect(got.Held).To(Equal(time.Duration(want.held)*time.Hour), "%d held", i)
				g.Expect(got.Stopped).To(Equal(want.stopped), "%d stopped", i)
			}
			again, _ := m.ReplayPast(past)
			g.Expect(again).To(Equal(fates), "the model is as it was, and another replay ends the same")
		})
	}
}

func TestAReplayThatIsStoppedSaysNothing(t *testing.T) {
	for after := range 3 {
		asked := 0
		fates, whole := cluster([]Node{nodeOf("a", 8)}).ReplayPast(Past{
			Gangs: []PastGang{came("x", 2, 1, 5), came("y", 2, 2, 5)}, End: 24 * time.Hour,
			Stop: func() bool { asked++; return asked > after },
		})
		g := NewWithT(t)
		g.Expect(whole).To(BeFalse(), "after %d events", after)
		g.Expect(fates).To(BeNil())
	}
}

// In any past: every gang that fits alone is placed in the end and holds its room for as long as it lasts, in all, however often
// it is stopped; and where there is room for all none waits or is stopped.
func TestLawsOfReplays(t *testing.T) {
	stopped := 0
	for seed := range uint64(200) {
		g, r := NewWithT(t), rand.New(rand.NewPCG(seed, 7))
		past := Past{End: 2000 * time.Hour}
		for i := range 30 {
			gang := inTier(came(fmt.Sprint("g", i), 1+r.Int32N(8), i, 1+r.IntN(20)), "low", 1)
			if r.IntN(2) == 0 {
				gang = inTier(gang, "high", 2, "low")
			}
			past.Gangs = append(past.Gangs, gang)
		}
		fates, whole := cluster([]Node{nodeOf("a", 6), nodeOf("b", 3)}).ReplayPast(past)
		g.Expect(whole).To(BeTrue())
		for i, fate := range fates {
			g.Expect(fate.Placed).To(BeTrue(), "seed %d, gang %d", seed, i)
			g.Expect(fate.Held).To(Equal(past.Gangs[i].Lasts), "seed %d, gang %d", seed, i)
			stopped += fate.Stopped
		}
		alone, _ := cluster([]Node{nodeOf("a", 300)}).ReplayPast(past)
		for i, fate := range alone {
			g.Expect(fate).To(Equal(Fate{Placed: true, Held: past.Gangs[i].Lasts}), "seed %d, gang %d", seed, i)
		}
	}
	NewWithT(t).Expect(stopped).To(BeNumerically(">", 100), "gangs were stopped")
}
