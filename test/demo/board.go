package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// board shows how things stand, and lets a story wait for what happens.
type board[V any] struct {
	mu   sync.Mutex
	view V
	// clone copies a view for who reads it while it changes.
	clone func(V) V
	// record notes what is seen at each change.
	record  func(V, time.Time)
	changed chan struct{} // closed at the next change
}

func newBoard[V any](view V, clone func(V) V, record func(V, time.Time)) *board[V] {
	return &board[V]{view: view, clone: clone, record: record, changed: make(chan struct{})}
}

// goalOf is something that a story waits for.
type goalOf[V any] struct {
	what string
	// met returns whether it has happened, and how things stand.
	met func(V) (bool, string)
}

// change changes the view, records it, and wakes who waits.
func (b *board[V]) change(to func(V)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to(b.view)
	b.record(b.view, time.Now())
	close(b.changed)
	b.changed = make(chan struct{})
}

// look returns how things stand.
func (b *board[V]) look() V {
	view, _ := b.watched()
	return view
}

// watched returns how things stand, and a channel that is closed when that changes.
func (b *board[V]) watched() (V, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clone(b.view), b.changed
}

// hold has f called while nothing changes.
func (b *board[V]) hold(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// await waits until the goal is met.
func (b *board[V]) await(ctx context.Context, within time.Duration, g goalOf[V]) error {
	return b.follow(ctx, within, g, nil, nil)
}

// follow waits until the goal is met, and tells how things stand at each beat.
func (b *board[V]) follow(ctx context.Context, within time.Duration, g goalOf[V], beat <-chan time.Time, tell func(V)) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		view, changed := b.watched()
		met, stand := g.met(view)
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-beat:
			tell(view)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("this did not happen within %s: %s; %s", within, g.what, stand)
		}
	}
}
