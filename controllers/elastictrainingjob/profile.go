package elastictrainingjob

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// besideProfile wakes the jobs in namespaces that a profile selects. Of one that changes, those that it selected before too: the
// handler asks for both.
func besideProfile(
	reader client.Reader, requestsFor func(context.Context, ...client.ListOption) []reconcile.Request,
) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		profile, ok := o.(*v1beta1.ResourceQuotaProfile)
		if !ok {
			return nil
		}
		namespaces, err := profilecache.NamespacesOf(ctx, reader, profile)
		if err != nil {
			return requestsFor(ctx) // Better all than one too few.
		}
		var requests []reconcile.Request
		for _, namespace := range namespaces {
			requests = append(requests, requestsFor(ctx, client.InNamespace(namespace))...)
		}
		return requests
	})
}
