package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// The tasks of a Volcano Job become, in the order of the workers' indices:
//
//	a job of                      worker 0                          1 ...              the rest
//	one task                      the task                                             the task
//	two tasks, pods alike         the task of one pod (spec.master)                    the other
//	others                        the master or chief, if it leads  the other roles    the task of the workers

// volcanoRole is a task that becomes a role.
type volcanoRole struct {
	*batch.TaskSpec
	// name is that of the role.
	name string
	// lead is true for the role that has worker 0.
	lead bool
}

// roleName is what the name of a role must match (JobRole).
var roleName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// takenRoles are names that Tideline gives to other pods.
var takenRoles = []string{v1beta1.RoleWorker, "core", "surplus", "merge", "other"}

// chooseTasks decides which task is the workers', which is worker 0, and which are roles; false for a job that has none to
// convert.
func (c *volcanoJob) chooseTasks(p *problems) bool {
	tasks := c.in.Spec.Tasks
	if len(tasks) == 0 {
		p.add("spec.tasks", nil, "there is no task to convert", "give the job one")
		return false
	}
	c.rest = c.workersTask()
	if c.rest == nil {
		p.add("spec.plugins[tensorflow]", c.in.Spec.Plugins[pluginTensorFlow], "there is no task "+c.plugins.worker+
			", and the others are roles beside it", "name the workers' task so, or leave the job to Volcano")
		return false
	}
	c.restPath = taskPath(c.rest)
	for i := range tasks {
		switch t := &tasks[i]; {
		case t == c.rest:
		case c.isFirst(t):
			c.first, c.firstPath = t, taskPath(t)
		default:
			name := t.Name
			if c.usesTensorFlow() {
				name = c.plugins.tensorFlowRole(name)
			}
			c.roles = append(c.roles, volcanoRole{TaskSpec: t, name: name, lead: c.leads(t)})
		}
	}
	return true
}

// workersTask is the task that the template is made of; nil for a job of TensorFlow without one: of two tasks whose pods are
// alike the one that is not worker 0, else the one that is called so, else the one with most pods.
func (c *volcanoJob) workersTask() *batch.TaskSpec {
	tasks := c.in.Spec.Tasks
	named := slices.IndexFunc(tasks, func(t batch.TaskSpec) bool { return t.Name == c.plugins.worker })
	switch {
	case len(tasks) == 2 && !c.usesTensorFlow() && areAlike(&tasks[0], &tasks[1]):
		if tasks[1].Replicas == 1 && (tasks[0].Replicas != 1 || tasks[1].Name == c.plugins.master) {
			return &tasks[0]
		}
		if tasks[0].Replicas == 1 {
			return &tasks[1]
		}
	case c.usesTensorFlow() && named < 0:
		return nil
	}
	if named >= 0 {
		return &tasks[named]
	}
	most := 0
	for i := range tasks {
		if tasks[i].Replicas > tasks[most].Replicas || tasks[most].Name == c.plugins.master {
			most = i
		}
	}
	return &tasks[most]
}

// isFirst is true for a task of one pod that trains as the workers do and becomes worker 0: the master of torchrun, or of two
// tasks one that is alike but for resources and nodes.
func (c *volcanoJob) isFirst(t *batch.TaskSpec) bool {
	switch {
	case t.Replicas != 1 || c.usesTensorFlow():
		return false
	case c.usesTorchrun() && t.Name == c.plugins.master:
		return true
	}
	return len(c.in.Spec.Tasks) == 2 && areAlike(t, c.rest)
}

// leads is true for the task whose pod becomes worker 0 although it does something else: TensorFlow's chief, or the master.
// Torchrun has its rendezvous on a worker that trains.
func (c *volcanoJob) leads(t *batch.TaskSpec) bool {
	switch {
	case t.Replicas != 1 || c.usesTorchrun():
		return false
	case c.usesTensorFlow():
		return t.Name == c.plugins.chief
	}
	return t.Name == c.plugins.master
}

// tensorFlowRole is what TensorFlow calls a task, in the order in which Volcano's plugin looks; "" for one that the plugin does
// not know.
func (a *pluginArgs) tensorFlowRole(task string) string {
	switch task {
	case a.chief:
		return "chief"
	case a.servers:
		return "ps"
	case a.evaluator:
		return v1beta1.RoleEvaluator
	}
	return ""
}

