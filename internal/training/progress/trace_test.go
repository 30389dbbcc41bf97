package progress

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A trace is a training as a trainer reports it, made from a seed. The generator was fixed before the first run: trainings of
// 2,000 s or longer whose usual step takes 0.05 to 120 s, with lognormal-like jitter, one step in 200 up to 2.5 times as long,
// evaluations and checkpoints of up to 40 steps and two minutes that are announced, a first step of up to ten minutes, up to
// three changes of size, each a pause of up to two minutes and a first step that is slow again, at another pace, and a log that
// comes up to five seconds late. Reports are paced as by the helper: one at most every ten seconds.
type trace struct {
	random *rand.Rand
	now    time.Time
	meter  Meter
	usual  time.Duration
	step   int64
	said   time.Time
	// alarms are the times at which a hang was told, and quiet what was checked without one.
	alarms []time.Time
	checks int
}

const tick = 5 * time.Second // how often the operator looks

func newTrace(seed uint64) *trace {
	random := rand.New(rand.NewPCG(seed, 32))
	paces := []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 4 * time.Second, 20 * time.Second,
		45 * time.Second, 120 * time.Second}
	return &trace{random: random, now: time.Unix(1_700_000_000, 0), usual: paces[random.IntN(len(paces))]}
}

// pass lets time go by, and looks at the meter as often as the operator does.
func (w *trace) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		next := w.now.Truncate(tick).Add(tick)
		if next.After(end) {
			w.now = end
			return
		}
		w.now = next
		w.checks++
		if f, _ := w.meter.ReadFigures(0, w.now); f.Stall != nil {
			w.alarms = append(w.alarms, w.now)
		}
	}
}

func (w *trace) say(t *testing.T, phase Phase) {
	t.Helper()
	late := time.Duration(w.random.Int64N(int64(5 * time.Second)))
	r := Report{Step: w.step, Total: 1 << 40, Checkpoint: -1, Phase: phase}
	if err := w.meter.NoteReport(r, w.now, w.now.Add(late)); err != nil {
		t.Fatal(err)
	}
	w.said = w.now
}

// start is the start of a process: a slow first step.
func (w *trace) start(t *testing.T) {
	t.Helper()
	w.say(t, PhaseStart)
	w.pass(w.usual + time.Duration(w.random.Int64N(int64(10*time.Minute))))
	w.step++
	w.say(t, PhaseTrain)
}

func (w *trace) takeStep(t *testing.T) {
	t.Helper()
	factor := 0.8 + 0.3*w.random.Float64() + 0.1*w.random.ExpFloat64()
	if w.random.IntN(200) == 0 {
		factor = 1 + 1.5*w.random.Float64()
	}
	w.pass(time.Duration(min(factor, 2.5) * float64(w.usual)))
	w.step++
	if w.now.Sub(w.said) >= 10*time.Second {
		w.say(t, PhaseTrain)
	}
}

// train trains for at least so long and 60 steps, with announced pauses.
func (w *trace) train(t *testing.T, atLeast time.Duration) {
	const steps = 60
	t.Helper()
	for end, first := w.now.Add(atLeast), w.step; w.now.Before(end) || w.step < first+steps; {
		w.takeStep(t)
		if w.random.IntN(100) != 0 {
			continue
		}
		phase := PhaseEvaluate
		if w.random.IntN(2) == 0 {
			phase = PhaseCheckpoint
		}
		w.say(t, phase)
		w.pass(time.Duration(w.random.Int64N(int64(40*w.usual + 2*time.Minute))))
		w.say(t, PhaseTrain)
	}
}

func (w *trace) resize(t *testing.T) {
	t.Helper()
	w.meter.NoteDisturbance()
	w.pass(time.Duration(w.random.Int64N(int64(2 * time.Minute))))
	w.step -= min(w.step, w.random.Int64N(20))
	w.usual = time.Duration((0.4 + 2*w.random.Float64()) * float64(w.usual))
	w.start(t)
}

const seeds = 16

// TestNoHangIsToldWhereThereIsNone: precision 1.0 on trainings that pause, evaluate, save, start and change their size.
func TestNoHangIsToldWhereThereIsNone(t *testing.T) {
	checks := 0
	for seed := range uint64(seeds) {
		w := newTrace(seed)
		w.start(t)
		w.train(t, 2000*time.Second)
		for range w.random.IntN(4) {
			w.resize(t)
			w.train(t, 600*time.Second)
		}
		w.say(t, PhaseEnd)
		w.pass(time.Hour)
		checks += w.checks
		if len(w.alarms) > 0 {
			t.Errorf("seed %d: a hang was told %d times, first at step %d of usually %s", seed, len(w.alarms), w.step, w.usual)
		}
	}
	if checks < seeds*500 {
		t.Errorf("looked only %d times", checks)
	}
}

// TestAHangIsToldInTime: in each trace one hang, which is told within 3 times the usual step and 60 s.
func TestAHangIsToldInTime(t *testing.T) {
	for seed := range uint64(seeds) {
		w := newTrace(seed)
		w.start(t)
		w.train(t, 1000*time.Second)
		if w.random.IntN(2) == 0 {
			w.resize(t)
			w.train(t, 600*time.Second)
		}
		for range 10 + w.random.IntN(10) {
			w.takeStep(t)
		}
		began := w.now
		w.pass(4*w.usual + 10*time.Minute)
		bound := 3*w.usual + 60*time.Second
		switch {
		case len(w.alarms) == 0:
			t.Errorf("seed %d: never told", seed)
		case w.alarms[0].Before(began) || w.alarms[0].Sub(began) > bound:
			t.Errorf("seed %d: told %s after the last step of usually %s, want at most %s", seed, w.alarms[0].Sub(began), w.usual, bound)
		}
		w.say(t, PhaseTrain)
		if f, _ := w.meter.ReadFigures(0, w.now.Add(tick)); f.Stall != nil {
			t.Errorf("seed %d: still told after the next report", seed)
		}
	}
}
