package convert

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// Volcano's job plugins, as pkg/controllers/job/plugins/factory.go names them.
const (
	pluginSSH     = "ssh"
	pluginEnv     = "env"
	pluginSvc     = "svc"
	pluginMPI     = "mpi"
	pluginPyTorch = "pytorch"

	pluginTensorFlow = "tensorflow"
)

// foreign are the plugins whose environment Tideline cannot give, each with what it gives.
var foreign = map[string]string{
	"ray":      "it starts a head and workers of Ray",
	"hcclrank": "it gives ranks to Ascend's processors",
}

// pluginArgs is what a job's plugins are told.
type pluginArgs struct {
	has map[string]bool
	// master is the name of the task that others find by name: by default, or by an argument of the plugin mpi or pytorch.
	master string
	// worker is the name of the task that trains, by an argument of the plugin mpi, pytorch or tensorflow.
	worker string
	// servers, chief and evaluator are names of tasks by arguments of the plugin tensorflow.
	servers, chief, evaluator string
	// port is that of the rendezvous, by the plugin pytorch or tensorflow.
	port int
	// open is whether svc was told to make no NetworkPolicy.
	open bool
	// keyPath and ownKey are where ssh mounts its keys, and whether they are the user's own.
	keyPath string
	ownKey  bool
	sshPort int
}

