// Package growth decides when a training may grow of its own accord: whether a change of size pays, and how long it waits between
// two of them. It has neither client nor clock.
package growth

import (
	"math"
	"time"
)

// A change of size stops every worker until all have found each other again and have trained past where they were. So surplus
// pays if it stays long enough for what it trains to make up for what all others miss meanwhile:
//
//	                           grows                             gives way
//	old (n)     ---------------|-- outage --|##### trains #####|
//	new (k)     |-- idle ------|-- outage --|##### trains #####|
//	             room is free  <--------------- stay ---------->
//
//	gain   = k * share * devices * (stay - outage)
//	cost   = n * devices * outage
//	missed = k * share * devices * idle
//
// where a worker that joins adds a share of what each of those makes that train already: all of it, unless it was measured.
// A job grows if gain > cost and missed >= cost. The second is the rent-or-buy rule: renting is to leave the room idle, buying is
// the restart. Whoever buys once the rent has reached the price pays at most twice what the best choice would have cost that
// knew the future (Karlin, Manasse, Rudolph, Sleator: Competitive snoopy caching, Algorithmica 3, 1988). For rooms that become
// free one after the other it is when to acknowledge packets (Dooly, Goldman, Scott: On-line analysis of the TCP acknowledgment
// delay problem, JACM 48, 2001). So a job waits for minutes if little is free or a restart is dear, and for seconds if much is.

// AssumedStay is how long surplus is taken to stay in a queue that has no history.
const AssumedStay = time.Hour

// Stay is how surplus fared in a queue.
type Stay struct {
	// Held is the time that surplus workers held a node, summed over workers. Left is how many of them gave way.
	Held time.Duration
	Left int64
}

// Expected is how long a surplus worker will stay: the mean of an exponential distribution, estimated from all the time that was
// observed, that of workers which still stay included (Lawless: Statistical Models and Methods for Lifetime Data, 2003, 4.1).
// One departure after AssumedStay is added to what was observed, so that a queue without a history has an expectation too.
func (s Stay) Expected() time.Duration {
	return time.Duration((float64(s.Held) + float64(AssumedStay)) / float64(s.Left+1))
}

// Step is a change of size that a training could make now.
type Step struct {
	// Training is how many workers train, and Joining how many would join them.
	Training, Joining int32
	// Devices is how many devices a worker has; without any, workers are counted instead.
	Devices int64
	// Shortfall is by how much less a worker that joins adds than one makes that trains already, as a share of it from 0 to 1: see
	// [Curve.ShareOf].
	Shortfall float64
	// Outage is how long a change of size keeps the training from progress.
	Outage time.Duration
	// Stay is how surplus fared in the queue of the job.
	Stay Stay
	// Idle is for how long the room for those who would join has been free, on average over them.
	Idle time.Duration
	// First is true for a job that has not grown yet: it does not wait for what it missed.
	First bool
}

// Worth is what a step would bring and cost, and what the job has missed without it, in device-seconds.
type Worth struct{ Gain, Cost, Missed int64 }

// Weigh computes what the step is worth.
func (s Step) Weigh() Worth {
	return Worth{
		Gain:   s.deviceTime(s.joins(), s.Stay.Expected()-s.Outage),
		Cost:   s.deviceTime(float64(s.Training), s.Outage),
		Missed: s.deviceTime(s.joins(), s.Idle),
	}
}

// joins is how many workers those who join are worth.
func (s Step) joins() float64 { return float64(s.Joining) * (1 - s.Shortfall) }

// deviceTime is the device-seconds of so many workers in a time; 0 for a negative one.
func (s Step) deviceTime(workers float64, d time.Duration) int64 {
	seconds := workers * float64(max(1, s.Devices)) * max(0, d.Seconds())
	// Up to 2^53 a float holds each whole number.
	return int64(math.Min(math.Round(seconds), 1<<53))
}

// Pays is true if the step is expected to bring more than it costs.
func (s Step) Pays() bool {
	w := s.Weigh()
	return w.Gain > w.Cost
}

// TimeLeft is how much longer the room must stay free until what the job missed is what the step costs; zero or less for no
// longer.
func (s Step) TimeLeft() time.Duration {
	if s.First || s.joins() <= 0 {
		return 0
	}
	return time.Duration(float64(s.Outage)*float64(s.Training)/s.joins()) - s.Idle
}

// IsDue is true if the job should make the step now.
func (s Step) IsDue() bool { return s.Pays() && s.TimeLeft() <= 0 }
