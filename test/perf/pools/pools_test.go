// Package pools holds the operator to its figures for many merges: 5,000 MergeJobs in 50 pools.
package pools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// The figures of the issue: so many merges in so many pools, a decision in less than this, and no write at rest.
const (
	pools, mergesPerPool = 50, 100
	slowest              = 100 * time.Millisecond
	rest                 = time.Minute
)

func TestPools(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Many merges")
}

var _ = Describe("5,000 merges in 50 pools", Ordered, func() {
	It("are decided on in less than 100 ms a pool, and written nothing at rest", func(ctx SpecContext) {
		stores := GinkgoT().TempDir()
		address, err := testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
		GinkgoT().Setenv("CGO_ENABLED", "0") // The figures are those of the operator without the race detector.
		in := suite.Bare(ctx, cluster.Options{})
		Expect(in.Install(ctx)).To(Succeed())
		file := filepath.Join(in.Logs(), "configuration.yaml")
		names := make([]string, pools)
		for i := range names {
			names[i] = fmt.Sprintf("pool-%02d", i)
			Expect(in.Client.Create(ctx, queue(names[i]))).To(Succeed())
		}
		Expect(os.WriteFile(file, fmt.Appendf(nil, "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n"+
			"merges: {pools: %s, localStores: %q}\n", "["+strings.Join(names, ", ")+"]", stores), 0o600)).To(Succeed())
		Expect(in.Operate(ctx, testutil.OperatorOptions{Args: []string{
			"--config=" + file, "--metrics-bind-address=" + address, "--metrics-secure=false",
		}})).To(Succeed())
		createAll(ctx, in.Client, stores, names)
		waiting := func() (int, error) {
			list := &v1beta1.MergeJobList{}
			err := in.Client.List(ctx, list)
			n := 0
			for i := range list.Items {
				if list.Items[i].Status.Reason == v1beta1.ReasonNotDue {
					n++
				}
			}
			return n, err
		}
		Eventually(waiting, 10*time.Minute, time.Second).Should(Equal(pools*mergesPerPool), "every store was read")

		audit, err := in.Audit("default")
		Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		writes := func() ([]testutil.Request, error) {
			return audit.Select(testutil.ByOperator, testutil.Write, testutil.From(began))
		}
		Eventually(func() ([]testutil.Request, error) {
			defer func() { began = time.Now() }()
			return writes()
		}, 2*time.Minute, 5*time.Second).Should(BeEmpty(), "all that happened is told")
		before := decisions(ctx, address)
		began = time.Now()
		Consistently(writes, rest, 5*time.Second).Should(BeEmpty(), "zero writes at rest, although all are looked at every 5 s")
		after := decisions(ctx, address)
		n := after.GetSampleCount() - before.GetSampleCount()
		Expect(n).To(BeNumerically(">", pools), "every pool was decided on again")
		Expect(within(after)-within(before)).To(Equal(n), "each decision about a pool of %d took less than %s", mergesPerPool, slowest)
		AddReportEntry(fmt.Sprintf("%d decisions at rest, %.1f ms each", n,
			1000*(after.GetSampleSum()-before.GetSampleSum())/float64(n)))
	}, SpecTimeout(20*time.Minute))
})

func queue(name string) *schedulingv1beta1.Queue {
	q := &schedulingv1beta1.Queue{Spec: schedulingv1beta1.QueueSpec{Weight: 1}}
	q.Name = name
	return q
}

// createAll creates the merges, each with a full model that is an hour old and one increment.
func createAll(ctx context.Context, c client.Client, stores string, names []string) {
	GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	marker := time.Now().Add(-time.Hour)
	for _, pool := range names {
		for i := range mergesPerPool {
			group.Go(func() error {
				name := fmt.Sprintf("%s-m%03d", pool, i)
				full := filepath.Join(stores, name, "full", "base")
				for _, folder := range []string{full, filepath.Join(stores, name, "inc")} {
					if err := os.MkdirAll(folder, 0o700); err != nil {
						return err
					}
				}
				for _, object := range []string{"model", "_SUCCESS"} {
					if err := os.WriteFile(filepath.Join(full, object), nil, 0o600); err != nil {
						return err
					}
				}
				if err := os.Chtimes(filepath.Join(full, "_SUCCESS"), marker, marker); err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(stores, name, "inc", "000001"), nil, 0o600); err != nil {
					return err
				}
				return c.Create(ctx, testutil.Merge(name).Pool(pool).Store(v1beta1.ModelStore{
					Type: v1beta1.StoreFile, File: &v1beta1.FileStore{Path: filepath.Join(stores, name)},
				}).Obj())
			})
		}
	}
	Expect(group.Wait()).To(Succeed(), "every merge is created")
}

// decisions is the histogram of how long decisions took.
func decisions(ctx context.Context, address string) *dto.Histogram {
	GinkgoHelper()
	families, err := testutil.ReadMetrics(ctx, address)
	Expect(err).NotTo(HaveOccurred(), "the operator serves metrics that Prometheus can read")
	family := families["tideline_merge_decision_seconds"]
	Expect(family).NotTo(BeNil())
	return family.GetMetric()[0].GetHistogram()
}

// within counts decisions that took less than slowest.
func within(h *dto.Histogram) uint64 {
	for _, b := range h.GetBucket() {
		if b.GetUpperBound() == slowest.Seconds() {
			return b.GetCumulativeCount()
		}
	}
	return 0
}
