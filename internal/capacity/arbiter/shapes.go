package arbiter

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// gangOf is a gang of the job without its size and shapes.
func (c *collector) gangOf(key types.NamespacedName, queue string, job *v1alpha1.ElasticTrainingJob) *capacity.Gang {
	tier := c.tierOf(job)
	return &capacity.Gang{
		Job: key, Queue: queue, Tier: tier.Priority, TierName: tier.Name, Preempts: tier.Preempts,
		Created: job.CreationTimestamp.Time, Model: job.Status.Attempt.Model,
	}
}

// stoppedCore is the core of a preempted job, on the model of its last attempt or on any other that the job allows.
func (c *collector) stoppedCore(key types.NamespacedName, job *v1alpha1.ElasticTrainingJob) *capacity.Gang {
	ask := c.gangOf(key, job.Status.Queue, job)
	ask.Workers = job.Spec.MinReplicas
	ask.Shape, ask.Apart = c.shapesOf(job, ask.Model, ask.Workers, true)
	ask.Others = c.otherModels(key, job, ask.Workers)
	return ask
}

// otherModels are the other models of accelerator that would do for the missing workers. Once a worker is placed there is no
// choice.
func (c *collector) otherModels(key types.NamespacedName, job *v1alpha1.ElasticTrainingJob, missing int32) []capacity.Variant {
	own := job.Status.Attempt.Model
	if own == "" || job.Spec.Accelerator == nil || c.rollOf(key).bound > 0 || len(job.Status.Members) > 0 {
		return nil
	}
	var all []capacity.Variant
	for _, model := range job.Spec.Accelerator.Models {
		if model != own {
			other := capacity.Variant{Model: model}
			other.Shape, other.Apart = c.shapesOf(job, model, missing, !c.masters[key])
			all = append(all, other)
		}
	}
	return all
}

// shapesOf returns the shape of waiting workers, and that of worker 0 if it differs and waits too.
func (c *collector) shapesOf(
	job *v1alpha1.ElasticTrainingJob, model string, waiting int32, masterWaits bool,
) (common capacity.Shape, apart []capacity.Shape) {
	if !masterWaits || !trainingpod.OwnMaster(job) {
		return c.shapeOf(job, model, 1), nil
	}
	first := c.shapeOf(job, model, 0)
	if waiting == 1 {
		return first, nil
	}
	return c.shapeOf(job, model, 1), []capacity.Shape{first}
}

// shapeOf is the shape of a worker that has yet to be created.
func (c *collector) shapeOf(job *v1alpha1.ElasticTrainingJob, model string, i int32) capacity.Shape {
	return c.admittedShape(job.Namespace, trainingpod.WorkerSpec(job, c.arbiter.config.Accelerators, model, i))
}

// admittedShape is the shape that a pod will have after admission: its RuntimeClass may select nodes, and adds what the runtime
// itself needs (k8s.io/kubernetes/plugin/pkg/admission/runtimeclass).
func (c *collector) admittedShape(namespace string, spec *corev1.PodSpec) capacity.Shape {
	name := ptr.Deref(spec.RuntimeClassName, "")
	if name == "" {
		return capacity.ShapeOf(spec, trainingpod.PodRequests(spec), c.volumesIn(namespace))
	}
	class := c.runtimeClasses[name]
	if class == nil {
		return capacity.Shape{Unmodelled: "a RuntimeClass that does not exist"}
	}
	merged := *spec
	if class.Overhead != nil {
		merged.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling != nil {
		merged.NodeSelector = maps.Clone(spec.NodeSelector)
		if merged.NodeSelector == nil {
			merged.NodeSelector = map[string]string{}
		}
		maps.Copy(merged.NodeSelector, class.Scheduling.NodeSelector)
		merged.Tolerations = slices.Concat(spec.Tolerations, class.Scheduling.Tolerations)
	}
	return capacity.ShapeOf(&merged, trainingpod.PodRequests(&merged), c.volumesIn(namespace))
}
