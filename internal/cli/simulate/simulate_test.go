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

	"github.com/tideline-io/tideline/internal/cli"
)

const job = "apiVersion: tideline.io/v1beta1\nkind: ElasticTrainingJob\nmetadata:\n  name: ctr\n  namespace: ads\n"

// run runs the command in a folder that has a file, and returns what it says and its exit code.
func run(t *testing.T, file string, create error, args ...string) (out, problems string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.yaml")
	NewWithT(t).Expect(os.WriteFile(path, []byte(file), 0o600)).To(Succeed())
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Create: func(
		_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption,
	) error {
		NewWithT(t).Expect(opts).To(ConsistOf(client.DryRunAll), "nothing is created")
		return create
	}})
	var said, wrong bytes.Buffer
	root := cli.Root("tideline", Command(cli.Connected(c)))
	code = cli.Execute(t.Context(), root, append([]string{"simulate", "-f", path}, args...), strings.NewReader(""), &said, &wrong)
	return said.String(), wrong.String(), code
}

func TestAJobIsAskedAboutAndNotCreated(t *testing.T) {
	g := NewWithT(t)
	out, _, code := run(t, job+"---\n"+strings.Replace(job, "ctr", "ranker", 1), nil)
	g.Expect(code).To(BeZero())
	g.Expect(out).To(And(ContainSubstring("ads/ctr: It may be created."), ContainSubstring("ads/ranker: ")))
	out, _, code = run(t, job, nil, "-o", "json")
	g.Expect(code).To(BeZero())
	g.Expect(out).To(ContainSubstring(`"name": "ctr"`))
}

func TestARefusalIsToldInTheWordsOfTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	out, problems, code := run(t, job, errors.New("spec.tier: Invalid value"))
	g.Expect(out).To(BeEmpty())
	g.Expect(problems).To(ContainSubstring("ads/ctr: spec.tier: Invalid value"))
	g.Expect(code).To(Equal(int(cli.ExitFailed)))
	taken := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "elastictrainingjobs"}, "ctr")
	_, problems, _ = run(t, job, taken)
	g.Expect(problems).To(ContainSubstring("give this one another, or ask tideline why ctr -n ads: "))
	_, problems, code = run(t, job, nil, "-n", "search")
	g.Expect(problems).To(ContainSubstring("another namespace than -n search"))
	g.Expect(code).To(Equal(int(cli.ExitFailed)))
}

func TestWrongFilesAreRefused(t *testing.T) {
	for file, says := range map[string]string{
		"":                                      "has no ElasticTrainingJob",
		"kind: Pod\napiVersion: v1\n":           `document 1 has kind "Pod" of "v1"`,
		job + "---\nkind: MergeJob\n":           `document 2 has kind "MergeJob"`,
		"a: [":                                  "document 1",
		strings.Repeat(job+"---\n", mostJobs+1): "simulate takes 20",
		"#" + strings.Repeat("x", mostBytes) + "\n": "larger than 3 MiB",
	} {
		g := NewWithT(t)
		_, problems, code := run(t, file, nil)
		g.Expect(problems).To(ContainSubstring(says))
		g.Expect(code).To(Equal(int(cli.ExitUsage)))
	}
}
