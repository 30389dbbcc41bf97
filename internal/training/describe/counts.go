package describe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

func (d *description) count() {
	d.Status.Replicas, d.Status.ReadyReplicas = 0, 0
	master := false
	for w := range d.AttemptWorkers() {
		if !w.Ended() && !w.Terminating && !d.Deleting[w.UID] && !d.Told(w) && (w.Index < d.Maximum || jobstate.Finished(d.Status)) {
			d.Status.Replicas++
			if w.Ready {
				d.Status.ReadyReplicas++
				master = master || w.Index == 0
			}
		}
	}
	d.Status.GPUs = d.gpus(d.Status.ReadyReplicas, master)
	d.Status.ReadyWorkers = fmt.Sprintf("%d/%d (%d..%d)",
		d.Status.ReadyReplicas, d.Status.Replicas, d.Spec.MinReplicas, d.Spec.MaxReplicas)
}

// nameAll names queue, tier and profile.
func (d *description) nameAll() {
	d.Status.Queue = text.Clip(d.Queue.Name, validation.DNS1123SubdomainMaxLength)
	if tier, ok := d.Tier(); ok {
		d.Status.Tier = tier.Name
	}
	d.Status.Profile = v1alpha1.DefaultProfile
	if d.Profile != nil {
		d.Status.Profile = d.Profile.Name
	}
}

// setPhase sums the situation up in one word. That of a job that has ended was written with its end.
func (d *description) setPhase() {
	switch {
	case d.is == ended:
	case jobstate.Stopped(d.Status):
		d.Status.Phase = v1alpha1.PhaseSuspended
	case d.Status.RunningSince != nil:
		d.Status.Phase = v1alpha1.PhaseRunning
	default:
		d.Status.Phase = v1alpha1.PhasePending
	}
}

// setPlace says where the core stands in the line, and who makes room for it. The verdict is up to a second old, so a core
// that is placed does not ask it.
func (d *description) setPlace() {
	if d.is == ended || jobstate.Stopped(d.Status) {
		d.Status.Place, d.Status.RoomFrom = 0, "" // It waits for nothing.
		return
	}
	if d.is == restarting {
		return
	}
	if d.Minimum > 0 && d.CorePlaced() {
		d.Status.Place, d.Status.RoomFrom = 0, ""
		return
	}
	d.Status.Place = d.Verdict.Place
	if from := d.Verdict.From; len(from) > 0 {
		d.Status.RoomFrom = text.Clip(holders(from), 1024)
	}
}

// gpus is how many GPUs ready workers hold, worker 0 among them or not.
func (d *description) gpus(ready int32, master bool) int64 {
	others := trainingpod.GPUs(d.Job, 1)
	n := int64(ready) * others
	if master {
		n += trainingpod.GPUs(d.Job, 0) - others
	}
	return n
}
