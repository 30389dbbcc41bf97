package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const (
	master = kubeflowv1.PyTorchJobReplicaTypeMaster
	worker = kubeflowv1.PyTorchJobReplicaTypeWorker
)

// replicaPath is the path of a role.
func replicaPath(role kubeflowv1.ReplicaType) string {
	return "spec.pytorchReplicaSpecs[" + string(role) + "]"
}

// total is the number of pods that a job without an elasticPolicy has. Each role has one unless it says otherwise.
func total(job *kubeflowv1.PyTorchJob) int64 {
	var n int64
	for _, spec := range job.Spec.PyTorchReplicaSpecs {
		if spec != nil {
			n += int64(ptr.Deref(spec.Replicas, 1))
		}
	}
	return n
}

// workerRange is the range of an elastic job, its Master included. A bound that is missing is the other one, and both are the
// number of workers when both are missing, as in training-operator's setElasticPolicy.
func workerRange(job *kubeflowv1.PyTorchJob) (least, most int64) {
	e, spec := job.Spec.ElasticPolicy, job.Spec.PyTorchReplicaSpecs[worker]
	least = int64(*cmp.Or(e.MinReplicas, e.MaxReplicas, spec.Replicas, ptr.To[int32](1)))
	most = int64(*cmp.Or(e.MaxReplicas, e.MinReplicas, spec.Replicas, ptr.To[int32](1)))
	if job.Spec.PyTorchReplicaSpecs[master] != nil {
		// A range without a worker is refused before; the Master must not hide it.
		if least < 1 {
			return least, most + 1
		}
		return least + 1, most + 1
	}
	return least, most
}

// role is the role whose template the workers are made from: Worker, or Master of a job without workers.
func (c *conversion) role() kubeflowv1.ReplicaType {
	if c.in.Spec.PyTorchReplicaSpecs[worker] != nil {
		return worker
	}
	return master
}

// hasMaster is whether worker 0 was a Master.
func (c *conversion) hasMaster() bool { return c.in.Spec.PyTorchReplicaSpecs[master] != nil }

// allWorkers are all workers of a job, as targets of its success policy.
var allWorkers = []v1beta1.WorkerTarget{{Indexes: "0-"}}

// replicas decides how many workers the job has, and when it has succeeded.
func (c *conversion) replicas() {
	spec := &c.out.Spec
	e := c.in.Spec.ElasticPolicy
	if e == nil {
		spec.MinReplicas = int32(total(c.in))
		spec.MaxReplicas = spec.MinReplicas
		if !c.hasMaster() {
			// UpdateJobStatus: without a Master, all workers must have succeeded.
			spec.SuccessPolicy.Targets = allWorkers
		}
		return
	}
	least, most := workerRange(c.in)
	spec.MinReplicas, spec.MaxReplicas = int32(least), int32(most)
	if c.hasMaster() {
		c.note(replicaPath(master), 1, fmt.Sprintf(
			"in an elastic job the Master is one more worker, so the range is %d to %d instead of %d to %d", least, most, least-1, most-1),
			"lower minReplicas and maxReplicas by one if the Master was counted in them")
		most--
	} else {
		// UpdateJobStatus: in an elastic job without a Master, the first worker that succeeds ends it.
		spec.SuccessPolicy.Operator, spec.SuccessPolicy.Targets = v1beta1.SuccessOfAny, allWorkers
	}
	if replicas := int64(ptr.Deref(c.in.Spec.PyTorchReplicaSpecs[worker].Replicas, 1)); replicas != most {
		c.note(replicaPath(worker)+".replicas", replicas, fmt.Sprintf(
			"the number follows from the room: the job starts when its minReplicas (%d) fit, and grows up to maxReplicas (%d)",
			spec.MinReplicas, spec.MaxReplicas), "lower spec.maxReplicas if it must not grow so far")
	}
}

// sortedKeys are the keys of a map in order, so that notes have one.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
