package convert

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// seeMaster is the rule that a worker 0 breaks which trains and is not like the others, and alikeDo what to do about it.
const (
	seeMaster = "this command makes workers alike, but for resources and node selector of worker 0"
	alikeDo   = "write the job with spec.roles (docs/workers.md#roles), let one command serve all, which asks for its index, or " +
		"leave the job to "
)

// validate finds the tasks, and returns what Volcano would refuse or Tideline cannot express.
func (c *volcanoJob) validate() []Note {
	var p problems
	if c.in.Name == "" && c.in.GenerateName == "" {
		p.add("metadata.name", nil, "a job needs a name", "set it")
	}
	c.plugins = parsePlugins(c.in.Spec.Plugins, &p)
	c.nameTasks()
	if !c.chooseTasks(&p) {
		return p
	}
	for i, t := range c.tasks() {
		p.task(t)
		if slices.ContainsFunc(c.tasks()[:i], func(o *batch.TaskSpec) bool { return o.Name == t.Name }) {
			p.add(taskPath(t)+".name", t.Name, "Volcano refuses two tasks of one name", "rename one")
		}
	}
	if len(p) > 0 {
		return p
	}
	c.checkTasks(&p)
	c.numbers(&p)
	for i, v := range c.in.Spec.Volumes {
		p.volume(fmt.Sprintf("spec.volumes[%d]", i), v)
	}
	p.lifecycle("spec.policies", c.in.Spec.Policies)
	for _, t := range c.tasks() {
		p.lifecycle(taskPath(t)+".policies", t.Policies)
	}
	return p
}

// nameTasks names tasks without a name as Volcano's webhook does.
func (c *volcanoJob) nameTasks() {
	for i := range c.in.Spec.Tasks {
		if t := &c.in.Spec.Tasks[i]; t.Name == "" {
			t.Name = fmt.Sprintf("%s%d", batch.DefaultTaskSpec, i)
		}
	}
}

func (p *problems) task(t *batch.TaskSpec) {
	path := taskPath(t)
	if t.Replicas < 1 {
		p.add(path+".replicas", t.Replicas, "a task without pods trains nothing", "set 1 or more, or remove the task")
	}
	if len(t.Template.Spec.Containers) == 0 {
		p.add(path+".template.spec.containers", nil, "Volcano refuses a template without containers", "set them")
	}
	if t.PartitionPolicy != nil {
		p.add(path+".partitionPolicy", t.PartitionPolicy, "Tideline does not part a job's workers into groups that are placed apart",
			"remove it, or create a job for each group; spec.networkTopology keeps all workers of a job close to each other")
	}
}

// differs refuses, by a rule, a field in which the pod of worker 0 is not like the others, and says what to do.
func (p *problems) differs(path string, theirs any, others string, ours any, rule, do string) {
	meaning := others + " has " + show(ours)
	if empty(ours) {
		meaning = others + " does not have it"
	}
	if empty(theirs) {
		theirs = nil
	}
	p.add(path, theirs, meaning+"; "+rule, do)
}

// numbers refuses what Volcano refuses of the job's numbers, and what Tideline cannot count.
func (c *volcanoJob) numbers(p *problems) {
	spec := &c.in.Spec
	if n := c.total(); n > v1beta1.MaxWorkers {
		p.add(c.restPath+".replicas", n, fmt.Sprintf("a job may have %d workers", v1beta1.MaxWorkers), "ask for fewer")
	}
	switch n := c.minimum(); {
	case n < 1:
		p.add("spec.minAvailable", n, "Tideline places a core of one worker at least; Volcano would place each pod by itself",
			"set 1 or more")
	case n > c.total():
		p.add("spec.minAvailable", n, fmt.Sprintf("it exceeds the replicas of all tasks (%d)", c.total()),
			"lower minAvailable or raise replicas")
	}
	for _, f := range []struct {
		name  string
		value *int64
		least int64
	}{
		{"maxRetry", ptr.To(int64(spec.MaxRetry)), 0},
		{"minSuccess", widen(spec.MinSuccess), 1},
		{"ttlSecondsAfterFinished", widen(spec.TTLSecondsAfterFinished), 0},
	} {
		if f.value != nil && *f.value < f.least {
			p.add("spec."+f.name, *f.value, fmt.Sprintf("it must be %d or more", f.least), "raise or remove it")
		}
	}
	if n := spec.MinSuccess; n != nil && int64(*n) > c.total() {
		p.add("spec.minSuccess", *n, fmt.Sprintf("it exceeds the replicas of all tasks (%d): the job would never succeed", c.total()),
			"lower it")
	}
}

func (p *problems) volume(path string, v batch.VolumeSpec) {
	switch {
	case v.MountPath == "":
		p.add(path+".mountPath", nil, "Volcano refuses a volume that is mounted nowhere", "set it")
	case v.VolumeClaim != nil:
		p.add(path+".volumeClaim", v.VolumeClaim, "Volcano makes a claim for the job and deletes it with it; Tideline makes none",
			"create the PersistentVolumeClaim and name it in volumeClaimName; or give the template an ephemeral volume, one for each pod")
	case v.VolumeClaimName == "":
		p.add(path+".volumeClaimName", nil, "Volcano refuses a volume without a claim", "set it")
	}
}
