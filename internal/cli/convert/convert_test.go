package convert

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
)

type pytorchJob = kubeflowv1.PyTorchJob

// unlimited is said of every job that restarts and has no backoffLimit.
const unlimited = "spec.runPolicy.backoffLimit is not set: training-operator restarts without end; Tideline fails the " +
	"job at more " +
	"than 10 restarts within 86400 s; set spec.restarts.max, 100 at most, for more"

// role is a role of the good job: torchrun on one GPU.
func role(replicas int32) *kubeflowv1.ReplicaSpec {
	return &kubeflowv1.ReplicaSpec{
		Replicas: ptr.To(replicas),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "pytorch", Image: "ctr:1", Command: []string{"torchrun", "train.py"}, Resources: gpus(1),
		}}}},
	}
}

func gpus(n int64) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}}
}

// good is a job of a Master and three workers, of which nothing is lost but training-operator's endless restarts.
func good() *pytorchJob {
	return &pytorchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr"},
		Spec: kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{
			master: role(1), worker: role(3),
		}},
	}
}

func noMaster(j *pytorchJob) { delete(j.Spec.PyTorchReplicaSpecs, master) }

// elastic makes it an elastic job of 2 to 3 workers.
func elastic(j *pytorchJob) *kubeflowv1.ElasticPolicy {
	noMaster(j)
	j.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: ptr.To[int32](2), MaxReplicas: ptr.To[int32](3)}
	return j.Spec.ElasticPolicy
}

func masterOf(j *pytorchJob) *kubeflowv1.ReplicaSpec { return j.Spec.PyTorchReplicaSpecs[master] }
func workerOf(j *pytorchJob) *kubeflowv1.ReplicaSpec { return j.Spec.PyTorchReplicaSpecs[worker] }
func podOf(j *pytorchJob) *corev1.PodSpec            { return &workerOf(j).Template.Spec }
func trainerOf(j *pytorchJob) *corev1.Container      { return &podOf(j).Containers[0] }

// both edits the templates of both roles alike.
func both(j *pytorchJob, edit func(*corev1.PodTemplateSpec)) {
	for _, spec := range j.Spec.PyTorchReplicaSpecs {
		edit(&spec.Template)
	}
}

// rule is a case: what a PyTorchJob has, what the ElasticTrainingJob then has, and what is said about it.
type rule struct {
	edit func(*pytorchJob)
	// has are values of the result as JSON, by path; null where there is none.
	has map[string]string
	// says are all notes but unlimited.
	says []string
}

const (
	trainer    = "spec.template.spec.containers.0"
	workerPath = "spec.pytorchReplicaSpecs[Worker]"
	masterPath = "spec.pytorchReplicaSpecs[Master]"
	podPath    = workerPath + ".template.spec"
	torchPath  = podPath + ".containers[pytorch]"
)

// at is the value at a path of the object as it is written, in JSON.
func at(t *testing.T, job *v1beta1.ElasticTrainingJob, path string) string {
	t.Helper()
	var value any
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[strings.ReplaceAll(name, "|", ".")]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return "null"
			}
			value = v[i]
		default:
			return "null"
		}
	}
	written, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func rules() *specvalidation.Guard {
	return specvalidation.New(crd.ElasticTrainingJob, v1beta1.GroupVersion.Version)
}

// agree fails when the notes promise another verdict of admission than the guard gives.
func agree(t *testing.T, g *specvalidation.Guard, job *v1beta1.ElasticTrainingJob, notes []Note) {
	t.Helper()
	words, err := (&printer{rules: g}).refusal(job)
	if err != nil {
		t.Fatal(err)
	}
	if refused := slices.ContainsFunc(notes, func(n Note) bool { return n.Refused }); refused != (words != "") {
		t.Errorf("a note says that it will be refused: %v; admission says %q; notes %v", refused, words, notes)
	}
}

