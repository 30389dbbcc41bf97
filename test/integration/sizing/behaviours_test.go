package sizing

import (
	"fmt"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// numbers are the values of samples in an answer of Prometheus.
var numbers = regexp.MustCompile(`,"[^"]*"\]`)

const enforce, recommend = v1alpha1.SizingEnforce, v1alpha1.SizingRecommend

// oneBucket is how far CPU may be above what is exact.
const oneBucket = 1.05

var _ = Describe("Sizing", Ordered, func() {
	var w *world
	BeforeAll(func(ctx SpecContext) { w = begin(ctx) })

	// known waits until all of a task's past is known, which jobs say that change nothing for themselves.
	known := func(task, says string) {
		GinkgoHelper()
		n := 0
		Eventually(func() string {
			name := fmt.Sprintf("probe-%s-%d", task, n)
			n++
			j := w.runs(w.job(name, task, recommend))
			defer w.DeleteJob(name)
			return messageOf(j, "cpu")
		}).WithTimeout(3*time.Minute).WithPolling(time.Second).Should(ContainSubstring(says), "what task %s used is known", task)
	}
	const week = "over 7 of 7 days"

	It("behaviour 1: requests follow a week's use, with the tier's buffer", func() {
		known("steady", week)
		small := w.runs(w.job("small", "steady", enforce))
		cpu, memory := w.asks("small", 1)
		Expect(cpu).To(And(BeNumerically(">=", 3.07), BeNumerically("<=", 3.08*oneBucket)))
		Expect(memory).To(BeNumerically("~", 10.4, 0.01))
		Expect(small.Status.Sizing.Summary).To(MatchRegexp(`^cpu 16→3\.\d+, memory 64Gi→10\.4Gi$`))
		Expect(small.Status.Sizing.Resources).To(ContainElement(And(HaveField("Role", "worker"), HaveField("Resource", "cpu"),
			HaveField("Message", MatchRegexp(`^2\S* processors in use over 7 of 7 days × 1\.54 = 3\.\d+\.$`)))))
		Expect(small.Status.Sizing.Accelerators).To(HavePrefix("Accelerators were in use 12 % of the time that they were held in the " +
			"last 7 days, with at most 4Gi of memory on one: fewer workers"))
		Eventually(func() ([]string, error) { return w.Events(small) }).Should(ContainElement(
			HavePrefix("Sized: By what was used, containers request: trainer of master cpu 3.")))

		main := w.runs(w.job("main", "steady", enforce).Tier("main-traffic"))
		cpu, memory = w.asks("main", 0)
		Expect(cpu).To(And(BeNumerically(">=", 3.99), BeNumerically("<=", 4*oneBucket)))
		Expect(memory).To(BeNumerically("~", 12, 0.01))
		Expect(main.Status.Sizing.Mode).To(Equal(enforce))

		advised := w.runs(w.job("advised", "steady", recommend))
		cpu, memory = w.asks("advised", 1)
		Expect([]float64{cpu, memory}).To(Equal([]float64{16, 64}), "advice changes nothing")
		Expect(advised.Status.Sizing.Summary).To(Equal("(" + small.Status.Sizing.Summary + ")"))
	})

	It("behaviour 1: a short history makes it wider, and none cuts nothing", func() {
		known("young", "over 1 of 7 days")
		w.runs(w.job("young-a", "young", enforce))
		cpu, _ := w.asks("young-a", 1)
		Expect(cpu).To(And(BeNumerically(">=", 3.07*1.857), BeNumerically("<=", 3.08*1.858*oneBucket)))

		unknown := w.runs(w.job("unknown-a", "unknown", enforce))
		cpu, memory := w.asks("unknown-a", 1)
		Expect([]float64{cpu, memory}).To(Equal([]float64{16, 64}))
		Expect(reasonOf(unknown, "cpu")).To(Equal(v1alpha1.SizedByHistory))
	})

	It("behaviour 3: a week at the limits cuts nothing", func() {
		known("throttled", "held down")
		throttled := w.runs(w.job("throttled-a", "throttled", enforce))
		cpu, memory := w.asks("throttled-a", 1)
		Expect(cpu).To(BeEquivalentTo(16))
		Expect(memory).To(BeNumerically("~", 10.4, 0.01), "of memory it had enough")
		Expect(reasonOf(throttled, "cpu")).To(Equal(v1alpha1.SizedHeld))
		full := w.runs(w.job("full-a", "full", enforce))
		Expect(reasonOf(full, "memory")).To(Equal(v1alpha1.SizedHeld))
	})

	It("behaviour 3: whoever ran out of memory that was cut gets it back, also in other jobs of the task", func(ctx SpecContext) {
		w.runs(w.job("hungry", "steady", enforce))
		before := w.Worker("hungry", 1).UID
		w.OutOfMemory("hungry", 1, 1)
		Eventually(w.Fetch("hungry")).Should(And(testutil.Train(2), HaveField("Status.Attempt.Number", BeEquivalentTo(2))))
		Expect(w.Worker("hungry", 1).UID).NotTo(Equal(before))
		_, memory := w.asks("hungry", 1)
		Expect(memory).To(BeEquivalentTo(64))
		job := w.Read("hungry")
		Expect(job.Status.Restarts).To(BeZero(), "that was not its fault")
		Expect(job.Status.Sizing.Resources).To(ContainElement(And(HaveField("Role", "worker"), HaveField("Resource", "memory"),
			HaveField("Reason", v1alpha1.SizedByOOM))))

		other := w.runs(w.job("other", "steady", enforce))
		_, memory = w.asks("other", 1)
		Expect(memory).To(BeEquivalentTo(64), "the task remembers")
		cpu, _ := w.asks("other", 1)
		Expect(cpu).To(BeNumerically("<", 4), "what it has enough of is cut as before")
		Expect(other.Status.Sizing.Mode).To(Equal(enforce))
		w.Operator.Kill()
		Expect(w.Operator.Start(ctx)).To(Succeed())
		known("steady", week)
		w.runs(w.job("later", "steady", enforce))
		_, memory = w.asks("later", 1)
		Expect(memory).To(BeEquivalentTo(64), "also when the operator was killed")
	})

	It("behaviour 2: on a bad day nothing waits, and nothing is cut anew", func(ctx SpecContext) {
		w.gate.turn(absent)
		w.Operator.Kill()
		Expect(w.Operator.Start(ctx)).To(Succeed())
		for i, is := range []weather{absent, failing, slow, warning, numbless} {
			w.gate.turn(is)
			Eventually(w.gate.questions).WithTimeout(2*time.Minute).Should(BeNumerically(">", 0), "%s: it is asked", is)
			name := "bad-" + string(rune('a'+i))
			job := w.runs(w.job(name, "unknown-"+name, enforce))
			cpu, memory := w.asks(name, 1)
			Expect([]float64{cpu, memory}).To(Equal([]float64{16, 64}), "%s", is)
			Expect(reasonOf(job, "cpu")).To(BeElementOf(v1alpha1.SizedByMetrics, v1alpha1.SizedByHistory), "%s", is)
			w.DeleteJob(name)
		}
		w.gate.turn(fair)
	})

	It("tells what it knows of a task", func(ctx SpecContext) {
		said, code, err := w.Sizing(ctx, w.Scenario.Namespace+"/throttled", "--config="+w.configuration, "--tier=main-traffic")
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), said)
		Expect(said).To(And(ContainSubstring("worker/trainer"), ContainSubstring("100 %"),
			ContainSubstring("cpu in tier main-traffic: The container was held down to its CPU limit"),
			ContainSubstring("memory in tier main-traffic: 8Gi peak memory over ")))
	})
})

// messageOf is what is said of a resource of the workers.
func messageOf(job *v1alpha1.ElasticTrainingJob, resource corev1.ResourceName) string {
	return sized(job, resource).Message
}

// reasonOf is why a resource of the workers was sized as it was.
func reasonOf(job *v1alpha1.ElasticTrainingJob, resource corev1.ResourceName) string {
	return sized(job, resource).Reason
}

// sized is what became of a resource of the workers.
func sized(job *v1alpha1.ElasticTrainingJob, resource corev1.ResourceName) v1alpha1.SizedResource {
	if job.Status.Sizing != nil {
		for _, r := range job.Status.Sizing.Resources {
			if r.Role == "worker" && r.Resource == string(resource) {
				return r
			}
		}
	}
	return v1alpha1.SizedResource{Reason: "the resource was not sized"}
}
