package rendezvous

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Names and formats of Volcano's job plugins env, svc and mpi (pkg/controllers/job/plugins), for a Volcano Job with one task
// "master" of one pod and one task "worker" of all others. Images made for Volcano Jobs run unchanged with them.
const (
	masterHosts = "VC_MASTER_HOSTS"
	masterNum   = "VC_MASTER_NUM"
	workerHosts = "VC_WORKER_HOSTS"
	workerNum   = "VC_WORKER_NUM"
)

const (
	// variableLimit is what one variable may have, with some to spare: Linux starts no program with more than 128 KiB in one
	// (MAX_ARG_STRLEN).
	variableLimit = 120 << 10
	// filesLimit is what the ConfigMap may have, with some to spare: the API server takes 1 MiB.
	filesLimit = 1000 << 10
)

// HostsName is the name of the ConfigMap that lists the workers of a job.
func HostsName(job string) string { return job + "-hosts" }

// ShortHost is the name of worker i within its namespace, as Volcano's hosts files have it.
func ShortHost(job string, i int32) string { return WorkerName(job, i) + "." + ServiceName(job) }

// lengthOfLists is how long a list of the names of so many workers is, each with a separator.
func lengthOfLists(job string, workers int32) int {
	length := 0
	for i := range workers {
		length += len(ShortHost(job, i)) + 1
	}
	return length
}

// fitsVariable is true if the names of so many workers fit into a variable. It is asked with the maximum of an attempt, so that
// all of its workers get the list in the same way.
func fitsVariable(job string, workers int32) bool {
	return lengthOfLists(job, workers) <= variableLimit
}

// HostKeys are the keys of that ConfigMap.
func HostKeys() []string {
	return slices.Sorted(maps.Keys(HostFiles("", []int32{0}, 1, func(int32) int64 { return 0 })))
}

// HostFiles is the content of that ConfigMap for workers of rising indices from 0 on, of an attempt with so many at most. Files:
// hosts has one host per line, hostfile the same with Open MPI's slots, master.host and worker.host are Volcano's. The other
// keys become variables. What does not fit is empty, or says where to look.
func HostFiles(job string, indices []int32, maximum int32, slots func(i int32) int64) map[string]string {
	names, lines := make([]string, len(indices)), &strings.Builder{}
	for n, i := range indices {
		names[n] = ShortHost(job, i)
		fmt.Fprintf(lines, "%s slots=%d\n", names[n], slots(i))
	}
	master, workers := names[:1], names[1:]
	files := map[string]string{
		"hosts":       strings.Join(names, "\n") + "\n",
		"hostfile":    lines.String(),
		"master.host": strings.Join(master, "\n"),
		"worker.host": strings.Join(workers, "\n"),
		masterHosts:   strings.Join(master, ","),
		masterNum:     strconv.Itoa(len(master)),
		workerHosts:   strings.Join(workers, ","),
		workerNum:     strconv.Itoa(len(workers)),
	}
	if !fitsVariable(job, maximum) {
		files[workerHosts] = "" // No variable refers to it.
	}
	const lists = 3 // hosts, hostfile and worker.host
	if slotsLength := len(" slots=999") * int(maximum); lists*lengthOfLists(job, maximum)+slotsLength > filesLimit {
		elsewhere := "# The names are too long for this file: read them in hostfile.\n"
		files["hosts"], files["worker.host"] = elsewhere, elsewhere
	}
	return files
}

// PlainEnv returns the variables of worker i's containers in a job without torchrun: Volcano's, and JAX's, which count the core.
func PlainEnv(job *v1beta1.ElasticTrainingJob, attempt *v1beta1.AttemptStatus, i int32) []corev1.EnvVar {
	inTask := strconv.Itoa(int(max(0, i-1))) // Volcano counts within the task, and worker 1 is the first of task "worker".
	// Lists of hosts are read from the ConfigMap when the container starts: a thousand pods with a thousand names each in their
	// environment would be too much for the API server.
	listed := func(name, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: HostsName(job.Name)}, Key: key,
		}}}
	}
	vars := []corev1.EnvVar{
		{Name: "VC_TASK_INDEX", Value: inTask},
		{Name: "VK_TASK_INDEX", Value: inTask},
		listed(masterHosts, masterHosts), listed(masterNum, masterNum), listed(workerNum, workerNum),
		{Name: "JAX_COORDINATOR_ADDRESS", Value: fmt.Sprintf("%s:%d", WorkerHost(job.Namespace, job.Name, 0), PortOf(job))},
		{Name: "JAX_NUM_PROCESSES", Value: strconv.Itoa(int(attempt.MinReplicas))},
		{Name: "JAX_PROCESS_ID", Value: strconv.Itoa(int(i))},
	}
	if !fitsVariable(job.Name, attempt.MaxReplicas) {
		return vars // A list that is missing is noticed, and one that is cut off or empty is not. Files have it.
	}
	vars = append(vars, listed(workerHosts, workerHosts))
	if i == 0 {
		vars = append(vars, listed("MPI_HOST", workerHosts))
	}
	return vars
}

// MissingVars returns the variables that the user has not set.
func MissingVars(vars, set []corev1.EnvVar) []corev1.EnvVar {
	var missing []corev1.EnvVar
	for _, v := range vars {
		if !hasVariable(set, v.Name) {
			missing = append(missing, v)
		}
	}
	return missing
}
