package training

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// summarize writes counts, conditions and the words that kubectl shows.
func (p *planner) summarize() {
	p.count()
	p.sayAll()
	p.conditions().Settle(p.o.Job.Status.Conditions)
}

func (p *planner) sayAll() {
	p.st.Queue = text.Clip(p.queue(), validation.DNS1123SubdomainMaxLength)
	if tier, ok := p.tier(); ok {
		p.st.Tier = tier.Name
	}
	p.st.Profile = v1alpha1.DefaultProfile
	if p.o.Profile != nil {
		p.st.Profile = p.o.Profile.Name
	}
	p.sayOwner()
	if finished(p.st) {
		p.sayEnded()
		return
	}
	if stopped(p.st) {
		p.sayStopped()
		return
	}
	p.st.Phase = v1alpha1.PhasePending
	if p.st.RunningSince != nil {
		p.st.Phase = v1alpha1.PhaseRunning
	}
	p.sayRange()
	p.sayScheduler()
	if p.outcome.action == v1alpha1.ActionRestartJob {
		p.sayRestarting()
		return
	}
	p.sayLine()
	switch {
	case p.obstacle != nil:
		p.sayObstacle(*p.obstacle)
	case p.st.MasterCompletionTime != nil:
		p.sayCompleting()
	case p.coreRuns() && p.minimum > 0:
		p.sayTraining()
	default:
		p.sayWaiting()
	}
}

// sayLine says where the core stands in the line, and who makes room for it. The verdict is up to a second old, so a core
// that is placed does not ask it.
func (p *planner) sayLine() {
	if p.minimum > 0 && p.corePlaced() {
		p.st.Place, p.st.RoomFrom = 0, ""
		return
	}
	p.st.Place = p.o.Verdict.Place
	if from := p.o.Verdict.From; len(from) > 0 {
		p.st.RoomFrom = text.Clip(holders(from), 1024)
	}
}

func (p *planner) count() {
	p.st.Replicas, p.st.ReadyReplicas = 0, 0
	master := false
	for w := range p.workers() {
		if !w.Ended() && !w.Terminating && !p.deleting[w.UID] && !p.told(w) && (w.Index < p.maximum || finished(p.st)) {
			p.st.Replicas++
			if w.Ready {
				p.st.ReadyReplicas++
				master = master || w.Index == 0
			}
		}
	}
	p.st.GPUs = p.gpus(p.st.ReadyReplicas, master)
	p.st.ReadyWorkers = fmt.Sprintf("%d/%d (%d..%d)", p.st.ReadyReplicas, p.st.Replicas, p.spec.MinReplicas, p.spec.MaxReplicas)
}

// sayEnded leaves the words of the end standing and settles the conditions around them.
func (p *planner) sayEnded() {
	p.clear(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionRangePending, v1alpha1.ConditionSuspended)
	ended, ready := meta.FindStatusCondition(p.st.Conditions, v1alpha1.ConditionSucceeded), metav1.ConditionTrue
	if ended == nil {
		ended, ready = meta.FindStatusCondition(p.st.Conditions, v1alpha1.ConditionFailed), metav1.ConditionFalse
		// kstatus knows a job that will not go on as Stalled.
		p.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, ended.Reason, ended.Message)
	}
	reason, message := ended.Reason, ended.Message
	p.set(v1alpha1.ConditionReady, ready, reason, message)
	p.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, reason, "The job has ended.")
	p.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, reason, "The job has ended.")
	p.say(reason, message)
}

// rangePending tells whether the spec asks for what the attempt cannot give.
func (p *planner) rangePending() bool {
	return p.spec.MinReplicas != p.st.Attempt.MinReplicas || p.spec.MaxReplicas != p.maximum
}

// sayRange tells which part of the spec's range running workers cannot follow.
func (p *planner) sayRange() {
	a := p.st.Attempt
	if a == nil || !p.rangePending() {
		p.clear(v1alpha1.ConditionRangePending)
		return
	}
	p.set(v1alpha1.ConditionRangePending, metav1.ConditionTrue, v1alpha1.ReasonNextAttempt, fmt.Sprintf(
		"The spec asks for %d..%d workers; running workers were started with %d..%d and stay within it, with at most %d now. "+
			"The next attempt has the new range: set elasticity.onRangeChange to Restart, or suspend and resume the job, to start it.",
		p.spec.MinReplicas, p.spec.MaxReplicas, a.MinReplicas, a.MaxReplicas, p.maximum))
}

