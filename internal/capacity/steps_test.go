package capacity

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// inSteps is surplus of a job that changes its size by so many workers.
func inSteps(step int32, p Pod) Pod {
	p.Surplus.Step = step
	return p
}

func TestTheRestOfAStepLeavesToo(t *testing.T) {
	pods := func(n int32) (all []Pod) {
		for i := range n {
			all = append(all, inSteps(4, surplus("a", "x", 2+i, 1)))
		}
		return all
	}
	kept := func(p Pod) Pod {
		p.Kept = true
		return p
	}
	of := func(more []Pod, pods ...Pod) []Pod { return append(pods, more...) }
	for name, c := range map[string]struct {
		pods    []Pod
		workers int32
		leave   []string
	}{
		"one worker of two steps":           {pods(8), 1, []string{"x-9", "x-8", "x-7", "x-6"}},
		"a worker that is beyond its steps": {of(pods(5), used("a", 3)), 1, []string{"x-6"}},
		"a step and one beyond":             {of(pods(5), used("a", 3)), 2, []string{"x-6", "x-5", "x-4", "x-3", "x-2"}},
		"of another job, without steps":     {of(pods(4), used("a", 3), surplus("a", "y", 9, 1)), 1, []string{"y-9"}},
		"a step, though one of it must stay": {
			of(pods(8)[1:], kept(pods(8)[0])), 1, []string{"x-9", "x-8", "x-7", "x-6"}},
		"not a step if one of it must stay": {of(pods(8)[1:], kept(pods(8)[0])), 5, []string{}},
		"surplus that leaves already counts as gone": {
			of(pods(8)[:6], leaves(pods(8)[6]), leaves(pods(8)[7])), 3, []string{"x-7", "x-6"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := cluster([]Node{nodeOf("a", 8)}, c.pods...)
			g.Expect(uids(m.FindVictims(gangOf(c.workers, 1), anybody))).To(Equal(c.leave))
		})
	}
}

func TestAStepOnOneNodeLeavesAsAWhole(t *testing.T) {
	pods := func(within bool) (all []Pod) {
		for i, node := range []string{"a", "b", "a", "b"} {
			p := inSteps(2, surplus(node, "x", int32(2+i), 1))
			if within {
				p.Surplus.Within = node
			}
			all = append(all, p)
		}
		return all
	}
	nodes := []Node{nodeOf("a", 2), nodeOf("b", 2)}
	g := NewWithT(t)
	g.Expect(uids(cluster(nodes, pods(false)...).FindVictims(gangOf(1, 1), anybody))).To(Equal([]string{"x-5", "x-4"}))
	g.Expect(uids(cluster(nodes, pods(true)...).FindVictims(gangOf(1, 1), anybody))).To(Equal([]string{"x-5", "x-3"}), "of node b")
	g.Expect(uids(cluster(nodes, pods(true)...).FindVictims(gangOf(1, 2), anybody))).To(Equal([]string{"x-5", "x-3"}))
	g.Expect(cluster(nodes, pods(true)...).FindVictims(gangOf(3, 1), anybody)).To(HaveLen(4))
	ask := named("first", 1, time.Hour)
	verdicts, _, _ := cluster(nodes, pods(true)...).Judge(docket(ask), born)
	g.Expect(verdicts[ask.Job].Holders).To(Equal([]Holder{{types.NamespacedName{Name: "x"}, 4}}), "either node would do")
}

func TestStepsAreTakenWhereTheyServeMost(t *testing.T) {
	g := NewWithT(t)
	// One place on each of four nodes: single workers of four jobs would do, and four steps would leave for them.
	var nodes []Node
	var pods []Pod
	for i, node := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, nodeOf(node, 4))
		for j, job := range []string{"w", "x", "y", "z"} {
			pods = append(pods, inSteps(4, surplus(node, job, int32(4*i+j), 1)))
		}
	}
	m := cluster(nodes, pods...)
	g.Expect(m.FindVictims(gangOf(4, 1), anybody)).To(HaveLen(4), "all of one job")
	g.Expect(m.FindVictims(withMaster(4, 1, 1), anybody)).To(HaveLen(4))
	for _, p := range pods {
		p.Surplus.Step = 5
	}
	g.Expect(cluster(nodes, pods...).FindVictims(gangOf(4, 1), anybody)).To(HaveLen(4), "the four that are no whole step")
}

func TestStepsWithinTheLimitOfTheQueue(t *testing.T) {
	g := NewWithT(t)
	pods := []Pod{used("a", 2)}
	for i := range int32(6) {
		pods = append(pods, inSteps(3, surplus("a", "x", 2+i, 1)))
	}
	m := func(capability int64) *Model {
		return New(Snapshot{Nodes: []Node{nodeOf("a", 16)}, Pods: pods, Queues: []Queue{
			{Name: "default", Capability: Amounts{gpu: capability}, Allocated: Amounts{gpu: 8}},
		}})
	}
	g.Expect(uids(m(8).FindVictims(gangOf(2, 1), anybody))).To(Equal([]string{"x-7", "x-6", "x-5"}))
	g.Expect(m(8).FindVictims(gangOf(4, 1), anybody)).To(HaveLen(6))
	g.Expect(m(8).FindVictims(gangOf(7, 1), anybody)).To(BeEmpty())
}

