package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestCluster shares one cluster of two nodes with four GPUs each. Its subtests
// run in order, each in a namespace of its own that is empty afterwards.
func TestCluster(t *testing.T) {
	t.Parallel()
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	c := start(t, Options{GPUNodes: 2, GPUsPerNode: 4, AuditLog: auditLog})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"a gang runs", testGang},
		{"init containers and sidecars", testContainers},
		{"the fullest node first", testBinpack},
		{"a gang waits whole until a node is added", testGangWaits},
		{"a gang takes as much surplus as it needs", testGangTakesSurplus},
		{"a gang that needs more than the surplus takes none", testGangTooLarge},
		{"surplus takes from nobody", testSurplusTakesNothing},
		{"a status set by the test stays", testStatusStays},
		{"manual pods", testManualPods},
		{"only the pods of batch Jobs complete", testJobs},
		{"GPUs of a node change", testSetNodeGPUs},
		{"webhooks refuse", testWebhooksRefuse},
		{"the configuration is published", testSchedulerConf},
		{"a service account has its own role", testServiceAccount},
		{"the API server restarts", testRestart},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newFixture(t, c)) })
	}
	checkAuditLog(t, auditLog)
	stop(t, c)
}

// Volcano is added to a cluster that started without, while another one runs.
func TestInstallVolcanoLater(t *testing.T) {
	t.Parallel()
	c := start(t, Options{GPUNodes: 1, NoVolcano: true})
	_, err := c.dynamic.Resource(queues).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("listing Queues without Volcano: %v, want NotFound", err)
	}
	if err := c.InstallVolcano(t.Context()); err != nil {
		t.Fatal(err)
	}
	testGang(t, newFixture(t, c))
	stop(t, c)
}

// A scheduler that refuses its configuration ends the start at once.
func TestStartFails(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "broken.conf")
	if err := os.WriteFile(conf, []byte("actions: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{SchedulerConf: conf, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "vc-scheduler.log")) {
		t.Fatalf("Start with a broken scheduler configuration = %v, want an error that names the log", err)
	}
	checkNothingRuns(t, dir)
}

func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if exists(c.state.path) { // the test failed before it called stop
			_ = c.Stop()
		}
	})
	return c
}

func stop(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if exists(c.state.path) || exists(c.KubeconfigPath()) {
		t.Errorf("%s or %s is left", c.state.path, c.KubeconfigPath())
	}
	checkNothingRuns(t, c.state.path)
}

// checkNothingRuns looks for processes that work in a state folder.
func checkNothingRuns(t *testing.T, stateDir string) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, cwd := range folders {
		if dir, err := os.Readlink(cwd); err == nil && strings.HasPrefix(dir, stateDir) {
			t.Errorf("process %s still works in %s", filepath.Base(filepath.Dir(cwd)), dir)
		}
	}
}

func testStatusStays(t *testing.T, f *fixture) {
	f.gang("work", 2, 2, 1)
	f.eventuallyPhase(corev1.PodRunning, "work-0", "work-1")
	f.setPhase("work-0", corev1.PodSucceeded)
	f.setPhase("work-1", corev1.PodFailed)
	// By the time KWOK has made a later pod Running, it has seen both changes.
	f.gang("later", 1, 1, 1)
	f.eventuallyPhase(corev1.PodRunning, "later-0")
	f.checkPhase(corev1.PodSucceeded, "work-0")
	f.checkPhase(corev1.PodFailed, "work-1")
}

func testManualPods(t *testing.T, f *fixture) {
	f.gang("manual", 1, 1, 1, func(p *corev1.Pod) { p.Annotations[ManualAnnotation] = "true" })
	f.gang("other", 1, 1, 1)
	f.eventuallyPhase(corev1.PodRunning, "other-0")
	f.eventuallyBound("manual-0")
	f.checkPhase(corev1.PodPending, "manual-0")
	f.setPhase("manual-0", corev1.PodRunning)
	f.deletePod("manual-0")
	f.eventually("manual-0 to be gone", func() error {
		_, err := f.pods().Get(f.ctx, "manual-0", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("Get = %w", err)
	})
}

func testServiceAccount(t *testing.T, f *fixture) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}
	if _, err := f.client.CoreV1().ServiceAccounts(f.namespace).Create(f.ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := f.KubeconfigFor(f.ctx, f.namespace, "operator", path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := client.CoreV1().Pods(f.namespace).List(f.ctx, metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("listing pods without a role: %v, want Forbidden", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "operator", Namespace: f.namespace}},
	}
	if _, err := f.client.RbacV1().RoleBindings(f.namespace).Create(f.ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the role to count", list)
}

func testRestart(t *testing.T, f *fixture) {
	f.gang("before", 1, 1, 1)
	f.eventuallyPhase(corev1.PodRunning, "before-0")
	f.StopAPIServer()
	if _, err := f.pods().List(f.ctx, metav1.ListOptions{}); err == nil {
		t.Error("the API server answers after it was stopped")
	}
	if err := f.StartAPIServer(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.checkPhase(corev1.PodRunning, "before-0")
	f.gang("after", 2, 2, 1)
	f.eventuallyPhase(corev1.PodRunning, "after-0", "after-1")
}

// checkAuditLog reads who did what: the log is what write counts rest on.
func checkAuditLog(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	users := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var event struct {
			Level, Stage string
			User         struct{ Username string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if event.Level != "Metadata" || event.Stage != "ResponseComplete" {
			t.Fatalf("an event of level %s and stage %s", event.Level, event.Stage)
		}
		users[event.User.Username] = true
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, want := range []string{"admin", schedulerUser, "system:serviceaccount:a-service-account-has-its-own-role:operator"} {
		if !users[want] {
			t.Errorf("no request of %s in the audit log; it has %v", want, users)
		}
	}
}

// eventuallyTimeout is far above the seconds that anything here takes.
const eventuallyTimeout = 60 * time.Second
