package arbiter

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// gangOf is a gang of the job without its size and shapes.
func (c *collector) gangOf(key types.NamespacedName, queue string, job *v1beta1.ElasticTrainingJob) *capacity.Gang {
	tier := c.tierOf(job)
	g := &capacity.Gang{
		Job: key, Queue: queue, Tier: tier.Priority, TierName: tier.Name, Preempts: tier.Preempts,
		Created: job.CreationTimestamp.Time, Model: job.Status.Attempt.Model, Unserved: job.Spec.NetworkTopology != nil,
	}
	if highest, hard := job.Spec.NetworkTopology.HighestTier(); hard {
		g.Within, g.Beside = &highest, c.nodesOf(key)
	}
	return g
}

// stoppedCore is the core of a preempted job, on the model of its last attempt or on any other that the job allows.
func (c *collector) stoppedCore(key types.NamespacedName, job *v1beta1.ElasticTrainingJob) *capacity.Gang {
	ask := c.gangOf(key, job.Status.Queue, job)
	ask.Workers = job.Spec.MinReplicas
	ask.Shape, ask.Apart, ask.AnyOrder = c.shapesOf(job, ask.Model, ask.Workers, nil)
	ask.Others = c.otherModels(key, job, ask.Workers)
	return ask
}

// otherModels are the other models of accelerator that would do for the missing workers. Once a worker is placed there is no
// choice.
func (c *collector) otherModels(key types.NamespacedName, job *v1beta1.ElasticTrainingJob, missing int32) []capacity.Variant {
	own := job.Status.Attempt.Model
	if own == "" || job.Spec.Accelerator == nil || c.rollOf(key).bound > 0 || len(job.Status.Members) > 0 {
		return nil
	}
	all, placed := []capacity.Variant(nil), c.placedOf(key, job)
	for _, model := range job.Spec.Accelerator.Models {
		if model != own {
			other := capacity.Variant{Model: model}
			other.Shape, other.Apart, _ = c.shapesOf(job, model, missing, placed)
			all = append(all, other)
		}
	}
	return all
}

// shapesOf returns the shape of waiting workers, and those of workers that may differ and wait too. anyOrder is true if not
// all of those come first. placed has the indices of workers that do not wait.
func (c *collector) shapesOf(
	job *v1beta1.ElasticTrainingJob, model string, waiting int32, placed map[int32]bool,
) (common capacity.Shape, apart []capacity.Shape, anyOrder bool) {
	members := trainingpod.ApartMembers(job)
	for _, i := range members {
		if !placed[i] && len(apart) < int(waiting) {
			apart = append(apart, c.shapeOf(job, model, i))
		}
	}
	if len(apart) == int(waiting) { // The last of them stands for those that are none.
		return apart[len(apart)-1], apart[:len(apart)-1], false
	}
	return c.shapeOf(job, model, trainingpod.Ordinary), apart, len(apart) > 0 && members[0] > 0 && !placed[0]
}

// shapeOf is the shape of a worker that has yet to be created. Of a job that does not exist it is not kept: each dry run has
// another UID, and nothing would say that it is gone.
func (c *collector) shapeOf(job *v1beta1.ElasticTrainingJob, model string, i int32) capacity.Shape {
	compute := func() capacity.Shape {
		spec := trainingpod.WorkerSpec(job, c.arbiter.config.Accelerators, model, i)
		return c.admittedShape(metav1.ObjectMeta{
			Namespace: job.Namespace, Labels: trainingpod.LookOf(job), Annotations: job.Spec.Template.Annotations,
		}, spec)
	}
	if known := c.jobs[client.ObjectKeyFromObject(job)]; known == nil || known.UID != job.UID {
		return compute()
	}
	return c.shapes.shapeOf(job, shapeKey{model: model, role: trainingpod.RoleOf(&job.Spec, i)}, compute)
}

