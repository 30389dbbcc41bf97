// Package rendezvous gives workers the names by which they find each other, and the environment of their containers, for torchrun
// and for trainings without it. Its facts about torchrun are from PyTorch's torch/distributed/run.py (every option --some-name
// reads PET_SOME_NAME) and elastic/rendezvous/c10d_rendezvous_backend.py.
package rendezvous

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// maxRestarts is generous because the loss of a peer costs every survivor one of torchrun's restarts, and growing may cost one
// too. The operator, not torchrun, decides when the job gives up.
const maxRestarts = 100

const (
	// shutdownTimeout is how long after SIGTERM torchrun kills its processes by itself, in seconds
	// (torch.distributed.elastic.agent).
	shutdownTimeout = 30
	// shutdownMargin is how long before the end of the grace torchrun must have ended its processes, in seconds.
	shutdownMargin = 5
)

// WorkerName is the name, and host name, of worker i's pod: JOB-worker-3, or JOB-ps-1 of role ps. The number is the worker's
// in the job, so that no two workers have the same.
func WorkerName(job *v1beta1.ElasticTrainingJob, i int32) string {
	return nameOf(job.Name, job.Spec.SeatOf(i).Name(), i)
}

func nameOf(job, role string, i int32) string { return job + "-" + role + "-" + strconv.Itoa(int(i)) }

// ReadName is the role and the index of a worker of the job by its pod's name; false if no worker of any job of this name is
// called so. Only the job's spec tells whether its worker of that index has that role.
func ReadName(job, pod string) (role string, i int32, is bool) {
	rest, is := strings.CutPrefix(pod, job+"-")
	role, number, parted := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(number, 10, 32)
	if !is || !parted || err != nil || n < 0 || n >= v1beta1.MaxWorkers || !isRole(role) || pod != nameOf(job, role, int32(n)) {
		return "", 0, false
	}
	return role, int32(n), true
}

// JobOfPod is the job in the name of a pod: JOB of JOB-worker-0 or JOB-merge-0, and a job may have a hyphen in its name. It is
// empty for a name with fewer than two hyphens.
func JobOfPod(pod string) string { return cutLast(cutLast(pod)) }

// cutLast is what is before the last hyphen; empty for what has none.
func cutLast(name string) string { return name[:max(strings.LastIndexByte(name, '-'), 0)] }

// mergeName stands in the names of pods of merges where those of workers have their role.
const mergeName = "merge"

// isRole is true for what may be the name of a role.
func isRole(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && name != mergeName && len(name) <= v1beta1.MaxRoleName
}

// ServiceName is the name of the headless Service that gives workers their DNS names.
func ServiceName(job string) string { return job + "-workers" }

// WorkerHost is the DNS name of worker i. It outlives the pod: a worker that is created again is found under the same name.
func WorkerHost(job *v1beta1.ElasticTrainingJob, i int32) string {
	return WorkerName(job, i) + "." + ServiceName(job.Name) + "." + job.Namespace + ".svc"
}

// TrainerIndex returns the index of the container that trains: the one named trainer, else the first.
func TrainerIndex(containers []corev1.Container) int {
	for i := range containers {
		if containers[i].Name == v1beta1.TrainerContainer {
			return i
		}
	}
	return 0
}

// ChosenProcesses is framework.nprocPerNode of the job; 0 if it leaves the number to the training container.
func ChosenProcesses(job *v1beta1.ElasticTrainingJob) int32 {
	return ptr.Deref(job.Spec.Framework.NprocPerNode, 0)
}

// ProcessesPerWorker is how many training processes a worker of the attempt runs: what framework.nprocPerNode was when the
// attempt began, else one for each GPU of its training container, at least one. claimed is how many GPUs the container has
// by resource claims.
func ProcessesPerWorker(attempt *v1beta1.AttemptStatus, trainer *corev1.Container, claimed int64) int64 {
	if attempt.NprocPerNode > 0 {
		return int64(attempt.NprocPerNode)
	}
	return max(1, GPUs(trainer)+claimed)
}

// UsesTorchrun is true if the workers meet by torchrun's rendezvous.
func UsesTorchrun(spec *v1beta1.ElasticTrainingJobSpec) bool {
	return spec.Framework.Type == v1beta1.FrameworkTorchrun || spec.Framework.Type == ""
}

// JoinsTorchrun is true for a worker that takes part in torchrun's rendezvous: those of roles do something else.
func JoinsTorchrun(spec *v1beta1.ElasticTrainingJobSpec, i int32) bool {
	return UsesTorchrun(spec) && spec.SeatOf(i).Role == nil
}

