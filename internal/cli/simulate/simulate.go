// Package simulate has the commands by which people ask what would be: when a job would start, and what a profile would change.
package simulate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// timeout bounds each request: the webhook may take ten seconds.
	timeout = 20 * time.Second
	// mostBytes is how much is read of a file, and mostJobs how many jobs: each takes the operator a second.
	mostBytes, mostJobs = 3 << 20, 20
)

const long = `Says when ElasticTrainingJobs of a file would start, and at whose expense, and creates nothing: it asks the
API server for a dry run, as the user of your kubeconfig, who needs the right to create the job. kubectl says the same:
kubectl apply --dry-run=server -f FILE. What the API server would refuse is refused in its words.

The operator draws up to 100 futures. In each, jobs that run last as long as others did that have ended, and gangs that wait
come in their order. Jobs that come later, and limits of the profile on what its jobs may hold, are left out.

Exit code: 0 when all may be created; 1 when one may not, and why is on standard error; 2 when the command is wrong.`

// said is what the operator said of a job.
type said struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Outlook   []string `json:"outlook"`
}

// Command is `tideline simulate`.
func Command(connection *cli.Connection) *cobra.Command {
	var file string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "simulate -f FILE",
		Short: "Say when a job would start, and at whose expense",
		Long:  long,
		Example: `  tideline simulate -f job.yaml
  tideline simulate -n ads -f - <job.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return cli.Usagef("%q is too much: name a file with -f", args[0])
			case file == "":
				return cli.Usagef("name a file of ElasticTrainingJobs with -f, or - for standard input")
			}
			content, err := readFile(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			jobs, err := readJobs(file, content)
			if err != nil {
				return err
			}
			heard := &warnings{}
			c, err := connection.ClientThatHears(timeout, heard)
			if err != nil {
				return err
			}
			all, failed := simulateAll(cmd.Context(), c, heard, connection, jobs, cmd.ErrOrStderr())
			if output.JSON() {
				err = cli.PrintJSON(cmd.OutOrStdout(), all)
			} else {
				for _, s := range all {
					cli.Tell(cmd.OutOrStdout(), fmt.Sprintf("%s/%s: %s\n", s.Namespace, s.Name, strings.Join(s.Outlook, "\n  ")))
				}
			}
			if failed {
				return cli.Exit(cli.ExitFailed)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with ElasticTrainingJobs in YAML or JSON; - for standard input")
	connection.AddFlags(cmd)
	connection.AddNamespaceFlag(cmd)
	output.AddFlag(cmd)
	return cli.ForJobs(cmd)
}

// warnings keeps what the API server says beside its answers.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader keeps a warning, which code and agent say nothing about.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// readFile reads a file of bounded size, or standard input for -.
func readFile(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, cli.Usagef("%v", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	content, err := io.ReadAll(io.LimitReader(in, mostBytes+1))
	switch {
	case err != nil:
		return nil, cli.Usagef("read %s: %v", name, err)
	case len(content) > mostBytes:
		return nil, cli.Usagef("%s is larger than 3 MiB, which no API server takes", name)
	}
	return content, nil
}

// readJobs reads the ElasticTrainingJobs of a file, which must have no other kinds.
func readJobs(name string, content []byte) ([]*unstructured.Unstructured, error) {
	jobs, err := readObjects(name, content, v1beta1.ElasticTrainingJobKind, "simulate")
	if err == nil && len(jobs) > mostJobs {
		err = cli.Usagef("%s has %d ElasticTrainingJobs: simulate takes %d", name, len(jobs), mostJobs)
	}
	return jobs, err
}

// readObjects reads the objects of a file for a command that takes one kind of Tideline's: one at least.
func readObjects(name string, content []byte, kind, command string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for from := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := from.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, cli.Usagef("%s, document %d: %v", name, len(objects)+1, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if is := o.GroupVersionKind(); is.Group != v1beta1.GroupVersion.Group || is.Kind != kind {
			return nil, cli.Usagef("%s, document %d has kind %q of %q: %s takes %ss of %s",
				name, len(objects)+1, is.Kind, o.GetAPIVersion(), command, kind, v1beta1.GroupVersion.Group)
		}
		objects = append(objects, o)
	}
	if len(objects) == 0 {
		return nil, cli.Usagef("%s has no %s", name, kind)
	}
	return objects, nil
}

// simulateAll asks about each job, and tells of those that may not be created.
func simulateAll(
	ctx context.Context, c client.Client, heard *warnings, connection *cli.Connection, jobs []*unstructured.Unstructured,
	problems io.Writer,
) (all []said, failed bool) {
	all = []said{} // An empty list in JSON, and not null.
	for _, job := range jobs {
		namespace, err := connection.NamespaceOf(job)
		if err == nil {
			job.SetNamespace(namespace)
			err = c.Create(ctx, job, client.DryRunAll)
		}
		outlook := heard.take()
		if apierrors.IsAlreadyExists(err) {
			err = fmt.Errorf("there is a job of that name: give this one another, or ask tideline why %s -n %s: %w",
				job.GetName(), namespace, err)
		}
		if err != nil {
			failed = true
			cli.Tell(problems, text.SingleLine(fmt.Sprintf("%s/%s: %v", namespace, job.GetName(), err))+"\n")
			continue
		}
		if len(outlook) == 0 {
			outlook = []string{"It may be created. The operator said nothing of when it would start: its webhooks are off, or it is " +
				"of an older version."}
		}
		all = append(all, said{namespace, cmp.Or(job.GetName(), job.GetGenerateName()), outlook})
	}
	return all, failed
}
