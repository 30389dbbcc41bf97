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

// Workers without torchrun get lists of each other's names, by role, in a ConfigMap: files, and variables that refer to it.
//
//	role      files (/etc/tideline, /etc/volcano)    variables
//	all       hosts, hostfile
//	master    master.host                            VC_MASTER_HOSTS, VC_MASTER_NUM
//	worker    worker.host                            VC_WORKER_HOSTS, VC_WORKER_NUM, MPI_HOST on worker 0
//	ps        ps.host                                VC_PS_HOSTS, VC_PS_NUM
//
// These are names and formats of Volcano's job plugins env, svc and mpi (pkg/controllers/job/plugins), for a Volcano Job with
// a task for each role, so that images made for Volcano Jobs run unchanged. In a job without roles worker 0 is task "master".
// The ConfigMap's keys for roles are numbered, because the operator's cache keeps keys that it knows beforehand.
const (
	masterHosts = "VC_MASTER_HOSTS"
	masterNum   = "VC_MASTER_NUM"
	workerHosts = "VC_WORKER_HOSTS"
	workerNum   = "VC_WORKER_NUM"
	masterFile  = "master.host"
	workerFile  = "worker.host"
)

const (
	// variableLimit is what one variable may have, with some to spare: Linux starts no program with more than 128 KiB in one
	// (MAX_ARG_STRLEN).
	variableLimit = 120 << 10
	// filesLimit is what the ConfigMap may have, with some to spare: the API server takes 1 MiB.
	filesLimit = 1000 << 10
)

// roleKeys are the keys of a role: the file of its hosts, their list, and their number.
func roleKeys(n int) (file, hosts, num string) {
	return fmt.Sprintf("role%d.host", n), fmt.Sprintf("role%d.hosts", n), fmt.Sprintf("role%d.num", n)
}

// HostsName is the name of the ConfigMap that lists the workers of a job.
func HostsName(job string) string { return job + "-hosts" }

// ShortHost is the name of worker i within its namespace, as Volcano's hosts files have it.
func ShortHost(job *v1beta1.ElasticTrainingJob, i int32) string {
	return WorkerName(job, i) + "." + ServiceName(job.Name)
}

// lengthOfLists is how long a list of the names of so many workers is, each with a separator.
func lengthOfLists(job *v1beta1.ElasticTrainingJob, workers int32) int {
	length := 0
	for i := range workers {
		length += len(ShortHost(job, i)) + 1
	}
	return length
}

// fitsVariable is true if the names of so many workers fit into a variable. It is asked with the maximum of an attempt, so that
// all of its workers get the list in the same way.
func fitsVariable(job *v1beta1.ElasticTrainingJob, workers int32) bool {
	return lengthOfLists(job, workers) <= variableLimit
}

// HostKeys are the keys that the ConfigMap of a job may have.
func HostKeys() []string {
	keys := slices.Collect(maps.Keys(HostFiles(&v1beta1.ElasticTrainingJob{}, []int32{0}, 1, func(int32) int64 { return 0 })))
	for n := range v1beta1.MaxRoles {
		file, hosts, num := roleKeys(n)
		keys = append(keys, file, hosts, num)
	}
	keys = append(keys, tfCluster)
	slices.Sort(keys)
	return keys
}

// HostFiles is the content of that ConfigMap for workers of rising indices from 0 on, of an attempt with so many at most. Files:
// hosts has one host per line, hostfile those that train by their slots, as Open MPI and DeepSpeed read it, and ROLE.host
// those of a role. The other keys become variables. What does not fit is empty, or says where to look.
func HostFiles(
	job *v1beta1.ElasticTrainingJob, indices []int32, maximum int32, slots func(i int32) int64,
) map[string]string {
	names, lines, byRole := make([]string, len(indices)), &strings.Builder{}, map[string][]string{}
	for n, i := range indices {
		names[n] = ShortHost(job, i)
		task := taskOf(&job.Spec, i)
		byRole[task] = append(byRole[task], names[n])
		if job.Spec.SeatOf(i).Role == nil { // A launcher, or a server of parameters, trains nothing.
			fmt.Fprintf(lines, "%s slots=%d\n", names[n], slots(i))
		}
	}
	files := map[string]string{"hosts": strings.Join(names, "\n") + "\n", "hostfile": lines.String()}
	list := func(role, file, hosts, num string) {
		files[file] = strings.Join(byRole[role], "\n")
		files[hosts] = strings.Join(byRole[role], ",")
		files[num] = strconv.Itoa(len(byRole[role]))
	}
	list(v1beta1.RoleWorker, workerFile, workerHosts, workerNum)
	if len(job.Spec.Roles) == 0 {
		list(masterTask, masterFile, masterHosts, masterNum)
	}
	for n := range job.Spec.Roles {
		file, hosts, num := roleKeys(n)
		list(job.Spec.Roles[n].Name, file, hosts, num)
	}
	if job.Spec.Framework.Type == v1beta1.FrameworkTensorFlow {
		files[tfCluster] = clusterOf(job, indices)
	}
	if !fitsVariable(job, maximum) {
		files[workerHosts] = "" // No variable refers to it.
	}
	const lists = 3 // hosts, hostfile and worker.host
	if slotsLength := len(" slots=999") * int(maximum); lists*lengthOfLists(job, maximum)+slotsLength > filesLimit {
		elsewhere := "# The names are too long for this file: read them in hostfile.\n"
		files["hosts"], files[workerFile] = elsewhere, elsewhere
	}
	return files
}

