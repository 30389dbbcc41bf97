package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// within is how long each step may take, on a machine that does other things too.
const within = 2 * time.Minute

// story is what the demo tells. It takes names and numbers from the samples, so that it says what they do.
type story struct {
	*printer
	shell   *shell
	watcher *watcher
	// a is there first; b arrives when every GPU is taken.
	a, b sample
	// core is the core of a before b arrives, and grown how often a was said to grow until it gave way.
	core  map[types.UID]bool
	grown int
}

// act is something that happens in a step.
type act func(context.Context) error

// tell goes through the steps and stops at the first that does not happen.
func (s *story) tell(ctx context.Context) error {
	return do(ctx, s.room, s.aTakesAll, s.bArrives, s.aTrainsOn, s.bEnds, s.aGrowsBack, s.summarize)
}

// do lets one act happen after another, until one fails.
func do(ctx context.Context, acts ...act) error {
	for _, happen := range acts {
		if err := happen(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) show(command string) act {
	return func(ctx context.Context) error { return s.shell.show(ctx, command) }
}

// quote marks the acts that README shows.
func (s *story) quote(acts ...act) act {
	return func(ctx context.Context) error {
		s.quoting = true
		defer func() { s.quoting = false }()
		return do(ctx, acts...)
	}
}

func (s *story) wait(g goal) act {
	return func(ctx context.Context) error { return s.watcher.await(ctx, within, g) }
}

// jobs, pods and events are the commands that most steps end with.
func (s *story) jobs(ctx context.Context) error { return s.shell.show(ctx, "kubectl get etj") }

func (s *story) pods(ctx context.Context) error {
	return s.shell.show(ctx, "kubectl get pods -L "+v1beta1.LabelPart)
}

func (s *story) events(ctx context.Context) error {
	return s.shell.show(ctx, fmt.Sprintf("kubectl describe etj %s | sed -n '/^Events:/,$p'", s.a.name))
}

func (s *story) room(ctx context.Context) error {
	s.step("There is one node with %d GPUs. API server, Volcano and operator are real. KWOK plays the node and its kubelet: "+
		"pods are placed and become Running, but run no code.", s.a.maximum)
	return do(ctx, s.show(`kubectl get nodes -o custom-columns='NAME:.metadata.name,GPUS:.status.allocatable.nvidia\.com/gpu'`))
}

func (s *story) aTakesAll(ctx context.Context) error {
	s.step("Job A, %s, needs %d workers of one GPU each and can use %d. Nobody else is here, so it takes every GPU: first a "+
		"core of %d, all together, then %d surplus workers.", s.a.name, s.a.minimum, s.a.maximum, s.a.minimum, s.a.maximum-s.a.minimum)
	return do(ctx,
		s.show("kubectl apply -f "+s.a.file),
		s.wait(fullSize(s.a)),
		s.quote(s.jobs),
		s.pods,
		func(context.Context) error {
			s.core = s.watcher.look().core(s.a)
			return nil
		},
	)
}

func (s *story) bArrives(ctx context.Context) error {
	s.step("Job B, %s, needs %d workers and can use %d. No GPU is free. A gang that waits comes before anybody's surplus, so "+
		"%s gives way, by as many workers as %s needs to start.", s.b.name, s.b.minimum, s.b.maximum, s.a.name, s.b.name)
	return do(ctx,
		s.quote(s.show("kubectl apply -f "+s.b.file)),
		s.wait(trains(s.b)),
		s.wait(told(s.a, v1beta1.EventGaveWay, 1)),
		s.quote(s.sayTimes, s.jobs),
		func(context.Context) error {
			s.note("Volcano decides once a second. A real node adds what KWOK leaves out: evicted containers take up to their " +
				"terminationGracePeriodSeconds to end, and new ones pull an image and start.")
			return nil
		},
		s.show("kubectl get etj -o wide"),
	)
}

func (s *story) sayTimes(context.Context) error {
	s.grown = count(s.watcher.look().told(s.a), v1beta1.EventGrew)
	s.note("%s", s.watcher.times())
	return nil
}

func (s *story) aTrainsOn(ctx context.Context) error {
	s.step("%s trains on with the workers it has; its core was not touched. Its events say so.", s.a.name)
	return do(ctx, s.pods, s.events)
}

func (s *story) bEnds(ctx context.Context) error {
	s.step("%s's training ends. Its pods run no code that could end, so the demo plays the trainer: it writes into their "+
		"status that they succeeded.", s.b.name)
	return do(ctx,
		s.show("kubectl patch pod "+strings.Join(s.watcher.look().placed(s.b.name), " ")+
			` --subresource=status --type=merge -p '{"status":{"phase":"Succeeded"}}'`),
		s.wait(succeeded(s.b)),
		s.jobs,
	)
}

func (s *story) aGrowsBack(ctx context.Context) error {
	s.step("%s grows back, once its cooldown is over: %d s in this sample, %d s by default, because each change of size costs "+
		"the training a restart from its last checkpoint.", s.a.name, s.a.cooldown, s.watcher.look().cooldown(s.b))
	return do(ctx,
		s.wait(told(s.a, v1beta1.EventGrew, s.grown+1)),
		s.wait(fullSize(s.a)),
		s.quote(s.saySince),
		s.jobs,
		s.pods,
		s.events,
	)
}

func (s *story) saySince(context.Context) error {
	since := seconds(time.Since(s.watcher.times().gaveWay))
	s.note("%s has %d ready workers again, %s after it gave way.", s.a.name, s.a.maximum, since)
	return nil
}

func (s *story) summarize(context.Context) error {
	if err := unharmed(s.watcher.look(), s.a, s.core); err != nil {
		return err
	}
	s.note("That is the story. The core of %s kept its pods all the time, and no restart was counted.", s.a.name)
	return nil
}