func check(t *testing.T, cases map[string]rule) {
	t.Helper()
	g := rules()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := good()
			c.edit(in)
			before := in.DeepCopy()
			out, notes := FromPyTorchJob(in)
			if out == nil {
				t.Fatalf("not converted: %v", notes)
			}
			if written, _ := json.Marshal(in); !bytes.Equal(written, must(json.Marshal(before))) {
				t.Error("Convert changed its argument")
			}
			for path, want := range c.has {
				if have := at(t, out, path); have != want {
					t.Errorf("%s is %s, want %s", path, have, want)
				}
			}
			var says []string
			for _, n := range notes {
				if s := n.String(); s != unlimited {
					says = append(says, s)
				}
			}
			if !slices.Equal(says, c.says) {
				t.Errorf("says\n\t%s\nwant\n\t%s", strings.Join(says, "\n\t"), strings.Join(c.says, "\n\t"))
			}
			agree(t, g, out, notes)
		})
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestReplicas(t *testing.T) {
	check(t, map[string]rule{
		"Master and workers": {func(*pytorchJob) {}, map[string]string{
			"apiVersion": `"tideline.io/v1beta1"`, "kind": `"ElasticTrainingJob"`,
			"metadata.name": `"ctr"`, "metadata.namespace": `"ads"`,
			"spec.minReplicas": "4", "spec.maxReplicas": "4", "spec.master": "null", "spec.successPolicy": "{}",
			"spec.failurePolicy": "null", "spec.framework": "{}",
			"spec.cleanup":    `{"podPolicy":"None"}`,
			trainer + ".name": `"trainer"`, trainer + ".env": `[{"name":"PYTHONUNBUFFERED","value":"1"}]`,
		}, nil},
		"replicas default to 1": {func(j *pytorchJob) { workerOf(j).Replicas = nil }, map[string]string{"spec.minReplicas": "2"}, nil},
		"Master alone": {func(j *pytorchJob) {
			delete(j.Spec.PyTorchReplicaSpecs, worker)
			masterOf(j).Template.Spec.Containers[0].Image = "master:1"
		}, map[string]string{
			"spec.minReplicas": "1", "spec.maxReplicas": "1", trainer + ".image": `"master:1"`, "spec.successPolicy": "{}",
		}, nil},
		"workers alone": {noMaster, map[string]string{
			"spec.minReplicas": "3", "spec.maxReplicas": "3", "spec.successPolicy": `{"targets":[{"indexes":"0-"}]}`,
		}, nil},
		"elastic": {func(j *pytorchJob) { elastic(j) }, map[string]string{
			"spec.minReplicas": "2", "spec.maxReplicas": "3", "spec.successPolicy": `{"operator":"Any","targets":[{"indexes":"0-"}]}`,
		}, nil},
		"elastic, without bounds": {func(j *pytorchJob) { *elastic(j) = kubeflowv1.ElasticPolicy{} },
			map[string]string{"spec.minReplicas": "3", "spec.maxReplicas": "3"}, nil},
		"elastic, the minimum alone": {func(j *pytorchJob) { elastic(j).MaxReplicas = nil },
			map[string]string{"spec.maxReplicas": "2"}, []string{workerPath + ".replicas = 3: the number follows from the room: " +
				"the job starts when its minReplicas (2) fit, and grows up to maxReplicas (2); lower spec.maxReplicas if it must not " +
				"grow so far"}},
		"elastic, the maximum alone": {func(j *pytorchJob) { elastic(j).MinReplicas = nil },
			map[string]string{"spec.minReplicas": "3"}, nil},
		"elastic, fewer than maximum": {func(j *pytorchJob) { elastic(j); workerOf(j).Replicas = ptr.To[int32](2) },
			map[string]string{"spec.maxReplicas": "3"}, []string{workerPath + ".replicas = 2: the number follows from the room: " +
				"the job starts when its minReplicas (2) fit, and grows up to maxReplicas (3); lower spec.maxReplicas if it must not " +
				"grow so far"}},
		"elastic, with a Master": {func(j *pytorchJob) { elastic(j); j.Spec.PyTorchReplicaSpecs[master] = role(1) }, map[string]string{
			"spec.minReplicas": "3", "spec.maxReplicas": "4", "spec.successPolicy": "{}",
		}, []string{masterPath + " = 1: in an elastic job the Master is one more worker, so the range is 3 to 4 instead of 2 " +
			"to 3; lower minReplicas and maxReplicas by one if the Master was counted in them"}},
	})
}