// TorchrunEnv returns the variables of worker i's training container in the attempt. They depend on nothing that changes during
// the attempt, so that a resize re-creates no pod.
func TorchrunEnv(
	job *v1beta1.ElasticTrainingJob, attempt *v1beta1.AttemptStatus, i int32, trainer *corev1.Container, claimed int64,
) []corev1.EnvVar {
	endpoint := fmt.Sprintf("%s:%d", WorkerHost(job, 0), PortOf(job))
	others := job.Spec.RoleMembers() // They are none of torchrun's nodes.
	vars := []corev1.EnvVar{
		{Name: "PET_NNODES", Value: fmt.Sprintf("%d:%d", attempt.MinReplicas-others, attempt.MaxReplicas-others)},
		{Name: "PET_NPROC_PER_NODE", Value: strconv.FormatInt(ProcessesPerWorker(attempt, trainer, claimed), 10)},
		{Name: "PET_RDZV_BACKEND", Value: "c10d"},
		{Name: "PET_RDZV_ENDPOINT", Value: endpoint},
		{Name: "PET_RDZV_ID", Value: string(job.UID) + "-" + attempt.ID()},
		{Name: "PET_RDZV_CONF", Value: rendezvousConf(job.Spec.Framework.Torchrun, i)},
		// torchrun assigns ranks by sorted addresses, so worker 0 is rank 0.
		{Name: "PET_LOCAL_ADDR", Value: WorkerHost(job, i)},
	}
	// By default torchrun kills its processes before a longer grace is over, and with them the checkpoint.
	if grace := ptr.Deref(job.Spec.Checkpoint.GraceSeconds, 0); grace > shutdownTimeout+shutdownMargin {
		if name := "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"; !hasVariable(trainer.Env, name) {
			vars = append(vars, corev1.EnvVar{Name: name, Value: strconv.Itoa(int(grace - shutdownMargin))})
		}
	}
	if !hasVariable(trainer.Env, "PET_MAX_RESTARTS") {
		vars = append(vars, corev1.EnvVar{Name: "PET_MAX_RESTARTS", Value: strconv.Itoa(maxRestarts)})
	}
	return vars
}

// rendezvousConf is PET_RDZV_CONF. It sets is_host, because torch's own detection compares host names, which is unreliable in
// pods.
func rendezvousConf(chosen *v1beta1.Torchrun, i int32) string {
	r := ptr.Deref(chosen, v1beta1.Torchrun{})
	isHost := 0
	if i == 0 {
		isHost = 1
	}
	pairs := []string{
		fmt.Sprintf("is_host=%d", isHost),
		fmt.Sprintf("join_timeout=%d", ptr.Deref(r.JoinTimeoutSeconds, v1beta1.DefaultJoinTimeoutSeconds)),
		fmt.Sprintf("last_call_timeout=%d", ptr.Deref(r.LastCallTimeoutSeconds, v1beta1.DefaultLastCallTimeoutSeconds)),
		fmt.Sprintf("read_timeout=%d", ptr.Deref(r.ReadTimeoutSeconds, v1beta1.DefaultReadTimeoutSeconds)),
	}
	for _, c := range r.RdzvConf {
		pairs = append(pairs, c.Key+"="+c.Value)
	}
	return strings.Join(pairs, ",")
}

// PortOf is the port of the rendezvous on worker 0: the job's own, else 29400. On the host's network jobs share the ports of a
// node, so there it is the one that was drawn for the attempt.
func PortOf(job *v1beta1.ElasticTrainingJob) int32 {
	switch chosen, a := job.Spec.Framework.Port, job.Status.Attempt; {
	case chosen != nil:
		return *chosen
	case !job.Spec.Template.Spec.HostNetwork:
		return v1beta1.DefaultPort
	case a != nil && a.HostPort != 0:
		return a.HostPort
	}
	return drawPort(job, config.DefaultHostPorts()) // As attempts drew it that began before status had it.
}

// HostPort is the port of its node for worker 0 of an attempt that begins now: that of the attempt before, or a drawn one; 0 for
// a job that needs none.
func HostPort(job *v1beta1.ElasticTrainingJob, among config.HostPorts) int32 {
	switch a := job.Status.Attempt; {
	case job.Spec.Framework.Port != nil || !job.Spec.Template.Spec.HostNetwork:
		return 0
	case a != nil && among.First <= a.HostPort && a.HostPort <= among.Last:
		return a.HostPort
	}
	return drawPort(job, among)
}

// drawPort draws a port by the job's UID. 29400 is what everything else uses that runs torchrun on the host, so it is left out.
func drawPort(job *v1beta1.ElasticTrainingJob, among config.HostPorts) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job.UID)) // A hash cannot fail to be written.
	count := among.Last - among.First + 1
	if among.First <= v1beta1.DefaultPort && v1beta1.DefaultPort <= among.Last {
		count--
	}
	port := among.First + int32(h.Sum32()%uint32(count))
	if among.First <= v1beta1.DefaultPort && port >= v1beta1.DefaultPort {
		port++
	}
	return port
}

func hasVariable(env []corev1.EnvVar, name string) bool {
	for i := range env {
		if env[i].Name == name {
			return true
		}
	}
	return false
}

// ServiceSpec returns the spec of the headless Service. It publishes addresses that are not ready, because workers must find
// worker 0 before any of them is.
func ServiceSpec(job *v1beta1.ElasticTrainingJob) corev1.ServiceSpec {
	return corev1.ServiceSpec{
		ClusterIP:                corev1.ClusterIPNone,
		PublishNotReadyAddresses: true,
		Selector:                 map[string]string{v1beta1.LabelJob: job.Name},
		Ports: []corev1.ServicePort{{
			Name: "rendezvous", Port: PortOf(job), Protocol: corev1.ProtocolTCP,
		}},
	}
}
