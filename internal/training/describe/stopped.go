package describe

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// stoppedStanding is the standing of a job that is stopped or stopping.
func (d *description) stoppedStanding() standing {
	reason, leavingReason, why := d.whyStopped()
	if len(d.Workers) > 0 || d.Core != nil || d.Surplus != nil {
		message := fmt.Sprintf("The job is stopping %s. Pods that have yet to end: %d.", why, len(d.Workers))
		if stuck := d.StuckPod(); stuck != nil {
			message += " " + d.sayUnreachable(stuck)
		}
		return standing{stopping, leavingReason, message}
	}
	if !d.MustStop() && d.Obstacle != nil {
		return standing{hindered, d.Obstacle.Reason, d.Obstacle.Message}
	}
	message := "The job is stopped " + why + ", and holds no resources."
	if d.Spec.Suspend {
		message += " Set it to false to start the next attempt."
	} else if by := d.Status.Preemption; by != nil {
		message = fmt.Sprintf("The job was stopped at %s %s, and holds no resources. It resumes by itself once its core fits and no "+
			"gang waits that would stop it again.", FormatTime(by.Since.Time), why)
	}
	return standing{suspended, reason, message}
}

// whyStopped says why the job stops: the reasons for when it has and while it does, and the words for both.
func (d *description) whyStopped() (stopped, stopping, why string) {
	switch by := d.Status.Preemption; {
	case d.Spec.Suspend:
		return v1beta1.ReasonSuspended, v1beta1.ReasonSuspending, "because spec.suspend is true"
	case by != nil:
		return v1beta1.ReasonPreempted, v1beta1.ReasonPreempting, fmt.Sprintf("to make room for %s of tier %s", by.By, by.Tier)
	}
	return v1beta1.ReasonSuspended, v1beta1.ReasonSuspending, "before its next attempt"
}
