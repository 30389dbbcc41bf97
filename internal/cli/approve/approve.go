// Package approve is the command by which people approve jobs.
package approve

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/approval"
)

// Exit codes of `tideline approve`, beside 0 for a job that is approved.
const (
	exitNotApproved = 1
	exitUsage       = 2
)

// Timeout bounds each request.
const Timeout = 15 * time.Second

const usage = `Usage: tideline approve NAMESPACE/NAME [--for 72h] [--kind job|merge]

Approves that an ElasticTrainingJob or a MergeJob runs in its tier, where the ResourceQuotaProfile of its namespace has that:
as the user of your kubeconfig (KUBECONFIG), who needs the right to approve on the profile (ClusterRole tideline-approve), and
to patch the job. The approval is of this one object: one that is deleted and created anew needs another.

Exit code: 0 when it is approved; 1 when it is not, and why is on standard error; 2 when the command is wrong.

`

// kinds are the words of --kind.
var kinds = map[string]string{"job": v1alpha1.ElasticTrainingJobKind, "merge": v1alpha1.MergeJobKind}

// request is what the command was asked for.
type request struct {
	job   types.NamespacedName
	kind  string // of the API; empty for either
	lasts string
}

// Run is `tideline approve`: args are what follows the word approve, and connect connects as the user. It prints on stdout what
// was approved, and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, connect func() (client.Client, error)) int {
	r, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errTold):
		return exitUsage
	case err != nil:
		tell(stderr, "tideline approve: "+err.Error()+"; -h says more\n")
		return exitUsage
	}
	c, err := connect()
	if err != nil {
		tell(stderr, "tideline approve: "+err.Error()+"\n")
		return exitNotApproved
	}
	said, err := r.approve(ctx, c)
	if err != nil {
		tell(stderr, text.Line(fmt.Sprintf("%s is not approved: %v", r.job, err))+"\n")
		return exitNotApproved
	}
	tell(stdout, text.Line(said)+"\n")
	return 0
}

// tell prints. When that fails, nobody is left who could be told.
func tell(to io.Writer, words string) { _, _ = io.WriteString(to, words) }

// errTold is of what package flag has told already.
var errTold = errors.New("the flags are wrong")

// parse reads the arguments, with flags before or after the job.
func parse(args []string, stderr io.Writer) (request, error) {
	r, kind := request{}, ""
	flags := flag.NewFlagSet("tideline approve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		tell(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&r.lasts, "for", "72h", "`duration` within which the job may begin, from 1m to 8760h")
	flags.StringVar(&kind, "kind", "", "`kind`, job or merge, where there is one of each by the name")
	read := func(args []string) error {
		err := flags.Parse(args)
		if err != nil && !errors.Is(err, flag.ErrHelp) {
			return errTold
		}
		return err
	}
	if err := read(args); err != nil {
		return r, err
	}
	name := flags.Arg(0)
	if flags.NArg() > 1 {
		if err := read(flags.Args()[1:]); err != nil {
			return r, err
		}
		if flags.NArg() > 0 {
			return r, fmt.Errorf("%q is too much: one job is approved at a time", flags.Arg(0))
		}
	}
	namespace, name, found := strings.Cut(name, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return r, errors.New("name the job as NAMESPACE/NAME")
	}
	r.job = types.NamespacedName{Namespace: namespace, Name: name}
	if r.kind = kinds[kind]; kind != "" && r.kind == "" {
		return r, fmt.Errorf("--kind %q: it is job or merge", kind)
	}
	if _, err := approval.ParseDuration(r.lasts); err != nil {
		return r, fmt.Errorf("--for %q: it %w", r.lasts, err)
	}
	return r, nil
}

// approve asks for the approval, and says what was recorded.
func (r request) approve(ctx context.Context, c client.Client) (string, error) {
	job, err := r.find(ctx, c)
	if err != nil {
		return "", err
	}
	if _, left := job.Annotations[v1alpha1.AnnotationApprove]; left {
		// Of a time without webhooks. Only what changes is recorded.
		if err := annotate(ctx, c, job, nil); err != nil {
			return "", err
		}
	}
	if err := annotate(ctx, c, job, r.lasts); err != nil {
		return "", err
	}
	if _, left := job.Annotations[v1alpha1.AnnotationApprove]; left {
		return "", errors.Join(errors.New("no webhook recorded it, and without webhooks no approval counts: have them installed "+
			"(config/webhook), and the operator run with them"), annotate(ctx, c, job, nil))
	}
	a, err := approval.Parse(job.Annotations[v1alpha1.AnnotationApproval])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s is approved in tier %s of profile %s by %s: it may begin until %s.", job.Kind, r.job, a.Tier,
		a.Profile, a.By, a.Until.UTC().Format(time.RFC3339)), nil
}

// find finds the job, of whichever kind it is.
func (r request) find(ctx context.Context, c client.Client) (*metav1.PartialObjectMetadata, error) {
	var found []*metav1.PartialObjectMetadata
	for _, kind := range []string{v1alpha1.ElasticTrainingJobKind, v1alpha1.MergeJobKind} {
		if r.kind != "" && r.kind != kind {
			continue
		}
		job := &metav1.PartialObjectMetadata{}
		job.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		switch err := c.Get(ctx, r.job, job); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			found = append(found, job)
		}
	}
	switch len(found) {
	case 0:
		return nil, errors.New("there is no such ElasticTrainingJob or MergeJob")
	case 1:
		return found[0], nil
	}
	return nil, errors.New("there is an ElasticTrainingJob and a MergeJob of this name: say which with --kind job or --kind merge")
}

// annotate writes annotation approve of this very object, nil for none, and reads the object as it is then.
func annotate(ctx context.Context, c client.Client, job *metav1.PartialObjectMetadata, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": job.UID, "annotations": map[string]any{v1alpha1.AnnotationApprove: value},
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch))
}
