package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// These tests hold config/volcano to what it says, by where pods are placed.

func testGang(t *testing.T, f *fixture) {
	f.gang("gang", 2, 2, 1)
	f.eventuallyPhase(corev1.PodRunning, "gang-0", "gang-1")
}

func testContainers(t *testing.T, f *fixture) {
	always := corev1.ContainerRestartPolicyAlways
	f.gang("work", 1, 1, 1, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "prepare", Image: "example.com/prepare"},
			{Name: "proxy", Image: "example.com/proxy", RestartPolicy: &always},
		}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "logs", Image: "example.com/logs"})
	})
	f.eventuallyPhase(corev1.PodRunning, "work-0")
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
func testBinpack(t *testing.T, f *fixture) {
	f.gang("first", 1, 1, 1)
	f.eventuallyPhase(corev1.PodRunning, "first-0")
	f.gang("second", 3, 3, 1)
	f.eventuallyPhase(corev1.PodRunning, "second-0", "second-1", "second-2")
	for i := range 3 {
		name := fmt.Sprintf("second-%d", i)
		if got, want := f.pod(name).Spec.NodeName, f.pod("first-0").Spec.NodeName; got != want {
			t.Errorf("%s is on %s, want the fuller node %s", name, got, want)
		}
	}
}

func testGangWaits(t *testing.T, f *fixture) {
	f.gang("large", 9, 9, 1)
	// A gang that comes later and fits is placed: the scheduler has seen both.
	f.gang("small", 1, 1, 1)
	f.eventuallyPhase(corev1.PodRunning, "small-0")
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
	f.priorityClass("core", 300, corev1.PreemptLowerPriority)
	f.priorityClass("surplus", -300, corev1.PreemptNever)
	f.gang("core", 2, 2, 1, inClass("core"))
	f.gang("surplus", 6, 0, 1, inClass("surplus"))
	f.eventually("core and surplus to fill the cluster", func() error {
		if bound, pending := f.names("surplus"); len(bound) != 6 {
			return fmt.Errorf("surplus pods %v wait", pending)
		}
		return nil
	})
	f.eventuallyPhase(corev1.PodRunning, "core-0", "core-1")
}

func (f *fixture) priorityClass(name string, value int32, policy corev1.PreemptionPolicy) {
	f.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &policy}
	_, err := f.client.SchedulingV1().PriorityClasses().Create(f.ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		f.t.Fatal(err)
	}
}

func inClass(name string) func(*corev1.Pod) {
	preemptable := map[bool]string{true: "true", false: "false"}[name == "surplus"]
	return func(p *corev1.Pod) {
		p.Spec.PriorityClassName = name
		p.Annotations["volcano.sh/preemptable"] = preemptable
	}
}

func testGangTakesSurplus(t *testing.T, f *fixture) {
	f.elastic()
	f.gang("newcomer", 3, 3, 1, inClass("core"))
	f.eventuallyPhase(corev1.PodRunning, "newcomer-0", "newcomer-1", "newcomer-2")
	f.checkPhase(corev1.PodRunning, "core-0", "core-1")
	if bound, _ := f.names("surplus"); len(bound) != 3 {
		t.Errorf("%d of 6 surplus pods are left, want 3", len(bound))
	}
}

func testGangTooLarge(t *testing.T, f *fixture) {
	f.elastic()
	f.gang("newcomer", 7, 7, 1, inClass("core"))
	f.eventually("the scheduler to have tried", func() error { return f.unschedulable("newcomer") })
	if bound, _ := f.names("surplus"); len(bound) != 6 {
		t.Errorf("%d of 6 surplus pods are left, want all", len(bound))
	}
	f.checkPhase(corev1.PodRunning, "core-0", "core-1")
}

func testSurplusTakesNothing(t *testing.T, f *fixture) {
	f.elastic()
	f.gang("late-surplus", 4, 0, 1, inClass("surplus"))
	f.eventually("the scheduler to have tried", func() error { return f.tried("late-surplus-0") })
	bound, _ := f.names("late-surplus")
	if before, _ := f.names("surplus"); len(bound) > 0 || len(before) != 6 {
		t.Errorf("%v are placed; %d of 6 earlier surplus pods are left", bound, len(before))
	}
}

// unschedulable returns nil when the scheduler has written that the PodGroup
// does not fit.
func (f *fixture) unschedulable(group string) error {
	o, err := f.dynamic.Resource(podGroups).Namespace(f.namespace).Get(f.ctx, group, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c.(map[string]any)["type"] == "Unschedulable" {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %v", conditions)
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

func testJobs(t *testing.T, f *fixture) {
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
	f.eventuallyPhase(corev1.PodRunning, "volcano-task-0")
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

func testSetNodeGPUs(t *testing.T, f *fixture) {
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

func testWebhooksRefuse(t *testing.T, f *fixture) {
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": podGroups.GroupVersion().String(),
		"kind":       "PodGroup",
		"metadata":   map[string]any{"name": "lost"},
		"spec":       map[string]any{"minMember": int64(1), "queue": "there-is-none"},
	}}
	_, err := f.dynamic.Resource(podGroups).Namespace(f.namespace).Create(f.ctx, group, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "validatepodgroup.volcano.sh") {
		t.Errorf("a PodGroup in a queue that does not exist: %v, want Volcano's webhook to refuse it", err)
	}
}

// The published text is the file's, and the scheduler follows a change of it.
func testSchedulerConf(t *testing.T, f *fixture) {
	want, err := os.ReadFile(filepath.Join(f.repo, "config", "volcano", schedulerConfKey))
	if err != nil {
		t.Fatal(err)
	}
	configMap, err := f.client.CoreV1().ConfigMaps(volcanoNamespace).Get(f.ctx, schedulerConfConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := configMap.Data[schedulerConfKey]; got != string(want) {
		t.Errorf("the published configuration is not the file's:\n%s", got)
	}
	kustomization, err := os.ReadFile(filepath.Join(f.repo, "config", "volcano", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(kustomization))
	for _, name := range []string{volcanoNamespace, schedulerConfConfigMap, schedulerConfKey} {
		if !slices.Contains(words, name) {
			t.Errorf("config/volcano/kustomization.yaml does not say %s", name)
		}
	}

	if err := f.SetSchedulerConf(f.ctx, strings.Replace(string(want), "allocate, ", "", 1)); err != nil {
		t.Fatal(err)
	}
	_ = want
}
