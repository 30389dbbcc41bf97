package integration

import (
	"bytes"
	"os"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// engineer is a user who has Kubernetes' role edit in a scenario's namespace, and nothing else.
const engineer = "ml-engineer"

// kubectl runs kubectl in a scenario's namespace, as somebody with the role edit, and returns what it prints.
func kubectl(s *testutil.Scenario, args ...string) string {
	GinkgoHelper()
	stdout, stderr, err := runKubectl(s, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), stderr)
	return stdout
}

// kubectlRefused is kubectl for what the API server must refuse, and returns in which words.
func kubectlRefused(s *testutil.Scenario, args ...string) string {
	GinkgoHelper()
	_, stderr, err := runKubectl(s, args...)
	Expect(err).To(HaveOccurred(), "kubectl %s is refused", strings.Join(args, " "))
	return stderr
}

func runKubectl(s *testutil.Scenario, args ...string) (stdout, stderr string, err error) {
	GinkgoHelper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: engineer},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: engineer}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	Expect(client.IgnoreAlreadyExists(s.Client.Create(s.Context(), binding))).To(Succeed(), "the user is given the role edit")
	program, err := cluster.Kubectl(s.Context(), GinkgoWriter)
	Expect(err).NotTo(HaveOccurred(), "there is a kubectl")
	args = append([]string{"--as=" + engineer, "--namespace=" + s.Namespace, "--request-timeout=30s"}, args...)
	cmd := exec.CommandContext(s.Context(), program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
	var printed, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &complained
	err = cmd.Run()
	return printed.String(), complained.String(), err
}

var _ = Describe("kubectl", func() {
	It("shows jobs in the columns that people read, to everybody with the role edit", func() {
		s := newScenario("columns", 4)
		s.Submit(s.Job("full").Range(2, 2).Owner("alice@example.com"))
		Eventually(s.Fetch("full")).Should(testutil.Train(2), "one job trains")
		s.Submit(s.Job("waits").Range(4, 8).Tier("main-traffic").Asks("1", "1Gi"))
		Eventually(s.Fetch("waits")).Should(testutil.HaveReason("Unschedulable"), "one job waits")

		Expect(table(kubectl(s, "get", "etj"))).To(HaveExactElements(
			[]string{"NAME", "PHASE", "READY", "QUEUE", "TIER", "WHY", "RESTARTS", "AGE"},
			HaveExactElements("full", "Running", "2/2 (2..2)", "default", "exploratory", "Training", "0", MatchRegexp(`^\d+s$`)),
			HaveExactElements("waits", "Pending", "0/4 (4..8)", "default", "main-traffic", "Unschedulable", "0", MatchRegexp(`^\d+s$`)),
		), "the columns of `kubectl get etj`")
		wide := table(kubectl(s, "get", "tideline", "-o", "wide"))
		Expect(wide).To(HaveLen(3), "the category lists both jobs")
		Expect(wide[0][8:]).To(Equal(
			[]string{"OWNER", "ACCELERATORS", "WAIT", "SIZED", "PROGRESS", "STEPS/S", "LEFT", "MESSAGE"}), "wide adds columns")
		Expect(wide[1][8:]).To(HaveExactElements(
			"alice@example.com", "2", MatchRegexp(`^\d+$`), "", "", "", "", "All 2 workers ready."),
			"with their values")
		Expect(wide[2][8]).To(BeEmpty(), "an owner that nobody named")
		unchecked := testutil.HaveCondition(v1beta1.ConditionOwnerChecked, metav1.ConditionFalse, v1beta1.ReasonWebhooksOff)
		Expect(s.Read("full")).To(unchecked, "this operator checks no owners, and says so")
		Expect(kubectl(s, "describe", "etj", "full")).To(MatchRegexp(
			`Normal\s+Scheduled\s.*The core of 2 workers runs in queue default, \d+s after submission\.`), "events tell the story")
		Expect(kubectl(s, "get", "etj", "full", "-o", "jsonpath={.status.selector}")).To(Equal("tideline.io/job=full"),
			"the selector of the scale subresource")
	})
})

// table cuts kubectl's output into its cells, which two spaces or more separate; a cell may be empty.
func table(output string) [][]string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	var begins []int
	for i := range lines[0] {
		if lines[0][i] != ' ' && (i == 0 || lines[0][i-1] == ' ') {
			begins = append(begins, i)
		}
	}
	rows := make([][]string, len(lines))
	for n, line := range lines {
		for i, begin := range begins {
			end := len(line)
			if i+1 < len(begins) {
				end = min(end, begins[i+1])
			}
			rows[n] = append(rows[n], strings.TrimSpace(line[min(begin, len(line)):max(end, min(begin, len(line)))]))
		}
	}
	return rows
}
