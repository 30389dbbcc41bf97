package sharing

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// On a cluster of its own, because its operator knows how much is one device, keeps a ledger and makes reports.
var _ = Describe("A part of a GPU", Ordered, func() {
	var in *testutil.Installation
	var file, metrics string
	BeforeAll(func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		configuration := filepath.Join(folder, "configuration.yaml")
		file = filepath.Join(folder, "ledger.db")
		Expect(os.WriteFile(configuration, fmt.Appendf(nil, `apiVersion: %s
kind: %s
ledger: {file: %q}
sharing:
- {resource: volcano.sh/vgpu-cores, countsAs: nvidia.com/gpu, whole: 100, times: volcano.sh/vgpu-number}
- {resource: volcano.sh/vgpu-memory, countsAs: nvidia.com/gpu, whole: 16384, times: volcano.sh/vgpu-number}
`, config.APIVersion, config.Kind, file), 0o600)).To(Succeed(), "there is a configuration")
		var err error
		metrics, err = testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
		in = suite.Own(ctx, options, "--config="+configuration, "--metrics-bind-address="+metrics, "--metrics-secure=false")
	})

	It("counts as a part in caps, GPU-hours and money, beside whole GPUs", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "parts", 1)
		addSharedNode(s, 2)
		s.Create(testutil.Profile("parts").PerUser(2).Obj())
		s.Join("parts")
		s.Submit(s.Job("whole").Range(1, 1).Owner("alice"), s.Job("halves").Range(2, 2).Template(half).Owner("alice"))
		Eventually(s.Fetch("whole")).Should(testutil.Train(1))
		Eventually(s.Fetch("halves")).Should(testutil.Train(2))
		device := s.Worker("halves", 0).Annotations[placedOn]
		Expect(s.Worker("halves", 1).Annotations[placedOn]).To(Equal(device), "both are on one device")

		s.Submit(s.Job("third").Range(1, 1).Template(half).Owner("alice"))
		Eventually(s.Fetch("third")).Should(testutil.Wait(v1beta1.ReasonQuotaExceeded), "there is room, and her cap is reached")
		Expect(s.Read("third").Status.Message).To(Equal("alice may hold at most 2 nvidia.com/gpu (profile parts). 2 nvidia.com/gpu " +
			"in use, and the job asks for 0.5 nvidia.com/gpu. The job starts by itself when enough is released."))
		s.Submit(s.Job("others").Range(1, 1).Template(half).Owner("bob"))
		Eventually(s.Fetch("others")).Should(testutil.Train(1), "he has a cap of his own")
		Eventually(func() (*v1beta1.ResourceQuotaProfile, error) {
			p := &v1beta1.ResourceQuotaProfile{}
			return p, s.Client.Get(ctx, client.ObjectKey{Name: "parts"}, p)
		}).Should(HaveField("Status.Accelerators", HavePrefix("2.5/")), "a whole one and three halves")

		Eventually(func() (map[string]int64, error) { return held(ctx, file) }).Should(Equal(map[string]int64{
			"whole-worker-0": 1000, "halves-worker-0": 500, "halves-worker-1": 500, "others-worker-0": 500,
		}), "the ledger has thousandths of GPUs")

		// A second of a GPU costs a euro.
		until := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		rows := report(ctx, s, file, until)
		for task, pods := range map[string]map[int]float64{
			"whole": {0: 1}, "halves": {0: 0.5, 1: 0.5}, "others": {0: 0.5},
		} {
			seconds := 0.0
			for i, share := range pods {
				seconds += share * until.Sub(podstate.BoundTime(s.Worker(task, i)).Time).Seconds()
			}
			Expect(rows).To(HaveKey(task))
			Expect(rows[task].Cost).To(Equal(fmt.Sprintf("%.2f", seconds)), "the money of %s", task)
			hours, err := strconv.ParseFloat(rows[task].AcceleratorHours, 64)
			Expect(err).NotTo(HaveOccurred())
			Expect(hours).To(BeNumerically("~", seconds/3600, 0.001), "the GPU-hours of %s", task)
		}
		s.DeleteJob("whole")
		Eventually(s.Fetch("third")).Should(testutil.Train(1), "it trains when she has released enough")
	})

	It("counts as a part of what is free in pieces, beside whole GPUs", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "pieces", 1)
		addSharedNode(s, 1)
		s.Submit(s.Job("half").Range(1, 1).Template(half))
		Eventually(s.Fetch("half")).Should(testutil.Train(1))
		// Nothing of this queue is placed, so that gangs wait which would find room.
		tight := in.NewScenario(GinkgoT(), "tight")
		tight.UseQueue(tight.NewQueue(schedulingv1beta1.QueueSpec{
			Weight: 1, Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
		}))
		waiting := func(name string, asks corev1.ResourceList) *testutil.JobBuilder {
			asks[corev1.ResourceCPU] = resource.MustParse("100m")
			return testutil.Job(name).In(tight.Namespace).Range(1, 1).Template(func(t *corev1.PodTemplateSpec) {
				half(t)
				t.Spec.NodeSelector = map[string]string{testutil.PoolLabel: s.Namespace}
				t.Spec.Containers[0].Resources.Limits = asks
			})
		}
		tight.Submit(
			waiting("three-eighths", corev1.ResourceList{
				vgpus: resource.MustParse("1"), memory: resource.MustParse("6144"), cores: resource.MustParse("37"),
			}), waiting("whole", corev1.ResourceList{testutil.GPUResource: resource.MustParse("1")}))
		unusable := func() (map[string]float64, error) { return unusableFor(ctx, metrics, tight.Read("whole").Status.Queue) }
		Eventually(unusable).WithTimeout(90*time.Second).Should(Equal(map[string]float64{
			string(vgpus): 0.25, string(testutil.GPUResource): 0,
		}), "of the half that is free an eighth of a device is left over, and the whole GPU can be used")
	})
})