func TestAnotherQueueKeepsItsShareAndWholeSteps(t *testing.T) {
	g := NewWithT(t)
	pods := []Pod{used("a", 4)}
	for i := range int32(4) {
		pods = append(pods, inSteps(2, surplus("a", "x", 2+i, 1)))
	}
	for i := range pods {
		pods[i].Queue = "other"
	}
	victims := func(deserved int64) []Surplus {
		return New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Pods: pods, Queues: []Queue{
			{Name: "default", Deserved: Amounts{gpu: 8}}, {Name: "other", Deserved: Amounts{gpu: deserved}, Allocated: Amounts{gpu: 8}},
		}}).FindVictims(gangOf(1, 1), anybody)
	}
	g.Expect(victims(6)).To(HaveLen(2))
	g.Expect(victims(7)).To(BeEmpty(), "one is beyond its share, and two would leave")
}

func TestHoldersCountWholeSteps(t *testing.T) {
	g := NewWithT(t)
	gold := nodeOf("a", 4)
	gold.Labels = map[string]string{"metal": "gold"}
	pods := []Pod{used("a", 1), surplus("a", "y", 2, 1)}
	for i := range int32(4) {
		pods = append(pods, inSteps(4, surplus([]string{"a", "b"}[i/2], "x", 2+i, 1)))
	}
	ask := named("first", 4, time.Hour)
	ask.Shape.NodeSelector = gold.Labels
	holders := func() []Holder {
		verdicts, _, _ := cluster([]Node{gold, nodeOf("b", 2)}, pods...).Judge(docket(ask), born)
		return verdicts[ask.Job].Holders
	}
	x, y := types.NamespacedName{Name: "x"}, types.NamespacedName{Name: "y"}
	g.Expect(holders()).To(Equal([]Holder{{x, 4}, {y, 1}}), "with the two on its nodes the others leave")
	pods[5].Kept = true
	g.Expect(holders()).To(Equal([]Holder{{y, 1}}), "one of them must stay, and so do all")
}

func TestASecondGangTakesWholeStepsOfWhatIsLeft(t *testing.T) {
	g := NewWithT(t)
	var pods []Pod
	for i := range int32(7) {
		pods = append(pods, inSteps(3, surplus("a", "x", 2+i, 1)))
	}
	m := cluster([]Node{nodeOf("a", 7)}, pods...)
	_, first, _ := m.Judge(docket(named("first", 2, time.Hour)), born)
	g.Expect(uids(first.Standing[0].Victims)).To(Equal([]string{"x-8", "x-7", "x-6", "x-5"}), "one beyond the steps, and a step")
	_, second, _ := m.Judge(docket(named("second", 1, time.Hour)), born)
	g.Expect(uids(second.Standing[0].Victims)).To(Equal([]string{"x-4", "x-3", "x-2"}))
}

// A gang whose worker 0 has another shape finds its victims one worker after another, so that they may be more.
func TestWholeStepsLeaveForAMasterOfAnotherShape(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	decided := 0
	for n := range 300 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		s := randomSteps(random, n%12)
		s.ask.Workers++
		s.ask.Apart = []Shape{{Requests: Amounts{gpu: 1 + random.Int64N(6)}}}
		chosen := s.set(cluster(s.nodes, s.pods...).FindVictims(s.ask, anybody))
		if chosen == 0 {
			if all := 1<<len(s.bit) - 1; !s.kept && s.fits(all) && !s.fits(0) {
				t.Fatalf("seed %d, cluster %d: no victims, and all surplus would do: %+v", seed, n, s)
			}
			continue
		}
		decided++
		if !s.whole(chosen) || !s.fits(chosen) {
			t.Fatalf("seed %d, cluster %d: %b leave: whole steps %t, fits %t: %+v", seed, n, chosen, s.whole(chosen), s.fits(chosen), s)
		}
	}
	if decided < 30 {
		t.Errorf("seed %d: only %d clusters had victims", seed, decided)
	}
}

