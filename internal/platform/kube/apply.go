package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// FieldManager owns the fields that Tideline patches.
const FieldManager = "tideline"

// Applier makes the writes that a reconciler has decided on, each under the key whose decision it was, and notes them: nothing
// is decided again for that key before the caches have seen them.
type Applier struct {
	Creator
	Writes *Writes
}

// NewApplier returns an applier with the clients of a manager.
func NewApplier(mgr manager.Manager) Applier {
	return Applier{
		Creator: Creator{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme()},
		Writes:  NewWrites(mgr.GetCache(), mgr.GetScheme()),
	}
}

// Create creates a child that has its controller reference; see [Creator.Create].
func (a Applier) Create(ctx context.Context, key types.NamespacedName, child client.Object) error {
	if err := a.Creator.Create(ctx, child); err != nil {
		return err
	}
	return a.Writes.Wrote(key, child)
}

// Delete deletes exactly the object that was observed: o has its namespace, name and UID. One that is gone is no error.
func (a Applier) Delete(ctx context.Context, key types.NamespacedName, o client.Object, options ...client.DeleteOption) error {
	options = append(options, client.Preconditions{UID: ptr.To(o.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	err := a.Client.Delete(ctx, o, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	a.Writes.Deleted(key, o)
	return nil
}

// Apply applies fields of an object by server-side apply. The content has the object's UID, so that the API server refuses it for
// one that was created anew meanwhile. Written is an empty object of the kind.
func (a Applier) Apply(ctx context.Context, key types.NamespacedName, content map[string]any, written client.Object) error {
	patch := &unstructured.Unstructured{Object: content}
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(FieldManager),
		client.ForceOwnership)
	if err != nil {
		return err
	}
	written.SetResourceVersion(patch.GetResourceVersion())
	return a.Writes.Wrote(key, written)
}

// PatchStatus writes the status of updated, a copy of object that differs in nothing else. The resource version goes with it, so
// that an operator with an old view overwrites nothing.
func (a Applier) PatchStatus(ctx context.Context, key types.NamespacedName, object, updated client.Object) error {
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := a.Client.Status().Patch(ctx, updated, patch); err != nil {
		return err
	}
	return a.Writes.Wrote(key, updated)
}

// CatchUp has a key left alone until the cache is as new as the API server, which knows another object than the one that was
// reconciled: it was changed, deleted, or created anew. While the watch sleeps, what is created for an object that is gone would
// be collected at once and created again, without end. Live is an empty object of the kind.
func (a Applier) CatchUp(ctx context.Context, key types.NamespacedName, object, live client.Object) error {
	err := a.Live.Get(ctx, client.ObjectKeyFromObject(object), live)
	switch {
	case apierrors.IsNotFound(err):
		a.Writes.Deleted(key, object)
		return nil
	case err != nil:
		return fmt.Errorf("read the object that is newer than the cache: %w", err)
	}
	return a.Writes.Wrote(key, live)
}

// Owned reads a child of an object by its name into child. It is false for one that is not there or belongs to somebody else.
func Owned(ctx context.Context, reader client.Reader, owner client.Object, name string, child client.Object) (bool, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, child)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", child, name, err)
	}
	return metav1.IsControlledBy(child, owner), nil
}

// Sooner is the shorter of two times to wait, of which zero means for ever.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}
