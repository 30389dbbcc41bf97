package quota

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// ReservationKey names a reservation of a profile.
type ReservationKey struct{ Profile, Name string }

// Placeholders are what a reservation has: its PodGroup, nil for none, and the pods that hold its places.
type Placeholders struct {
	Group *PlaceholderGroup
	Pods  []Placeholder
	// Refused is what was last said against what holds the room; nil for nothing.
	Refused *Refusal
}

// Refusal is why the API server does not take something.
type Refusal struct {
	// Reason is one of those of jobs, and Said the API server's words.
	Reason, Said string
}

// messageLimit is how long the message of a reservation may be, and saidLimit how much of that the API server's words.
const messageLimit, saidLimit = 1024, 800

// PlaceholderGroup is the PodGroup of a reservation.
type PlaceholderGroup struct {
	Name string
	UID  types.UID
	// MinMember is how many of its pods Volcano lets nobody take.
	MinMember int32
}

// Placeholder is a pod that holds the place of one replica.
type Placeholder struct {
	Name  string
	UID   types.UID
	Index int32
	// Placed is true for a pod on a node, Ended for one that will not run again, and Leaving for one that is being deleted.
	Placed, Ended, Leaving bool
}

// PlaceholderDecision is what is done about one reservation.
type PlaceholderDecision struct {
	ReservationKey

	// CreateGroup is the PodGroup to create; nil for none. CreatePods come after it. RestoreGroup is one that says something else,
	// which has the UID Restored.
	CreateGroup, RestoreGroup *gang.Group
	Restored                  types.UID
	CreatePods                []*corev1.Pod
	// DeletePods and DeleteGroup give the room back.
	DeletePods  []Placeholder
	DeleteGroup *PlaceholderGroup
}

// reserve decides about the profile's reservations. What a profile that is not in order asks for waits.
func (r *review) reserve() {
	var all []v1alpha1.ReservationStatus
	for i := range r.profile.Spec.Reservations {
		spec := &r.profile.Spec.Reservations[i]
		written := r.written(spec.Name)
		st := v1alpha1.ReservationStatus{Name: spec.Name, Phase: written.Phase, Job: written.Job, Since: written.Since}
		if st.Since.IsZero() {
			st.Since = r.p.now
		}
		room := r.p.o.Placeholders[ReservationKey{r.profile.Name, spec.Name}]
		for _, p := range room.Pods {
			if p.Placed && !p.Leaving && !p.Ended {
				st.Placed++
			}
		}
		taker := r.advance(&st, spec)
		if refused := room.Refused; refused != nil && !over(st.Phase) {
			st.Reason, st.Message = refused.Reason, text.Clip(fmt.Sprintf("%s. Correct the reservation, or have changed what refuses it; "+
				"it is tried again and again.", text.Clip(refused.Said, saidLimit)), messageLimit)
		}
		d := PlaceholderDecision{ReservationKey: ReservationKey{r.profile.Name, spec.Name}}
		switch {
		case over(written.Phase):
			d.release(room) // Not before the status says so: the room is not gathered anew then, whatever happens.
		case !over(st.Phase) && r.obstacle == nil:
			r.hold(&d, spec, room, taker)
		}
		r.d.Placeholders = append(r.d.Placeholders, d)
		all = append(all, st)
	}
	r.st.Reservations = all
}

func (r *review) written(name string) v1alpha1.ReservationStatus {
	for _, st := range r.profile.Status.Reservations {
		if st.Name == name {
			return st
		}
	}
	return v1alpha1.ReservationStatus{}
}

// over tells of a reservation that holds nothing any more.
func over(phase v1alpha1.ReservationPhase) bool {
	return phase == v1alpha1.ReservationHandedOver || phase == v1alpha1.ReservationExpired
}

