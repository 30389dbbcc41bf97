package convert

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const torchRuntime = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: torch
spec:
  mlPolicy:
    numNodes: 2
    torch: {}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata:
            labels:
              trainer.kubeflow.org/trainjob-ancestor-step: trainer
          spec:
            template:
              spec:
                containers:
                - name: node
                  image: torch:2
                  resources:
                    limits:
                      memory: 8Gi
`

const torchTrainJob = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: ctr
  namespace: ads
spec:
  runtimeRef:
    name: torch
  trainer:
    numNodes: 3
    command: [torchrun, train.py]
    resourcesPerNode:
      limits:
        nvidia.com/gpu: 2
`

func parsed[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// backoff is said of every TrainJob.
const backoff = "ClusterTrainingRuntime/torch spec.template.spec.replicatedJobs[node].template.spec.backoffLimit is not set: " +
	"it is spec.restarts.max now, 6: more restarts within windowSeconds (86400) fail the job; evictions and lost nodes never count"

type trainRule struct {
	edit func(*TrainJob, *TrainingRuntime)
	has  map[string]string
	says []string
}

func podOfRuntime(r *TrainingRuntime) *corev1.PodSpec {
	return &r.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
}

func jobOfRuntime(r *TrainingRuntime) *batchv1.JobSpec {
	return &r.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec
}

func patchOf(t *testing.T, text string) []RuntimePatch {
	return []RuntimePatch{*parsed[RuntimePatch](t, "manager: me.io/x\ntrainingRuntimeSpec:\n  template:\n    spec:\n"+
		"      replicatedJobs:\n      - name: node\n        template:\n          spec:\n            template:\n"+text)}
}

func TestTrainJob(t *testing.T) {
	type (
		job     = TrainJob
		runtime = TrainingRuntime
	)
	const where = "ClusterTrainingRuntime/torch spec."
	g := rules()
	for name, c := range map[string]trainRule{
		"by torchrun": {func(*job, *runtime) {}, map[string]string{
			"metadata": `{"name":"ctr","namespace":"ads"}`, "spec.minReplicas": "3", "spec.maxReplicas": "3",
			"spec.framework": `{"port":29500}`, "spec.restarts.max": "6", "spec.successPolicy": `{"targets":[{"indexes":"0-"}]}`,
			trainer + ".name": `"trainer"`, trainer + ".image": `"torch:2"`, trainer + ".command": `["torchrun","train.py"]`,
			trainer + ".resources": `{"limits":{"memory":"8Gi","nvidia.com/gpu":"2"}}`, trainer + ".env": "null",
			"spec.cleanup": "{}",
		}, nil},
		"what the runtime says alone": {func(j *job, _ *runtime) { j.Spec.Trainer.NumNodes = nil },
			map[string]string{"spec.minReplicas": "2"}, nil},
		"image, args and variables": {func(j *job, r *runtime) {
			podOfRuntime(r).Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
			j.Spec.Trainer.Image, j.Spec.Trainer.Args = ptr.To("mine:1"), []string{"--x"}
			j.Spec.Trainer.Env = []corev1.EnvVar{{Name: "A", Value: "3"}}
		}, map[string]string{trainer + ".image": `"mine:1"`, trainer + ".args": `["--x"]`,
			trainer + ".env": `[{"name":"B","value":"2"},{"name":"A","value":"3"}]`}, nil},
		"processes": {func(j *job, _ *runtime) { j.Spec.Trainer.NumProcPerNode = ptr.To(intstr.FromInt32(4)) },
			map[string]string{"spec.framework.nprocPerNode": "4"}, nil},
		"processes by CPUs": {func(j *job, _ *runtime) {
			j.Spec.Trainer.ResourcesPerNode = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("3500m")},
			}
		}, map[string]string{"spec.framework.nprocPerNode": "4"}, nil},
		"processes by the runtime, of trainer 2.1": {func(_ *job, r *runtime) {
			r.Spec.MLPolicy.Torch.NumProcPerNode = ptr.To(intstr.FromInt32(1))
		}, map[string]string{"spec.framework.nprocPerNode": "1"}, nil},
		"GPUs of a resource that only trainer counts": {func(j *job, _ *runtime) {
			j.Spec.Trainer.ResourcesPerNode = &corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"x.io/gpus": resource.MustParse("8")},
			}
		}, map[string]string{"spec.framework.nprocPerNode": "8"}, nil},
		"a patch": {func(j *job, _ *runtime) {
			j.Spec.RuntimePatches = patchOf(t, `
              metadata: {labels: {team: ads}}
              spec:
                nodeSelector: {gpu: a100}
                tolerations: [{key: gpu, operator: Exists}]
                volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
                containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]
`)
		}, map[string]string{
			"spec.template.metadata.labels": `{"team":"ads"}`, "spec.template.spec.nodeSelector": `{"gpu":"a100"}`,
			"spec.template.spec.tolerations": `[{"key":"gpu","operator":"Exists"}]`, trainer + ".image": `"torch:2"`,
			trainer + ".volumeMounts": `[{"mountPath":"/data","name":"data"}]`,
		}, nil},
		"an override, of trainer 2.1": {func(j *job, _ *runtime) {
			j.Spec.PodTemplateOverrides = []PodTemplateOverride{*parsed[PodTemplateOverride](t,
				"targetJobs: [{name: node}]\nspec: {serviceAccountName: me}\n")}
		}, map[string]string{"spec.template.spec.serviceAccountName": `"me"`}, nil},
		"deadline, suspended, elsewhere": {func(j *job, _ *runtime) {
			j.Spec.ActiveDeadlineSeconds, j.Spec.Suspend = 60, ptr.To(true)
			j.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue")
		}, map[string]string{"spec.deadlines": `{"activeSeconds":60}`, "spec.suspend": "true"},
			[]string{"spec.activeDeadlineSeconds = 60: trainer counts from its start", "spec.managedBy = kueue.x-k8s.io/multikueue"}},
		"what the runtime's Job says": {func(_ *job, r *runtime) {
			s := jobOfRuntime(r)
			s.BackoffLimit, s.ActiveDeadlineSeconds, s.TTLSecondsAfterFinished = ptr.To[int32](0), ptr.To[int64](9), ptr.To[int32](1)
		}, map[string]string{"spec.restarts.max": "0", "spec.deadlines.activeSeconds": "9"}, []string{
			".template.spec.activeDeadlineSeconds = 9", ".template.spec.backoffLimit = 0: it is spec.restarts.max now, 0",
			".template.spec.ttlSecondsAfterFinished = 1: Tideline has no such field"}},
		"gangs by Volcano": {func(_ *job, r *runtime) {
			r.Spec.PodGroupPolicy = parsed[PodGroupPolicy](t, "volcano: {networkTopology: {mode: hard, highestTierAllowed: 1}}")
			r.Spec.Template.Metadata.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "research"}
		}, map[string]string{"spec.networkTopology": `{"highestTierAllowed":1,"mode":"Hard"}`},
			[]string{"kubectl annotate namespace ads scheduling.volcano.sh/queue-name=research"}},
		"what JobSet decides": {func(_ *job, r *runtime) {
			r.Spec.PodGroupPolicy = &PodGroupPolicy{Coscheduling: map[string]any{}}
			r.Spec.Template.Spec.FailurePolicy = map[string]any{"maxRestarts": 3}
			r.Spec.Template.Spec.Network = map[string]any{"subdomain": "x"}
		}, nil, []string{where + "podGroupPolicy.coscheduling", where + "template.spec.network",
			where + `template.spec.failurePolicy = {"maxRestarts":3}`}},
		"another command": {func(j *job, _ *runtime) { j.Spec.Trainer.Command = []string{"python", "train.py"} }, nil,
			[]string{`spec.trainer.command = ["python","train.py"]: trainer tells torchrun by variables PET_…`}},
		"torchtune's": {func(j *job, _ *runtime) {
			j.Spec.Trainer.Command = []string{"tune", "run", "--nnodes=3", "recipe"}
		}, nil, nil},
		"flags and names": {func(j *job, _ *runtime) {
			j.Spec.Trainer.Command = []string{"torchrun", "--master_addr=$(PET_MASTER_ADDR)", "--node-rank=0", "t.py", "ctr-node-0-0.ctr"}
		}, nil, []string{"spec.trainer.command --node-rank", "spec.trainer.command --master-addr",
			"spec.trainer.command[1] = --master_addr=$(PET_MASTER_ADDR): PET_MASTER_ADDR is not set",
			"spec.trainer.command[4] = ctr-node-0-0.ctr: the host names are ctr-worker-0.ctr-workers and so on; leave it to torchrun"}},
		"no trainer": {func(j *job, r *runtime) {
			j.Spec.Trainer, podOfRuntime(r).Containers[0].Command = nil, []string{"torchrun", "t.py"}
		}, nil, []string{"spec.trainer is not set: trainer tells torchrun nothing then"}},
		"JAX": {func(_ *job, r *runtime) { r.Spec.MLPolicy.Torch, r.Spec.MLPolicy.JAX = nil, map[string]any{} },
			map[string]string{"spec.framework": `{"port":29500,"type":"Custom"}`, trainer + ".env": "null"},
			[]string{".template.spec.template.spec.restartPolicy is not set: trainer's Job lets the other pods run on"}},
		"no framework": {func(j *job, r *runtime) {
			r.Spec.MLPolicy = nil
			j.Spec.Trainer.NumProcPerNode, j.Spec.Trainer.NumNodes = ptr.To(intstr.FromInt32(2)), ptr.To[int32](1)
		}, map[string]string{"spec.framework": `{"type":"Custom"}`, trainer + ".env": `[{"name":"JOB_COMPLETION_INDEX","valueFrom":` +
			`{"fieldRef":{"fieldPath":"metadata.labels['tideline.io/worker-index']"}}}]`}, []string{"spec.trainer.numProcPerNode = 2"}},
		"a TrainJob that runs": {func(j *job, _ *runtime) {
			j.Status.Conditions = []metav1.Condition{{Type: "Complete"}}
		}, nil, []string{"status = Complete: the status is left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, by := parsed[TrainJob](t, torchTrainJob), parsed[TrainingRuntime](t, torchRuntime)
			c.edit(in, by)
			before := must(json.Marshal([]any{in, by}))
			out, notes := FromTrainJob(in, by)
			if out == nil {
				t.Fatalf("not converted: %v", notes)
			}
			if !bytes.Equal(must(json.Marshal([]any{in, by})), before) {
				t.Error("it changed its argument")
			}
			for path, want := range c.has {
				if have := at(t, out, path); have != want {
					t.Errorf("%s is %s, want %s", path, have, want)
				}
			}
			said(t, notes, c.says, backoff)
			agree(t, g, out, notes)
		})
	}
}

