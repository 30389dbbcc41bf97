package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// The workload: trainings of one worker and 11 hours, as many in a namespace as are followed there. Each says how far it is every
// ten seconds.
const (
	reporting    = "reports" // in the names of all
	perNamespace = 500
	saysEvery    = 10 * time.Second
	stepsPerLine = 25
	totalSteps   = 100_000
	// watched is for how long it is measured, once all logs are followed.
	watched = 3 * time.Minute
	// mostCPU is what the aim leaves 10,000 such jobs, in cores. docs/decisions/0062-progress-by-lines.md has what fewer take.
	mostCPU = 0.1
)

var _ = Describe("Jobs that tell how far they are", func() {
	// There is no scheduler and no kubelet: this spec binds pods, says that they run, and serves their logs.
	It("cost little, and a status write a minute at most", func(ctx SpecContext) {
		count := 1000
		if given := os.Getenv("TIDELINE_JOBS"); given != "" {
			var err error
			count, err = strconv.Atoi(given)
			Expect(err).NotTo(HaveOccurred(), "TIDELINE_JOBS is how many jobs report")
		}
		GinkgoT().Setenv("CGO_ENABLED", "0") // The figures are those of the operator without the race detector.
		in := suite.Bare(ctx, cluster.Options{NoScheduler: true, GPUNodes: -1})
		Expect(in.Install(ctx)).To(Succeed())
		component, err := testutil.Manifests(ctx, "components/training-progress/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		for _, o := range component {
			Expect(in.Client.Create(ctx, o)).To(Succeed(), "the operator may read logs")
		}
		kubelet := serveLogs(ctx)
		Expect(addNode(ctx, in.World, kubelet)).To(Succeed())
		Expect(bindAndRun(ctx, in.Config)).To(Succeed())
		address, err := testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
		configuration := filepath.Join(GinkgoT().TempDir(), "configuration.yaml")
		content := []byte("apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n")
		Expect(os.WriteFile(configuration, content, 0o600)).To(Succeed())
		_, memory, err := testutil.ShippedMemory(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(in.Operate(ctx, testutil.OperatorOptions{Env: memory, Args: []string{
			"--config=" + configuration, "--metrics-bind-address=" + address, "--metrics-secure=false", "--resync-period=10h",
		}})).To(Succeed())

		Expect(submitReporting(ctx, in.World, count)).To(Succeed())
		Eventually(kubelet.count).WithContext(ctx).WithTimeout(25*time.Minute).WithPolling(time.Second).Should(Equal(count),
			"all logs are followed")
		for settled := time.Now().Add(2 * time.Minute); time.Now().Before(settled); { // All have said enough to have a pace.
			Expect(kubelet.count()).To(Equal(count), "and stay followed")
			pause(ctx, 5*time.Second)
		}
		audit, err := in.AuditNamed(reporting)
		Expect(err).NotTo(HaveOccurred())
		before, began := figures(ctx, address), time.Now()
		pause(ctx, watched)
		after, took := figures(ctx, address), time.Since(began)
		const cpu = "process_cpu_seconds_total"
		cores := (after[cpu] - before[cpu]) / took.Seconds()
		writes := statusWrites(audit)
		most, all := 0, 0
		for _, n := range writes {
			most, all = max(most, n), all+n
		}
		AddReportEntry(fmt.Sprintf("figures: %d jobs that report each %s: %.1f %% of a core, %.2f status writes a job and hour, "+
			"at most %d of one job in %s; memory %.0f MB", count, saysEvery, 100*cores, float64(all)/float64(count)/took.Hours(), most,
			took.Round(time.Second), after["process_resident_memory_bytes"]/1e6))
		Expect(most).To(BeNumerically("<=", int(watched/time.Minute)+1), "a write a minute at most")
		Expect(writes).NotTo(BeEmpty(), "figures are shown")
		Expect(cores).To(BeNumerically("<", mostCPU), "cores")
	}, SpecTimeout(55*time.Minute))
})

// logServer serves logs as a kubelet does: a line each ten seconds as long as they are followed.
type logServer struct {
	*httptest.Server
	port int
	open chan int // one number: how many are followed
}

func serveLogs(ctx context.Context) *logServer {
	s := &logServer{open: make(chan int, 1)}
	s.open <- 0
	// The API server verifies no certificate of kubelets unless it is told whose.
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.follow(ctx, w, r) }))
	DeferCleanup(s.Close)
	s.port = s.Listener.Addr().(*net.TCPAddr).Port
	return s
}

