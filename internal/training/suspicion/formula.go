// Package suspicion says which nodes fail workers more often than chance explains, from failures of different tasks and owners.
package suspicion

import (
	"math"
	"slices"
	"time"
)

// For each node two explanations of the failures on it are weighed against each other:
//
//	the node is sound:  a job fails on it as often as its task does elsewhere, rate an hour
//	the node is bad:    the node adds to that, rate + excess an hour
//
// Failures are taken for a Poisson process. The logarithm of how much likelier the second explanation makes what was seen is a
// sum: a failure adds ln(1 + excess/rate), and each hour of a job on the node takes excess away. It is kept at zero or above,
// so that good months do not hide the day on which a node turns bad. So a task that fails everywhere says next to nothing, a task
// that fails nowhere else says much, and the sum of a sound node exceeds a limit about once in exp(limit) failures.
//
// Sources: E. S. Page, Continuous inspection schemes, Biometrika 41 (1954), for the sum that is kept at zero; A. Wald, Sequential
// tests of statistical hypotheses, Annals of Mathematical Statistics 16 (1945), for the bound on false alarms; A. Dvoretzky,
// J. Kiefer and J. Wolfowitz, Sequential decision problems for processes with continuous time parameter, Annals of Mathematical
// Statistics 24 (1953), for Poisson processes.
const (
	// excess is how often an hour a bad node fails each job on it, beyond what the job's task does: once a day is worth moving for.
	excess = 1.0 / 24
	// halfLife is after what time what was seen counts half: nodes are repaired, and tasks change.
	halfLife = 7 * 24 * time.Hour

	// doubtAt is the sum from which a job that fails on the node again avoids it.
	doubtAt = 3
	// shunAt is the sum from which other jobs prefer other nodes, and accuseAt that from which the administrator is told.
	shunAt, accuseAt = 6, 10
	// enoughWitnesses is how many owners, and how many tasks, must have failed on a node before others heed it. A witness is one
	// who adds at least leastWitness.
	enoughWitnesses, leastWitness = 2, 0.5
	// mostByOwner is how much all failures of one owner add to a node at most: more than half of accuseAt, so that two are enough,
	// and so much less than accuseAt that one owner and a failure by chance are not.
	mostByOwner = 5.5

	// unknownFailures in unknownHours is what a task and an owner start with that are not known from elsewhere: they may fail often.
	unknownFailures, unknownHours = 0.5, 2.0
	// ownerHours is how many hours of its task alone count as much as all that is known of its owner.
	ownerHours = 10.0
	// seldom and often bound the fleet's rate, and fleetHours with one failure is what it starts with. By seldom one failure adds 4
	// at most: with mostByOwner that is less than accuseAt.
	seldom, often, fleetHours = 1.0 / 1250, 1.0 / 200, 2000.0
)

// Level is how much is held against a node.
type Level int

// In rising order.
const (
	// Clear: nothing is held against it.
	Clear Level = iota
	// Doubted: a job that fails on it again avoids it.
	Doubted
	// Shunned: other jobs prefer other nodes.
	Shunned
	// Accused: the administrator is told.
	Accused
)

var levelNames = []string{Clear: "clear", Doubted: "doubted", Shunned: "shunned", Accused: "accused"}

// MetricLabel is one word for metrics.
func (l Level) MetricLabel() string { return levelNames[l] }

// LevelNamed is the level of that word; false for no level's.
func LevelNamed(word string) (level Level, is bool) {
	at := slices.Index(levelNames, word)
	return Level(max(0, at)), at >= 0
}

// levelOf is what a sum means, of that many owners and tasks.
func levelOf(sum float64, owners, tasks int) Level {
	heard := owners >= enoughWitnesses && tasks >= enoughWitnesses
	switch {
	case heard && sum >= accuseAt:
		return Accused
	case heard && sum >= shunAt:
		return Shunned
	case sum >= doubtAt:
		return Doubted
	}
	return Clear
}

// gainOf is what a failure adds to the sum of its node, given how often an hour its job fails on sound nodes.
func gainOf(rate float64) float64 { return math.Log1p(excess / rate) }

// usualRate is how often an hour a job fails on a sound node: by what its task did elsewhere, by what all tasks of its owner did
// where that is little, and not more seldom than the fleet.
func usualRate(task, owner tally, fleet float64) float64 {
	ofOwner := (owner.failed + unknownFailures) / (owner.hours + unknownHours)
	return max((task.failed+ownerHours*ofOwner)/(task.hours+ownerHours), fleet)
}

// usualRejections is how often an hour kubelets refuse workers of the task. Unlike a failure, a rejection speaks of the
// node unless the task is rejected elsewhere too.
func usualRejections(task, owner tally, fleet float64) float64 {
	return max(task.rejected/(task.hours+unknownHours), owner.rejected/(owner.hours+unknownHours), fleet)
}

// fleetRate is how often an hour a job fails on a node, over all.
func fleetRate(all tally) float64 {
	return min(max((all.failed+1)/(all.hours+fleetHours), seldom), often)
}

// shareOf is how much of one failure each of so many nodes is blamed for, whose workers failed together; 0 if it was too many to
// blame any.
func shareOf(nodes int) float64 {
	if nodes > mostTogether {
		return 0
	}
	return 1 / float64(nodes)
}

// drained is what is left of a sum after a time in which so many jobs were on the node.
func drained(sum float64, jobs int, passed time.Duration) float64 {
	return max(0, sum-excess*float64(jobs)*passed.Hours()) * fading(passed)
}

// fading is how much what was seen counts after a time.
func fading(passed time.Duration) float64 { return math.Exp2(-float64(passed) / float64(halfLife)) }

// tally is what was seen of jobs: failures and rejections, and for how many hours they were on nodes, each counted. It fades.
type tally struct {
	failed, rejected, hours float64
	at                      time.Time
}

// fade has everything up to now count less. A time before the last changes nothing.
func (t *tally) fade(now time.Time) {
	if !now.After(t.at) {
		return
	}
	if !t.at.IsZero() {
		f := fading(now.Sub(t.at))
		t.failed, t.rejected, t.hours = t.failed*f, t.rejected*f, t.hours*f
	}
	t.at = now
}

// without is what was seen elsewhere, apart from a part that has faded to the same time.
func (t *tally) without(here tally) tally {
	return tally{
		failed: max(0, t.failed-here.failed), rejected: max(0, t.rejected-here.rejected), hours: max(0, t.hours-here.hours), at: t.at,
	}
}
