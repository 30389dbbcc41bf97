package arbiter

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
)

// figuresInterval is how long a job sleeps on while only figures of its verdict change.
const figuresInterval = time.Minute

// farPlace stands for every place in a line that is not told soon.
const farPlace = 11

// verdicts are those of jobs, or of gangs that are nobody's.
type verdicts = map[types.NamespacedName]capacity.Verdict

// board holds the verdicts, or the like, of one kind of job.
type board[V any] struct {
	verdicts map[types.NamespacedName]V
	told     map[types.NamespacedName]telling[V]
	// soon is what of a verdict is told or done soon.
	soon func(V) V
}

// telling is the verdict with which a job was last woken.
type telling[V any] struct {
	verdict V
	at      time.Time
}

func newBoard[V any](soon func(V) V) board[V] {
	return board[V]{verdicts: map[types.NamespacedName]V{}, told: map[types.NamespacedName]telling[V]{}, soon: soon}
}

// replace installs the verdicts and lists the jobs to wake: those of which something changed that is told or done soon,
// and, once in a while, those of which only figures changed. In a long line every newcomer changes the figures of all.
func (b *board[V]) replace(next map[types.NamespacedName]V, now time.Time) []types.NamespacedName {
	var wake []types.NamespacedName
	for job, v := range next {
		told, known := b.told[job]
		if !known || !reflect.DeepEqual(b.soon(v), b.soon(told.verdict)) ||
			(now.Sub(told.at) >= figuresInterval && !reflect.DeepEqual(v, told.verdict)) {
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

// soon is what of a verdict is told or done soon.
func soon(v capacity.Verdict) capacity.Verdict {
	answer := capacity.Answer{Unknown: v.Answer.Unknown, Fits: v.Answer.Fits}
	if v.Answer.Leaving != nil && v.Place < farPlace {
		answer.Leaving = capacity.Amounts{} // That it waits for who leaves, not for how much.
	}
	told := capacity.Verdict{
		Place: min(v.Place, farPlace), Answer: answer,
		SurplusLimit: v.SurplusLimit, GiveUp: v.GiveUp, To: v.To, From: v.From,
		Preempt: v.Preempt, Resume: v.Resume, Model: v.Model, Overdue: v.Overdue, Since: v.Since, InVain: v.InVain,
	}
	if v.Never != nil {
		told.Never = &capacity.Answer{QueueLimit: v.Never.QueueLimit}
	}
	return told
}
