package progress

import (
	"math"
	"time"
)

const (
	// mostStretches bounds what waits to be recorded of one training; more is left out.
	mostStretches = 100
	// longestStretch bounds what one stretch covers, and longestSeen what a training is accounted for at once.
	longestStretch, longestSeen = 24 * time.Hour, 24 * time.Hour
	// oldest is how far back the time of a line is believed.
	oldest = 7 * 24 * time.Hour
)

// Stretch is what lines say of some steps: those after First, up to Last.
type Stretch struct {
	// Began and At are when they were taken; At is the time of the last line that tells of them.
	Began, At   time.Time
	First, Last int64
	// GPUSeconds that they took.
	GPUSeconds int64
	// Resumed says that the training went on at step Last, and nothing of steps that were taken.
	Resumed bool
	// Saved is the step up to which a checkpoint has everything; -1 for nothing new.
	Saved int64
}

// Seen is what was seen of a training in a time, in which ready workers held GPUs.
type Seen struct {
	From, To  time.Time
	GPUs      int64
	Stretches []Stretch
}

// IsEmpty is true if there is nothing to record.
func (s *Seen) IsEmpty() bool { return len(s.Stretches) == 0 && (s.GPUs == 0 || !s.From.Before(s.To)) }

// TakeSeen returns what was seen since the last time, or since the GPUs were noted first. GPUs are those noted last, so it is to
// be called before others are noted.
func (a *Account) TakeSeen(now time.Time) Seen {
	from := a.taken
	if from.IsZero() {
		from = a.since
	}
	if from.IsZero() || from.After(now) {
		from = now
	}
	if now.Sub(from) > longestSeen {
		from = now.Add(-longestSeen)
	}
	seen := Seen{From: from, To: now, GPUs: a.gpus, Stretches: a.told}
	a.taken, a.told = now, nil
	return seen
}

// HoldsGPUs is how many GPUs were noted last.
func (a *Account) HoldsGPUs() int64 { return a.gpus }

// tell keeps a stretch until it is taken. Steps that follow one another are one stretch.
func (a *Account) tell(s Stretch) {
	last := len(a.told) - 1
	if last >= 0 && !s.Resumed && !a.told[last].Resumed && a.told[last].Last == s.First &&
		s.At.Sub(a.told[last].Began) <= longestStretch {
		before := &a.told[last]
		before.Last, before.GPUSeconds = s.Last, before.GPUSeconds+s.GPUSeconds
		if before.At.Before(s.At) {
			before.At = s.At
		}
		if s.Saved >= 0 {
			before.Saved = s.Saved
		}
		return
	}
	if len(a.told) < mostStretches {
		a.told = append(a.told, s)
	}
}

// tellReport tells what a report says: that the training goes on at its step, or took so long for the steps after one.
func (a *Account) tellReport(r Report, after int64, starts bool, took time.Duration, at, arrived time.Time) {
	s := Stretch{At: believable(at, arrived), First: after, Last: r.Step, Resumed: starts, Saved: r.Checkpoint}
	if starts {
		s.First, took = r.Step, 0
	}
	s.Began, s.GPUSeconds = s.At.Add(-took), int64(math.Round(float64(a.gpus)*took.Seconds()))
	if starts || s.Last > s.First || s.Saved >= 0 {
		a.tell(s)
	}
}

// believable is the time of a line by the clock of its node, unless that is ahead of ours, or far behind it.
func believable(at, arrived time.Time) time.Time {
	switch {
	case at.After(arrived):
		return arrived
	case arrived.Sub(at) > oldest:
		return arrived.Add(-oldest)
	}
	return at
}
