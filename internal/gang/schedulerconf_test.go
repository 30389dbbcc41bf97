package gang

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

// shipped is the configuration that Volcano's Helm chart installs, v1.14.1.
const shipped = `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`

func TestOurConfigurationLacksNothing(t *testing.T) {
	g := NewWithT(t)
	ours, err := os.ReadFile("../../config/volcano/volcano-scheduler.conf")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(MissingFor(map[string]string{schedulerConfKey: string(ours)})).To(BeEmpty())
}

func TestShippedConfigurationLacks(t *testing.T) {
	NewWithT(t).Expect(MissingFor(map[string]string{schedulerConfKey: shipped})).To(ConsistOf(
		"action preempt", "action reclaim", "plugin gang with a say in preemption",
		HavePrefix("removal of plugin overcommit"),
	))
}

func TestNoConfigurationToRead(t *testing.T) {
	g := NewWithT(t)
	g.Expect(MissingFor(nil)).To(ConsistOf("ConfigMap volcano-system/volcano-scheduler-configmap with key volcano-scheduler.conf"))
	g.Expect(MissingFor(map[string]string{schedulerConfKey: "tiers: 7"})).To(
		ConsistOf(HavePrefix("a configuration that can be read")))
}
