package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// scene keeps a view up to date, and lets the story wait for what happens.
type scene struct {
	mu      sync.Mutex
	view    view
	line    timeline
	changed chan struct{} // closed at the next change
}

func newScene(line timeline) *scene {
	return &scene{view: newView(), line: line, changed: make(chan struct{})}
}

// watch begins to watch the namespace and returns when the view is complete. It ends with ctx.
func (s *scene) watch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, namespace string) error {
	c, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return fmt.Errorf("watch namespace %s: %w", namespace, err)
	}
	for _, kind := range []client.Object{&v1alpha1.ElasticTrainingJob{}, &corev1.Pod{}, &eventsv1.Event{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    s.put,
			UpdateFunc: func(_, o any) { s.put(o) },
			DeleteFunc: s.drop,
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

func (s *scene) put(object any) {
	s.change(func(v view) { v.put(object) })
}

func (s *scene) drop(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	s.change(func(v view) { v.drop(object) })
}

// change changes the view, notes the time if the timeline is waiting for that, and wakes who waits.
func (s *scene) change(to func(view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to(s.view)
	s.line.note(s.view, time.Now())
	close(s.changed)
	s.changed = make(chan struct{})
}

// look returns how things stand.
func (s *scene) look() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.clone()
}

// times returns the timeline as far as it has been noted.
func (s *scene) times() *timeline {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.line
	return &line
}

// await waits until the goal is met.
func (s *scene) await(ctx context.Context, within time.Duration, g goal) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		met, stand := g.met(s.view)
		changed := s.changed
		s.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("this did not happen within %s: %s; %s", within, g.what, stand)
		}
	}
}
