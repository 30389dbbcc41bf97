package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Task is a training that has the name for which there is a reservation.
type Task struct {
	Namespace, Name string
	// Owner is who answers for it; empty where there are no webhooks, and its creator named no owner.
	Owner   string
	Created time.Time
	// Claims is true while its gang is there and waits for room, or has it. Unjudged is true while that is not known yet.
	Claims, Unjudged bool
	// Asks is true while its gang waits for places before everybody else's, and Placed once it had them.
	Asks, Placed bool
	// Reason and Message are those of its status.
	Reason, Message string
}

// ownerLimit is how much of an owner's name a message has.
const ownerLimit = 200

func (t *Task) key() string { return t.Namespace + "/" + t.Name }

// takes tells whether the task takes the room of a reservation that is for it. One to which room is handed over already goes on
// while nothing is known of its claim, as when the operator has just begun.
func (t *Task) takes(st *v1alpha1.ReservationStatus) bool {
	goesOn := t.Unjudged && st.Phase == v1alpha1.ReservationHandingOver && st.Job == t.key()
	return t.Placed || t.Claims || goesOn
}

// candidates are the training that takes the room, and another of the name that does not, which the status tells about; nil for
// none. The taker has the reservation's name and owner, and claims room. One that was there before the reservation does not take
// it: it is for one to come. Of several the oldest counts; and the status tells about one of the owner's before any other.
func (r *review) candidates(spec *v1alpha1.ProfileReservation, st *v1alpha1.ReservationStatus) (taker, other *Task) {
	for i := range r.p.o.Tasks {
		t := &r.p.o.Tasks[i]
		if t.Name != spec.ForTask || !slices.Contains(r.p.namespaces[r.profile.Name], t.Namespace) {
			continue
		}
		owned := t.Owner == spec.ForOwner
		switch {
		case owned && t.Created.Before(st.Since.Time):
		case owned && t.takes(st):
			taker = older(taker, t)
		case other == nil || owned && other.Owner != spec.ForOwner:
			other = t
		case owned == (other.Owner == spec.ForOwner):
			other = older(other, t)
		}
	}
	return taker, other
}

// older is the older of two, of which the first may be nil.
func older(a, b *Task) *Task {
	if a == nil || cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Namespace, a.Namespace)) < 0 {
		return b
	}
	return a
}

// keptFrom says why the task does not take the room of a reservation that has its name, and what to do.
func (t *Task) keptFrom(spec *v1alpha1.ProfileReservation) (reason, message string) {
	owner, wanted := text.Clip(t.Owner, ownerLimit), text.Clip(spec.ForOwner, ownerLimit)
	switch {
	case t.Owner == spec.ForOwner && t.Unjudged:
		return "", ""
	case t.Owner == spec.ForOwner:
		reason, message = t.Reason, fmt.Sprintf("Job %s, which the room is for, claims none now.", t.key())
		if reason != "" {
			message += fmt.Sprintf(" Its status says %s: %s", reason, t.Message)
		}
	case t.Owner == "":
		reason, message = v1alpha1.ReasonOtherOwner, fmt.Sprintf("Job %s names no owner, and the reservation is for %s: the job gets "+
			"none of its room. Create it anew with spec.owner %[2]s, or correct forTask of the reservation.", t.key(), wanted)
	default:
		reason, message = v1alpha1.ReasonOtherOwner, fmt.Sprintf("Job %s belongs to %s, and the reservation is for %s: the job gets "+
			"none of its room. Have %[2]s delete the job, or correct forTask or forOwner of the reservation.", t.key(), owner, wanted)
	}
	return reason, text.Clip(message, messageLimit)
}
