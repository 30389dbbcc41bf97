package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("A lost worker", func() {
	It("scenario 6: worker 0 comes back although another's surplus has taken its place", mainWay, func() {
		s := newScenario("s6", 8)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A has its core")
		s.Submit(s.Job("b").Range(2, 8))
		Eventually(s.Fetch("b")).Should(testutil.Train(6), "B fills the other six slots")
		beforeA, beforeB := s.UIDs("a"), s.UIDs("b")

		// Held, worker 0's object keeps its name while its place is free for others.
		s.Hold("a", 0)
		s.DeleteWorker("a", 0)
		s.Fail("a", 0, 143, "")
		Eventually(s.Workers("b", testutil.Running)).Should(HaveLen(7), "B's surplus takes the place of A's worker 0")
		s.Release("a", 0)
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(1)), "worker 0 runs again, after one restart")
		Expect(s.Read("a").Status.LastFailure).To(HaveField("Worker", BeEquivalentTo(0)), "the loss is named")
		nowA := s.UIDs("a")
		Expect(nowA[0]).NotTo(Equal(beforeA[0]), "worker 0 has a new pod")
		Expect(nowA[1]).To(Equal(beforeA[1]), "worker 1 keeps its pod")

		Eventually(s.Fetch("b")).Should(testutil.Train(6), "one surplus worker of B made room")
		b := s.Read("b")
		Expect(b).To(testutil.HaveRestarts(0), "B's surplus gave way, which is no restart")
		nowB := s.UIDs("b")
		for _, i := range []int{0, 1} {
			Expect(nowB).To(HaveKeyWithValue(i, beforeB[i]), "worker %d of B's core keeps its pod", i)
		}
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByVolcano)).To(HaveLen(1), "one worker was evicted")
		Expect(s.Events(s.Read("a"))).To(ContainElement(HavePrefix("WorkerLost: Worker 0's pod was deleted")), "A's story tells it")
	})

	It("is replaced under its index, and counts as one restart, when it failed", mainWay, func() {
		s := newScenario("failed", 4)
		s.Submit(s.Job("a").Range(3, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		before := s.UIDs("a")
		s.Fail("a", 1, 137, "CUDA error: an illegal memory access was encountered")
		Eventually(s.Fetch("a")).Should(And(testutil.HaveReason(v1beta1.ReasonRecovering), testutil.HaveRestarts(1)),
			"the loss counts")
		Expect(s.Read("a").Status.LastFailure).To(And(HaveField("Worker", BeEquivalentTo(1)),
			HaveField("ExitCode", int32(137)), HaveField("Message", ContainSubstring("illegal memory access"))),
			"its last words are kept")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "worker 1 is replaced")
		now := s.UIDs("a")
		Expect(now[1]).NotTo(Equal(before[1]), "worker 1 has a new pod")
		for _, i := range []int{0, 2, 3} {
			Expect(now[i]).To(Equal(before[i]), "worker %d keeps its pod", i)
		}
		Expect(s.Read("a")).To(testutil.HaveRestarts(1), "one loss counts once")
	})

	It("is replaced, and counts as no restart, when it was evicted by a drain", func() {
		s := newScenario("drained", 3)
		s.Submit(s.Job("a").Range(3, 3))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		before := s.UIDs("a")
		s.Evict("a", 2)
		Eventually(s.Workers("a", testutil.Running, func(p *corev1.Pod) bool { return p.UID != before[2] })).Should(
			HaveLen(3), "worker 2 is replaced at once: no cooldown holds a core worker back")
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains again")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "an eviction counts as no restart")
	})
})
