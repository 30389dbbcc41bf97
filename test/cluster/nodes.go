package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpuResource = "nvidia.com/gpu"

// nodeResources are what a node has besides GPUs: more than any test asks for.
var nodeResources = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("256"),
	corev1.ResourceMemory:           resource.MustParse("4Ti"),
	corev1.ResourceEphemeralStorage: resource.MustParse("16Ti"),
	corev1.ResourcePods:             resource.MustParse("500"),
}

// AddNodes adds n nodes with so many GPUs each and returns their names when they
// are Ready. The names count on from gpu-0 and are never given twice.
func (c *Cluster) AddNodes(ctx context.Context, n, gpus int) ([]string, error) {
	c.mu.Lock()
	first := c.nodes
	c.nodes += n
	c.mu.Unlock()
	names := make([]string, n)
	for i := range names {
		names[i] = "gpu-" + strconv.Itoa(first+i)
		if _, err := c.client.CoreV1().Nodes().Create(ctx, newNode(names[i], gpus), metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("adding node %s: %w", names[i], err)
		}
	}
	for _, name := range names {
		if err := c.WaitFor(ctx, "node "+name+" to be Ready", func(ctx context.Context) error {
			node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return nodeReady(node)
		}, c.kwok); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func newNode(name string, gpus int) *corev1.Node {
	resources := nodeResources.DeepCopy()
	if gpus > 0 {
		resources[gpuResource] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{corev1.LabelHostname: name},
			Annotations: map[string]string{kwokAnnotation: kwokValue},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// nodeReady returns why pods cannot be placed on the node yet.
func nodeReady(node *corev1.Node) error {
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it has the taint %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("its condition Ready is not True")
}

// SetNodeGPUs changes the number of GPUs of a node; 0 is a node without. Pods
// that hold more keep running, as they do when a device plugin loses devices.
func (c *Cluster) SetNodeGPUs(ctx context.Context, node string, gpus int) error {
	amount := map[string]string{gpuResource: strconv.Itoa(gpus)}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amount, "allocatable": amount}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("giving node %s %d GPUs: %w", node, gpus, err)
	}
	return nil
}

// RemoveNode deletes a node at once, as when a machine is lost. Its pods stay
// until kube-controller-manager collects them, about 40 s later.
func (c *Cluster) RemoveNode(ctx context.Context, node string) error {
	if err := c.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("removing node %s: %w", node, err)
	}
	return nil
}
