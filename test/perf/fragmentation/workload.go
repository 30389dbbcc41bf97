package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
)

// shape is what a node has, or a pod asks for: thousandths of a core, MiB and whole GPUs.
type shape struct{ cpu, memory, gpus int64 }

// columns of the traces, in the order of shape.
var (
	nodeColumns = [3]string{"cpu_milli", "memory_mib", "gpu"}
	podColumns  = [3]string{"cpu_milli", "memory_mib", "num_gpu"}
)

// readShapes reads one shape a row. A pod that asked for a part of a GPU asks for a whole one here.
func readShapes(from io.Reader, columns [3]string) ([]shape, error) {
	rows := csv.NewReader(from)
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the names of columns: %w", err)
	}
	var at [3]int
	for i, name := range columns {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return nil, fmt.Errorf("there is no column %s", name)
		}
	}
	var all []shape
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		cpu, err1 := strconv.ParseInt(row[at[0]], 10, 64)
		memory, err2 := strconv.ParseInt(row[at[1]], 10, 64)
		gpus, err3 := strconv.ParseInt(row[at[2]], 10, 64)
		if err := cmp.Or(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("row %d: %w", len(all)+2, err)
		}
		if min(cpu, memory, gpus) < 0 {
			return nil, fmt.Errorf("row %d: less than nothing", len(all)+2)
		}
		all = append(all, shape{cpu, memory, gpus})
	}
}

// drawn is how often pods of one shape come, as a part of all.
type drawn struct {
	shape

	part float64
}

// mixOf is the distribution of the shapes of pods that ask for GPUs.
func mixOf(pods []shape) []drawn {
	count, all := map[shape]int{}, 0
	for _, p := range pods {
		if p.gpus > 0 {
			count[p]++
			all++
		}
	}
	var mix []drawn
	for s, n := range count {
		mix = append(mix, drawn{s, float64(n) / float64(all)})
	}
	slices.SortFunc(mix, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory))
	})
	return mix
}

// drawer draws pods with replacement. The same seed draws the same pods.
type drawer struct {
	from   []shape
	random *rand.Rand
}

func newDrawer(from []shape, seed uint64) *drawer {
	return &drawer{from, rand.New(rand.NewPCG(seed, 23))}
}

func (d *drawer) next() shape { return d.from[d.random.IntN(len(d.from))] }
