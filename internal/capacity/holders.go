package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// bottleneck is what holds a gang up. answer is what Ask says of the gang.
type bottleneck struct {
	demand
	answer *Answer
}

func (m *Model) bottleneckOf(g *Gang, answer *Answer) bottleneck {
	return bottleneck{m.demandOf(g), answer}
}

// holders are the jobs whose surplus the gang may take and that holds what the gang lacks, the largest first.
func (b bottleneck) holders() []Holder {
	key := b.key() // Gangs of one kind that ask for the same share the answer.
	if known, ok := b.held[key]; ok {
		return known
	}
	// Where some of a step hold what the gang lacks, the whole step would leave.
	here, all := map[stepper]int32{}, map[stepper]int32{}
	surplus := b.surplusFor(b.g)
	helps := b.helpersAmong(surplus)
	for _, p := range surplus {
		if b.steps != nil {
			all[p.Surplus.stepper()]++
		}
		if helps(p) {
			here[p.Surplus.stepper()]++
		}
	}
	byJob := map[types.NamespacedName]int32{}
	for by, n := range here {
		if s, inSteps := b.steps[by]; inSteps {
			n = min(s.atLeast(n), s.atMost(all[by]))
		}
		byJob[by.NamespacedName] += n
	}
	var holders []Holder
	for job, n := range byJob {
		if n > 0 {
			holders = append(holders, Holder{Job: job, Workers: n})
		}
	}
	slices.SortFunc(holders, func(x, y Holder) int {
		return cmp.Or(cmp.Compare(y.Workers, x.Workers), cmp.Compare(x.Job.String(), y.Job.String()))
	})
	b.held[key] = holders
	return holders
}

// key is the same for gangs that the same surplus helps.
func (b bottleneck) key() string {
	words := []string{b.kindOf(b.g), b.worker.worker}
	for i := range b.g.Apart {
		words = append(words, b.compile(&b.g.Apart[i]).worker)
	}
	if b.answer.QueueLimit {
		words = append(words, "limit", b.answer.Short.String())
	}
	return strings.Join(words, "\n")
}

// helpersAmong returns whether the leaving of a pod, one of the surplus, would bring the gang nearer to its place. It would if
// the pod holds a resource that the queue's limit leaves too little of, or that its node lacks for workers which fit there once
// the surplus is gone. A pod without GPUs does not help a gang that waits for GPUs.
func (b bottleneck) helpersAmong(surplus []*Pod) func(*Pod) bool {
	if b.g.beyondModel() != "" || b.isRuled(b.g) {
		takes := b.nodeSet(b.worker) // By which pods its rules keep it out is not asked: all of them may help.
		return func(p *Pod) bool { return takes[p.on.number] }
	}
	lacks := b.lackingWith(surplus)
	return func(p *Pod) bool {
		return b.answer.QueueLimit && p.Queue == b.g.Queue && p.holdsAny(b.answer.Short.names()) || p.holdsAny(lacks[p.on.number])
	}
}

// lackingWith lists by the number of each node what it lacks for workers of the gang that would fit there without the surplus.
func (b bottleneck) lackingWith(surplus []*Pod) map[int][]corev1.ResourceName {
	emptied := map[int][]int64{}
	for _, p := range surplus {
		if emptied[p.on.number] == nil {
			emptied[p.on.number] = slices.Clone(b.soonOn(p.on))
		}
		b.release(emptied[p.on.number], p)
	}
	lacks := map[int][]corev1.ResourceName{}
	for _, s := range append([]Shape{b.g.Shape}, b.g.Apart...) {
		a := b.compile(&s)
		for _, n := range a.nodes {
			without, now := emptied[n.number], b.soonOn(n)
			if without == nil {
				continue
			}
			fits := int64(a.countFitting(n, without, b.g.Workers))
			if a.wishes != nil && int64(a.countByDevices(n, now, b.g.Workers)) < fits {
				lacks[n.number] = append(lacks[n.number], devices.Number, devices.Memory)
			}
			for i, at := range a.at {
				if now[at] < fits*a.amount[i] {
					lacks[n.number] = append(lacks[n.number], b.names[at])
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
