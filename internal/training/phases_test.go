package training

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestEveryPhaseSaysWhatItDoesAndWhy(t *testing.T) {
	for name, phases := range map[string][]phase{
		"ended": endedPhases, "stopped": stoppedPhases, "new": newPhases, "running": runningPhases, "worker": workerPhases,
	} {
		g, seen := NewWithT(t), map[string]bool{}
		for _, one := range phases {
			g.Expect(one.name).NotTo(BeEmpty(), name)
			g.Expect(one.why).NotTo(BeEmpty(), "%s: %s", name, one.name)
			g.Expect(one.do).NotTo(BeNil(), "%s: %s", name, one.name)
			g.Expect(seen).NotTo(HaveKey(one.name), "%s: each phase stands once", name)
			seen[one.name] = true
		}
	}
}
