package merging

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// farPosition is the last place in a line whose changes are told soon.
const farPosition = 10

// stay keeps the words of a status in which nothing but the weight has moved: it grows by itself, and who stands still writes
// nothing. The weight is told with the next thing that happens.
func (t *merge) stay() {
	if written := &t.job.Object.Status; stands(written, t.st) {
		t.st = written.DeepCopy()
	}
}

// stands tells whether two statuses differ in nothing but the weight, and in words that have it in them.
func stands(a, b *v1alpha1.MergeJobStatus) bool {
	if (a.Weight == nil) != (b.Weight == nil) {
		return false
	}
	x, y := *a, *b // Their conditions and weights apart: copies all the way down would cost more than what is compared.
	x.Weight, y.Weight, x.Conditions, y.Conditions = nil, nil, nil, nil
	weighed := a.Reason == v1alpha1.ReasonNotDue || a.Reason == v1alpha1.ReasonInLine
	if weighed {
		x.Message, y.Message, x.Summary, y.Summary = "", "", "", ""
	}
	return equality.Semantic.DeepEqual(x, y) && slices.EqualFunc(a.Conditions, b.Conditions, func(c, d metav1.Condition) bool {
		if weighed {
			c.Message, d.Message = "", ""
		}
		return c.LastTransitionTime.Equal(&d.LastTransitionTime) && c.Type == d.Type && c.Status == d.Status &&
			c.Reason == d.Reason && c.Message == d.Message && c.ObservedGeneration == d.ObservedGeneration
	})
}

func withoutWords(st *v1alpha1.MergeJobStatus) {
	st.Message, st.Summary = "", ""
	for i := range st.Conditions {
		st.Conditions[i].Message = ""
	}
}

// wordless is the status without its words, and without a position that is far from the head of the line.
func wordless(st *v1alpha1.MergeJobStatus) *v1alpha1.MergeJobStatus {
	c := st.DeepCopy()
	withoutWords(c)
	if lacks := st.BlockedBy != nil && st.BlockedBy.Shortfall != "" && st.Reason == v1alpha1.ReasonAsking; lacks {
		c.BlockedBy = &v1alpha1.MergeBlock{} // That the head lacks something is told soon, and how much of it now and then.
	} else {
		c.BlockedBy = nil
	}
	if c.Position != nil && *c.Position > farPosition {
		*c.Position = farPosition + 1
	}
	return c
}

// PaceOf compares the status at the API server with the one that should be there.
func PaceOf(written, wanted *v1alpha1.MergeJobStatus) statuspace.Pace {
	switch {
	case equality.Semantic.DeepEqual(written, wanted):
		return statuspace.Never
	case !equality.Semantic.DeepEqual(course(written), course(wanted)):
		return statuspace.Now
	case equality.Semantic.DeepEqual(wordless(written), wordless(wanted)):
		return statuspace.Lazy
	}
	return statuspace.Calm
}

// course is what of a status must be written before anything is done on account of it, and what people wait to see.
func course(st *v1alpha1.MergeJobStatus) *v1alpha1.MergeJobStatus {
	c := &v1alpha1.MergeJobStatus{
		ObservedGeneration: st.ObservedGeneration, Phase: st.Phase, Reason: st.Reason, Pool: st.Pool, Run: st.Run, RunNow: st.RunNow,
		Failures: st.Failures, RetryTime: st.RetryTime, MergeTime: st.MergeTime, SetAside: st.SetAside, LastFull: st.LastFull,
		History: st.History,
	}
	if c.Phase == v1alpha1.MergeQueued && st.Run == nil {
		c.Reason = ""
	}
	return c
}