// shapeCache has the shapes of workers that have yet to be created, which many evaluations ask for. Those who only measure ask
// beside them.
type shapeCache struct {
	mu sync.Mutex
	of map[types.UID]*jobShapes
	// version counts changes of volumes and RuntimeClasses, on which any shape may depend.
	version int
}

// jobShapes are the shapes of one job, and the job and the version that they are of.
type jobShapes struct {
	job     *v1beta1.ElasticTrainingJob
	version int
	shapes  map[shapeKey]capacity.Shape
}

// shapeKey names a shape of a job: workers of one role are alike.
type shapeKey struct {
	model string
	role  sizing.Role
}

// shapeOf is a shape of the job, computed if it is not known.
func (s *shapeCache) shapeOf(job *v1beta1.ElasticTrainingJob, key shapeKey, compute func() capacity.Shape) capacity.Shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.shapesOf(job)
	shape, computed := known.shapes[key]
	if !computed {
		shape = compute()
		known.shapes[key] = shape
	}
	return shape
}

// shapesOf are the shapes of the job that are known to hold. The caller has the lock.
func (s *shapeCache) shapesOf(job *v1beta1.ElasticTrainingJob) *jobShapes {
	known := s.of[job.UID]
	if known == nil || known.version != s.version || !shapedAlike(known.job, job) {
		known = &jobShapes{version: s.version, shapes: map[shapeKey]capacity.Shape{}}
		s.of[job.UID] = known
	}
	known.job = job // The next comparison is with the newest, which is most often the same object.
	return known
}

// isUnmodelled is true if a worker of the job asks for something that the model does not cover.
func (c *collector) isUnmodelled(job *v1beta1.ElasticTrainingJob, model string) bool {
	isBeyond := func(i int32) bool { return c.shapeOf(job, model, i).Unmodelled != "" }
	return isBeyond(0) || isBeyond(trainingpod.Ordinary) || slices.ContainsFunc(trainingpod.ApartMembers(job), isBeyond)
}

// shapedAlike is true if two states of a job give its workers the same shapes. Most changes of a status do.
func shapedAlike(a, b *v1beta1.ElasticTrainingJob) bool {
	return a == b || a.Generation > 0 && a.Generation == b.Generation && reflect.DeepEqual(a.Status.Sizing, b.Status.Sizing) &&
		reflect.DeepEqual(a.Status.AvoidedNodes, b.Status.AvoidedNodes) && reflect.DeepEqual(drawnFor(a), drawnFor(b))
}

// drawn is what the attempt of a job decides about where its workers may run: the volumes of its data, and the port of worker 0.
type drawn struct {
	data     []v1beta1.DataPlace
	hostPort int32
}

func drawnFor(job *v1beta1.ElasticTrainingJob) drawn {
	if a := job.Status.Attempt; a != nil {
		return drawn{a.DataSets, a.HostPort}
	}
	return drawn{}
}

// drop forgets a job that is gone.
func (s *shapeCache) drop(job types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, job)
}

// forget has all shapes computed again.
func (s *shapeCache) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
}

// now is the present version.
func (s *shapeCache) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// admittedShape is the shape that a pod with these labels and annotations will have after admission: its RuntimeClass may select
// nodes, and adds what the runtime itself needs (k8s.io/kubernetes/plugin/pkg/admission/runtimeclass).
func (c *collector) admittedShape(of metav1.ObjectMeta, spec *corev1.PodSpec) capacity.Shape {
	name := ptr.Deref(spec.RuntimeClassName, "")
	if name == "" {
		return capacity.ShapeOf(&of, spec, trainingpod.PodRequests(spec), c.volumesIn(of.Namespace))
	}
	class := c.classes[name]
	if class == nil {
		return capacity.Shape{Unmodelled: capacity.NoRuntimeClass}
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
	return capacity.ShapeOf(&of, &merged, trainingpod.PodRequests(&merged), c.volumesIn(of.Namespace))
}
