package convert

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
)

// servers makes it a Job of parameter servers and workers without a backend.
func servers(j *batch.Job) {
	j.Spec.Plugins = map[string][]string{"env": {}, "svc": {"--disable-network-policy"}}
	j.Spec.Tasks = []batch.TaskSpec{volcanoTask("ps", 2), volcanoTask("worker", 4)}
	ps := &j.Spec.Tasks[0].Template.Spec
	ps.Containers[0].Command, ps.Containers[0].Args = []string{"serve"}, []string{"--all"}
	ps.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}
	ps.NodeSelector = map[string]string{"pool": "cpu"}
	j.Spec.Tasks[1].Template.Spec.Containers[0].Command = []string{"train"}
}

// tensorFlow makes it a Job by the plugin tensorflow with a task of each kind.
func tensorFlow(j *batch.Job) {
	j.Spec.Plugins = map[string][]string{"tensorflow": {}, "svc": {"--disable-network-policy"}}
	j.Spec.Tasks = []batch.TaskSpec{
		volcanoTask("ps", 2), volcanoTask("chief", 1), volcanoTask("evaluator", 1), volcanoTask("worker", 3),
	}
	allTasks(j, func(s *corev1.PodSpec) { s.Containers[0].Command = []string{"python", "train.py"} })
}

