package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// numaPolicy is the annotation of pods that Volcano's scheduler reads, and its controller writes.
const numaPolicy = "volcano.sh/numa-topology-policy"

// volcanoKind is what people call it, as a plain Job is another kind.
const volcanoKind = "Volcano Job"

// volcanoJob is one Job of Volcano on its way.
type volcanoJob struct {
	draft
	in      *batch.Job
	plugins pluginArgs
	// first is the task of one pod that becomes worker 0 without being a role, if there is one; rest is the task of the workers.
	first, rest *batch.TaskSpec
	// roles are the other tasks.
	roles []volcanoRole
	// firstPath and restPath are where they stand.
	firstPath, restPath string
}

// FromVolcanoJob returns the ElasticTrainingJob that trains as a Volcano Job (batch.volcano.sh/v1alpha1) does: one of its tasks
// are the workers, one of one pod may be worker 0, and the others become roles. The notes say what is not carried over or means
// something else. Without an ElasticTrainingJob, each note says what keeps the Job from being converted. The Job is not
// changed.
func FromVolcanoJob(job *batch.Job) (*v1beta1.ElasticTrainingJob, []Note) {
	c := &volcanoJob{draft: newDraft("Volcano", volcanoKind), in: job.DeepCopy()}
	if problems := c.validate(); len(problems) > 0 {
		return nil, problems
	}
	c.metadata(&c.in.ObjectMeta)
	if phase := c.in.Status.State.Phase; phase != "" {
		c.runs(string(phase), "pods of both may have the same names")
	}
	c.replicas()
	c.template()
	c.worker0()
	c.rolesOfTasks()
	c.framework()
	c.success()
	c.policies()
	c.scheduling()
	c.launch()
	c.templateLimits(c.restPath+".template", c.rest.Template.Spec.Containers)
	c.name()
	return c.out, c.notes
}

// taskPath is the path of a task.
func taskPath(t *batch.TaskSpec) string { return "spec.tasks[" + t.Name + "]" }

// total is the number of pods of all tasks.
func (c *volcanoJob) total() int64 {
	var n int64
	for i := range c.in.Spec.Tasks {
		n += int64(c.in.Spec.Tasks[i].Replicas)
	}
	return n
}

// minimum is the number of pods without which Volcano starts none. Volcano's webhook sets what is 0: to the sum of the tasks'
// minAvailable, or replicas. If the job's is less than that sum, Volcano does not look at the tasks'.
func (c *volcanoJob) minimum() int64 {
	if n := c.in.Spec.MinAvailable; n != 0 {
		return int64(n)
	}
	var n int64
	for i := range c.in.Spec.Tasks {
		n += int64(ptr.Deref(c.in.Spec.Tasks[i].MinAvailable, c.in.Spec.Tasks[i].Replicas))
	}
	return n
}

// replicas carries over how many pods the job has.
func (c *volcanoJob) replicas() {
	const path = "spec.minAvailable"
	asked, spec := int32(c.minimum()), &c.out.Spec
	spec.MinReplicas, spec.MaxReplicas = max(asked, c.least()), int32(c.total())
	if asked < spec.MinReplicas {
		meaning := "roles are among spec.minReplicas, and one worker at least is beside them"
		if c.usesTensorFlow() {
			meaning = "TF_CONFIG names all workers when they start"
		}
		c.note(path, asked, fmt.Sprintf("%s, so that spec.minReplicas is %d", meaning, spec.MinReplicas), "")
	}
	if spec.MinReplicas < spec.MaxReplicas {
		c.note(path, asked, fmt.Sprintf("spec.minReplicas is %d now, and the %d pods of the tasks are spec.maxReplicas: workers "+
			"beyond minReplicas give way to waiting gangs", spec.MinReplicas, spec.MaxReplicas),
			"raise spec.minReplicas if fewer workers cannot train")
	}
}

// template carries over the pod template of the workers' task, and the job's volumes.
func (c *volcanoJob) template() {
	path := c.restPath + ".template"
	in := c.rest.Template.DeepCopy()
	c.volcanoLabels(path, &in.Spec)
	if in.Spec.PriorityClassName == "" && c.in.Spec.PriorityClassName != "" {
		c.note("spec.priorityClassName", c.in.Spec.PriorityClassName, "the priority follows from the tier; it is left out", setTier)
	}
	c.fromTemplate(path, in)
	c.volumes()
	if c.usesTorchrun() {
		for i := range c.out.Spec.Template.Spec.Containers {
			c.environment(path, &c.out.Spec.Template.Spec.Containers[i])
		}
		c.setDefaultEnv("PYTHONUNBUFFERED", "1") // so that logs appear at once, as for a PyTorchJob
	}
}

// volcanoLabels says where the template selects pods by labels that Volcano sets.
func (c *volcanoJob) volcanoLabels(path string, spec *corev1.PodSpec) {
	for _, field := range []struct {
		name  string
		value any
	}{{"affinity", spec.Affinity}, {"topologySpreadConstraints", spec.TopologySpreadConstraints}} {
		if written, err := json.Marshal(field.value); err == nil && strings.Contains(string(written), "volcano.sh/") {
			c.note(path+".spec."+field.name, field.value, "it selects by labels volcano.sh/…, which Tideline's pods do not have",
				"select by tideline.io/job, whose value is the job's name")
		}
	}
}

