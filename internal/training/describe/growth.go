package describe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
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
		if len(gone) > 0 {
			message += fmt.Sprintf(" %s left, with success or by a rule of the failure policy (Ignore).",
				CapitalizeFirst(WorkersNamed(gone)))
		}
		return metav1.ConditionTrue, v1alpha1.ReasonAtMaximum, message
	case d.CutOff() != nil:
		return metav1.ConditionFalse, v1alpha1.ReasonNodeUnreachable, have + ". " + d.sayCutOff(d.CutOff())
	case d.SurplusCooldown() > 0:
		end := d.Status.Elasticity.LastEvictionTime.Add(d.CooldownTime()).UTC().Format("2006-01-02 15:04:05 MST")
		return metav1.ConditionFalse, v1alpha1.ReasonCoolingDown, fmt.Sprintf(
			"%s. %s %s, and the operator creates no replacement before %s (cooldownSeconds %.0f).",
			have, CapitalizeFirst(WorkersNamed(d.Status.Elasticity.Evicted)), whyEvicted(d.Status.Elasticity), end,
			d.CooldownTime().Seconds())
	case d.waitingForRoom() > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonWaitingForRoom, fmt.Sprintf(
			"%s; %s for free room in queue %s.", have, countWaiting(d.waitingForRoom()), d.Queue.Name)
	}
	if d.IsGated() && !d.IsAdmitted() {
		if said := meta.FindStatusCondition(d.Job.Status.Conditions, v1alpha1.ConditionFullSize); said != nil {
			return said.Status, said.Reason, said.Message // The arbiter has not decided yet what the limits leave.
		}
	}
	if most := d.SurplusAllowance(); d.Maximum-d.Minimum > most && d.Full {
		return metav1.ConditionFalse, v1alpha1.ReasonQuotaExceeded, fmt.Sprintf(
			"%s. Cannot grow: the limits of profile %s allow it %s beyond its core now. It grows by itself once they allow more.",
			have, d.Profile.Name, CountWorkers(most))
	}
	if d.Full {
		return metav1.ConditionFalse, v1alpha1.ReasonWaitingForRoom,
			have + ". No more fit now, and with elasticity.growth.mode OnlyIfFits the operator creates only workers that fit."
	}
	return metav1.ConditionFalse, v1alpha1.ReasonGrowing, have + "; the others are being created and started."
}

// waitingForRoom counts workers that exist and have no node.
func (d *description) waitingForRoom() int32 {
	var n int32
	for w := range d.AttemptWorkers() {
		if w.Index < d.Maximum && !w.Scheduled && !w.Terminating {
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
func whyEvicted(e *v1alpha1.ElasticityStatus) string {
	switch e.LastEvictionReason {
	case losses.Told:
		return "gave way to " + losses.GangServed(e)
	case corev1.PodReasonPreemptionByScheduler:
		return "gave way to a waiting gang"
	case losses.Unseen:
		return "left while the operator was down"
	}
	return fmt.Sprintf("left because of an eviction (%s)", e.LastEvictionReason)
}
