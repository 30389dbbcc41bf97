package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// figures are those of one moment of a run.
type figures struct {
	// Arrived is how many GPUs pods have asked for so far, and Allocated how many they got, as parts of all GPUs.
	Arrived, Allocated float64
	// Unusable is the part of all GPUs that is free and that a pod of the mix cannot use on their node, as expected over the mix:
	// the measure of "Beware of Fragmentation" (USENIX ATC 2023), for whole GPUs. OfFree is the same as a part of free GPUs.
	Unusable, OfFree float64
	// Gangs is what reports have: the expected part of free GPUs that a gang of the mix cannot use. Here gangs are of one pod.
	Gangs float64
	// Whole is on how many nodes a pod of 8 GPUs, 64 cores and 256 GiB would find room.
	Whole int
}

// large is a pod that needs a whole node of 8 GPUs.
var large = shape{64000, 256 << 10, 8}

// room is how many pods of a shape fit into what is free.
func room(free, of shape) int64 {
	n := free.gpus / max(1, of.gpus)
	if of.cpu > 0 {
		n = min(n, free.cpu/of.cpu)
	}
	if of.memory > 0 {
		n = min(n, free.memory/of.memory)
	}
	return max(0, n)
}

// measure measures nodes of which so much is taken.
func measure(nodes, taken []shape, mix []drawn) figures {
	var f figures
	all, free, unusable := int64(0), int64(0), 0.0
	snapshot := capacity.Snapshot{}
	for i, n := range nodes {
		left := shape{n.cpu - taken[i].cpu, n.memory - taken[i].memory, n.gpus - taken[i].gpus}
		all += n.gpus
		free += left.gpus
		for _, d := range mix {
			if room(left, d.shape) == 0 {
				unusable += d.part * float64(left.gpus)
			}
		}
		if room(left, large) > 0 {
			f.Whole++
		}
		snapshot.Nodes = append(snapshot.Nodes, capacity.Node{
			Name: fmt.Sprintf("node-%04d", i), Allocatable: amounts(n), Held: amounts(taken[i]),
		})
	}
	f.Allocated, f.Unusable = float64(all-free)/float64(all), unusable/float64(all)
	if free > 0 {
		f.OfFree = unusable / float64(free)
	}
	var gangs []capacity.Drawn
	for _, d := range mix {
		gangs = append(gangs, capacity.Drawn{
			Gang: capacity.Gang{Workers: 1, Shape: capacity.Shape{Requests: amounts(d.shape)}}, Weight: d.part,
		})
	}
	f.Gangs = capacity.New(snapshot).MeasureFragmentation(gpu, gangs).Unusable
	return f
}

func amounts(of shape) capacity.Amounts {
	return capacity.Amounts{corev1.ResourceCPU: of.cpu, corev1.ResourceMemory: of.memory << 20, gpu: of.gpus}
}
