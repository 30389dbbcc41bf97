// Package profilecache finds the profile that a namespace belongs to, from caches.
package profilecache

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota"
)

// Profiles finds the profiles of namespaces, from caches, as the profiles are at one moment.
type Profiles struct {
	reader client.Reader
	all    []*v1beta1.ResourceQuotaProfile
	index  *quota.Index
}

// All are the profiles. Callers must not change them.
func (p *Profiles) All() []*v1beta1.ResourceQuotaProfile { return p.all }

// ReadProfiles reads all profiles.
func ReadProfiles(ctx context.Context, reader client.Reader) (*Profiles, error) {
	list := &v1beta1.ResourceQuotaProfileList{}
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ResourceQuotaProfiles: %w", err)
	}
	profiles := make([]*v1beta1.ResourceQuotaProfile, len(list.Items))
	for i := range list.Items {
		profiles[i] = &list.Items[i]
	}
	return &Profiles{reader: reader, all: profiles, index: quota.NewIndex(profiles)}, nil
}

// ProfileOf reads the metadata of a namespace and its profile; nil for none. Callers must not change either. A namespace that
// does not exist is an error.
func (p *Profiles) ProfileOf(ctx context.Context, namespace string) (
	*metav1.PartialObjectMetadata, *v1beta1.ResourceQuotaProfile, error,
) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := p.reader.Get(ctx, client.ObjectKey{Name: namespace}, object, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return object, p.index.ProfileOf(object.Labels), nil
}

// ProfileOf is [Profiles.ProfileOf] for one namespace.
func ProfileOf(ctx context.Context, reader client.Reader, namespace string) (
	*metav1.PartialObjectMetadata, *v1beta1.ResourceQuotaProfile, error,
) {
	profiles, err := ReadProfiles(ctx, reader)
	if err != nil {
		return nil, nil, err
	}
	return profiles.ProfileOf(ctx, namespace)
}

// NamespacesOf lists the namespaces that a profile selects, from caches, those that belong to an older profile too.
func NamespacesOf(ctx context.Context, reader client.Reader, profile *v1beta1.ResourceQuotaProfile) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the namespaces: %w", err)
	}
	var names []string
	for i := range list.Items {
		if quota.Selects(profile, list.Items[i].Labels) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// QueueOf is the queue that a new gang of a namespace joins: that of its profile, else the one that the namespace names by
// Volcano's annotation, else default.
func QueueOf(namespace *metav1.PartialObjectMetadata, profile *v1beta1.ResourceQuotaProfile) string {
	if profile != nil {
		return profile.Name
	}
	return cmp.Or(namespace.Annotations[gang.QueueAnnotation], gang.DefaultQueue)
}

// ProfileChanged passes on changes that jobs depend on: the spec, whether there is a Queue and why not, and the jobs that get
// the room of reservations.
func ProfileChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*v1beta1.ResourceQuotaProfile)
		now, also := e.ObjectNew.(*v1beta1.ResourceQuotaProfile)
		return !ok || !also || old.Generation != now.Generation || old.Status.Queue != now.Status.Queue || handsOver(old, now) ||
			(now.Status.Queue == "" && old.Status.Message != now.Status.Message)
	}}
}

// handsOver tells whether the jobs that take the room of reservations changed.
func handsOver(old, now *v1beta1.ResourceQuotaProfile) bool {
	takers := func(p *v1beta1.ResourceQuotaProfile) []string {
		var jobs []string
		for _, st := range p.Status.Reservations {
			jobs = append(jobs, fmt.Sprint(st.Phase, " ", ptr.Deref(st.Job, v1beta1.GangRef{})))
		}
		return jobs
	}
	return !slices.Equal(takers(old), takers(now))
}
