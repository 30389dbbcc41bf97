package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

// The bounds are on the page, docs/benchmarks/merge.md.
func TestSimulationAgreesWithCluster(t *testing.T) {
	g := NewWithT(t)
	printed, err := os.ReadFile("../../../docs/benchmarks/merge-cluster.txt")
	g.Expect(err).NotTo(HaveOccurred())
	m, err := readMeasured(string(printed))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.pools).NotTo(BeEmpty())
	m.pools = m.pools[:1] // The smallest, where merges wait most: each takes seconds.
	simulated, err := m.simulated()
	g.Expect(err).NotTo(HaveOccurred())
	for i, cluster := range m.pools {
		s := simulated[i]
		g.Expect(s.late).To(Equal(cluster.late), "models late with %d machines", cluster.machines)
		g.Expect(s.oldest).To(BeNumerically("~", cluster.oldest, 0.5), "hours, with %d machines", cluster.machines)
		g.Expect(s.merged).To(BeNumerically("~", cluster.merged, 0.05*float64(cluster.merged)),
			"merges with %d machines", cluster.machines)
		g.Expect(s.wait50).To(BeNumerically("~", cluster.wait50, 4), "minutes, with %d machines", cluster.machines)
		g.Expect(s.wait99).To(BeNumerically("~", cluster.wait99, 8), "minutes, with %d machines", cluster.machines)
	}
}
