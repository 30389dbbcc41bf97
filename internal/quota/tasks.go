package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Task is a training whose name a reservation names.
type Task struct {
	Namespace, Name string
	// Owner of the training; empty if the operator runs without webhooks and its creator named none.
	Owner   string
	Created time.Time
	// Claims is true while its gang is there and waits for room, or has it. Unjudged is true while that is not known yet.
	Claims, Unjudged bool
	// Asks is true while its gang waits for places ahead of all others, and Placed once it had them.
	Asks, Placed bool
	// Reason and Message are those of its status.
	Reason, Message string
}

// ownerLimit is how much of an owner's name a message has.
const ownerLimit = 200

func (t *Task) ref() *v1beta1.GangRef {
	return &v1beta1.GangRef{Namespace: t.Namespace, Name: t.Name}
}

// takesRoom tells whether the task takes the room of its reservation. A handover that has begun continues while the task's
// claim is unknown, as after a start of the operator.
func (t *Task) takesRoom(st *v1beta1.ReservationStatus) bool {
	goesOn := t.Unjudged && st.Phase == v1beta1.ReservationHandingOver && st.Job != nil && *st.Job == *t.ref()
	return t.Placed || t.Claims || goesOn
}

// takerCandidates returns the training that takes the room, and a training of that name that does not, for the status; nil
// for none. The taker has the reservation's task name and owner, and claims room. A training that is older than the
// reservation does not take it. Among several the oldest counts. The status reports a training of the owner before one of
// another user.
func (r *review) takerCandidates(spec *v1beta1.ProfileReservation, st *v1beta1.ReservationStatus) (taker, other *Task) {
	for i := range r.p.o.Tasks {
		t := &r.p.o.Tasks[i]
		if t.Name != spec.JobRef.Name || !slices.Contains(r.p.namespaces[r.profile.Name], t.Namespace) {
			continue
		}
		owned := t.Owner == spec.Owner
		switch {
		case owned && t.Created.Before(st.Since.Time):
		case owned && t.takesRoom(st):
			taker = olderTask(taker, t)
		case other == nil || owned && other.Owner != spec.Owner:
			other = t
		case owned == (other.Owner == spec.Owner):
			other = olderTask(other, t)
		}
	}
	return taker, other
}

// olderTask is the older of two tasks. a may be nil.
func olderTask(a, b *Task) *Task {
	if a == nil || cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Namespace, a.Namespace)) < 0 {
		return b
	}
	return a
}

// keptFrom is why the task does not take the room of the reservation for its name, and what to do.
func (t *Task) keptFrom(spec *v1beta1.ProfileReservation) (reason, message string) {
	owner, wanted := text.ClipLine(t.Owner, ownerLimit), text.ClipLine(spec.Owner, ownerLimit)
	switch {
	case t.Owner == spec.Owner && t.Unjudged:
		return "", ""
	case t.Owner == spec.Owner:
		reason, message = t.Reason, fmt.Sprintf("The room is for job %s, which claims none now.", t.ref())
		if reason != "" {
			message += fmt.Sprintf(" Its status says %s: %s", reason, t.Message)
		}
	case t.Owner == "":
		reason, message = v1beta1.ReasonOtherOwner, fmt.Sprintf("Job %s has no owner, and the reservation is for %s. The job gets "+
			"no room of it. Set spec.owner of the job to %[2]s, or correct the reservation's jobRef.", t.ref(), wanted)
	default:
		reason, message = v1beta1.ReasonOtherOwner, fmt.Sprintf("Job %s belongs to %s, and the reservation is for %s. The job gets "+
			"no room of it. Ask %[2]s to delete the job, or correct the reservation's jobRef or owner.", t.ref(), owner, wanted)
	}
	return reason, text.ClipLine(message, messageLimit)
}
