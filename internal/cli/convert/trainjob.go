package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// trainJob is one TrainJob on its way.
type trainJob struct {
	draft
	in      *TrainJob
	runtime *TrainingRuntime
	// where is the runtime in paths.
	where string
	// replicated is the runtime's job that trains, and pod its template with all that the TrainJob changes.
	replicated *ReplicatedJob
	pod        *corev1.PodTemplateSpec
	podPath    string
	nodes      int64
}

// FromTrainJob returns the ElasticTrainingJob that trains as a TrainJob of that runtime does: one whose pods are alike, by
// torchrun, JAX or no framework. The notes say what is not carried over or means something else. Without an
// ElasticTrainingJob, each note says what keeps the TrainJob from being converted. Neither argument is changed.
func FromTrainJob(job *TrainJob, runtime *TrainingRuntime) (*v1beta1.ElasticTrainingJob, []Note) {
	c := &trainJob{
		draft: newDraft("trainer", trainJobKind), in: copyOf(job), runtime: copyOf(runtime),
		where: runtime.Kind + "/" + runtime.Name + " spec",
	}
	if problems := c.validate(); len(problems) > 0 {
		return nil, problems
	}
	c.metadata(&c.in.ObjectMeta)
	if n := len(c.in.Status.Conditions); n > 0 {
		c.runs(c.in.Status.Conditions[n-1].Type, "its pods would go on beside the new ones")
	}
	c.out.Spec.MinReplicas, c.out.Spec.MaxReplicas = int32(c.nodes), int32(c.nodes)
	c.out.Spec.SuccessPolicy.Targets = allWorkers // A Job is complete when each index is.
	c.template()
	c.framework()
	c.jobPolicies()
	c.runtimePolicies()
	c.templateLimits(c.podPath, c.pod.Spec.Containers)
	c.name()
	return c.out, c.notes
}

// validate resolves the runtime, and returns what trainer would refuse or Tideline cannot express.
func (c *trainJob) validate() []Note {
	var p problems
	if c.in.Name == "" && c.in.GenerateName == "" {
		p.add("metadata.name", nil, "a job needs a name", "set it")
	}
	c.backend(&p)
	if i := c.in.Spec.Initializer; i != nil && (i.Dataset != nil || i.Model != nil) {
		p.add("spec.initializer", i, "an initializer is a job of its own that loads data before the training; Tideline runs none",
			"load the data once into a claim by a Job, mount the claim by spec.runtimePatches, and remove it")
	}
	c.resolve(&p)
	if c.pod != nil && len(c.pod.Spec.Containers) == 0 {
		p.add(c.podPath+".spec.containers", nil, "there is no container to train", "set it in the runtime")
	}
	c.count(&p)
	if n := c.in.Spec.ActiveDeadlineSeconds; n < 0 {
		p.add("spec.activeDeadlineSeconds", n, "it must be 1 or more", "raise or remove it")
	}
	if t := c.in.Spec.Trainer; t != nil && slices.Equal(t.Command, []string{"tune", "run"}) {
		p.add("spec.trainer.command", t.Command, "trainer adds torchtune's recipe and configuration to this command; Tideline does not",
			"write the whole command")
	}
	return p
}

// count decides how many nodes there are.
func (c *trainJob) count(p *problems) {
	path, n := c.where+".mlPolicy.numNodes", int32(1)
	if m := c.runtime.Spec.MLPolicy; m != nil {
		n = ptr.Deref(m.NumNodes, 1)
	} else if c.replicated != nil {
		n = ptr.Deref(c.replicated.Template.Spec.Parallelism, 1)
	}
	if t := c.in.Spec.Trainer; t != nil && t.NumNodes != nil {
		path, n = "spec.trainer.numNodes", *t.NumNodes
	}
	switch c.nodes = int64(n); {
	case n < 1:
		p.add(path, n, "a job without nodes trains nothing", "set 1 or more")
	case n > v1beta1.MaxWorkers:
		p.add(path, n, fmt.Sprintf("a job may have %d workers", v1beta1.MaxWorkers), "ask for fewer")
	}
}

