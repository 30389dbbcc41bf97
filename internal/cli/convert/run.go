package convert

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const long = `Reads PyTorchJobs (kubeflow.org/v1, as training-operator 1.9 knows them) and prints ElasticTrainingJobs.
What could not be carried over, or means something else now, is said on standard error, one line each. Files may hold
several documents, and lists as kubectl prints them. Nothing is read from, or written to, a cluster.

Exit code: 0 when every document was converted; 1 when one was not, or when the API server will refuse the result; 2 when
the command is wrong.`

// Command is `tideline convert`. It prints ElasticTrainingJobs on standard output, and notes on standard error.
func Command() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "convert -f FILE...",
		Short: "Convert PyTorchJobs into ElasticTrainingJobs",
		Long:  long,
		Example: `  tideline convert -f pytorchjob.yaml > job.yaml
  kubectl get pytorchjobs -o yaml | tideline convert -f -`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 || len(args) > 0 {
				return cli.Usagef("give files by -f FILE, or -f - for standard input")
			}
			rules, err := specvalidation.New(crd.ElasticTrainingJob, v1alpha1.GroupVersion.Version)
			if err != nil {
				return err
			}
			p := &printer{rules: rules, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
			for _, file := range files {
				p.file(file, cmd.InOrStdin())
			}
			if p.incomplete {
				return cli.Exit(cli.ExitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"`file` with PyTorchJobs, in YAML or JSON; - is standard input; may be given several times")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cli.ForJobs(cmd)
}

// printer converts documents and prints what becomes of them.
type printer struct {
	rules          *specvalidation.Guard
	stdout, stderr io.Writer
	printed        int
	// incomplete is whether something was not converted, or will be refused.
	incomplete bool
}

// say prints a line about a document. Names in it are a user's, and may neither break the line nor steer a terminal.
func (p *printer) say(where, what string) {
	cli.Tell(p.stderr, text.SingleLine(where+": "+what)+"\n")
}

// fail prints why a document was not converted.
func (p *printer) fail(where, why string) {
	p.incomplete = true
	// Parsers write several lines.
	p.say(where, "not converted: "+strings.Join(strings.Fields(why), " "))
}

// file converts every document of a file; - is stdin.
func (p *printer) file(name string, stdin io.Reader) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			p.fail(name, err.Error())
			return
		}
		defer func() { _ = f.Close() }()
		in = f
	} else {
		name = "standard input"
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for found := 0; ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			if found == 0 {
				p.fail(name, "it holds no document")
			}
			return
		}
		if err != nil {
			p.fail(name, err.Error())
			return
		}
		if isBlank(document) {
			continue
		}
		found++
		p.document(fmt.Sprintf("%s: document %d", name, found), name, document)
	}
}

// isBlank is whether a document has comments and separators only.
func isBlank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// head is what tells documents apart.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []runtime.RawExtension `json:"items"`
}

// document converts a PyTorchJob, or each of a list. It is called by its number until its name is known.
func (p *printer) document(where, file string, document []byte) {
	var h head
	if err := yaml.Unmarshal(document, &h); err != nil {
		p.fail(where, err.Error())
		return
	}
	job := kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.PyTorchJobKind)
	group := kubeflowv1.SchemeGroupVersion.String()
	if h.APIVersion == "v1" && h.Kind == "List" || h.APIVersion == group && h.Kind == job.Kind+"List" {
		for i, item := range h.Items {
			p.document(fmt.Sprintf("%s: item %d", where, i+1), file, item.Raw)
		}
		return
	}
	if h.APIVersion != group || h.Kind != job.Kind {
		p.fail(where, fmt.Sprintf("it is %s %s (%s), and only %s (%s) is converted",
			show(h.Kind), show(h.Metadata.Name), show(h.APIVersion), job.Kind, group))
		return
	}
	name := h.Metadata.Name
	if h.Metadata.Namespace != "" {
		name = h.Metadata.Namespace + "/" + name
	}
	if name != "" {
		where = file + ": PyTorchJob " + plainOrQuoted(name)
	}
	decoded, err := decode(document)
	if err != nil {
		p.fail(where, err.Error())
		return
	}
	p.job(where, decoded)
}

// decode reads a PyTorchJob and refuses fields that a PyTorchJob does not have, by name.
func decode(document []byte) (*kubeflowv1.PyTorchJob, error) {
	scheme := runtime.NewScheme()
	if err := kubeflowv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	job := &kubeflowv1.PyTorchJob{}
	if _, _, err := strict.Decode(document, nil, job); err != nil {
		return nil, err
	}
	return job, nil
}

// job converts and prints one PyTorchJob.
func (p *printer) job(where string, in *kubeflowv1.PyTorchJob) {
	out, notes := FromPyTorchJob(in)
	refused := false
	for _, n := range notes {
		if out == nil {
			p.fail(where, n.String())
			continue
		}
		refused = refused || n.Refused
		p.say(where, n.String())
	}
	if out == nil {
		return
	}
	words, err := p.refusal(out)
	if err != nil {
		p.fail(where, err.Error())
		return
	}
	if words != "" && !refused {
		p.say(where, "the API server will refuse the ElasticTrainingJob: "+words)
	}
	p.incomplete = p.incomplete || refused || words != ""
	written, err := marshal(out)
	if err != nil {
		p.fail(where, err.Error())
		return
	}
	if p.printed > 0 {
		written = append([]byte("---\n"), written...)
	}
	p.printed++
	if _, err := p.stdout.Write(written); err != nil {
		p.fail(where, err.Error())
	}
}

// refusal is what admission will say against the job.
func (p *printer) refusal(job *v1alpha1.ElasticTrainingJob) (string, error) {
	if job.Name == "" {
		job = job.DeepCopy()
		job.Name = job.GenerateName + generatedSuffix
	}
	return p.rules.CheckSpec(context.Background(), job)
}

// marshal writes a job as people write it: in YAML, without status and without what is empty.
func marshal(job *v1alpha1.ElasticTrainingJob) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	dropEmpty(content, "spec", "elasticity", "growth")
	dropEmpty(content, "spec", "elasticity", "shrink")
	for _, field := range []string{
		"elasticity", "framework", "restarts", "deadlines", "successPolicy", "cleanup", "checkpoint",
	} {
		dropEmpty(content, "spec", field)
	}
	dropEmpty(content, "spec", "template", "metadata")
	for _, list := range []string{"containers", "initContainers"} {
		field, _, _ := unstructured.NestedFieldNoCopy(content, "spec", "template", "spec", list)
		containers, _ := field.([]any)
		for _, container := range containers {
			if fields, ok := container.(map[string]any); ok {
				dropEmpty(fields, "resources")
			}
		}
	}
	return yaml.Marshal(content)
}

// dropEmpty removes the field at a path when it has no fields.
func dropEmpty(content map[string]any, path ...string) {
	last := len(path) - 1
	for _, name := range path[:last] {
		// A field that is not there is a nil map, which has nothing to drop.
		content, _ = content[name].(map[string]any)
	}
	if value, ok := content[path[last]]; ok && empty(value) {
		delete(content, path[last])
	}
}
