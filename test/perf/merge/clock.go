package main

import (
	"context"
	"time"
)

// A clock tells simulated time, of which one real second is scale seconds.
type clock struct {
	began time.Time
	scale float64
}

// now is the simulated time since the beginning.
func (c clock) now() time.Duration { return c.at(time.Now()) }

func (c clock) at(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.began)) * c.scale)
}

// real is how long a simulated duration takes.
func (c clock) real(simulated time.Duration) time.Duration {
	return time.Duration(float64(simulated) / c.scale)
}

// until waits for a simulated time. It returns the context's error if that ends first.
func (c clock) until(ctx context.Context, at time.Duration) error {
	timer := time.NewTimer(c.real(at - c.now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
