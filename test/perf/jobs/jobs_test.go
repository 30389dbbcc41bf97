// Package jobs measures what the operator needs for many trainings that come at once.
package jobs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// The workload: so many jobs of two workers, all created at once, on nodes that have room for all.
const (
	jobs, workersPerJob = 500, 2
	nodes, gpusPerNode  = 130, 8
	namespace           = "default"
)

func TestJobs(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Many jobs")
}

var _ = Describe("500 jobs that come at once", func() {
	// TIDELINE_ROOT names another source tree whose operator is measured, to compare two.
	It("run, and cost each no more writes than its objects and its status need", func(ctx SpecContext) {
		GinkgoT().Setenv("CGO_ENABLED", "0") // The figures are those of the operator without the race detector.
		in := suite.Bare(ctx, cluster.Options{})
		Expect(in.Install(ctx)).To(Succeed())
		for i := range nodes {
			Expect(in.AddNode(ctx, testutil.NewNode(fmt.Sprintf("n%03d", i), "all", gpusPerNode))).To(Succeed())
		}
		address, err := testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
		program, former := "", false
		if root := os.Getenv("TIDELINE_ROOT"); root != "" {
			program, err = testutil.BuildOperatorOf(ctx, root, GinkgoT().TempDir())
			Expect(err).NotTo(HaveOccurred())
			_, err = os.Stat(filepath.Join(root, "internal", "cli", "cli.go"))
			former = err != nil
		}
		Expect(in.Operate(ctx, testutil.OperatorOptions{Program: program, Former: former, Args: []string{
			"--metrics-bind-address=" + address, "--metrics-secure=false",
		}})).To(Succeed())
		audit, err := in.Audit(namespace)
		Expect(err).NotTo(HaveOccurred())
		idle, began := figures(ctx, address), time.Now()
		submit(ctx, in.World)
		Eventually(func() (int, error) { return running(ctx, in.World) }).WithContext(ctx).
			WithTimeout(10*time.Minute).WithPolling(time.Second).Should(Equal(jobs), "all jobs run")
		took := time.Since(began)
		since := time.Now()
		Eventually(func() ([]testutil.Request, error) {
			defer func() { since = time.Now() }()
			return audit.Select(testutil.ByOperator, testutil.Write, testutil.From(since))
		}).WithContext(ctx).WithTimeout(2*time.Minute).WithPolling(5*time.Second).Should(BeEmpty(), "all that happened is told")
		used := figures(ctx, address)
		count := func(conditions ...func(testutil.Request) bool) int {
			GinkgoHelper()
			requests, err := audit.Select(append(conditions, testutil.ByOperator)...)
			Expect(err).NotTo(HaveOccurred())
			return len(requests)
		}
		one := func(r testutil.Request) bool { return r.Verb == "get" }
		writes := float64(count(testutil.Change, testutil.Not(testutil.Event))) / jobs
		AddReportEntry(fmt.Sprintf("all ran after %.0f s; a job: %.1f writes, %.2f reads of one object, %.1f ms of CPU; refused: %d; "+
			"memory %.0f MB", took.Seconds(), writes, float64(count(one))/jobs,
			1000*(used["process_cpu_seconds_total"]-idle["process_cpu_seconds_total"])/jobs, count(testutil.Change, testutil.Refused),
			used["process_resident_memory_bytes"]/1e6))
		Expect(writes).To(BeNumerically("<=", 7), "the Service, the PodGroup, two pods, two statuses, and one to spare")
		Expect(count(one)).To(BeZero(), "no object is read past the caches")
	}, SpecTimeout(20*time.Minute))
})

func submit(ctx context.Context, w *testutil.World) {
	GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range jobs {
		group.Go(func() error {
			return w.Client.Create(ctx, testutil.Job(fmt.Sprintf("job-%03d", i)).In(namespace).Range(workersPerJob, workersPerJob).Obj())
		})
	}
	Expect(group.Wait()).To(Succeed(), "every job is created")
}

// running counts the jobs all of whose workers are ready.
func running(ctx context.Context, w *testutil.World) (int, error) {
	list := &v1beta1.ElasticTrainingJobList{}
	if err := w.Client.List(ctx, list); err != nil {
		return 0, err
	}
	n := 0
	for i := range list.Items {
		if list.Items[i].Status.ReadyReplicas == workersPerJob {
			n++
		}
	}
	return n, nil
}

// figures are the operator's metrics that have no labels.
func figures(ctx context.Context, address string) map[string]float64 {
	GinkgoHelper()
	families, err := testutil.ReadMetrics(ctx, address)
	Expect(err).NotTo(HaveOccurred(), "the operator serves metrics that Prometheus can read")
	all := map[string]float64{}
	for name, family := range families {
		if one := family.GetMetric()[0]; len(one.GetLabel()) == 0 {
			all[name] = value(one)
		}
	}
	return all
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }
