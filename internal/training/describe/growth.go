package describe

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// describeGrowth says how far the job has grown and what it waits for: the status, reason and message of condition FullSize.
func (d *description) describeGrowth() (metav1.ConditionStatus, string, string) {
	// Workers that left for good lower the number that the job can have.
	var gone []int32
	for i, left := range d.Left[:min(int(d.Maximum), len(d.Left))] {
		if left {
			gone = append(gone, int32(i))
		}
	}
	ready, wanted := d.Status.ReadyReplicas, d.Maximum-int32(len(gone))
	have := fmt.Sprintf("%d of %s ready", ready, CountWorkers(wanted))
	switch {
	case d.MustStop():
		_, stopping, why := d.whyStopped()
		return metav1.ConditionFalse, stopping, fmt.Sprintf("%s. The job stops %s once worker 0 has saved a checkpoint, or %s after "+
			"it was asked to.", have, why, d.CheckpointGrace())
	case ready == wanted:
		message := fmt.Sprintf("All %s ready.", CountWorkers(wanted))
		if wanted == 1 {
			message = "Its only worker is ready."
		}
		if len(gone) > 0 {
			message += fmt.Sprintf(" %s left, with success or by a rule of the failure policy (Ignore).",
				CapitalizeFirst(WorkersNamed(gone)))
		}
		return metav1.ConditionTrue, v1beta1.ReasonAtMaximum, message
	case d.CutOff() != nil:
		return metav1.ConditionFalse, v1beta1.ReasonNodeUnreachable, have + ". " + d.sayCutOff(d.CutOff())
	}
	if d.IsGated() && !d.IsAdmitted() {
		if said := meta.FindStatusCondition(d.Job.Status.Conditions, v1beta1.ConditionFullSize); said != nil && !d.isHeldUp() {
			return said.Status, said.Reason, said.Message // The arbiter has not decided yet what the limits leave.
		}
	}
	reason, message := d.whyNotLarger()
	return metav1.ConditionFalse, reason, have + message
}

// isHeldUp is true while a job waits with its growth for something other than the limits of its profile.
func (d *description) isHeldUp() bool {
	return d.coolsDown() || d.waitingForRoom() > 0 || d.Growth().IsInSteps() && d.starting() > 0 || d.weighsGrowth()
}

// coolsDown is true while surplus must not join, and the surplus that has joined is ready.
func (d *description) coolsDown() bool {
	return d.Growth().PauseLeft() > 0 && (len(d.Status.Elasticity.Evicted) > 0 || d.starting() == 0)
}

// weighsGrowth is true if a step was weighed and is not made yet.
func (d *description) weighsGrowth() bool { return d.Step != nil && !d.Step.IsDue() }

// whyNotLarger says what the next growth waits for: a reason, and the end of a sentence that begins with how many are ready.
func (d *description) whyNotLarger() (reason, message string) {
	const starting = "; the others are being created and started."
	switch {
	case d.coolsDown():
		return v1beta1.ReasonCoolingDown, ". " + d.sayPause()
	case d.waitingForRoom() > 0:
		return v1beta1.ReasonWaitingForRoom, fmt.Sprintf("; %s for free room in queue %s.", countWaiting(d.waitingForRoom()),
			d.Queue.Name)
	case d.Growth().IsInSteps() && d.starting() > 0:
		return v1beta1.ReasonGrowing, starting
	case d.weighsGrowth():
		reason = v1beta1.ReasonDoesNotPay
		if d.Step.Pays() {
			reason = v1beta1.ReasonDoesNotPayYet
		}
		return reason, ". " + d.sayWorth()
	}
	if d.gainsTooLittle() {
		return v1beta1.ReasonGainsTooLittle, ". " + d.sayGain()
	}
	if most := d.Growth().SurplusAllowance(); d.Maximum-d.Minimum > most && d.Full {
		if d.IsAdmitted() && d.Turn.Capped != nil {
			return v1beta1.ReasonQuotaExceeded, ". Cannot grow: " + d.Turn.Capped.DescribeCap(d.Profile.Name)
		}
		return v1beta1.ReasonQuotaExceeded, fmt.Sprintf(
			". Cannot grow: the limits of profile %s allow it %s beyond its core now. It grows by itself once they allow more.",
			d.Profile.Name, CountWorkers(most))
	}
	if d.Full && d.Spec.Elasticity.StepWithin != nil {
		return v1beta1.ReasonWaitingForRoom, ". " + d.sayRoomWithin()
	}
	if d.Full && d.Growth().FollowsRoom() {
		return v1beta1.ReasonWaitingForRoom, fmt.Sprintf(
			". More are created when the operator sees room for them (elasticity.growth.mode %s).",
			d.Spec.Elasticity.Growth.Mode)
	}
	return v1beta1.ReasonGrowing, starting
}

// sayRoomWithin says for which room a job waits whose steps are each within one node or HyperNode.
func (d *description) sayRoomWithin() string {
	e := &d.Spec.Elasticity
	in := "on one node"
	if tier := e.StepWithin.DomainTier(); tier > 0 {
		in = fmt.Sprintf("in one HyperNode of tier %d", tier)
	}
	if d.Verdict.Unjudged {
		return fmt.Sprintf("It cannot grow: the operator cannot tell which has room for %s %s (elasticity.stepWithin), because they "+
			"ask for something that its model of capacity does not cover.", CountWorkers(e.Step), in)
	}
	return fmt.Sprintf("More are created when the operator sees room for %s %s (elasticity.stepWithin).", CountWorkers(e.Step), in)
}

