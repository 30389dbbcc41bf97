package progress

import (
	"fmt"
	"time"
)

const (
	// enough is how many intervals between reports tell how long a step usually takes.
	enough = 3
	// settled is how many tell how fast the training goes with its present workers.
	settled = 12
	// smoothing is the weight of a new interval in the usual one.
	smoothing = 0.2
	// clamp is how many times the usual interval a new one counts at most, so that a clock that jumps moves little.
	clamp = 4
	// longestInterval is the longest between two reports that says anything of steps.
	longestInterval = 24 * time.Hour
	// margin is what a silence may last beyond the steps that it is measured in: reports are paced, and logs come late.
	margin = 30 * time.Second
)

// DefaultFactor is after how many usual steps without one a training counts as stalled, unless the job says otherwise.
const DefaultFactor = 3

// Meter follows the reports of one attempt of a training. It is told two times of each report: by the clock of the node, which
// intervals are measured by, and by the clock of the operator, which silence is measured by. So neither a burst of lines after a
// connection was lost nor a clock that jumps makes a hang. The zero value has heard nothing.
type Meter struct {
	last    Report
	heard   bool
	at      time.Time // of the last report, by the node
	arrived time.Time // of the last report, by the operator
	// fresh is true until the first step since the training started or was disturbed.
	fresh bool
	// deaf is true while no log is open.
	deaf bool
	// interval is the usual time between two reports, and perStep the usual time of a step; intervals is how many they come from.
	interval, perStep time.Duration
	intervals         int
	slow              row
	// Workers is how many workers the attempt has at most; 0 for any number. A straggler beyond them is not believed.
	Workers int32
	// Account is what became of the GPU time.
	Account Account
}

// noteSlowest takes which worker was the slowest, if there is such a worker.
func (m *Meter) noteSlowest(s Slowest, at time.Time) {
	if m.Workers == 0 || s.Worker < m.Workers {
		m.slow.note(s, at)
	}
}

// NoteReport takes a report. It returns an error, and ignores the report, if it goes backwards although the training did not
// start anew.
func (m *Meter) NoteReport(r Report, at, arrived time.Time) error {
	starts := r.Phase == PhaseStart || !m.heard || m.fresh
	switch {
	case !starts && r.Step < m.last.Step:
		return fmt.Errorf("step=%d goes back from %d; a training that starts anew says phase=start", r.Step, m.last.Step)
	case !starts && r.Checkpoint >= 0 && r.Checkpoint < m.last.Checkpoint:
		return fmt.Errorf("checkpoint=%d goes back from %d", r.Checkpoint, m.last.Checkpoint)
	}
	steps, took := r.Step-m.last.Step, time.Duration(0)
	if starts {
		m.forgetPace()
		m.Account.noteStart(r.Step)
	} else {
		took = m.noteSteps(r.Step, at)
	}
	m.Account.tellReport(r, m.last.Step, starts, took, at, arrived)
	switch {
	case r.Checkpoint >= 0:
		m.Account.noteCheckpoint(r.Checkpoint)
	case !starts:
		r.Checkpoint = m.last.Checkpoint
	}
	if r.Total == 0 {
		r.Total = m.last.Total
	}
	if !starts && r.Phase == PhaseTrain {
		m.noteSlowest(r.Slowest, at)
	}
	// A line that only says that a phase begins is no step, but silence counts from it all the same.
	m.fresh = r.Phase == PhaseStart || m.fresh && m.heard && steps <= 0
	m.last, m.heard, m.at, m.arrived = r, true, at, arrived
	return nil
}

// noteSteps takes the steps up to one, which was reported at a time, and returns how long they count for.
func (m *Meter) noteSteps(step int64, at time.Time) (took time.Duration) {
	steps, pause := step-m.last.Step, at.Sub(m.at)
	switch {
	case steps == 0:
		return 0
	case m.last.Phase == PhaseTrain && pause > 0 && pause < longestInterval:
		took = min(pause, m.mostFor(steps))
		m.learn(pause, steps)
	default:
		// Part of the pause went into evaluating or saving, or its length is not believed.
		took = min(max(pause, 0), m.usualFor(steps))
	}
	m.Account.noteSteps(step, took)
	return took
}

// NoteDisturbance notes that workers came or went, or restarted: how long a step takes is unknown until the next.
func (m *Meter) NoteDisturbance() {
	m.fresh = m.heard
	m.forgetPace()
}