// isRenamed is true for a role that is not called as its task.
func (r volcanoRole) isRenamed() bool { return r.name != r.Name }

// areAlike is true if the pods of two tasks differ in nothing but what spec.master can say.
func areAlike(a, b *batch.TaskSpec) bool {
	return len(a.Template.Spec.Containers) > 0 && len(b.Template.Spec.Containers) > 0 &&
		equality.Semantic.DeepEqual(alikeButForMaster(a), alikeButForMaster(b))
}

// alikeButForMaster is a task's template without what spec.master can say of worker 0.
func alikeButForMaster(t *batch.TaskSpec) *corev1.PodTemplateSpec {
	template := t.Template.DeepCopy()
	trainingContainer(&template.Spec).Resources = corev1.ResourceRequirements{}
	template.Spec.NodeSelector = nil
	template.Name = "" // Volcano does not read it.
	return template
}

// checkTasks refuses tasks whose pods differ in more than can be said of worker 0 or of a role, and more roles than a job may
// have.
func (c *volcanoJob) checkTasks(p *problems) {
	if c.first != nil {
		theirs, ours, rule := alikeButForMaster(c.first), alikeButForMaster(c.rest), seeMaster
		if len(c.roles) > 0 { // Such a job has no spec.master.
			theirs, ours, rule = c.first.Template.DeepCopy(), c.rest.Template.DeepCopy(), "beside roles worker 0 is as the workers"
		}
		p.compare(c.firstPath+".template", theirs, ours, c.restPath, rule, alikeDo+"Volcano")
	}
	members := int32(0)
	for i, r := range c.roles {
		members += r.Replicas
		c.checkRole(p, r)
		if r.name != "" && slices.ContainsFunc(c.roles[:i], func(o volcanoRole) bool { return o.name == r.name }) {
			p.add(taskPath(r.TaskSpec)+".name", r.Name, "another task becomes role "+r.name+" too", "make one task of both")
		}
	}
	if n := len(c.roles); n > v1beta1.MaxRoles {
		p.add("spec.tasks", n+1, fmt.Sprintf("a job may have %d roles beside its workers", v1beta1.MaxRoles),
			"leave the job to Volcano")
	}
	if members > v1beta1.MaxRoleMembers {
		p.add("spec.tasks", members, fmt.Sprintf("pods in tasks beside %s become workers of roles, and a job may have %d of them",
			c.restPath, v1beta1.MaxRoleMembers), "ask for fewer, or leave the job to Volcano")
	}
}

// compare refuses each field in which two templates differ.
func (p *problems) compare(path string, theirs, ours *corev1.PodTemplateSpec, others, rule, do string) {
	if equality.Semantic.DeepEqual(theirs, ours) {
		return
	}
	if a, b := rendezvous.TrainerIndex(theirs.Spec.Containers), rendezvous.TrainerIndex(ours.Spec.Containers); a != b {
		p.add(path+".spec.containers", a, fmt.Sprintf("is the place of the training container, which is %d in %s", b, others),
			"give it the same place in both")
	}
	differences(path, asMap(theirs), asMap(ours), func(path string, theirs, ours any) {
		p.differs(path, theirs, others, ours, rule, do)
	})
}

