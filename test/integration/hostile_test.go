package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// hostile is what somebody may write who wants to forge lines and steer terminals: it clears the screen, breaks the line, and
// turns the direction of what follows.
const hostile = "\x1b[2J\r\n{\"level\":\"error\",\"msg\":\"forged\"}\n\u202e\a"

var _ = Describe("What users write", func() {
	It("is carried where it belongs, and forges and steers nothing where it is shown", func() {
		s := newScenario("hostile", 2)
		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, hostile+strings.Repeat("q", 300))
		name := "a" + strings.Repeat("-9", 26) + "z" // 54 characters, the longest for workers 0 and 1
		s.Submit(s.Job(name).Range(2, 2).Owner(hostile + strings.Repeat("é", 256-len([]rune(hostile)))).
			Template(func(t *corev1.PodTemplateSpec) {
				t.Labels = map[string]string{strings.Repeat("p", 63) + ".example/" + strings.Repeat("n", 63): strings.Repeat("v", 63)}
				t.Annotations = map[string]string{"example.com/note": hostile + strings.Repeat("x", 60_000)}
				t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "a $(b); c", Value: hostile}}
				t.Spec.Containers[0].Args = []string{hostile}
			}))
		Eventually(s.Fetch(name)).Should(testutil.HaveReason(v1beta1.ReasonQueueNotFound), "no queue has such a name")
		expectPlain(s, name)

		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, "default")
		Eventually(s.Fetch(name)).Should(testutil.Train(2), "pods may have all of it")
		pod := s.Worker(name, 1)
		Expect(pod.Annotations).To(HaveKeyWithValue(v1beta1.AnnotationOwner, s.Read(name).Spec.Owner), "as it is")
		Expect(pod.Labels).To(HaveKeyWithValue(v1beta1.LabelOwnerHash, MatchRegexp(`^[0-9a-f]{16}$`)), "and to select by")
		Expect(pod.Spec.Hostname).To(HaveLen(63), "the longest host name")

		s.Fail(name, 1, 3, hostile+strings.Repeat("\U0001F4A3", 1000)+"\n"+hostile[:len(hostile)-1]+"the last line")
		Eventually(s.Fetch(name)).Should(testutil.HaveRestarts(1), "a worker is lost")
		failure := s.Read(name).Status.LastFailure
		Expect(failure.Message).To(And(beLine(), HaveSuffix("the last line")), "its last words are on the job")
		expectPlain(s, name)
		lines := strings.Split(strings.TrimSuffix(kubectl(s, "get", "etj", "-o", "wide"), "\n"), "\n")
		Expect(lines).To(And(HaveLen(2), HaveEach(beLine())), "kubectl shows one line for the job")
	})
})

// beLine holds for a text that neither breaks a line nor steers a terminal.
func beLine() types.GomegaMatcher {
	return WithTransform(func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' })
	}, BeFalse())
}

// expectPlain holds what the operator says of a job to be plain lines: in status, in events and in its log.
func expectPlain(s *testutil.Scenario, name string) {
	GinkgoHelper()
	job := s.Read(name)
	status, err := json.Marshal(job.Status)
	Expect(err).NotTo(HaveOccurred(), "the status is written")
	Expect(len(status)).To(BeNumerically("<", 64<<10), "the status stays small")
	said := []string{job.Status.Message, job.Status.Queue}
	for _, c := range job.Status.Conditions {
		said = append(said, c.Message)
	}
	events, err := s.Events(job)
	Expect(err).NotTo(HaveOccurred(), "the events are read")
	Expect(append(said, events...)).To(HaveEach(beLine()), "what is said of it")

	Eventually(func(g Gomega) {
		log, err := os.ReadFile(filepath.Join(filepath.Dir(s.AuditLog), "operator.log"))
		g.Expect(err).NotTo(HaveOccurred(), "the operator's log is read")
		about := 0
		for written := range bytes.Lines(log) {
			var line struct{ Level, Msg, Job string }
			if !bytes.Contains(written, []byte("forged")) && !bytes.Contains(written, []byte(s.Namespace)) {
				continue
			}
			g.Expect(json.Unmarshal(written, &line)).To(Succeed(), "each line is one of the operator's: %s", written)
			g.Expect(line.Msg).NotTo(Equal("forged"), "and none is a user's")
			if line.Job == s.Namespace+"/"+name {
				about++
			}
		}
		g.Expect(about).To(BeNumerically(">", 0), "the log speaks of the job, after its status does")
	}).Should(Succeed(), "its log has lines of the operator alone")
}
