package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// listHolders lists the jobs whose surplus the gang may take and that holds what the gang lacks, the largest first. answer is
// what Ask says of the gang.
func (m *Model) listHolders(g *Gang, answer *Answer) []Holder {
	key := m.holdersKey(g, answer) // Gangs of one kind that ask for the same share the answer.
	if known, ok := m.held[key]; ok {
		return known
	}
	// Where some of a step hold what the gang lacks, the whole step would leave.
	here, all := map[types.NamespacedName]int32{}, map[types.NamespacedName]int32{}
	surplus := m.surplusFor(g)
	helps := m.helpersAmong(g, answer, surplus)
	for _, p := range surplus {
		if m.steps != nil {
			all[p.Surplus.Job]++
		}
		if helps(p) {
			here[p.Surplus.Job]++
		}
	}
	var holders []Holder
	for job, n := range here {
		if s, inSteps := m.steps[job]; inSteps {
			n = min(s.atLeast(n), s.atMost(all[job]))
		}
		if n > 0 {
			holders = append(holders, Holder{Job: job, Workers: n})
		}
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Workers, a.Workers), cmp.Compare(a.Job.String(), b.Job.String()))
	})
	m.held[key] = holders
	return holders
}

// holdersKey is a key of everything that decides whose surplus helps the gang.
func (m *Model) holdersKey(g *Gang, answer *Answer) string {
	words := []string{m.kindOf(g), m.compile(&g.Shape).worker}
	for i := range g.Apart {
		words = append(words, m.compile(&g.Apart[i]).worker)
	}
	if answer.QueueLimit {
		words = append(words, "limit", answer.Short.String())
	}
	return strings.Join(words, "\n")
}

// helpersAmong returns whether the leaving of a pod, one of the surplus, would bring the gang nearer to its place. It would if
// the pod holds a resource that the queue's limit leaves too little of, or that its node lacks for workers which fit there once
// the surplus is gone. A pod without GPUs does not help a gang that waits for GPUs.
func (m *Model) helpersAmong(g *Gang, answer *Answer, surplus []*Pod) func(*Pod) bool {
	if g.beyondModel() != "" || m.isRuled(g) {
		takes := m.nodeSet(m.compile(&g.Shape)) // By which pods its rules keep it out is not asked: all of them may help.
		return func(p *Pod) bool { return takes[p.on.number] }
	}
	lacks := m.lackingFor(g, surplus)
	return func(p *Pod) bool {
		return answer.QueueLimit && p.Queue == g.Queue && p.holdsAny(answer.Short.names()) || p.holdsAny(lacks[p.on.number])
	}
}

// lackingFor lists by the number of each node what it lacks for workers of the gang that would fit there without the surplus.
func (m *Model) lackingFor(g *Gang, surplus []*Pod) map[int][]corev1.ResourceName {
	emptied := map[int][]int64{}
	for _, p := range surplus {
		if emptied[p.on.number] == nil {
			emptied[p.on.number] = slices.Clone(m.soonOn(p.on))
		}
		m.release(emptied[p.on.number], p)
	}
	lacks := map[int][]corev1.ResourceName{}
	for _, s := range append([]Shape{g.Shape}, g.Apart...) {
		a := m.compile(&s)
		for _, n := range a.nodes {
			without, now := emptied[n.number], m.soonOn(n)
			if without == nil {
				continue
			}
			fits := int64(a.countFitting(n, without, g.Workers))
			if a.wishes != nil && int64(a.countByDevices(n, now, g.Workers)) < fits {
				lacks[n.number] = append(lacks[n.number], devices.Number, devices.Memory)
			}
			for i, at := range a.at {
				if now[at] < fits*a.amount[i] {
					lacks[n.number] = append(lacks[n.number], m.names[at])
				}
			}
		}
	}
	return lacks
}

// holdsAny is true for a pod that holds some of any of the resources.
func (p *Pod) holdsAny(names []corev1.ResourceName) bool {
	return slices.ContainsFunc(names, func(name corev1.ResourceName) bool {
		return name == corev1.ResourcePods || p.Requests[name] > 0
	})
}
