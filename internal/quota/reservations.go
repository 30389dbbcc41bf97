package quota

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// ReservationKey names a reservation of a profile.
type ReservationKey struct{ Profile, Name string }

// A reservation holds its room with a gang of pods that do nothing, until its job comes:
//
//	Gathering --all placeholders placed--> Held --job claims room--> HandingOver --job placed--> HandedOver
//	    |                                    |                          |
//	    +------------------- spec.until has passed: Expired ------------+
//
// In HandingOver the placeholders' PodGroup has minMember 0. Then Volcano may evict them for the job's gang, in one cycle, and
// whole or not at all.

// Placeholders are the objects of a reservation: its PodGroup, nil for none, and the pods that hold its places.
type Placeholders struct {
	Group *PlaceholderGroup
	Pods  []Placeholder
	// Refused is the last refusal of one of these objects; nil for none.
	Refused *Refusal
}

// Refusal is why the API server refused an object.
type Refusal struct {
	// Reason is a reason constant of jobs, and Said the API server's message.
	Reason, Said string
}

// messageLimit is the longest message of a reservation, and saidLimit the longest part of it that quotes the API server.
const messageLimit, saidLimit = 1024, 800

// PlaceholderGroup is the PodGroup of a reservation.
type PlaceholderGroup struct {
	Name string
	UID  types.UID
	// MinMember is how many of its pods Volcano protects from eviction.
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

// PlaceholderDecision is what to do about one reservation.
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

// planReservations decides about the profile's reservations. While the profile has an obstacle, its reservations wait.
func (r *review) planReservations() {
	var all []v1beta1.ReservationStatus
	for i := range r.profile.Spec.Reservations {
		spec := &r.profile.Spec.Reservations[i]
		written := r.writtenReservation(spec.Name)
		st := v1beta1.ReservationStatus{Name: spec.Name, Phase: written.Phase, Job: written.Job, Since: written.Since}
		if st.Since.IsZero() {
			st.Since = r.p.now
		}
		room := r.p.o.Placeholders[ReservationKey{r.profile.Name, spec.Name}]
		for _, p := range room.Pods {
			if p.Placed && !p.Leaving && !p.Ended {
				st.Placed++
			}
		}
		taker := r.advanceReservation(&st, spec)
		if refused := room.Refused; refused != nil && !isOver(st.Phase) {
			st.Reason, st.Message = refused.Reason, text.ClipLine(fmt.Sprintf("%s. Correct the reservation or what refuses it. "+
				"Tideline keeps trying.", text.ClipLine(refused.Said, saidLimit)), messageLimit)
		}
		d := PlaceholderDecision{ReservationKey: ReservationKey{r.profile.Name, spec.Name}}
		switch {
		case isOver(written.Phase):
			// Only once the written status says so: an operator that restarts in between must not gather the room again.
			d.releaseRoom(room)
		case !isOver(st.Phase) && r.obstacle == nil:
			r.holdRoom(&d, spec, room, taker)
		}
		r.d.Placeholders = append(r.d.Placeholders, d)
		all = append(all, st)
	}
	r.st.Reservations = all
}

func (r *review) writtenReservation(name string) v1beta1.ReservationStatus {
	for _, st := range r.profile.Status.Reservations {
		if st.Name == name {
			return st
		}
	}
	return v1beta1.ReservationStatus{}
}

// isOver tells whether the reservation has ended and holds no room.
func isOver(phase v1beta1.ReservationPhase) bool {
	return phase == v1beta1.ReservationHandedOver || phase == v1beta1.ReservationExpired
}

// advanceReservation sets the phase of the reservation, and returns the training to which it hands its room over now; nil for
// none. An expired reservation whose spec.until is moved to the future gathers its room again.
func (r *review) advanceReservation(st *v1beta1.ReservationStatus, spec *v1beta1.ProfileReservation) *Task {
	if st.Phase == v1beta1.ReservationHandedOver {
		return nil
	}
	left := spec.Until.Sub(r.p.now.Time)
	if left <= 0 {
		st.Phase, st.Job = v1beta1.ReservationExpired, nil
		return nil
	}
	taker, other := r.takerCandidates(spec, st)
	switch held := st.Placed >= spec.Replicas; {
	case taker == nil:
		st.Phase, st.Job = v1beta1.ReservationGathering, nil
		if held {
			st.Phase = v1beta1.ReservationHeld
		}
		if other != nil {
			st.Reason, st.Message = other.keptFrom(spec)
		}
	case taker.Placed || !held && st.Phase != v1beta1.ReservationHandingOver:
		// The job has its places. Or the reservation has none to hand over yet, and the job's gang waits for room as well as the
		// placeholders do.
		st.Phase, st.Job = v1beta1.ReservationHandedOver, taker.ref()
		return nil
	default:
		st.Phase, st.Job = v1beta1.ReservationHandingOver, taker.ref()
	}
	r.p.wakeAfter(left)
	return taker
}

// holdRoom gathers and holds the room. If the reservation changed, it gives back the old room and gathers the new one. Once
// the taker's gang goes before all others, the placeholders yield, and Volcano may give their room to it.
func (r *review) holdRoom(d *PlaceholderDecision, spec *v1beta1.ProfileReservation, room Placeholders, taker *Task) {
	tier, known := r.p.o.Config.Tiers.OpenTo(r.profile, ownership.Owner{}).FindTier(spec.Tier)
	if !known || r.st.Queue == "" {
		return
	}
	b := placeholders{
		namespace: r.p.o.Namespace, profile: r.profile, spec: spec, tier: tier, image: r.p.o.Config.Reservations.Image,
	}
	g := b.podGroup()
	// A group that has begun to yield keeps yielding. When the taker's gang is placed it no longer asks, and the operator sees that
	// before it sees the places: protecting the placeholders in between would break the handover.
	yields := taker != nil && (taker.Asks || room.Group != nil && room.Group.MinMember == 0)
	if yields {
		g = b.yieldingGroup(g)
	}
	switch {
	case room.Group == nil || room.Group.Name != g.Name:
		// The name is a hash of what is asked for: another name is a reservation that was changed.
		d.CreateGroup, d.DeleteGroup = &g, room.Group
	case room.Group.MinMember != g.MinMember:
		d.RestoreGroup, d.Restored = &g, room.Group.UID
	}
	if yields {
		return // A placeholder that Volcano evicted for the taker must not come back and take the room again.
	}
	there := map[string]bool{}
	for _, p := range room.Pods {
		there[p.Name] = true // The name of a pod that is being deleted is free only when the pod is gone.
		if (p.Ended || p.Name != b.podName(p.Index)) && !p.Leaving {
			d.DeletePods = append(d.DeletePods, p)
		}
	}
	for i := range spec.Replicas {
		if !there[b.podName(i)] {
			d.CreatePods = append(d.CreatePods, b.placeholderPod(i))
		}
	}
}

// releaseRoom deletes all objects of a reservation.
func (d *PlaceholderDecision) releaseRoom(room Placeholders) {
	for _, p := range room.Pods {
		if !p.Leaving {
			d.DeletePods = append(d.DeletePods, p)
		}
	}
	d.DeleteGroup = room.Group
}

// releaseAbandoned releases the rooms of reservations that no profile lists any more.
func (p *planner) releaseAbandoned() []PlaceholderDecision {
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
			d.releaseRoom(room)
			gone = append(gone, d)
		}
	}
	slices.SortFunc(gone, func(a, b PlaceholderDecision) int {
		return cmp.Or(cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Name, b.Name))
	})
	return gone
}
