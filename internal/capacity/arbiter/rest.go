package arbiter

import "time"

// An evaluation of 10,000 jobs that may grow takes a third of a second of CPU, and any event asks for one. Where nothing else
// waits for an answer the arbiter rests for 49 times as long as it worked, so that growing takes 2 % of a processor, and a minute
// at most. A job loses little: it grows a minute later, and keeps its size for minutes then. One that begins to run is answered
// at once: it grows before its workers have done anything that a restart would lose. Small clusters never notice, because an
// evaluation of a few milliseconds leaves less rest than the least time between two.
const (
	restPerWork = 49
	longestRest = time.Minute
)

// pace is how long the arbiter rests.
type pace struct {
	// took is how long the last two evaluations took. The lesser counts, because anything may hold one of them up.
	took  [2]time.Duration
	until time.Time
	// begun is how many jobs that may grow the last evaluation has seen begin to run.
	begun int
}

// noteWork notes an evaluation that began and ended at these times.
func (p *pace) noteWork(began, ended time.Time) {
	p.took = [2]time.Duration{ended.Sub(began), p.took[0]}
	p.until = ended.Add(min(restPerWork*min(p.took[0], p.took[1]), longestRest))
}

// remaining is for how long the arbiter still rests if only jobs that may grow ask; zero or less for not at all.
func (p *pace) remaining(now time.Time) time.Duration { return p.until.Sub(now) }

// isDue is true if the arbiter should evaluate now.
func (a *Arbiter) isDue(now time.Time) bool { return a.pace.remaining(now) <= 0 || a.mustAnswer() }

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
