package story

import (
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// GiveWay is the story of scenario 3: A (2..8) fills eight slots, somebody with a gang of two arrives and starts, A shrinks to
// six and later grows back.
type GiveWay struct {
	*testutil.Scenario
	// Before are the pods of A that must stay, by the worker's index.
	Before map[int]types.UID
}

// Cooldown is the one of scenario 3.
const Cooldown = 10 * time.Second

// MakesRoom is scenario 3, on one node of eight GPUs, and what A tells of it.
func MakesRoom(s *testutil.Scenario) {
	ginkgo.GinkgoHelper()
	Fill(s, s.Job("a")).ComesAndGoes(s.Job("b"))
	story, err := s.Events(s.Read("a"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "events are read")
	gomega.Expect(story).To(gomega.ContainElement(gomega.And(
		gomega.HavePrefix("GaveWay: Workers "), gomega.HaveSuffix(" gave way to a waiting gang; 6 workers ready."))),
		"A's story tells it")
	for _, job := range []string{"a", "b"} {
		story, err := s.Events(s.Read(job))
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "events are read")
		gomega.Expect(len(story)).To(gomega.BeNumerically("<=", 6), "the story of %s is short: %q", job, story)
	}
	told, err := s.Audit.Select(testutil.ByOperator, testutil.Event)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the audit log is read")
	gomega.Expect(told).NotTo(gomega.BeEmpty(), "the operator wrote the story")
	gomega.Expect(len(told)).To(gomega.BeNumerically("<=", 12), "each event is written once")
}

// Fill has A fill the eight slots.
func Fill(s *testutil.Scenario, a *testutil.JobBuilder) GiveWay {
	ginkgo.GinkgoHelper()
	s.Submit(a.Range(2, 8))
	gomega.Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the eight slots")
	return GiveWay{s, s.UIDs("a")}
}

// ComesAndGoes is scenario 3 from B's arrival on.
func (w GiveWay) ComesAndGoes(b *testutil.JobBuilder) {
	ginkgo.GinkgoHelper()
	w.Submit(b.Range(2, 4).CompletionGrace(Cooldown))
	gomega.Eventually(w.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
	w.Shrinks()
	gomega.Eventually(w.Fetch("b")).Should(testutil.HaveReason(v1beta1.ReasonWaitingForRoom), "B says that it would grow")
	w.SucceedAll("b")
	gomega.Eventually(w.Fetch("b")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "B ends")
	w.GrowsBack(Cooldown)
}

// Shrinks checks that A gave way with two surplus workers and is otherwise undisturbed.
func (w GiveWay) Shrinks() {
	ginkgo.GinkgoHelper()
	gomega.Eventually(w.Fetch("a")).Should(gomega.And(testutil.Train(6), testutil.HaveReason(v1beta1.ReasonCoolingDown)),
		"A gave way with two workers and says that it will not ask for them yet")
	a := w.Read("a")
	gomega.Expect(a).To(testutil.HaveRestarts(0), "giving way is no failure")
	gomega.Expect(a.Status.Elasticity.Evicted).To(gomega.And(gomega.HaveLen(2), gomega.HaveEach(gomega.BeNumerically(">=", 2))),
		"only surplus gave way")
	w.KeepsItsWorkers(a)
}

// KeepsItsWorkers checks that whoever did not give way still has the pod it had.
func (w GiveWay) KeepsItsWorkers(a *v1beta1.ElasticTrainingJob) {
	ginkgo.GinkgoHelper()
	kept := map[int]types.UID{}
	for i, uid := range w.Before {
		kept[i] = uid
	}
	if a.Status.Elasticity != nil {
		for _, i := range a.Status.Elasticity.Evicted {
			delete(kept, int(i))
		}
	}
	now := w.UIDs("a")
	for i, uid := range kept {
		gomega.Expect(now).To(gomega.HaveKeyWithValue(i, uid), "worker %d keeps its pod", i)
	}
}

// GrowsBack waits until A has eight workers again, and checks that the two that gave way were created anew after the cooldown
// and not before.
func (w GiveWay) GrowsBack(cooldown time.Duration) {
	ginkgo.GinkgoHelper()
	gone := w.Read("a").Status.Elasticity
	gomega.Expect(gone.Evicted).To(gomega.HaveLen(2), "A remembers who gave way as long as the cooldown lasts")
	w.Before = w.UIDs("a")
	gomega.Eventually(w.Fetch("a")).WithTimeout(cooldown+time.Minute).Should(testutil.Train(8), "A grows back")
	a := w.Read("a")
	gomega.Expect(a).To(testutil.HaveRestarts(0), "neither shrinking nor growing is a failure")
	for i, uid := range w.Before {
		gomega.Expect(w.UIDs("a")).To(gomega.HaveKeyWithValue(i, uid), "worker %d keeps its pod while A grows", i)
	}
	for _, i := range gone.Evicted {
		CreatedAnew(w.Scenario, int(i), gone.LastEvictionTime.Add(cooldown))
	}
}

// CreatedAnew checks that worker i of A was created twice: at first, and not before the cooldown had passed.
func CreatedAnew(s *testutil.Scenario, i int, end time.Time) {
	ginkgo.GinkgoHelper()
	creations, err := s.Audit.Select(testutil.Doing("create", "pods"), testutil.To(testutil.WorkerName("a", i)))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the audit log is read")
	gomega.Expect(creations).To(gomega.HaveLen(2), "worker %d was created anew once", i)
	gomega.Expect(creations[1].Received).To(gomega.BeTemporally(">=", end), "worker %d stayed away during the cooldown", i)
}
