package quickstart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

var _ = Describe("Somebody with a clone and no cluster", func() {
	It("tries Tideline as README.md says", func(ctx SpecContext) {
		home := GinkgoT().TempDir()
		u := &user{clone: filepath.Join(home, "clone"), env: environmentOf(ctx, home)}
		Expect(copyTree(u.clone, repository)).To(Succeed(), "the repository is copied")
		chapter := markdown.Chapter(u.read("README.md"), "Try it")
		blocks := markdown.In("sh", markdown.Blocks(chapter))
		Expect(blocks).To(HaveLen(2), "README.md has a block for each of two terminals")
		Expect(chapter).To(ContainSubstring("`make cluster-down`"), "README.md says how to end the cluster")
		asked := map[string]bool{}
		for _, block := range blocks {
			for line := range strings.Lines(block.Text) {
				asked[strings.TrimSpace(line)] = true
			}
		}
		Expect(len(asked)).To(BeNumerically("<=", 4), "commands from nothing to a first job")
		began := time.Now()
		DeferCleanup(func(ctx SpecContext) {
			out, err := u.run(ctx, "make cluster-down", "")
			Expect(err).NotTo(HaveOccurred(), "the cluster ends: %s", out)
		})

		first := exec.Command("bash", "-euc", blocks[0].Text)
		first.Dir, first.Env = u.clone, u.env
		first.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal sends Ctrl-C to all of them
		said := gbytes.NewBuffer()
		first.Stdout, first.Stderr = said, said
		Expect(first.Start()).To(Succeed(), "the first terminal starts")
		ended := make(chan error, 1)
		go func() { ended <- first.Wait() }()
		DeferCleanup(func() {
			_ = syscall.Kill(-first.Process.Pid, syscall.SIGINT)
			Eventually(ended).WithTimeout(time.Minute).Should(Receive(), "Ctrl-C ends the operator")
		})
		Eventually(func() string {
			Expect(ended).NotTo(Receive(), "the first terminal goes on: %s", said.Contents())
			return string(said.Contents())
		}).WithTimeout(10*time.Minute).Should(ContainSubstring("Starting Controller"), "the operator is built and runs")

		out, err := u.run(ctx, blocks[1].Text, "")
		Expect(err).NotTo(HaveOccurred(), "the second terminal: %s", out)
		export, _, _ := strings.Cut(blocks[1].Text, "\n")
		for _, block := range markdown.In("console", markdown.Blocks(chapter)) {
			for command, shown := range commands(block.Text) {
				Eventually(func() string {
					out, _ := u.run(ctx, export+"\n"+command, "") // a failure is what it prints
					return out
				}).Should(MatchRegexp(like(shown)), "`%s` prints\n%s", command, shown)
			}
		}
		AddReportEntry(fmt.Sprintf("figures: from nothing to a first job that trains: %d commands, %s", len(asked),
			time.Since(began).Round(time.Second)))
	})
})

// environmentOf is the environment of somebody with a home of their own, where what was built before is there already.
func environmentOf(ctx SpecContext, home string) []string {
	GinkgoHelper()
	Expect(cluster.Build(ctx, GinkgoWriter)).To(Succeed(), "the parts of the cluster are built")
	cache := filepath.Join(home, ".cache", "tideline")
	Expect(os.MkdirAll(cache, 0o700)).To(Succeed(), "there is a cache")
	Expect(os.Symlink(filepath.Join(filepath.Dir(cluster.DefaultKubeconfig()), "bin"), filepath.Join(cache, "bin"))).
		To(Succeed(), "the cache has what was built")
	kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred(), "there is a kubectl")
	env, err := testutil.Environment(filepath.Join(home, "user"), "", kubectl)
	Expect(err).NotTo(HaveOccurred(), "it is on PATH")
	env = slices.DeleteFunc(env, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"HOME", "TIDELINE_CACHE", "XDG_CACHE_HOME"}, name)
	})
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE"} { // which are in the home otherwise
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		Expect(err).NotTo(HaveOccurred(), "go tells %s", name)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return append(env, "HOME="+home)
}
