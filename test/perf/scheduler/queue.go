package scheduler

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/gang"
)

// NewQueue is a Queue that deserves so many of a device, which are its weight too.
func NewQueue(name string, device corev1.ResourceName, deserved int64) (client.Object, error) {
	q := gang.NewQueue()
	content := map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"weight": deserved, "reclaimable": true, "deserved": map[string]any{string(device): strconv.FormatInt(deserved, 10)},
		},
		"status": map[string]any{"state": gang.QueueOpen},
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, q); err != nil {
		return nil, fmt.Errorf("make Queue %s: %w", name, err)
	}
	q.SetUID(types.UID(name))
	return q, nil
}
