package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
)

const twoContexts = `apiVersion: v1
kind: Config
clusters:
- {name: a, cluster: {server: "https://a.example"}}
- {name: b, cluster: {server: "https://b.example"}}
users: [{name: u, user: {token: t}}]
contexts:
- {name: first, context: {cluster: a, user: u, namespace: ads}}
- {name: second, context: {cluster: b, user: u}}
current-context: first
`

// Cluster and namespace are found as kubectl finds them.
func TestClusterAndNamespaceAreThoseOfKubectl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	NewWithT(t).Expect(os.WriteFile(file, []byte(twoContexts), 0o600)).To(Succeed())
	for args, want := range map[string]struct{ host, name string }{
		"ctr":                               {"https://a.example", "ads/ctr"},
		"ctr -n dev":                        {"https://a.example", "dev/ctr"},
		"ctr --context second":              {"https://b.example", "default/ctr"},
		"ml/ctr --context=second":           {"https://b.example", "ml/ctr"},
		"ctr --kubeconfig " + file + ".not": {"", "/"},
	} {
		t.Run(args, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", file)
			connection := NewConnection(nil)
			p := newProgram("tideline", connection)
			code, _, _ := p.execute(t, append([]string{"find"}, strings.Fields(args)...)...)
			g.Expect(p.name).To(Equal(want.name))
			config, err := connection.Config()
			if want.host == "" {
				g.Expect(code).To(Equal(1))
				g.Expect(err).To(MatchError(ContainSubstring("find a cluster")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal(want.host))
			g.Expect(config.QPS).To(BeEquivalentTo(-1), "the API server limits, and not the client")
		})
	}
	g := NewWithT(t)
	t.Setenv("KUBECONFIG", file)
	_, said, _ := newProgram("tideline", NewConnection(nil)).execute(t, "__complete", "find", "--context", "")
	g.Expect(said).To(HavePrefix("first\nsecond\n"))
}

// A shell waits no longer for names than it was promised, also where the cluster accepts connections and says nothing.
func TestCompletionGivesUp(t *testing.T) {
	g := NewWithT(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = silent.Close() }()
	file := filepath.Join(t.TempDir(), "config")
	g.Expect(os.WriteFile(file, []byte(strings.ReplaceAll(twoContexts, "https://a.example", "http://"+silent.Addr().String())),
		0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", file)
	begin := time.Now()
	_, said, _ := newProgram("tideline", NewConnection(func() (*runtime.Scheme, error) { return runtime.NewScheme(), nil })).
		execute(t, "__complete", "find", "")
	g.Expect(said).To(HavePrefix(":"))
	g.Expect(time.Since(begin)).To(BeNumerically("<", completionTimeout+time.Second))
}
