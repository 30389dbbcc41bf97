package sizing

import (
	"fmt"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// numbers are the values of samples in an answer of Prometheus.
var numbers = regexp.MustCompile(`,"[^"]*"\]`)

const enforce, recommend = v1beta1.SizingEnforce, v1beta1.SizingRecommend

// oneBucket is how far CPU may be above what is exact.
const oneBucket = 1.05

var _ = Describe("Sizing", Ordered, func() {
	var f *fixture
	BeforeAll(func(ctx SpecContext) { f = begin(ctx) })

	// known waits until all of a task's past is known, which jobs say that change nothing for themselves.
	known := func(task, says string) {
		GinkgoHelper()
		n := 0
		Eventually(func() string {
			name := fmt.Sprintf("probe-%s-%d", task, n)
			n++
			j := f.runs(f.job(name, task, recommend))
			defer f.DeleteJob(name)
			return messageOf(j, "cpu")
		}).WithTimeout(3*time.Minute).WithPolling(time.Second).Should(ContainSubstring(says), "what task %s used is known", task)
	}
	const twoWeeks = "over 14 of 14 days"

	It("behaviour 1: requests follow two weeks' use, with the tier's buffer", func() {
		known("steady", twoWeeks)
		small := f.runs(f.job("small", "steady", enforce))
		cpu, memory := f.asks("small", 1)
		Expect(cpu).To(And(BeNumerically(">=", 3.07), BeNumerically("<=", 3.08*oneBucket)))
		Expect(memory).To(BeNumerically("~", 10.4, 0.01))
		Expect(small.Status.Sizing.Summary).To(MatchRegexp(`^cpu 16→3\.\d+, memory 64Gi→10\.4Gi$`))
		Expect(small.Status.Sizing.Resources).To(ContainElement(And(HaveField("Role", "worker"), HaveField("Resource", "cpu"),
			HaveField("Message", MatchRegexp(`^2\S* processors in use over 14 of 14 days × 1\.54 = 3\.\d+\.$`)))))
		Expect(small.Status.Sizing.Accelerators).To(HavePrefix("The accelerators were in use 12 % of the time that the task " +
			"held them in the " +
			"last 14 days, with at most 4Gi of memory on one. Use fewer workers,"))
		Eventually(func() ([]string, error) { return f.Events(small) }).Should(ContainElement(
			HavePrefix("Sized: By what was used, containers request: trainer of master cpu 3.")))

		main := f.runs(f.job("main", "steady", enforce).Tier("main-traffic"))
		cpu, memory = f.asks("main", 0)
		Expect(cpu).To(And(BeNumerically(">=", 3.99), BeNumerically("<=", 4*oneBucket)))
		Expect(memory).To(BeNumerically("~", 12, 0.01))
		Expect(main.Status.Sizing.Mode).To(Equal(enforce))

		advised := f.runs(f.job("advised", "steady", recommend))
		cpu, memory = f.asks("advised", 1)
		Expect([]float64{cpu, memory}).To(Equal([]float64{16, 64}), "advice changes nothing")
		Expect(advised.Status.Sizing.Summary).To(Equal("(" + small.Status.Sizing.Summary + ")"))
	})

	It("behaviour 1: a short history makes it wider, and none cuts nothing", func() {
		known("young", "over 1 of 14 days")
		f.runs(f.job("young-a", "young", enforce))
		cpu, _ := f.asks("young-a", 1)
		Expect(cpu).To(And(BeNumerically(">=", 3.07*1.928), BeNumerically("<=", 3.08*1.929*oneBucket)))

		unknown := f.runs(f.job("unknown-a", "unknown", enforce))
		cpu, memory := f.asks("unknown-a", 1)
		Expect([]float64{cpu, memory}).To(Equal([]float64{16, 64}))
		Expect(reasonOf(unknown, "cpu")).To(Equal(v1beta1.SizedByHistory))
	})

	It("behaviour 3: two weeks at the limits cut nothing", func() {
		known("throttled", "at its CPU limit")
		throttled := f.runs(f.job("throttled-a", "throttled", enforce))
		cpu, memory := f.asks("throttled-a", 1)
		Expect(cpu).To(BeEquivalentTo(16))
		Expect(memory).To(BeNumerically("~", 10.4, 0.01), "of memory it had enough")
		Expect(reasonOf(throttled, "cpu")).To(Equal(v1beta1.SizedHeld))
		full := f.runs(f.job("full-a", "full", enforce))
		Expect(reasonOf(full, "memory")).To(Equal(v1beta1.SizedHeld))
	})

	It("behaviour 3: whoever ran out of memory that was cut gets it back, also in other jobs of the task", func(ctx SpecContext) {
		f.runs(f.job("hungry", "steady", enforce))
		before := f.Worker("hungry", 1).UID
		outOfMemory(f.Scenario, "hungry", 1, 1)
		Eventually(f.Fetch("hungry")).Should(And(testutil.Train(2), HaveField("Status.Attempt.Number", BeEquivalentTo(2))))
		Expect(f.Worker("hungry", 1).UID).NotTo(Equal(before))
		_, memory := f.asks("hungry", 1)
		Expect(memory).To(BeEquivalentTo(64))
		job := f.Read("hungry")
		Expect(job.Status.Restarts).To(BeZero(), "that was not its fault")
		Expect(job.Status.Sizing.Resources).To(ContainElement(And(HaveField("Role", "worker"), HaveField("Resource", "memory"),
			HaveField("Reason", v1beta1.SizedByOOM))))

		other := f.runs(f.job("other", "steady", enforce))
		_, memory = f.asks("other", 1)
		Expect(memory).To(BeEquivalentTo(64), "the task remembers")
		cpu, _ := f.asks("other", 1)
		Expect(cpu).To(BeNumerically("<", 4), "what it has enough of is cut as before")
		Expect(other.Status.Sizing.Mode).To(Equal(enforce))
		f.Operator.Kill()
		Expect(f.Operator.Start(ctx)).To(Succeed())
		known("steady", twoWeeks)
		f.runs(f.job("later", "steady", enforce))
		_, memory = f.asks("later", 1)
		Expect(memory).To(BeEquivalentTo(64), "also when the operator was killed")
	})

	It("behaviour 2: on a bad day nothing waits, and nothing is cut anew", func(ctx SpecContext) {
		f.gate.turn(absent)
		f.Operator.Kill()
		Expect(f.Operator.Start(ctx)).To(Succeed())
		for i, is := range []weather{absent, failing, slow, warning, numbless} {
			f.gate.turn(is)
			Eventually(f.gate.questions).WithTimeout(2*time.Minute).Should(BeNumerically(">", 0), "%s: it is asked", is)
			name := "bad-" + string(rune('a'+i))
			job := f.runs(f.job(name, "unknown-"+name, enforce))
			cpu, memory := f.asks(name, 1)
			Expect([]float64{cpu, memory}).To(Equal([]float64{16, 64}), "%s", is)
			Expect(reasonOf(job, "cpu")).To(BeElementOf(v1beta1.SizedByMetrics, v1beta1.SizedByHistory), "%s", is)
			f.DeleteJob(name)
		}
		f.gate.turn(fair)
	})

	It("tells what it knows of a task", func(ctx SpecContext) {
		said, code, err := f.Command(ctx, "sizing", f.Scenario.Namespace+"/throttled", "--config="+f.configuration,
			"--tier=main-traffic")
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), said)
		Expect(said).To(And(ContainSubstring("worker/trainer"), ContainSubstring("100 %"),
			ContainSubstring("cpu in tier main-traffic: The container ran at its CPU limit"),
			ContainSubstring("memory in tier main-traffic: 8Gi peak memory over ")))
	})
})

// messageOf is what is said of a resource of the workers.
func messageOf(job *v1beta1.ElasticTrainingJob, resource corev1.ResourceName) string {
	return sized(job, resource).Message
}

// reasonOf is why a resource of the workers was sized as it was.
func reasonOf(job *v1beta1.ElasticTrainingJob, resource corev1.ResourceName) string {
	return sized(job, resource).Reason
}

// sized is what became of a resource of the workers.
func sized(job *v1beta1.ElasticTrainingJob, resource corev1.ResourceName) v1beta1.SizedResource {
	if job.Status.Sizing != nil {
		for _, r := range job.Status.Sizing.Resources {
			if r.Role == "worker" && r.Resource == string(resource) {
				return r
			}
		}
	}
	return v1beta1.SizedResource{Reason: "the resource was not sized"}
}
