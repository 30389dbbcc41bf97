package convert

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
)

var update = flag.Bool("update", false, "write testdata/examples anew from what is printed")

// examples are the files in which training-operator publishes PyTorchJobs, by their path below the root of its module.
func examples(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/kubeflow/training-operator").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		t.Fatalf("where is the module of training-operator? %v", err)
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(filepath.Join(root, "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		content, err := os.ReadFile(path)
		if regexp.MustCompile(`(?m)^kind: *"?PyTorchJob"?$`).Match(content) {
			name, _ := filepath.Rel(root, path)
			files[filepath.ToSlash(name)] = content
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// expectation is what a reader of an example expects of its conversion.
type expectation struct {
	least, most int32
	success     v1beta1.SuccessOperator
	processes   int32
	// about are the fields that are spoken of.
	about []string
}

const (
	aboutLimit     = "spec.runPolicy.backoffLimit"
	aboutCommand   = torchPath + ".command"
	aboutProcesses = "spec.nprocPerNode"
)

var expected = map[string]expectation{
	"examples/pytorch/cpu-demo/demo.yaml":                         {2, 2, "", 2, []string{aboutLimit}},
	"examples/pytorch/deepspeed-demo/pytorch_deepspeed_demo.yaml": {2, 2, "", 0, []string{aboutLimit}},
	"examples/pytorch/mnist/v1/pytorch_job_mnist_gloo.yaml":       {2, 2, "", 0, []string{aboutLimit, aboutCommand}},
	"examples/pytorch/mnist/v1/pytorch_job_mnist_mpi.yaml":        {2, 2, "", 0, []string{aboutLimit, aboutCommand}},
	"examples/pytorch/mnist/v1/pytorch_job_mnist_nccl.yaml":       {2, 2, "", 0, []string{aboutLimit, aboutCommand}},
	"examples/pytorch/simple.yaml":                                {2, 2, "", 0, []string{aboutLimit, aboutCommand}},
	"examples/pytorch/smoke-dist/pytorch_job_sendrecv.yaml":       {4, 4, "", 0, []string{aboutLimit, aboutCommand}},
	"examples/pytorch/elastic/echo/echo.yaml":                     {1, 2, "Any", 0, []string{aboutProcesses, aboutLimit}},
	"examples/pytorch/elastic/imagenet/imagenet.yaml": {1, 3, "Any", 0, []string{
		workerPath + ".replicas", aboutProcesses, "spec.elasticPolicy.metrics", aboutLimit}},
}

// Every PyTorchJob that training-operator publishes becomes a job that admission accepts, and nothing is lost in silence.
func TestExamples(t *testing.T) {
	published := examples(t)
	if have, want := slices.Sorted(maps.Keys(published)), slices.Sorted(maps.Keys(expected)); !slices.Equal(have, want) {
		t.Errorf("training-operator publishes\n%q\nand this test knows\n%q", have, want)
	}
	g := rules()
	for name, content := range published {
		t.Run(name, func(t *testing.T) {
			in := &kubeflowv1.PyTorchJob{}
			if err := decode(content, in); err != nil {
				t.Fatal(err)
			}
			out, notes := FromPyTorchJob(in)
			if out == nil {
				t.Fatal(notes)
			}
			agree(t, g, out, notes)
			want := expected[name]
			var about []string
			for _, n := range notes {
				about = append(about, n.Path)
			}
			have := expectation{out.Spec.MinReplicas, out.Spec.MaxReplicas, out.Spec.SuccessPolicy.Operator, 0, about}
			if out.Spec.Framework.NprocPerNode != nil {
				have.processes = *out.Spec.Framework.NprocPerNode
			}
			if !equality.Semantic.DeepEqual([]any{have.least, have.most, have.success, have.processes, have.about},
				[]any{want.least, want.most, want.success, want.processes, want.about}) {
				t.Errorf("became %+v, want %+v", have, want)
			}
			golden(t, name, content, out)
		})
	}
}

// golden compares what the command prints of an example with the files beside this test, and the YAML with the object.
func golden(t *testing.T, name string, content []byte, object *v1beta1.ElasticTrainingJob) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(bytes.NewReader(content), &stdout, &stderr, "-f", "-"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	read := &v1beta1.ElasticTrainingJob{}
	if err := yaml.UnmarshalStrict(stdout.Bytes(), read); err != nil || !equality.Semantic.DeepEqual(read, object) {
		t.Errorf("prints %s (%v)", &stdout, err)
	}
	base := filepath.Join("testdata", "examples", strings.TrimSuffix(filepath.Base(name), ".yaml"))
	for path, have := range map[string][]byte{base + ".yaml": stdout.Bytes(), base + ".notes": stderr.Bytes()} {
		if *update {
			if err := os.WriteFile(path, have, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s holds\n%s\n(%v), and the command prints\n%s\nIf that is right: go test ./internal/cli/convert -run "+
				"TestExamples -update",
				path, want, err, have)
		}
	}
}