// sayObstacle puts an obstacle where it is looked for. While the core trains it hinders growth only.
func (p *planner) sayObstacle(o Obstacle) {
	p.clear(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
	if o.Stalled {
		p.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, o.Reason, o.Message)
	}
	p.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, o.Reason, o.Message)
	p.say(o.Reason, o.Message)
	if p.coreRuns() && p.minimum > 0 {
		p.set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonTraining, p.placedMessage())
		p.set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonTraining, p.placedMessage())
		return
	}
	if !o.Stalled {
		p.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, o.Reason, o.Message)
	}
	p.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, o.Reason, o.Message)
	p.set(v1alpha1.ConditionReady, metav1.ConditionFalse, o.Reason, o.Message)
}

// sayRestarting says why all workers are created anew.
func (p *planner) sayRestarting() {
	reason, message := p.outcome.reason, p.outcome.message
	p.clear(v1alpha1.ConditionStalled)
	p.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	p.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	p.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, reason, message)
	p.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, v1alpha1.ReasonCoreNotRunning, "The job grows once its core runs.")
	p.say(reason, message)
}

func (p *planner) sayCompleting() {
	message := fmt.Sprintf("%s; workers still to end within the completion grace of %s: %s.",
		capital(p.whoSucceeded()), p.completionGrace(), list(p.activeWorkers()))
	p.clear(v1alpha1.ConditionStalled)
	p.set(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCompleting, message)
	p.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonCompleting, message)
	p.set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonCompleting, message)
	p.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, v1alpha1.ReasonCompleting, message)
	p.say(v1alpha1.ReasonCompleting, message)
}

func (p *planner) sayTraining() {
	p.clear(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
	p.set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonTraining, p.placedMessage())
	p.set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonTraining, p.placedMessage())
	full, reason, message := p.growth()
	p.set(v1alpha1.ConditionFullSize, full, reason, message)
	if full == metav1.ConditionTrue {
		reason = v1alpha1.ReasonTraining
	}
	if meta.IsStatusConditionTrue(p.st.Conditions, v1alpha1.ConditionRangePending) {
		message += fmt.Sprintf(" The spec asks for %d..%d, which condition RangePending explains.",
			p.spec.MinReplicas, p.spec.MaxReplicas)
	}
	p.say(reason, message)
}

func (p *planner) placedMessage() string {
	message := fmt.Sprintf("The core of %s runs in queue %s.", workers(p.minimum), p.queue())
	if w := p.cutOff(); w != nil && w.Index < p.minimum {
		message += fmt.Sprintf(" Whether worker %d still does cannot be known: node %s has not answered since %s.", w.Index, w.Node,
			clock(p.o.Unreachable[w.Node]))
	}
	return message
}

// growth says how far the job has grown and what it waits for.
func (p *planner) growth() (metav1.ConditionStatus, string, string) {
	var gone []int32
	for i, left := range p.left[:min(int(p.maximum), len(p.left))] {
		if left {
			gone = append(gone, int32(i))
		}
	}
	ready, wanted := p.st.ReadyReplicas, p.maximum-int32(len(gone))
	have := fmt.Sprintf("%d of %s ready", ready, workers(wanted))
	switch {
	case p.mustStop():
		_, stopping, why := p.whyStopped()
		return metav1.ConditionFalse, stopping, fmt.Sprintf("%s; the job stops %s as soon as worker 0 has saved a checkpoint, or %s "+
			"after it was asked for one.", have, why, p.checkpointGrace())
	case ready == wanted:
		message := fmt.Sprintf("All %s ready.", workers(wanted))
		if len(gone) > 0 {
			message += fmt.Sprintf(" Beside them, %s left, having succeeded or because a rule of failurePolicy says Ignore.",
				workersNamed(gone))
		}
		return metav1.ConditionTrue, v1alpha1.ReasonAtMaximum, message
	case p.cutOff() != nil:
		return metav1.ConditionFalse, v1alpha1.ReasonNodeUnreachable, have + ". " + p.sayCutOff(p.cutOff())
	case p.cooldown() > 0:
		end := p.st.Elasticity.LastEvictionTime.Add(p.cooldownTime()).UTC().Format("2006-01-02 15:04:05 MST")
		return metav1.ConditionFalse, v1alpha1.ReasonCoolingDown, fmt.Sprintf(
			"%s; %s %s and will not be created again before %s (cooldownSeconds %.0f).",
			have, workersNamed(p.st.Elasticity.Evicted), whyEvicted(p.st.Elasticity), end, p.cooldownTime().Seconds())
	case p.waitingForRoom() > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonWaitingForRoom, fmt.Sprintf(
			"%s; %s for free room in queue %s and will join the training when there is some.",
			have, waits(p.waitingForRoom()), p.queue())
	}
	if p.gated() && !p.admitted() {
		if said := meta.FindStatusCondition(p.o.Job.Status.Conditions, v1alpha1.ConditionFullSize); said != nil {
			return said.Status, said.Reason, said.Message // What the limits leave is not known yet.
		}
	}
	if most := p.allowance(); p.maximum-p.minimum > most && p.full() {
		return metav1.ConditionFalse, v1alpha1.ReasonQuotaExceeded, fmt.Sprintf(
			"%s; the limits of profile %s leave the job %s beyond its core now. It grows by itself when they leave more.",
			have, p.o.Profile.Name, workers(most))
	}
	if p.full() {
		return metav1.ConditionFalse, v1alpha1.ReasonWaitingForRoom,
			have + "; no more fit now, and with surplus Fitting no worker is created to wait."
	}
	return metav1.ConditionFalse, v1alpha1.ReasonGrowing, have + "; the others are being created and started."
}

