package integration

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// submitScripts has the specs of webhooks that are about `tideline submit`.
func submitScripts(in func() *testutil.Installation, scenario func(name string, gpus ...int64) *testutil.Scenario) {
	It("judge a script before anything is created, and the command ends as its job does", func(ctx SpecContext) {
		s := scenario("submit", 2)
		script := filepath.Join(GinkgoT().TempDir(), "train.py")
		Expect(os.WriteFile(script, []byte("print('step')\n"), 0o600)).To(Succeed())
		carried := func(job string) error {
			return s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: job + "-script"}, &corev1.ConfigMap{})
		}
		submit := func(name string, more ...string) (string, int, error) {
			return in().Command(ctx, append([]string{
				"submit", script, "-n", s.Namespace, "--name", name, "--image", "registry.example/a:1",
			}, more...)...)
		}
		said, code, err := submit("a", "--tier", "unheard-of")
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(Equal(1), said)
		Expect(said).To(ContainSubstring("unheard-of"), "the webhook's words")
		Expect(carried("a")).To(Satisfy(apierrors.IsNotFound), "nothing is created")

		type result struct {
			Said string
			Code int
		}
		ends := make(chan result, 1)
		start := func(name string) {
			go func() {
				defer GinkgoRecover()
				said, code, err := submit(name, "--workers", "1..2")
				Expect(err).NotTo(HaveOccurred())
				ends <- result{said, code}
			}()
		}
		start("good")
		Eventually(s.Fetch("good")).Should(testutil.Train(2), "it trains")
		Expect(carried("good")).To(Succeed(), "with its script")
		said, code, err = submit("good")
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(Equal(1))
		Expect(said).To(ContainSubstring("choose another --name"), "a name is used once")
		s.SucceedAll("good")
		Eventually(ends).Should(Receive(Equal(result{})), "the command succeeds as the job did")

		start("bad")
		Eventually(s.Fetch("bad")).Should(testutil.Train(2), "it trains")
		s.Patch(s.Read("bad"), `{"spec":{"restarts":{"max":0}}}`)
		s.Fail("bad", 0, 3, "no such data")
		Eventually(ends).Should(Receive(And(HaveField("Code", 1), HaveField("Said", ContainSubstring("Failed")))),
			"the command fails as the job did, and says why")
	})
}
