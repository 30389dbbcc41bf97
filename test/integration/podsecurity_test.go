package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// enforceLabel is by which a namespace says what its pods may at most.
const enforceLabel = "pod-security.kubernetes.io/enforce"

var _ = Describe("Pod Security of a namespace holds for workers too:", func() {
	enforce := func(s *testutil.Scenario, level string) {
		s.Patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}},
			`{"metadata":{"labels":{"`+enforceLabel+`":"`+level+`"}}}`)
	}
	modest := func(t *corev1.PodTemplateSpec) {
		t.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		t.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}

	DescribeTable("a template that asks for more stalls its job, which holds no place in the queue",
		func(level, says string, ask func(*corev1.PodSpec)) {
			s := newScenario("podsecurity", 2)
			enforce(s, level)
			s.Submit(s.Job("a").Range(2, 2).Template(modest).Template(func(t *corev1.PodTemplateSpec) { ask(&t.Spec) }))
			Eventually(s.Fetch("a")).Should(testutil.BeStalled(v1beta1.ReasonRejected), "the job says so")
			Expect(s.Read("a").Status.Message).To(And(HavePrefix("Cannot create pod a-worker-0: "),
				ContainSubstring(`violates PodSecurity "`+level+`:latest"`), ContainSubstring(says)), "in the words of the admission")
			Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Service a-workers"), "there is no gang without workers")
			Expect(s.Events(s.Read("a"))).To(ContainElement(HavePrefix("Rejected: ")), "and the event is told")
		},
		Entry("privileges", "baseline", "privileged", func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}),
		Entry("the host's network", "baseline", "host namespaces", func(p *corev1.PodSpec) { p.HostNetwork = true }),
		Entry("the host's processes", "baseline", "host namespaces", func(p *corev1.PodSpec) { p.HostPID = true }),
		Entry("a path of the host", "baseline", "hostPath volumes", func(p *corev1.PodSpec) {
			root := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			p.Volumes = []corev1.Volume{{Name: "root", VolumeSource: root}}
		}),
		Entry("an init container with a capability", "baseline", "non-default capabilities", func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "i", Image: "i", SecurityContext: &corev1.SecurityContext{
				Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}},
			}}}
		}),
		Entry("root", "restricted", "runAsNonRoot", func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil }),
	)

	It("a template that asks for no more trains in the strictest namespace, with everything that Tideline adds", func() {
		s := newScenario("restricted", 3)
		enforce(s, "restricted")
		s.Submit(s.Job("a").Range(1, 2).Template(modest), s.Job("b").Template(modest).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Framework.Type = v1beta1.FrameworkCustom
			job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](5)
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "core and surplus run")
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "a job without torchrun runs")
	})

	It("a job goes on when its namespace allows what it asks for, or is created anew with another template", func() {
		s := newScenario("allowed", 3)
		enforce(s, "restricted")
		s.Submit(s.Job("a").Range(1, 2), s.Job("b").Range(1, 1))
		for _, job := range []string{"a", "b"} {
			Eventually(s.Fetch(job)).Should(testutil.BeStalled(v1beta1.ReasonRejected), "%s is refused", job)
		}
		s.DeleteJob("b")
		s.Submit(s.Job("b").Range(1, 1).Template(modest))
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "with another template it trains")
		enforce(s, "privileged")
		Eventually(s.Fetch("a")).WithTimeout(lookedAtAgain).Should(testutil.Train(2), "it goes on")
		Expect(s.Read("a")).NotTo(testutil.BeStalled(v1beta1.ReasonRejected), "nothing is in its way any more")
		attempts, err := s.Audit.Select(testutil.ByOperator, testutil.Doing("create", "pods"), testutil.Refused)
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(len(attempts)).To(BeNumerically("<", int(lookedAtAgain/time.Second)), "it does not ask all the time")
	})
})
