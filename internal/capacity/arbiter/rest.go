package arbiter

import (
	"time"

	"github.com/tideline-io/tideline/internal/platform/dutycycle"
)

// An evaluation of 10,000 jobs takes a third of a second of CPU, and any event asks for one. The arbiter rests after each for a
// multiple of the time that it took. So evaluations take the same part of a processor however many jobs there are. Small clusters
// never notice: an evaluation of a few milliseconds leaves less rest than the least time between two.
//
// Whoever waits for an answer has it after a rest of 9 times the work: a tenth of a processor. Where only jobs ask that may grow,
// the rest is 49 times the work: they lose little, because they grow a minute later and keep their size for minutes then. A job
// that begins to run counts among those that wait: it grows before its workers have done anything that a restart would lose.
var (
	restOfAnswers = dutycycle.Rest{Times: 9, Most: 5 * time.Second}
	restOfGrowth  = dutycycle.Rest{Times: 49, Most: time.Minute}
)

// pace is how long the arbiter worked, and when.
type pace struct {
	// took is how long the last two evaluations took. The lesser counts, because anything may hold one of them up.
	took  [2]time.Duration
	ended time.Time
	// begun is how many jobs that may grow the last evaluation has seen begin to run.
	begun int
}

// noteWork notes an evaluation that began and ended at these times.
func (p *pace) noteWork(began, ended time.Time) {
	p.took, p.ended = [2]time.Duration{ended.Sub(began), p.took[0]}, ended
}

// remaining is for how long the arbiter still rests; zero or less for not at all.
func (p *pace) remaining(r dutycycle.Rest, now time.Time) time.Duration {
	return r.After(min(p.took[0], p.took[1])) - now.Sub(p.ended)
}

// restLeft is for how long the arbiter still rests before it evaluates; zero or less for not at all.
func (a *Arbiter) restLeft(now time.Time) time.Duration {
	if a.mustAnswer() {
		return a.pace.remaining(restOfAnswers, now)
	}
	return a.pace.remaining(restOfGrowth, now)
}

// mustAnswer is true if something else waits than jobs that were told how far they may grow: a job that has just begun to run, a
// gang, a worker without a node, a job that is to go on, a merge, or a gang that was promised room. It reads no more than that,
// because it is asked at each event. Pods of others without a gang do not count: a single one that fits nowhere would keep the
// arbiter from ever resting.
func (a *Arbiter) mustAnswer() bool {
	if !a.hasSynced() {
		return true
	}
	for _, promises := range a.promises {
		if promises.AnyMade() {
			return true
		}
	}
	a.mirror.mu.RLock()
	defer a.mirror.mu.RUnlock()
	if len(a.mirror.short)+len(a.mirror.asking) > 0 || a.mirror.begun != a.pace.begun {
		return true
	}
	for _, pod := range a.mirror.unbound {
		if pod.isWorker && a.mirror.jobs[pod.owner.NamespacedName] != nil {
			return true
		}
	}
	for _, merge := range a.mirror.merges {
		if asksForCeiling(merge) {
			return true
		}
	}
	return false
}
