// Package growth decides when a training may grow of its own accord: whether a change of size pays, and how long it waits between
// two of them. It has neither client nor clock.
package growth

import (
	"math"
	"time"
)

// A change of size stops every worker until all have found each other again and have trained past where they were. So surplus
// pays only if it stays long enough:
//
//	            grows                            gives way
//	old (n)     |-- outage --|####### trains #######|-- outage --|###
//	new (k)     |-- outage --|####### trains #######|
//	            <------------- stay --------------->
//
//	gain = k * devices * (stay - outage)
//	cost = n * devices * outage * (1 + departures)
//
// The first outage is that of growing. Each departure causes another one: k workers leave in k / together of them, where together
// is how many usually leave at once. The comparison is the rent-or-buy rule with a known expectation (Karlin, Manasse, Rudolph,
// Sleator: Competitive snoopy caching, Algorithmica 3, 1988).

// AssumedStay is how long surplus is taken to stay in a queue that has no history.
const AssumedStay = time.Hour

// Stay is how surplus fared in a queue.
type Stay struct {
	// Held is the time that surplus workers held a node, summed over workers. Left is how many of them gave way, in Departures
	// departures.
	Held       time.Duration
	Left       int64
	Departures int64
}

// Expected is how long a surplus worker will stay: the mean of an exponential distribution, estimated from all the time that was
// observed, that of workers which still stay included (Lawless: Statistical Models and Methods for Lifetime Data, 2003, 4.1).
// One departure after AssumedStay is added to what was observed, so that a queue without a history has an expectation too.
func (s Stay) Expected() time.Duration {
	return time.Duration((float64(s.Held) + float64(AssumedStay)) / float64(s.Left+1))
}

// Together is how many surplus workers leave at once, 1 or more; 0 if none has left yet.
func (s Stay) Together() float64 {
	if s.Departures == 0 {
		return 0
	}
	return math.Max(1, float64(s.Left)/float64(s.Departures))
}

// Step is a change of size that a training could make now.
type Step struct {
	// Training is how many workers train, and Joining how many would join them.
	Training, Joining int32
	// Devices is how many devices a worker has; without any, workers are counted instead.
	Devices int64
	// Outage is how long a change of size keeps the training from progress.
	Outage time.Duration
	// Stay is how surplus fared in the queue of the job.
	Stay Stay
}

// Worth is what a step would bring, in device-seconds.
type Worth struct{ Gain, Cost int64 }

// Pays is true if the step brings more than it costs.
func (w Worth) Pays() bool { return w.Gain > w.Cost }

// Weigh computes what the step is worth.
func (s Step) Weigh() Worth {
	devices := float64(max(1, s.Devices))
	departures := 1.0
	if together := s.Stay.Together(); together > 0 {
		departures = math.Ceil(float64(s.Joining) / together)
	}
	outage := s.Outage.Seconds()
	return Worth{
		Gain: toWhole(float64(s.Joining) * devices * math.Max(0, s.Stay.Expected().Seconds()-outage)),
		Cost: toWhole(float64(s.Training) * devices * outage * (1 + departures)),
	}
}

func toWhole(x float64) int64 { return int64(math.Min(math.Round(x), 1<<53)) }
