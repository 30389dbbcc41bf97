// Package topologycache reads Volcano's HyperNodes from caches. Package topology says what they mean.
package topologycache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/topology"
)

// +kubebuilder:rbac:groups=topology.volcano.sh,resources=hypernodes,verbs=list;watch

// Reader reads HyperNodes. A nil Reader finds none, which is what an API server without them has.
type Reader struct{ reader client.Reader }

// NewReader returns one that reads from caches.
func NewReader(reader client.Reader) *Reader { return &Reader{reader} }

// Setup caches HyperNodes if the API server serves them; else it returns nil. An operator that runs while they become served must
// be restarted.
func Setup(ctx context.Context, mapper meta.RESTMapper, caches cache.Cache, reader client.Reader) (*Reader, error) {
	switch _, err := mapper.RESTMapping(gang.HyperNodeKind.GroupKind(), gang.HyperNodeKind.Version); {
	case meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // documented: a nil Reader finds none
	case err != nil:
		return nil, fmt.Errorf("ask whether the API server serves HyperNode: %w", err)
	}
	if _, err := caches.GetInformer(ctx, gang.NewHyperNode(), cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("cache HyperNodes: %w", err)
	}
	return NewReader(reader), nil
}

// listHyperNodes lists all HyperNodes.
func (r *Reader) listHyperNodes(ctx context.Context) ([]topology.HyperNode, error) {
	if r == nil {
		return nil, nil
	}
	list := gang.NewHyperNodeList()
	if err := r.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list HyperNodes: %w", err)
	}
	return gang.HyperNodesOf(list), nil
}

// ReadDomains resolves all HyperNodes among all nodes.
func (r *Reader) ReadDomains(ctx context.Context) ([]topology.Domain, error) {
	all, err := r.listHyperNodes(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := r.reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	labels := make(map[string]map[string]string, len(nodes.Items))
	for i := range nodes.Items {
		labels[nodes.Items[i].Name] = nodes.Items[i].Labels
	}
	return topology.ResolveDomains(all, labels), nil
}
