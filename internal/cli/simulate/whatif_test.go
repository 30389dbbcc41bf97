package simulate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

const profileFile = "apiVersion: tideline.io/v1beta1\nkind: ResourceQuotaProfile\nmetadata:\n  name: ads\n"

// dryRun is what a command asked the API server for.
type dryRun struct {
	verb   string
	object client.Object
}

// runWhatIf runs the command with a file, on an API server that has the profile or not, and answers dry runs with an error.
func runWhatIf(
	t *testing.T, file string, there bool, answer error, args ...string,
) (asked *dryRun, out, problems string, code int) {
	t.Helper()
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "profile.yaml")
	g.Expect(os.WriteFile(path, []byte(file), 0o600)).To(Succeed())
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			if !there {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			o.SetResourceVersion("7")
			return nil
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			g.Expect(opts).To(ConsistOf(client.DryRunAll), "nothing is created")
			asked = &dryRun{"create", o}
			return answer
		},
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			g.Expect(opts).To(ConsistOf(client.DryRunAll), "nothing is changed")
			asked = &dryRun{"update", o}
			return answer
		},
	})
	var said, wrong bytes.Buffer
	root := cli.Root("tideline", WhatIf(cli.Connected(c)))
	line := append([]string{"whatif", "--profile", path}, args...)
	code = cli.Execute(t.Context(), root, line, strings.NewReader(""), &said, &wrong)
	return asked, said.String(), wrong.String(), code
}

func TestAProfileIsAskedAboutAndNotWritten(t *testing.T) {
	g := NewWithT(t)
	asked, out, _, code := runWhatIf(t, profileFile, false, nil)
	g.Expect(code).To(BeZero())
	g.Expect(asked.verb).To(Equal("create"))
	g.Expect(asked.object.GetAnnotations()).To(HaveKeyWithValue(v1beta1.AnnotationWhatIf, "168h0m0s"), "a week by default")
	g.Expect(out).To(ContainSubstring("The operator did not say what it would have changed"))
	asked, out, _, code = runWhatIf(t, profileFile, true, nil, "--window", "36h", "-o", "json")
	g.Expect(code).To(BeZero())
	g.Expect(asked.verb).To(Equal("update"))
	g.Expect(asked.object.GetResourceVersion()).To(Equal("7"), "as it is now")
	g.Expect(asked.object.GetAnnotations()).To(HaveKeyWithValue(v1beta1.AnnotationWhatIf, "36h0m0s"))
	g.Expect(out).To(ContainSubstring(`"profile": "ads"`))
	_, out, problems, code := runWhatIf(t, profileFile, true, errors.New("spec.queue.weight: Invalid value"))
	g.Expect(out).To(BeEmpty())
	g.Expect(problems).To(ContainSubstring("ads: spec.queue.weight: Invalid value"))
	g.Expect(code).To(Equal(cli.ExitFailed))
}

func TestWrongQuestionsAboutProfilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		args []string
		says string
	}{
		"another kind": {job, nil, `document 1 has kind "ElasticTrainingJob"`},
		"two":          {profileFile + "---\n" + profileFile, nil, "has 2 ResourceQuotaProfiles: whatif takes one"},
		"no duration":  {profileFile, []string{"--window", "week"}, "--window week is no duration: write one like 12h or 7d"},
		"an argument":  {profileFile, []string{"ads"}, `"ads"`},
		"no file":      {profileFile, []string{"--profile", ""}, "name a file with a ResourceQuotaProfile by --profile"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			asked, _, problems, code := runWhatIf(t, c.file, true, nil, c.args...)
			g.Expect(asked).To(BeNil())
			g.Expect(problems).To(ContainSubstring(c.says))
			g.Expect(code).To(Equal(cli.ExitUsage))
		})
	}
}
