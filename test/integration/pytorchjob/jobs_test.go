package pytorchjob

import (
	"maps"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/test/testutil"
)

const (
	master = kubeflowv1.PyTorchJobReplicaTypeMaster
	worker = kubeflowv1.PyTorchJobReplicaTypeWorker
)

// jobName is the name of every job.
const jobName = "ctr"

// change is something about a PyTorchJob.
type change func(*kubeflowv1.PyTorchJob)

// pyTorchJob is a job of so many Masters, none or one, and Workers, each with a GPU.
func pyTorchJob(masters, workers int32, changes ...change) *kubeflowv1.PyTorchJob {
	job := &kubeflowv1.PyTorchJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflowv1.SchemeGroupVersion.String(), Kind: kubeflowv1.PyTorchJobKind},
		ObjectMeta: metav1.ObjectMeta{Name: jobName},
		Spec:       kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{}},
	}
	for role, n := range map[kubeflowv1.ReplicaType]int32{master: masters, worker: workers} {
		if n > 0 {
			job.Spec.PyTorchReplicaSpecs[role] = &kubeflowv1.ReplicaSpec{Replicas: ptr.To(n), Template: template()}
		}
	}
	for _, c := range changes {
		c(job)
	}
	return job
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name:      kubeflowv1.PyTorchJobDefaultContainerName,
		Image:     "registry.example/ads/ctr:1.4",
		Command:   []string{"torchrun", "train.py"},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{testutil.GPUResource: resource.MustParse("1")}},
	}}}}
}

func eachRole(f func(*kubeflowv1.ReplicaSpec)) change {
	return func(job *kubeflowv1.PyTorchJob) {
		for _, role := range job.Spec.PyTorchReplicaSpecs {
			f(role)
		}
	}
}

func restart(policy kubeflowv1.RestartPolicy) change {
	return eachRole(func(role *kubeflowv1.ReplicaSpec) { role.RestartPolicy = policy })
}

func backoffLimit(n int32) change {
	return func(job *kubeflowv1.PyTorchJob) { job.Spec.RunPolicy.BackoffLimit = &n }
}

func cleanPods(policy kubeflowv1.CleanPodPolicy) change {
	return func(job *kubeflowv1.PyTorchJob) { job.Spec.RunPolicy.CleanPodPolicy = &policy }
}

// deadline bounds how long the job may be active.
func deadline(seconds int64) change {
	return func(job *kubeflowv1.PyTorchJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = &seconds }
}

// deletedAfter has the job deleted so long after its end.
func deletedAfter(seconds int32) change {
	return func(job *kubeflowv1.PyTorchJob) { job.Spec.RunPolicy.TTLSecondsAfterFinished = &seconds }
}

// elastic lets the number of workers change.
func elastic(least, most int32) change {
	return func(job *kubeflowv1.PyTorchJob) {
		job.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{
			MinReplicas: &least, MaxReplicas: &most, RDZVBackend: ptr.To(kubeflowv1.BackendC10D),
			MaxRestarts: ptr.To[int32](100), RDZVConf: []kubeflowv1.RDZVConf{{Key: "last_call_timeout", Value: "10"}},
		}
	}
}

// processes has torchrun start so many in each pod.
func processes(n string) change {
	return func(job *kubeflowv1.PyTorchJob) { job.Spec.NprocPerNode = &n }
}

// port names the port of the rendezvous.
func port(n int32) change {
	return eachRole(func(role *kubeflowv1.ReplicaSpec) {
		role.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{
			{Name: kubeflowv1.PyTorchJobDefaultPortName, ContainerPort: n}}
	})
}

// sidecar adds a second container.
func sidecar(job *kubeflowv1.PyTorchJob) {
	eachRole(func(role *kubeflowv1.ReplicaSpec) {
		role.Template.Spec.Containers = append(role.Template.Spec.Containers, corev1.Container{
			Name: "logs", Image: "registry.example/logs:1",
		})
	})(job)
}

// inPool confines a job to the nodes of a pool, and puts it into a namespace of the same name.
func inPool(job *kubeflowv1.PyTorchJob, pool string) *kubeflowv1.PyTorchJob {
	job = job.DeepCopy()
	job.Namespace = pool
	eachRole(func(role *kubeflowv1.ReplicaSpec) {
		role.Template.Spec.NodeSelector = map[string]string{testutil.PoolLabel: pool}
	})(job)
	return job
}

// pods is how many pods a PyTorchJob has.
func pods(job *kubeflowv1.PyTorchJob) int {
	n := int32(0)
	for _, role := range job.Spec.PyTorchReplicaSpecs {
		n += ptr.Deref(role.Replicas, 1)
	}
	return int(n)
}

// The jobs whose objects are compared, by what they are.
const (
	static    = "a Master and 3 Workers"
	alone     = "a Master alone"
	nproc     = "2 processes in each of 2 pods"
	flexible  = "2 to 4 Workers"
	neverOnce = "restartPolicy Never"
	exitCodes = "restartPolicy ExitCode"
)

var compared = map[string]*kubeflowv1.PyTorchJob{
	static:    pyTorchJob(1, 3),
	alone:     pyTorchJob(1, 0),
	nproc:     pyTorchJob(1, 1, processes("2"), port(23456), sidecar),
	flexible:  pyTorchJob(0, 4, elastic(2, 4)),
	neverOnce: pyTorchJob(1, 3, restart(kubeflowv1.RestartPolicyNever)),
	exitCodes: pyTorchJob(1, 3, restart(kubeflowv1.RestartPolicyExitCode)),
}

func comparedNames() []string { return slices.Sorted(maps.Keys(compared)) }

// lower is the name of a replica type as labels have it.
func lower(role kubeflowv1.ReplicaType) string { return strings.ToLower(string(role)) }