// Tasks that do something else than the workers become roles.
func TestTasksBecomeRoles(t *testing.T) {
	const hosts = "spec.plugins[svc] = [\"--disable-network-policy\"]: workers are ctr-"
	checkVolcano(t, map[string]volcanoRule{
		"parameter servers": {func(j *batch.Job) { servers(j); j.Spec.MinAvailable = 4 }, map[string]string{
			"spec.roles": `[{"args":["--all"],"command":["serve"],"name":"ps","nodeSelector":{"pool":"cpu"},"replicas":2,` +
				`"resources":{"requests":{"cpu":"2"}}}]`,
			"spec.minReplicas": "4", "spec.maxReplicas": "6", "spec.framework": `{"type":"Custom"}`, "spec.master": "null",
			taskTrainer + ".command": `["train"]`, taskTrainer + ".env": "null",
		}, []string{"spec.minAvailable = 4", hosts + "worker-0.ctr-workers and so on, in /etc/volcano/hosts; files have the names",
			"spec.minSuccess"}},
		"fewer at least than servers": {func(j *batch.Job) { servers(j); j.Spec.MinAvailable = 1 },
			map[string]string{"spec.minReplicas": "3"}, []string{"spec.minAvailable = 1: roles are among spec.minReplicas, and one " +
				"worker at least is beside them, so that spec.minReplicas is 3", "spec.minAvailable = 1: spec.minReplicas is 3 now", hosts,
				"spec.minSuccess"}},
		"workers of another name": {func(j *batch.Job) { servers(j); j.Spec.Tasks[1].Name = "trainer" }, map[string]string{
			taskTrainer + ".env": `[{"name":"VC_TRAINER_NUM","value":"4"},{"name":"VC_TRAINER_HOSTS","value":"ctr-worker-0.ctr-workers,` +
				`ctr-worker-3.ctr-workers,ctr-worker-4.ctr-workers,ctr-worker-5.ctr-workers"}]`,
		}, []string{hosts}},
		"a launcher": {func(j *batch.Job) {
			j.Spec.Plugins = map[string][]string{"mpi": {"--master=launcher"}, "svc": {"--disable-network-policy"}}
			j.Spec.Tasks = []batch.TaskSpec{volcanoTask("worker", 1), volcanoTask("launcher", 1)}
			first := &j.Spec.Tasks[1].Template.Spec.Containers[0]
			first.Command, first.Image, first.Name = []string{"mpirun", "train"}, "launcher:1", "main"
			first.Env = []corev1.EnvVar{{Name: "MODE", Value: "fast"}}
			j.Spec.Tasks[1].Policies = []batch.LifecyclePolicy{{Event: "TaskCompleted", Action: bus.CompleteJobAction}}
		}, map[string]string{
			"spec.roles": `[{"command":["mpirun","train"],"env":[{"name":"MODE","value":"fast"}],"image":"launcher:1","lead":true,` +
				`"name":"launcher","replicas":1}]`,
			"spec.minReplicas": "2",
			"spec.failurePolicy.rules": `[{"action":"CompleteJob","onEvents":["TaskCompleted"],"targets":[{"indexes":"0"}]},` +
				restartsJob + `]`,
		}, []string{"spec.plugins[svc]", "keys are in /etc/tideline/ssh"}},
		"policies of three tasks": {func(j *batch.Job) {
			servers(j)
			j.Spec.Tasks = append([]batch.TaskSpec{volcanoTask("eval", 1)}, j.Spec.Tasks...)
			j.Spec.Tasks[0].Template.Spec.Containers[0].Command = []string{"eval"}
			for i := range j.Spec.Tasks {
				j.Spec.Tasks[i].Policies = []batch.LifecyclePolicy{{Event: "PodFailed", Action: bus.RestartPodAction}}
			}
			j.Spec.Policies = []batch.LifecyclePolicy{{Event: "TaskCompleted", Action: bus.CompleteJobAction}}
		}, map[string]string{
			"spec.failurePolicy.rules": `[` + restartsWorkers("1") + `,` + restartsWorkers("2-3") + `,` + restartsWorkers("0,4-") + `]`,
			"spec.successPolicy":       "{}",
		}, []string{hosts, "spec.policies[0] = TaskCompleted: Volcano completes the job when any of its tasks has; Tideline " +
			"when worker 0 has, which was task worker"}},
		"the workers complete the job": {func(j *batch.Job) {
			servers(j)
			j.Spec.Tasks[1].Policies = []batch.LifecyclePolicy{{Event: "TaskCompleted", Action: bus.CompleteJobAction}}
		}, map[string]string{"spec.successPolicy": `{"targets":[{"indexes":"0,3-"}]}`}, []string{hosts}},
		"helpers beside torchrun": {func(j *batch.Job) {
			j.Spec.Tasks = append(j.Spec.Tasks, volcanoTask("data", 2))
			j.Spec.Tasks[2].Template.Spec.Containers[0].Command = []string{"serve", "--head=$(MASTER_ADDR)"}
			for i := range 2 {
				j.Spec.Tasks[i].Template.Spec.Containers[0].Command = []string{"torchrun", "--nnodes=4", "train.py"}
			}
			j.Spec.Tasks[2].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}, map[string]string{
			"spec.roles":       `[{"command":["serve","--head=$(MASTER_ADDR)"],"name":"data","replicas":2,"resources":{}}]`,
			"spec.minReplicas": "6", "spec.framework": `{"port":23456}`,
		}, []string{"roles do not join torchrun's rendezvous and are told nothing",
			"spec.tasks[data].template.spec.containers[train].command"}},
		"TensorFlow": {func(j *batch.Job) {
			tensorFlow(j)
			j.Spec.MinAvailable, j.Spec.Tasks[0].Name = 5, "servers"
			j.Spec.Plugins["tensorflow"] = []string{"--ps=servers", "--port=3333"}
		}, map[string]string{
			"spec.framework": `{"port":3333,"type":"TensorFlow"}`, "spec.minReplicas": "7", "spec.maxReplicas": "7",
			taskTrainer + ".env": `[{"name":"VC_SERVERS_NUM","value":"2"},` +
				`{"name":"VC_SERVERS_HOSTS","value":"ctr-ps-1.ctr-workers,ctr-ps-2.ctr-workers"},{"name":"VC_WORKER_NUM","value":"3"},` +
				`{"name":"VC_WORKER_HOSTS","value":"ctr-worker-4.ctr-workers,ctr-worker-5.ctr-workers,ctr-worker-6.ctr-workers"}]`,
			"spec.roles": `[{"command":["python","train.py"],"name":"ps","replicas":2},` +
				`{"command":["python","train.py"],"lead":true,"name":"chief","replicas":1},` +
				`{"command":["python","train.py"],"name":"evaluator","replicas":1}]`,
		}, []string{"spec.minAvailable = 5: TF_CONFIG names all workers when they start, so that spec.minReplicas is 7",
			"names no evaluator", "spec.plugins[svc]"}},
		"TensorFlow, whose containers are called so": {func(j *batch.Job) {
			tensorFlow(j)
			allTasks(j, func(s *corev1.PodSpec) {
				s.Containers = []corev1.Container{{Name: "logs", Image: "logs:1", Command: []string{"tail"}}, s.Containers[0]}
				s.Containers[1].Name = "trainer"
			})
			j.Spec.Tasks = slices.Delete(j.Spec.Tasks, 1, 3)
		}, map[string]string{
			"spec.roles": `[{"command":["python","train.py"],"name":"ps","replicas":2}]`,
		}, []string{"spec.plugins[svc]"}},
		"TensorFlow's workers alone, as Volcano's webhook completes it": {func(j *batch.Job) {
			tensorFlow(j)
			j.Spec.Plugins, j.Spec.Tasks = map[string][]string{"tensorflow": {}}, j.Spec.Tasks[3:]
		}, map[string]string{
			"spec.networkPolicy": `"Isolated"`, "spec.roles": "null", taskTrainer + ".env.0": `{"name":"VC_WORKER_NUM","value":"3"}`,
		}, []string{"spec.plugins[svc] is not set: workers are", "spec.plugins[svc] is not set: it makes a NetworkPolicy"}},
		"TensorFlow alone, to which the plugin tells nothing": {func(j *batch.Job) {
			tensorFlow(j)
			j.Spec.Tasks = j.Spec.Tasks[1:2]
		}, map[string]string{"spec.framework": `{"type":"Custom"}`, "spec.roles": "null"}, []string{"spec.plugins[svc]"}},
		"two tasks, and the workers are one": {func(j *batch.Job) { servers(j); j.Spec.Tasks[1].Replicas = 1 },
			map[string]string{"spec.roles.0.name": `"ps"`, "spec.roles.0.lead": "null", "spec.minReplicas": "3"}, []string{hosts}},
		"one server": {func(j *batch.Job) { servers(j); j.Spec.Tasks[0].Replicas = 1 },
			map[string]string{"spec.roles.0.name": `"ps"`, "spec.roles.0.lead": "null", taskTrainer + ".command": `["train"]`},
			[]string{hosts}},
		"so many workers at least": {func(j *batch.Job) {
			servers(j)
			j.Spec.Tasks[0].MinAvailable, j.Spec.Tasks[1].MinAvailable = ptr.To[int32](1), ptr.To[int32](3)
		}, map[string]string{"spec.minReplicas": "5"}, []string{"spec.minAvailable = 4: roles are among", "spec.minAvailable = 4: " +
			"spec.minReplicas is 5", hosts, "spec.minSuccess"}},
		"the servers complete the job": {func(j *batch.Job) {
			servers(j)
			j.Spec.Tasks[0].Policies = []batch.LifecyclePolicy{{Event: "TaskCompleted", Action: bus.CompleteJobAction}}
		}, map[string]string{"spec.successPolicy": `{"targets":[{"indexes":"1-2"}]}`}, []string{hosts}},
	})
}