func TestTrainJobNotConverted(t *testing.T) {
	type (
		job     = TrainJob
		runtime = TrainingRuntime
	)
	const where = "ClusterTrainingRuntime/torch spec."
	for name, c := range map[string]struct {
		edit func(*job, *runtime)
		says []string
	}{
		"no name":  {func(j *job, _ *runtime) { j.Name = "" }, []string{"metadata.name is not set"}},
		"no nodes": {func(j *job, _ *runtime) { j.Spec.Trainer.NumNodes = ptr.To[int32](0) }, []string{"spec.trainer.numNodes = 0"}},
		"too many": {func(j *job, _ *runtime) { j.Spec.Trainer.NumNodes = ptr.To[int32](4097) },
			[]string{"spec.trainer.numNodes = 4097"}},
		"by MPI":    {func(_ *job, r *runtime) { r.Spec.MLPolicy.MPI = map[string]any{} }, []string{where + "mlPolicy.mpi = {}"}},
		"torchtune": {func(j *job, _ *runtime) { j.Spec.Trainer.Command = []string{"tune", "run"} }, []string{"spec.trainer.command"}},
		"a claim of the JobSet": {func(_ *job, r *runtime) { r.Spec.Template.Spec.VolumeClaimPolicies = []any{map[string]any{}} },
			[]string{where + "template.spec.volumeClaimPolicies"}},
		"an initializer": {func(j *job, r *runtime) {
			j.Spec.Initializer = &Initializer{Dataset: map[string]any{"storageUri": "hf://a/b"}}
			r.Spec.Template.Spec.ReplicatedJobs = append(r.Spec.Template.Spec.ReplicatedJobs, ReplicatedJob{Name: "dataset-initializer",
				Template: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{ancestorLabel: "dataset-initializer"},
				}}})
		}, []string{`spec.initializer = {"dataset":{"storageUri":"hf://a/b"}}: an initializer`,
			where + "template.spec.replicatedJobs[dataset-initializer] = dataset-initializer: an initializer"}},
		"other pods": {func(_ *job, r *runtime) {
			r.Spec.Template.Spec.ReplicatedJobs = append(r.Spec.Template.Spec.ReplicatedJobs, ReplicatedJob{Name: "ps"})
		}, []string{where + "template.spec.replicatedJobs[ps] = ps: pods beside those that train"}},
		"nothing that trains": {func(_ *job, r *runtime) { r.Spec.Template.Spec.ReplicatedJobs[0].Template.Labels = nil },
			[]string{where + "template.spec.replicatedJobs is not set"}},
		"no container node": {func(_ *job, r *runtime) { podOfRuntime(r).Containers[0].Name = "main" },
			[]string{`.template.spec.template.spec.containers = ["main"]`}},
		"a patch for nothing": {func(j *job, _ *runtime) {
			j.Spec.RuntimePatches = patchOf(t, "              {}\n")
			j.Spec.RuntimePatches[0].TrainingRuntimeSpec.Template.Spec.ReplicatedJobs[0].Name = "other"
		}, []string{"spec.runtimePatches[me.io/x] = other: trainer refuses"}},
		"a patch for no container": {func(j *job, _ *runtime) {
			j.Spec.RuntimePatches = patchOf(t, "              spec: {containers: [{name: logs}]}\n")
		}, []string{"spec.runtimePatches[me.io/x] = logs: trainer refuses"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, by := parsed[TrainJob](t, torchTrainJob), parsed[TrainingRuntime](t, torchRuntime)
			c.edit(in, by)
			out, notes := FromTrainJob(in, by)
			notConverted(t, out, notes, c.says)
		})
	}
}

