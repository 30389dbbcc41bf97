package describe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// growth says how far the job has grown and what it waits for.
func (d *description) growth() (metav1.ConditionStatus, string, string) {
	var gone []int32
	for i, left := range d.Left[:min(int(d.Maximum), len(d.Left))] {
		if left {
			gone = append(gone, int32(i))
		}
	}
	ready, wanted := d.Status.ReadyReplicas, d.Maximum-int32(len(gone))
	have := fmt.Sprintf("%d of %s ready", ready, Workers(wanted))
	switch {
	case d.MustStop():
		_, stopping, why := d.whyStopped()
		return metav1.ConditionFalse, stopping, fmt.Sprintf("%s; the job stops %s as soon as worker 0 has saved a checkpoint, or %s "+
			"after it was asked for one.", have, why, d.CheckpointGrace())
	case ready == wanted:
		message := fmt.Sprintf("All %s ready.", Workers(wanted))
		if len(gone) > 0 {
			message += fmt.Sprintf(" Beside them, %s left, having succeeded or because a rule of failurePolicy says Ignore.",
				WorkersNamed(gone))
		}
		return metav1.ConditionTrue, v1alpha1.ReasonAtMaximum, message
	case d.CutOff() != nil:
		return metav1.ConditionFalse, v1alpha1.ReasonNodeUnreachable, have + ". " + d.sayCutOff(d.CutOff())
	case d.Cooldown() > 0:
		end := d.Status.Elasticity.LastEvictionTime.Add(d.CooldownTime()).UTC().Format("2006-01-02 15:04:05 MST")
		return metav1.ConditionFalse, v1alpha1.ReasonCoolingDown, fmt.Sprintf(
			"%s; %s %s and will not be created again before %s (cooldownSeconds %.0f).",
			have, WorkersNamed(d.Status.Elasticity.Evicted), whyEvicted(d.Status.Elasticity), end, d.CooldownTime().Seconds())
	case d.waitingForRoom() > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonWaitingForRoom, fmt.Sprintf(
			"%s; %s for free room in queue %s and will join the training when there is some.",
			have, waits(d.waitingForRoom()), d.Queue.Name)
	}
	if d.Gated() && !d.Admitted() {
		if said := meta.FindStatusCondition(d.Job.Status.Conditions, v1alpha1.ConditionFullSize); said != nil {
			return said.Status, said.Reason, said.Message // What the limits leave is not known yet.
		}
	}
	if most := d.Allowance(); d.Maximum-d.Minimum > most && d.Full {
		return metav1.ConditionFalse, v1alpha1.ReasonQuotaExceeded, fmt.Sprintf(
			"%s; the limits of profile %s leave the job %s beyond its core now. It grows by itself when they leave more.",
			have, d.Profile.Name, Workers(most))
	}
	if d.Full {
		return metav1.ConditionFalse, v1alpha1.ReasonWaitingForRoom,
			have + "; no more fit now, and with surplus Fitting no worker is created to wait."
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

func (d *description) placedMessage() string {
	message := fmt.Sprintf("The core of %s runs in queue %s.", Workers(d.Minimum), d.Queue.Name)
	if w := d.CutOff(); w != nil && w.Index < d.Minimum {
		message += fmt.Sprintf(" Whether worker %d still does cannot be known: node %s has not answered since %s.", w.Index, w.Node,
			Clock(d.Unreachable[w.Node]))
	}
	return message
}

// whyEvicted says why surplus left last.
func whyEvicted(e *v1alpha1.ElasticityStatus) string {
	switch e.LastEvictionReason {
	case losses.Told:
		return "gave way to " + e.GaveWayTo
	case corev1.PodReasonPreemptionByScheduler:
		return "gave way to a waiting gang"
	case losses.Unseen:
		return "left while the operator was down"
	}
	return fmt.Sprintf("left by no fault of the job (%s)", e.LastEvictionReason)
}
