package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// pods are all of the cluster, as a watch tells.
type pods struct {
	mu      sync.Mutex
	ready   map[types.UID]bool // false for those that are not ready
	changed chan struct{}
	// driver gets every pod that changed, if there is one.
	driver func(*corev1.Pod)
}

// longest is how long the pods of all jobs may come no closer to what they should be.
const longest = 5 * time.Minute

// A stalledError says that pods came no closer to what they should be.
type stalledError struct{ there, ready, wanted int }

func (e stalledError) Error() string {
	return fmt.Sprintf("%d pods were there and %d ready, and not %d, when no more had come or gone for %s",
		e.there, e.ready, e.wanted, longest)
}

// watchPods watches until the context ends.
func watchPods(ctx context.Context, config *rest.Config) (*pods, error) {
	config.UserAgent = "speed"
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &pods{ready: map[types.UID]bool{}, changed: make(chan struct{}, 1)}
	factory := informers.NewSharedInformerFactory(clientset, 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.see(o, false) },
		UpdateFunc: func(_, o any) { p.see(o, false) },
		DeleteFunc: func(o any) { p.see(o, true) },
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, errors.New("the pods could not be listed")
	}
	return p, nil
}

func (p *pods) see(object any, gone bool) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	if gone {
		delete(p.ready, pod.UID)
	} else {
		p.ready[pod.UID] = isReady(pod)
	}
	driver := p.driver
	p.mu.Unlock()
	if driver != nil && !gone {
		driver(pod)
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// await waits until so many pods are there, and all of them ready. Its error is a stalledError where they come no closer to
// that: a pod that is created again and again changes too.
func (p *pods) await(ctx context.Context, n int) error {
	still := time.NewTimer(longest)
	defer still.Stop()
	least := math.MaxInt
	for {
		there, ready := p.count()
		missing := max(there-n, n-there) + max(ready-n, n-ready)
		switch {
		case missing == 0:
			return nil
		case missing < least:
			least = missing
			still.Reset(longest)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-still.C:
			return stalledError{there, ready, n}
		case <-p.changed:
		}
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (p *pods) count() (there, ready int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, isReady := range p.ready {
		if isReady {
			ready++
		}
	}
	return len(p.ready), ready
}
