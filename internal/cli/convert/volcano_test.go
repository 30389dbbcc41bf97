package convert

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// volcanoTask is a task of pods that have a GPU, start torchrun and restart in place.
func volcanoTask(name string, replicas int32) batch.TaskSpec {
	return batch.TaskSpec{Name: name, Replicas: replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{
			Name: "train", Image: "ctr:1", Command: []string{"torchrun", "train.py"}, Resources: gpus(1),
		}},
	}}}
}

// goodVolcano is a Job by the plugin pytorch, of which nothing is lost but what every such Job hears.
func goodVolcano() *batch.Job {
	return &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr"},
		Spec: batch.JobSpec{
			Tasks:    []batch.TaskSpec{volcanoTask("master", 1), volcanoTask("worker", 3)},
			Plugins:  map[string][]string{"pytorch": {}, "svc": {"--disable-network-policy=true"}},
			Policies: []batch.LifecyclePolicy{{Event: bus.PodFailedEvent, Action: bus.RestartJobAction}},
		},
	}
}

// retried is said of every good Job.
const retried = "spec.maxRetry is not set: it is spec.restarts.max now, less one: Volcano fails the job at restart 3, Tideline " +
	"at the first beyond max within windowSeconds (86400); evictions and lost nodes never count, and containers that start again " +
	"in their pod do"

const taskTrainer = "spec.template.spec.containers.0"

// plain makes it a Job of one task without a backend, whose pods know each other by Volcano's variables.
func plain(j *batch.Job) {
	j.Spec.Plugins = map[string][]string{"env": {}, "svc": {"--disable-network-policy"}}
	j.Spec.Tasks = []batch.TaskSpec{volcanoTask("trainer", 2)}
	j.Spec.Tasks[0].Template.Spec.Containers[0].Command = []string{"mpirun", "train"}
}

// allTasks edits the templates of all tasks alike.
func allTasks(j *batch.Job, edit func(*corev1.PodSpec)) {
	for i := range j.Spec.Tasks {
		edit(&j.Spec.Tasks[i].Template.Spec)
	}
}

type volcanoRule struct {
	edit func(*batch.Job)
	has  map[string]string
	// says are parts of the notes but retried, in their order.
	says []string
}

func checkVolcano(t *testing.T, cases map[string]volcanoRule) {
	t.Helper()
	g := rules()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := goodVolcano()
			c.edit(in)
			before := must(json.Marshal(in))
			out, notes := FromVolcanoJob(in)
			if out == nil {
				t.Fatalf("not converted: %v", notes)
			}
			if !bytes.Equal(must(json.Marshal(in)), before) {
				t.Error("it changed its argument")
			}
			for path, want := range c.has {
				if have := at(t, out, path); have != want {
					t.Errorf("%s is %s, want %s", path, have, want)
				}
			}
			said(t, notes, c.says, retried)
			agree(t, g, out, notes)
		})
	}
}