func TestMetadata(t *testing.T) {
	check(t, map[string]rule{
		"what people wrote is carried over": {func(j *pytorchJob) {
			j.Labels = map[string]string{"team": "ads"}
			j.Annotations = map[string]string{"note": "x", corev1.LastAppliedConfigAnnotation: "{}"}
			j.UID, j.ResourceVersion, j.Generation = "u", "7", 3
			j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		}, map[string]string{
			"metadata": `{"annotations":{"note":"x"},"labels":{"team":"ads"},"name":"ctr","namespace":"ads"}`,
		}, nil},
		"Volcano's annotations": {func(j *pytorchJob) { j.Annotations = map[string]string{"volcano.sh/preemptable": "true"} },
			map[string]string{"metadata.annotations": "null"}, []string{
				"metadata.annotations[volcano.sh/preemptable] = true: training-operator copies it to its PodGroup, Tideline does " +
					"not; it is left out; the queue follows from the namespace's annotation scheduling.volcano.sh/queue-name"}},
		"Kueue's queue": {func(j *pytorchJob) { j.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"} },
			map[string]string{"metadata.labels": "null"}, []string{
				"metadata.labels[kueue.x-k8s.io/queue-name] = team: Kueue admits PyTorchJobs, and does not know ElasticTrainingJobs; " +
					"it is left out, because Tideline would wait for Kueue; give the namespace a Volcano Queue by its annotation " +
					"scheduling.volcano.sh/queue-name"}},
		"owner and finalizers": {func(j *pytorchJob) {
			j.OwnerReferences = []metav1.OwnerReference{{Kind: "Experiment", Name: "e1"}}
			j.Finalizers = []string{"example.com/keep"}
		}, map[string]string{"metadata.ownerReferences": "null", "metadata.finalizers": "null"}, []string{
			"metadata.ownerReferences = Experiment/e1: an owner is the business of who creates the job; it is left out; let the " +
				"owner create the ElasticTrainingJob",
			`metadata.finalizers = ["example.com/keep"]: a finalizer is for a controller of PyTorchJobs; it is left out`}},
		"status": {func(j *pytorchJob) {
			j.Status.Conditions = []kubeflowv1.JobCondition{{Type: kubeflowv1.JobCreated}, {Type: kubeflowv1.JobRunning}}
		}, map[string]string{"status.conditions": "null"}, []string{
			"status = Running: the status is left out, and the training that runs is not taken over: pods of both have the same " +
				"names; delete the PyTorchJob and its pods before you create the ElasticTrainingJob"}},
		"generated name": {func(j *pytorchJob) { j.Name, j.GenerateName = "", "ctr-" },
			map[string]string{"metadata.generateName": `"ctr-"`}, nil},
		"a name that just fits": {func(j *pytorchJob) { j.Name = strings.Repeat("a", 54) }, nil, nil},
		"a name too long": {func(j *pytorchJob) { j.Name = strings.Repeat("a", 55) }, nil, []string{
			"metadata.name = " + strings.Repeat("a", 55) + ": the name will be refused: the longest host name, NAME-worker-3, " +
				"would have 64 characters and may have 63; shorten the name to 54 characters"}},
		"a name too long for its range": {func(j *pytorchJob) {
			j.Name = strings.Repeat("a", 54)
			workerOf(j).Replicas = ptr.To[int32](10)
		}, nil, []string{"metadata.name = " + strings.Repeat("a", 54) + ": the name will be refused: the longest host name, " +
			"NAME-worker-10, would have 64 characters and may have 63; shorten the name to 53 characters"}},
		"a generated name too long": {func(j *pytorchJob) { j.Name, j.GenerateName = "", strings.Repeat("a", 50) }, nil, []string{
			"metadata.generateName = " + strings.Repeat("a", 50) + "xxxxx: the name will be refused: the longest host name, " +
				"NAME-worker-3, would have 64 characters and may have 63; shorten the name to 54 characters"}},
		"a dotted name": {func(j *pytorchJob) { j.Name = "ctr.v2" }, nil, []string{
			"metadata.name = ctr.v2: the name will be refused, because it becomes part of host names; use lower-case letters, " +
				"digits and dashes, begin with a letter, and leave out dots"}},
		"a name of another's PodGroup": {func(j *pytorchJob) { j.Name = "ctr-surplus" }, nil, []string{
			"metadata.name = ctr-surplus: the name will be refused, because the PodGroups of other jobs may have it; let it end " +
				"in something else than -surplus and -merge"}},
		"a name of another's merge": {func(j *pytorchJob) { j.Name = "ctr-merge" }, nil, []string{
			"metadata.name = ctr-merge: the name will be refused, because the PodGroups of other jobs may have it; let it end in " +
				"something else than -surplus and -merge"}},
	})
}
