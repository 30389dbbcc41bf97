package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// These tests hold config/volcano to what it says, by where pods are placed.

func testGang(f *fixture) {
	f.gang("gang", 2, 2, 1)
	f.eventuallyRunning("gang-0", "gang-1")
}

func testContainers(f *fixture) {
	t := f.t
	always := corev1.ContainerRestartPolicyAlways
	f.gang("work", 1, 1, 1, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "prepare", Image: "example.com/prepare"},
			{Name: "proxy", Image: "example.com/proxy", RestartPolicy: &always},
		}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "logs", Image: "example.com/logs"})
	})
	f.eventuallyRunning("work-0")
	status := f.pod("work-0").Status
	if len(status.ContainerStatuses) != 2 || len(status.InitContainerStatuses) != 2 {
		t.Fatalf("%d container and %d init container statuses, want 2 and 2",
			len(status.ContainerStatuses), len(status.InitContainerStatuses))
	}
	for _, s := range append(status.ContainerStatuses, status.InitContainerStatuses[1]) {
		if s.State.Running == nil || !s.Ready {
			t.Errorf("container %s does not run: %+v", s.Name, s.State)
		}
	}
	if done := status.InitContainerStatuses[0].State.Terminated; done == nil || done.ExitCode != 0 {
		t.Errorf("init container prepare has not completed: %+v", status.InitContainerStatuses[0].State)
	}
}

// The second gang finds one node used and the other free: it fills the first.
func testBinpack(f *fixture) {
	t := f.t
	f.gang("first", 1, 1, 1)
	f.eventuallyRunning("first-0")
	f.gang("second", 3, 3, 1)
	f.eventuallyRunning("second-0", "second-1", "second-2")
	for i := range 3 {
		name := fmt.Sprintf("second-%d", i)
		if got, want := f.pod(name).Spec.NodeName, f.pod("first-0").Spec.NodeName; got != want {
			t.Errorf("%s is on %s, want the fuller node %s", name, got, want)
		}
	}
}

func testGangWaits(f *fixture) {
	t := f.t
	f.gang("large", 9, 9, 1)
	// A gang that comes later and fits is placed: the scheduler has seen both.
	f.gang("small", 1, 1, 1)
	f.eventuallyRunning("small-0")
	if bound, _ := f.names("large"); len(bound) > 0 {
		t.Fatalf("%v of a gang of 9 are placed on 8 GPUs", bound)
	}
	nodes, err := f.AddNodes(f.ctx, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the whole gang to be placed", func() error {
		if bound, _ := f.names("large"); len(bound) != 9 {
			return fmt.Errorf("%v are placed", bound)
		}
		return nil
	})
	f.clear()
	if err := f.RemoveNode(f.ctx, nodes[0]); err != nil {
		t.Fatal(err)
	}
}

// elastic fills the eight GPUs with a core of two and a surplus of six.
func (f *fixture) elastic() {
	f.t.Helper()
	f.priorityClasses()
	f.gang("core", 2, 2, 1, inClass("core"))
	f.gang("surplus", 6, 0, 1, inClass("surplus"))
	f.eventually("core and surplus to fill the cluster", func() error {
		if bound, pending := f.names("surplus"); len(bound) != 6 {
			return fmt.Errorf("surplus pods %v wait", pending)
		}
		return nil
	})
	f.eventuallyRunning("core-0", "core-1")
}

func (f *fixture) priorityClasses() {
	f.t.Helper()
	for _, class := range []struct {
		name   string
		value  int32
		policy corev1.PreemptionPolicy
	}{
		{"important", 500, corev1.PreemptLowerPriority},
		{"core", 300, corev1.PreemptLowerPriority},
		{"surplus", -300, corev1.PreemptNever},
	} {
		_, err := f.client.SchedulingV1().PriorityClasses().Create(f.ctx, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.name}, Value: class.value, PreemptionPolicy: &class.policy,
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			f.t.Fatal(err)
		}
	}
}

