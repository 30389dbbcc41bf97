package testutil

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// ProfileBuilder builds a ResourceQuotaProfile, field by field, in the order in which one would say it.
type ProfileBuilder struct {
	profile *v1beta1.ResourceQuotaProfile
}

// TeamLabel is the label of namespaces by which profiles of tests choose them.
const TeamLabel = "example.com/team"

// Profile begins with the profile of a team of the same name.
func Profile(name string) *ProfileBuilder {
	return &ProfileBuilder{&v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{TeamLabel: name}},
		},
	}}
}

// Obj returns a copy of the profile as built so far.
func (b *ProfileBuilder) Obj() *v1beta1.ResourceQuotaProfile { return b.profile.DeepCopy() }

// With changes the spec.
func (b *ProfileBuilder) With(change func(*v1beta1.ResourceQuotaProfileSpec)) *ProfileBuilder {
	change(&b.profile.Spec)
	return b
}

// Weight sets the weight of the queue.
func (b *ProfileBuilder) Weight(n int32) *ProfileBuilder {
	b.profile.Spec.Queue.Weight = n
	return b
}

// Guarantee guarantees n GPUs.
func (b *ProfileBuilder) Guarantee(n int64) *ProfileBuilder {
	b.profile.Spec.Queue.Guarantee = corev1.ResourceList{GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
	return b
}

// Tiers lists the tiers that jobs may have, the default first.
func (b *ProfileBuilder) Tiers(names ...string) *ProfileBuilder {
	for i, name := range names {
		b.profile.Spec.Tiers = append(b.profile.Spec.Tiers, v1beta1.ProfileTier{Name: name, Default: i == 0})
	}
	return b
}

// PerUser lets a user hold n GPUs at most.
func (b *ProfileBuilder) PerUser(n int64) *ProfileBuilder {
	b.profile.Spec.Caps = &v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{{
		Resource: string(GPUResource), Max: *resource.NewQuantity(n, resource.DecimalSI),
	}}}
	return b
}

// Reserve holds room of n GPUs so many times, for a task of an owner.
func (b *ProfileBuilder) Reserve(replicas int32, n int64, task, owner string, until time.Time) *ProfileBuilder {
	b.profile.Spec.Reservations = append(b.profile.Spec.Reservations, v1beta1.ProfileReservation{
		Name: task, Replicas: replicas, Resources: corev1.ResourceList{GPUResource: *resource.NewQuantity(n, resource.DecimalSI)},
		Until: metav1.NewTime(until.Truncate(time.Second)), JobRef: v1beta1.ObjectRef{Name: task}, Owner: owner,
	})
	return b
}