// advance is what becomes of the reservation, and the training to which it hands its room over now, nil for none. A reservation
// whose time was prolonged after it had expired begins anew.
func (r *review) advance(st *v1alpha1.ReservationStatus, spec *v1alpha1.ProfileReservation) *Task {
	if st.Phase == v1alpha1.ReservationHandedOver {
		return nil
	}
	left := spec.Until.Sub(r.p.now.Time)
	if left <= 0 {
		st.Phase, st.Job = v1alpha1.ReservationExpired, ""
		return nil
	}
	taker, other := r.candidates(spec, st)
	switch held := st.Placed >= spec.Replicas; {
	case taker == nil:
		st.Phase, st.Job = v1alpha1.ReservationGathering, ""
		if held {
			st.Phase = v1alpha1.ReservationHeld
		}
		if other != nil {
			st.Reason, st.Message = other.keptFrom(spec)
		}
	case taker.Placed || !held && st.Phase != v1alpha1.ReservationHandingOver:
		// It has its places; or there are none to hand over, and its gang waits as well as ours did.
		st.Phase, st.Job = v1alpha1.ReservationHandedOver, taker.key()
		return nil
	default:
		st.Phase, st.Job = v1alpha1.ReservationHandingOver, taker.key()
	}
	r.p.wakeAfter(left)
	return taker
}

// hold gathers and holds the room. One that was asked for otherwise before is given back. Once the taker's gang comes before all
// others, Volcano may take the room for it: in one cycle, and whole or not at all.
func (r *review) hold(d *PlaceholderDecision, spec *v1alpha1.ProfileReservation, room Placeholders, taker *Task) {
	tier, known := r.p.o.Config.Tiers.OpenTo(r.profile, ownership.Owner{}).Find(spec.Tier)
	if !known || r.st.Queue == "" {
		return
	}
	b := placeholders{
		namespace: r.p.o.Namespace, profile: r.profile, spec: spec, tier: tier, image: r.p.o.Config.Reservations.Image,
	}
	g := b.group()
	// Once it yields it goes on so: the taker's gang is as any other again when it is placed, which is seen a little later.
	yields := taker != nil && (taker.Asks || room.Group != nil && room.Group.MinMember == 0)
	if yields {
		g = b.yielding(g)
	}
	switch {
	case room.Group == nil || room.Group.Name != g.Name:
		d.CreateGroup, d.DeleteGroup = &g, room.Group
	case room.Group.MinMember != g.MinMember:
		d.RestoreGroup, d.Restored = &g, room.Group.UID
	}
	if yields {
		return
	}
	there := map[string]bool{}
	for _, p := range room.Pods {
		there[p.Name] = true // The name of one that leaves is free once it has gone.
		if (p.Ended || p.Name != b.podName(p.Index)) && !p.Leaving {
			d.DeletePods = append(d.DeletePods, p)
		}
	}
	for i := range spec.Replicas {
		if !there[b.podName(i)] {
			d.CreatePods = append(d.CreatePods, b.pod(i))
		}
	}
}

// release gives back all that a reservation has.
func (d *PlaceholderDecision) release(room Placeholders) {
	for _, p := range room.Pods {
		if !p.Leaving {
			d.DeletePods = append(d.DeletePods, p)
		}
	}
	d.DeleteGroup = room.Group
}

// abandoned gives back the rooms of reservations that no profile has any more.
func (p *planner) abandoned() []PlaceholderDecision {
	there := map[ReservationKey]bool{}
	for _, r := range p.reviews {
		for i := range r.profile.Spec.Reservations {
			there[ReservationKey{r.profile.Name, r.profile.Spec.Reservations[i].Name}] = true
		}
	}
	var gone []PlaceholderDecision
	for key, room := range p.o.Placeholders {
		if !there[key] {
			d := PlaceholderDecision{ReservationKey: key}
			d.release(room)
			gone = append(gone, d)
		}
	}
	slices.SortFunc(gone, func(a, b PlaceholderDecision) int {
		return cmp.Or(cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Name, b.Name))
	})
	return gone
}
