package training

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// coreGroup is the PodGroup of the core. While a reservation hands its room over it comes before everybody else's, so that it is
// first in the very cycle of Volcano's that frees the room; once it is placed it stands where its tier stands.
func (p *planner) coreGroup() gang.Group {
	g := p.d.Blueprint.CoreGroup()
	if p.inherits() && !p.corePlaced() {
		g.PriorityClass = config.HandoverClass
	}
	return g
}

// inherits tells whether a reservation hands its room over to the job, which has not begun.
func (p *planner) inherits() bool {
	if p.o.Profile == nil || p.st.StartTime != nil {
		return false
	}
	job := p.o.Job.Namespace + "/" + p.o.Job.Name
	return slices.ContainsFunc(p.o.Profile.Status.Reservations, func(r v1alpha1.ReservationStatus) bool {
		return r.Phase == v1alpha1.ReservationHandingOver && r.Job == job
	})
}
