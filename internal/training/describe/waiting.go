package describe

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// whyWaiting says why the core does not run. The first cause that holds is the one that a user can act on first.
func (d *description) whyWaiting() (reason, message string) {
	asks := fmt.Sprintf("the core of %s (%s)", CountWorkers(d.Minimum), d.coreAsk())
	running := d.CountCore(jobstate.WorkerRuns)
	if shut := d.QueueShut(); shut != nil && !d.CorePlaced() && d.Status.Attempt != nil {
		return shut.Reason, shut.Message
	}
	if gated := d.gatedWorker(); gated != nil {
		return v1beta1.ReasonSchedulingGated, d.sayGated(gated)
	}
	if d.Verdict.Overdue && !d.CorePlaced() {
		return v1beta1.ReasonNotPlaced, d.sayNotPlaced(asks)
	}
	switch w := d.CannotStart(); {
	case w != nil:
		return w.StartError(), StartError(w)
	case d.StuckWorker() != nil:
		return v1beta1.ReasonNodeUnreachable, d.sayUnreachable(d.StuckWorker())
	case d.Status.RunningSince != nil:
		return v1beta1.ReasonRecovering, d.sayRecovering(running, asks)
	case d.CorePlaced():
		return v1beta1.ReasonStarting, fmt.Sprintf("Volcano placed %s; %d run.", asks, running)
	case d.Core == nil:
		return v1beta1.ReasonSubmitted, fmt.Sprintf("Submitting %s to queue %s.", asks, d.Queue.Name)
	case d.Core.Unschedulable != "" || d.Verdict.Waiting > 0:
		reason := v1beta1.ReasonQueued
		switch {
		case d.Verdict.Never != nil:
			reason = v1beta1.ReasonNeverFits
		case d.Core.Unschedulable != "":
			reason = v1beta1.ReasonUnschedulable
		}
		return reason, d.whyQueued(asks) + d.sayAvoided()
	}
	return v1beta1.ReasonQueued, fmt.Sprintf("Waiting in queue %s for Volcano to place %s.", d.Queue.Name, asks)
}

// sayRecovering says how many workers of a core that ran before still do, and what the others wait for.
func (d *description) sayRecovering(running int32, asks string) string {
	message := fmt.Sprintf("%d of %s run. The lost ones are created again in queue %s and rejoin once they are placed.",
		running, CountWorkers(d.Minimum), d.Queue.Name)
	if d.Verdict.Waiting > 0 && !d.CorePlaced() {
		message += " " + d.whyQueued("the missing part of "+asks)
	} else if d.Core != nil && !d.CorePlaced() {
		message += d.volcanoSays()
	}
	return message + d.sayAvoided()
}

// sayNotPlaced says that the core had room but Volcano did not place it, what that cost others, and what to check.
func (d *description) sayNotPlaced(asks string) string {
	v := d.Verdict
	message := fmt.Sprintf("There has been room for %s since %s, but Volcano has not placed it within %s "+
		"(claims.placementTimeoutSeconds of the operator's configuration).", asks,
		v.Since.UTC().Format("2006-01-02 15:04:05 MST"), d.Config.Claims.PlacementTimeout())
	if len(v.From) > 0 {
		message += " Jobs that made room for it take their room back: " + someHolders(v.From) + "."
	}
	return message + " Check that Volcano's scheduler runs, and what it says about PodGroup " + d.Job.Name + ". No other job " +
		"makes room for it until its pods, its Queue or the nodes that it may use change." + d.volcanoSays()
}

// whyQueued says why the core waits: its place, what it asks for, what is free, the largest gang that would fit, and which jobs
// hold surplus.
func (d *description) whyQueued(asks string) string {
	v := d.Verdict
	if v.Waiting == 0 {
		return fmt.Sprintf("Queue %s has no room for %s, which Volcano places as a whole or not at all. It starts by itself once "+
			"there is room.", d.Queue.Name, asks) + d.volcanoSays()
	}
	message := fmt.Sprintf("Place %d of %d in queue %s, for %s as a whole. ", v.Place, v.Waiting, d.Queue.Name, asks)
	switch a := v.Answer; {
	case a.Unknown != "":
		message += fmt.Sprintf("Only Volcano can tell whether it fits, because it asks for %s.", a.Unknown) + d.volcanoSays()
	case a.Fits:
		message += "It fits now, and waits for Volcano to place it. If that takes longer than a minute, check that Volcano's " +
			"scheduler runs." + d.volcanoSays()
	case a.Within != nil && a.Domain == "":
		message += fmt.Sprintf("Its workers must be in one HyperNode of tier %d or lower (networkTopology), and there is none: raise "+
			"highestTierAllowed, set mode to Soft, or ask an administrator for HyperNodes.", *a.Within)
	case a.Nodes == 0 && (v.Never == nil || v.Never.Oversize == nil):
		message += "No node takes its workers, not even an empty one. Check their nodeSelector, affinity, tolerations and the " +
			"resources that they ask for."
	case v.Never != nil:
		// A cluster may grow, so the job goes on waiting and asking.
		message += fmt.Sprintf("It does not fit even if nothing else runs. %s Ask for less (minReplicas, requests), or have an "+
			"administrator add nodes or raise the limit of the Queue; it then starts by itself.", v.Never.SayEmpty("worker"))
	default:
		message += a.SayFree()
	}
	if len(v.Holders) > 0 {
		message += " Surplus that may give way: " + someHolders(v.Holders) + "."
	}
	if len(v.Moves) > 0 && len(v.From) == 0 {
		message += " It would fit if surplus moved to other nodes: " + someHolders(v.Moves) + ". Tideline moves surplus of queues " +
			"whose profile has repacking: Move."
	}
	return message
}

// volcanoSays quotes what Volcano wrote in the PodGroup, if it wrote anything.
func (d *description) volcanoSays() string {
	if d.Core == nil || d.Core.Unschedulable == "" {
		return ""
	}
	return " Volcano says: " + text.ClipLine(d.Core.Unschedulable, 1024)
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

// sayGated says which scheduling gate holds the worker, and that its owner must remove it.
func (d *description) sayGated(w *podstate.Worker) string {
	return fmt.Sprintf("Worker %d carries the scheduling gate %s, so no scheduler places it. The controller or person that added "+
		"the gate must remove it; until then the job claims no room.", w.Index, text.ClipLine(strings.Join(w.Gates, ", "), 256))
}

// StartError says why the worker does not start, and what to do.
func StartError(w *podstate.Worker) string {
	do := "Correct the pull secret, or delete the job and create it with another image."
	if w.StartError() == v1beta1.ReasonContainerConfigError {
		do = "Create what the template names, or delete the job and create it with a corrected template."
	}
	said := ""
	if w.WaitingMessage != "" {
		said = ": " + text.ClipLine(w.WaitingMessage, 512)
	}
	return fmt.Sprintf("Worker %d cannot start (%s%s). %s", w.Index, w.Waiting, said, do)
}
