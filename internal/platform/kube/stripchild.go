package kube

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/text"
)

// StripConfigMap keeps of a ConfigMap whose it is, and a digest of the value of each of these keys. Anybody may write ConfigMaps
// that look like ours, with a megabyte in each.
func StripConfigMap(keys []string) func(any) (any, error) {
	return func(o any) (any, error) {
		m, ok := o.(*corev1.ConfigMap)
		if !ok {
			return o, nil
		}
		stripped := &corev1.ConfigMap{ObjectMeta: childOf(m)}
		for _, key := range keys {
			if value, there := m.Data[key]; there {
				stripped.Data = setKey(stripped.Data, key, text.Digest(value))
			}
		}
		return stripped, nil
	}
}

// StripService keeps of a Service whose it is.
func StripService(o any) (any, error) {
	s, ok := o.(*corev1.Service)
	if !ok {
		return o, nil
	}
	return &corev1.Service{ObjectMeta: childOf(s)}, nil
}

// childOf is the metadata that reconcilers read of a job's object: identity, our labels, and the controller among the owners.
func childOf(o client.Object) metav1.ObjectMeta {
	m := identityOf(o)
	m.CreationTimestamp = o.GetCreationTimestamp()
	labels := o.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, ourLabels) && len(m.Labels) < mostLabels {
			m.Labels = setKey(m.Labels, key, labels[key])
		}
	}
	m.OwnerReferences = controllerOf(o)
	return m
}

const (
	// longestAnnotation is how long a value may be that is kept.
	longestAnnotation = 4 << 10
	// mostOfOthers is how many annotations of others are kept, whose names and values have so many bytes together at most: whoever
	// annotates an object to have it looked at again changes what reconcilers see.
	mostOfOthers, shortOfOthers = 16, 128
)

// readAnnotations begin the names of annotations that are read, up to the slash or a domain above it.
var readAnnotations = []string{"tideline.io/", "volcano.sh/", "scheduling.k8s.io/"}

// stripAnnotations drops annotations that others wrote for themselves, kubectl's copy of the whole object among them, but for a
// few short ones.
func stripAnnotations(o client.Object) {
	all, kept, others := o.GetAnnotations(), map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		switch {
		case slices.ContainsFunc(readAnnotations, func(name string) bool { return strings.Contains(key, name) }):
			if len(value) <= longestAnnotation {
				kept[key] = value
			}
		case others < mostOfOthers && len(key)+len(value) <= shortOfOthers:
			kept[key] = value
			others++
		}
	}
	if len(kept) < len(all) {
		o.SetAnnotations(kept)
	}
}
