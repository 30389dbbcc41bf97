package elastictrainingjob

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/suspicion"
)

// The taint that keeps pods off a node on which workers fail.
const taintKey, taintValue = "tideline.io/suspect", "failures"

// oneIn is of how many nodes the operator taints one at most: a mistake must not take a cluster away.
const oneIn = 20

// accuse tells the administrator of a node by an event and the log, and taints it if the configuration says so. It returns false
// if that must be tried again.
func (r *Reconciler) accuse(ctx context.Context, s suspicion.Suspect) (done bool) {
	node := &corev1.Node{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: s.Node}, node); err != nil {
		return apierrors.IsNotFound(err)
	}
	words := suspectWords(s)
	if r.config.Nodes.TaintSuspects {
		said, err := r.taint(ctx, node)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot taint a node, trying again", "node", s.Node)
			return false
		}
		words += " " + said
	}
	log.FromContext(ctx).Info("Node suspected", "node", s.Node, "why", words)
	r.recorder.Eventf(node, nil, corev1.EventTypeWarning, v1beta1.EventNodeSuspected, "Judge", "%s", words)
	return true
}

// taint sets the taint, and says in a sentence whether it did.
func (r *Reconciler) taint(ctx context.Context, node *corev1.Node) (string, error) {
	if isTainted(node) {
		return "It has this taint.", nil
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	tainted, most := 0, max(1, len(nodes.Items)/oneIn)
	for i := range nodes.Items {
		if isTainted(&nodes.Items[i]) {
			tainted++
		}
	}
	if tainted >= most {
		return fmt.Sprintf("The operator does not set it: %d of %d nodes have it, and %d is the most that it sets.",
			tainted, len(nodes.Items), most), nil
	}
	before := node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taintKey, Value: taintValue, Effect: corev1.TaintEffectNoSchedule})
	// The list of taints is written as a whole, so the API server must refuse it if another client changed it since.
	err := r.client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsForbidden(err):
		return "The operator may not set it: apply the component config/components/node-taints.", nil
	case err != nil:
		return "", fmt.Errorf("taint node %s: %w", node.Name, err)
	}
	return "The operator has set it (nodes.taintSuspects); remove it once the node is mended.", nil
}

func isTainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintKey })
}
