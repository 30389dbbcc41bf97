package training

import (
	"fmt"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// dataNotFound waits for the data that the job names: for its version in the profile, and for the claim that has it. Without the
// claim no pod could be placed, also none that is created again.
func dataNotFound(s *jobstate.State) *jobstate.Obstacle {
	places, missing := s.DataPlaces()
	if len(missing) > 0 {
		first := missing[0]
		at, mend := "name", "ask for it to be added to the profile"
		switch {
		case s.Profile == nil:
			mend = "ask for the namespace to be added to a profile"
		case first.Version:
			at = "version"
		}
		return &jobstate.Obstacle{
			Reason: v1beta1.ReasonDataSetNotFound,
			Message: fmt.Sprintf("spec.dataSets[%d].%s: %s. Suspend the job, change it, and resume the job, or %s; the job then "+
				"continues by itself.", first.At, at, first.Why, mend),
		}
	}
	for _, place := range places {
		if place.Claim != "" && slices.Contains(s.LackingClaims, place.Claim) {
			return &jobstate.Obstacle{
				Reason: v1beta1.ReasonDataSetNotFound,
				Message: fmt.Sprintf("Namespace %s has no PersistentVolumeClaim %s, or is losing it, where version %s of data set %s is. "+
					"Create it; the job then continues by itself.", s.Job.Namespace, place.Claim, place.Version, place.Name),
			}
		}
	}
	return nil
}

// nextPlaces is where the workers of an attempt that begins now have their data. One that begins while something is missing,
// such as after a failure, keeps what the attempt before had: the job waits for the rest before it creates workers.
func nextPlaces(s *jobstate.State) []v1beta1.DataPlace {
	places, missing := s.DataPlaces()
	if a := s.Job.Status.Attempt; len(missing) > 0 && a != nil {
		return a.DataSets
	}
	return places
}