// checkRole refuses a task whose name or pods a role cannot have.
func (c *volcanoJob) checkRole(p *problems, r volcanoRole) {
	path := taskPath(r.TaskSpec)
	const rename = "rename the task, and its variables VC_…_HOSTS and VC_…_NUM in the script"
	switch {
	case r.name == "":
		p.add(path+".name", r.Name, fmt.Sprintf("the plugin tensorflow knows tasks %s, %s, %s and %s", c.plugins.chief,
			c.plugins.servers, c.plugins.worker, c.plugins.evaluator), "name it by an argument of the plugin, or leave the job to Volcano")
	case len(r.name) > v1beta1.MaxRoleName || !roleName.MatchString(r.name):
		p.add(path+".name", r.name, fmt.Sprintf("it becomes a role, whose name has up to %d lower-case letters and digits",
			v1beta1.MaxRoleName), rename)
	case slices.Contains(takenRoles, r.name):
		p.add(path+".name", r.name, "it becomes a role, and Tideline calls other pods so", rename)
	case !r.lead && (r.name == masterRole || r.name == "chief" && c.usesTensorFlow()):
		p.add(path+".replicas", r.Replicas, "role "+r.name+" leads, and one worker leads", "set 1, or rename the task")
	}
	theirs, ours := r.Template.DeepCopy(), c.rest.Template.DeepCopy()
	main, others := trainingContainer(&r.Template.Spec), trainingContainer(&c.rest.Template.Spec)
	for _, t := range []*corev1.PodTemplateSpec{theirs, ours} {
		alikeButForRole(t, main.Env, others.Env)
		trainingContainer(&t.Spec).Name = main.Name // They are the training containers, whatever they are called.
	}
	theirs.Spec.RestartPolicy, ours.Spec.RestartPolicy = r.Template.Spec.RestartPolicy, c.rest.Template.Spec.RestartPolicy
	p.compare(path+".template", theirs, ours, c.restPath, seeRole, "let both have it, or leave the job to Volcano")
	inherits := len(main.Command) == 0 && (len(others.Command) > 0 || len(main.Args) == 0 && len(others.Args) > 0)
	if inherits {
		p.needsCommand(path+".template.spec", r.name, main)
	}
}

// needsCommand refuses a role's container that starts what its image starts, where the workers' would pass on a command or
// arguments.
func (p *problems) needsCommand(path, role string, main *corev1.Container) {
	p.add(path+".containers["+main.Name+"].command", nil, "the "+role+" starts what its image starts, and a role without a command "+
		"starts that of the workers", "write it")
}

// rolesOfTasks makes roles of tasks.
func (c *volcanoJob) rolesOfTasks() {
	spec := &c.out.Spec
	for _, r := range c.roles {
		role := c.role(r.name, taskPath(r.TaskSpec)+".template.spec", &r.Template.Spec, &c.rest.Template.Spec)
		role.Replicas, role.Lead = r.Replicas, r.lead
		spec.Roles = append(spec.Roles, role)
	}
}

// least is how many workers the core has at least: all of roles, and of the others as many as Volcano looks at.
func (c *volcanoJob) least() int32 {
	if c.usesTensorFlow() {
		return int32(c.total())
	}
	least, ofTasks := int32(1), int64(0)
	for _, t := range c.tasks() {
		ofTasks += int64(ptr.Deref(t.MinAvailable, t.Replicas))
	}
	if len(c.roles) > 0 && c.minimum() >= ofTasks {
		least = max(1, ptr.Deref(c.rest.MinAvailable, c.rest.Replicas))
		if c.first != nil {
			least++
		}
	}
	for _, r := range c.roles {
		least += r.Replicas
	}
	return least
}

// indexes are those of the workers that a task's pods become, as a policy names them.
func (c *volcanoJob) indexes(t *batch.TaskSpec) string {
	first := c.firstTask()
	if t == first && t != c.rest {
		return "0"
	}
	at := int32(1)
	for _, r := range c.roles {
		switch {
		case r.lead:
		case r.TaskSpec == t && r.Replicas == 1:
			return strconv.Itoa(int(at))
		case r.TaskSpec == t:
			return fmt.Sprintf("%d-%d", at, at+r.Replicas-1)
		default:
			at += r.Replicas
		}
	}
	switch {
	case first != c.rest:
		return fmt.Sprintf("%d-", at)
	case at == 1:
		return "0-"
	}
	return fmt.Sprintf("0,%d-", at)
}

// hasOneTask is true for a job whose workers are all of one task.
func (c *volcanoJob) hasOneTask() bool { return c.first == nil && len(c.roles) == 0 }

// firstTask is the task of worker 0.
func (c *volcanoJob) firstTask() *batch.TaskSpec {
	for _, r := range c.roles {
		if r.lead {
			return r.TaskSpec
		}
	}
	if c.first != nil {
		return c.first
	}
	return c.rest
}

// tasks are those that the job has: that of worker 0 if it has one of its own, roles, the workers'.
func (c *volcanoJob) tasks() (all []*batch.TaskSpec) {
	if c.first != nil {
		all = append(all, c.first)
	}
	for _, r := range c.roles {
		all = append(all, r.TaskSpec)
	}
	return append(all, c.rest)
}
