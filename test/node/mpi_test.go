//go:build linux

package node_test

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Open MPI on a real node", func() {
	It("is launched by a role of its own, and runs a command on all workers over ssh", func(ctx SpecContext) {
		s := shared.World.NewScenario(GinkgoT(), "mpi")
		rights, err := testutil.Manifests(ctx, "components/ssh-keys/role.yaml")
		Expect(err).NotTo(HaveOccurred())
		for _, o := range rights {
			s.Create(o)
		}
		content, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "mpi.yaml"))
		Expect(err).NotTo(HaveOccurred())
		job := &v1beta1.ElasticTrainingJob{}
		Expect(yaml.UnmarshalStrict(content, job)).To(Succeed())
		job.Namespace = s.Namespace
		s.Create(job)
		Eventually(func(g Gomega) {
			pods, err := s.Pods("mpi")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).NotTo(BeEmpty())
			g.Expect(pods[0].Name).To(Equal("mpi-launcher-0"))
			said, err := machine.Logs(&pods[0], "trainer")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said).To(ContainElements("mpi-worker-1", "mpi-worker-2", "mpi-worker-3"))
			g.Expect(said).NotTo(ContainElement("mpi-launcher-0"), "it trains nothing")
		}).WithTimeout(2 * time.Minute).Should(Succeed())
		Eventually(s.Fetch("mpi")).Should(HaveField("Status.Phase", v1beta1.PhaseSucceeded))
	})
})
