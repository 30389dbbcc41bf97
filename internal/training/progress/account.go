package progress

import "time"

// Account is what became of the GPU time of a training, in GPU-seconds. Time that led to steps waits until a checkpoint has them:
// then they are kept. A training that goes on at an earlier step has lost those after it.
//
//	held = kept + lost + waiting + the rest: starting, evaluating, saving, hanging
type Account struct {
	// gpus are held by the ready workers since then, and held are the GPU-seconds until then.
	gpus  int64
	since time.Time
	held  float64
	// kept and lost are settled. waiting belongs to the steps from saved, exclusive, to step.
	kept, lost, waiting float64
	saved, step         int64
	// told is what was heard since taken, and was not recorded.
	told  []Stretch
	taken time.Time
}

// NoteGPUs notes how many GPUs the ready workers hold from now on.
func (a *Account) NoteGPUs(gpus int64, now time.Time) {
	a.settle(now)
	a.gpus = gpus
}

func (a *Account) settle(now time.Time) {
	if !a.since.IsZero() && now.After(a.since) {
		a.held += float64(a.gpus) * now.Sub(a.since).Seconds()
	}
	if a.since.IsZero() || now.After(a.since) {
		a.since = now
	}
}

// noteSteps notes steps that took so long.
func (a *Account) noteSteps(step int64, took time.Duration) {
	a.step = max(a.step, step)
	a.waiting += float64(a.gpus) * took.Seconds()
}

// noteCheckpoint notes that everything up to a step is saved.
func (a *Account) noteCheckpoint(step int64) {
	if step <= a.saved {
		return
	}
	a.keep(step)
}

// keep moves the part of the waiting time up to a step to what is kept. Steps of one stretch are taken to be equally long.
func (a *Account) keep(step int64) {
	step = min(step, a.step)
	if all := a.step - a.saved; all > 0 && step > a.saved {
		part := a.waiting * float64(step-a.saved) / float64(all)
		a.kept += part
		a.waiting -= part
		a.saved = step
	}
}

// noteStart notes at which step the training goes on: what is before it was saved, and what is after it is lost.
func (a *Account) noteStart(step int64) {
	if step > a.step {
		// Nobody saw those steps being taken, so they cost nothing here.
		if a.waiting == 0 {
			a.saved = step
		}
		a.step = step
		return
	}
	a.keep(step)
	a.lost += a.waiting
	a.waiting, a.saved, a.step = 0, min(a.saved, step), step
}

// NoteSuccess notes that the training has succeeded: all of its steps are kept.
func (a *Account) NoteSuccess() {
	a.kept += a.waiting
	a.waiting, a.saved = 0, a.step
}

// Totals are GPU-seconds since the account began: held by ready workers, and of those what led to steps that are kept, and to
// steps that were lost.
type Totals struct{ Held, Kept, Lost float64 }

// AddTotals adds two totals.
func (t Totals) AddTotals(o Totals) Totals {
	return Totals{t.Held + o.Held, t.Kept + o.Kept, t.Lost + o.Lost}
}

// ReadTotals returns the totals up to now.
func (a *Account) ReadTotals(now time.Time) Totals {
	a.settle(now)
	return Totals{Held: a.held, Kept: a.kept, Lost: a.lost}
}
