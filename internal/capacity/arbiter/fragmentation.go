package arbiter

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// mixAge is how long after its creation an ended job still counts in the mix.
const mixAge = 7 * 24 * time.Hour

// MeasureFragmentation measures how much of all accelerators is free now, and how much of that the gangs of present jobs and
// merges could not use: of those that have not ended or were created within a week. It may be called concurrently, once
// Volcano's kinds are served.
func (a *Arbiter) MeasureFragmentation(ctx context.Context) (capacity.Fragmentation, error) {
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return capacity.Fragmentation{}, err
	}
	defer done()
	c := a.newCollector(m, a.now())
	var resources []corev1.ResourceName
	for _, name := range a.config.MeasuredAccelerators() {
		resources = append(resources, corev1.ResourceName(name))
	}
	return capacity.New(c.snapshot(ctx)).FragmentationOf(resources, c.referenceMix()), nil
}

// referenceMix lists the gangs of jobs and merges. Equal gangs are one entry, weighted by their number.
func (c *collector) referenceMix() []capacity.Drawn {
	at, mix := map[string]int{}, []capacity.Drawn{}
	draw := func(workers int32, shape capacity.Shape) {
		key, err := json.Marshal([]any{workers, shape})
		if err != nil {
			return // Marshalling a shape never fails.
		}
		i, known := at[string(key)]
		if !known {
			i = len(mix)
			at[string(key)] = i
			mix = append(mix, capacity.Drawn{Gang: capacity.Gang{Workers: workers, Shape: shape}})
		}
		mix[i].Weight++
	}
	recent := func(created time.Time, ended bool) bool { return !ended || c.now.Sub(created) < mixAge }
	for _, job := range c.jobs {
		if !recent(job.CreationTimestamp.Time, job.Status.CompletionTime != nil) {
			continue
		}
		model := ""
		if job.Status.Attempt != nil {
			model = job.Status.Attempt.Model
		}
		draw(job.Spec.MinReplicas-job.Spec.RoleMembers(), c.shapeOf(job, model, trainingpod.Ordinary)) // Those have the accelerators.
	}
	for _, job := range c.merges {
		draw(job.Spec.MinReplicas, c.mergeShape(job, 1))
	}
	return mix
}
