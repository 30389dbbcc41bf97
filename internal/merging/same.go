package merging

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// sameStatus is equality.Semantic.DeepEqual of two statuses. That walks them by reflection, which would be half of the work of
// an evaluation: each one compares all merges of a pool, and nearly all are as they were.
func sameStatus(a, b *v1beta1.MergeJobStatus) bool {
	return looksSame(a, b) || equality.Semantic.DeepEqual(a, b)
}

// looksSame finds that two statuses are equal, without reflection. If it finds no more than that they look different, reflection
// has the last word. A field that it lacks would be a difference that is never written; a test holds it to all fields.
func looksSame(a, b *v1beta1.MergeJobStatus) bool {
	return hasSameWords(a, b) && hasSameFigures(a, b) && hasSameTimes(a, b) && looksSameRun(a.Run, b.Run) &&
		same(a.BlockedBy, b.BlockedBy, func(c, d *v1beta1.MergeBlock) bool {
			return c.Shortfall == d.Shortfall && ptr.Equal(c.Head, d.Head)
		}) && same(a.LastFull, b.LastFull, func(c, d *v1beta1.FullModel) bool {
		x, y := *c, *d
		x.Time, y.Time = metav1.Time{}, metav1.Time{}
		return x == y && c.Time.Equal(&d.Time)
	}) && same(a.SetAside, b.SetAside, func(c, d *v1beta1.MergeSetAside) bool {
		x, y := *c, *d
		x.Time, y.Time, x.RetryTime, y.RetryTime = metav1.Time{}, metav1.Time{}, metav1.Time{}, metav1.Time{}
		return x == y && c.Time.Equal(&d.Time) && c.RetryTime.Equal(&d.RetryTime)
	}) && same(a.Sizing, b.Sizing, func(c, d *v1beta1.SizingStatus) bool { return equality.Semantic.DeepEqual(c, d) }) &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) && slices.EqualFunc(a.History, b.History, looksSameResult)
}

// same compares what pointers point to.
func same[T any](a, b *T, equal func(a, b *T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(a, b)
}

func hasSameWords(a, b *v1beta1.MergeJobStatus) bool {
	return a.Phase == b.Phase && a.Summary == b.Summary && a.Reason == b.Reason && a.Message == b.Message && a.Model == b.Model &&
		a.Pool == b.Pool && a.Profile == b.Profile && a.Tier == b.Tier && a.Selector == b.Selector && a.RunNow == b.RunNow
}

func hasSameFigures(a, b *v1beta1.MergeJobStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Increments == b.Increments && a.Failures == b.Failures &&
		ptr.Equal(a.Weight, b.Weight) && ptr.Equal(a.Position, b.Position)
}

func hasSameTimes(a, b *v1beta1.MergeJobStatus) bool {
	return a.DueTime.Equal(b.DueTime) && a.QueueTime.Equal(b.QueueTime) && a.NewestIncrementTime.Equal(b.NewestIncrementTime) &&
		a.MergeTime.Equal(b.MergeTime) && a.RetryTime.Equal(b.RetryTime) && a.AheadRetryTime.Equal(b.AheadRetryTime) &&
		a.TurnTime.Equal(b.TurnTime)
}

// looksSameRun compares structs as a whole but for what they point to: a field that is new is not forgotten.
func looksSameRun(a, b *v1beta1.MergeRun) bool {
	return same(a, b, func(a, b *v1beta1.MergeRun) bool {
		x, y := *a, *b
		for _, r := range []*v1beta1.MergeRun{&x, &y} {
			r.AskTime, r.Ahead = metav1.Time{}, nil
			r.FitTime, r.PlaceTime, r.RunTime, r.ExpectedEndTime, r.EndTime = nil, nil, nil, nil, nil
		}
		return x == y && a.AskTime.Equal(&b.AskTime) && a.FitTime.Equal(b.FitTime) && a.PlaceTime.Equal(b.PlaceTime) &&
			a.RunTime.Equal(b.RunTime) && a.ExpectedEndTime.Equal(b.ExpectedEndTime) && a.EndTime.Equal(b.EndTime) &&
			same(a.Ahead, b.Ahead, func(a, b *v1beta1.MergeAhead) bool {
				x, y := *a, *b
				x.HeadTime, y.HeadTime, x.EndTime, y.EndTime = nil, nil, nil, nil
				return x == y && a.HeadTime.Equal(b.HeadTime) && a.EndTime.Equal(b.EndTime)
			})
	})
}

func looksSameResult(a, b v1beta1.MergeResult) bool {
	x, y := a, b
	x.StartTime, y.StartTime, x.EndTime, y.EndTime = nil, nil, metav1.Time{}, metav1.Time{}
	return x == y && a.StartTime.Equal(b.StartTime) && a.EndTime.Equal(&b.EndTime)
}

func sameCondition(a, b metav1.Condition) bool {
	x, y := a, b
	x.LastTransitionTime, y.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return x == y && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}