// inClass gives pods a priority class and no word about preemption: only the
// scheduler's configuration protects them.
func inClass(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

func testGangTakesSurplus(f *fixture) {
	t := f.t
	f.elastic()
	f.gang("newcomer", 3, 3, 1, inClass("core"))
	f.eventuallyRunning("newcomer-0", "newcomer-1", "newcomer-2")
	f.checkPhase(corev1.PodRunning, "core-0", "core-1")
	if bound, _ := f.names("surplus"); len(bound) != 3 {
		t.Errorf("%d of 6 surplus pods are left, want 3", len(bound))
	}
}

// Not even one of a higher priority: it would have to break the core.
func testGangTooLarge(f *fixture) {
	f.elastic()
	f.gang("newcomer", 7, 7, 1, inClass("important"))
	f.checkOnlyWitnessEvicts("newcomer")
}

func testSurplusTakesNothing(f *fixture) {
	f.elastic()
	f.gang("newcomer", 4, 0, 1, inClass("surplus"))
	f.checkOnlyWitnessEvicts("newcomer")
}

// checkOnlyWitnessEvicts lets a gang of one come after the newcomer. It takes one
// surplus pod, in a cycle in which the scheduler has tried the newcomer as well.
func (f *fixture) checkOnlyWitnessEvicts(newcomer string) {
	f.t.Helper()
	f.eventually("the scheduler to have seen the newcomer", func() error { return f.tried(newcomer + "-0") })
	f.gang("witness", 1, 1, 1, inClass("core"))
	f.eventuallyRunning("witness-0")
	if bound, _ := f.names(newcomer); len(bound) > 0 {
		f.t.Errorf("%v are placed", bound)
	}
	if bound, _ := f.names("surplus"); len(bound) != 5 {
		f.t.Errorf("%d of 6 surplus pods are left, want 5: one gave way to the witness", len(bound))
	}
	f.checkPhase(corev1.PodRunning, "core-0", "core-1")
}

// A gang takes surplus from another queue that has more than its share.
func testReclaim(f *fixture) {
	f.createQueue("over-share", 4)
	f.createQueue("claimant", 4)
	f.queue = "over-share"
	f.elastic()
	f.queue = "claimant"
	f.gang("newcomer", 3, 3, 1, inClass("core"))
	f.eventuallyRunning("newcomer-0", "newcomer-1", "newcomer-2")
	f.checkPhase(corev1.PodRunning, "core-0", "core-1")
	if bound, _ := f.names("surplus"); len(bound) != 3 {
		f.t.Errorf("%d of 6 surplus pods are left, want 3", len(bound))
	}
}

// A gang at its minimum is not reclaimed, although its queue has more than its
// share.
func testReclaimSparesGangs(f *fixture) {
	f.queue = "over-share"
	f.wholeCluster()
	f.queue = "claimant"
	f.gang("newcomer", 2, 2, 1, inClass("important"))
	f.checkWhole("newcomer-0")
}

// Not even surplus is reclaimed from a queue that has no more than its share.
func testReclaimSparesShares(f *fixture) {
	f.createQueue("within-share", 8)
	f.queue = "within-share"
	f.elastic()
	f.queue = "claimant"
	f.gang("newcomer", 2, 2, 1, inClass("important"))
	f.twoCycles("newcomer-0")
	if bound, _ := f.names("surplus"); len(bound) != 6 {
		f.t.Errorf("%d of 6 surplus pods are left, want all", len(bound))
	}
}

// createQueue creates a Queue that deserves so many GPUs, and waits until Volcano's webhook, which reads Queues from a cache
// of its own, lets gangs in.
func (f *fixture) createQueue(name string, gpus int) {
	f.t.Helper()
	queue := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": queues.GroupVersion().String(),
		"kind":       "Queue",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"deserved": map[string]any{gpuResource: strconv.Itoa(gpus)}},
	}}
	if _, err := f.dynamic.Resource(queues).Create(f.ctx, queue, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("Queue "+name+" to be open", func() error {
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := f.dynamic.Resource(podGroups).Namespace(f.namespace).Create(f.ctx, podGroup("probe", 1, name), dryRun)
		return err
	})
}

// A gang at its minimum is taken by nobody, neither of its own priority nor of a
// higher one.
func testGangStaysWhole(f *fixture) {
	f.wholeCluster()
	f.gang("equal", 1, 1, 1, inClass("core"))
	f.gang("higher", 2, 2, 1, inClass("important"))
	f.checkWhole("equal-0", "higher-0")
}

// wholeCluster fills all GPUs with one gang at its minimum.
func (f *fixture) wholeCluster() {
	f.t.Helper()
	f.priorityClasses()
	f.gang("whole", 8, 8, 1, inClass("core"))
	f.eventually("the gang to fill the cluster", func() error {
		if bound, _ := f.names("whole"); len(bound) != 8 {
			return fmt.Errorf("%v are placed", bound)
		}
		return nil
	})
}

func (f *fixture) checkWhole(newcomers ...string) {
	f.t.Helper()
	f.twoCycles(newcomers...)
	if bound, _ := f.names("whole"); len(bound) != 8 {
		f.t.Errorf("%d of 8 pods of the gang are left, want all", len(bound))
	}
}

// twoCycles waits until the scheduler has tried all it can for the newcomers: two
// pods that need no GPU are placed one after the other, so the cycle of the first
// has come to its end.
func (f *fixture) twoCycles(newcomers ...string) {
	f.t.Helper()
	for _, name := range newcomers {
		f.eventually("the scheduler to have seen "+name, func() error { return f.tried(name) })
	}
	for _, name := range []string{"first", "second"} {
		f.gang(name, 1, 1, 0)
		f.eventuallyRunning(name + "-0")
	}
}

// tried returns nil when the scheduler has written that the pod does not fit.
func (f *fixture) tried(pod string) error {
	for _, c := range f.pod(pod).Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return nil
		}
	}
	return errors.New("it has no condition PodScheduled")
}

