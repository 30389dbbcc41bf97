package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// The operator's work, the same in both minutes of a round: a training comes each half second on average, lasts so long, and
// goes.
const (
	comesEvery = 500 * time.Millisecond
	lasts      = 8 * time.Second
	// shortest is a minute in which something comes.
	shortest = 15 * time.Second
	// warmUp is worked and read before anything is measured.
	warmUp = shortest
)

// arrival is a training that comes.
type arrival struct {
	at   time.Duration
	team int
}

// arrivals are those of a minute; all have gone when it ends.
func arrivals(seed uint64, minute time.Duration) (all []arrival) {
	random := rand.New(rand.NewPCG(seed, 0))
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() * float64(comesEvery))
		if at > minute-lasts {
			return all
		}
		all = append(all, arrival{at: at, team: random.IntN(teams)})
	}
}

// work creates and deletes the trainings of a minute, and returns when nothing of them is left.
func (s *stage) work(ctx context.Context, seed uint64, minute time.Duration) error {
	began := time.Now()
	group, working := errgroup.WithContext(ctx)
	for i, a := range arrivals(seed, minute) {
		group.Go(func() error {
			if !rest(working, time.Until(began.Add(a.at))) {
				return working.Err()
			}
			job := testutil.Job(fmt.Sprintf("comes-%03d", i)).In(team(a.team)).Range(workers, workers).GPUs(1).Obj()
			if err := again(func() error { return client.IgnoreAlreadyExists(s.Client.Create(working, job)) }); err != nil {
				return err
			}
			if !rest(working, lasts) {
				return working.Err()
			}
			background := client.PropagationPolicy(metav1.DeletePropagationBackground)
			return again(func() error { return client.IgnoreNotFound(s.Client.Delete(working, job, background)) })
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	rest(ctx, time.Until(began.Add(minute)))
	return s.awaitOnly(ctx)
}

// again does something a second time if it failed, as it does where a connection was lost, so that a run of minutes goes on.
func again(do func() error) error {
	if do() == nil {
		return nil
	}
	return do()
}

// minuteOf is what the operator did in one minute, and what its readers got.
type minuteOf struct {
	figures
	seen
}

// round is a minute without readers and one with them, under the same work.
type round struct{ without, with minuteOf }

// play measures all rounds.
func play(ctx context.Context, o options) (rounds []round, err error) {
	s, err := begin(ctx, o)
	defer func() {
		if ended := s.end(); err == nil {
			err = ended
		}
	}()
	if err != nil {
		return nil, err
	}
	readers, err := s.people(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.measure(ctx, 0, warmUp, readers); err != nil {
		return nil, err
	}
	for i := range o.rounds {
		seed := o.seed + uint64(i)
		var r round
		parts := []func() error{
			func() (err error) { r.without, err = s.measure(ctx, seed, o.minute, nil); return err },
			func() (err error) { r.with, err = s.measure(ctx, seed, o.minute, readers); return err },
		}
		// Who is first changes, so that what the machine and the cluster do over time falls on both.
		if seed%2 == 0 {
			parts[0], parts[1] = parts[1], parts[0]
		}
		for _, part := range parts {
			if err := part(); err != nil {
				return nil, err
			}
		}
		rounds = append(rounds, r)
		_, _ = fmt.Fprintf(os.Stderr, "round %d of %d: half of the reconciles took up to %.2f ms without readers, %.2f ms with %d, "+
			"who got %d pages\n", i+1, o.rounds, r.without.half(), r.with.half(), o.readers, len(r.with.Opened))
	}
	return rounds, nil
}

// measure has the work of a minute done while people read.
func (s *stage) measure(ctx context.Context, seed uint64, minute time.Duration, readers []person) (m minuteOf, err error) {
	before, err := s.scrape(ctx)
	if err != nil {
		return m, err
	}
	reading, err := startReaders(ctx, readers)
	if err != nil {
		return m, err
	}
	err = s.work(ctx, seed, minute)
	got, unread := reading.stop()
	m.seen = got
	if err := errors.Join(err, unread); err != nil {
		return m, err
	}
	after, err := s.scrape(ctx)
	m.figures = after.since(before)
	return m, err
}
