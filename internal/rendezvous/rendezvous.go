// Package rendezvous is what Tideline says to torchrun: the names by which workers find each other, and the environment of
// the training container. Its facts are from PyTorch's torch/distributed/run.py (every option --some-name reads PET_SOME_NAME)
// and elastic/rendezvous/c10d_rendezvous_backend.py.
package rendezvous

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// TrainerContainer is the name of the container that trains; without one of that name, the first container trains.
const TrainerContainer = "trainer"

// maxRestarts is generous because losing a peer costs every survivor one of torchrun's restarts, and growing may cost one
// too; whether the job gives up is the operator's decision.
const maxRestarts = 100

const (
	// shutdownTimeout is how long after SIGTERM torchrun kills its processes by itself, in seconds (torch.distributed.elastic.agent).
	shutdownTimeout = 30
	// shutdownMargin is how much earlier than the grace torchrun must have ended its processes, in seconds.
	shutdownMargin = 5
)

// WorkerName is the name, and host name, of worker i's pod.
func WorkerName(job string, i int32) string {
	return job + "-worker-" + strconv.Itoa(int(i))
}

// WorkerIndex is the index of the job's worker of that pod name; false for the name of no worker.
func WorkerIndex(job, pod string) (int32, bool) {
	i, err := strconv.ParseInt(strings.TrimPrefix(pod, job+"-worker-"), 10, 32)
	if err != nil || i < 0 || i >= v1alpha1.MaxWorkers || pod != WorkerName(job, int32(i)) {
		return 0, false
	}
	return int32(i), true
}

// ServiceName is the name of the headless Service that gives workers their DNS names.
func ServiceName(job string) string { return job + "-workers" }

// WorkerHost is the DNS name of worker i. It outlives the pod: a worker created anew is found under the same name.
func WorkerHost(namespace, job string, i int32) string {
	return WorkerName(job, i) + "." + ServiceName(job) + "." + namespace + ".svc"
}

// TrainerIndex returns which of the containers trains.
func TrainerIndex(containers []corev1.Container) int {
	for i := range containers {
		if containers[i].Name == TrainerContainer {
			return i
		}
	}
	return 0
}

// GPUs counts the GPUs that a container asks for. Limits are read before requests; for extended resources they are equal
// where both are given. Devices of NVIDIA (whole, and MIG slices), AMD and Intel count.
func GPUs(c *corev1.Container) int64 {
	asked := c.Resources.Limits
	if len(asked) == 0 {
		asked = c.Resources.Requests
	}
	var n int64
	for name, quantity := range asked {
		if isGPU(string(name)) {
			n += quantity.Value()
		}
	}
	return n
}

func isGPU(resource string) bool {
	switch resource {
	case "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe":
		return true
	}
	return strings.HasPrefix(resource, "nvidia.com/mig-")
}

// Env returns the variables of worker i's training container in the attempt. They depend on nothing that changes during the
// attempt, so that a resize re-creates no pod.
func Env(job *v1alpha1.ElasticTrainingJob, attempt *v1alpha1.AttemptStatus, i int32) []corev1.EnvVar {
	containers := job.Spec.Template.Spec.Containers
	r := job.Spec.Rendezvous
	endpoint := fmt.Sprintf("%s:%d", WorkerHost(job.Namespace, job.Name, 0), port(r))
	vars := []corev1.EnvVar{
		{Name: "PET_NNODES", Value: fmt.Sprintf("%d:%d", attempt.MinReplicas, attempt.MaxReplicas)},
		{Name: "PET_NPROC_PER_NODE", Value: strconv.FormatInt(max(1, GPUs(&containers[TrainerIndex(containers)])), 10)},
		{Name: "PET_RDZV_BACKEND", Value: "c10d"},
		{Name: "PET_RDZV_ENDPOINT", Value: endpoint},
		{Name: "PET_RDZV_ID", Value: string(job.UID) + "-" + attempt.ID()},
		{Name: "PET_RDZV_CONF", Value: conf(r, i)},
		// Ranks follow sorted addresses, so worker 0 is rank 0.
		{Name: "PET_LOCAL_ADDR", Value: WorkerHost(job.Namespace, job.Name, i)},
	}
	if grace := ptr.Deref(job.Spec.Checkpoint.GraceSeconds, 0); grace > shutdownTimeout+shutdownMargin {
		if name := "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"; !has(containers[TrainerIndex(containers)].Env, name) {
			vars = append(vars, corev1.EnvVar{Name: name, Value: strconv.Itoa(int(grace - shutdownMargin))})
		}
	}
	if !has(containers[TrainerIndex(containers)].Env, "PET_MAX_RESTARTS") {
		vars = append(vars, corev1.EnvVar{Name: "PET_MAX_RESTARTS", Value: strconv.Itoa(maxRestarts)})
	}
	return vars
}

// conf is PET_RDZV_CONF. is_host is said explicitly because torch's own detection compares host names, which is unreliable
// in pods.
func conf(r v1alpha1.Rendezvous, i int32) string {
	isHost := 0
	if i == 0 {
		isHost = 1
	}
	pairs := []string{
		fmt.Sprintf("is_host=%d", isHost),
		fmt.Sprintf("join_timeout=%d", ptr.Deref(r.JoinTimeoutSeconds, v1alpha1.DefaultJoinTimeoutSeconds)),
		fmt.Sprintf("last_call_timeout=%d", ptr.Deref(r.LastCallTimeoutSeconds, v1alpha1.DefaultLastCallTimeoutSeconds)),
		fmt.Sprintf("read_timeout=%d", ptr.Deref(r.ReadTimeoutSeconds, v1alpha1.DefaultReadTimeoutSeconds)),
	}
	for _, c := range r.RdzvConf {
		pairs = append(pairs, c.Key+"="+c.Value)
	}
	return strings.Join(pairs, ",")
}

func port(r v1alpha1.Rendezvous) int32 { return ptr.Deref(r.Port, v1alpha1.DefaultPort) }

func has(env []corev1.EnvVar, name string) bool {
	for i := range env {
		if env[i].Name == name {
			return true
		}
	}
	return false
}

// Service returns the spec of the headless Service. It publishes addresses that are not ready, because workers must find
// worker 0 before anything is ready.
func Service(job *v1alpha1.ElasticTrainingJob) corev1.ServiceSpec {
	return corev1.ServiceSpec{
		ClusterIP:                corev1.ClusterIPNone,
		PublishNotReadyAddresses: true,
		Selector:                 map[string]string{v1alpha1.LabelJob: job.Name},
		Ports: []corev1.ServicePort{{
			Name: "rendezvous", Port: port(job.Spec.Rendezvous), Protocol: corev1.ProtocolTCP,
		}},
	}
}
