package convert

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

// document is a PyTorchJob as people write it.
func document(name string, more ...string) string {
	return `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: ` + name + `
spec:
` + strings.Join(more, "") + `  runPolicy:
    backoffLimit: 3
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: pytorch
            image: ctr:1
            command: [torchrun, train.py]
            resources:
              limits:
                nvidia.com/gpu: 1
`
}

// converted is what document becomes.
func converted(name string) string {
	return `apiVersion: tideline.io/v1beta1
kind: ElasticTrainingJob
metadata:
  name: ` + name + `
spec:
  cleanup:
    podPolicy: None
  maxReplicas: 1
  minReplicas: 1
  restarts:
    max: 3
  successPolicy:
    targets:
    - indexes: 0-
  template:
    spec:
      containers:
      - command:
        - torchrun
        - train.py
        env:
        - name: PYTHONUNBUFFERED
          value: "1"
        image: ctr:1
        name: trainer
        resources:
          limits:
            nvidia.com/gpu: "1"
`
}

// limited is what is said of each document.
func limited(where string) string {
	return where + ": spec.runPolicy.backoffLimit = 3: it is spec.restarts.max now: training-operator fails the " +
		"job when the " +
		"restarts of its running containers reach it, Tideline when restarts within windowSeconds (86400) exceed it; evictions and " +
		"lost nodes never count\n"
}

const (
	stdinPath = "standard input"
	service   = "apiVersion: v1\nkind: Service\nmetadata:\n  name: etcd\n"
)

// run runs `tideline convert`.
func run(in io.Reader, stdout, stderr io.Writer, args ...string) int {
	root := cli.Root("tideline", Command())
	return cli.Execute(context.Background(), root, slices.Concat([]string{"convert"}, args), in, stdout, stderr)
}

