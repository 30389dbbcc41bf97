package describe

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// coreAsk lists what the core asks together: GPUs and other extended resources first, then CPU and memory.
func (d *description) coreAsk() string {
	requests := trainingpod.CoreRequests(d.Job, d.Minimum)
	var ordinary, extended []string
	for name, quantity := range requests {
		item := quantity.String() + " " + string(name)
		if strings.Contains(string(name), "/") {
			extended = append(extended, item)
		} else if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			ordinary = append(ordinary, item)
		}
	}
	slices.Sort(ordinary)
	slices.Sort(extended)
	if all := slices.Concat(extended, ordinary); len(all) > 0 {
		return strings.Join(all, ", ") + d.onModels()
	}
	return "no resource requests" + d.onModels()
}

// onModels names the models of accelerator that the core may run on; empty if it names none.
func (d *description) onModels() string {
	switch a := d.Spec.Accelerator; {
	case a == nil:
		return ""
	case d.Status.Attempt != nil && d.Status.Attempt.Model != "":
		return "; of model " + d.Status.Attempt.Model
	default:
		return "; of models " + strings.Join(a.Models, ", ")
	}
}