// NoteListening notes that reports are heard from now on: silence counts from here. NoteDeafness notes that none are heard, as
// when the connection to the log is lost: who hears nothing knows of no hang.
func (m *Meter) NoteListening(now time.Time) {
	m.deaf = false
	if now.After(m.arrived) {
		m.arrived = now
	}
}

// NoteDeafness is the opposite of [Meter.NoteListening].
func (m *Meter) NoteDeafness() { m.deaf = true }

func (m *Meter) forgetPace() { m.interval, m.perStep, m.intervals, m.slow = 0, 0, 0, row{} }

// learn takes an interval that was all training.
func (m *Meter) learn(pause time.Duration, steps int64) {
	each := pause / time.Duration(steps)
	if m.intervals == 0 {
		m.interval, m.perStep, m.intervals = pause, each, 1
		return
	}
	mean := func(usual, one time.Duration) time.Duration {
		one = min(one, clamp*usual)
		return usual + time.Duration(smoothing*float64(one-usual))
	}
	m.interval, m.perStep = mean(m.interval, pause), mean(m.perStep, each)
	m.intervals++
}

// usualFor is how long so many steps usually take, the longest interval at most: a line may say 1e15 steps.
func (m *Meter) usualFor(steps int64) time.Duration {
	if m.perStep > longestInterval/time.Duration(steps) {
		return longestInterval
	}
	return time.Duration(steps) * m.perStep
}

// mostFor is the longest that so many steps count for.
func (m *Meter) mostFor(steps int64) time.Duration {
	if m.intervals == 0 {
		return longestInterval
	}
	return min(2*m.usualFor(steps), longestInterval)
}

// Figures are what is known of a training now.
type Figures struct {
	// Step, Total and Checkpoint are as of the last report; Total is 0 and Checkpoint -1 for unknown.
	Step, Total, Checkpoint int64
	// Loss of the last report; 0 if it did not say.
	Loss float64
	// StepTime is how long a step usually takes; 0 until it is known.
	StepTime time.Duration
	// Settled is true once StepTime is of enough steps of the present workers to be compared with that of others.
	Settled bool
	// Fresh is true until the first step since the training started, or workers came or went.
	Fresh bool
	// Stall is set once no step came for too long; nil before.
	Stall *Stall
	// Straggler is the worker that all others wait for; nil for none, and where the ranks do not compare themselves.
	Straggler *Straggler
}

// Stall is a hang: no step came for as long as Limit.
type Stall struct {
	// Since is when the last step was heard of. Usual is how long a step takes otherwise.
	Since        time.Time
	Usual, Limit time.Duration
}

// ReadFigures returns the figures; known is false before the first report. factor is after how many usual steps a silence is a
// hang, 2 or more; 0 for [DefaultFactor].
func (m *Meter) ReadFigures(factor int32, now time.Time) (f Figures, known bool) {
	if !m.heard {
		return Figures{}, false
	}
	f = Figures{Step: m.last.Step, Total: m.last.Total, Checkpoint: m.last.Checkpoint, Loss: m.last.Loss, Fresh: m.fresh,
		Straggler: m.slow.straggler()}
	if m.intervals >= enough {
		f.StepTime, f.Settled = m.perStep, m.intervals >= settled
	}
	if limit, armed := m.Patience(factor); armed && now.Sub(m.arrived) >= limit {
		f.Stall = &Stall{Since: m.arrived, Usual: m.perStep, Limit: limit}
	}
	return f, true
}

// Patience is how long the training may say nothing now before that is a hang; armed is false while none can be told: before its
// first steps, while it evaluates or saves, after its last step, when workers came or went, and while no log is open.
func (m *Meter) Patience(factor int32) (limit time.Duration, armed bool) {
	if factor == 0 {
		factor = DefaultFactor
	}
	if m.deaf || m.fresh || m.intervals < enough || m.last.Phase != PhaseTrain {
		return 0, false
	}
	// The next report is due after the usual interval; the steps are what a slow one may take longer.
	return m.interval + time.Duration(factor-1)*m.perStep + margin, true
}

// TimeLeft is how long the steps that are left take at the usual pace; 0 for unknown.
func (f Figures) TimeLeft() time.Duration {
	const most = 10 * 365 * 24 * time.Hour
	left := f.Total - f.Step
	if f.Total == 0 || f.StepTime <= 0 || left <= 0 {
		return 0
	}
	if left > int64(most/f.StepTime) {
		return most
	}
	return time.Duration(left) * f.StepTime
}
