package faults

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/onsi/gomega"
)

// storyRun is one run of a story, which may fail without its neighbors. Ginkgo runs one spec at a time in a process, and most of
// a run is waiting, so that many stories run side by side within a spec. It is to its run what *testing.T is to a test.
type storyRun struct {
	name string
	ctx  context.Context

	mu       sync.Mutex
	failures []string
	log      strings.Builder
	cleanups []func()
}

// try does a run to its end, its cleanups included, and returns an error that tells everything if it failed.
func try(ctx context.Context, name string, do func(*storyRun)) error {
	t := &storyRun{name: name, ctx: ctx}
	t.protect(func() { do(t) })
	for len(t.cleanups) > 0 {
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		t.protect(last)
	}
	if !t.Failed() {
		return nil
	}
	return fmt.Errorf("%s:\n%s\n%s", t.name, strings.Join(t.failures, "\n"), t.log.String())
}

// protect returns when f has returned, failed the run or panicked.
func (t *storyRun) protect(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				t.fail(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		f()
	}()
	<-done
}

func (t *storyRun) fail(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, why)
}

// Helper is there for testutil.TB; failures carry their stack.
func (t *storyRun) Helper() {}

// Cleanup has f called at the end, last come first.
func (t *storyRun) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Context lasts as long as the spec may take.
func (t *storyRun) Context() context.Context { return t.ctx }

// Failed tells whether something failed so far.
func (t *storyRun) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

// Fatalf fails the run and ends it.
func (t *storyRun) Fatalf(format string, args ...any) {
	t.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Logf adds to what a failed run tells.
func (t *storyRun) Logf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(&t.log, format+"\n", args...)
}

// patience is how long is awaited what comes within seconds; the machine may do other things too.
const patience = 2 * time.Minute

// gomega returns assertions that fail this run.
func (t *storyRun) gomega() gomega.Gomega {
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	g.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	return g
}

// abreast does runs side by side, as far as there are lanes, and returns when all have ended.
func abreast(runs ...func() error) error {
	var group sync.WaitGroup
	errs := make([]error, len(runs))
	for i, run := range runs {
		group.Go(func() {
			lanes <- struct{}{}
			defer func() { <-lanes }()
			errs[i] = run()
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