// masterTask is Volcano's task of worker 0 of a job without roles.
const masterTask = "master"

// taskOf is Volcano's task of worker i.
func taskOf(spec *v1beta1.ElasticTrainingJobSpec, i int32) string {
	if i == 0 && len(spec.Roles) == 0 {
		return masterTask
	}
	return spec.SeatOf(i).Name()
}

// HostItems are the files that the ConfigMap has for workers of a job with roles, each by its role's name; nil for a job without
// roles, whose keys are the files' names.
func HostItems(job *v1beta1.ElasticTrainingJob) []corev1.KeyToPath {
	if len(job.Spec.Roles) == 0 {
		return nil
	}
	items := []corev1.KeyToPath{
		{Key: "hosts", Path: "hosts"}, {Key: "hostfile", Path: "hostfile"}, {Key: workerFile, Path: workerFile},
	}
	for n := range job.Spec.Roles {
		file, _, _ := roleKeys(n)
		items = append(items, corev1.KeyToPath{Key: file, Path: job.Spec.Roles[n].Name + ".host"})
	}
	return items
}

// PlainEnv returns the variables of worker i's containers in a job without torchrun: Volcano's, JAX's, which count those of
// the core that train, and TF_CONFIG with type TensorFlow.
func PlainEnv(job *v1beta1.ElasticTrainingJob, attempt *v1beta1.AttemptStatus, i int32) []corev1.EnvVar {
	seat := job.Spec.SeatOf(i)
	inTask := strconv.Itoa(int(seat.Index))
	if len(job.Spec.Roles) == 0 {
		inTask = strconv.Itoa(int(max(0, i-1))) // Volcano counts within the task, and worker 1 is the first of task "worker".
	}
	// Lists of hosts are read from the ConfigMap when the container starts: a thousand pods with a thousand names each in their
	// environment would be too much for the API server.
	listed := func(name, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: HostsName(job.Name)}, Key: key,
		}}}
	}
	vars := []corev1.EnvVar{{Name: "VC_TASK_INDEX", Value: inTask}, {Name: "VK_TASK_INDEX", Value: inTask}}
	if len(job.Spec.Roles) == 0 {
		vars = append(vars, listed(masterHosts, masterHosts), listed(masterNum, masterNum))
	}
	for n := range job.Spec.Roles {
		prefix := "VC_" + strings.ToUpper(job.Spec.Roles[n].Name)
		_, hosts, num := roleKeys(n)
		vars = append(vars, listed(prefix+"_HOSTS", hosts), listed(prefix+"_NUM", num))
	}
	vars = append(vars, listed(workerNum, workerNum))
	if process, count, trains := jaxProcess(job, attempt, i); trains {
		vars = append(vars, corev1.EnvVar{Name: "JAX_COORDINATOR_ADDRESS", Value: fmt.Sprintf("%s:%d", WorkerHost(job, 0),
			PortOf(job))},
			corev1.EnvVar{Name: "JAX_NUM_PROCESSES", Value: strconv.Itoa(int(count))},
			corev1.EnvVar{Name: "JAX_PROCESS_ID", Value: strconv.Itoa(int(process))})
	}
	if job.Spec.Framework.Type == v1beta1.FrameworkTensorFlow {
		vars = append(vars, listed(tfCluster, tfCluster), corev1.EnvVar{Name: "TF_CONFIG", Value: tfConfig(seat)})
	}
	if !fitsVariable(job, attempt.MaxReplicas) {
		return vars // A list that is missing is noticed, and one that is cut off or empty is not. Files have it.
	}
	vars = append(vars, listed(workerHosts, workerHosts))
	if i == 0 {
		vars = append(vars, listed("MPI_HOST", workerHosts))
	}
	return vars
}

// jaxProcess is the number of worker i among the processes of JAX, and how many of them the core has: worker 0, which has the
// coordinator, and the workers of the template. trains is false for a worker of another role.
func jaxProcess(job *v1beta1.ElasticTrainingJob, attempt *v1beta1.AttemptStatus, i int32) (process, count int32, trains bool) {
	others := job.Spec.RoleMembers()
	if job.Spec.SeatOf(0).Role != nil {
		others-- // The one that leads.
	}
	switch {
	case i == 0:
		return 0, attempt.MinReplicas - others, true
	case job.Spec.SeatOf(i).Role != nil:
		return 0, 0, false
	}
	return i - others, attempt.MinReplicas - others, true
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
