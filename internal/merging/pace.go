package merging

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// farPosition is the last position in a line whose changes are written soon. In a long line every start moves all positions.
const farPosition = 10

// keepWrittenWords keeps the written status if nothing but the weight has changed. The weight grows all the time, and writing it
// would load the API server with each evaluation of each merge. The next other change writes the weight too.
func (t *merge) keepWrittenWords() {
	if written := &t.job.Object.Status; differOnlyInWeight(written, t.st) {
		if t.st.Weight != nil {
			*t.st.Weight = *written.Weight // Both have one, or neither.
		}
		t.st.Message, t.st.Summary = written.Message, written.Summary
		t.st.Conditions = slices.Clone(written.Conditions)
	}
}

// differOnlyInWeight tells whether two statuses differ at most in the weight and in messages that contain it.
func differOnlyInWeight(a, b *v1beta1.MergeJobStatus) bool {
	if (a.Weight == nil) != (b.Weight == nil) {
		return false
	}
	x, y := *a, *b // Shallow copies: deep ones would cost more than the comparison.
	x.Weight, y.Weight, x.Conditions, y.Conditions = nil, nil, nil, nil
	weighed := a.Reason == v1beta1.ReasonNotDue || a.Reason == v1beta1.ReasonInLine
	if weighed {
		x.Message, y.Message, x.Summary, y.Summary = "", "", "", ""
	}
	return sameStatus(&x, &y) && slices.EqualFunc(a.Conditions, b.Conditions, func(c, d metav1.Condition) bool {
		if weighed {
			c.Message, d.Message = "", ""
		}
		return sameCondition(c, d)
	})
}

func withoutWords(st *v1beta1.MergeJobStatus) {
	st.Message, st.Summary = "", ""
	for i := range st.Conditions {
		st.Conditions[i].Message = ""
	}
}

// noticeablePart is the status without its messages, and without a position that is far from the head of the line.
func noticeablePart(st *v1beta1.MergeJobStatus) *v1beta1.MergeJobStatus {
	c := st.DeepCopy()
	withoutWords(c)
	if lacks := st.BlockedBy != nil && st.BlockedBy.Shortfall != "" && st.Reason == v1beta1.ReasonAsking; lacks {
		c.BlockedBy = &v1beta1.MergeBlock{} // People see soon that the head lacks something. The amounts may come later.
	} else {
		c.BlockedBy = nil
	}
	if c.Position != nil && *c.Position > farPosition {
		*c.Position = farPosition + 1
	}
	return c
}

// PaceOf compares the status at the API server with the one that should be there.
func PaceOf(written, wanted *v1beta1.MergeJobStatus) statuspace.Pace {
	switch {
	case sameStatus(written, wanted):
		return statuspace.Never
	case !sameStatus(decisivePart(written), decisivePart(wanted)):
		return statuspace.Now
	case sameStatus(noticeablePart(written), noticeablePart(wanted)):
		return statuspace.Lazy
	}
	return statuspace.Calm
}

// decisivePart is the part of a status that must be written at once: what later decisions rely on, and what people wait to see.
func decisivePart(st *v1beta1.MergeJobStatus) *v1beta1.MergeJobStatus {
	c := &v1beta1.MergeJobStatus{
		ObservedGeneration: st.ObservedGeneration, Phase: st.Phase, Reason: st.Reason, Pool: st.Pool, Run: st.Run, RunNow: st.RunNow,
		Failures: st.Failures, RetryTime: st.RetryTime, MergeTime: st.MergeTime, SetAside: st.SetAside,
		AheadRetryTime: st.AheadRetryTime, TurnTime: st.TurnTime, LastFull: st.LastFull, History: st.History,
	}
	if c.Phase == v1beta1.MergeQueued && st.Run == nil {
		c.Reason = ""
	}
	return c
}
