package main

import (
	"context"
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watches are caches that see each change at once, so that the arbiter keeps up with the cluster as it does in the operator.
type watches struct {
	cache.Cache // for the methods that the arbiter does not call

	of map[reflect.Type]*watch
}

// watch is the cache of one kind. Of kinds that are not simulated it is empty.
type watch struct {
	cache.Informer
	toolscache.Store

	tell toolscache.ResourceEventHandler
}

// synced says that a watch has all there is.
type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func newWatches() *watches { return &watches{of: map[reflect.Type]*watch{}} }

// GetInformer returns the watch of the kind of an object.
func (w *watches) GetInformer(_ context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return w.watchOf(of), nil
}

func (w *watches) watchOf(of client.Object) *watch {
	kind := reflect.TypeOf(of)
	if w.of[kind] == nil {
		w.of[kind] = &watch{Store: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), tell: toolscache.ResourceEventHandlerFuncs{}}
	}
	return w.of[kind]
}

// see puts an object into the cache of its kind, or takes it out if it is gone, and tells who watches.
func (w *watches) see(o client.Object, gone bool) error {
	of := w.watchOf(o)
	before, known, err := of.Get(o)
	if err != nil {
		return err
	}
	switch {
	case gone:
		err = of.Delete(o)
		of.tell.OnDelete(o)
	case known:
		err = of.Update(o)
		of.tell.OnUpdate(before, o)
	default:
		err = of.Add(o)
		of.tell.OnAdd(o, false)
	}
	return err
}

// GetStore is what the cache holds.
func (w *watch) GetStore() toolscache.Store { return w.Store }

// AddEventHandler has the only handler that there is told of changes.
func (w *watch) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	w.tell = h
	for _, o := range w.List() {
		h.OnAdd(o, true)
	}
	return synced{}, nil
}

// HasSynced is true: nothing was there before the watch.
func (synced) HasSynced() bool { return true }