// gainsTooLittle is true for a job that could be larger, and has all the surplus that gains enough.
func (d *description) gainsTooLittle() bool {
	wanted := d.Maximum - d.Minimum
	return d.Full && growth.WorthwhileSurplus(d.Spec, d.Status, wanted) < min(wanted, d.Growth().SurplusAllowance())
}

// sayGain says what one more worker would add, as far as is known from other sizes.
func (d *description) sayGain() string {
	gain := growth.CurveOf(d.Spec, d.Status).GainAt(d.Status.ReadyReplicas)
	return fmt.Sprintf("One more would add %.0f %% of what a worker of the core adds to the speed, as measured with other numbers "+
		"of workers (status.elasticity.speeds); the least is %d %% (elasticity.growth.leastGainPercent).", 100*gain,
		ptr.Deref(d.Spec.Elasticity.Growth.LeastGainPercent, v1beta1.DefaultLeastGainPercent))
}

// sayPause says until when the job does not grow, and why.
func (d *description) sayPause() string {
	e := d.Status.Elasticity
	pause := fmt.Sprintf("cooldownSeconds %d", ptr.Deref(d.Spec.Elasticity.Growth.CooldownSeconds, v1beta1.DefaultCooldownSeconds))
	until := e.NextGrowthTime.Time
	if !d.Growth().IsInSteps() {
		until = e.LastEvictionTime.Add(d.Growth().CooldownTime())
	} else if e.QuickLosses > 1 {
		pause += fmt.Sprintf(", doubled %s, because the job lost %d times in a row what it had just gained",
			countTimes(e.QuickLosses-1), e.QuickLosses)
	}
	if len(e.Evicted) > 0 {
		return fmt.Sprintf("%s %s, and the operator creates no replacement before %s (%s).",
			CapitalizeFirst(WorkersNamed(e.Evicted)), whyEvicted(e), FormatTime(until), pause)
	}
	return fmt.Sprintf("Each change of size restarts all workers, so after its last one it does not grow again before %s (%s).",
		FormatTime(until), pause)
}

// sayWorth says what growing would bring and cost. Figures are rounded, so that they do not change with every minute.
func (d *description) sayWorth() string {
	s, worth, of := d.Step, d.Step.Weigh(), "GPU-seconds"
	if s.Devices == 0 {
		of = "worker-seconds"
	}
	fit, it, they := "fits", "it", "it fits"
	if s.Joining > 1 {
		fit, it, they = "fit", "them", "they fit"
	}
	figures := fmt.Sprintf("would gain %s and cost %s %s", formatRounded(worth.Gain), formatRounded(worth.Cost), of)
	why := fmt.Sprintf("surplus stays %s in queue %s, and a change of size keeps %s from progress for %s.",
		roundTime(s.Stay.Expected()), d.Queue.Name, CountWorkers(s.Training), s.Outage.Round(time.Second))
	if !s.Pays() {
		return fmt.Sprintf("%s more %s, but %s, so the job waits: %s", CountWorkers(s.Joining), fit, figures, why)
	}
	return fmt.Sprintf("%s more %s, and %s: %s The job grows at %s, if %s until then: when it has missed as much without %s.",
		CountWorkers(s.Joining), fit, figures, why, FormatTime(d.Now.Add(s.TimeLeft()).Round(10*time.Second)), they, it)
}

// formatRounded writes a number with two digits that count, and commas.
func formatRounded(n int64) string {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	digits := strconv.FormatInt((n+unit/2)/unit*unit, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// roundTime rounds a time to about two digits that count.
func roundTime(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Hour, 10 * time.Minute, time.Minute, 10 * time.Second} {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Second)
}

// countTimes is "once", "twice", "3 times".
func countTimes(n int32) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// starting counts surplus workers that have a node and are not ready.
func (d *description) starting() int32 {
	var n int32
	for w := range d.AttemptWorkers() {
		if d.IsSurplus(w.Index) && w.Index < d.Maximum && w.Scheduled && !w.Ready && !w.Terminating && !w.HasEnded() &&
			!d.IsToldToLeave(w) && !d.Deleting[w.UID] {
			n++
		}
	}
	return n
}

// waitingForRoom counts workers that exist and have no node.
func (d *description) waitingForRoom() int32 {
	var n int32
	for w := range d.AttemptWorkers() {
		if w.Index < d.Maximum && !w.Scheduled && !w.Terminating && !d.Deleting[w.UID] {
			n++
		}
	}
	return n
}

// placedMessage says that the core runs, and what is uncertain about that.
func (d *description) placedMessage() string {
	message := fmt.Sprintf("The core of %s runs in queue %s.", CountWorkers(d.Minimum), d.Queue.Name)
	if w := d.CutOff(); w != nil && w.Index < d.Minimum {
		message += fmt.Sprintf(" Node %s has not answered since %s, so worker %d may have stopped.", w.Node,
			FormatTime(d.Unreachable[w.Node]), w.Index)
	}
	return message
}

// whyEvicted says why surplus last left, as the predicate of a sentence.
func whyEvicted(e *v1beta1.ElasticityStatus) string {
	switch e.LastEvictionReason {
	case losses.Told:
		return "gave way to " + losses.GangServed(e)
	case corev1.PodReasonPreemptionByScheduler:
		return "gave way to a waiting gang"
	case losses.Remainder:
		return "left, because they were no whole step of the size that others had left"
	case losses.Unseen:
		return "left while the operator was down"
	}
	return fmt.Sprintf("left because of an eviction (%s)", e.LastEvictionReason)
}
