package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// watcher keeps a view up to date by watches.
type watcher struct {
	*board[view]
	line timeline
}

func newWatcher(line timeline) *watcher {
	w := &watcher{line: line}
	w.board = newBoard(newView(), view.clone, w.line.note)
	return w
}

// watch begins to watch the namespace and returns when the view is complete. It ends with ctx.
func (w *watcher) watch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, namespace string) error {
	c, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return fmt.Errorf("watch namespace %s: %w", namespace, err)
	}
	for _, kind := range []client.Object{&v1beta1.ElasticTrainingJob{}, &corev1.Pod{}, &eventsv1.Event{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    w.put,
			UpdateFunc: func(_, o any) { w.put(o) },
			DeleteFunc: w.drop,
		}); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	go func() { _ = c.Start(ctx) }() // it returns an error only when it is started twice
	if !c.WaitForCacheSync(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

func (w *watcher) put(object any) {
	w.change(func(v view) { v.put(object) })
}

func (w *watcher) drop(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	w.change(func(v view) { v.drop(object) })
}

// times returns the timeline as far as it has been noted.
func (w *watcher) times() *timeline {
	var line timeline
	w.hold(func() { line = w.line })
	return &line
}