// volumes mounts the job's volumes in all containers, as Volcano does.
func (c *volcanoJob) volumes() {
	spec := &c.out.Spec.Template.Spec
	for i, v := range c.in.Spec.Volumes {
		name := "volcano-" + strconv.Itoa(i)
		for slices.ContainsFunc(spec.Volumes, func(have corev1.Volume) bool { return have.Name == name }) {
			name += "-job"
		}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.VolumeClaimName},
		}})
		for n := range spec.Containers {
			spec.Containers[n].VolumeMounts = append(spec.Containers[n].VolumeMounts,
				corev1.VolumeMount{Name: name, MountPath: v.MountPath})
		}
	}
}

// worker0 carries over what the first task asks for that the other does not.
func (c *volcanoJob) worker0() {
	if c.first == nil || len(c.roles) > 0 {
		return
	}
	overrides := &v1beta1.Master{}
	theirs, ours := c.first.Template.DeepCopy(), c.rest.Template.DeepCopy()
	if r := trainingContainer(&theirs.Spec).Resources; !equality.Semantic.DeepEqual(r, trainingContainer(&ours.Spec).Resources) {
		overrides.Resources = &r
	}
	overrides.NodeSelector = c.masterNodeSelector(
		c.firstPath+".template.spec.nodeSelector", theirs.Spec.NodeSelector, ours.Spec.NodeSelector)
	if overrides.Resources != nil || overrides.NodeSelector != nil {
		c.out.Spec.Master = overrides
	}
}

// success carries over whose success ends the job.
func (c *volcanoJob) success() {
	const path = "spec.minSuccess"
	policy := &c.out.Spec.SuccessPolicy
	policy.Targets = allWorkers
	n := c.in.Spec.MinSuccess
	switch {
	case n == nil:
		if c.out.Spec.MinReplicas < c.out.Spec.MaxReplicas {
			c.note(path, nil, fmt.Sprintf("Volcano looks when all pods have ended, and wants %d of them to have succeeded; Tideline "+
				"wants the success of each worker of the core, 0 to %d", c.out.Spec.MinReplicas, c.out.Spec.MinReplicas-1), "")
		}
	case *n == 1 && c.out.Spec.MinReplicas > 1:
		policy.Operator = v1beta1.SuccessOfAny
	case *n != c.out.Spec.MinReplicas:
		c.note(path, *n, fmt.Sprintf("Tideline knows the success of one worker and of the whole core; it is that of the core, of %d "+
			"workers, now", c.out.Spec.MinReplicas), "set spec.successPolicy.operator to Any if one is enough")
	}
	// Volcano ends the others at once.
	if c.endsOthers() {
		policy.CompletionGraceSeconds = ptr.To[int32](0)
	}
}

// endsOthers is whether the job can have succeeded while pods run.
func (c *volcanoJob) endsOthers() bool { return c.in.Spec.MinSuccess != nil }

// scheduling says what becomes of queue, scheduler and time.
func (c *volcanoJob) scheduling() {
	spec := &c.in.Spec
	if spec.SchedulerName != "" && spec.SchedulerName != "volcano" {
		c.note("spec.schedulerName", spec.SchedulerName, "Tideline schedules with the scheduler named volcano; it is left out", "")
	}
	if spec.Queue != "" && spec.Queue != "default" {
		c.queue("spec.queue", spec.Queue)
	}
	if spec.RunningEstimate != nil {
		c.note("spec.runningEstimate", spec.RunningEstimate.Duration.String(), "Tideline has no such field; it is left out", "")
	}
	if ttl := spec.TTLSecondsAfterFinished; ttl != nil {
		c.out.Spec.Cleanup.TTLSecondsAfterFinished = c.atMost("spec.ttlSecondsAfterFinished", int64(*ttl), longest)
	}
	c.topology("spec.networkTopology", spec.NetworkTopology)
	for _, t := range c.tasks() {
		c.handOnNUMA(t)
		if t.DependsOn != nil {
			c.note(taskPath(t)+".dependsOn", t.DependsOn.Name, "workers start together, as a gang; it is left out",
				"let the script wait for what it needs of worker 0, as torchrun does")
		}
	}
}

// handOnNUMA hands a task's NUMA policy on as Volcano's controller does, by an annotation of its pods. All workers have one
// template.
func (c *volcanoJob) handOnNUMA(t *batch.TaskSpec) {
	policy := string(t.TopologyPolicy)
	switch others := c.tasks(); {
	case policy == "":
	case slices.ContainsFunc(others, func(o *batch.TaskSpec) bool { return o.TopologyPolicy != t.TopologyPolicy }):
		c.note(taskPath(t)+".topologyPolicy", policy, "tasks differ in it, and workers have one template; it is left out",
			"set annotation "+numaPolicy+" of spec.template for all workers")
	default:
		if c.out.Spec.Template.Annotations == nil {
			c.out.Spec.Template.Annotations = map[string]string{}
		}
		c.out.Spec.Template.Annotations[numaPolicy] = policy
	}
}
