// Demo tells the story of two elastic training jobs on a real local cluster: the first takes every GPU, gives way to the
// second, and grows back. Each step shows the command a user would type and what it printed.
//
// With -oneshot it ends by itself, and fails if a step did not happen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	oneshot := flag.Bool("oneshot", os.Getenv("ONESHOT") != "",
		"end after the story instead of staying up; the variable ONESHOT does the same")
	flag.Parse()
	// What libraries log would interrupt the story.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	out := &printer{out: os.Stdout, colour: wantsColour(os.Stdout, os.Getenv)}
	os.Exit(status(out, *oneshot))
}

// status runs the demo until it has ended or is interrupted, says why, and returns its exit status.
func status(out *printer, oneshot bool) int {
	// Later signals change nothing: what has been started is being ended. SIGPIPE is among them for `make demo | head`.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	err := run(ctx, oneshot, out, os.Stderr)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		_, _ = fmt.Fprintln(os.Stderr, "demo: interrupted; nothing keeps running")
		return 130
	default:
		_, _ = fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
}
