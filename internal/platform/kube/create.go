package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Creator creates children by POST, so that it can never take over an object of somebody else.
type Creator struct {
	Client client.Client
	// Live reads past the caches. It is used only if a name is taken.
	Live   client.Reader
	Scheme *runtime.Scheme
}

// Create creates a child that has its controller reference. If the name is taken and the object is controlled by the same
// owner, that is fine: the caches lag. If that object is being deleted, or somebody else's, it returns a NameTakenError.
func (c Creator) Create(ctx context.Context, child client.Object) error {
	err := c.Client.Create(ctx, child)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	gvk, gvkErr := apiutil.GVKForObject(child, c.Scheme)
	if gvkErr != nil {
		return gvkErr
	}
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(gvk)
	if getErr := c.Live.Get(ctx, client.ObjectKeyFromObject(child), existing); getErr != nil {
		return fmt.Errorf("see whose %s %s is: %w", gvk.Kind, child.GetName(), getErr)
	}
	want, have := metav1.GetControllerOf(child), metav1.GetControllerOf(existing)
	if have != nil && have.UID == want.UID {
		if existing.GetDeletionTimestamp() != nil {
			return &NameTakenError{Kind: gvk.Kind, Name: child.GetName(), Leaving: true}
		}
		child.SetUID(existing.GetUID())
		child.SetResourceVersion(existing.GetResourceVersion())
		return nil
	}
	predecessor := have != nil && have.Kind == want.Kind && have.Name == want.Name && have.APIVersion == want.APIVersion
	return &NameTakenError{Kind: gvk.Kind, Name: child.GetName(), Predecessor: predecessor}
}