func (s *logServer) count() int {
	n := <-s.open
	s.open <- n
	return n
}

func (s *logServer) follow(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	s.open <- 1 + <-s.open
	defer func() { s.open <- <-s.open - 1 }()
	step := int(rand.Uint32N(totalSteps / 2))
	select { // Not all in the same second.
	case <-r.Context().Done():
		return
	case <-ctx.Done():
		return
	case <-time.After(rand.N(saysEvery)):
	}
	ticker := time.NewTicker(saysEvery)
	defer ticker.Stop()
	for {
		_, err := fmt.Fprintf(w, "%s tideline: step=%d total=%d loss=2.31 checkpoint=%d\n", time.Now().UTC().Format(time.RFC3339Nano),
			step, totalSteps, step/1000*1000)
		if err != nil {
			return
		}
		w.(http.Flusher).Flush()
		step += stepsPerLine
		select {
		case <-r.Context().Done():
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// addNode adds a node that is ready, has room for all, and whose kubelet is the server.
func addNode(ctx context.Context, w *testutil.World, kubelet *logServer) error {
	node := testutil.NewNode("all", "all", 1_000_000)
	delete(node.Annotations, testutil.SimulatedAnnotation)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(kubelet.port)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Driven"}}
	status := node.DeepCopy()
	if err := w.Client.Create(ctx, node); err != nil {
		return err
	}
	before := node.DeepCopy()
	node.Spec.Taints = nil // New nodes are tainted until somebody finds them ready.
	if err := w.Client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return err
	}
	status.ResourceVersion = node.ResourceVersion
	return w.Client.Status().Update(ctx, status)
}

// bindAndRun binds each pod to the only node, and says that it runs, until the context ends.
func bindAndRun(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	changed := make(chan *corev1.Pod, 100_000)
	factory := informers.NewSharedInformerFactory(clientset, 0)
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { changed <- o.(*corev1.Pod) },
		UpdateFunc: func(_, o any) { changed <- o.(*corev1.Pod) },
	})
	if err != nil {
		return err
	}
	for range 16 {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case pod := <-changed:
					_ = advance(ctx, clientset, pod.DeepCopy()) // What failed is seen when it changes again.
				}
			}
		}()
	}
	factory.Start(ctx.Done())
	return nil
}

// advance does to a pod what comes next.
func advance(ctx context.Context, clientset kubernetes.Interface, pod *corev1.Pod) error {
	pods := clientset.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "all"},
		}, metav1.CreateOptions{})
	case pod.Status.Phase != corev1.PodRunning:
		since := metav1.Now()
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &since
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since})
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, Ready: true, ContainerID: "driven://" + string(pod.UID),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
			})
		}
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	}
	return nil
}

// submitReporting creates so many jobs that report.
func submitReporting(ctx context.Context, w *testutil.World, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for first := 0; first < count; first += perNamespace {
		name := fmt.Sprintf("%s-%02d", reporting, first/perNamespace)
		if err := w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		for i := range min(perNamespace, count-first) {
			group.Go(func() error {
				return w.Client.Create(ctx, testutil.Job(fmt.Sprintf("%s-%03d", name, i)).In(name).Range(1, 1).
					With(func(job *v1beta1.ElasticTrainingJob) {
						job.Spec.Progress = &v1beta1.JobProgress{Stall: v1beta1.Stall{Factor: 3, Policy: v1beta1.StallTell}}
					}).Obj())
			})
		}
	}
	return group.Wait()
}

// statusWrites counts the operator's writes of statuses, by job.
func statusWrites(audit *testutil.Audit) map[string]int {
	GinkgoHelper()
	requests, err := audit.Select(testutil.ByOperator, testutil.Change)
	Expect(err).NotTo(HaveOccurred())
	by := map[string]int{}
	for _, r := range requests {
		if r.Resource == "elastictrainingjobs/status" {
			by[r.Name]++
		}
	}
	return by
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
