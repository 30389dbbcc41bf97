package main

import (
	"math/rand/v2"
	"time"
)

// An experiment is how much there is to merge and what counts as late. Its times are simulated ones, since the beginning.
type experiment struct {
	models   int
	machines int           // that a merge takes
	interval time.Duration // age at which a full model is merged again
	jitter   time.Duration // self-started merges start this much earlier or later at most
	shortest time.Duration // merge
	longest  time.Duration // merge
	giveUp   time.Duration // where merges give up: how long they wait for all their machines
	horizon  time.Duration // of one run
	warmUp   time.Duration // before this, nothing is counted but deadlocks
	late     time.Duration // age that no full model should reach
	stuck    time.Duration // without progress, is a deadlock
	seed     uint64
}

// fixed is the experiment of the design: nobody tunes it. All trainings began together, so their full models are equally old at
// the beginning, and the first merges of all 60 are due within an hour.
var fixed = experiment{
	models:   60,
	machines: 4,
	interval: 10 * time.Hour,
	jitter:   30 * time.Minute,
	shortest: 15 * time.Minute,
	longest:  35 * time.Minute,
	giveUp:   10 * time.Minute,
	horizon:  30 * time.Hour,
	warmUp:   10 * time.Hour,
	late:     15 * time.Hour, // the alert: one and a half intervals
	stuck:    time.Hour,
	seed:     1,
}

// firstAge is the age of every full model at the beginning: the earliest merge starts at once.
func (e experiment) firstAge() time.Duration { return e.interval - e.jitter }

// duration is how long a model's merge takes once it has all its machines, the first being 0. It is the same in every pool and
// whoever starts it.
func (e experiment) duration(model, merge int) time.Duration {
	return e.shortest + e.draw(model, merge, 0, e.longest-e.shortest)
}

// lag is how much later than the age of interval, or earlier if negative, a training starts a merge itself.
func (e experiment) lag(model, merge int) time.Duration {
	return e.draw(model, merge, 1, 2*e.jitter) - e.jitter
}

// draw returns a duration below the limit that follows from seed, model, merge and purpose alone.
func (e experiment) draw(model, merge int, purpose uint64, limit time.Duration) time.Duration {
	random := rand.New(rand.NewPCG(e.seed, uint64(model)<<32|uint64(merge)<<8|purpose))
	return time.Duration(random.Int64N(int64(limit)))
}

// bound is how many machines are busy if merges never wait for one another, and every model is merged at the age of interval:
// work divided by time.
func (e experiment) bound() float64 {
	mean := (e.shortest + e.longest) / 2
	return float64(e.models*e.machines) * mean.Hours() / e.interval.Hours()
}

// A strategy is who starts merges, and how.
type strategy struct {
	key   string // names it on the command line and in the cluster
	title string
	// gang has all machines of a merge given together or not at all.
	gang bool
	// givesUp has a merge without all its machines leave those that it has, after experiment.giveUp, and try again.
	givesUp bool
	// tideline has MergeJobs start merges.
	tideline bool
	// sideBySide is how many pools run at once: a machine that is too busy for them slows merges that have more to do.
	sideBySide int
}

var strategies = []strategy{
	{key: "pods-wait", title: "plain pods that wait", sideBySide: 9},
	{key: "pods-retry", title: "plain pods that give up", givesUp: true, sideBySide: 3},
	{key: "gangs-wait", title: "gangs that wait", gang: true, sideBySide: 9},
	{key: "gangs-retry", title: "gangs that give up", gang: true, givesUp: true, sideBySide: 3},
	{key: "tideline", title: "Tideline's line", tideline: true, sideBySide: 2},
}
