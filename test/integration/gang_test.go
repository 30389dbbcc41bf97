package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/story"
)

// severalCycles of Volcano are enough to know what was decided against.
const severalCycles = story.SeveralCycles

var _ = Describe("A gang", mainWay, func() {
	It("scenario 1: is not placed in part, says why it waits, and is placed all at once when a slot appears", func() {
		story.GangIsPlacedWhole(newScenario("s1", 3))
	})

	It("scenario 2: two jobs of 2..4 on five slots each have their two, and the fifth goes to one", func() {
		s := newScenario("s2", 5)
		s.Submit(s.Job("a").Range(2, 4), s.Job("b").Range(2, 4))
		shares := func(g Gomega) []int32 {
			a, err := s.Fetch("a")()
			g.Expect(err).NotTo(HaveOccurred(), "A is read")
			b, err := s.Fetch("b")()
			g.Expect(err).NotTo(HaveOccurred(), "B is read")
			return []int32{a.Status.ReadyReplicas, b.Status.ReadyReplicas}
		}
		Eventually(shares).Should(ConsistOf(int32(2), int32(3)), "both train, and the fifth slot is used")
		Consistently(shares).WithTimeout(severalCycles).Should(ConsistOf(int32(2), int32(3)), "nobody takes from the other")
		for _, job := range []string{"a", "b"} {
			Expect(s.Read(job)).To(And(testutil.HavePhase(v1beta1.PhaseRunning), testutil.HaveRestarts(0),
				testutil.HaveReason(v1beta1.ReasonWaitingForRoom)), "job %s trains and would grow", job)
		}
	})
})