func TestRun(t *testing.T) {
	listed := strings.ReplaceAll("\n"+document("b"), "\n", "\n  ")
	list := func(apiVersion, kind string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nitems:\n-" + strings.TrimRight(listed[2:], " ")
	}
	for name, c := range map[string]struct {
		in, out, err string
		code         int
	}{
		"one":  {document("a"), converted("a"), limited(stdinPath + ": PyTorchJob a"), 0},
		"JSON": {string(must(yaml.YAMLToJSON([]byte(document("a"))))), converted("a"), limited(stdinPath + ": PyTorchJob a"), 0},
		"several": {"# jobs\n---\n" + document("a") + "---\n# nothing\n---\n" + document("b"),
			converted("a") + "---\n" + converted("b"),
			limited(stdinPath+": PyTorchJob a") + limited(stdinPath+": PyTorchJob b"), 0},
		"a list":                {list("v1", "List"), converted("b"), limited(stdinPath + ": PyTorchJob b"), 0},
		"a list of PyTorchJobs": {list("kubeflow.org/v1", "PyTorchJobList"), converted("b"), limited(stdinPath + ": PyTorchJob b"), 0},
		"another kind": {service + "---\n" + document("a"), converted("a"), stdinPath + ": document 1: not converted: it is " +
			"Service etcd (v1), " +
			"and only " + convertible() + " are converted; leave it out\n" + limited(stdinPath+": PyTorchJob a"), 1},
		"another version": {strings.Replace(document("a"), "org/v1", "org/v1beta2", 1), "", stdinPath + ": document 1: not " +
			"converted: it is " +
			"PyTorchJob a (kubeflow.org/v1beta2), and only PyTorchJob (kubeflow.org/v1) is converted; write it in " +
			"that version\n", 1},
		"another group's Job": {"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n", "", stdinPath +
			": document 1: not converted: it is Job a (batch/v1), and only " + convertible() + " are converted; leave it out\n", 1},
		"two of one name": {document("a") + "---\n" + document("a"), converted("a"), limited(stdinPath+": PyTorchJob a") + stdinPath +
			": PyTorchJob a: not converted: metadata.name = a: two jobs of one name in one namespace would be one " +
			"ElasticTrainingJob, and " + stdinPath + ": PyTorchJob a has it already; give one of them another name\n", 1},
		"an unknown field": {document("a", "  minReplicas: 1\n") + "---\n" + document("b"), converted("b"), stdinPath +
			`: PyTorchJob a: not converted: strict decoding error: unknown field "spec.minReplicas"` + "\n" +
			limited(stdinPath+": PyTorchJob b"), 1},
		"an unknown field far below": {strings.Replace(document("a"), "image:", "picture:", 1), "",
			stdinPath + ": PyTorchJob a: not converted: " +
				`strict decoding error: unknown field "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].picture"` + "\n", 1},
		"a field twice": {document("a", "  nprocPerNode: \"1\"\n  nprocPerNode: \"2\"\n"), "",
			stdinPath + ": PyTorchJob a: not converted: " +
				`strict decoding error: yaml: unmarshal errors: line 7: key "nprocPerNode" already set in map` + "\n", 1},
		"a wrong type": {document("a", "  nprocPerNode: 2\n"), "", stdinPath + ": PyTorchJob a: not converted: json: cannot " +
			"unmarshal number " +
			"into Go struct field PyTorchJobSpec.spec.nprocPerNode of type string\n", 1},
		"no YAML": {"a: [", "", stdinPath + ": document 1: not converted: error converting YAML to JSON: yaml: line 1: did not " +
			"find expected node content\n", 1},
		"nothing": {"# nothing\n", "", stdinPath + ": not converted: it holds no document\n", 1},
		"what cannot be converted": {strings.Replace(document("a"), "Worker:", "Launcher:", 1), "",
			stdinPath + ": PyTorchJob a: not converted: spec.pytorchReplicaSpecs[Launcher] = Launcher: training-operator knows " +
				"the roles Master and Worker; name it so\n" +
				stdinPath + ": PyTorchJob a: not converted: spec.pytorchReplicaSpecs is not set: there is neither a Master nor a " +
				"Worker to convert; give the job workers\n", 1},
		"what will be refused": {document("a.b"), converted("a.b"), limited(stdinPath+": PyTorchJob a.b") + stdinPath +
			": PyTorchJob a.b: metadata.name = a.b: the name will be refused, because it becomes part of host names; use " +
			"lower-case letters, digits and dashes, begin with a letter, and leave out dots\n", 1},
		"a name that would steer the terminal": {
			strings.Replace(document("a"), "spec:\n          containers", "metadata:\n          annotations:\n"+
				`            "volcano.sh/\x1b[31m\nb": "  x"`+"\n        spec:\n          containers", 1), converted("a"),
			stdinPath + `: PyTorchJob a: ` + workerPath + `.template.metadata.annotations[volcano.sh/\x1b[31m b] =   x: ` +
				"Tideline speaks to Volcano for its pods; it is left out; see docs/convert.md for what takes its place\n" +
				limited(stdinPath+": PyTorchJob a"), 0},
		"a namespace": {strings.Replace(document("a"), "name: a", "name: a\n  namespace: ads", 1),
			strings.Replace(converted("a"), "name: a", "name: a\n  namespace: ads", 1), limited(stdinPath + ": PyTorchJob ads/a"), 0},
		"a generated name": {strings.Replace(document("a"), "name: a", "generateName: a-", 1),
			strings.Replace(converted("a"), "name: a", "generateName: a-", 1), limited(stdinPath + ": document 1"), 0},
		"what admission refuses of the user's own": {strings.Replace(document("a"), "resources:", "env: [{name: X}, {name: "+
			"X}]\n            resources:", 1),
			strings.Replace(converted("a"), "        - name: PYTHON", "        - name: X\n        - name: X\n        - name: PYTHON", 1),
			limited(stdinPath+": PyTorchJob a") + stdinPath +
				`: PyTorchJob a: the API server will refuse the ElasticTrainingJob: spec.template.spec.containers[0].env[1]: ` +
				`Duplicate value: {"name":"X"}` + "\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(strings.NewReader(c.in), &stdout, &stderr, "-f", "-")
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if have := stdout.String(); have != c.out {
				t.Errorf("prints\n%s\nwant\n%s", have, c.out)
			}
			if have := stderr.String(); have != c.err {
				t.Errorf("says\n%s\nwant\n%s", have, c.err)
			}
		})
	}
}

