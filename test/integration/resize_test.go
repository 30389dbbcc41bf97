package integration

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("A changed range", func() {
	It("scenario 11: max 8, 3, 8 by kubectl scale: the highest leave, pending first; the lowest missing come back", mainWay, func() {
		s := newScenario("s11", 6)
		// A long cooldown: what a user asks for does not wait for it.
		s.Submit(s.Job("a").Range(2, 8).Cooldown(time.Hour))
		Eventually(s.Fetch("a")).Should(And(testutil.Train(6), testutil.HaveReason(v1beta1.ReasonWaitingForRoom)), "A fills six slots")
		before := s.UIDs("a")
		waiting, err := s.Workers("a", testutil.Waiting)()
		Expect(err).NotTo(HaveOccurred(), "pods are read")
		Expect(waiting).To(HaveLen(2), "two workers wait")

		kubectl(s, "scale", "etj/a", "--replicas=3")
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A shrinks")
		Eventually(s.Workers("a")).Should(Equal([]int{0, 1, 2}), "the highest indices leave")
		gone := names(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByOperator))
		Expect(gone).To(HaveLen(5), "nobody else left")
		inOrder := append([]string{testutil.WorkerName("a", waiting[1]), testutil.WorkerName("a", waiting[0])},
			highestFirst(slices.DeleteFunc(slices.Clone(gone), func(name string) bool {
				return name == testutil.WorkerName("a", waiting[0]) || name == testutil.WorkerName("a", waiting[1])
			}))...)
		Expect(batches(gone)).To(Equal(batches(inOrder)), "those that wait leave first, then those that run, highest first")

		scaled := time.Now()
		kubectl(s, "scale", "etj/a", "--replicas=8")
		Eventually(s.Workers("a")).Should(Equal([]int{0, 1, 2, 3, 4, 5, 6, 7}), "the missing come back at once")
		created := names(s.Audit.Select(testutil.Doing("create", "pods"), testutil.From(scaled)))
		Expect(batches(created)).To(Equal(batches(
			[]string{"a-worker-3", "a-worker-4", "a-worker-5", "a-worker-6", "a-worker-7"})), "lowest first")
		Eventually(s.Fetch("a")).Should(testutil.Train(6), "A fills six slots again")
		for i := range 3 {
			Expect(s.UIDs("a")).To(HaveKeyWithValue(i, before[i]), "worker %d is untouched", i)
		}
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "a resize restarts nobody")
	})

	It("is adopted at once while nothing is placed: a job that found no room is mended", func() {
		s := newScenario("mended", 2)
		s.Submit(s.Job("a").Range(4, 4))
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonNeverFits), "there is no room for four")
		s.Patch(s.Read("a"), `{"spec":{"minReplicas":2}}`)
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "there is room for two")
		a := s.Read("a")
		Expect(a).To(testutil.HaveRestarts(0), "nobody was lost")
		Expect(a).To(testutil.HaveCondition(v1beta1.ConditionRangePending, "", ""), "nothing is left to do")
		Eventually(s.Workers("a")).Should(Equal([]int{0, 1, 2, 3}), "the others would join")
		for i := range 4 {
			Expect(s.Worker("a", i).Labels).To(HaveKeyWithValue(v1beta1.LabelAttempt, a.Status.Attempt.ID()), "worker %d", i)
			Expect(s.Worker("a", i).Spec.Containers[0].Env).To(
				ContainElement(corev1.EnvVar{Name: "PET_NNODES", Value: "2:4"}), "worker %d reads the new range", i)
		}
	})

	It("beyond what running workers were started with waits for the next attempt, and says so", func() {
		s := newScenario("range", 6)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		s.Patch(s.Read("a"), `{"spec":{"maxReplicas":6}}`)
		Eventually(s.Fetch("a")).Should(
			testutil.HaveCondition(v1beta1.ConditionRangePending, metav1.ConditionTrue, v1beta1.ReasonNextAttempt), "it waits")
		Expect(testutil.Condition(s.Read("a"), v1beta1.ConditionRangePending).Message).To(
			And(ContainSubstring("were started for 2..4"), ContainSubstring("The range of the spec, 2..6,")), "with the figures")
		Consistently(s.Workers("a")).WithTimeout(severalCycles).Should(HaveLen(4), "torchrun's agents know of no fifth")
		s.Patch(s.Read("a"), `{"spec":{"maxReplicas":4}}`)
		Eventually(s.Fetch("a")).Should(testutil.HaveCondition(v1beta1.ConditionRangePending, "", ""), "nothing waits any more")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "nobody restarts")
	})
})

// names lists the names of the objects that requests were about, in their order.
func names(requests []testutil.Request, err error) []string {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	all := make([]string, len(requests))
	for i, r := range requests {
		all[i] = r.Name
	}
	return all
}

// batches are the names as the operator sends requests for them: of those of one batch any may be answered first.
func batches(names []string) [][]string {
	var all [][]string
	for batch := range kube.Batches(names) {
		all = append(all, slices.Sorted(slices.Values(batch)))
	}
	return all
}

func highestFirst(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	slices.Reverse(sorted)
	return sorted
}
