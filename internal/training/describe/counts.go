package describe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// countWorkers counts the workers that stay: one that is being deleted, or was named to leave, does not count any more.
func (d *description) countWorkers() {
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.Accelerators = 0, 0, 0
	gpus := map[sizing.Role]int64{} // of workers that are alike
	for w := range d.AttemptWorkers() {
		if !w.HasEnded() && !w.Terminating && !d.Deleting[w.UID] && !d.IsToldToLeave(w) && (w.Index < d.Maximum ||
			jobstate.IsFinished(d.Status)) {
			d.Status.Replicas++
			if w.Ready {
				d.Status.ReadyReplicas++
				d.Status.Accelerators += d.countGPUs(w.Index, gpus)
			}
		}
	}
	least, most, target := d.Spec.MinReplicas, d.Spec.MaxReplicas, d.Wanted
	if d.rangePending() {
		least, most, target = d.Minimum, d.Maximum, d.Maximum // What the spec says holds from the next attempt on.
	}
	d.Status.Summary = fmt.Sprintf("%d/%d (%d..%d)", d.Status.ReadyReplicas, d.Status.Replicas, least, most)
	if target != most {
		d.Status.Summary = fmt.Sprintf("%d/%d (%d..%d, target %d)", d.Status.ReadyReplicas, d.Status.Replicas, least, most, target)
	}
}

// nameAll writes the names of the job's queue, tier and profile.
func (d *description) nameAll() {
	d.Status.Queue = text.ClipLine(d.Queue.Name, validation.DNS1123SubdomainMaxLength)
	if tier, ok := d.Tier(); ok {
		d.Status.Tier = tier.Name
	}
	d.Status.Profile = v1beta1.DefaultProfile
	if d.Profile != nil {
		d.Status.Profile = d.Profile.Name
	}
}

// setPhase sums the situation up in one word.
func (d *description) setPhase() {
	switch {
	case d.is == ended: // The planner wrote the phase with the end.
	case jobstate.IsStopped(d.Status):
		d.Status.Phase = v1beta1.PhaseSuspended
	case d.Status.RunningSince != nil:
		d.Status.Phase = v1beta1.PhaseRunning
	default:
		d.Status.Phase = v1beta1.PhasePending
	}
}

// setPlace writes the core's place in its queue, and which jobs make room for it.
func (d *description) setPlace() {
	if d.is == ended || jobstate.IsStopped(d.Status) {
		d.Status.Place, d.Status.RoomFrom = 0, nil
		return
	}
	if d.is == restarting {
		return // The verdict is about workers that are being deleted.
	}
	if d.Minimum > 0 && d.CorePlaced() {
		d.Status.Place, d.Status.RoomFrom = 0, nil // The verdict is up to a second old and may still have the core waiting.
		return
	}
	d.Status.Place = d.Verdict.Place
	if from := d.Verdict.From; len(from) > 0 {
		d.Status.RoomFrom = nil
		for _, h := range from[:min(len(from), v1beta1.MaxRoomSources)] {
			d.Status.RoomFrom = append(d.Status.RoomFrom, v1beta1.RoomSource{
				Namespace: h.Job.Namespace, Name: h.Job.Name, Workers: h.Workers,
			})
		}
	}
}

// countGPUs is how many GPUs worker i holds. known has those of roles, which it adds to.
func (d *description) countGPUs(i int32, known map[sizing.Role]int64) int64 {
	role := trainingpod.RoleOf(d.Spec, i)
	n, counted := known[role]
	if !counted {
		n = trainingpod.GPUs(d.Job, i) + d.Claims.Count().Devices
		known[role] = n
	}
	return n
}
