package arbiter

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
)

// figuresInterval is how long a job is not woken at least while only figures of its verdict change.
const figuresInterval = time.Minute

// figuresPause is that time where so many jobs have a verdict: a second for each, so that however many wait they write mere
// figures once a second together.
func figuresPause(jobs int) time.Duration {
	return max(figuresInterval, time.Duration(jobs)*time.Second)
}

// farPlace stands for every place in a queue from which on a change of place does not wake a job at once.
const farPlace = 11

// verdicts are by job, or by PodGroup for gangs that are not ours.
type verdicts = map[types.NamespacedName]capacity.Verdict

// board holds the verdicts about one kind of job, and which of them the jobs were woken with.
type board[V any] struct {
	verdicts map[types.NamespacedName]V
	told     map[types.NamespacedName]telling[V]
	// soon is the part of a verdict that wakes a job at once when it changes.
	soon func(V) V
}

// telling is the verdict with which a job was last woken, and when.
type telling[V any] struct {
	verdict V
	at      time.Time
}

func newBoard[V any](soon func(V) V) board[V] {
	return board[V]{verdicts: map[types.NamespacedName]V{}, told: map[types.NamespacedName]telling[V]{}, soon: soon}
}

// replace installs the verdicts and lists the jobs to wake: at once if the part of the verdict changed that a job acts on, and
// after a pause if only figures did. In a queue of 500 gangs every arrival changes the figures of all.
func (b *board[V]) replace(next map[types.NamespacedName]V, now time.Time) []types.NamespacedName {
	var wake []types.NamespacedName
	pause := figuresPause(len(next))
	for job, v := range next {
		told, known := b.told[job]
		// A time to come is of a clock that was set back since.
		if !known || !reflect.DeepEqual(b.soon(v), b.soon(told.verdict)) ||
			((now.Sub(told.at) >= pause || now.Before(told.at)) && !reflect.DeepEqual(v, told.verdict)) {
			wake = append(wake, job)
			b.told[job] = telling[V]{verdict: v, at: now}
		}
	}
	for job := range b.told {
		if _, still := next[job]; !still {
			wake = append(wake, job)
			delete(b.told, job)
		}
	}
	b.verdicts = next
	return wake
}

// soonPart is the part of a verdict that wakes a job at once.
func soonPart(v capacity.Verdict) capacity.Verdict {
	answer := capacity.Answer{Unknown: v.Answer.Unknown, Fits: v.Answer.Fits}
	if v.Answer.Leaving != nil && v.Place < farPlace {
		answer.Leaving = capacity.Amounts{} // That pods are leaving wakes the job, not how much they hold.
	}
	told := capacity.Verdict{
		Place: min(v.Place, farPlace), Answer: answer,
		SurplusLimit: v.SurplusLimit, StepDomains: v.StepDomains, RoomSince: v.RoomSince, Unjudged: v.Unjudged,
		GiveUp: v.GiveUp, To: v.To, From: v.From, Preempt: v.Preempt, Resume: v.Resume, Model: v.Model, Overdue: v.Overdue,
		Since: v.Since, InVain: v.InVain, Ahead: v.Ahead,
	}
	if v.Never != nil {
		told.Never = &capacity.Answer{QueueLimit: v.Never.QueueLimit}
	}
	return told
}
