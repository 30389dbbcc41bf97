package integration

import (
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// The figures of the design, from the API server's audit log.
// Serial, because what is counted and timed depends on how soon after one another pods run, which specs beside would change.
var _ = Describe("The API server is spared", Serial, func() {
	// until counts what the operator wrote, by the time that the job runs and its workers exist.
	until := func(s *testutil.Scenario, workers int) map[string]int {
		GinkgoHelper()
		Eventually(s.Workers("a")).Should(HaveLen(workers), "every worker was created")
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseRunning), "the core runs")
		return writes(s)
	}

	It("a job of 2..4 costs its pods + 5 writes until it runs, one more when it has grown, and no read", func() {
		s := newScenario("writes", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Expect(until(s, 4)).To(Equal(map[string]int{
			"create pods": 4, "create podgroups": 2, "create services": 1, "patch elastictrainingjobs/status": 2,
		}), "pods + 5 writes until it runs")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "it has grown")
		Expect(writes(s)).To(HaveKeyWithValue("patch elastictrainingjobs/status", 3), "one write for the growth")
		Consistently(func() map[string]int { return writes(s) }).WithTimeout(severalCycles).Should(HaveKeyWithValue(
			"patch elastictrainingjobs/status", 3), "and no more")
		Expect(s.Audit.Select(testutil.ByOperator, testutil.Read)).To(BeEmpty(), "what it must know it has from its watches")
		Expect(s.Audit.Select(testutil.ByOperator, testutil.Event)).To(HaveLen(2), "one event for the core, one for the growth")
	})

	It("a job whose maximum is its minimum costs its pods + 4 writes", func() {
		s := newScenario("writes-fixed", 3)
		s.Submit(s.Job("a").Range(3, 3))
		want := map[string]int{"create pods": 3, "create podgroups": 1, "create services": 1, "patch elastictrainingjobs/status": 2}
		Expect(until(s, 3)).To(Equal(want), "pods + 4 writes until it runs")
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "it trains")
		Consistently(func() map[string]int { return writes(s) }).WithTimeout(severalCycles).Should(Equal(want), "and no more")
		Expect(s.Audit.Select(testutil.ByOperator, testutil.Read)).To(BeEmpty(), "what it must know it has from its watches")
	})

	It("scenario 16: pods ready one every 3 s are followed within 5 s, by at most one write per 5 s and one per phase", func() {
		const (
			interval, delay = 3 * time.Second, 5 * time.Second
			// slack is what the test's own watch, and a busy machine, may add.
			slack = time.Second
		)
		s := newScenario("s16", 8)
		seen := record(s, "a")
		s.Submit(s.Job("a").Range(4, 8).Manual())
		began := time.Now()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var ready []time.Time
		for i := range 8 {
			Eventually(s.Workers("a", testutil.Bound)).Should(ContainElement(i), "worker %d is placed", i)
			Eventually(tick.C).Should(Receive(), "the image of worker %d takes a while", i)
			makeReady(s, "a", i)
			ready = append(ready, time.Now())
		}
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "all are ready")
		took := time.Since(began)
		Eventually(seen).Should(ContainElement(HaveField("Status.ReadyReplicas", int32(8))), "the test has seen that too")

		sightings := seen()
		for i, at := range ready {
			Expect(firstWith(sightings, i+1)).To(BeTemporally("<=", at.Add(delay+slack)), "status follows worker %d", i)
		}
		patches, err := s.Audit.Select(testutil.ByOperator, testutil.Doing("patch", "elastictrainingjobs/status"))
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(sightings).To(HaveLen(1+len(patches)), "the job as it was created, and after each write")
		for i := 1; i < len(patches); i++ {
			if sightings[i+1].Status.Phase == sightings[i].Status.Phase {
				Expect(patches[i].Answered).To(BeTemporally(">=", patches[i-1].Received.Add(delay-slack)), "write %d keeps its distance", i)
			}
		}
		perInterval := int(took/delay) + 1
		written := writes(s)
		Expect(written["patch elastictrainingjobs/status"]).To(BeNumerically("<=", 2+perInterval), "two status writes and one per 5 s")
		delete(written, "patch elastictrainingjobs/status")
		Expect(written).To(Equal(map[string]int{"create pods": 8, "create podgroups": 2, "create services": 1}), "and pods + 3 others")
	})
})

// sighting is a job's status as it was seen at some time.
type sighting struct {
	At     time.Time
	Status v1beta1.ElasticTrainingJobStatus
}

// record watches a job, which need not exist yet, until the test ends. The function returned lists every state that the job was
// seen in so far.
func record(s *testutil.Scenario, job string) func() []sighting {
	GinkgoHelper()
	watch, err := s.Client.Watch(s.Context(), &v1beta1.ElasticTrainingJobList{}, client.InNamespace(s.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", job)})
	Expect(err).NotTo(HaveOccurred(), "job %s is watched", job)
	DeferCleanup(watch.Stop)
	var mu sync.Mutex
	var seen []sighting
	go func() {
		for event := range watch.ResultChan() {
			if o, ok := event.Object.(*v1beta1.ElasticTrainingJob); ok {
				mu.Lock()
				seen = append(seen, sighting{time.Now(), o.Status})
				mu.Unlock()
			}
		}
	}()
	return func() []sighting {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// firstWith is when at least n workers were first seen ready in status.
func firstWith(sightings []sighting, n int) time.Time {
	GinkgoHelper()
	for _, s := range sightings {
		if s.Status.ReadyReplicas >= int32(n) {
			return s.At
		}
	}
	Fail("status never showed as many ready workers")
	return time.Time{}
}

// writes counts what the operator wrote in the scenario's namespace, events apart.
func writes(s *testutil.Scenario) map[string]int {
	GinkgoHelper()
	requests, err := s.Audit.Select(testutil.ByOperator, testutil.Write)
	Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	return testutil.Counts(requests)
}