// TestWholeStepsLeave compares with the subsets of the surplus, in random clusters. After the victims have left, the gang fits,
// each stepper has whole steps, and none could give fewer steps. Victims are found wherever some whole steps would do.
func TestWholeStepsLeave(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	decided, inSteps, more, least := 0, 0, 0, 0
	for n := range 600 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		s := randomSteps(random, n%12)
		victims := cluster(s.nodes, s.pods...).FindVictims(s.ask, anybody)
		chosen, best := s.set(victims), s.fewest()
		if found := chosen != 0; found != (best > 0) && (found || !s.kept) {
			t.Fatalf("seed %d, cluster %d: victims %v, and %d would do: %+v", seed, n, uids(victims), best, s)
		}
		if chosen == 0 {
			continue
		}
		if !s.whole(chosen) || !s.fits(chosen) {
			t.Fatalf("seed %d, cluster %d: %v leave: whole steps %t, fits %t: %+v", seed, n, uids(victims), s.whole(chosen),
				s.fits(chosen), s)
		}
		for _, own := range s.steppers {
			for part := chosen & own; part != 0; {
				part = (part - 1) & chosen & own
				if fewer := chosen&^own | part; s.whole(fewer) && s.fits(fewer) {
					t.Fatalf("seed %d, cluster %d: %v leave, and %b of %b would do: %+v", seed, n, uids(victims), fewer, chosen, s)
				}
			}
		}
		decided, more, least = decided+1, more+len(victims), least+best
		for _, v := range victims {
			if v.Step > 1 {
				inSteps++
				break
			}
		}
	}
	t.Logf("%d clusters had victims, %d of jobs with steps; %d left for want of %d", decided, inSteps, more, least)
	if decided < 60 || inSteps < 40 || float64(more) > 1.06*float64(least) {
		t.Errorf("seed %d: %d clusters had victims, %d of jobs with steps; %d left for want of %d", seed, decided, inSteps, more, least)
	}
}

// stepped is a random cluster in which each set of surplus is a number.
type stepped struct {
	nodes []Node
	pods  []Pod
	ask   *Gang
	// bit of each surplus pod, and the set of each stepper that it may be asked for.
	bit      map[types.UID]int
	steppers map[stepper]int
	// step of each job, and whether each of its steps is on one node. all is how many workers a stepper has.
	step   map[types.NamespacedName]int
	within map[types.NamespacedName]bool
	all    map[stepper]int
	// kept is true if some surplus must stay.
	kept bool
}

func randomSteps(random *rand.Rand, surplusPods int) *stepped {
	s := &stepped{bit: map[types.UID]int{}, steppers: map[stepper]int{}, step: map[types.NamespacedName]int{},
		within: map[types.NamespacedName]bool{}, all: map[stepper]int{}, ask: gangOf(1+random.Int32N(5), 1+random.Int64N(3))}
	s.nodes, s.pods = randomCluster(random, surplusPods)
	each := map[string]int64{}
	for i := range s.pods {
		v := s.pods[i].Surplus
		if v == nil {
			continue
		}
		if s.step[v.Job] == 0 { // All surplus of a job is alike.
			s.step[v.Job], each[v.Job.Name] = 1+random.IntN(4), s.pods[i].Requests[gpu]
			s.within[v.Job] = random.IntN(3) == 0
		}
		if each[v.Job.Name] < s.pods[i].Requests[gpu] {
			s.pods[i].Requests = Amounts{gpu: each[v.Job.Name]}
		}
		v.Step, v.Tier, v.WorkAtStake = int32(s.step[v.Job]), 1000, int64(v.Job.Name[1])
		if s.within[v.Job] {
			v.Within = s.pods[i].Node
		}
		s.all[v.stepper()]++
		if s.pods[i].Kept = random.IntN(12) == 0; s.pods[i].Kept {
			s.kept = true
			continue
		}
		s.bit[v.UID] = len(s.bit)
		s.steppers[v.stepper()] |= 1 << s.bit[v.UID]
	}
	return s
}

// set is some victims as a number.
func (s *stepped) set(victims []Surplus) (set int) {
	for _, v := range victims {
		set |= 1 << s.bit[v.UID]
	}
	return set
}

// whole is true if whole steps stay of each stepper of the set.
func (s *stepped) whole(set int) bool {
	for by, own := range s.steppers {
		if n := bits.OnesCount(uint(set & own)); n > 0 && (s.all[by]-n)%s.step[by.NamespacedName] != 0 {
			return false
		}
	}
	return true
}

// fits is true if the gang fits once the set is gone.
func (s *stepped) fits(set int) bool {
	var left []Pod
	for _, p := range s.pods {
		if p.Surplus != nil && !p.Kept && set&(1<<s.bit[p.Surplus.UID]) != 0 {
			continue
		}
		left = append(left, p)
	}
	return cluster(s.nodes, left...).fitsNow(s.ask)
}

// fewest is how many leave in the smallest set of whole steps that is enough; 0 if none is needed, or none is enough.
func (s *stepped) fewest() int {
	best := -1
	for set := range 1 << len(s.bit) {
		if n := bits.OnesCount(uint(set)); (best < 0 || n < best) && s.whole(set) && s.fits(set) {
			best = n
		}
	}
	return max(best, 0)
}
