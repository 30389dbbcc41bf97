package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// CachedObjects says how the manager's cache holds what reconcilers and the arbiter read: every node, pod and volume, stripped to
// what is read of it, and the Services and ConfigMaps of jobs. Of a pod's labels it keeps ours and userLabel, of ConfigMaps
// digests of the values of hostKeys.
func CachedObjects(userLabel string, hostKeys ...string) (map[client.Object]cache.ByObject, error) {
	ours, err := labels.NewRequirement(v1beta1.LabelJob, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select by label %s: %w", v1beta1.LabelJob, err)
	}
	selector := labels.NewSelector().Add(*ours)
	return map[client.Object]cache.ByObject{
		&corev1.Node{}:      {Transform: StripNode},
		&corev1.Pod{}:       {Transform: StripPod(userLabel)},
		&corev1.Service{}:   {Label: selector, Transform: StripService},
		&corev1.ConfigMap{}: {Label: selector, Transform: StripConfigMap(hostKeys)},

		&corev1.PersistentVolumeClaim{}: {Transform: StripVolumeClaim},
		&corev1.PersistentVolume{}:      {Transform: StripVolume},
	}, nil
}

// PodsByOwner is the index of pods by the UID of their controller.
const PodsByOwner = "ownerUID"

// IndexPodsByOwner adds [PodsByOwner] to a cache.
func IndexPodsByOwner(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, PodsByOwner, OwnerUID); err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	return nil
}

// OwnerUID is the UID of an object's controller, as an index has it; nothing for an object without one.
func OwnerUID(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
