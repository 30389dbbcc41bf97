package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// submitsByPython submits job sys.argv[1] with tier sys.argv[2], by kubectl sys.argv[3:] or else as a pod would, whose account is
// in the folder $ACCOUNT.
const submitsByPython = `
import os, sys, tideline
api = tideline.Kubectl(sys.argv[3:]) if sys.argv[3:] else tideline.InCluster(os.environ["ACCOUNT"])
script = os.environ.get("SCRIPT", "train.py")
job = tideline.Job(sys.argv[1], image="registry.example/a:1", script=script, workers=(1, 2), tier=sys.argv[2])
try:
    run = tideline.submit(job, namespace=os.environ.get("NAMESPACE"), api=api)
    print("submitted", flush=True)
    print(run.wait(timeout=120, tell=print)["phase"])
except tideline.TidelineError as e:
    sys.exit(f"{type(e).__name__}: {e}")
`

// submitByPython has the specs of webhooks that are about the module for Python.
func submitByPython(scenario func(name string, gpus ...int64) *testutil.Scenario) {
	It("judge what the module for Python submits, which ends as its job does", func(ctx SpecContext) {
		if _, err := exec.LookPath("python3"); err != nil {
			Skip("there is no python3 here")
		}
		s := scenario("python", 2)
		folder := GinkgoT().TempDir()
		write := func(name, content string) {
			Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
		}
		write("train.py", "print('step')\n")
		module, err := filepath.Abs("../../docs/examples/python")
		Expect(err).NotTo(HaveOccurred())
		type result struct {
			Said, Complained string
			Failed           bool
		}
		python := func(env []string, arguments ...string) result {
			cmd := exec.CommandContext(ctx, "python3", append([]string{"-c", submitsByPython}, arguments...)...)
			cmd.Dir = folder
			cmd.Env = append(os.Environ(), append(env, "PYTHONPATH="+module, "PYTHONDONTWRITEBYTECODE=1")...)
			var said, complained bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &complained
			err := cmd.Run()
			return result{said.String(), complained.String(), err != nil}
		}
		carried := func(job string) func() error {
			return func() error {
				return s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: job + "-script"}, &corev1.ConfigMap{})
			}
		}

		By("a user with kubectl and the role edit")
		Expect(kubectl(s, "get", "etj")).To(BeEmpty())
		program, err := cluster.Kubectl(ctx, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		user := []string{"KUBECONFIG=" + s.Kubeconfig, "NAMESPACE=" + s.Namespace}
		refused := python(user, "a", "unheard-of", program, "--as="+engineer)
		Expect(refused.Complained).To(And(HavePrefix("Refused: "), ContainSubstring("unheard-of")), "the webhook's words")
		Expect(carried("a")()).To(Satisfy(apierrors.IsNotFound), "nothing is created")
		write("large.py", "")
		Expect(os.Truncate(filepath.Join(folder, "large.py"), 1<<40)).To(Succeed())
		Expect(os.Symlink("/dev/zero", filepath.Join(folder, "endless.py"))).To(Succeed())
		for script, why := range map[string]string{"large.py": "it has 1099511627776 bytes", "endless.py": "it is no file"} {
			Expect(python(append(user, "SCRIPT="+script), "a", "", program).Complained).To(ContainSubstring(why), script)
		}
		ends := make(chan result, 1)
		start := func(env []string, arguments ...string) {
			go func() {
				defer GinkgoRecover()
				ends <- python(env, arguments...)
			}()
		}
		start(user, "good", "", program, "--as="+engineer)
		Eventually(s.Fetch("good")).Should(testutil.Train(2), "it trains")
		Expect(carried("good")()).To(Succeed(), "with its script")
		s.SucceedAll("good")
		var end result
		Eventually(ends).Should(Receive(&end), "the program ends with its job")
		Expect(end.Failed).To(BeFalse(), end.Complained)
		Expect(strings.Split(strings.TrimSpace(end.Said), "\n")).To(And(
			HaveEach(Not(BeEmpty())), ContainElement(HavePrefix("Running, ")), ContainElement("Succeeded")), "it told the story")

		By("a pod")
		start(account(ctx, s, write, folder), "gone", "")
		Eventually(s.Fetch("gone")).Should(testutil.Train(2), "it trains")
		Expect(s.Client.Delete(ctx, s.Read("gone"))).To(Succeed())
		Eventually(ends).Should(Receive(&end), "the program ends with its job")
		Expect(end.Failed).To(BeTrue())
		Expect(end.Complained).To(ContainSubstring("NotSucceeded: " + s.Namespace + "/gone was deleted"))
		Eventually(carried("gone")).Should(Satisfy(apierrors.IsNotFound), "the script goes with its job")
	})
}

// account puts into a folder what a pod finds of its ServiceAccount, which may submit and nothing else, and returns the
// environment that tells of the API server.
func account(ctx SpecContext, s *testutil.Scenario, write func(name, content string), folder string) []string {
	GinkgoHelper()
	name := metav1.ObjectMeta{Namespace: s.Namespace, Name: "submits"}
	robot := &corev1.ServiceAccount{ObjectMeta: name}
	group := v1beta1.GroupVersion.Group
	role := &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"elastictrainingjobs"}, Verbs: []string{"create", "get"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: name.Name}},
	}
	for _, o := range []client.Object{robot, role, binding} {
		Expect(s.Client.Create(ctx, o)).To(Succeed())
	}
	token := &authenticationv1.TokenRequest{}
	Expect(s.Client.SubResource("token").Create(ctx, robot, token)).To(Succeed())
	write("token", token.Status.Token)
	write("ca.crt", string(s.Config.CAData))
	write("namespace", s.Namespace)
	host, port, found := strings.Cut(strings.TrimPrefix(s.Config.Host, "https://"), ":")
	Expect(found).To(BeTrue(), s.Config.Host)
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "ACCOUNT=" + folder}
}
