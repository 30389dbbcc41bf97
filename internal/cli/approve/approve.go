// Package approve is the command by which people approve jobs.
package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/approval"
)

// Timeout bounds each request.
const Timeout = 15 * time.Second

const long = `Approves that an ElasticTrainingJob or a MergeJob runs in its tier, where the ResourceQuotaProfile of its
namespace has that: as the user of your kubeconfig, who needs the right to approve on the profile (ClusterRole
tideline-approve), and to patch the job. The approval is of this one object: one that is deleted and created anew needs
another.

Exit code: 0 when it is approved; 1 when it is not, and why is on standard error; 2 when the command is wrong.`

// kinds are the words of --kind.
var kinds = map[string]string{"job": v1beta1.ElasticTrainingJobKind, "merge": v1beta1.MergeJobKind}

// request is what the command was asked for.
type request struct {
	job   types.NamespacedName
	kind  string // of the API; empty for either
	lasts string
}

// approved is what was recorded.
type approved struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Tier      string    `json:"tier"`
	Profile   string    `json:"profile"`
	By        string    `json:"by"`
	Until     time.Time `json:"until"`
}

// Command is `tideline approve`.
func Command(connection *cli.Connection) *cobra.Command {
	var lasts, kind string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "approve JOB",
		Short: "Approve that a job runs in its tier",
		Long:  long,
		Example: `  tideline approve ctr -n ads
  tideline approve ads/ctr --for 24h --kind merge`,
		ValidArgsFunction: connection.CompleteJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := parse(connection, args, lasts, kind)
			if err != nil {
				return err
			}
			c, err := connection.Client(Timeout)
			if err != nil {
				return err
			}
			a, err := r.approve(cmd.Context(), c)
			if err != nil {
				cli.Tell(cmd.ErrOrStderr(), text.SingleLine(fmt.Sprintf("%s is not approved: %v", r.job, err))+"\n")
				return cli.Exit(cli.ExitFailed)
			}
			if output.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), a)
			}
			cli.Tell(cmd.OutOrStdout(), text.SingleLine(fmt.Sprintf("%s %s is approved in tier %s of profile %s by %s: it may "+
				"begin until %s.",
				a.Kind, r.job, a.Tier, a.Profile, a.By, a.Until.Format(time.RFC3339)))+"\n")
			return nil
		},
	}
	cmd.Flags().StringVar(&lasts, "for", "72h", "`duration` within which the job may begin, from 1m to 8760h")
	cmd.Flags().StringVar(&kind, "kind", "", "`kind`, job or merge, where there is one of each by the name")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"job", "merge"}, cobra.ShellCompDirectiveNoFileComp))
	connection.AddFlags(cmd)
	connection.AddNamespaceFlag(cmd)
	output.AddFlag(cmd)
	return cli.ForJobs(cmd)
}

func parse(connection *cli.Connection, args []string, lasts, kind string) (r request, err error) {
	r.lasts = lasts
	if r.kind = kinds[kind]; kind != "" && r.kind == "" {
		return r, cli.Usagef("--kind %q: it is job or merge", kind)
	}
	if _, err := approval.ParseDuration(lasts); err != nil {
		return r, cli.Usagef("--for %q: it %w", lasts, err)
	}
	r.job, err = connection.Name("job", args)
	return r, err
}

// approve asks for the approval, and says what was recorded.
func (r request) approve(ctx context.Context, c client.Client) (*approved, error) {
	job, err := r.find(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, left := job.Annotations[v1beta1.AnnotationApprove]; left {
		// Of a time without webhooks. Only what changes is recorded.
		if err := annotate(ctx, c, job, nil); err != nil {
			return nil, err
		}
	}
	if err := annotate(ctx, c, job, r.lasts); err != nil {
		return nil, err
	}
	if _, left := job.Annotations[v1beta1.AnnotationApprove]; left {
		return nil, errors.Join(errors.New("no webhook recorded it, and without webhooks no approval counts: have them installed "+
			"(config/webhook), and the operator run with them"), annotate(ctx, c, job, nil))
	}
	a, err := approval.Parse(job.Annotations[v1beta1.AnnotationApproval])
	if err != nil {
		return nil, err
	}
	return &approved{
		Kind: job.Kind, Namespace: r.job.Namespace, Name: r.job.Name, Tier: a.Tier, Profile: a.Profile, By: a.By, Until: a.Until.UTC(),
	}, nil
}

// find finds the job, of whichever kind it is.
func (r request) find(ctx context.Context, c client.Client) (*metav1.PartialObjectMetadata, error) {
	var found []*metav1.PartialObjectMetadata
	for _, kind := range []string{v1beta1.ElasticTrainingJobKind, v1beta1.MergeJobKind} {
		if r.kind != "" && r.kind != kind {
			continue
		}
		job := &metav1.PartialObjectMetadata{}
		job.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
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
		"uid": job.UID, "annotations": map[string]any{v1beta1.AnnotationApprove: value},
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch))
}