// backend refuses runtimes of frameworks whose environment Tideline cannot give.
func (c *trainJob) backend(p *problems) {
	m := c.runtime.Spec.MLPolicy
	if m == nil {
		return
	}
	for _, f := range []struct {
		name  string
		value any
		what  string
	}{
		{"mpi", m.MPI, "a launcher that starts processes in the other nodes; " + seeMaster},
		{"flux", m.Flux, "Flux's brokers, which Tideline does not set up"},
		{"xgboost", m.XGBoost, "XGBoost's tracker and variables, which Tideline does not set"},
	} {
		if f.value != nil {
			p.add(c.where+".mlPolicy."+f.name, f.value, "its runtime is "+f.what,
				"leave the job to trainer, or train by torchrun (docs/convert.md#the-command)")
		}
	}
}

func (c *trainJob) usesTorchrun() bool {
	return c.runtime.Spec.MLPolicy != nil && c.runtime.Spec.MLPolicy.Torch != nil
}

func (c *trainJob) usesJAX() bool {
	return c.runtime.Spec.MLPolicy != nil && c.runtime.Spec.MLPolicy.JAX != nil
}

const indexAnnotation = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

// template carries over the pods that train.
func (c *trainJob) template() {
	if p := c.pod.Spec.RestartPolicy; p == corev1.RestartPolicyNever {
		c.note(c.podPath+".spec.restartPolicy", string(p), "containers restart in their pod, which keeps its GPUs; it is left out", "")
	}
	c.fromTemplate(c.podPath, c.pod)
	out := &c.out.Spec.Template
	for i := range out.Spec.Containers {
		if c.usesTorchrun() {
			c.environment(c.podPath, &out.Spec.Containers[i])
		}
		c.index(&out.Spec.Containers[i])
	}
	for i := range out.Spec.InitContainers {
		c.index(&out.Spec.InitContainers[i])
	}
	if slices.ContainsFunc(out.Spec.Containers, func(k corev1.Container) bool { return k.Name == nodeContainer }) {
		renameTrainer(out, nodeContainer)
	}
}

// workerIndex is a worker's index as its pod has it.
var workerIndex = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
	FieldPath: "metadata.labels['" + v1beta1.LabelWorkerIndex + "']",
}}

// index lets variables say a worker's index that said the index of a Job's pod.
func (c *trainJob) index(container *corev1.Container) {
	for i := range container.Env {
		from := container.Env[i].ValueFrom
		if from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == indexAnnotation {
			container.Env[i].ValueFrom = workerIndex.DeepCopy()
		}
	}
	const name = "JOB_COMPLETION_INDEX"
	words := strings.Join(slices.Concat(container.Command, container.Args), " ")
	isPlain := !c.usesTorchrun() && !c.usesJAX()
	if isPlain || strings.Contains(words, name) {
		container.Env = append(container.Env, rendezvous.MissingVars(
			[]corev1.EnvVar{{Name: name, ValueFrom: workerIndex.DeepCopy()}}, container.Env)...)
	}
}

// trainerPort is where pods of trainer meet.
const trainerPort = 29500

// framework carries over how pods find each other.
func (c *trainJob) framework() {
	f := &c.out.Spec.Framework
	f.Port = ptr.To[int32](trainerPort)
	switch {
	case c.usesTorchrun():
		c.processes()
		c.launch()
		return
	case !c.usesJAX():
		f.Port = nil
	}
	f.Type = v1beta1.FrameworkCustom
	if c.nodes > 1 {
		c.note(c.podPath+".spec.restartPolicy", shownOrNil(string(c.pod.Spec.RestartPolicy)), "trainer's Job lets the other pods run"+
			" on when one fails; Tideline starts all workers again, as most trainings without torchrun cannot go on without one",
			"for a training that takes workers back by itself, write spec.failurePolicy with RestartWorker"+
				" (docs/workers.md#without-torchrun)")
	}
	if t := c.in.Spec.Trainer; t != nil && t.NumProcPerNode != nil {
		c.note("spec.trainer.numProcPerNode", t.NumProcPerNode.String(), "without torchrun, nothing reads it; it is left out", "")
	}
}

