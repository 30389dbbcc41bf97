// Package sizing shows how requests follow use, on a real API server, a real Volcano and a real Prometheus with two weeks that
// were, with the operator as a real process. Whose the pods of those weeks were is in its ledger, as if it had recorded them.
package sizing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/openmetrics"
	"github.com/tideline-io/tideline/test/testutil/prometheus"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestSizing(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Sizing")
}

// gib is a GiB in bytes.
const gib = 1 << 30

// past is what a task did: its two workers used the same.
type past struct {
	task string
	// days until last midnight for which it ran; 0 for one that ran in the last two hours, about which Prometheus is asked again.
	days int
	// cpu is processors in use, and throttled the share of the time at which they were held down.
	cpu, throttled float64
	// memory and limit are in GiB.
	memory, limit float64
}

// pasts are the tasks that there were. Two weeks of steady are looked at, and count as two also when midnight passes meanwhile.
var pasts = []past{
	{task: "steady", days: 15, cpu: 2, memory: 8, limit: 64},
	{task: "young", days: 1, cpu: 2, memory: 8, limit: 64},
	{task: "throttled", days: 14, cpu: 4, throttled: 0.5, memory: 8, limit: 64},
	{task: "full", days: 14, cpu: 2, memory: 63, limit: 64},
	{task: "recent", cpu: 2, memory: 8, limit: 64},
}

// ran is when the task ran.
func (p past) ran(midnight time.Time) (begin, end time.Time) {
	if p.days == 0 {
		now := time.Now().UTC().Truncate(time.Second)
		return now.Add(-2 * time.Hour), now
	}
	return midnight.AddDate(0, 0, -p.days), midnight
}

// fixture is what the specs share.
type fixture struct {
	*testutil.Installation
	*testutil.Scenario

	prometheus *prometheus.Server
	gate       *gate
	ledger     string
	// configuration is the operator's file.
	configuration string
}

// begin starts everything, with the past in Prometheus and in the ledger.
func begin(ctx context.Context) *fixture {
	GinkgoHelper()
	in := suite.Bare(ctx, cluster.Options{GPUNodes: 4, GPUsPerNode: 16, SchedulePeriod: 100 * time.Millisecond})
	Expect(in.Install(ctx)).To(Succeed(), "Tideline is installed")
	f := &fixture{Installation: in, Scenario: in.NewScenario(GinkgoT(), "ads")}
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	folder := GinkgoT().TempDir()
	f.ledger = filepath.Join(folder, "ledger.db")
	Expect(f.record(ctx, midnight)).To(Succeed(), "the ledger knows the past")
	var err error
	f.prometheus, err = prometheus.Start(ctx, GinkgoWriter, func(to io.Writer) error { return f.used(to, midnight) })
	Expect(err).NotTo(HaveOccurred(), "Prometheus knows the past")
	DeferCleanup(f.prometheus.Stop)
	f.gate = newGate(f.prometheus.URL)
	DeferCleanup(f.gate.Close)
	f.configuration = filepath.Join(folder, "configuration.yaml")
	Expect(os.WriteFile(f.configuration, fmt.Appendf(nil, `apiVersion: config.tideline.io/v1alpha1
kind: Configuration
ledger: {file: %q}
prometheus: {url: %q, timeoutSeconds: 5, intervalSeconds: 60}
`, f.ledger, f.gate.URL), 0o600)).To(Succeed())
	started := in.Operate(ctx, testutil.OperatorOptions{Args: []string{"--config=" + f.configuration}})
	Expect(started).To(Succeed(), "the operator runs")
	return f
}

// each calls a function for each worker of the past.
func each(midnight time.Time, do func(p past, pod string, begin, end time.Time) error) error {
	var errs []error
	for _, p := range pasts {
		for i := range 2 {
			begin, end := p.ran(midnight)
			errs = append(errs, do(p, testutil.WorkerName(p.task, i), begin, end))
		}
	}
	return errors.Join(errs...)
}

// record writes the past to a ledger, as the operator would have.
func (f *fixture) record(ctx context.Context, midnight time.Time) error {
	l, err := ledger.Open(ctx, ledger.Options{File: f.ledger})
	if err != nil {
		return err
	}
	var entries ledger.Entries
	err = each(midnight, func(p past, pod string, begin, end time.Time) error {
		entries.Stays = append(entries.Stays, ledger.Stay{
			Pod: ledger.Pod{
				UID: string(uuid.NewUUID()), Namespace: f.Scenario.Namespace, Name: pod, Node: "gpu-0", Kind: v1beta1.ElasticTrainingJobKind,
				Task: p.task, Run: "1-1", Role: v1beta1.PartCore, Resources: ledger.Resources{"cpu": 16000, "nvidia.com/gpu": 1000},
			},
			Begin: begin, End: end, Final: true, Outcome: ledger.Succeeded,
		})
		return nil
	})
	return errors.Join(err, l.RecordEntries(ctx, entries), l.Close())
}

// used writes what was used.
func (f *fixture) used(to io.Writer, midnight time.Time) error {
	var subjects []openmetrics.Subject
	err := each(midnight, func(p past, pod string, begin, end time.Time) error {
		subjects = append(subjects, openmetrics.Container{
			Namespace: f.Scenario.Namespace, Pod: pod, Name: "trainer", Begin: begin, End: end, CPU: openmetrics.Always(p.cpu),
			Throttled: openmetrics.Always(p.throttled), Memory: openmetrics.Always(p.memory * gib), MemoryLimit: p.limit * gib,
		}, openmetrics.Device{
			Namespace: f.Scenario.Namespace, Pod: pod, UUID: "GPU-" + pod, Begin: begin, End: end, Active: openmetrics.Always(0.12),
			MemoryMiB: openmetrics.Always(4096),
		})
		return nil
	})
	return errors.Join(err, openmetrics.Write(to, time.Minute, subjects...))
}

// job is one of two workers of a task, each of which asks for 16 processors, 64Gi and a GPU.
func (f *fixture) job(name, task string, mode v1beta1.SizingMode) *testutil.JobBuilder {
	return testutil.Job(name).In(f.Scenario.Namespace).Range(2, 2).GPUs(1).Tier("small-traffic").Asks("16", "64Gi").
		With(func(j *v1beta1.ElasticTrainingJob) {
			j.Spec.Task, j.Spec.Sizing = task, &v1beta1.JobSizing{Mode: mode}
		})
}

// runs creates a job and returns it when it runs.
func (f *fixture) runs(b *testutil.JobBuilder) *v1beta1.ElasticTrainingJob {
	GinkgoHelper()
	f.Submit(b)
	name := b.Obj().Name
	Eventually(f.Fetch(name)).Should(testutil.Train(2))
	return f.Read(name)
}

// asks is what the trainer of a worker asks for.
func (f *fixture) asks(job string, i int) (cpu, memory float64) {
	GinkgoHelper()
	r := f.Worker(job, i).Spec.Containers[0].Resources
	Expect(r.Limits.Memory().Cmp(*r.Requests.Memory())).To(BeZero(), "the tier's limit of memory is what is requested")
	return r.Requests.Cpu().AsApproximateFloat64(), r.Requests.Memory().AsApproximateFloat64() / gib
}

// outOfMemory does what a kubelet does when the container is killed for want of memory and restarts where it is, for the nth
// time.
func outOfMemory(s *testutil.Scenario, job string, i, times int) {
	GinkgoHelper()
	s.PatchStatus(job, i, fmt.Sprintf(`"containerStatuses":[{"name":"trainer","image":"trainer","imageID":"","ready":true,`+
		`"restartCount":%d,"state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`, times))
}
