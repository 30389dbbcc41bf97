package testutil

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"
)

// PoolLabel names the pool that a node belongs to. Jobs choose a pool by nodeSelector, so that scenarios on one cluster do
// not take each other's places.
const PoolLabel = "tideline.io/test-pool"

// SimulatedAnnotation is on nodes that KWOK simulates.
const SimulatedAnnotation = "kwok.x-k8s.io/node"

// NewNode is a node of a pool that KWOK simulates: so many GPUs, and more of everything else than any test asks for.
func NewNode(name, pool string, gpus int64) *corev1.Node {
	has := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("256"),
		corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods:   resource.MustParse("500"),
		GPUResource:           *resource.NewQuantity(gpus, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{corev1.LabelHostname: name, PoolLabel: pool},
			Annotations: map[string]string{SimulatedAnnotation: "fake"},
		},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

// NewHyperNode is a HyperNode of a tier that has nodes, or other HyperNodes, by name.
func NewHyperNode(name string, tier int, of topologyv1alpha1.MemberType, members ...string) *topologyv1alpha1.HyperNode {
	h := &topologyv1alpha1.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.Spec.Tier = tier
	for _, m := range members {
		h.Spec.Members = append(h.Spec.Members, topologyv1alpha1.MemberSpec{
			Type: of, Selector: topologyv1alpha1.MemberSelector{ExactMatch: &topologyv1alpha1.ExactMatch{Name: m}},
		})
	}
	return h
}

// AddNode adds a node and waits until pods can be placed on it.
func (w *World) AddNode(ctx context.Context, node *corev1.Node) error {
	if err := w.Client.Create(ctx, node); err != nil {
		return fmt.Errorf("add node %s: %w", node.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return false, err
		}
		return placeable(node), nil
	})
	if err != nil {
		return fmt.Errorf("wait until node %s is ready: %w", node.Name, err)
	}
	return nil
}

// AddUnsimulatedNode adds a node that is ready, and whose kubelet does nothing with pods that are bound to it.
func (w *World) AddUnsimulatedNode(ctx context.Context, node *corev1.Node) error {
	delete(node.Annotations, SimulatedAnnotation)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Unsimulated"}}
	if err := w.Client.Create(ctx, node); err != nil {
		return fmt.Errorf("add node %s: %w", node.Name, err)
	}
	// New nodes are tainted until somebody finds them ready.
	before := node.DeepCopy()
	node.Spec.Taints = nil
	return w.Client.Patch(ctx, node, client.MergeFrom(before))
}

func placeable(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return len(node.Spec.Taints) == 0
		}
	}
	return false
}

// SetGPUs changes how many GPUs a node offers, as a device plugin that finds or loses devices does.
func (w *World) SetGPUs(ctx context.Context, node string, gpus int64) error {
	n := strconv.FormatInt(gpus, 10)
	patch := fmt.Sprintf(`{"status":{"capacity":{%[1]q:%[2]q},"allocatable":{%[1]q:%[2]q}}}`, GPUResource, n)
	return w.Client.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, mergePatch(patch))
}

func mergePatch(json string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(json))
}
