package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/whatif"
)

const whatIfLong = `Plays what ran lately again under another ResourceQuotaProfile, and says for each team what its trainings
would have waited and held. It changes nothing: it asks the API server for a dry run, as the user of your kubeconfig, who needs
the right to change the profile. What the API server would refuse is refused in its words.

The operator reads its ledger. Each training comes when it came and lasts as long as it did; Tideline's model of the cluster
says when its core would have had room, once with the profiles as they are and once with this one. Other workloads stay where
they were. What the replay leaves out, its last line says: above all surplus, and what weight and deserved decide by it.

Exit code: 0 when the profile may be written; 1 when it may not, and why is on standard error; 2 when the command is wrong.`

// unanswered is for an operator that said nothing.
const unanswered = "It may be written. The operator did not say what it would have changed: its webhooks are off, or it is " +
	"of an older version."

// told is what the operator told of a profile.
type told struct {
	Profile string   `json:"profile"`
	Window  string   `json:"window"`
	Changes []string `json:"changes"`
}

// WhatIf is `tideline whatif`.
func WhatIf(connection *cli.Connection) *cobra.Command {
	var file, window string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "whatif --profile FILE",
		Short: "Say what another profile would have changed",
		Long:  whatIfLong,
		Example: `  tideline whatif --profile profile.yaml
  tideline whatif --profile - --window 14d <profile.yaml`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usagef("name a file with a ResourceQuotaProfile by --profile, or - for standard input")
			}
			past, err := parseWindow(window)
			if err != nil {
				return err
			}
			content, err := readFile(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			profiles, err := readObjects(file, content, v1beta1.ResourceQuotaProfileKind, "whatif")
			if err == nil && len(profiles) > 1 {
				err = cli.Usagef("%s has %d ResourceQuotaProfiles: whatif takes one", file, len(profiles))
			}
			if err != nil {
				return err
			}
			heard := &warnings{}
			c, err := connection.ClientThatHears(timeout, heard)
			if err != nil {
				return err
			}
			profile := profiles[0]
			if err := askWhatIf(cmd.Context(), c, profile, past); err != nil {
				cli.Tell(cmd.ErrOrStderr(), text.SingleLine(fmt.Sprintf("%s: %v", profile.GetName(), err))+"\n")
				return cli.Exit(cli.ExitFailed)
			}
			t := told{profile.GetName(), window, heard.take()}
			if !slices.ContainsFunc(t.Changes, whatif.IsAnswer) {
				t.Changes = append(t.Changes, unanswered)
			}
			if output.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), t)
			}
			cli.Tell(cmd.OutOrStdout(), strings.Join(t.Changes, "\n")+"\n")
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "profile", "", "`file` with a ResourceQuotaProfile in YAML or JSON; - for standard input")
	cmd.Flags().StringVar(&window, "window", "7d", "how far back to play, from 1h to 31d, `duration` as in 12h or 7d")
	connection.AddFlags(cmd)
	output.AddFlag(cmd)
	return cli.ForClusters(cmd)
}

// parseWindow reads days too, which Go's durations have not. The operator knows which durations it takes.
func parseWindow(value string) (time.Duration, error) {
	if days, is := strings.CutSuffix(value, "d"); is {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	window, err := time.ParseDuration(value)
	if err != nil {
		return 0, cli.Usagef("--window %s is no duration: write one like 12h or 7d", value)
	}
	return window, nil
}

// askWhatIf asks for a dry run of a profile as it would be: of its change if it is there, else of its creation.
func askWhatIf(ctx context.Context, c client.Client, profile *unstructured.Unstructured, past time.Duration) error {
	asked := profile.GetAnnotations()
	if asked == nil {
		asked = map[string]string{}
	}
	asked[v1beta1.AnnotationWhatIf] = past.String()
	profile.SetAnnotations(asked)
	is := &unstructured.Unstructured{}
	is.SetGroupVersionKind(profile.GroupVersionKind())
	switch err := c.Get(ctx, client.ObjectKeyFromObject(profile), is); {
	case apierrors.IsNotFound(err):
		return c.Create(ctx, profile, client.DryRunAll)
	case err != nil:
		return err
	}
	profile.SetResourceVersion(cmp.Or(profile.GetResourceVersion(), is.GetResourceVersion()))
	return c.Update(ctx, profile, client.DryRunAll)
}
