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

func TestNothingInOurConfigurationIsInTheWay(t *testing.T) {
	g := NewWithT(t)
	ours, err := os.ReadFile("../../config/volcano/volcano-scheduler.conf")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Obstacles(map[string]string{schedulerConfKey: string(ours)})).To(BeEmpty())
}

func TestWhatShippedConfigurationLacks(t *testing.T) {
	NewWithT(t).Expect(Obstacles(map[string]string{schedulerConfKey: shipped})).To(ConsistOf(
		"action preempt is missing", "action reclaim is missing", "plugin gang has no say in preemption",
		"plugin overcommit counts surplus as used, which keeps large gangs Pending",
	))
}

func TestNoConfigurationToRead(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Obstacles(nil)).To(
		ConsistOf("there is no ConfigMap volcano-system/volcano-scheduler-configmap with key volcano-scheduler.conf"))
	g.Expect(Obstacles(map[string]string{schedulerConfKey: "tiers: 7"})).To(
		ConsistOf(HavePrefix("the configuration cannot be read")))
}
