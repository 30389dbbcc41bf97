package convert

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// mpiVersion is the version of MPI operator's kind.
var mpiVersion = schema.GroupVersion{Group: "kubeflow.org", Version: "v2beta1"}

const (
	mpiKind     = "MPIJob"
	mpiOperator = "MPI operator"
	launcher    = kubeflowv1.ReplicaType("Launcher")
)

// MPIJob has all fields of an MPIJob (kubeflow.org/v2beta1). Its run policy and replicas are those of training-operator's jobs.
type MPIJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              MPIJobSpec `json:"spec,omitempty"`
	Status            struct {
		Conditions []struct {
			Type               string `json:"type"`
			Status             any    `json:"status"`
			Reason             any    `json:"reason,omitempty"`
			Message            any    `json:"message,omitempty"`
			LastUpdateTime     any    `json:"lastUpdateTime,omitempty"`
			LastTransitionTime any    `json:"lastTransitionTime,omitempty"`
		} `json:"conditions,omitempty"`
		ReplicaStatuses   any `json:"replicaStatuses,omitempty"`
		StartTime         any `json:"startTime,omitempty"`
		CompletionTime    any `json:"completionTime,omitempty"`
		LastReconcileTime any `json:"lastReconcileTime,omitempty"`
	} `json:"status,omitzero"`
}

// MPIJobSpec says what to launch, and where.
type MPIJobSpec struct {
	// SlotsPerWorker is 1 by default.
	SlotsPerWorker         *int32                                             `json:"slotsPerWorker,omitempty"`
	RunLauncherAsWorker    *bool                                              `json:"runLauncherAsWorker,omitempty"`
	RunPolicy              kubeflowv1.RunPolicy                               `json:"runPolicy,omitempty"`
	MPIReplicaSpecs        map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec `json:"mpiReplicaSpecs,omitempty"`
	SSHAuthMountPath       string                                             `json:"sshAuthMountPath,omitempty"`
	LauncherCreationPolicy string                                             `json:"launcherCreationPolicy,omitempty"`
	MPIImplementation      string                                             `json:"mpiImplementation,omitempty"`
}

// DeepCopyObject returns a copy that shares nothing.
func (j *MPIJob) DeepCopyObject() runtime.Object { return copyOf(j) }

// mpiJob is one MPIJob on its way.
type mpiJob struct {
	draft
	in               *MPIJob
	launcher, worker *kubeflowv1.ReplicaSpec // worker is nil for a launcher alone
}

func mpiPath(role kubeflowv1.ReplicaType) string { return "spec.mpiReplicaSpecs[" + string(role) + "]" }

// FromMPIJob returns the ElasticTrainingJob that trains as an MPIJob (kubeflow.org/v2beta1) does. The launcher becomes worker
// 0: a role that leads; or, if it is alone or trains as the workers do (runLauncherAsWorker), one of them. The notes say what
// is not carried over or means something else. Without an ElasticTrainingJob, each note says what keeps the MPIJob from being
// converted. The MPIJob is not changed.
func FromMPIJob(job *MPIJob) (*v1beta1.ElasticTrainingJob, []Note) {
	c := &mpiJob{draft: newDraft(mpiOperator, mpiKind), in: copyOf(job)}
	if problems := c.validate(); len(problems) > 0 {
		return nil, problems
	}
	c.metadata(&c.in.ObjectMeta)
	if n := len(c.in.Status.Conditions); n > 0 {
		c.runs(c.in.Status.Conditions[n-1].Type, "pods of both have the same names")
	}
	n := c.workers() + 1
	c.out.Spec.MinReplicas, c.out.Spec.MaxReplicas = n, n
	c.out.Spec.Framework.Type = v1beta1.FrameworkCustom
	where := c.template()
	c.slots()
	switch {
	case c.worker == nil:
	case c.isApart():
		c.launcherRole()
		c.openMPI()
	default:
		c.worker0()
		c.startBoth()
		c.openMPI()
	}
	c.mentions(where)
	c.policies()
	c.templateLimits(where, c.base().Template.Spec.Containers)
	c.name()
	return c.out, c.notes
}

// workers is the number of pods beside the launcher. MPI operator's default is none.
func (c *mpiJob) workers() int32 {
	if c.worker == nil {
		return 0
	}
	return ptr.Deref(c.worker.Replicas, 0)
}

// base is whose template the workers are made from.
func (c *mpiJob) base() *kubeflowv1.ReplicaSpec {
	if c.worker != nil {
		return c.worker
	}
	return c.launcher
}

