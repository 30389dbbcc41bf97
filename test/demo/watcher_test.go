package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestAwait(t *testing.T) {
	w := newWatcher(timeline{host: host, newcomer: newcomer})
	arrived := goal{"a pod arrives", func(v view) (bool, string) { return len(v.pods) > 0, "there is none" }}

	err := w.await(t.Context(), time.Millisecond, arrived)
	if err == nil || err.Error() != "this did not happen within 1ms: a pod arrives; there is none" {
		t.Errorf("after the deadline: %v", err)
	}

	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if err := w.await(ctx, time.Minute, arrived); !errors.Is(err, interrupted) {
		t.Errorf("after an interrupt: %v", err)
	}

	done := make(chan error)
	go func() { done <- w.await(t.Context(), time.Minute, arrived) }()
	p := pod(host, 0, v1beta1.PartCore)
	w.put(p)
	if err := <-done; err != nil {
		t.Errorf("after it happened: %v", err)
	}

	w.drop(toolscache.DeletedFinalStateUnknown{Obj: p})
	if left := w.look().existing(host.name); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestDoStopsAtTheFirstFailure(t *testing.T) {
	var happened []string
	act := func(name string, err error) act {
		return func(context.Context) error { happened = append(happened, name); return err }
	}
	broken := errors.New("broken")
	if err := do(t.Context(), act("one", nil), act("two", broken), act("three", nil)); !errors.Is(err, broken) {
		t.Errorf("do = %v, want %v", err, broken)
	}
	if got := strings.Join(happened, " "); got != "one two" {
		t.Errorf("happened: %s", got)
	}
}