// Runtimes are found in any of the files, before or after the job.
func TestRuntimesAreResolved(t *testing.T) {
	own := strings.Replace(strings.Replace(torchRuntime, "ClusterTrainingRuntime", "TrainingRuntime", 1), "name: torch\n",
		"name: torch\n  namespace: ads\n", 1)
	byOwn := strings.Replace(torchTrainJob, "    name: torch\n", "    name: torch\n    kind: TrainingRuntime\n", 1)
	for name, c := range map[string]struct {
		in, says string
		code     int
	}{
		"after the job":           {torchTrainJob + "---\n" + torchRuntime, "spec.restarts.max now, 6", 0},
		"before the job":          {torchRuntime + "---\n" + torchTrainJob, "spec.restarts.max now, 6", 0},
		"of the job's namespace":  {own + "---\n" + byOwn, "TrainingRuntime/torch spec", 0},
		"of another namespace":    {strings.Replace(own, "ads", "other", 1) + "---\n" + byOwn, "kubectl get trainingruntime torch", 1},
		"that is not there":       {torchTrainJob, "not converted: spec.runtimeRef.name = torch: the files hold no", 1},
		"of another kind":         {strings.Replace(byOwn, "kind: TrainingR", "kind: R", 1), "spec.runtimeRef.kind", 1},
		"twice":                   {torchRuntime + "---\n" + torchRuntime + "---\n" + torchTrainJob, "give one of them", 1},
		"that no job uses":        {torchRuntime, "ClusterTrainingRuntime torch: not used: no TrainJob here refers to it", 0},
		"with a field unheard of": {strings.Replace(torchRuntime, "torch: {}", "tf: {}", 1), `unknown field "spec.mlPolicy.tf"`, 1},
		"of another version":      {strings.Replace(torchTrainJob, "v1alpha1", "v1", 1), "/v1alpha1) is converted; write it", 1},
		"for a job of odd fields": {strings.Replace(torchTrainJob, "numNodes", "nodes", 1), `unknown field "spec.trainer.nodes"`, 1},
		"of another group":        {strings.Replace(byOwn, "    kind", "    apiGroup: x.io\n    kind", 1), "runtimeRef.apiGroup", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(strings.NewReader(c.in), &stdout, &stderr, "-f", "-")
			if code != c.code || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("exit code %d, want %d; says %s", code, c.code, &stderr)
			}
			if converted := strings.Contains(stdout.String(), "image: torch:2"); converted && code != 0 && name != "twice" {
				t.Errorf("prints %s", &stdout)
			}
		})
	}
}
