package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// program is a program with two commands, and what they were asked.
type program struct {
	root *cobra.Command
	cfg  *config.Configuration
	name string
}

func newProgram(started string, connection *Connection) *program {
	p := &program{}
	run := &cobra.Command{Use: "run", Short: "Run", Args: NoArguments, Example: "  tideline run\n"}
	configured := AddConfiguration(run)
	run.RunE = func(*cobra.Command, []string) (err error) {
		p.cfg, err = configured()
		return err
	}
	find := &cobra.Command{
		Use: "find JOB", Short: "Find", Example: "  tideline find ctr\n  a | tideline find -\n",
		ValidArgsFunction: connection.CompleteJobs,
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := connection.Name("job", args)
			if p.name = name.String(); name.Name == "lost" {
				err = errors.New("it is\nlost\x1b[2J")
			}
			return err
		},
	}
	connection.AddFlags(find)
	connection.AddNamespaceFlag(find)
	connection.AddFlags(run)
	p.root = Root(started, ForClusters(run), ForJobs(find))
	return p
}

func (p *program) execute(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Execute(t.Context(), p.root, args, nil, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestExitCodesAndWords(t *testing.T) {
	const note = "Warning: flags without a command run the operator in this version only; write: tideline run\n"
	for args, c := range map[string]struct {
		code       int
		says, name string
		leads      bool // as configured
	}{
		"find ads/ctr":                 {name: "ads/ctr"},
		"find ctr -n ads":              {name: "ads/ctr"},
		"find ads/ctr --namespace ads": {name: "ads/ctr"},
		"find ads/lost":                {code: 1, says: "tideline find: it is lost\\x1b[2J\n", name: "ads/lost"},
		"find": {code: 2, says: "tideline find: name one job: NAME with -n NAMESPACE, or NAMESPACE/NAME; -h says more\n",
			name: "/"},
		"find ads/ctr -x":    {code: 2, says: "tideline find: unknown shorthand flag: 'x' in -x; -h says more\n"},
		"help finf":          {code: 2, says: "tideline help: there is no command \"finf\"; did you mean find?; -h says more\n"},
		"completion tcsh":    {code: 2, says: "tideline completion: there is no command \"tcsh\"; -h says more\n"},
		"finf":               {code: 2, says: "tideline: there is no command \"finf\"; did you mean find?; -h says more\n"},
		"run --leader-elect": {leads: true},
		"--leader-elect":     {says: note, leads: true},
		"-leader-elect=true": {says: note, leads: true},
		"--webhooks no": {code: 2, says: note + "tideline run: \"no\" is no flag: flags begin with --, and a value " +
			"follows its flag after =; -h says more\n"},
		"--context prod":      {code: 2, says: "tideline: unknown flag: --context; flags stand behind a command; -h says more\n"},
		"--unknown":           {code: 2, says: "tideline: unknown flag: --unknown; flags stand behind a command; -h says more\n"},
		"--leader-elect find": {code: 2, says: "tideline: unknown flag: --leader-elect; flags stand behind a command; -h says more\n"},
	} {
		t.Run(args, func(t *testing.T) {
			g, p := NewWithT(t), newProgram("/usr/bin/tideline", NewConnection(nil))
			code, out, said := p.execute(t, strings.Fields(args)...)
			g.Expect(out).To(BeEmpty())
			g.Expect(said).To(Equal(c.says))
			g.Expect(code).To(Equal(c.code))
			g.Expect(p.name).To(Equal(c.name))
			g.Expect(p.cfg != nil && p.cfg.LeaderElection.Enabled).To(Equal(c.leads))
		})
	}
}

// Without arguments the program says how it is used, by the name that the user typed.
func TestUsage(t *testing.T) {
	for started, name := range map[string]string{"bin/tideline": "tideline", "/opt/kubectl-tideline": "kubectl tideline"} {
		g := NewWithT(t)
		code, said, _ := newProgram(started, NewConnection(nil)).execute(t)
		g.Expect(code).To(BeZero())
		g.Expect(said).To(And(ContainSubstring("\n  "+name+" [command]\n"), ContainSubstring("\n  find        Find\n"),
			ContainSubstring("completion")))
		_, said, _ = newProgram(started, NewConnection(nil)).execute(t, "find", "-h")
		g.Expect(said).To(And(ContainSubstring("\n  "+name+" find JOB [flags]\n"),
			ContainSubstring("\n  "+name+" find ctr\n  a | "+name+" find -\n")))
		code, said, _ = newProgram(started, NewConnection(nil)).execute(t, "completion", "bash")
		g.Expect(code).To(BeZero())
		g.Expect(said).To(ContainSubstring("# bash completion"))
	}
}

func TestCompletion(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1beta1.ElasticTrainingJob{ObjectMeta: meta("ads", "ctr")}, &v1beta1.MergeJob{ObjectMeta: meta("ads", "all")},
		&v1beta1.ElasticTrainingJob{ObjectMeta: meta("dev", "other")}).Build()
	for _, c := range []struct{ args, offers []string }{
		{[]string{"find", "-n", "ads", ""}, []string{"all", "ctr"}},
		{[]string{"find", "ctr", ""}, nil},
		{[]string{"f"}, []string{"find\tFind"}},
		{[]string{"help", "f"}, []string{"find\tFind"}},
	} {
		code, said, _ := newProgram("tideline", Connected(cluster)).execute(t, slices.Concat([]string{"__complete"}, c.args)...)
		g.Expect(code).To(BeZero())
		lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
		g.Expect(lines[:len(lines)-1]).To(HaveExactElements(c.offers), "%v", c.args)
	}
	g.Expect(ReadArguments([]string{"/bin/kubectl_complete-tideline", "find", ""})).To(Equal([]string{"__complete", "find", ""}))
	g.Expect(ReadArguments([]string{"/bin/kubectl-tideline", "find", ""})).To(Equal([]string{"find", ""}))
}