// processes carries over how many processes torchrun starts in each node.
func (c *trainJob) processes() {
	torch := c.runtime.Spec.MLPolicy.Torch
	path, asked := "spec.trainer.numProcPerNode", (*intstr.IntOrString)(nil)
	if t := c.in.Spec.Trainer; t != nil {
		asked = t.NumProcPerNode
	}
	if asked == nil && torch.NumProcPerNode != nil {
		path, asked = c.where+".mlPolicy.torch.numProcPerNode", torch.NumProcPerNode
	}
	out := &c.out.Spec.Framework.NprocPerNode
	if asked != nil && asked.Type == intstr.Int {
		if n := asked.IntVal; n < 1 || n > maxProcesses {
			c.note(path, n, fmt.Sprintf("the number may be 1 to %d; it is left out", maxProcesses), setProcesses)
		} else {
			*out = ptr.To(n)
		}
		return
	}
	if gpus := trainerGPUs(&c.trainer().Resources); gpus > 0 {
		if rendezvous.GPUs(c.trainer()) != gpus {
			*out = ptr.To(int32(min(gpus, maxProcesses)))
		}
		return
	}
	// Trainer counts CPUs where there are no GPUs.
	cpu := c.trainer().Resources.Requests.Cpu()
	if cpu.IsZero() {
		cpu = c.trainer().Resources.Limits.Cpu()
	}
	if n := min(max(1, cpu.Value()), maxProcesses); n > 1 {
		*out = ptr.To(int32(n))
	}
}

// trainerGPUs counts GPUs as trainer does: by resources with gpu in their name, requests first.
func trainerGPUs(r *corev1.ResourceRequirements) int64 {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range sortedKeys(list) {
			if q := list[name]; strings.Contains(strings.ToLower(string(name)), "gpu") && !q.IsZero() {
				return q.Value()
			}
		}
	}
	return 0
}

// torchTrainer finds variables that trainer sets and Tideline does not.
var torchTrainer = regexp.MustCompile(`\$[({]?(PET_NODE_RANK|PET_MASTER_ADDR|PET_MASTER_PORT)\b`)

// launch says what the command must change to train with what Tideline tells it.
func (c *trainJob) launch() {
	i := max(0, slices.IndexFunc(c.pod.Spec.Containers, func(k corev1.Container) bool { return k.Name == nodeContainer }))
	container := &c.pod.Spec.Containers[i]
	where := c.podPath + ".spec.containers[" + container.Name + "]"
	if t := c.in.Spec.Trainer; t == nil {
		c.note("spec.trainer", nil, "trainer tells torchrun nothing then, and each pod trains by itself; Tideline's train together",
			"for independent trainings, create a job of one worker for each")
	} else if t.Command != nil {
		where = "spec.trainer"
	}
	s := readStart(container)
	if len(container.Command) > 0 && container.Command[0] == "tune" {
		// torchtune's command is torchrun.
		s.torchrun, s.flags = true, torchrunFlags(container.Command[min(2, len(container.Command)):])
	}
	if !s.torchrun && (c.nodes > 1 || rendezvous.GPUs(c.trainer()) > 1) {
		c.throughTorchrun(where, container, s, "trainer tells torchrun by variables PET_…, as Tideline does; nothing else reads them")
	}
	c.flags(where, s.flags)
	w := wording{
		variables: torchTrainer, instead: "the rendezvous has its own address, PET_RDZV_ENDPOINT, and gives ranks",
		do: "leave it out", nameWhat: "leave it to torchrun",
	}
	if c.in.Name != "" {
		w.hosts = hostNames(c.in.Name, regexp.QuoteMeta(c.replicated.Name)+"-0")
	}
	c.wordsOf(where, container, w)
}
