package training

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// claimMissing waits for the resource claims that the template names. No pod could be placed without them, and how many processes
// a worker runs depends on them, also of one that is created again.
func claimMissing(s *jobstate.State) *jobstate.Obstacle {
	missing := s.Claims.Count()
	if len(missing.Missing) == 0 {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonResourceClaimNotFound,
		Message: fmt.Sprintf("Namespace %s has no %s, which spec.template.spec.resourceClaims names. Create it; the job "+
			"then continues "+
			"by itself.", s.Job.Namespace, missing.DescribeMissing()),
	}
}

// devicesNotCounted refuses devices that cannot be counted if something depends on their number: a limit of the profile, which
// they would evade, or the number of processes, which would be one on a worker of eight devices. A job that has begun goes on.
func devicesNotCounted(s *jobstate.State) *jobstate.Obstacle {
	if n := s.Claims.Count(); len(n.Unknown) > 0 && admission.LimitsOf(s.Profile).HasLimits() {
		return &jobstate.Obstacle{
			Reason: v1beta1.ReasonDevicesNotCounted, Stalled: true,
			Message: fmt.Sprintf("Profile %s limits what jobs hold, and how many accelerators a worker claims is unknown: %s. Claim a "+
				"number of devices of a listed class, or ask an administrator to list the class.", s.Profile.Name, n.DescribeUnknown()),
		}
	}
	return processesNotCounted(s)
}

// processesNotCounted refuses to leave the number of processes to devices that cannot be counted.
func processesNotCounted(s *jobstate.State) *jobstate.Obstacle {
	if len(s.Spec.Template.Spec.Containers) == 0 {
		return nil
	}
	trainer := &s.Spec.Template.Spec.Containers[rendezvous.TrainerIndex(s.Spec.Template.Spec.Containers)]
	n := s.Claims.CountFor(trainer)
	if len(n.Unknown) == 0 || s.Spec.Framework.NprocPerNode != nil || n.Devices+rendezvous.GPUs(trainer) > 0 {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonDevicesNotCounted, Stalled: true,
		Message: fmt.Sprintf("How many processes a worker runs is unknown: %s. Set spec.framework.nprocPerNode, or claim a number of "+
			"devices of a listed class.", n.DescribeUnknown()),
	}
}
