package describe

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// stopped is the standing of a job that is stopped, or on its way to it.
func (d *description) stopped() standing {
	reason, leavingReason, why := d.whyStopped()
	if len(d.Workers) > 0 || d.Core != nil || d.Surplus != nil {
		message := fmt.Sprintf("The job stops %s; pods still to leave: %d.", why, len(d.Workers))
		if stuck := d.StuckPod(); stuck != nil {
			message += " " + d.sayUnreachable(stuck)
		}
		return standing{stopping, leavingReason, message}
	}
	if !d.MustStop() && d.Obstacle != nil {
		return standing{hindered, d.Obstacle.Reason, d.Obstacle.Message}
	}
	message := "The job is stopped, " + why + ", and holds nothing. Set it to false to start the next attempt."
	if by := d.Status.Preemption; by != nil && !d.Spec.RunPolicy.Suspend {
		message = fmt.Sprintf("The job was stopped at %s %s, and holds nothing. It goes on by itself when its core fits and no such "+
			"gang waits.", Clock(by.Since.Time), why)
	}
	return standing{suspended, reason, message}
}

// whyStopped says for whom or what the job stops, in the words of its reasons.
func (d *description) whyStopped() (stopped, stopping, why string) {
	switch by := d.Status.Preemption; {
	case d.Spec.RunPolicy.Suspend:
		return v1alpha1.ReasonSuspended, v1alpha1.ReasonSuspending, "because runPolicy.suspend is true"
	case by != nil:
		return v1alpha1.ReasonPreempted, v1alpha1.ReasonPreempting, fmt.Sprintf("for %s of tier %s", by.By, by.Tier)
	}
	return v1alpha1.ReasonSuspended, v1alpha1.ReasonSuspending, "before its next attempt"
}
