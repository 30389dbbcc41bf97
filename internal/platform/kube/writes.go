// Package kube holds the small tools that every reconciler of Tideline shares.
package kube

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// StaleInterval is after what time a reconciler looks again whether a cache has seen its writes, if no event comes before.
const StaleInterval = 2 * time.Second

// Writes remembers what a reconciler wrote for an owner until the caches have seen it, so that nothing is decided twice on
// stale reads. Kubernetes' own controllers do the same since 1.36 (pkg/controller/util/consistency): resource versions of one
// kind can be compared, and a cache that has seen a later one has seen ours.
type Writes struct {
	cache  cache.Cache
	scheme *runtime.Scheme

	mu     sync.Mutex
	owners map[types.NamespacedName]*unseen
	// kinds has an empty object of each kind, which all writes share: thousands of owners may have some.
	kinds map[schema.GroupVersionKind]client.Object
	// tasks are the reconciles that are at work, or whose writes the caches may not have seen.
	tasks map[types.NamespacedName]task
}

// task is a reconcile.
type task struct {
	began time.Time
	ended bool
}

// unseen are one owner's writes that the caches may not have seen.
type unseen struct {
	written map[schema.GroupVersionKind]write
	deleted map[types.UID]client.Object
	// notes is how often something was noted.
	notes int
}

// write is the last one of a kind. kind is the empty object of that kind: what was written may be large.
type write struct {
	kind    client.Object
	version string
}

// NewWrites returns an empty memory over the caches that the reconciler reads.
func NewWrites(c cache.Cache, scheme *runtime.Scheme) *Writes {
	return &Writes{
		cache: c, scheme: scheme, owners: map[types.NamespacedName]*unseen{}, kinds: map[schema.GroupVersionKind]client.Object{},
		tasks: map[types.NamespacedName]task{},
	}
}

// Begin notes that an owner, whose writes the caches have all seen, is reconciled from now on until end is called.
func (w *Writes) Begin(owner types.NamespacedName, now time.Time) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks[owner] = task{began: now}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.owners[owner] == nil {
			delete(w.tasks, owner)
			return
		}
		w.tasks[owner] = task{began: now, ended: true}
	}
}

// UnsettledSince is when the reconcile of an owner began that is at work, or whose writes the caches may not have seen; zero for
// none. It may be asked at any time.
func (w *Writes) UnsettledSince(ctx context.Context, owner types.NamespacedName) time.Time {
	w.mu.Lock()
	t := w.tasks[owner]
	w.mu.Unlock()
	if t.ended {
		if seen, err := w.HasSeenAll(ctx, owner); err == nil && seen {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.tasks[owner].began // The next may have begun.
		}
	}
	return t.began
}

// NoteWrite notes an object that was created or patched for the owner, as the API server returned it.
func (w *Writes) NoteWrite(owner types.NamespacedName, o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, w.scheme)
	if err != nil {
		return fmt.Errorf("note a write of %T: %w", o, err)
	}
	return w.NoteVersion(owner, gvk, o.GetResourceVersion())
}

// NoteVersion is [Writes.NoteWrite] for an object of which only the new resource version is at hand.
func (w *Writes) NoteVersion(owner types.NamespacedName, gvk schema.GroupVersionKind, version string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.recordOf(owner)
	last, known := u.written[gvk]
	if known {
		if order, err := resourceversion.CompareResourceVersion(last.version, version); err == nil && order >= 0 {
			return nil
		}
	} else {
		kind, err := w.kindOf(gvk)
		if err != nil {
			return err
		}
		last.kind = kind
	}
	last.version = version
	u.written[gvk] = last
	return nil
}

// kindOf is an empty object of a kind. The caller holds the lock.
func (w *Writes) kindOf(gvk schema.GroupVersionKind) (client.Object, error) {
	if kind := w.kinds[gvk]; kind != nil {
		return kind, nil
	}
	object, err := w.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("note a write of %s: %w", gvk.Kind, err)
	}
	kind, is := object.(client.Object)
	if !is {
		return nil, fmt.Errorf("%s is no kind of objects", gvk.Kind)
	}
	w.kinds[gvk] = kind
	return kind, nil
}

// NoteDelete notes an object whose deletion the API server accepted.
func (w *Writes) NoteDelete(owner types.NamespacedName, o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recordOf(owner).deleted[o.GetUID()] = o
}

// ForgetOwner drops everything noted for an owner.
func (w *Writes) ForgetOwner(owner types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(owner)
}

// forget drops what was noted. The caller holds the lock.
func (w *Writes) forget(owner types.NamespacedName) {
	delete(w.owners, owner)
	if w.tasks[owner].ended {
		delete(w.tasks, owner)
	}
}

// HasSeenAll is true if the caches have seen every write noted for the owner. It then forgets them.
func (w *Writes) HasSeenAll(ctx context.Context, owner types.NamespacedName) (bool, error) {
	w.mu.Lock()
	u := w.owners[owner]
	if u == nil {
		w.mu.Unlock()
		return true, nil
	}
	written, deleted, notes := maps.Clone(u.written), maps.Clone(u.deleted), u.notes
	w.mu.Unlock()
	for _, last := range written {
		if seen, err := w.sawVersion(ctx, last); !seen || err != nil {
			return false, err
		}
	}
	for uid, o := range deleted {
		if seen, err := w.sawDeletion(ctx, uid, o); !seen || err != nil {
			return false, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.owners[owner] == nil: // Who asked at the same time has forgotten them.
	case w.owners[owner] != u || u.notes != notes:
		return false, nil // Something was noted meanwhile.
	}
	w.forget(owner)
	return true, nil
}

func (w *Writes) sawVersion(ctx context.Context, last write) (bool, error) {
	informer, err := w.cache.GetInformer(ctx, last.kind)
	if err != nil {
		return false, fmt.Errorf("get the cache of %T: %w", last.kind, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return false, fmt.Errorf("the cache of %T does not tell its resource version", last.kind)
	}
	order, err := resourceversion.CompareResourceVersion(shared.GetStore().LastStoreSyncResourceVersion(), last.version)
	if err != nil {
		return false, fmt.Errorf("compare resource versions of %T: %w", last.kind, err)
	}
	return order >= 0, nil
}

func (w *Writes) sawDeletion(ctx context.Context, uid types.UID, o client.Object) (bool, error) {
	cached, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return false, fmt.Errorf("%T is no object", o)
	}
	err := w.cache.Get(ctx, client.ObjectKeyFromObject(o), cached)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s from the cache: %w", o, o.GetName(), err)
	}
	return cached.GetUID() != uid || cached.GetDeletionTimestamp() != nil, nil
}

// recordOf returns the owner's record, to which the caller adds something. The caller holds the lock.
func (w *Writes) recordOf(owner types.NamespacedName) *unseen {
	u := w.owners[owner]
	if u == nil {
		u = &unseen{written: map[schema.GroupVersionKind]write{}, deleted: map[types.UID]client.Object{}}
		w.owners[owner] = u
	}
	u.notes++
	return u
}
