package describe

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// whyWaiting says what a core waits for that does not run.
func (d *description) whyWaiting() (reason, message string) {
	asks := fmt.Sprintf("the core of %s (%s)", Workers(d.Minimum), d.coreAsk())
	running := d.CountCore(jobstate.WorkerRuns)
	if shut := d.QueueShut(); shut != nil && !d.CorePlaced() && d.Status.Attempt != nil {
		return shut.Reason, shut.Message
	}
	if gated := d.gatedWorker(); gated != nil {
		return v1alpha1.ReasonSchedulingGated, d.sayGated(gated)
	}
	if d.Verdict.Overdue && !d.CorePlaced() {
		return v1alpha1.ReasonNotPlaced, d.sayNotPlaced(asks)
	}
	switch w := d.CannotStart(); {
	case w != nil:
		return w.StartError(), StartError(w)
	case d.Stuck() != nil:
		return v1alpha1.ReasonNodeUnreachable, d.sayUnreachable(d.Stuck())
	case d.Status.RunningSince != nil:
		return v1alpha1.ReasonRecovering, d.sayRecovering(running, asks)
	case d.CorePlaced():
		return v1alpha1.ReasonStarting, fmt.Sprintf("Volcano placed %s; %d run.", asks, running)
	case d.Core == nil:
		return v1alpha1.ReasonSubmitted, fmt.Sprintf("Submitting %s to queue %s.", asks, d.Queue.Name)
	case d.Core.Unschedulable != "" || d.Verdict.Waiting > 0:
		reason := v1alpha1.ReasonQueued
		if d.Core.Unschedulable != "" {
			reason = v1alpha1.ReasonUnschedulable
		}
		return reason, d.why(asks) + d.sayAvoided()
	}
	return v1alpha1.ReasonQueued, fmt.Sprintf("Waiting in queue %s for Volcano to place %s.", d.Queue.Name, asks)
}

// sayRecovering says how many of a core that ran before do, and what the others wait for.
func (d *description) sayRecovering(running int32, asks string) string {
	message := fmt.Sprintf("%d of %s run; whoever was lost is created anew in queue %s and takes part again once it is placed.",
		running, Workers(d.Minimum), d.Queue.Name)
	if d.Verdict.Waiting > 0 && !d.CorePlaced() {
		message += " " + d.why("what is missing of "+asks)
	} else if d.Core != nil && !d.CorePlaced() {
		message += d.volcanoSays()
	}
	return message + d.sayAvoided()
}

// sayNotPlaced says that the core had room and was not placed, what that cost others, and what to do.
func (d *description) sayNotPlaced(asks string) string {
	v := d.Verdict
	message := fmt.Sprintf("There has been room for %s since %s, and Volcano has not placed it within %s "+
		"(claims.placementTimeoutSeconds of the operator's configuration).", asks,
		v.Since.UTC().Format("2006-01-02 15:04:05 MST"), d.Config.Claims.PlacementTimeout())
	if len(v.From) > 0 {
		message += " These workers left for it, and have their room back: " + someHolders(v.From) + "."
	}
	return message + " No other worker leaves for it until its pods, its Queue or the nodes that it may use change. Check that " +
		"Volcano's scheduler runs, and what it says of PodGroup " + d.Job.Name + "." + d.volcanoSays()
}

// why says why the core waits: its place, what it asks, what is free, the largest gang that would fit, and who holds surplus.
func (d *description) why(asks string) string {
	v := d.Verdict
	if v.Waiting == 0 {
		return fmt.Sprintf("There is no room in queue %s for %s, which is placed all together or not at all; it starts by itself "+
			"when there is.", d.Queue.Name, asks) + d.volcanoSays()
	}
	message := fmt.Sprintf("Place %d of %d waiting in queue %s: asks for %s all together. ", v.Place, v.Waiting, d.Queue.Name, asks)
	switch a := v.Answer; {
	case a.Unknown != "":
		message += fmt.Sprintf("Whether it fits is for Volcano to say, because it asks for %s.", a.Unknown) + d.volcanoSays()
	case a.Fits:
		message += "By Tideline's count it would fit now; Volcano decides." + d.volcanoSays()
	case a.Nodes == 0:
		message += "No node would take its workers, not even an empty one: see their nodeSelector, affinity, tolerations and the " +
			"resources that they name."
	default:
		message += a.SayFree()
	}
	if len(v.Holders) > 0 {
		message += " Surplus that may give way: " + someHolders(v.Holders) + "."
	}
	return message
}

// volcanoSays adds Volcano's own words, if it has said anything.
func (d *description) volcanoSays() string {
	if d.Core == nil || d.Core.Unschedulable == "" {
		return ""
	}
	return " Volcano says: " + text.Clip(d.Core.Unschedulable, 1024)
}

// gatedWorker is the first core worker that scheduling gates hold; nil for none.
func (d *description) gatedWorker() *podstate.Worker {
	for _, w := range d.At[:d.Minimum] {
		if w != nil && len(w.Gates) > 0 && !w.Terminating {
			return w
		}
	}
	return nil
}

func (d *description) sayGated(w *podstate.Worker) string {
	return fmt.Sprintf("Worker %d carries the scheduling gate %s, which keeps every scheduler from placing it. Who added the gate "+
		"must remove it; until then the job claims no room.", w.Index, text.Clip(strings.Join(w.Gates, ", "), 256))
}

// StartError says why the worker does not start, and what to do.
func StartError(w *podstate.Worker) string {
	do := "correct the image of the template, or the pull secret, and create the job anew"
	if w.StartError() == v1alpha1.ReasonContainerConfigError {
		do = "correct the template, or what it names, and create the job anew if the template changes"
	}
	said := ""
	if w.WaitingMessage != "" {
		said = ": " + text.Clip(w.WaitingMessage, 512)
	}
	return fmt.Sprintf("Worker %d cannot start (%s%s): %s.", w.Index, w.Waiting, said, do)
}