// validate returns what MPI operator would refuse or Tideline cannot express.
func (c *mpiJob) validate() []Note {
	var p problems
	if c.in.Name == "" && c.in.GenerateName == "" {
		p.add("metadata.name", nil, "a job needs a name", "set it")
	}
	spec := &c.in.Spec
	for _, role := range sortedKeys(spec.MPIReplicaSpecs) {
		if role != launcher && role != worker {
			p.add(mpiPath(role), string(role), "MPI operator knows the roles Launcher and Worker", "name it so")
		}
	}
	c.launcher, c.worker = spec.MPIReplicaSpecs[launcher], spec.MPIReplicaSpecs[worker]
	if c.launcher == nil {
		p.add(mpiPath(launcher), nil, "MPI operator refuses a job without a launcher", "set it")
	}
	for _, role := range []kubeflowv1.ReplicaType{launcher, worker} {
		if s := spec.MPIReplicaSpecs[role]; s != nil {
			p.mpiReplicas(role, s)
		}
	}
	if !slices.Contains([]string{"", "OpenMPI", "Intel", "MPICH"}, spec.MPIImplementation) {
		p.add("spec.mpiImplementation", spec.MPIImplementation, "MPI operator does not know it", "use OpenMPI")
	}
	if n := ptr.Deref(spec.SlotsPerWorker, 1); n < 0 {
		p.add("spec.slotsPerWorker", n, "it must be 0 or more", "raise or remove it")
	}
	p.runPolicy(&spec.RunPolicy, mpiOperator, "kubeflow.org/mpi-operator")
	if len(p) == 0 && c.worker != nil {
		c.validateRoles(&p)
	}
	return p
}

func (p *problems) mpiReplicas(role kubeflowv1.ReplicaType, s *kubeflowv1.ReplicaSpec) {
	where := mpiPath(role)
	switch n := s.Replicas; {
	case role == launcher && ptr.Deref(n, 1) != 1:
		p.add(where+".replicas", *n, "MPI operator refuses any number of launchers but 1", "set 1")
	case role == worker && ptr.Deref(n, 0) < 1:
		p.add(where+".replicas", shownOrNilNumber(ptr.Deref(n, 0)), "MPI operator refuses fewer workers than 1",
			"set 1 or more, or remove Worker")
	case role == worker && *n >= v1beta1.MaxWorkers:
		p.add(where+".replicas", *n, fmt.Sprintf("a job may have %d workers, launcher included", v1beta1.MaxWorkers),
			"ask for fewer")
	}
	if len(s.Template.Spec.Containers) == 0 {
		p.add(where+".template.spec.containers", nil, "MPI operator refuses a template without containers", "set them")
	}
	switch s.RestartPolicy {
	case "", kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure:
	default:
		p.add(where+".restartPolicy", string(s.RestartPolicy), "MPI operator refuses it", "use Never or OnFailure")
	}
}

// isApart is true for a launcher that trains nothing.
func (c *mpiJob) isApart() bool { return !ptr.Deref(c.in.Spec.RunLauncherAsWorker, false) }

// validateRoles refuses a launcher whose pod differs from the workers' in more than can be said of worker 0 or of a role.
func (c *mpiJob) validateRoles(p *problems) {
	spec := &c.in.Spec
	if spec.MPIImplementation != "" && spec.MPIImplementation != "OpenMPI" {
		p.add("spec.mpiImplementation", spec.MPIImplementation, "Tideline writes hostfiles in Open MPI's form",
			"use OpenMPI, or leave the job to MPI operator")
	}
	rule, do := seeMaster, alikeDo+mpiOperator
	if c.isApart() {
		rule = seeRole
		do = "let both have it, or leave the job to " + mpiOperator
	}
	theirs, ours := c.launcher.Template.DeepCopy(), c.worker.Template.DeepCopy()
	theirEnv, ourEnv := trainingContainer(&theirs.Spec).Env, trainingContainer(&ours.Spec).Env
	for _, t := range []*corev1.PodTemplateSpec{theirs, ours} {
		if c.isApart() {
			alikeButForRole(t, theirEnv, ourEnv)
		}
		main := trainingContainer(&t.Spec)
		main.Name = trainingContainer(&c.launcher.Template.Spec).Name // They are started by one command, whatever they are called.
		main.Command, main.Args, main.Resources = nil, nil, corev1.ResourceRequirements{}
		t.Name, t.Spec.NodeSelector, t.Spec.RestartPolicy = "", nil, ""
	}
	p.compare(mpiPath(launcher)+".template", theirs, ours, mpiPath(worker), rule, do)
	if main := trainingContainer(&c.launcher.Template.Spec); c.isApart() && len(main.Command) == 0 {
		p.needsCommand(mpiPath(launcher)+".template.spec", "launcher", main)
	}
	for _, role := range []kubeflowv1.ReplicaType{launcher, worker} {
		main := trainingContainer(&spec.MPIReplicaSpecs[role].Template.Spec)
		if len(main.Command) == 0 && (role == launcher || len(main.Args) > 0) && !c.isApart() {
			p.add(mpiPath(role)+".template.spec.containers["+main.Name+"].command", nil, "one command must start launcher and"+
				" workers, and what the image starts is not known here", "write it")
		}
	}
}