// said fails unless the notes, but those that every good job hears, contain these words, one each in this order.
func said(t *testing.T, notes []Note, want []string, always ...string) {
	t.Helper()
	var have []string
	for _, n := range notes {
		if s := n.String(); !slices.Contains(always, s) {
			have = append(have, s)
		}
	}
	agrees := len(have) == len(want)
	for i := range min(len(have), len(want)) {
		agrees = agrees && strings.Contains(have[i], want[i])
	}
	if !agrees {
		t.Errorf("says\n\t%s\nwant\n\t%s", strings.Join(have, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestVolcanoJob(t *testing.T) {
	const labels = `{"valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['tideline.io/worker-index']"}}}`
	index := func(name string) string { return `{"name":"` + name + `",` + labels[1:] }
	checkVolcano(t, map[string]volcanoRule{
		"master and workers, by the plugin pytorch": {func(*batch.Job) {}, map[string]string{
			"kind": `"ElasticTrainingJob"`, "metadata": `{"name":"ctr","namespace":"ads"}`, "spec.minReplicas": "4",
			"spec.maxReplicas": "4", "spec.master": "null", "spec.framework": `{"port":23456}`, "spec.restarts.max": "2",
			"spec.successPolicy":       `{"targets":[{"indexes":"0-"}]}`,
			"spec.failurePolicy.rules": `[{"action":"RestartJob","onEvents":["PodFailed"]}]`,
			"spec.networkPolicy":       "null", taskTrainer + ".name": `"train"`,
			taskTrainer + ".env":               `[{"name":"PYTHONUNBUFFERED","value":"1"},{"name":"PET_MAX_RESTARTS","value":"0"}]`,
			"spec.template.spec.restartPolicy": "null",
		}, nil},
		"a port": {func(j *batch.Job) { j.Spec.Plugins["pytorch"] = []string{"--port=4000"} },
			map[string]string{"spec.framework.port": "4000"}, nil},
		"a master of other resources": {func(j *batch.Job) {
			s := &j.Spec.Tasks[0].Template.Spec
			s.Containers[0].Resources, s.NodeSelector = gpus(2), map[string]string{"big": "yes"}
		}, map[string]string{
			"spec.master": `{"nodeSelector":{"big":"yes"},"resources":{"limits":{"nvidia.com/gpu":"2"}}}`,
		}, nil},
		"the master last, by its name": {func(j *batch.Job) {
			j.Spec.Tasks = []batch.TaskSpec{volcanoTask("worker", 1), volcanoTask("chief", 1)}
			j.Spec.Tasks[1].Template.Spec.Containers[0].Resources = gpus(2)
			j.Spec.Plugins["pytorch"] = []string{"--master=chief"}
		}, map[string]string{"spec.master.resources": `{"limits":{"nvidia.com/gpu":"2"}}`, "spec.minReplicas": "2"}, nil},
		"python instead of torchrun": {func(j *batch.Job) {
			allTasks(j, func(s *corev1.PodSpec) { s.Containers[0].Command = []string{"python", "train.py"} })
		}, nil, []string{"spec.tasks[worker].template.spec.containers[train].command = [\"python\",\"train.py\"]: Volcano tells each " +
			"pod its RANK"}},
		"minAvailable": {func(j *batch.Job) { j.Spec.MinAvailable = 2 },
			map[string]string{"spec.minReplicas": "2", "spec.maxReplicas": "4", taskTrainer + ".env.1": "null"},
			[]string{"spec.minAvailable = 2: spec.minReplicas is 2 now, and the 4", "spec.minSuccess is not set: Volcano looks when all"}},
		"minAvailable of tasks": {func(j *batch.Job) { j.Spec.Tasks[1].MinAvailable = ptr.To[int32](1) },
			map[string]string{"spec.minReplicas": "2"}, []string{"spec.minAvailable = 2", "spec.minSuccess is not set"}},
		"minSuccess of one": {func(j *batch.Job) { j.Spec.MinSuccess = ptr.To[int32](1) }, map[string]string{
			"spec.successPolicy": `{"completionGraceSeconds":0,"operator":"Any","targets":[{"indexes":"0-"}]}`}, nil},
		"minSuccess of some": {func(j *batch.Job) { j.Spec.MinSuccess = ptr.To[int32](3) }, nil,
			[]string{"spec.minSuccess = 3: Tideline knows the success of one worker and of the whole core"}},
		"a claim": {func(j *batch.Job) { j.Spec.Volumes = []batch.VolumeSpec{{MountPath: "/data", VolumeClaimName: "data"}} },
			map[string]string{
				"spec.template.spec.volumes":  `[{"name":"volcano-0","persistentVolumeClaim":{"claimName":"data"}}]`,
				taskTrainer + ".volumeMounts": `[{"mountPath":"/data","name":"volcano-0"}]`,
			}, nil},
		"queue, class, scheduler and time": {func(j *batch.Job) {
			s := &j.Spec
			s.Queue, s.PriorityClassName, s.SchedulerName = "research", "high", "mine"
			s.RunningEstimate = &metav1.Duration{Duration: time.Hour}
			s.TTLSecondsAfterFinished = ptr.To[int32](60)
		}, map[string]string{"spec.cleanup": `{"ttlSecondsAfterFinished":60}`}, []string{
			"spec.priorityClassName = high: the priority follows from the tier", "spec.schedulerName = mine",
			"kubectl annotate namespace ads scheduling.volcano.sh/queue-name=research", "spec.runningEstimate = 1h0m0s"}},
		"topology": {func(j *batch.Job) { j.Spec.NetworkTopology = &batch.NetworkTopologySpec{HighestTierAllowed: ptr.To(2)} },
			map[string]string{"spec.networkTopology": `{"highestTierAllowed":2,"mode":"Hard"}`}, nil},
		"topology, soft": {func(j *batch.Job) { j.Spec.NetworkTopology = &batch.NetworkTopologySpec{Mode: "soft"} },
			map[string]string{"spec.networkTopology": `{"mode":"Soft"}`}, nil},
		"topology by a name": {func(j *batch.Job) { j.Spec.NetworkTopology = &batch.NetworkTopologySpec{HighestTierName: "rack"} },
			map[string]string{"spec.networkTopology": "null"}, []string{"spec.networkTopology.highestTierName = rack"}},
		"a NetworkPolicy": {func(j *batch.Job) { delete(j.Spec.Plugins, "svc") }, // Volcano's webhook adds it.
			map[string]string{"spec.networkPolicy": `"Isolated"`}, []string{"spec.plugins[svc] is not set: it makes a NetworkPolicy"}},
		"dependsOn": {func(j *batch.Job) { j.Spec.Tasks[1].DependsOn = &batch.DependsOn{Name: []string{"master"}} }, nil,
			[]string{`spec.tasks[worker].dependsOn = ["master"]`}},
		"NUMA of one task alone": {func(j *batch.Job) { j.Spec.Tasks[1].TopologyPolicy = batch.Restricted },
			map[string]string{"spec.template.metadata.annotations": "null"}, []string{"spec.tasks[worker].topologyPolicy = restricted: " +
				"tasks differ in it, and workers have one template; it is left out; set annotation volcano.sh/numa-topology-policy of " +
				"spec.template for all workers"}},
		"NUMA": {func(j *batch.Job) {
			for i := range j.Spec.Tasks {
				j.Spec.Tasks[i].TopologyPolicy = batch.Restricted
			}
		}, map[string]string{"spec.template.metadata.annotations": `{"volcano.sh/numa-topology-policy":"restricted"}`}, nil},
		"a Job that runs": {func(j *batch.Job) { j.Status.State.Phase = batch.Running }, nil,
			[]string{"status = Running: the status is left out"}},
		"what Volcano reads of metadata": {func(j *batch.Job) {
			j.Annotations = map[string]string{"volcano.sh/preemptable": "true", "note": "x"}
			j.Spec.Tasks[1].Template.Spec.Hostname, j.Spec.Tasks[0].Template.Spec.Hostname = "a", "a"
		}, map[string]string{"metadata.annotations": `{"note":"x"}`}, []string{
			"metadata.annotations[volcano.sh/preemptable] = true", "spec.tasks[worker].template.spec.hostname = a"}},
		"two GPUs and one process": {func(j *batch.Job) {
			allTasks(j, func(s *corev1.PodSpec) {
				s.Containers[0].Resources, s.Containers[0].Command = gpus(2), []string{"./train"}
			})
		}, map[string]string{"spec.framework.nprocPerNode": "1"}, []string{"it counts one process for each pod", ".command = "}},
		"hosts that are called otherwise": {func(j *batch.Job) {
			allTasks(j, func(s *corev1.PodSpec) {
				s.Containers[0].Args = []string{"--master=ctr-master-0.ctr", "--n=$(VC_WORKER_NUM)"}
			})
		}, nil, []string{"the host names are ctr-worker-0.ctr-workers and so on; name worker 0, or leave it to torchrun",
			"VC_WORKER_NUM is not set in the container"}},
		"one task, by env and svc": {plain, map[string]string{
			"spec.framework": `{"type":"Custom"}`, "spec.minReplicas": "2",
			taskTrainer + ".env": "[" + index("VK_TASK_INDEX") + "," + index("VC_TASK_INDEX") +
				`,{"name":"VC_TRAINER_NUM","value":"2"},` +
				`{"name":"VC_TRAINER_HOSTS","value":"ctr-worker-0.ctr-workers,ctr-worker-1.ctr-workers"}]`,
		}, []string{`spec.plugins[svc] = ["--disable-network-policy"]: workers are ctr-worker-0.ctr-workers and so on`}},
		"one task, and what happens is left to Volcano": {func(j *batch.Job) { plain(j); j.Spec.Policies = nil },
			map[string]string{"spec.failurePolicy": "null", "spec.restarts": "{}"},
			[]string{"spec.plugins[svc]", "spec.policies is not set: Volcano leaves the other pods alone",
				"spec.maxRetry is not set: Volcano does not count"}},
		"master and workers, as Tideline knows them": {func(j *batch.Job) {
			plain(j)
			j.Spec.Plugins["mpi"], j.Spec.Plugins["ssh"] = nil, []string{"--ssh-port=2222"}
			j.Spec.Tasks = []batch.TaskSpec{volcanoTask("master", 1), volcanoTask("worker", 3)}
		}, map[string]string{"spec.framework": `{"ssh":"KeyPair","type":"Custom"}`, taskTrainer + ".env": "null"}, []string{
			"spec.plugins[svc]", "ssh -F /etc/tideline/ssh/config -p 2222"}},
	})
}

func TestVolcanoPolicies(t *testing.T) {
	with := func(policies ...batch.LifecyclePolicy) func(*batch.Job) {
		return func(j *batch.Job) { j.Spec.Policies = policies }
	}
	ofTask := func(i int, policies ...batch.LifecyclePolicy) func(*batch.Job) {
		return func(j *batch.Job) { j.Spec.Policies, j.Spec.Tasks[i].Policies = nil, policies }
	}
	const rulesPath, uncounted = "spec.failurePolicy.rules", "spec.maxRetry is not set: Volcano does not count"
	checkVolcano(t, map[string]volcanoRule{
		"any event": {with(batch.LifecyclePolicy{Event: "*", Action: bus.RestartJobAction}), map[string]string{
			rulesPath: `[{"action":"RestartJob","onEvents":["PodFailed","PodEvicted","NodeLost"]}]`}, nil},
		"several events": {with(batch.LifecyclePolicy{Events: []bus.Event{"PodFailed", "PodEvicted"}, Action: bus.RestartPodAction}),
			map[string]string{rulesPath: `[{"action":"RestartWorker","onEvents":["PodFailed","PodEvicted","NodeLost"]}]`},
			[]string{"spec.policies[0].event = PodEvicted: to Volcano every pod that is deleted was evicted"}},
		"a code": {with(batch.LifecyclePolicy{ExitCode: ptr.To[int32](3), Action: bus.TerminateJobAction}), map[string]string{
			rulesPath: `[{"action":"FailJob","onEvents":["PodFailed"],"onExitCodes":{"operator":"In","values":[3]}}]`},
			[]string{uncounted}},
		"those of tasks first": {func(j *batch.Job) {
			j.Spec.Tasks[0].Policies = []batch.LifecyclePolicy{{Event: "PodFailed", Action: bus.AbortJobAction}}
			j.Spec.Tasks[1].Policies = []batch.LifecyclePolicy{{Event: "PodFailed", Action: bus.RestartTaskAction}}
		}, map[string]string{rulesPath: `[{"action":"FailJob","onEvents":["PodFailed"],"targets":[{"indexes":"0"}]},` +
			`{"action":"RestartJob","onEvents":["PodFailed"],"targets":[{"indexes":"1-"}]},` +
			`{"action":"RestartJob","onEvents":["PodFailed"]}]`}, []string{
			"spec.tasks[master].policies[0].action = AbortJob", "spec.tasks[worker].policies[0].action = RestartTask"}},
		"the master completes the job": {ofTask(0, batch.LifecyclePolicy{Event: "TaskCompleted", Action: bus.CompleteJobAction}),
			map[string]string{rulesPath: `[{"action":"CompleteJob","onEvents":["TaskCompleted"],"targets":[{"indexes":"0"}]}]`},
			[]string{uncounted}},
		"the workers complete the job": {ofTask(1, batch.LifecyclePolicy{Event: "TaskCompleted", Action: bus.CompleteJobAction}),
			map[string]string{"spec.failurePolicy": "null", "spec.successPolicy": `{"targets":[{"indexes":"1-"}]}`}, []string{uncounted}},
		"any task completes the job": {with(batch.LifecyclePolicy{Event: "TaskCompleted", Action: bus.CompleteJobAction}),
			map[string]string{"spec.successPolicy": "{}"}, []string{"spec.policies[0] = TaskCompleted: Volcano completes", uncounted}},
		"what Tideline does not know": {with(batch.LifecyclePolicy{Event: "PodPending", Action: bus.RestartJobAction,
			Timeout: &metav1.Duration{Duration: time.Minute}}), map[string]string{"spec.failurePolicy": "null"},
			[]string{"spec.policies[0].event = PodPending", uncounted}},
		"later": {with(batch.LifecyclePolicy{Event: "PodFailed", Action: bus.RestartJobAction,
			Timeout: &metav1.Duration{Duration: time.Minute}}), nil, []string{"spec.policies[0].timeout = 1m0s"}},
		"never in place": {func(j *batch.Job) {
			j.Spec.Policies = nil
			allTasks(j, func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever })
		}, map[string]string{rulesPath: `[{"action":"FailJob","name":"never-restart","onEvents":["PodFailed"]}]`},
			[]string{"template.spec.restartPolicy = Never: it is a rule"}},
		"always": {func(j *batch.Job) { allTasks(j, func(s *corev1.PodSpec) { s.RestartPolicy = "" }) }, nil,
			[]string{"template.spec.restartPolicy is not set: Always means"}},
		"so many restarts": {func(j *batch.Job) { j.Spec.MaxRetry = 200; j.Spec.Tasks[1].MaxRetry = 7 },
			map[string]string{"spec.restarts.max": "100"}, []string{"spec.tasks[worker].maxRetry = 7",
				"spec.maxRetry = 199: it may be 100 at most", "spec.maxRetry = 200"}},
	})
}

func TestVolcanoNotConverted(t *testing.T) {
	const roles = "this command makes workers alike"
	for name, c := range map[string]struct {
		edit func(*batch.Job)
		says []string
	}{
		"no name":  {func(j *batch.Job) { j.Name = "" }, []string{"metadata.name is not set: a job needs a name; set it"}},
		"no tasks": {func(j *batch.Job) { j.Spec.Tasks = nil }, []string{"spec.tasks is not set"}},
		"no pods":  {func(j *batch.Job) { j.Spec.Tasks[1].Replicas = 0 }, []string{"spec.tasks[worker].replicas = 0"}},
		"a role's name": {func(j *batch.Job) {
			j.Spec.Tasks = append(j.Spec.Tasks, volcanoTask("param-server", 2), volcanoTask("core", 1))
		}, []string{
			"spec.tasks[param-server].name = param-server: it becomes a role, whose name has up to 12 lower-case letters and digits",
			"spec.tasks[core].name = core: it becomes a role, and Tideline calls other pods so"}},
		"two masters that cannot lead": {func(j *batch.Job) { j.Spec.Tasks[0].Replicas = 2 },
			[]string{"spec.tasks[master].replicas = 2: role master leads, and one worker leads; set 1, or rename the task"}},
		"two tasks of one name": {func(j *batch.Job) { j.Spec.Tasks[0].Name = "worker" },
			[]string{"spec.tasks[worker].name = worker: Volcano refuses two tasks of one name"}},
		"many roles": {func(j *batch.Job) {
			for i := range 9 {
				j.Spec.Tasks = append(j.Spec.Tasks, volcanoTask("r"+strconv.Itoa(i), 4))
			}
		}, []string{"spec.tasks = 10: a job may have 8 roles beside its workers", "spec.tasks = 36: pods in tasks beside"}},
		"a role of other volumes and without a command": {func(j *batch.Job) {
			servers(j)
			j.Spec.Tasks[0].Template.Spec.Containers[0].Command = nil
			j.Spec.Tasks[0].Template.Spec.Volumes = []corev1.Volume{{Name: "big"}}
		}, []string{"spec.tasks[ps].template.spec.volumes = ", "spec.tasks[ps].template.spec.containers[train].command is not set: " +
			"the ps starts what its image starts"}},
		"a master that differs, beside roles": {func(j *batch.Job) {
			j.Spec.Tasks = append(j.Spec.Tasks, volcanoTask("ps", 2))
			j.Spec.Tasks[0].Template.Spec.Containers[0].Resources = gpus(2)
		}, []string{"spec.tasks[master].template.spec.containers[train].resources.limits.nvidia.com/gpu = 2: spec.tasks[worker] " +
			"has 1; beside roles worker 0 is as the workers"}},
		"a master of another command": {func(j *batch.Job) {
			j.Spec.Tasks[0].Template.Spec.Containers[0].Command = []string{"mpirun", "train"}
			j.Spec.Tasks[0].Template.Spec.Containers[0].Image = "launcher:1"
		}, []string{
			`spec.tasks[master].template.spec.containers[train].command = ["mpirun","train"]: spec.tasks[worker] has ["torchrun",` +
				`"train.py"]; ` + roles,
			"spec.tasks[master].template.spec.containers[train].image = launcher:1: spec.tasks[worker] has ctr:1; " + roles}},
		"Ray": {func(j *batch.Job) { j.Spec.Plugins["ray"] = []string{"--head=a"} },
			[]string{`spec.plugins[ray] = ["--head=a"]: it starts a head and workers of Ray`}},
		"TensorFlow without workers, and of another task": {func(j *batch.Job) { tensorFlow(j); j.Spec.Tasks[3].Name = "loner" },
			[]string{"spec.plugins[tensorflow] = []: there is no task worker"}},
		"TensorFlow of another task": {func(j *batch.Job) { tensorFlow(j); j.Spec.Tasks[0].Name = "server" },
			[]string{"spec.tasks[server].name = server: the plugin tensorflow knows tasks chief, ps, worker and evaluator"}},
		"TensorFlow's default name, which is another's": {func(j *batch.Job) {
			tensorFlow(j)
			j.Spec.Plugins["tensorflow"] = []string{"--chief=ps"}
		}, []string{"spec.tasks[ps].replicas = 2: role chief leads", "spec.tasks[chief].name = chief: the plugin tensorflow knows"}},
		"TensorFlow with two chiefs": {func(j *batch.Job) { tensorFlow(j); j.Spec.Tasks[1].Replicas = 2 },
			[]string{"spec.tasks[chief].replicas = 2: role chief leads, and one worker leads"}},
		"another place of the training container": {func(j *batch.Job) {
			servers(j)
			for i, name := range []string{"trainer", "logs"} {
				s := &j.Spec.Tasks[i].Template.Spec
				s.Containers = append(s.Containers, corev1.Container{Name: name, Image: "ctr:1", Command: []string{"train"}})
			}
			j.Spec.Tasks[1].Template.Spec.Containers[0].Name = "trainer"
		}, []string{"spec.tasks[ps].template.spec.containers = 1: is the place of the training container, which is 0 in",
			"spec.tasks[ps].template.spec.containers[logs]", "spec.tasks[ps].template.spec.containers[train]"}},
		"a variable that others refer to": {func(j *batch.Job) {
			servers(j)
			j.Spec.Tasks[0].Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "a"}, {Name: "OPTS", Value: "$(MODE)"}}
			j.Spec.Tasks[1].Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OPTS", Value: "$(MODE)"}}
		}, []string{"spec.tasks[ps].template.spec.containers[train].env[MODE]"}},
		"an unknown plugin": {func(j *batch.Job) { j.Spec.Plugins["mine"] = nil }, []string{"spec.plugins[mine]"}},
		"an unknown argument": {func(j *batch.Job) { j.Spec.Plugins["svc"] = []string{"--open"} },
			[]string{`spec.plugins[svc] = ["--open"]: Volcano cannot read its arguments`}},
		"three backends": {func(j *batch.Job) { j.Spec.Plugins["mpi"], j.Spec.Plugins["tensorflow"] = nil, nil },
			[]string{"spec.plugins[tensorflow] = null: a job has one backend, and this one has pytorch too", "spec.plugins[mpi]"}},
		"partitions": {func(j *batch.Job) {
			j.Spec.Tasks[1].PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: 3, PartitionSize: 1}
		},
			[]string{"spec.tasks[worker].partitionPolicy"}},
		"a claim of its own": {func(j *batch.Job) {
			j.Spec.Volumes = []batch.VolumeSpec{{MountPath: "/out", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}}}
		}, []string{"spec.volumes[0].volumeClaim"}},
		"no core": {func(j *batch.Job) { j.Spec.MinAvailable = -1 }, []string{"spec.minAvailable = -1"}},
		"more than all": {func(j *batch.Job) { j.Spec.MinAvailable, j.Spec.MinSuccess = 5, ptr.To[int32](5) },
			[]string{"spec.minAvailable = 5: it exceeds", "spec.minSuccess = 5: it exceeds"}},
		"too many": {func(j *batch.Job) { j.Spec.Tasks[1].Replicas = 4096 }, []string{"spec.tasks[worker].replicas = 4097"}},
		"policies": {func(j *batch.Job) {
			j.Spec.Policies = []batch.LifecyclePolicy{
				{Action: "Explode"}, {Event: "PodFailed", ExitCode: ptr.To[int32](0), Action: "RestartJob"},
				{Event: "PodRunning", Action: "RestartJob"},
			}
		}, []string{"spec.policies[0] is not set", "spec.policies[0].action = Explode", "spec.policies[1].exitCode = 0",
			"spec.policies[2].event = PodRunning"}},
		"numbers": {func(j *batch.Job) {
			j.Spec.MaxRetry, j.Spec.MinSuccess, j.Spec.TTLSecondsAfterFinished = -1, ptr.To[int32](0), ptr.To[int32](-1)
		}, []string{"spec.maxRetry = -1", "spec.minSuccess = 0", "spec.ttlSecondsAfterFinished = -1"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := goodVolcano()
			c.edit(j)
			out, notes := FromVolcanoJob(j)
			notConverted(t, out, notes, c.says)
		})
	}
}

// The list of a task's hosts is not written where it would be too long for a pod.
func TestLongListsOfHostsAreLeftToTheFile(t *testing.T) {
	j := goodVolcano()
	plain(j)
	j.Spec.Tasks[0].Replicas = 3000
	j.Spec.Tasks[0].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}
	out, notes := FromVolcanoJob(j)
	if strings.Contains(at(t, out, taskTrainer), "VC_TRAINER_HOSTS") {
		t.Error("the list is in the template")
	}
	said(t, notes, []string{"VC_TRAINER_HOSTS is not set", "spec.plugins[svc]"}, retried)
}

// notConverted expects that nothing came out, for these reasons, and that each note says what to do.
func notConverted(t *testing.T, out *v1beta1.ElasticTrainingJob, notes []Note, says []string) {
	t.Helper()
	if out != nil {
		t.Error("it is converted")
	}
	said(t, notes, says)
	for _, n := range notes {
		if n.Do == "" {
			t.Errorf("%s: does not say what to do", n)
		}
	}
}
