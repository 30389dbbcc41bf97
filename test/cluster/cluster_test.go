package cluster

import (
	"bufio"
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
	c := start(t, Options{GPUNodes: 2, GPUsPerNode: 4, AuditLog: auditLog, SchedulePeriod: 100 * time.Millisecond})
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"a gang runs", testGang},
		{"init containers and sidecars", testContainers},
		{"the fullest node first", testBinpack},
		{"a gang waits whole until a node is added", testGangWaits},
		{"a gang takes as much surplus as it needs", testGangTakesSurplus},
		{"a gang that needs more than the surplus takes none", testGangTooLarge},
		{"a gang reclaims the share of its queue", testReclaim},
		{"a gang at its minimum is not reclaimed", testReclaimSparesGangs},
		{"nothing is reclaimed from a share", testReclaimSparesShares},
		{"a gang at its minimum stays whole", testGangStaysWhole},
		{"surplus takes from nobody", testSurplusTakesNothing},
		{"a status set by the test stays", testStatusStays},
		{"manual pods", testManualPods},
		{"only the pods of batch Jobs complete", testJobs},
		{"GPUs of a node change", testSetNodeGPUs},
		{"webhooks refuse", testWebhooksRefuse},
		{"the configuration is published", testSchedulerConf},
		{"another configuration", testSetSchedulerConf},
		{"a service account has its own role", testServiceAccount},
		{"the API server restarts", testRestart},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, c)) })
	}
	stop(t, c)
}

// mayWait skips a test that tries the local cluster alone, and starts one for it, where a person waits for the tests.
func mayWait(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a minute and tries the local cluster alone: make test-long runs it")
	}
}

// Volcano is added to a cluster that started without, while another one runs.
func TestInstallVolcanoLater(t *testing.T) {
	mayWait(t)
	t.Parallel()
	c := start(t, Options{GPUNodes: 1, NoVolcano: true})
	_, err := c.dynamic.Resource(queues).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("listing Queues without Volcano: %v, want NotFound", err)
	}
	if err := c.InstallVolcano(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("a gang runs", func(t *testing.T) { testGang(newFixture(t, c)) })
	stop(t, c)
}

// A scheduler that refuses its configuration ends the start at once.
func TestStartFails(t *testing.T) {
	mayWait(t)
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
	t.Cleanup(func() { _ = c.Stop() }) // the test may fail before it stops it
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

func checkNothingRuns(t *testing.T, stateDir string) {
	t.Helper()
	if err := runningIn(stateDir); err != nil {
		t.Error(err)
	}
}

// runningIn names the processes that work in a state folder.
func runningIn(stateDir string) error {
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	errs := []error{err}
	for _, cwd := range folders {
		if dir, err := os.Readlink(cwd); err == nil && strings.HasPrefix(dir, stateDir) {
			errs = append(errs, fmt.Errorf("process %s works in %s", filepath.Base(filepath.Dir(cwd)), dir))
		}
	}
	return errors.Join(errs...)
}

func testStatusStays(f *fixture) {
	f.gang("work", 2, 2, 1)
	f.eventuallyRunning("work-0", "work-1")
	f.setPhase("work-0", corev1.PodSucceeded)
	f.setPhase("work-1", corev1.PodFailed)
	// By the time KWOK has made a later pod Running, it has seen both changes.
	f.gang("later", 1, 1, 1)
	f.eventuallyRunning("later-0")
	f.checkPhase(corev1.PodSucceeded, "work-0")
	f.checkPhase(corev1.PodFailed, "work-1")
}

func testManualPods(f *fixture) {
	f.gang("manual", 1, 1, 1, func(p *corev1.Pod) { p.Annotations[ManualAnnotation] = "true" })
	f.gang("other", 1, 1, 1)
	f.eventuallyRunning("other-0")
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

func testServiceAccount(f *fixture) {
	t := f.t
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
	checkAuditLog(t, f.options.AuditLog, "admin", schedulerUser, "system:serviceaccount:"+f.namespace+":operator")
}

func testRestart(f *fixture) {
	t := f.t
	f.gang("before", 1, 1, 1)
	f.eventuallyRunning("before-0")
	f.StopAPIServer()
	if _, err := f.pods().List(f.ctx, metav1.ListOptions{}); err == nil {
		t.Error("the API server answers after it was stopped")
	}
	if err := f.StartAPIServer(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.checkPhase(corev1.PodRunning, "before-0")
	f.gang("after", 2, 2, 1)
	f.eventuallyRunning("after-0", "after-1")
}

// checkAuditLog reads who did what: the log is what write counts rest on.
func checkAuditLog(t *testing.T, path string, wantUsers ...string) {
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
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range wantUsers {
		if !users[want] {
			t.Errorf("no request of %s in the audit log; it has %v", want, users)
		}
	}
}

// eventuallyTimeout is far above the seconds that anything here takes.
const eventuallyTimeout = 2 * time.Minute
