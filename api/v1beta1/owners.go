package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnerVersion is the version that owner references name. The release before v1beta1 knows its pods by exactly this one, so that
// after a rollback it goes on with them. The garbage collector takes any version that is served.
var OwnerVersion = schema.GroupVersion{Group: GroupVersion.Group, Version: "v1alpha1"}

// ControllerReference is the owner reference by which an object of a kind of this package controls another.
func ControllerReference(owner metav1.Object, kind string) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, OwnerVersion.WithKind(kind))
}

// ControllerOf is the reference to what controls o, if that is of one of these kinds of this package's group, in whatever
// version; nil otherwise.
func ControllerOf(o metav1.Object, kinds ...string) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || !slices.Contains(kinds, owner.Kind) {
		return nil
	}
	if parsed, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || parsed.Group != GroupVersion.Group {
		return nil
	}
	return owner
}
