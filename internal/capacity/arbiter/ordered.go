package arbiter

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// orderInterval is how often jobs that wait in an order are looked at again though nothing changed: they age.
const orderInterval = 10 * time.Second

// prepareOrder gives the order of a team, if it has one and a job asks, what it goes by: who used how much, and the free room.
func (t *teams) prepareOrder(team *team, claimants []admission.Claimant) {
	order := team.limits.Order
	if order == nil {
		return
	}
	asks := false
	for i := range claimants {
		// The line of its pool orders a merge.
		asks = asks || claimants[i].Asks && !claimants[i].Job.Merge
	}
	if !asks {
		return
	}
	t.c.in.again = kube.SoonerOf(t.c.in.again, orderInterval)
	used, err := t.decayedUse(team.profile.Name, order.HalfLife)
	if errors.Is(err, admission.ErrUnread) { // Who used much would go first after each start of the operator.
		t.c.in.again = kube.SoonerOf(t.c.in.again, unreadInterval)
		order.Seat = func(*admission.Claimant, bool) bool { return false }
		return
	}
	order.Used = used
	if t.claiming == nil {
		t.claiming = []*capacity.Gang{}
		for _, d := range t.c.in.dockets {
			t.claiming = append(t.claiming, d.Waiting...)
		}
	}
	var sequence *capacity.Sequence
	order.Seat = func(c *admission.Claimant, heldLong bool) bool {
		held := func(r v1beta1.ProfileReservation) bool { return isFor(&r, c) }
		if slices.ContainsFunc(team.profile.Spec.Reservations, held) {
			return true // Room is held for it, and is given up once it asks.
		}
		if sequence == nil {
			sequence = t.c.in.model().NewSequence(team.profile.Name, t.claiming, t.c.surplusLeaves)
		}
		g := t.askedCore(c.Job.NamespacedName)
		seated := sequence.SeatNext(g, heldLong)
		if seated {
			t.claiming = append(t.claiming, g)
		}
		return seated
	}
}

// askedCore is the gang that a job asks for.
func (t *teams) askedCore(key types.NamespacedName) *capacity.Gang {
	job := t.c.jobs[key]
	g := t.c.gangOf(key, job.Status.Queue, job)
	g.Workers = job.Status.Attempt.MinReplicas
	g.Shape, g.Apart, g.AnyOrder = t.c.shapesOf(job, g.Model, g.Workers, nil)
	g.Others = t.c.otherModels(key, job, g.Workers)
	return g
}

// decayedUse is what the users of a profile used of late. The error says why that is unknown.
func (t *teams) decayedUse(profile string, halfLife time.Duration) (map[string]int64, error) {
	var within [admission.HalfLives]map[string]int64
	var errs []error
	for i := range within { // Each window is read because it is asked for.
		spent, err := t.c.arbiter.spent(profile, time.Duration(i+1)*halfLife)
		within[i], errs = spent.ByUser, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return admission.DecayedUse(within), nil
}