// whyEvicted says why surplus left last.
func whyEvicted(e *v1alpha1.ElasticityStatus) string {
	switch e.LastEvictionReason {
	case told:
		return "gave way to " + e.GaveWayTo
	case corev1.PodReasonPreemptionByScheduler:
		return "gave way to a waiting gang"
	case unseen:
		return "left while the operator was down"
	}
	return fmt.Sprintf("left by no fault of the job (%s)", e.LastEvictionReason)
}

// waitingForRoom counts workers that exist and have no node.
func (p *planner) waitingForRoom() int32 {
	var n int32
	for w := range p.workers() {
		if w.Index < p.maximum && !w.Scheduled && !w.Terminating {
			n++
		}
	}
	return n
}

// sayWaiting speaks of a core that does not run.
func (p *planner) sayWaiting() {
	reason, message := p.waiting()
	p.clear(v1alpha1.ConditionStalled)
	p.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	p.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	p.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, v1alpha1.ReasonCoreNotRunning,
		"The job grows once its core runs.")
	scheduled := metav1.ConditionFalse
	if p.corePlaced() {
		scheduled = metav1.ConditionTrue
	}
	p.set(v1alpha1.ConditionScheduled, scheduled, reason, message)
	p.say(reason, message)
}

func (p *planner) waiting() (reason, message string) {
	asks := fmt.Sprintf("the core of %s (%s)", workers(p.minimum), p.coreAsk())
	running := p.countCore(workerRuns)
	if shut := p.queueShut(); shut != nil && !p.corePlaced() && p.st.Attempt != nil {
		return shut.Reason, shut.Message
	}
	if gated := p.gatedWorker(); gated != nil {
		return v1alpha1.ReasonSchedulingGated, p.sayGated(gated)
	}
	if p.o.Verdict.Overdue && !p.corePlaced() {
		return v1alpha1.ReasonNotPlaced, p.sayNotPlaced(asks)
	}
	switch w := p.cannotStart(); {
	case w != nil:
		return w.StartError(), p.startError(w)
	case p.stuck() != nil:
		return v1alpha1.ReasonNodeUnreachable, p.sayUnreachable(p.stuck())
	case p.st.RunningSince != nil:
		return v1alpha1.ReasonRecovering, p.sayRecovering(running, asks)
	case p.corePlaced():
		return v1alpha1.ReasonStarting, fmt.Sprintf("Volcano placed %s; %d run.", asks, running)
	case p.o.Core == nil:
		return v1alpha1.ReasonSubmitted, fmt.Sprintf("Submitting %s to queue %s.", asks, p.queue())
	case p.o.Core.Unschedulable != "" || p.o.Verdict.Waiting > 0:
		reason := v1alpha1.ReasonQueued
		if p.o.Core.Unschedulable != "" {
			reason = v1alpha1.ReasonUnschedulable
		}
		return reason, p.why(asks) + p.sayAvoided()
	}
	return v1alpha1.ReasonQueued, fmt.Sprintf("Waiting in queue %s for Volcano to place %s.", p.queue(), asks)
}

// sayRecovering says how many of a core that ran before do, and what the others wait for.
func (p *planner) sayRecovering(running int32, asks string) string {
	message := fmt.Sprintf("%d of %s run; whoever was lost is created anew in queue %s and takes part again once it is placed.",
		running, workers(p.minimum), p.queue())
	if p.o.Verdict.Waiting > 0 && !p.corePlaced() {
		message += " " + p.why("what is missing of "+asks)
	} else if p.o.Core != nil && !p.corePlaced() {
		message += p.volcanoSays()
	}
	return message + p.sayAvoided()
}

