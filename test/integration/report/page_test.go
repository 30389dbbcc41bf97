package report

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/cost/mail"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// fetcher stands in for curl, which may not be there: it writes what it is asked for, a line each.
const fetcher = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"

var _ = Describe("docs/cost.md", Ordered, func() {
	var f *fixture
	var folder, page string
	var env []string
	BeforeAll(func(ctx SpecContext) {
		f = begin(ctx, lastWeek)
		repository, err := filepath.Abs("../../..")
		Expect(err).NotTo(HaveOccurred(), "the repository has a path")
		content, err := os.ReadFile(filepath.Join(repository, "docs", "cost.md"))
		Expect(err).NotTo(HaveOccurred(), "there is the page")
		page, folder = string(content), GinkgoT().TempDir()
		Expect(os.Symlink(filepath.Join(repository, "config"), filepath.Join(folder, "config"))).To(Succeed())
		kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred(), "there is a kubectl")
		curl := filepath.Join(folder, "curl")
		Expect(os.WriteFile(curl, []byte(fetcher), 0o700)).To(Succeed())
		env, err = testutil.Environment(filepath.Join(folder, "user"), f.Kubeconfig, kubectl, curl)
		Expect(err).NotTo(HaveOccurred(), "the programs are on PATH")
		for name, text := range map[string]string{
			"prices.yaml": shown(page, "prices.yaml"), "people.yaml": shown(page, "people.yaml"), "password": "secret\n",
		} {
			Expect(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)).To(Succeed(), "%s is written", name)
		}
	})

	// follow runs the commands of a chapter.
	follow := func(ctx context.Context, chapter string) {
		GinkgoHelper()
		blocks := markdown.In("sh", markdown.Blocks(markdown.Chapter(page, chapter)))
		Expect(blocks).NotTo(BeEmpty(), "%s has steps", chapter)
		for _, block := range blocks {
			cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block.Text)
			cmd.Dir, cmd.Env = folder, env
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", block.Text, out)
		}
	}

	It("makes the first report", func(ctx SpecContext) {
		follow(ctx, "The first report")
		// 140 hours of a GPU of 21.00. In the first minute of an hour it waits until the last one is recorded.
		Eventually(f.read(ctx, "weekly")).WithTimeout(2 * time.Minute).Should(
			HaveField("Status.Last", HaveField("Total", "CNY 2,940.00")))
	})

	It("lets somebody read it", func(ctx SpecContext) {
		follow(ctx, "Who may read it")
		asked, err := os.ReadFile(filepath.Join(folder, "report.html"))
		Expect(err).NotTo(HaveOccurred(), "something was asked for")
		found := regexp.MustCompile(`Authorization: Bearer (\S+)\n.*/reports/(\S+)`).FindStringSubmatch(string(asked))
		Expect(found).To(HaveLen(3), "%s", asked)
		Eventually(func(g Gomega) int { return f.status(ctx, g, found[2], found[1]) }).Should(Equal(http.StatusOK))
	})

	It("names a server for mail", func(ctx SpecContext) {
		follow(ctx, "Mail")
		secret := &corev1.Secret{}
		Expect(f.Client.Get(ctx, client.ObjectKey{Namespace: rbac.Namespace, Name: "smtp"}, secret)).To(Succeed())
		Expect(secret.Type).To(BeEquivalentTo("tideline.io/smtp"))
		server, err := mail.ParseServer(secret.Data, false)
		Expect(err).NotTo(HaveOccurred(), "the operator reads it")
		Expect(server.String()).To(Equal("smtp.example.com:587"))
		people, _, err := mail.ParseDirectory([]byte(shown(page, "people.yaml")))
		Expect(err).NotTo(HaveOccurred(), "the operator reads it")
		Expect(people).To(HaveLen(strings.Count(shown(page, "people.yaml"), "mail:")))
	})
})

// shown is what a page shows of a file.
func shown(page, file string) string {
	GinkgoHelper()
	for _, block := range markdown.In("yaml", markdown.Blocks(page)) {
		if block.Note == file {
			return block.Text
		}
	}
	Fail("the page does not show " + file)
	return ""
}
