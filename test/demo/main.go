// Demo tells a story on a real local cluster, by the commands that a user would type and what they printed. Without an argument
// it is that of two elastic training jobs: the first takes every GPU, gives way to the second, and grows back. With the argument
// merge it is that of a dozen models whose merges take turns in one pool.
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
	page := flag.String("page", "", "write what README shows of the story of two jobs into `FILE`, between the marks of "+pageTarget)
	flag.Parse()
	var p play
	switch name := flag.Arg(0); {
	case flag.NArg() == 0:
		p = &elasticPlay{page: *page}
	case flag.NArg() == 1 && name == "merge":
		p = newMergePlay()
	default:
		_, _ = fmt.Fprintf(os.Stderr, "demo: there is no story %q: give merge, or nothing\n", flag.Args())
		os.Exit(2) //nolint:mnd // as package flag does for what it does not know
	}
	// What libraries log would interrupt the story.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	out := &printer{out: os.Stdout, colour: wantsColour(os.Stdout, os.Getenv)}
	os.Exit(status(out, p, *oneshot))
}

// status runs the demo until it has ended or is interrupted, says why, and returns its exit status.
func status(out *printer, p play, oneshot bool) int {
	// Later signals change nothing: what has been started is being ended. SIGPIPE is among them for `make demo | head`.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	err := run(ctx, p, oneshot, out, os.Stderr)
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