// template carries over the pods, and returns where their template stands.
func (c *mpiJob) template() string {
	role := launcher
	if c.worker != nil {
		role = worker
	}
	where := mpiPath(role) + ".template"
	in := c.base().Template.DeepCopy()
	in.Spec.RestartPolicy = "" // MPI operator puts the role's in its place.
	c.fromTemplate(where, in)
	return where
}

// worker0 carries over what the launcher asks for that workers do not.
func (c *mpiJob) worker0() {
	theirs, ours := &c.launcher.Template.Spec, &c.worker.Template.Spec
	overrides := &v1beta1.Master{}
	if r := trainingContainer(theirs).Resources; !equality.Semantic.DeepEqual(r, trainingContainer(ours).Resources) {
		overrides.Resources = r.DeepCopy()
	}
	overrides.NodeSelector = c.masterNodeSelector(
		mpiPath(launcher)+".template.spec.nodeSelector", theirs.NodeSelector, ours.NodeSelector)
	if overrides.Resources != nil || overrides.NodeSelector != nil {
		c.out.Spec.Master = overrides
	}
}

// slots carries over how many processes a pod has.
func (c *mpiJob) slots() {
	const where = "spec.slotsPerWorker"
	switch n := ptr.Deref(c.in.Spec.SlotsPerWorker, 1); {
	case n >= 1 && n <= maxProcesses:
		c.out.Spec.Framework.NprocPerNode = ptr.To(n)
	default:
		c.note(where, n, fmt.Sprintf("the number of slots may be 1 to %d; it is left out, and there is one for each GPU",
			maxProcesses), setProcesses)
	}
}

const keysPath = "/etc/tideline/ssh"

// launcherRole makes the launcher a role, and has the workers start what serves its logins.
func (c *mpiJob) launcherRole() {
	r := c.role("launcher", mpiPath(launcher)+".template.spec", &c.launcher.Template.Spec, &c.worker.Template.Spec)
	r.Lead = true
	c.out.Spec.Roles = []v1beta1.JobRole{r}
	others := trainingContainer(&c.worker.Template.Spec)
	if len(others.Command) > 0 || len(others.Args) == 0 {
		main := c.trainer()
		main.Command, main.Args = c.serveLogins(), nil
	}
}

// startBoth makes one command of launcher's and workers': worker 0 starts the launcher's.
func (c *mpiJob) startBoth() {
	first, others := trainingContainer(&c.launcher.Template.Spec), trainingContainer(&c.worker.Template.Spec)
	words := c.serveLogins()
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	main := c.trainer()
	main.Command = []string{
		"/bin/sh", "-c", `if [ "$JAX_PROCESS_ID" != 0 ]; then exec ` + strings.Join(quoted, " ") + `; fi; exec "$@"`, "launcher",
	}
	main.Args = slices.Concat(first.Command, first.Args)
	c.note(c.loginsPath(), shownWords(slices.Concat(others.Command, others.Args)), "all workers start by one command, a shell: "+
		"worker 0 runs the launcher's, the others sshd's, with Tideline's keys", "have /bin/sh in the image")
}

// loginsPath is where the workers' command stands.
func (c *mpiJob) loginsPath() string {
	return mpiPath(worker) + ".template.spec.containers[" + trainingContainer(&c.worker.Template.Spec).Name + "].command"
}

// serveLogins is what the workers start: their command, by default sshd, with Tideline's keys.
func (c *mpiJob) serveLogins() []string {
	others := trainingContainer(&c.worker.Template.Spec)
	words := slices.Concat(others.Command, others.Args)
	if len(words) == 0 {
		words = []string{"/usr/sbin/sshd", "-De"} // as MPI operator does
	}
	if path.Base(words[0]) == "sshd" {
		return append(words, "-o", "AuthorizedKeysFile="+keysPath+"/authorized_keys", "-o", "StrictModes=no")
	}
	c.note(c.loginsPath(), words, "keys are in "+keysPath, "start sshd with -o AuthorizedKeysFile="+keysPath+"/authorized_keys")
	return words
}

