package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
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

// Applier makes the writes that a reconciler has decided on and notes them under the key of the reconciled object, so that
// nothing is decided for that key again before the caches have seen them.
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
	return a.Writes.NoteWrite(key, child)
}

// Delete deletes the object that was observed: o has its namespace, name and UID. It is no error if the object is gone.
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
	a.Writes.NoteDelete(key, o)
	return nil
}

// Apply applies fields of an object by server-side apply. The content must have the object's UID, so that the API server
// refuses it for an object that was created since. written is an empty object of the kind.
func (a Applier) Apply(ctx context.Context, key types.NamespacedName, content map[string]any, written client.Object) error {
	patch := &unstructured.Unstructured{Object: content}
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(FieldManager),
		client.ForceOwnership)
	if err != nil {
		return err
	}
	written.SetResourceVersion(patch.GetResourceVersion())
	return a.Writes.NoteWrite(key, written)
}

// PatchMetadata merges labels and annotations into an object. o has its namespace, name and UID: the API server refuses the patch
// for an object that was created since. A nil value takes a key away. It is no error if the object is gone.
func (a Applier) PatchMetadata(
	ctx context.Context, key types.NamespacedName, o *metav1.PartialObjectMetadata, labels, annotations map[string]*string,
) error {
	metadata := map[string]any{"uid": o.UID}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	content, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("write labels of %s: %w", o.Name, err)
	}
	gvk := o.GroupVersionKind() // The answer may lack it.
	err = a.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, content), client.FieldOwner(FieldManager))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.Writes.NoteVersion(key, gvk, o.ResourceVersion)
}

// PatchStatus has the status of an object, which was one value, be another. It sends the resource version, so that an operator
// with an old view overwrites nothing. Neither what is sent nor the answer has more of the object than that: a spec may be large.
func (a Applier) PatchStatus(ctx context.Context, key types.NamespacedName, object client.Object, was, wanted any) error {
	content, err := statusPatch(object.GetResourceVersion(), was, wanted)
	if err != nil {
		return fmt.Errorf("compare the statuses of %T: %w", object, err)
	}
	gvk, err := a.Client.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Errorf("patch the status of %T: %w", object, err)
	}
	answer := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	answer.SetGroupVersionKind(gvk)
	if err := a.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, content)); err != nil {
		return err
	}
	return a.Writes.NoteVersion(key, gvk, answer.ResourceVersion)
}

// statusPatch is a merge patch (RFC 7386) from one status to another.
func statusPatch(version string, was, wanted any) ([]byte, error) {
	from, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	status, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": version}, "status": json.RawMessage(status),
	})
}

// CatchUp keeps a key from being reconciled until the cache is as new as the API server. Call it when a refused write shows
// that the object was changed, deleted or created again. Otherwise, while the watch is late, children of a deleted object would
// be created and garbage-collected again and again. live is an empty object of the kind.
func (a Applier) CatchUp(ctx context.Context, key types.NamespacedName, object, live client.Object) error {
	err := a.Live.Get(ctx, client.ObjectKeyFromObject(object), live)
	switch {
	case apierrors.IsNotFound(err):
		a.Writes.NoteDelete(key, object)
		return nil
	case err != nil:
		return fmt.Errorf("read the object that is newer than the cache: %w", err)
	}
	return a.Writes.NoteWrite(key, live)
}

// IsOwned reads a child of an object by its name into child. It returns false if there is none, or it belongs to another owner.
func IsOwned(ctx context.Context, reader client.Reader, owner client.Object, name string, child client.Object) (bool, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, child, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", child, name, err)
	}
	return metav1.IsControlledBy(child, owner), nil
}

// SoonerOf is the shorter of two times to wait; zero means for ever.
func SoonerOf(a, b time.Duration) time.Duration {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}
