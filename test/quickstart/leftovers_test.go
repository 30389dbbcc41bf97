package quickstart

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// passing are kinds whose objects come and go by themselves, by resource.
var passing = []string{"events", "leases", "endpointslices", "endpoints"}

// objects names all objects of a cluster but those that come and go by themselves.
func objects(ctx context.Context, config *rest.Config) ([]string, error) {
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := found.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(passing, resource.Name) ||
				resource.Name == "componentstatuses" {
				continue
			}
			all, err := client.Resource(group.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", resource.Name, list.GroupVersion, err)
			}
			for _, o := range all.Items {
				names = append(names, fmt.Sprintf("%s.%s %s/%s", resource.Name, group.Group, o.Namespace, o.Name))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
