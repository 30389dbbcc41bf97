package training

import (
	"fmt"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// dataNotFound waits for the data that the job names: for its version in the profile, and for the claim that has it. Without the
// claim no scheduler places a pod, so that a lost worker could not be replaced either.
func dataNotFound(s *jobstate.State) *jobstate.Obstacle {
	places, missing := s.DataPlaces()
	if len(missing) > 0 {
		mend := "ask for it to be added to the profile"
		if s.Profile == nil {
			mend = "ask for the namespace to be added to a profile"
		}
		return &jobstate.Obstacle{
			Reason: v1beta1.ReasonDataSetNotFound,
			Message: fmt.Sprintf("spec.dataSets[%d].%s: %s. Suspend the job, change it, and resume the job, or %s; the job then "+
				"continues by itself.", missing[0].At, missing[0].Field, missing[0].Why, mend),
		}
	}
	for _, place := range places {
		if place.Claim != "" && slices.Contains(s.LackingClaims, place.Claim) {
			return &jobstate.Obstacle{
				Reason: v1beta1.ReasonDataClaimNotFound,
				Message: fmt.Sprintf("Version %s of data set %s is in PersistentVolumeClaim %s, which namespace %s does not have or is "+
					"deleting. Create it; the job then continues by itself.", place.Version, place.Name, place.Claim, s.Job.Namespace),
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
