package ledger

import (
	"math"
	"time"
)

const (
	// MaxGPUs is how many GPUs a training holds at most, MaxStep its last step, and MaxStretches how many stretches an entry has.
	MaxGPUs, MaxStep, MaxStretches = 1_000_000, 1_000_000_000_000_000, 100
	// longestTrained is the longest that an entry, or one stretch of steps, covers.
	longestTrained = 48 * time.Hour
)

// Trained is what was seen of a training from one time to another. Entries of one training may overlap, as those of two operators
// that lead by turns, and may be recorded again: each moment and each step counts once.
type Trained struct {
	// UID of the job, which is required.
	UID string
	// Namespace, Profile, Queue, User, Tier, Kind and Task as those of [Pod]. A day keeps what was said of it first.
	Namespace, Profile, Queue, User, Tier, Kind, Task string
	// From and To are the time for which ready workers held GPUs, from 0 to MaxGPUs. Times count in whole seconds; no entry covers
	// more than two days.
	From, To time.Time
	GPUs     int64
	// Stretches of steps, in the order in which they were heard of: MaxStretches at most.
	Stretches []Stretch
	// Succeeded says that the training is done: what waits for a checkpoint is kept.
	Succeeded bool
}

// Stretch is what the lines of a training say of some of its steps. It has the fields of progress.Stretch, and is a type of its
// own because the ledger knows no Kubernetes.
type Stretch struct {
	// Began and At are when the steps were taken. At is the time of the last line that tells of them: what is older than what the
	// ledger has heard of the training is heard again, and changes nothing.
	Began, At time.Time
	// First and Last are the steps after First, up to Last, from 0 to MaxStep.
	First, Last int64
	// GPUSeconds that they took.
	GPUSeconds int64
	// Resumed says that the training went on at step Last, and nothing of steps that were taken: what it had taken beyond is lost.
	Resumed bool
	// Saved is the step up to which everything is saved since; -1 for nothing new.
	Saved int64
}

func (e *Trained) check() error {
	long := e.To.Sub(e.From)
	if e.UID == "" || e.From.Before(earliest) || long < 0 || long > longestTrained || e.GPUs < 0 || e.GPUs > MaxGPUs ||
		len(e.Stretches) > MaxStretches {
		return problemf(ErrInvalid, "training %q in namespace %q held %d GPUs from %s to %s, and tells of %d stretches of steps",
			e.Task, e.Namespace, e.GPUs, e.From.Format(time.RFC3339), e.To.Format(time.RFC3339), len(e.Stretches))
	}
	for i := range e.Stretches {
		s := &e.Stretches[i]
		long := s.At.Sub(s.Began)
		if s.First < 0 || s.Last < s.First || s.Last > MaxStep || s.Saved < -1 || s.GPUSeconds < 0 ||
			s.GPUSeconds > MaxGPUs*int64(longestTrained/time.Second) || s.Began.Before(earliest) || long < 0 || long > longestTrained {
			return problemf(ErrInvalid, "training %q in namespace %q took steps %d to %d in %d GPU-seconds from %s to %s",
				e.Task, e.Namespace, s.First, s.Last, s.GPUSeconds, s.Began.Format(time.RFC3339), s.At.Format(time.RFC3339))
		}
	}
	return nil
}

// training is what is known of one.
type training struct {
	trainingCursor
	days map[int64]trainingDay
}

// trainingCursor is up to where a training is accounted for, which is what has everything count once.
type trainingCursor struct {
	// until is in seconds, heard in nanoseconds since 1970, and 0 where no line was heard.
	until, heard int64
	step         int64
}

// trainingDay is what became of the GPU time of a day, in GPU-seconds. Time of steps waits until a checkpoint has them.
//
//	held = kept + lost + waiting + the rest: starting, evaluating, saving, hanging
type trainingDay struct {
	series                    int64
	held, kept, lost, waiting int64
	// What waits is of the steps after first, up to last.
	first, last int64
}

// change changes a day, which begins with what it counts for.
func (t *training) change(day, series int64, by func(*trainingDay)) {
	d, known := t.days[day]
	if !known {
		d.series = series
	}
	by(&d)
	t.days[day] = d
}

// follow adds what an entry tells.
func (t *training) follow(e *Trained, series int64) {
	if from, to := max(e.From.Unix(), t.until), e.To.Unix(); from < to {
		t.until = to
		for _, s := range splitAtMidnights(from, to) {
			if e.GPUs > 0 {
				t.change(s.day, series, func(d *trainingDay) { d.held += e.GPUs * (s.end - s.begin) })
			}
		}
	}
	for i := range e.Stretches {
		t.hear(&e.Stretches[i], series)
	}
	if e.Succeeded {
		t.keep(math.MaxInt64)
	}
}

// hear takes a stretch, unless it is known.
func (t *training) hear(s *Stretch, series int64) {
	at := s.At.UnixNano()
	// What is told of the same line again adds no step; but a training that went on there may have gone further since.
	if at < t.heard || at == t.heard && s.Resumed {
		return
	}
	t.heard = at
	if s.Resumed {
		t.goOn(s.Last)
	} else {
		t.take(s, series)
	}
	t.keep(s.Saved)
}

// goOn notes at which step a training goes on. Steps beyond the last known one were taken while nobody listened: they tell
// nothing.
func (t *training) goOn(step int64) {
	if step < t.step {
		t.keep(step)
		for day, d := range t.days {
			d.lost, d.waiting = d.lost+d.waiting, 0
			t.days[day] = d
		}
	}
	t.step = step
}

// take adds the time of the steps of a stretch that are new, each to the day on which it was taken.
func (t *training) take(s *Stretch, series int64) {
	first := max(s.First, t.step)
	if s.Last <= first {
		return
	}
	t.step = s.Last
	fresh := float64(s.Last-first) / float64(s.Last-s.First)
	spent, end := float64(s.GPUSeconds)*fresh, s.At.Unix()
	begin := end - rounded(fresh*float64(end-s.Began.Unix()))
	for _, of := range splitAtMidnights(begin, end) {
		before, after := 0.0, 1.0
		if begin < end {
			before, after = float64(of.begin-begin)/float64(end-begin), float64(of.end-begin)/float64(end-begin)
		}
		t.change(of.day, series, func(d *trainingDay) {
			if d.waiting == 0 {
				d.first = first + rounded(before*float64(s.Last-first))
			}
			d.last = first + rounded(after*float64(s.Last-first))
			d.waiting += rounded(after*spent) - rounded(before*spent)
		})
	}
}

// keep moves what waited for a checkpoint of a step to what is kept. Steps of one day are taken to be equally long.
func (t *training) keep(step int64) {
	for day, d := range t.days {
		if d.waiting == 0 || step <= d.first && step < d.last {
			continue
		}
		part := d.waiting
		if step < d.last {
			part = rounded(float64(d.waiting) * float64(step-d.first) / float64(d.last-d.first))
		}
		d.kept, d.waiting, d.first = d.kept+part, d.waiting-part, min(step, d.last)
		t.days[day] = d
	}
}

func rounded(f float64) int64 { return int64(math.Round(f)) }
