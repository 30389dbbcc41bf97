package space

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
if its owner gave it one, and no other claim is deleted:

  kubectl annotate pvc ctr-checkpoints ` + v1beta1.AnnotationPruneAfter + `=30d

Run it every hour, by a CronJob. The first run that finds a claim unused writes that into the claim, and a run that finds it used
takes it off. If no run looked for more than 36 hours, the time begins anew. When it is over, versions of data sets that are in
the claim are taken out of the profile (with --profile only; the API server refuses that while a job uses them), and the run after
that deletes the claim. What becomes of the volume, its StorageClass decides.

Never deleted is what "tideline space" says is used, suspended jobs included. If it cannot be read who uses claims, nothing is
done.

Exit code: 0 when all that was due is done; 1 when not, or a rule is wrong, and why is on standard error; 2 when the command is
wrong.`

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
			c, t, g, err := of.look(cmd, connection)
			if err != nil {
				return err
			}
			if len(g.unread) > 0 {
				tellUnread(cmd.ErrOrStderr(), g)
				return errors.New("nothing is done, because it is not known who uses claims")
			}
			p := &pruning{client: c, team: t, claims: g.claims, dry: dry, now: clock()}
			p.prune(cmd.Context())
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
	now    time.Time

	done   []line
	failed []string
}

// prune takes the step that is due for each claim.
func (p *pruning) prune(ctx context.Context) {
	p.done = []line{}
	unlisted := map[string]bool{}
	due := map[types.UID]bool{}
	namespaces := map[string]bool{}
	for i, d := range space.DecideAll(bare(p.claims), p.team.whole, p.now) {
		c := &p.claims[i]
		switch {
		case d.Wrong:
			p.fail(c, d, nil)
		case d.Step == space.StepDelete:
			due[c.uid], namespaces[c.Namespace] = true, true
		case d.Step == space.StepKeep, d.Step == space.StepUnlist && unlisted[c.Name]:
		default:
			unlisted[c.Name] = d.Step == space.StepUnlist
			p.take(ctx, c, d)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		p.deleteIn(ctx, namespace, due)
	}
}

// deleteIn deletes the claims of a namespace that are due, if they still are: minutes may have gone by since its users were read.
func (p *pruning) deleteIn(ctx context.Context, namespace string, due map[types.UID]bool) {
	g, err := p.lookAgain(ctx, namespace)
	if err != nil {
		p.failed = append(p.failed, text.SingleLine(fmt.Sprintf("%s: no claim is deleted: %v", namespace, err))+"\n")
		return
	}
	for i, d := range space.DecideAll(bare(g.claims), p.team.whole, p.now) {
		if c := &g.claims[i]; d.Step == space.StepDelete && due[c.uid] {
			p.take(ctx, c, d)
		}
	}
}

// lookAgain reads the claims of a namespace with their users, and what its profile lists.
func (p *pruning) lookAgain(ctx context.Context, namespace string) (*gathered, error) {
	of, err := findTeam(ctx, p.client, namespace, "")
	if err != nil {
		return nil, err
	}
	g, err := gather(ctx, p.client, of)
	if err == nil && len(g.unread) > 0 {
		err = errors.New(strings.Join(g.unread, "; "))
	}
	return g, err
}

// take takes one step, unless only words are wanted, and notes what came of it.
func (p *pruning) take(ctx context.Context, c *claim, d space.Decision) {
	if !p.dry {
		if err := p.write(ctx, c, d); err != nil {
			p.fail(c, d, err)
			return
		}
	}
	p.done = append(p.done, lineOf(&c.Claim, d))
}

func (p *pruning) fail(c *claim, d space.Decision, err error) {
	said := fmt.Sprintf("%s/%s %s", c.Namespace, c.Name, d.Why)
	if err != nil {
		said += fmt.Sprintf("; %s: %v", d.Step, err)
	}
	p.failed = append(p.failed, text.SingleLine(said)+"\n")
}

// write does one step. What was changed since it was read stays as it is until the next run.
func (p *pruning) write(ctx context.Context, c *claim, d space.Decision) error {
	o := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	seen := p.now.UTC().Format(time.RFC3339)
	var err error
	switch d.Step {
	case space.StepKeep:
	case space.StepMark, space.StepRenew:
		err = p.annotate(ctx, o, c, d.Since.UTC().Format(time.RFC3339), seen)
	case space.StepUnmark:
		err = p.annotate(ctx, o, c, nil, nil)
	case space.StepUnlist:
		err = p.unlist(ctx, c.Versions)
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

// annotate writes since when a claim is unused, and when that was last seen; nil takes both off.
func (p *pruning) annotate(ctx context.Context, o client.Object, c *claim, since, seen any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.version,
		"annotations":     map[string]any{v1beta1.AnnotationUnusedSince: since, v1beta1.AnnotationUnusedSeen: seen},
	}})
	if err != nil {
		return err
	}
	return p.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// unlist takes versions out of the profile, and leaves fields of it as they are that this program does not know.
func (p *pruning) unlist(ctx context.Context, versions []string) error {
	profile := p.team.profile.DeepCopy()
	patch := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": profile.ResourceVersion}}
	for _, path := range space.UnlistPaths(profile.Spec.DataSets, versions) {
		patch = append(patch, map[string]any{"op": "remove", "path": "/spec" + path})
	}
	content, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if err := p.client.Patch(ctx, profile, client.RawPatch(types.JSONPatchType, content)); err != nil {
		return fmt.Errorf("change the profile: %w", err)
	}
	p.team.profile = profile
	return nil
}

// did and would say what was done, and would have been, by the step. Of %s they are what the step takes away.
var (
	did = map[space.Step]string{
		space.StepMark: "noted that it", space.StepRenew: "noted again that it",
		space.StepUnmark: "took off the note that it is unused; it",
		space.StepUnlist: "took %s out of the profile, because it", space.StepDelete: "deleted %s, because it",
	}
	would = map[space.Step]string{
		space.StepMark: "would note that it", space.StepRenew: "would note again that it",
		space.StepUnmark: "would take off the note that it is unused; it",
		space.StepUnlist: "would take %s out of the profile, because it", space.StepDelete: "would delete %s, because it",
	}
)

func (p *pruning) print(to io.Writer) {
	words := did
	if p.dry {
		words = would
	}
	deleted := false
	for i := range p.done {
		l := &p.done[i]
		of := l.Size
		if l.Step == space.StepUnlist {
			of = strings.Join(l.Data, ", ")
		}
		deleted = deleted || l.Step == space.StepDelete
		cli.Tell(to, fmt.Sprintf("%s/%s: %s %s.\n", l.Namespace, l.Name, strings.ReplaceAll(words[l.Step], "%s", of), l.Why))
	}
	if !deleted {
		cli.Tell(to, "No claim is due to be deleted.\n")
	}
}