// parsePlugins reads the arguments of plugins as Volcano does, by Go's flags, and refuses what it would pass over in its log.
func parsePlugins(plugins map[string][]string, p *problems) pluginArgs {
	a := pluginArgs{
		has: map[string]bool{}, master: masterRole, worker: v1beta1.RoleWorker, port: 23456, keyPath: "/root/.ssh", sshPort: 22,
	}
	var master, image, private, public string
	var ignored bool
	var seconds, mpiPort int
	for _, name := range sortedKeys(plugins) {
		path := "spec.plugins[" + name + "]"
		flags := flag.NewFlagSet(name, flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		switch name {
		case pluginEnv:
		case pluginSvc:
			flags.BoolVar(&ignored, "publish-not-ready-addresses", false, "")
			flags.BoolVar(&a.open, "disable-network-policy", false, "")
		case pluginSSH:
			flags.StringVar(&a.keyPath, "ssh-key-file-path", a.keyPath, "")
			flags.StringVar(&private, "ssh-private-key", "", "")
			flags.StringVar(&public, "ssh-public-key", "", "")
			flags.IntVar(&a.sshPort, "ssh-port", a.sshPort, "")
		case pluginMPI:
			flags.StringVar(&master, "master", a.master, "")
			flags.StringVar(&a.worker, "worker", a.worker, "")
			flags.IntVar(&mpiPort, "port", 22, "")
		case pluginPyTorch:
			flags.StringVar(&master, "master", a.master, "")
			flags.StringVar(&a.worker, "worker", a.worker, "")
			flags.IntVar(&a.port, "port", a.port, "")
			flags.BoolVar(&ignored, "wait-master-enabled", false, "")
			flags.IntVar(&seconds, "wait-master-timeout", 300, "")
			flags.StringVar(&image, "wait-master-image", "", "")
		case pluginTensorFlow:
			flags.StringVar(&a.servers, "ps", "ps", "")
			flags.StringVar(&a.worker, "worker", a.worker, "")
			flags.StringVar(&a.chief, "chief", "chief", "")
			flags.StringVar(&a.evaluator, "evaluator", v1beta1.RoleEvaluator, "")
			flags.IntVar(&a.port, "port", 2222, "")
		default:
			meaning := "Volcano has no such plugin, unless somebody added it; Tideline has none"
			if what, ok := foreign[name]; ok {
				meaning = what + ", and Tideline has no such backend yet"
			}
			p.add(path, plugins[name], meaning, "remove it if the training does without, or leave the job to Volcano")
			continue
		}
		if err := flags.Parse(plugins[name]); err != nil {
			p.add(path, plugins[name], "Volcano cannot read its arguments: "+err.Error(), "correct them")
		}
		a.has[name] = true
	}
	if master != "" {
		a.master = master
	}
	a.ownKey = private != ""
	p.backends(plugins, a)
	return a
}

// backends refuses a job with more than one of the plugins by which processes find each other.
func (p *problems) backends(plugins map[string][]string, a pluginArgs) {
	backend := ""
	for _, name := range []string{pluginPyTorch, pluginTensorFlow, pluginMPI} {
		if a.has[name] && backend != "" {
			p.add("spec.plugins["+name+"]", plugins[name], "a job has one backend, and this one has "+backend+" too",
				"remove one of the two")
		}
		if a.has[name] {
			backend = name
		}
	}
}

// usesTorchrun is whether processes find each other by torchrun's means.
func (c *volcanoJob) usesTorchrun() bool { return c.plugins.has[pluginPyTorch] }

// usesTensorFlow is whether processes find each other by TF_CONFIG, which the plugin does not tell a pod that is alone.
func (c *volcanoJob) usesTensorFlow() bool { return c.plugins.has[pluginTensorFlow] && c.total() > 1 }

// framework carries over how pods find each other.
func (c *volcanoJob) framework() {
	f := &c.out.Spec.Framework
	if c.usesTorchrun() {
		c.torchrun()
	} else {
		f.Type = v1beta1.FrameworkCustom
		if c.usesTensorFlow() {
			c.tensorFlow()
		}
		c.volcanoEnv()
		c.gangRestarts()
	}
	if c.hasSvc() {
		c.isolation()
	}
	if c.has(pluginSSH) || c.has(pluginMPI) {
		c.keys()
	}
}

// arguments are those of a plugin, or nil for one that only Volcano's webhook adds.
func (c *volcanoJob) arguments(plugin string) any {
	if given, ok := c.in.Spec.Plugins[plugin]; ok {
		return slices.Concat([]string{}, given)
	}
	return nil
}

func (c *volcanoJob) has(plugin string) bool { return c.plugins.has[plugin] }

// hasSvc is whether pods find each other by name: Volcano's webhook adds plugin svc to a backend
// (pkg/webhooks/admission/jobs/mutate).
func (c *volcanoJob) hasSvc() bool {
	return c.has(pluginSvc) || c.has(pluginMPI) || c.has(pluginPyTorch) || c.has(pluginTensorFlow)
}

// torchrun carries over what the plugin pytorch says: it tells each pod its rank, as training-operator does.
func (c *volcanoJob) torchrun() {
	const path = "spec.plugins[pytorch]"
	if c.first == nil && c.rest.Name != c.plugins.master {
		c.note(path, c.arguments(pluginPyTorch), "without a task "+c.plugins.master+
			" the plugin tells pods nothing; Tideline tells all workers how to meet by torchrun", "")
	}
	c.port(path)
	if len(c.roles) > 0 {
		c.note(path, c.arguments(pluginPyTorch), "roles do not join torchrun's rendezvous and are told nothing, where Volcano tells "+
			"all pods MASTER_ADDR and variables and files of hosts", "let their scripts name hosts, as "+
			rendezvous.ShortHost(c.out, 0))
	}
	if gpus := rendezvous.GPUs(c.trainer()); gpus > 1 && c.startsOther() {
		c.out.Spec.Framework.NprocPerNode = ptr.To[int32](1)
		c.note(path, c.arguments(pluginPyTorch), fmt.Sprintf(
			"it counts one process for each pod, so torchrun starts 1 in each worker of %d GPUs", gpus),
			fmt.Sprintf("set spec.framework.nprocPerNode to %d if each process shall have one GPU", gpus))
	}
}

// port carries over the port of a backend.
func (c *volcanoJob) port(path string) {
	if p := c.plugins.port; p < leastPort || p > mostPort {
		c.note(path+" --port", p, fmt.Sprintf("spec.framework.port may be %d to %d; it is left out, and the port is %d",
			leastPort, mostPort, v1beta1.DefaultPort), "")
	} else {
		c.out.Spec.Framework.Port = ptr.To(int32(p))
	}
}

// tensorFlow carries over what the plugin tensorflow says.
func (c *volcanoJob) tensorFlow() {
	const path = "spec.plugins[tensorflow]"
	c.out.Spec.Framework.Type = v1beta1.FrameworkTensorFlow
	c.port(path)
	if slices.ContainsFunc(c.roles, func(r volcanoRole) bool { return r.name == v1beta1.RoleEvaluator }) {
		c.note(path, c.arguments(pluginTensorFlow), "the cluster in TF_CONFIG names no evaluator, as TensorFlow's guide has it; "+
			"Volcano's plugin names it", "")
	}
}

// startsOther is whether something else than torchrun is known to start the training.
func (d *draft) startsOther() bool {
	return len(d.trainer().Command) > 0 && !readStart(d.trainer()).torchrun
}

// longestHosts bounds a list of host names that is written into the template, in bytes.
const longestHosts = 32 << 10

// volcanoEnv gives containers the variables of Volcano's plugins env and svc where Tideline's own say something else: those know
// the roles, a task "worker" of all others, and without roles a task "master" of worker 0.
func (c *volcanoJob) volcanoEnv() {
	const path = "spec.plugins[svc]"
	native := (len(c.roles) > 0 || c.first != nil && c.first.Name == masterRole) && c.rest.Name == v1beta1.RoleWorker &&
		!slices.ContainsFunc(c.roles, volcanoRole.isRenamed)
	var vars []corev1.EnvVar
	if c.has(pluginEnv) && c.hasOneTask() {
		vars = append(vars,
			corev1.EnvVar{Name: "VK_TASK_INDEX", ValueFrom: workerIndex}, corev1.EnvVar{Name: "VC_TASK_INDEX", ValueFrom: workerIndex})
	}
	if c.hasSvc() {
		if !native {
			vars = append(vars, c.hostVars()...)
		}
		files := "there is no other file of the task's name beside master.host and worker.host"
		if len(c.roles) > 0 {
			files = "files have the names of roles, and worker.host has the others"
		}
		c.note(path, c.arguments(pluginSvc), fmt.Sprintf("workers are %s.%s and so on, in /etc/volcano/hosts; %s",
			rendezvous.WorkerName(c.out, 0), rendezvous.ServiceName(c.in.Name), files),
			"name hosts so where the script does, or let it read the file")
	}
	spec := &c.out.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Env = append(containers[i].Env, rendezvous.MissingVars(vars, containers[i].Env)...)
		}
	}
}

