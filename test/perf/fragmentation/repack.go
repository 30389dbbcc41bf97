package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// repackCommand is what writes the results of the page about repacking.
const repackCommand = "make bench-repack"

const (
	// full is which part of the GPUs is allocated when gangs begin to wait.
	full = 0.85
	// pauses is which part of the surplus is of jobs that may not grow now.
	pauses = 1.0 / 3
)

// surpluses are which part of the pods with GPUs is surplus.
var surpluses = []float64{0.3, 0.6}

// waitingGang is a gang that waits: so many workers of a shape.
type waitingGang struct {
	name    string
	workers int32
	each    shape
}

// gangsOfEight are gangs of eight GPUs, by how many of them a worker has.
var gangsOfEight = []waitingGang{
	{"one worker with 8", 1, large}, {"two with 4", 2, shape{32000, 128 << 10, 4}}, {"eight with 1", 8, shape{8000, 32 << 10, 1}},
}

// tenant is a pod that runs.
type tenant struct {
	shape

	name            string
	node            int
	surplus, paused bool
}

// packed is a cluster in which pods run.
type packed struct {
	nodes   []shape
	tenants []tenant
}

// fillOf fills nodes with pods that are drawn, each on the node with the fewest free GPUs that has room, or the most if they are
// to spread, until so many are allocated. A pod without room goes away.
func fillOf(nodes, pods []shape, seed uint64, spread bool, surplus float64) *packed {
	p, d := &packed{nodes: nodes}, newDrawer(pods, seed)
	random := rand.New(rand.NewPCG(seed, 27))
	free := append([]shape{}, nodes...)
	all, held := int64(0), int64(0)
	for _, n := range nodes {
		all += n.gpus
	}
	for float64(held) < full*float64(all) {
		of, best := d.next(), -1
		for i := range free {
			if of.gpus <= free[i].gpus && room(free[i], of) > 0 &&
				(best < 0 || (free[i].gpus < free[best].gpus) != spread && free[i].gpus != free[best].gpus) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		t := tenant{shape: of, node: best, name: fmt.Sprintf("pod-%05d", len(p.tenants))}
		if of.gpus > 0 && random.Float64() < surplus {
			t.surplus, t.paused = true, random.Float64() < pauses
		}
		p.tenants = append(p.tenants, t)
		free[best] = shape{free[best].cpu - of.cpu, free[best].memory - of.memory, free[best].gpus - of.gpus}
		held += of.gpus
	}
	return p
}

// model is the cluster as Tideline's model has it. Each surplus pod is a job of its own.
func (p *packed) model() *capacity.Model {
	s := capacity.Snapshot{Queues: []capacity.Queue{{Name: "q"}}}
	for i, n := range p.nodes {
		s.Nodes = append(s.Nodes, capacity.Node{Name: nodeName(i), Allocatable: amounts(n)})
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		pod := capacity.Pod{Node: nodeName(t.node), Queue: "q", Requests: amounts(t.shape)}
		if t.surplus {
			pod.Surplus = &capacity.Surplus{Job: types.NamespacedName{Name: t.name}, UID: types.UID(t.name)}
		}
		s.Pods = append(s.Pods, pod)
	}
	return capacity.New(s)
}

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// repacked is what became of one kind of gangs.
type repacked struct{ before, after, moves float64 }

// repack places gangs until none fits, and then with moves until none can be helped.
func (p *packed) repack(w waitingGang) (repacked, error) {
	g := &capacity.Gang{
		Job: types.NamespacedName{Name: "waits"}, Queue: "q", Workers: w.workers, Shape: capacity.Shape{Requests: amounts(w.each)},
	}
	number, byName := map[string]int{}, map[string]*tenant{}
	for i := range p.nodes {
		number[nodeName(i)] = i
	}
	for i := range p.tenants {
		byName[p.tenants[i].name] = &p.tenants[i]
	}
	movable := func(job types.NamespacedName) *capacity.Shape {
		if t := byName[job.Name]; !t.paused {
			return &capacity.Shape{Requests: amounts(t.shape)}
		}
		return nil
	}
	var r repacked
	for p.place(w) {
		r.before++
	}
	for r.after = r.before; ; r.after++ {
		advice, _ := p.model().AdviseRepack([]corev1.ResourceName{gpu}, []*capacity.Gang{g}, movable)
		if advice == nil {
			return r, nil
		}
		// Placing a gang appends to the tenants, which may move them in memory.
		for i := range p.tenants {
			byName[p.tenants[i].name] = &p.tenants[i]
		}
		for _, m := range advice.Moves {
			t := byName[string(m.UID)]
			if !t.surplus || t.paused || nodeName(t.node) != m.From {
				return r, fmt.Errorf("%s is a core, pauses, or is elsewhere", t.name)
			}
			t.node = number[m.To]
			r.moves++
		}
		if !p.place(w) {
			return r, errors.New("a gang does not fit after the moves that were to help it")
		}
	}
}

// place places a gang where its workers have room; false if not all have.
func (p *packed) place(w waitingGang) bool {
	free := append([]shape{}, p.nodes...)
	for i := range p.tenants {
		t := &p.tenants[i]
		f := &free[t.node]
		f.cpu, f.memory, f.gpus = f.cpu-t.cpu, f.memory-t.memory, f.gpus-t.gpus
	}
	var seats []tenant
	for i := range free {
		for n := room(free[i], w.each); n > 0 && len(seats) < int(w.workers); n-- {
			seats = append(seats, tenant{shape: w.each, node: i, name: fmt.Sprintf("gang-%05d-%d", len(p.tenants), len(seats))})
		}
	}
	if len(seats) < int(w.workers) {
		return false
	}
	p.tenants = append(p.tenants, seats...)
	return true
}

// runRepack writes the page about repacking.
func runRepack(nodes, pods []shape, seeds int, commit, page string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, at commit %s.\n\n", seeds, commit)
	b.WriteString("| pods | surplus, % of pods with GPUs | gangs of 8 GPUs | placed before | placed with moves | moves |\n" +
		"|---|---|---|---|---|---|\n")
	for _, spread := range []bool{false, true} {
		for _, surplus := range surpluses {
			for _, w := range gangsOfEight {
				var before, after, moves []float64
				for seed := range seeds {
					r, err := fillOf(nodes, pods, uint64(1+seed), spread, surplus).repack(w)
					if err != nil {
						return fmt.Errorf("%s, seed %d: %w", w.name, 1+seed, err)
					}
					before, after, moves = append(before, r.before), append(after, r.after), append(moves, r.moves)
				}
				fmt.Fprintf(&b, "| %s | %.0f | %s | %s | %s | %s |\n", map[bool]string{false: "packed", true: "spread"}[spread],
					100*surplus, w.name, say("%.1f", before), say("%.1f", after), say("%.1f", moves))
			}
		}
	}
	b.WriteString("\nMeans with 95 % intervals over the seeds. No core moved, and no surplus of a job that pauses: the " +
		"run would have failed.\n")
	return benchmark.WriteResults(page, repackCommand, b.String(), nil)
}
