package capacity

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("A storm of waiting gangs", func() {
	const (
		jobs    = 500
		workers = 2
		// A job that waits has its core group, Service, workers, and no surplus group yet.
		creations = jobs * (2 + workers)
		// Status: submitted, and queued with a place; once more for what is said in words, which is at most a minute old, and now
		// and then for what Volcano says. Measured: 1,037 for 500 jobs.
		settling = 3 * jobs
		rest     = 30 * time.Second
	)

	It("causes no storm of writes", suite.Long, Serial, func() {
		s := newScenario("storm", 8)
		s.Submit(s.Job("holds").Range(8, 8))
		Eventually(s.Fetch("holds")).Should(testutil.Train(8), "the eight slots are taken")
		began := time.Now()
		workqueue.ParallelizeUntil(s.Context(), 8, jobs, func(i int) {
			defer GinkgoRecover()
			s.Submit(s.Job(fmt.Sprintf("j%03d", i)).Range(workers, 4))
		})
		submitted := time.Since(began)
		writes := func() ([]testutil.Request, error) {
			return s.Audit.Select(testutil.ByOperator, testutil.Write, testutil.From(began))
		}
		since := func() (time.Duration, error) {
			all, err := writes()
			if err != nil || len(all) == 0 {
				return 0, err
			}
			return time.Since(all[len(all)-1].Received), nil
		}
		Eventually(places(s)).WithTimeout(3*time.Minute).WithPolling(2*time.Second).
			Should(Equal(jobs), "each job has a place of its own")
		// What is said in words is at most a minute old; then nothing changes any more.
		Eventually(since).WithTimeout(4*time.Minute).WithPolling(time.Second).Should(BeNumerically(">", rest), "the line comes to rest")

		all, err := writes()
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		counts := testutil.Counts(all)
		AddReportEntry("storm", fmt.Sprintf("%d jobs submitted in %s; the last write %s after the first submission; %v; by 10 s: %v",
			jobs, submitted.Round(time.Second), all[len(all)-1].Received.Sub(began).Round(time.Second), counts,
			perTenSeconds(all, began)))
		patches := counts["patch elastictrainingjobs/status"]
		delete(counts, "patch elastictrainingjobs/status")
		created := 0
		for _, n := range counts {
			created += n
		}
		Expect(created).To(Equal(creations), "each object is created once, and nothing else is written: %v", counts)
		Expect(patches).To(BeNumerically("<=", settling), "status is written a few times a job")
		told, err := s.Audit.Select(testutil.ByOperator, testutil.Event, testutil.From(began))
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(len(told)).To(BeNumerically("<=", 2*jobs), "events are at most two a job")
		AddReportEntry("events", fmt.Sprintf("%d events", len(told)))
	})
})

// places counts the different places that jobs of the namespace have.
func places(s *testutil.Scenario) func() (int, error) {
	return func() (int, error) {
		list := &v1beta1.ElasticTrainingJobList{}
		err := s.Client.List(s.Context(), list, client.InNamespace(s.Namespace))
		seen := map[int32]bool{}
		for _, j := range list.Items {
			if j.Status.Place > 0 {
				seen[j.Status.Place] = true
			}
		}
		return len(seen), err
	}
}

// perTenSeconds counts requests by the tens of seconds since a time.
func perTenSeconds(requests []testutil.Request, since time.Time) []int {
	var counts []int
	for _, r := range requests {
		i := int(r.Received.Sub(since) / (10 * time.Second))
		for len(counts) <= i {
			counts = append(counts, 0)
		}
		counts[i]++
	}
	return counts
}