// held is what the ledger has of pods that hold accelerators now, in thousandths.
func held(ctx context.Context, file string) (map[string]int64, error) {
	l, err := ledger.Open(ctx, ledger.Options{File: file})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	stays, err := l.OpenStays(ctx)
	all := map[string]int64{}
	for i := range stays {
		all[stays[i].Name] = stays[i].Resources[string(testutil.GPUResource)]
	}
	return all, err
}

// row is what the specs look at in the rows of a report.
type row struct{ Dimension, Task, Cost, AcceleratorHours string }

// report has a report of the last hour made, and returns its rows of tasks.
func report(ctx context.Context, s *testutil.Scenario, file string, until time.Time) map[string]row {
	GinkgoHelper()
	prices := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "prices"}, Data: map[string]string{"prices.yaml": `currency: EUR
prices:
- validFrom: "2020-01-01"
  cpuCoreHour: "0"
  memoryGiBHour: "0"
  accelerators: [{resource: nvidia.com/gpu, hourly: "3600"}]
`},
	}
	r := &v1beta1.CostReport{
		ObjectMeta: metav1.ObjectMeta{Name: "parts", Annotations: map[string]string{
			v1beta1.AnnotationReportUntil: until.Format(time.RFC3339),
		}},
		Spec: v1beta1.CostReportSpec{
			PriceListRef: v1beta1.ObjectRef{Name: prices.Name}, Schedule: "0 0 1 1 *", Window: &metav1.Duration{Duration: time.Hour},
			Profiles: []string{"parts"},
		},
	}
	s.Create(prices, r)
	var content string
	Eventually(func() (string, error) {
		l, err := ledger.Open(ctx, ledger.Options{File: file})
		if err != nil {
			return "", err
		}
		defer func() { _ = l.Close() }()
		kept, err := l.QueryReports(ctx, string(r.UID), r.Name)
		if err != nil || len(kept) == 0 || !kept[0].To.Equal(until) {
			return "", err
		}
		content, _, err = l.ReportFile(ctx, kept[0], "report.json")
		return content, err
	}).Should(HavePrefix("{"), "the report is made")
	var made struct{ Rows []row }
	Expect(json.Unmarshal([]byte(content), &made)).To(Succeed())
	tasks := map[string]row{}
	for _, one := range made.Rows {
		if one.Dimension == "task" {
			tasks[one.Task] = one
		}
	}
	return tasks
}

// unusableFor is the share of what is free that gangs which wait in a queue cannot use, by resource.
func unusableFor(ctx context.Context, address, queue string) (map[string]float64, error) {
	families, err := testutil.ReadMetrics(ctx, address)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for _, m := range families["tideline_capacity_unusable_ratio"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["queue"] == queue && labels["repacked"] == "false" {
			all[labels["resource"]] = m.GetGauge().GetValue()
		}
	}
	return all, nil
}