// quote writes a word for a shell.
func quote(word string) string {
	if harmless.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shownWords are words, or nil for none.
func shownWords(words []string) any {
	if len(words) == 0 {
		return nil
	}
	return words
}

// openMPI tells Open MPI of hosts and keys, as MPI operator does.
func (c *mpiJob) openMPI() {
	c.out.Spec.Framework.SSH = v1beta1.SSHKeyPair
	c.note("spec.sshAuthMountPath", shownOrNil(c.in.Spec.SSHAuthMountPath), "keys are in "+keysPath+", for which the operator"+
		" needs the rights of component ssh-keys", "log in by ssh -F "+keysPath+"/config")
	c.setDefaultEnv("OMPI_MCA_orte_keep_fqdn_hostnames", "true")
	c.setDefaultEnv("OMPI_MCA_orte_default_hostfile", "/etc/tideline/hostfile")
	c.setDefaultEnv("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10 -F "+keysPath+"/config")
	c.setDefaultEnv("OMPI_MCA_orte_set_default_slots", strconv.Itoa(int(ptr.Deref(c.in.Spec.SlotsPerWorker, 1))))
	if c.in.Spec.LauncherCreationPolicy == "WaitForWorkersReady" {
		c.note("spec.launcherCreationPolicy", c.in.Spec.LauncherCreationPolicy, "worker 0 starts with the others; it is left out",
			"let the launcher try again until all others answer (docs/examples/mpi.yaml)")
	}
}

// mpiWords are files and variables that only MPI operator provides.
var mpiWords = regexp.MustCompile(`(/etc/mpi/[a-z_.]+|K_MPI_JOB_ROLE)`)

// mentions says where the launcher speaks of what MPI operator provides.
func (c *mpiJob) mentions(where string) {
	main := trainingContainer(&c.launcher.Template.Spec)
	w := wording{
		variables: mpiWords, absent: " is MPI operator's: ", do: "read it there",
		instead: "hosts are in /etc/tideline/hostfile, and worker 0 is the launcher", nameWhat: "read /etc/tideline/hosts",
	}
	if c.in.Name != "" {
		w.hosts = hostNames(c.in.Name, "launcher|worker")
	}
	if c.worker != nil {
		where = mpiPath(launcher) + ".template"
	}
	c.wordsOf(where+".spec.containers["+main.Name+"]", main, w)
}

// policies carries over when the job has ended, and what remains.
func (c *mpiJob) policies() {
	const where = "spec.runPolicy"
	in, out := &c.in.Spec.RunPolicy, &c.out.Spec
	if c.worker != nil {
		out.SuccessPolicy.CompletionGraceSeconds = ptr.To[int32](0) // Workers serve logins until they are told to end.
		c.note(mpiPath(worker)+".restartPolicy", shownOrNil(string(c.worker.RestartPolicy)), "MPI operator leaves the others alone"+
			" when a worker fails; Tideline starts all workers again, as MPI cannot go on without one", "")
	}
	out.Cleanup.PodPolicy = v1beta1.CleanPodPolicyNone
	if p := ptr.Deref(in.CleanPodPolicy, ""); p != "" && p != kubeflowv1.CleanPodPolicyUndefined {
		out.Cleanup.PodPolicy = v1beta1.CleanPodPolicy(p)
	} else if c.worker != nil {
		c.note(where+".cleanPodPolicy", nil, "MPI operator's default is None: workers hold their GPUs when the launcher has ended",
			"set spec.cleanup.podPolicy to Running")
	}
	out.Suspend = ptr.Deref(in.Suspend, false)
	if in.TTLSecondsAfterFinished != nil {
		out.Cleanup.TTLSecondsAfterFinished = c.atMost(where+".ttlSecondsAfterFinished", int64(*in.TTLSecondsAfterFinished), longest)
	}
	if in.ActiveDeadlineSeconds != nil {
		out.Deadlines.ActiveSeconds = c.atMost(where+".activeDeadlineSeconds", *in.ActiveDeadlineSeconds, longest)
		c.note(where+".activeDeadlineSeconds", *in.ActiveDeadlineSeconds, "MPI operator counts from the launcher's start; Tideline"+
			" counts while the core trains, and adds up", "bound the wait for a place by spec.deadlines.schedulingSeconds")
	}
	limit := int64(ptr.Deref(in.BackoffLimit, defaultBackoffLimit))
	var shown any
	if in.BackoffLimit != nil {
		shown = limit
	}
	out.Restarts.Max = c.atMost(where+".backoffLimit", limit, maxRestarts)
	c.note(where+".backoffLimit", shown, fmt.Sprintf("it is spec.restarts.max now, %d, and counts failures of all workers, not"+
		" of the launcher alone, within windowSeconds (%d)", *out.Restarts.Max, v1beta1.DefaultRestartWindowSeconds), "")
	c.managedBy(where+".managedBy", in.ManagedBy)
	if in.SchedulingPolicy != nil {
		c.schedulingPolicy(in.SchedulingPolicy)
	}
}
