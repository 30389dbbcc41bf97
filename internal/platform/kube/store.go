package kube

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StoreOf is where a cache keeps the objects of a kind, to be read in place. The object is an empty one of that kind.
func StoreOf(ctx context.Context, c cache.Cache, object client.Object) (toolscache.Store, error) {
	informer, err := c.GetInformer(ctx, object)
	if err != nil {
		return nil, fmt.Errorf("cache %T: %w", object, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the cache of %T is a %T, which does not list in place", object, informer)
	}
	return shared.GetStore(), nil
}