// coreAsk lists what the core asks together: GPUs and other extended resources first, then CPU and memory.
func (p *planner) coreAsk() string {
	requests := trainingpod.CoreRequests(p.o.Job, p.minimum)
	var ordinary, extended []string
	for name, quantity := range requests {
		item := quantity.String() + " " + string(name)
		if strings.Contains(string(name), "/") {
			extended = append(extended, item)
		} else if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			ordinary = append(ordinary, item)
		}
	}
	slices.Sort(ordinary)
	slices.Sort(extended)
	if all := slices.Concat(extended, ordinary); len(all) > 0 {
		return strings.Join(all, ", ") + p.onModels()
	}
	return "no resource requests" + p.onModels()
}

func workers(n int32) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

func workersNamed(indices []int32) string {
	if len(indices) == 1 {
		return "worker " + list(indices)
	}
	return "workers " + list(indices)
}

// list writes rising indices for people: "6", "6 and 7", "2 to 5 and 7".
func list(indices []int32) string {
	var runs []string
	for len(indices) > 0 {
		n := 1
		for n < len(indices) && indices[n] == indices[0]+int32(n) {
			n++
		}
		first, last := strconv.Itoa(int(indices[0])), strconv.Itoa(int(indices[n-1]))
		switch n {
		case 1:
			runs = append(runs, first)
		case 2:
			runs = append(runs, first, last)
		default:
			runs = append(runs, first+" to "+last)
		}
		indices = indices[n:]
	}
	switch n := len(runs); n {
	case 0:
		return "none"
	case 1:
		return runs[0]
	default:
		return strings.Join(runs[:n-1], ", ") + " and " + runs[n-1]
	}
}

func waits(n int32) string {
	if n == 1 {
		return "1 worker waits"
	}
	return fmt.Sprintf("%d workers wait", n)
}

func (p *planner) say(reason, message string) {
	p.st.Reason, p.st.Message = reason, text.Clip(message, 4096)
}

// sayScheduler tells whether Volcano lets surplus give way by itself.
func (p *planner) sayScheduler() {
	if p.o.VolcanoMissing != "" {
		return
	}
	if len(p.o.SchedulerObstacles) == 0 {
		p.set(v1alpha1.ConditionSchedulerConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured,
			"Volcano's configuration lets surplus give way to waiting gangs.")
		return
	}
	p.set(v1alpha1.ConditionSchedulerConfigured, metav1.ConditionFalse, v1alpha1.ReasonIncomplete, fmt.Sprintf(
		"Volcano's configuration does not let surplus give way as it should: %s. Until it is changed (config/volcano), surplus "+
			"of jobs with shrinkBy Auto leaves on the operator's word, when a gang has starved.",
		strings.Join(p.o.SchedulerObstacles, "; ")))
}

// sayOwner tells, with the first words of a job and for good, that nobody checked its owner and its ServiceAccount. Both are
// checked when the job is created and do not change, so webhooks that are switched on or off later say nothing about them.
func (p *planner) sayOwner() {
	if !ownership.Unchecked(p.o.Job.Status.ObservedGeneration, p.o.WebhooksOff) {
		return
	}
	message := "The job came while the operator ran without webhooks (--webhooks=false), which set the owner: it has none, " +
		"and nothing can be counted for a person."
	if p.spec.Owner != "" {
		message = fmt.Sprintf("The job came while the operator ran without webhooks (--webhooks=false), which check the owner: "+
			"%q is what its creator wrote.", p.spec.Owner)
	}
	if len(p.spec.OwnerGroups) > 0 {
		message += " The groups of spec.ownerGroups do not count."
	}
	if account, _ := trainingpod.Account(&p.spec.Template.Spec); account != "" && account != trainingpod.DefaultAccount {
		message += fmt.Sprintf(" Nor did they check whether its creator may have workers run as ServiceAccount %q.", account)
	}
	p.set(v1alpha1.ConditionOwnerChecked, metav1.ConditionFalse, v1alpha1.ReasonWebhooksOff, message)
}

// conditions writes those of the job.
func (p *planner) conditions() conditions.Writer {
	return conditions.Writer{List: &p.st.Conditions, Generation: p.o.Job.Generation, Now: p.time()}
}

// set writes a condition whose transition time is now.
func (p *planner) set(kind string, status metav1.ConditionStatus, reason, message string) {
	p.conditions().Set(kind, status, reason, message)
}

func (p *planner) clear(kinds ...string) { p.conditions().Remove(kinds...) }
