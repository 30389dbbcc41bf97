package integration

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	suspend = `{"spec":{"suspend":true}}`
	resume  = `{"spec":{"suspend":false}}`
)

var _ = Describe("A job that is suspended", func() {
	It("scenario 9: holds nothing, keeps its counters, emits one event, and goes on with its next attempt", mainWay, func() {
		s := newScenario("s9", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		s.DeleteWorker("a", 0)
		Eventually(s.Fetch("a")).Should(And(testutil.Train(4), testutil.HaveRestarts(1)), "A lost worker 0 once")

		s.Patch(s.Read("a"), suspend)
		Eventually(s.Fetch("a")).Should(And(
			testutil.HavePhase(v1beta1.PhaseSuspended),
			testutil.HaveCondition(v1beta1.ConditionSuspended, metav1.ConditionTrue, v1beta1.ReasonSuspended),
			testutil.HaveRestarts(1),
		), "A is suspended")
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Service a-workers"), "neither pods nor PodGroups are left")
		s.Submit(s.Job("b").Range(4, 4))
		Eventually(s.Fetch("b")).Should(testutil.Train(4), "B has all the room")
		s.DeleteJob("b")

		s.Patch(s.Read("a"), resume)
		Eventually(s.Fetch("a")).Should(And(
			testutil.Train(4), testutil.HaveRestarts(1), HaveField("Status.Attempt.Number", int32(2)),
		), "A goes on")
		Eventually(func() (n int, err error) {
			events, err := s.Events(s.Read("a"))
			for _, e := range events {
				if strings.HasPrefix(e, v1beta1.EventSuspended+": ") {
					n++
				}
			}
			return n, err
		}).Should(Equal(1), "one event tells of it")
	})

	It("scenario 9: a deadline fires with no other event, and stands still while the job is suspended", func() {
		const deadline = 15 * time.Second // longer than suspending it may take on a busy machine
		s := newScenario("s9-deadline", 2)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.Deadlines.ActiveSeconds = ptr.To(int32(deadline / time.Second))
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Patch(s.Read("a"), suspend)
		Eventually(s.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonSuspended), "A is suspended")
		Consistently(s.Fetch("a")).WithTimeout(deadline).Should(testutil.HavePhase(v1beta1.PhaseSuspended), "the clock stands still")
		s.Patch(s.Read("a"), resume)
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A goes on")
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.BeStalled(v1beta1.ReasonDeadlineExceeded)), "its time is up, although nothing happens")
		a := s.Read("a")
		Expect(a.Status.ActiveSeconds).To(BeNumerically("~", deadline.Seconds(), 2), "it trained for its deadline, and not longer")
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a"), "and holds nothing any more")
	})

	It("and changed to what no new job may have does not resume so, also without webhooks", func() {
		s := newScenario("changed", 1)
		s.Submit(s.Job("a").Tier("exploratory"))
		Eventually(s.Fetch("a")).Should(testutil.Train(1), "A trains")
		s.Patch(s.Read("a"), suspend)
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Service a-workers"), "nothing runs")
		s.Patch(s.Read("a"), `{"spec":{"suspend":false,"tier":"main-traffic"}}`)
		Eventually(s.Fetch("a")).Should(testutil.BeStalled(v1beta1.ReasonQoSNotMet), "its template asks for no memory")
		s.Patch(s.Read("a"), `{"spec":{"tier":"exploratory"}}`)
		Eventually(s.Fetch("a")).Should(And(testutil.Train(1), HaveField("Status.Attempt.Number", int32(2))), "as it was it goes on")
	})

	It("that never ran is created suspended, and starts when it may", mainWay, func() {
		s := newScenario("born-suspended", 2)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Suspend = true }))
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSuspended), "A is suspended")
		Consistently(s.Remains).WithTimeout(severalCycles).Should(ConsistOf("ElasticTrainingJob a"), "nothing is created")
		s.Patch(s.Read("a"), resume)
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A starts")
	})
})

var _ = Describe("Run policies", func() {
	It("an ended job is deleted after ttlSecondsAfterFinished", func() {
		s := newScenario("ttl", 1)
		s.Submit(s.Job("a").With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Cleanup.TTLSecondsAfterFinished = ptr.To[int32](3) }))
		Eventually(s.Fetch("a")).Should(testutil.Train(1), "A trains")
		s.SucceedAll("a")
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "A ends")
		Eventually(s.Remains).Should(BeEmpty(), "A is gone with everything it had")
	})

	It("a job whose core waits for longer than deadlines.schedulingSeconds fails", func() {
		s := newScenario("scheduling-timeout", 1)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.Deadlines.SchedulingSeconds = ptr.To[int32](4)
		}))
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.BeStalled(v1beta1.ReasonSchedulingTimeout)), "A gives up")
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a"), "and asks for nothing any more")
	})

	It("a job that is labelled for Kueue says what to do", func() {
		s := newScenario("kueue", 1)
		labelled := s.Job("labelled").With(func(a *v1beta1.ElasticTrainingJob) {
			a.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"}
		})
		s.Submit(labelled)
		Eventually(s.Fetch("labelled")).Should(testutil.BeStalled(v1beta1.ReasonManagedByKueue), "the labelled job says what to do")
		Expect(s.Read("labelled").Status.Message).To(ContainSubstring("Remove the label"))
		Expect(s.Remains()).To(ConsistOf("ElasticTrainingJob labelled"), "nothing was created for it")
	})

	It("a range that workers cannot follow starts the next attempt where the job asks for it", func() {
		s := newScenario("range-restart", 6)
		s.Submit(s.Job("a").Range(2, 4).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.Elasticity.RangeUpdate = v1beta1.RangeUpdateRestart
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		s.Patch(s.Read("a"), `{"spec":{"minReplicas":3,"maxReplicas":6}}`)
		Eventually(s.Fetch("a")).Should(And(testutil.Train(6), HaveField("Status.Attempt.Number", int32(2)),
			HaveField("Status.Attempt.MinReplicas", int32(3))), "A trains with the new range")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "that was asked for")
	})
})
