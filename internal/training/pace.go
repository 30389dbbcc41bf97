package training

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// farPlace is the last place in a queue whose changes are written soon; beyond it only the figures of a long wait move.
const farPlace = 10

// PaceOf compares the status at the API server with the one that should be there, and says how soon the difference must be
// written (docs/decisions/0007-status-pace.md).
func PaceOf(written, wanted *v1beta1.ElasticTrainingJobStatus) statuspace.Pace {
	switch {
	case slices.Equal(written.Members, wanted.Members) &&
		slices.EqualFunc(written.Retries, wanted.Retries, sameRetry) &&
		equality.Semantic.DeepEqual(withoutMembers(written), withoutMembers(wanted)):
		return statuspace.Never
	case changesCourse(written, wanted):
		return statuspace.Now
	case changesLosses(written, wanted):
		return statuspace.Soon
	case equality.Semantic.DeepEqual(withoutWords(written), withoutWords(wanted)):
		return statuspace.Lazy
	}
	return statuspace.Calm
}

// sameRetry is ==, except that times of different zones may be equal.
func sameRetry(a, b v1beta1.Retry) bool {
	same := a.Time.Equal(&b.Time)
	a.Time, b.Time = metav1.Time{}, metav1.Time{}
	return same && a == b
}

// withoutMembers is the status without its members and their back-offs: reflection over thousands of them would cost more than
// the whole plan.
func withoutMembers(st *v1beta1.ElasticTrainingJobStatus) *v1beta1.ElasticTrainingJobStatus {
	c := *st
	c.Members, c.Retries = nil, nil
	return &c
}

// changesCourse is true for what people and pipelines wait for, and for what the operator must not forget before it acts on it.
func changesCourse(a, b *v1beta1.ElasticTrainingJobStatus) bool {
	if a.Phase != b.Phase || a.ObservedGeneration != b.ObservedGeneration || a.Restarts != b.Restarts ||
		!equality.Semantic.DeepEqual(a.Attempt, b.Attempt) || !equality.Semantic.DeepEqual(a.Checkpoint, b.Checkpoint) ||
		(a.Preemption == nil) != (b.Preemption == nil) || !equality.Semantic.DeepEqual(a.LeftInVain, b.LeftInVain) ||
		a.PageRoute != b.PageRoute || !slices.Equal(a.Pages, b.Pages) ||
		!a.MasterCompletionTime.Equal(b.MasterCompletionTime) || !a.CompletionTime.Equal(b.CompletionTime) {
		return true
	}
	for _, kind := range []string{
		v1beta1.ConditionReady, v1beta1.ConditionStalled, v1beta1.ConditionSuspended, v1beta1.ConditionSucceeded,
		v1beta1.ConditionFailed,
	} {
		if conditionStatus(a, kind) != conditionStatus(b, kind) {
			return true
		}
	}
	return false
}

func conditionStatus(st *v1beta1.ElasticTrainingJobStatus, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(st.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// changesLosses is true when workers were lost, restarted in place, or make room. Those of one cause arrive within a second.
func changesLosses(a, b *v1beta1.ElasticTrainingJobStatus) bool {
	type happened struct {
		uid      types.UID
		restarts int32 // 0 for a loss.
	}
	all := func(st *v1beta1.ElasticTrainingJobStatus, tell func(happened)) {
		for _, m := range st.Members {
			if m.IsLost() {
				tell(happened{uid: m.UID})
			}
			if m.Restarts > 0 {
				tell(happened{m.UID, m.Restarts})
			}
		}
	}
	before, isNew := map[happened]bool{}, false
	all(a, func(h happened) { before[h] = true })
	all(b, func(h happened) { isNew = isNew || !before[h] })
	if isNew {
		return true
	}
	evicted := func(st *v1beta1.ElasticTrainingJobStatus) []int32 {
		if st.Elasticity == nil {
			return nil
		}
		return st.Elasticity.Evicted
	}
	return !slices.Equal(a.RoomFrom, b.RoomFrom) || !slices.Equal(evicted(a), evicted(b))
}

// withoutWords is the status without its messages, and with every far place in the queue made equal.
func withoutWords(st *v1beta1.ElasticTrainingJobStatus) *v1beta1.ElasticTrainingJobStatus {
	c := st.DeepCopy()
	if c.Place > farPlace {
		c.Place = farPlace + 1
	}
	c.Message, c.Training = "", nil
	for i := range c.Conditions {
		c.Conditions[i].Message = ""
	}
	return c
}