func testJobs(f *fixture) {
	t := f.t
	pod := newPod("", 0, 1)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	template := corev1.PodTemplateSpec{Spec: pod.Spec}
	vcJobs := schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
	vcJob := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": vcJobs.GroupVersion().String(),
		"kind":       "Job",
		"metadata":   map[string]any{"name": "volcano"},
		"spec": map[string]any{"schedulerName": "volcano", "minAvailable": int64(1), "tasks": []any{
			map[string]any{"name": "task", "replicas": int64(1), "template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never",
				"containers":    []any{map[string]any{"name": "trainer", "image": "example.com/trainer"}},
			}}},
		}},
	}}
	if _, err := f.dynamic.Resource(vcJobs).Namespace(f.namespace).Create(f.ctx, vcJob, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the pod of the Volcano Job", func() error {
		_, err := f.pods().Get(f.ctx, "volcano-task-0", metav1.GetOptions{})
		return err
	})
	f.eventuallyRunning("volcano-task-0")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: batchv1.JobSpec{Template: template}}
	if _, err := f.client.BatchV1().Jobs(f.namespace).Create(f.ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the batch Job to complete", func() error {
		job, err := f.client.BatchV1().Jobs(f.namespace).Get(f.ctx, "batch", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded != 1 {
			err = fmt.Errorf("its status is %+v", job.Status)
		}
		return err
	})
	f.checkPhase(corev1.PodRunning, "volcano-task-0")
	if err := f.dynamic.Resource(vcJobs).Namespace(f.namespace).Delete(f.ctx, "volcano", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testSetNodeGPUs(f *fixture) {
	t := f.t
	f.gang("large", 1, 1, 6)
	f.eventually("the scheduler to have tried", func() error { return f.tried("large-0") })
	if err := f.SetNodeGPUs(f.ctx, "gpu-1", 6); err != nil {
		t.Fatal(err)
	}
	f.eventuallyBound("large-0")
	if got := f.pod("large-0").Spec.NodeName; got != "gpu-1" {
		t.Errorf("a pod of 6 GPUs is on %s, want gpu-1", got)
	}
	f.clear()
	if err := f.SetNodeGPUs(f.ctx, "gpu-1", 4); err != nil {
		t.Fatal(err)
	}
}

func testWebhooksRefuse(f *fixture) {
	t := f.t
	group := podGroup("lost", 1, "there-is-none")
	_, err := f.dynamic.Resource(podGroups).Namespace(f.namespace).Create(f.ctx, group, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "validatepodgroup.volcano.sh") {
		t.Errorf("a PodGroup in a queue that does not exist: %v, want Volcano's webhook to refuse it", err)
	}
}

// The published text is the file's, also by the kustomization that users apply.
func testSchedulerConf(f *fixture) {
	t := f.t
	folder := filepath.Join(f.repo, "config", "volcano")
	want, err := os.ReadFile(filepath.Join(folder, schedulerConfKey))
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := Kubectl(f.ctx, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := exec.CommandContext(f.ctx, kubectl, "kustomize", folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	var kustomized corev1.ConfigMap
	if err := yaml.UnmarshalStrict(manifest, &kustomized); err != nil {
		t.Fatal(err)
	}
	published, err := f.client.CoreV1().ConfigMaps(volcanoNamespace).Get(f.ctx, schedulerConfConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for source, configMap := range map[string]*corev1.ConfigMap{"the cluster": published, "the kustomization": &kustomized} {
		if configMap.Namespace != volcanoNamespace || configMap.Name != schedulerConfConfigMap ||
			configMap.Data[schedulerConfKey] != string(want) {
			t.Errorf("%s does not have the file's text in its place: %+v", source, configMap)
		}
	}
}

// The scheduler follows a new configuration: one that spreads pods.
func testSetSchedulerConf(f *fixture) {
	t := f.t
	packing, err := os.ReadFile(f.options.SchedulerConf)
	if err != nil {
		t.Fatal(err)
	}
	spreading := strings.NewReplacer(
		"leastrequested.weight: 1", "leastrequested.weight: 100",
		"binpack.weight: 10", "binpack.weight: 0",
	).Replace(string(packing))
	if err := f.SetSchedulerConf(f.ctx, spreading); err != nil {
		t.Fatal(err)
	}
	f.gang("first", 1, 1, 1)
	f.eventuallyBound("first-0")
	attempt := 0
	f.eventually("a pod to be placed apart from the first", func() error {
		name := fmt.Sprintf("attempt-%d", attempt)
		attempt++
		f.gang(name, 1, 1, 1)
		f.eventuallyBound(name + "-0")
		defer f.deletePod(name + "-0")
		if f.pod(name+"-0").Spec.NodeName == f.pod("first-0").Spec.NodeName {
			return errors.New("it is on the same node")
		}
		return nil
	})
	if err := f.SetSchedulerConf(f.ctx, string(packing)); err != nil {
		t.Fatal(err)
	}
}