func TestRunReadsFiles(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a.yaml"), filepath.Join(t.TempDir(), "b.yaml")
	for path, name := range map[string]string{a: "a", b: "b"} {
		if err := os.WriteFile(path, []byte(document(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.yaml")
	var stdout, stderr bytes.Buffer
	code := run(strings.NewReader(""), &stdout, &stderr, "-f", a, "-f", missing, "-f", b)
	want := limited(a+": PyTorchJob a") + missing + ": not converted: open " + missing + ": no such file or directory\n" +
		limited(b+": PyTorchJob b")
	if code != 1 || stdout.String() != converted("a")+"---\n"+converted("b") || stderr.String() != want {
		t.Errorf("exit code %d, prints\n%s\nsays\n%s\nwant\n%s", code, &stdout, &stderr, want)
	}
}

func TestRunSaysHowItIsUsed(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{nil, "give files by -f FILE", 2},
		{[]string{"a.yaml"}, "give files by -f FILE", 2},
		{[]string{"-f", "-", "a.yaml"}, "give files by -f FILE", 2},
		{[]string{"-x"}, "unknown shorthand flag: 'x' in -x", 2},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(strings.NewReader(document("a")), &stdout, &stderr, c.args...); code != c.code || stdout.Len() > 0 ||
			!strings.Contains(stderr.String(), c.says) {
			t.Errorf("%q: exit code %d, want %d; prints %q, says %q", c.args, code, c.code, &stdout, &stderr)
		}
	}
}

// full is a writer to a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRunSaysWhatItCouldNotReadOrWrite(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(strings.NewReader(document("a")), full{}, &stderr, "-f", "-")
	if want := "PyTorchJob a: not converted: no space left\n"; code != 1 || !strings.HasSuffix(stderr.String(), want) {
		t.Errorf("exit code %d, says %q", code, &stderr)
	}
	stderr.Reset()
	code = run(iotest.ErrReader(errors.New("no more")), &stdout, &stderr, "-f", "-")
	if want := stdinPath + ": not converted: no more\n"; code != 1 || stderr.String() != want {
		t.Errorf("exit code %d, says %q", code, &stderr)
	}
}

// What is printed says as much as the object: read again, it is the same.
func TestMarshalKeepsWhatMatters(t *testing.T) {
	in := good()
	pod(func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{{Name: "data", Image: "data:1"}}
		s.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	})(in)
	masterOf(in).Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	out, _ := FromPyTorchJob(in)
	written, err := marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	read := &v1beta1.ElasticTrainingJob{}
	if err := yaml.UnmarshalStrict(written, read); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(read, out) {
		t.Errorf("%s\nis\n%v\nwant\n%v", written, read, out)
	}
	for _, kept := range []string{"emptyDir: {}", "  master:\n    resources: {}\n"} {
		if !strings.Contains(string(written), kept) {
			t.Errorf("%s\nlacks %s", written, kept)
		}
	}
	for _, noise := range []string{"null", "status", "elasticity", "framework", "deadlines", "successPolicy", "checkpoint"} {
		if strings.Contains(string(written), noise) {
			t.Errorf("%s\nhas %s", written, noise)
		}
	}
	if n := strings.Count(string(written), "{}"); n != 2 {
		t.Errorf("%s\nhas %d empty fields, want the 2 that mean something", written, n)
	}
}

// docs/convert.md shows what the command prints.
func TestPageShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../../docs/convert.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?\n)```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 4 {
		t.Fatalf("the page shows %d blocks, want commands, a PyTorchJob, an ElasticTrainingJob and notes", len(blocks))
	}
	var stdout, stderr bytes.Buffer
	run(strings.NewReader(blocks[1][2]), &stdout, &stderr, "-f", "-")
	notes := strings.ReplaceAll(stderr.String(), stdinPath+":", "pytorchjob.yaml:")
	if stdout.String() != blocks[2][2] || notes != blocks[3][2] {
		t.Errorf("prints\n%s\nand says\n%s", &stdout, notes)
	}
}
