package convert

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

const long = `Reads PyTorchJobs (kubeflow.org/v1, as training-operator 1.9 knows them), Volcano's Jobs (batch.volcano.sh/v1alpha1,
Volcano 1.15), MPIJobs (kubeflow.org/v2beta1, MPI operator 0.8) and TrainJobs (trainer.kubeflow.org/v1alpha1, Trainer 2.3,
with their runtimes), and prints ElasticTrainingJobs. What could not be carried over, or means something else now, is said on
standard error, one line each; a job that Tideline cannot express is refused. Files may hold several documents, and lists as
kubectl prints them. Nothing is read from, or written to, a cluster.

Exit code: 0 when every document was converted; 1 when one was not, or when the API server will refuse the result; 2 when
the command is wrong.`

// Command is `tideline convert`. It prints ElasticTrainingJobs on standard output, and notes on standard error.
func Command() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "convert -f FILE...",
		Short: "Convert jobs of other kinds into ElasticTrainingJobs",
		Long:  long,
		Example: `  tideline convert -f pytorchjob.yaml > job.yaml
  kubectl get pytorchjobs -o yaml | tideline convert -f -`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 || len(args) > 0 {
				return cli.Usagef("give files by -f FILE, or -f - for standard input")
			}
			rules := specvalidation.New(crd.ElasticTrainingJob, v1beta1.GroupVersion.Version)
			p := &printer{rules: rules, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
			r := &reader{}
			for _, file := range files {
				r.file(file, cmd.InOrStdin())
			}
			p.documents(r.documents)
			if p.incomplete {
				return cli.Exit(cli.ExitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"`file` with jobs, in YAML or JSON; - is standard input; may be given several times")
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

// documents converts and prints all jobs, in their order.
func (p *printer) documents(all []input) {
	refs := &references{runtimes: map[runtimeKey]*TrainingRuntime{}, used: map[*TrainingRuntime]bool{}}
	for _, d := range all {
		if r, ok := d.object.(*TrainingRuntime); ok && !refs.add(r) {
			p.fail(d.where, newNote("metadata.name", r.Name, "another "+r.Kind+" of the files has this name", "give one of them").String())
		}
	}
	named := map[string]string{}
	for _, d := range all {
		if d.object == nil {
			p.fail(d.where, d.why)
			continue
		}
		gvk := d.object.GetObjectKind().GroupVersionKind()
		k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.GroupVersionKind == gvk })]
		if k.convert == nil || !p.isFirst(named, d) {
			continue
		}
		out, notes := k.convert(d.object, refs)
		p.job(d.where, out, notes)
	}
	for _, d := range all {
		if r, ok := d.object.(*TrainingRuntime); ok && !refs.used[r] {
			p.say(d.where, "not used: no TrainJob here refers to it")
		}
	}
}

// isFirst is false, and says so, if a job before has the same name: both would be the same ElasticTrainingJob.
func (p *printer) isFirst(named map[string]string, d input) bool {
	object, err := meta.Accessor(d.object)
	if err != nil || object.GetName() == "" {
		return true
	}
	name := object.GetNamespace() + "/" + object.GetName()
	if before, taken := named[name]; taken {
		p.fail(d.where, newNote("metadata.name", object.GetName(), "two jobs of one name in one namespace would be one "+
			"ElasticTrainingJob, and "+before+" has it already", "give one of them another name").String())
		return false
	}
	named[name] = d.where
	return true
}

// job prints what became of one job, and what is said of it.
func (p *printer) job(where string, out *v1beta1.ElasticTrainingJob, notes []Note) {
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

// refusal is what admission will say against the job: schema, rules, and what webhooks say of roles.
func (p *printer) refusal(job *v1beta1.ElasticTrainingJob) (string, error) {
	if job.Name == "" {
		job = job.DeepCopy()
		job.Name = job.GenerateName + generatedSuffix
	}
	words, err := p.rules.CheckSpec(context.Background(), job)
	if err != nil || words != "" {
		return words, err
	}
	found := append(trainingpod.CheckRoles(&job.Spec), trainingpod.CheckModels(&job.Spec, config.DefaultAccelerators())...)
	if all := found.ToAggregate(); all != nil {
		words = all.Error()
	}
	return words, nil
}

// marshal writes a job as people write it: in YAML, without status and without what is empty.
func marshal(job *v1beta1.ElasticTrainingJob) ([]byte, error) {
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