// hostVars are the variables of plugin svc with the names that workers have now, but for roles of their tasks' names, whose
// variables Tideline sets.
func (c *volcanoJob) hostVars() []corev1.EnvVar {
	hosts := map[string][]string{}
	for i := range int32(c.total()) {
		task := c.rest.Name
		if role := c.out.Spec.SeatOf(i).Role; role != nil {
			task = c.roles[slices.IndexFunc(c.roles, func(r volcanoRole) bool { return r.name == role.Name })].Name
		} else if i == 0 && c.first != nil {
			task = c.first.Name
		}
		hosts[task] = append(hosts[task], rendezvous.ShortHost(c.out, i))
	}
	var vars []corev1.EnvVar
	for _, t := range c.tasks() {
		if slices.ContainsFunc(c.roles, func(r volcanoRole) bool { return r.TaskSpec == t && !r.isRenamed() }) {
			continue
		}
		names := hosts[t.Name]
		key := strings.ToUpper(strings.ReplaceAll(t.Name, "-", "_"))
		vars = append(vars, corev1.EnvVar{Name: "VC_" + key + "_NUM", Value: strconv.Itoa(len(names))})
		hosts := strings.Join(names, ",")
		if len(hosts) > longestHosts || c.in.Name == "" {
			c.note("spec.plugins[svc]", len(names), "VC_"+key+"_HOSTS is not set, as the list of names is not known or too long here",
				"read /etc/volcano/hosts")
			continue
		}
		vars = append(vars, corev1.EnvVar{Name: "VC_" + key + "_HOSTS", Value: hosts})
	}
	return vars
}

// gangRestarts says what Tideline does by itself about a worker that fails.
func (c *volcanoJob) gangRestarts() {
	if c.total() > 1 && !c.decidesFailure() && !c.neverRestarts() {
		c.note("spec.policies", nil, "Volcano leaves the other pods alone when one fails or is lost; Tideline starts all workers"+
			" again, as most trainings without torchrun cannot go on without one",
			"for a training that takes workers back by itself, write spec.failurePolicy with RestartWorker"+
				" (docs/workers.md#without-torchrun)")
	}
}

// isolation carries over the NetworkPolicy of plugin svc.
func (c *volcanoJob) isolation() {
	const path = "spec.plugins[svc]"
	switch {
	case c.plugins.open:
	case c.out.Spec.Template.Spec.HostNetwork:
		c.note(path, c.arguments(pluginSvc), "it makes a NetworkPolicy, which does not hold for pods of the host's network; "+
			"there is none", "")
	default:
		c.out.Spec.NetworkPolicy = v1beta1.NetworkPolicyIsolated
		c.note(path, c.arguments(pluginSvc), "it makes a NetworkPolicy by which only pods of the job connect to it; that is "+
			"spec.networkPolicy: Isolated now, for which the operator needs the rights of component job-network-policy",
			"remove spec.networkPolicy if the namespace's own policies are enough")
	}
}

// keys carries over the plugin ssh.
func (c *volcanoJob) keys() {
	const path = "spec.plugins[ssh]"
	value := c.arguments(pluginSSH)
	if c.usesTorchrun() {
		c.note(path, value, "torchrun's workers do not log in to each other; it is left out", "")
		return
	}
	c.out.Spec.Framework.SSH = v1beta1.SSHKeyPair
	if c.plugins.ownKey {
		c.note(path+" --ssh-private-key", nil, "the job gets a key pair of its own; the given one is left out",
			"mount a Secret with it if it must be that one")
	}
	port := ""
	if c.plugins.sshPort != 22 {
		port = fmt.Sprintf(" -p %d", c.plugins.sshPort)
	}
	c.note(path, value, "keys are in /etc/tideline/ssh of the training container instead of "+c.plugins.keyPath+
		", for which the operator needs the rights of component ssh-keys",
		"log in by ssh -F /etc/tideline/ssh/config"+port+
			", and start sshd with -o AuthorizedKeysFile=/etc/tideline/ssh/authorized_keys")
}
