package install

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

// target is a cluster of a spec's own, on which Tideline is installed as users do it.
type target struct {
	*testutil.World

	cluster   *cluster.Cluster
	dir       string               // of all logs
	operators []*testutil.Operator // all that were ever started
}

// newTarget starts a cluster, which ends with the spec. One large node that no scenario uses lets Volcano admit every gang.
func newTarget(ctx context.Context) *target {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "tideline-suite-")
	Expect(err).NotTo(HaveOccurred(), "there is room for logs")
	t := &target{dir: dir}
	auditLog := filepath.Join(dir, "audit.log")
	t.cluster, err = cluster.Start(ctx, cluster.Options{
		GPUNodes: 1, GPUsPerNode: 256, SchedulePeriod: 200 * time.Millisecond,
		Dir: filepath.Join(dir, "cluster"), AuditLog: auditLog, Log: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred(), "the cluster starts")
	DeferCleanup(t.end)
	t.World, err = testutil.NewWorld(t.cluster.KubeconfigPath(), auditLog)
	Expect(err).NotTo(HaveOccurred(), "the cluster is reached")
	return t
}

func (t *target) end() {
	var errs []error
	for _, operator := range t.operators {
		if operator.Ended() == nil {
			errs = append(errs, operator.Stop())
		}
		errs = append(errs, operator.Misbehavior())
	}
	errs = append(errs, t.Forbidden(), t.cluster.Stop())
	Expect(errors.Join(errs...)).To(Succeed(), "all ends in order and the operators' logs are clean; the logs are in %s", t.dir)
	if CurrentSpecReport().Failed() {
		AddReportEntry("The logs of all processes are in " + t.dir)
		return
	}
	Expect(os.RemoveAll(t.dir)).To(Succeed(), "nothing is left behind")
}

// kubectl runs kubectl as an admin.
func (t *target) kubectl(ctx context.Context, input []byte, arguments ...string) {
	GinkgoHelper()
	program, err := cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred(), "there is a kubectl")
	output(ctx, []string{"KUBECONFIG=" + t.Kubeconfig}, input, program, arguments...)
}

// tideline runs a command of this version as an admin, and returns what it prints, whatever its exit code.
func (t *target) tideline(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, thisVersion.Program, arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+t.Kubeconfig)
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred(), "tideline runs")
	}
	return string(said)
}

// apply does with objects of a version what `kubectl apply -k` does, except with the Deployment, for which processes stand. The
// API server calls webhooks at address.
func (t *target) apply(ctx context.Context, objects []*unstructured.Unstructured, address string) {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	for _, o := range objects {
		switch o = o.DeepCopy(); {
		case o.GetKind() == "Deployment":
			continue
		case strings.HasSuffix(o.GetKind(), "WebhookConfiguration"):
			cluster.PointWebhooks(o, "https://"+address, nil)
		}
		list.Items = append(list.Items, *o)
	}
	content, err := json.Marshal(list)
	Expect(err).NotTo(HaveOccurred(), "objects are JSON")
	t.kubectl(ctx, content, "apply", "--request-timeout=30s", "-f", "-")
	t.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--selector=app.kubernetes.io/name=tideline")
}

// launch starts an operator as its Deployment does, and returns at once. It serves webhooks at address, and logs under its name.
func (t *target) launch(ctx context.Context, in installation, name, address string) *testutil.Operator {
	GinkgoHelper()
	kubeconfig := filepath.Join(t.dir, name+".kubeconfig")
	Expect(t.cluster.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, kubeconfig)).To(Succeed(),
		"the operator has a token")
	operator := testutil.NewOperator(testutil.OperatorOptions{
		Program: in.version.Program, Kubeconfig: kubeconfig, Log: filepath.Join(t.dir, name+".log"),
		Kinds:  upgrade.Kinds(in.objects),
		Former: in.former,
		Args: slices.Concat(in.arguments, []string{
			"--leader-election-namespace=" + testutil.OperatorNamespace, "--webhooks", "--webhook-bind-address=" + address,
		}),
	})
	t.operators = append(t.operators, operator)
	Expect(operator.Launch(ctx)).To(Succeed(), "operator %s is started", name)
	return operator
}

// freeAddress is an address for webhooks.
func freeAddress() string {
	GinkgoHelper()
	address, err := testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for webhooks")
	return address
}
