package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
)

// client is Helm with a cluster.
type client struct {
	t                   *testing.T
	kubeconfig, kubectl string
}

// command runs a program in the repository, and returns what it prints.
func command(ctx context.Context, t *testing.T, name string, arguments ...string) string {
	t.Helper()
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir = repository
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, arguments, err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// run runs kubectl.
func (c client) run(arguments ...string) string {
	c.t.Helper()
	common := []string{"--kubeconfig", c.kubeconfig, "--request-timeout=30s"}
	return command(c.t.Context(), c.t, c.kubectl, append(common, arguments...)...)
}

// helm is Helm for releases of a namespace.
func (c client) helm(namespace string) *action.Configuration {
	c.t.Helper()
	settings := cli.New()
	settings.KubeConfig = c.kubeconfig
	settings.SetNamespace(namespace)
	configuration := action.NewConfiguration()
	if err := configuration.Init(settings.RESTClientGetter(), namespace, "secrets"); err != nil {
		c.t.Fatal(err)
	}
	return configuration
}

func (c client) install(name, namespace string, own values) error {
	c.t.Helper()
	install := action.NewInstall(c.helm(namespace))
	install.ReleaseName, install.Namespace, install.CreateNamespace = name, namespace, true
	// There are no kubelets, so no Deployment becomes ready.
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, time.Minute
	_, err := install.RunWithContext(c.t.Context(), load(c.t), own)
	return err
}

// upgrade has Helm bring the next version of the chart.
func (c client) upgrade(name string, own values) {
	c.t.Helper()
	upgrade := action.NewUpgrade(c.helm(namespace))
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, kube.HookOnlyStrategy, time.Minute
	next := load(c.t)
	next.Metadata.Version = "99.0.0"
	released, err := upgrade.RunWithContext(c.t.Context(), name, next, own)
	if err != nil {
		c.t.Fatalf("the upgrade of %s: %v, %v", name, released, err)
	}
}

// operate runs the operator beside the cluster, and returns what ends it. Without an operator at the address of the webhooks,
// which Helm installs, no one may create jobs, so they are deleted.
func (c client) operate(program string) (end func()) {
	c.t.Helper()
	c.run("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-l", "app.kubernetes.io/name=tideline")
	runs := exec.CommandContext(context.WithoutCancel(c.t.Context()), program, "run", "--webhooks=false",
		"--health-probe-bind-address=127.0.0.1:0")
	runs.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	if err := runs.Start(); err != nil {
		c.t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = runs.Process.Signal(os.Interrupt); _ = runs.Wait() })
	c.t.Cleanup(end)
	return end
}

// pods are those of the job of config/samples/smallest.yaml, with their UIDs.
func (c client) pods() string {
	c.t.Helper()
	return c.run("get", "pods", "-l", "tideline.io/job=resnet", "-o",
		"jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}")
}

// TestReleaseOnACluster: what Helm installs on a bare cluster has a job train; a second release is refused; an upgrade leaves the
// job its pods; and an uninstalled release leaves the job. The operator is a process beside the cluster.
func TestReleaseOnACluster(t *testing.T) {
	if os.Getenv("TIDELINE_HELM") == "" {
		t.Skip("make test-install runs this, with a cluster")
	}
	program := filepath.Join(t.TempDir(), "localcluster")
	operator := filepath.Join(t.TempDir(), "tideline")
	command(t.Context(), t, "go", "build", "-o", program, "./test/cluster/cmd/localcluster")
	command(t.Context(), t, "go", "build", "-o", operator, ".")
	c := client{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	command(t.Context(), t, program, "up", "--gpu-nodes=2", "--gpus-per-node=8", "--kubeconfig="+c.kubeconfig)
	t.Cleanup(func() { command(context.Background(), t, program, "down", "--kubeconfig="+c.kubeconfig) })
	c.kubectl = command(t.Context(), t, program, "kubectl")

	if err := c.install("first", namespace, nil); err != nil {
		t.Fatal(err)
	}
	err := c.install("second", "elsewhere", nil)
	if err == nil || !strings.Contains(err.Error(), "as release first of namespace "+namespace) {
		t.Errorf("a second release: %v", err)
	}
	end := c.operate(operator)
	c.run("apply", "-f", "config/samples/smallest.yaml")
	c.run("wait", "--for=jsonpath={.status.readyReplicas}=8", "--timeout=25s", "elastictrainingjobs/resnet")

	before := c.pods()
	if len(strings.Fields(before)) != 8 {
		t.Fatalf("the pods of the job are %q", before)
	}
	end() // As with its pod.
	c.upgrade("first", values{"configuration": values{"log": values{"level": "debug"}}})
	if files := c.run("-n", namespace, "get", "configmaps", "-o", "jsonpath={.items[*].data}"); !strings.Contains(files, "debug") {
		t.Errorf("the upgrade did not reach the configuration: %s", files)
	}
	c.operate(operator)
	c.run("apply", "-f", "config/samples/job-b.yaml") // There is room for it, and the new operator has it train.
	c.run("wait", "--for=condition=Ready", "--timeout=25s", "elastictrainingjobs", "--all")
	if after := c.pods(); after != before {
		t.Errorf("the upgrade changed the pods of a job that runs: %s, before %s", after, before)
	}
	restarts := c.run("get", "elastictrainingjobs/resnet", "-o", "jsonpath={.status.restarts}")
	if restarts != "" && restarts != "0" {
		t.Errorf("the upgrade cost the job %s restarts", restarts)
	}

	uninstall := action.NewUninstall(c.helm(namespace))
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, time.Minute
	if _, err := uninstall.Run("first"); err != nil {
		t.Fatal(err)
	}
	if left := c.run("get", "elastictrainingjobs", "-o", "name"); left == "" {
		t.Error("helm uninstall deleted the job")
	}
	if left := c.run("get", "clusterroles", "-o", "name"); strings.Contains(left, "tideline-manager") {
		t.Error("helm uninstall left the operator's role")
	}
}
