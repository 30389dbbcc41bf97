package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A fixture is a cluster and an empty namespace in it.
type fixture struct {
	*Cluster
	t         *testing.T
	ctx       context.Context
	namespace string
	queue     string // of the gangs created from now on
}

func newFixture(t *testing.T, c *Cluster) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	name := strings.ToLower(path.Base(t.Name()))
	f := &fixture{Cluster: c, t: t, ctx: ctx, queue: "default", namespace: strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return r
	}, name)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A pod is refused until its namespace has this account.
	f.eventually("the default service account", func() error {
		_, err := c.client.CoreV1().ServiceAccounts(f.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	t.Cleanup(func() {
		defer cancel()
		f.ctx = context.WithoutCancel(ctx)
		f.clear()
	})
	return f
}

// clear frees the GPUs for the next test.
func (f *fixture) clear() {
	f.t.Helper()
	for _, err := range []error{
		f.dynamic.Resource(podGroups).Namespace(f.namespace).DeleteCollection(f.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		f.pods().DeleteCollection(f.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	f.eventually("all pods to be gone", func() error {
		list, err := f.pods().List(f.ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

func (f *fixture) pods() typedcorev1.PodInterface { return f.client.CoreV1().Pods(f.namespace) }

// eventually polls until check returns nil.
func (f *fixture) eventually(what string, check func() error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, eventuallyTimeout)
	defer cancel()
	if err := f.WaitFor(ctx, what, func(context.Context) error { return check() }); err != nil {
		f.t.Fatal(err)
	}
}

// gang creates a PodGroup and the pods name-0, name-1 and so on of so many GPUs.
func (f *fixture) gang(name string, pods, minMember, gpus int, change ...func(*corev1.Pod)) {
	f.t.Helper()
	group := podGroup(name, minMember, f.queue)
	created := make([]*corev1.Pod, pods)
	for i := range created {
		created[i] = newPod(name, i, gpus)
		for _, c := range change {
			c(created[i])
		}
		if class := created[i].Spec.PriorityClassName; class != "" {
			_ = unstructured.SetNestedField(group.Object, class, "spec", "priorityClassName")
		}
	}
	if _, err := f.dynamic.Resource(podGroups).Namespace(f.namespace).Create(f.ctx, group, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	for _, pod := range created {
		if _, err := f.pods().Create(f.ctx, pod, metav1.CreateOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func podGroup(name string, minMember int, queue string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": podGroups.GroupVersion().String(),
		"kind":       "PodGroup",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"minMember": int64(minMember), "queue": queue},
	}}
}

func newPod(group string, index, gpus int) *corev1.Pod {
	limits := corev1.ResourceList{gpuResource: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s-%d", group, index),
			Annotations: map[string]string{"scheduling.k8s.io/group-name": group},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano",
			Containers: []corev1.Container{{
				Name: "trainer", Image: "example.com/trainer", Resources: corev1.ResourceRequirements{Limits: limits},
			}},
		},
	}
}

func (f *fixture) pod(name string) *corev1.Pod {
	f.t.Helper()
	pod, err := f.pods().Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return pod
}

func (f *fixture) checkPhase(want corev1.PodPhase, names ...string) {
	f.t.Helper()
	for _, name := range names {
		if got := f.pod(name).Status.Phase; got != want {
			f.t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func (f *fixture) eventuallyRunning(names ...string) {
	f.t.Helper()
	for _, name := range names {
		f.eventually(name+" to be Running", func() error {
			if got := f.pod(name).Status.Phase; got != corev1.PodRunning {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		})
	}
}

func (f *fixture) eventuallyBound(name string) {
	f.t.Helper()
	f.eventually(name+" to be bound", func() error {
		if f.pod(name).Spec.NodeName == "" {
			return errors.New("it has no node")
		}
		return nil
	})
}

// names returns the pods of a group by whether they hold a node.
func (f *fixture) names(group string) (bound, pending []string) {
	f.t.Helper()
	list, err := f.pods().List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, pod := range list.Items {
		switch {
		case pod.Annotations["scheduling.k8s.io/group-name"] != group || pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName == "":
			pending = append(pending, pod.Name)
		default:
			bound = append(bound, pod.Name)
		}
	}
	return bound, pending
}

func (f *fixture) setPhase(name string, phase corev1.PodPhase) {
	f.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": phase}})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.pods().Patch(f.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) deletePod(name string) {
	f.t.Helper()
	if err := f.pods().Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		f.t.Fatal(err)
	}
}