// restartsJob is the rule of goodVolcano's policy.
const restartsJob = `{"action":"RestartJob","onEvents":["PodFailed"]}`

func restartsWorkers(indexes string) string {
	return `{"action":"RestartWorker","onEvents":["PodFailed"],"targets":[{"indexes":"` + indexes + `"}]}`
}

// Names that Tideline takes are those of the schema.
func TestTakenRolesAreThoseOfTheSchema(t *testing.T) {
	j := goodVolcano()
	servers(j)
	out, _ := FromVolcanoJob(j)
	for _, name := range takenRoles {
		out.Spec.Roles[0].Name = name
		if words, err := rules().CheckSpec(t.Context(), out); err != nil || !strings.Contains(words, "name "+name+" is taken") {
			t.Errorf("the schema says %q of a role %s: %v", words, name, err)
		}
	}
}

// What webhooks refuse is said when a job is converted.
func TestRolesThatWebhooksRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*batch.Job)
		says string
	}{
		"a port that all share": {func(j *batch.Job) { allTasks(j, func(s *corev1.PodSpec) { s.HostNetwork = true }) }, "hostNetwork"},
		"the model of one role": {func(j *batch.Job) {
			j.Spec.Tasks[0].Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "A10"}
		}, "names the model of the accelerators of some workers"},
		"more than TF_CONFIG has": {func(j *batch.Job) { j.Spec.Tasks[3].Replicas = 600 }, "must be at most 512"},
	} {
		t.Run(name, func(t *testing.T) {
			j := goodVolcano()
			tensorFlow(j)
			c.edit(j)
			out, notes := FromVolcanoJob(j)
			if out == nil {
				t.Fatal(notes)
			}
			if words, err := (&printer{rules: rules()}).refusal(out); err != nil || !strings.Contains(words, c.says) {
				t.Errorf("says %q: %v", words, err)
			}
		})
	}
}
