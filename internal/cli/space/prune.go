package space

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/space"
)

const pruneLong = `Deletes the PersistentVolumeClaims that nothing has used for as long as their own rule says, in a namespace or
in all namespaces of a profile: as the user of your kubeconfig, who needs the right to patch and delete them. A claim has a rule
if somebody gave it one, and no other claim is touched:

  kubectl annotate pvc ctr-checkpoints ` + v1beta1.AnnotationPruneAfter + `=30d

Run it every hour or more often, by a CronJob. The first run that finds a claim unused writes that into the claim, and a run that
finds it used takes it off. When the time is over, versions of data sets that are in it are taken out of the profile (with
--profile only; the API server refuses that while a job uses them), and the run after that deletes the claim. What becomes of the
volume, its StorageClass decides.

Never deleted is what "tideline space" says is used, suspended jobs included. If it cannot be read who uses claims, nothing is
done.

Exit code: 0 when all that was due is done; 1 when not, and why is on standard error; 2 when the command is wrong.`

// PruneClaims is `tideline prune`. Clock says the present.
func PruneClaims(connection *cli.Connection, clock func() time.Time) *cobra.Command {
	var of scope
	var output cli.Output
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete claims that nothing has used for long, by their rules",
		Long:  pruneLong,
		Example: `  tideline prune -n ads --dry-run
  tideline prune --profile ads`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, t, g, err := look(cmd.Context(), connection, of)
			if err != nil {
				return err
			}
			if len(g.unread) > 0 {
				tellUnread(cmd.ErrOrStderr(), g)
				return errors.New("nothing is done, because it is not known who uses claims")
			}
			p := &pruning{client: c, team: t, claims: g.claims, dry: dry}
			p.prune(cmd.Context(), clock())
			if output.JSON() {
				err = cli.PrintJSON(cmd.OutOrStdout(), p.done)
			} else {
				p.print(cmd.OutOrStdout())
			}
			if err != nil || len(p.failed) == 0 {
				return err
			}
			cli.Tell(cmd.ErrOrStderr(), strings.Join(p.failed, ""))
			return cli.Exit(cli.ExitFailed)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be done, and do nothing")
	of.addFlags(cmd, connection)
	output.AddFlag(cmd)
	return cli.ForClusters(cmd)
}

// pruning is one run.
type pruning struct {
	client client.Client
	team   *team
	claims []claim
	dry    bool

	done   []line
	failed []string
}

// prune takes the step that is due for each claim.
func (p *pruning) prune(ctx context.Context, now time.Time) {
	p.done = []line{}
	unlisted := map[string]bool{}
	for i, d := range space.DecideAll(bare(p.claims), p.team.whole, now) {
		c := &p.claims[i]
		if d.Step == space.StepKeep || d.Step == space.StepUnlist && unlisted[c.Name] {
			continue
		}
		if !p.dry {
			if err := p.take(ctx, c, d); err != nil {
				said := fmt.Sprintf("%s/%s, which %s: %s: %v", c.Namespace, c.Name, d.Why, d.Step, err)
				p.failed = append(p.failed, text.SingleLine(said)+"\n")
				continue
			}
		}
		unlisted[c.Name] = d.Step == space.StepUnlist
		p.done = append(p.done, lineOf(&c.Claim, d))
	}
}

// take takes one step. A claim that was changed since it was read stays as it is until the next run.
func (p *pruning) take(ctx context.Context, c *claim, d space.Decision) error {
	o := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	var err error
	switch d.Step {
	case space.StepKeep:
	case space.StepMark:
		err = p.annotate(ctx, o, c, d.Since.UTC().Format(time.RFC3339))
	case space.StepUnmark:
		err = p.annotate(ctx, o, c, nil)
	case space.StepUnlist:
		profile := p.team.profile.DeepCopy()
		profile.Spec.DataSets = space.UnlistVersions(profile.Spec.DataSets, c.Versions)
		if err = p.client.Update(ctx, profile); err == nil {
			p.team.profile = profile
		}
	case space.StepDelete:
		err = p.client.Delete(ctx, o, client.Preconditions{UID: &c.uid, ResourceVersion: &c.version})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return errors.New("it was changed meanwhile; the next run looks again")
	}
	return err
}

// annotate writes since when a claim is unused; nil takes that off.
func (p *pruning) annotate(ctx context.Context, o client.Object, c *claim, since any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.version, "annotations": map[string]any{v1beta1.AnnotationUnusedSince: since},
	}})
	if err != nil {
		return err
	}
	return p.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// did says what was done, by the step.
var did = map[space.Step]string{
	space.StepMark: "noted that it", space.StepUnmark: "took off the note that it is unused; it",
	space.StepUnlist: "took %s out of the profile, because it", space.StepDelete: "deleted %s, because it",
}

func (p *pruning) print(to io.Writer) {
	for i := range p.done {
		l := &p.done[i]
		of := l.Size
		if l.Step == space.StepUnlist {
			of = strings.Join(l.Data, ", ")
		}
		words := strings.ReplaceAll(did[l.Step], "%s", of)
		if p.dry {
			words = "would have " + words
		}
		cli.Tell(to, fmt.Sprintf("%s/%s: %s %s.\n", l.Namespace, l.Name, words, l.Why))
	}
	if !slices.ContainsFunc(p.done, func(l line) bool { return l.Step == space.StepDelete }) {
		cli.Tell(to, "No claim is due to be deleted.\n")
	}
}
