package arbiter

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/worker"
)

// ask is a gang of the job, of which its shape and size are still to be said.
func (c *collector) ask(key types.NamespacedName, queue string, job *v1alpha1.ElasticTrainingJob) *capacity.Gang {
	tier, _ := c.arbiter.config.Tiers.Of(job.Spec.Tier, job.Status.Tier)
	return &capacity.Gang{
		Job: key, Queue: queue, Tier: tier.Priority, TierName: tier.Name, Preempts: tier.Preempts,
		Created: job.CreationTimestamp.Time, Model: job.Status.Attempt.Model,
	}
}

// waitingCore is what of the job's core waits, on the model of its attempt, and on the others as long as nothing was placed.
func (c *collector) waitingCore(
	key types.NamespacedName, queue string, job *v1alpha1.ElasticTrainingJob, missing int32,
) *capacity.Gang {
	ask := c.ask(key, queue, job)
	ask.Workers = missing
	masterWaits := !c.masters[key]
	ask.Shape, ask.Master = c.shapesOf(job, ask.Model, missing, masterWaits)
	if ask.Model == "" || job.Spec.Accelerator == nil || c.bound[key] > 0 || len(job.Status.Members) > 0 {
		return ask
	}
	for _, model := range job.Spec.Accelerator.Models {
		if model != ask.Model {
			other := capacity.Variant{Model: model}
			other.Shape, other.Master = c.shapesOf(job, model, missing, masterWaits)
			ask.Others = append(ask.Others, other)
		}
	}
	return ask
}

// shapesOf are the shape of the workers that wait, and that of worker 0 where it is another and waits among them.
func (c *collector) shapesOf(
	job *v1alpha1.ElasticTrainingJob, model string, waiting int32, masterWaits bool,
) (others capacity.Shape, master *capacity.Shape) {
	if !masterWaits || !worker.OwnMaster(job) {
		return c.shapeOf(job, model, 1), nil
	}
	first := c.shapeOf(job, model, 0)
	if waiting == 1 {
		return first, nil
	}
	return c.shapeOf(job, model, 1), &first
}

func (c *collector) shapeOf(job *v1alpha1.ElasticTrainingJob, model string, i int32) capacity.Shape {
	spec := worker.Spec(job, c.arbiter.config.Accelerators, model, i)
	return capacity.ShapeOf(spec, worker.Requests(spec), c.claimed(job.Namespace))
}
