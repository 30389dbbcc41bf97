package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// goldTier is a configuration with a tier of which no installation has the PriorityClasses.
const goldTier = `apiVersion: config.tideline.io/v1alpha1
kind: Configuration
tiers:
- {name: exploratory, priority: 1000, surplusPriority: -300}
- {name: gold, priority: 200000, surplusPriority: -50, qos: Guaranteed}
`

// A cluster of its own, because it begins without Volcano. Its operator looks at objects when a watch tells of them and not every
// few seconds besides, which elsewhere might hide a watch that is missing. Late, because the specs that take longest come first
// and leave room at the end.
var _ = Describe("An operator at its defaults", Ordered, SpecPriority(-1), func() {
	var in *testutil.Installation
	var metrics string
	BeforeAll(func(ctx SpecContext) {
		var err error
		metrics, err = testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
		in = shared.Own(ctx, cluster.Options{GPUNodes: -1, NoVolcano: true}, "--resync-period=10h",
			"--metrics-bind-address="+metrics, "--metrics-secure=false")
	})

	It("says on every job, and once in its log, that Volcano is missing, and goes on when it is installed", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "novolcano", 4)
		said := func(words string) func() (int, error) {
			return func() (int, error) {
				log, err := in.Operator.Log()
				return strings.Count(string(log), words), err
			}
		}
		s.Submit(s.Job("a").Range(1, 2), s.Job("b").Range(2, 2))
		for _, job := range []string{"a", "b"} {
			Eventually(s.Fetch(job)).Should(And(
				testutil.Wait(v1beta1.ReasonVolcanoMissing),
				testutil.HaveCondition(v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonVolcanoMissing),
				testutil.HaveCondition(v1beta1.ConditionReconciling, metav1.ConditionTrue, v1beta1.ReasonVolcanoMissing),
			), "job %s says so", job)
			Expect(s.Read(job).Status.Message).To(Equal("The API server does not serve PodGroup (scheduling.volcano.sh/v1beta1) and "+
				"Queue (scheduling.volcano.sh/v1beta1). Install Volcano; the job then continues by itself."), "and what to do")
		}
		// The operator asks every 5 s whether Volcano is there.
		Consistently(said("The API server does not serve all kinds")).WithTimeout(12*time.Second).Should(Equal(1), "logged once")
		Expect(s.Workers("a")()).To(BeEmpty(), "nothing is created meanwhile")

		Expect(in.Cluster.InstallVolcano(ctx)).To(Succeed(), "Volcano is installed")
		for _, job := range []string{"a", "b"} {
			Eventually(s.Fetch(job)).Should(testutil.Train(2), "job %s goes on", job)
		}
		Expect(said("The API server does not serve all kinds")()).To(Equal(1), "the log says it no second time")
		Expect(said("The API server serves all kinds now")()).To(Equal(1), "and that it goes on, once")
	})

	It("follows Queues and the annotation of a namespace", func() {
		s := in.NewScenario(GinkgoT(), "watches", 4)
		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, "there-is-none")
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonQueueNotFound), "the queue is missing")
		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, s.Namespace)
		Eventually(func() (string, error) {
			job, err := s.Fetch("a")()
			return job.Status.Queue, err
		}).Should(Equal(s.Namespace), "the annotation is followed")
		queue := s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1})
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "the queue's creation is followed")

		closeQueue(s, queue)
		s.Submit(s.Job("b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Wait(v1beta1.ReasonQueueClosed), "the queue is closed")
		openQueue(s, queue)
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "the queue's opening is followed")
	})

	It("follows the objects of a job", func() {
		s := in.NewScenario(GinkgoT(), "objects", 2)
		s.Submit(s.Job("a").Range(1, 2))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Delete(testutil.Get(s, &corev1.Service{}, "a-workers"))
		Eventually(s.Remains).Should(ContainElement("Service a-workers"), "the Service's deletion is followed")
		s.Delete(testutil.Get(s, &schedulingv1beta1.PodGroup{}, "a"))
		Eventually(s.Remains).Should(ContainElement("PodGroup a"), "a PodGroup's deletion is followed")
		s.DeleteWorker("a", 0)
		Eventually(s.Fetch("a")).Should(And(testutil.HaveRestarts(1), testutil.Train(2)), "a pod's deletion is followed")
		s.Patch(s.Read("a"), `{"spec":{"maxReplicas":1}}`)
		Eventually(s.Workers("a")).Should(Equal([]int{0}), "a change of the job is followed")
	})

	It("counts for Prometheus what it does", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "metrics", 4)
		before := scrape(ctx, metrics)
		rise := func(sample string) func() float64 {
			return func() float64 { return scrape(ctx, metrics)[sample] - before[sample] }
		}
		s.Submit(s.Job("a").Range(2, 4).Tier("small-traffic").Cooldown(time.Second))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		Eventually(rise(`tideline_job_wait_seconds{tier="small-traffic"}`)).Should(BeEquivalentTo(1), "one job has waited")
		Expect(rise(`tideline_job_placement_seconds{tier="small-traffic"}`)()).To(BeEquivalentTo(1), "its core was placed")
		Eventually(rise(`tideline_job_resizes_total{cause="growth"}`)).Should(BeNumerically(">", 0), "it grew")
		s.Evict("a", 3)
		Eventually(rise(`tideline_evictions_total{reason="scheduler"}`)).Should(BeEquivalentTo(1), "one worker was evicted")
		Expect(rise(`tideline_restarts_total{cause="error"}`)()).To(BeZero(), "which is no restart")
		s.Fail("a", 1, 3, "out of luck")
		Eventually(rise(`tideline_restarts_total{cause="error"}`)).Should(BeEquivalentTo(1), "one worker failed")
		for _, role := range []string{"core", "surplus"} {
			Eventually(rise(fmt.Sprintf("tideline_gpu_seconds_total{part=%q,tier=%q}", role, "small-traffic"))).
				Should(BeNumerically(">", 1), "the %s held GPUs", role)
		}
		s.DeleteJob("a")
		Eventually(rise(`tideline_jobs{phase="Running"}`)).Should(BeZero(), "as many jobs run as before")
		Expect(scrape(ctx, metrics)).To(HaveKey(HavePrefix("tideline_build_info{")), "the version is known")
	})

	// Last, because the operator has other tiers from here on.
	It("creates the PriorityClasses of tiers that its configuration adds, whose pods are as they promise", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "configuration.yaml")
		Expect(os.WriteFile(file, []byte(goldTier), 0o600)).To(Succeed(), "there is a configuration")
		s := in.NewScenario(GinkgoT(), "tiers", 2)
		before := testutil.Get(s, &schedulingv1.PriorityClass{}, "tideline-exploratory")
		Expect(in.Operator.Stop()).To(Succeed(), "the operator ends")
		in.Operator.AddFlags("--config=" + file)
		Expect(in.Operator.Start(ctx)).To(Succeed(), "and starts with the configuration")
		class := func(name string) func() (int32, error) {
			return func() (int32, error) {
				c := &schedulingv1.PriorityClass{}
				return c.Value, in.Client.Get(ctx, client.ObjectKey{Name: name}, c)
			}
		}
		Eventually(class("tideline-gold")).Should(BeEquivalentTo(200000), "the class of its core")
		Eventually(class("tideline-gold-surplus")).Should(BeEquivalentTo(-50), "and that of its surplus")
		s.Submit(s.Job("a").Range(1, 2).Tier("gold").Asks("1", "1Gi"))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "a job of the tier trains")
		for i := range 2 {
			Expect(s.Worker("a", i).Status.QOSClass).To(Equal(corev1.PodQOSGuaranteed), "worker %d is as the tier promises", i)
		}
		s.Submit(s.Job("b").Tier("gold"))
		Eventually(s.Fetch("b")).Should(testutil.BeStalled(v1beta1.ReasonQoSNotMet), "who does not say how much is needed is refused")
		Expect(testutil.Get(s, &schedulingv1.PriorityClass{}, before.Name).UID).To(Equal(before.UID), "what was there stays")
	})
})
