package quota

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// calmInterval is the least time between two writes that change only figures.
const calmInterval = 10 * time.Second

// PaceOf compares the status at the API server with the wanted one. It is Calm if only figures of use differ, which change
// with every pod.
func PaceOf(written, wanted *v1beta1.ResourceQuotaProfileStatus) statuspace.Pace {
	switch {
	case equality.Semantic.DeepEqual(written, wanted):
		return statuspace.Never
	case equality.Semantic.DeepEqual(withoutFigures(written), withoutFigures(wanted)):
		return statuspace.Calm
	}
	return statuspace.Now
}

// withoutFigures is the status without the fields that pods change.
func withoutFigures(st *v1beta1.ResourceQuotaProfileStatus) *v1beta1.ResourceQuotaProfileStatus {
	c := st.DeepCopy()
	c.Used, c.Borrowed, c.Lent, c.Accelerators = nil, nil, nil, ""
	c.Running, c.Waiting, c.AwaitingApproval = 0, 0, 0
	c.Tiers, c.Users, c.Available = nil, nil, nil
	for i := range c.OverBudget {
		c.OverBudget[i].UsedHours = 0
	}
	for i := range c.Conditions {
		if c.Conditions[i].Type == v1beta1.ConditionBudgetExceeded {
			c.Conditions[i].Message = "" // It has the figures.
		}
	}
	for i := range c.DataSets {
		// Who uses a version is a figure; that somebody does keeps it from being removed.
		c.DataSets[i].Jobs, c.DataSets[i].UsedBy, c.DataSets[i].Space = min(c.DataSets[i].Jobs, 1), nil, nil
	}
	for i := range c.Reservations {
		c.Reservations[i].Placed = 0
	}
	return c
}

// HoldBack is how long a change of a pace is held back, if the status was last written at that time; zero for not at all.
func HoldBack(p statuspace.Pace, written, now time.Time) time.Duration {
	if p != statuspace.Calm {
		return 0
	}
	return max(written.Add(calmInterval).Sub(now), 0)
}
