package volcanojob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"

	"github.com/tideline-io/tideline/test/testutil"
)

// jobName is the name of every job.
const jobName = "ctr"

// compared are the jobs whose pods are compared, by the name of their table in docs/reference/pods.md.
var compared = map[string]func() *batch.Job{
	"a master and 3 workers, by pytorch": func() *batch.Job {
		return job(map[string][]string{"pytorch": {}, "svc": {"--disable-network-policy=true"}}, task("master", 1), task("worker", 3))
	},
	"a master and 3 workers, by env and svc": func() *batch.Job {
		return job(map[string][]string{"env": {}, "svc": {"--disable-network-policy=true"}}, task("master", 1), task("worker", 3))
	},
	"3 pods of one task, by env and svc": func() *batch.Job {
		return job(map[string][]string{"env": {}, "svc": {"--disable-network-policy=true"}}, task("node", 3))
	},
	"a chief, 2 servers and 2 workers, by tensorflow": func() *batch.Job {
		return job(map[string][]string{"tensorflow": {}, "svc": {"--disable-network-policy=true"}},
			doing("python", task("chief", 1)), doing("serve", task("ps", 2)), doing("python", task("worker", 2)))
	},
	"a master, 2 servers and 2 workers, by env and svc": func() *batch.Job {
		return job(map[string][]string{"env": {}, "svc": {"--disable-network-policy=true"}},
			doing("lead", task("master", 1)), doing("serve", task("ps", 2)), doing("train", task("worker", 2)))
	},
}

// task is one of pods that have a GPU, an init container and a sidecar.
func task(name string, replicas int32) batch.TaskSpec {
	return batch.TaskSpec{Name: name, Replicas: replicas, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "ads"}},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyOnFailure,
			InitContainers: []corev1.Container{{Name: "data", Image: "data:1", Command: []string{"load"}}},
			Containers: []corev1.Container{{
				Name: "train", Image: "ctr:1", Command: []string{"torchrun"}, Args: []string{"train.py", "$(LEVEL)"},
				Env: []corev1.EnvVar{{Name: "LEVEL", Value: "3"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
					Limits:   corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
				},
			}, {Name: "logs", Image: "logs:1"}},
		},
	}}
}

// doing has the pods of a task start another program.
func doing(program string, t batch.TaskSpec) batch.TaskSpec {
	t.Template.Spec.Containers[0].Command = []string{program}
	return t
}

// job has these tasks, and starts again when one of its pods fails.
func job(plugins map[string][]string, tasks ...batch.TaskSpec) *batch.Job {
	return &batch.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batch.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: jobName},
		Spec: batch.JobSpec{
			Plugins: plugins, Tasks: tasks,
			Policies: []batch.LifecyclePolicy{{Event: bus.PodFailedEvent, Action: bus.RestartJobAction}},
		},
	}
}

// inPool confines a job to the nodes of a pool, and puts it into a namespace of the same name.
func inPool(j *batch.Job, pool string) *batch.Job {
	j = j.DeepCopy()
	j.Namespace = pool
	for i := range j.Spec.Tasks {
		j.Spec.Tasks[i].Template.Spec.NodeSelector = map[string]string{testutil.PoolLabel: pool}
	}
	return j
}

// pods is how many pods a job has.
func pods(j *batch.Job) int {
	n := int32(0)
	for _, t := range j.Spec.Tasks {
		n += t.Replicas
	}
	return int(n)
}
