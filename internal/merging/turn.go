package merging

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Where a profile caps what a user holds, a merge asks there for its turn before it asks Volcano for its place:
//
//	front of the line --status.turnTime--> admission.AdmitJobs ---admitted---> asks for its place
//	                                            |  \---blocked----> the next of the line
//	                                            trainings of the profile ask there too, and merges of other pools
//
// The arbiter sees status.turnTime, and then the run, which counts with all pods that it may have. A grant bridges the time
// between the two. So however many merges of a user there are, in however many pools, they stay below a cap together with his
// trainings.

// turnPatience is how long the line waits for an answer. The arbiter decides each second, or each five to six where there are
// very many jobs.
const turnPatience = 10 * time.Second

// turn is the answer to a merge that asks for its turn.
type turn int

const (
	// turnTaken: it may ask Volcano for its place. turnUnknown: the answer is to come. turnBlocked: its user is at a cap.
	turnTaken turn = iota
	turnUnknown
	turnBlocked
)

// ClaimantOf is what a merge claims of the room that its profile's caps leave to its user. A run claims all the pods that it may
// have, and a merge that asks for its turn claims its core. It returns nil for every other merge.
func ClaimantOf(
	job *v1beta1.MergeJob, profile *v1beta1.ResourceQuotaProfile, cfg *config.Configuration,
) *admission.Claimant {
	st, runs := &job.Status, job.Status.Run != nil && job.Status.Run.Outcome == ""
	if !runs && (st.TurnTime == nil || job.Spec.Suspend || job.DeletionTimestamp != nil) {
		return nil
	}
	a := askingOf(withReplicas(job.Spec), profile, cfg)
	owner := ownership.OfMerge(job, !cfg.Webhooks.Enabled)
	tier, _ := cfg.Tiers.InEffect(job.EffectiveTier(), st.Tier)
	c := &admission.Claimant{
		Job:  admission.Key{NamespacedName: (&Job{Object: job}).Key(), Merge: true},
		User: owner.User, Priority: tier.Priority, Standing: admission.StandingOf(profile, owner),
		Created: job.CreationTimestamp.Time, Model: a.model, Worker: admission.HeldBy(a.each, 1),
	}
	core, pods := a.core, a.spec.MinReplicas
	if runs {
		c.Ask = fmt.Sprintf("%s/%s.%d", job.UID, st.Run.ID, st.Run.Attempt)
		pods = max(st.Run.MinReplicas, st.Run.MaxReplicas)
		core = trainingpod.MergeCounted(a.spec, pods, cfg.Sharing)
		c.InQueue = st.Pool == profile.Name // A pool may be the Queue of a profile, whose capability then counts the run too.
	} else {
		c.Ask, c.Asks, c.Wants = turnAsk(job.UID, st), true, a.mostPods()-a.spec.MinReplicas
		// It is as old as its place in the line: a merge that was created a year ago must not come before all trainings each day.
		c.Since = ptr.Deref(st.QueueTime, *st.TurnTime).Time
		c.Created = c.Since
	}
	c.Core, c.Accelerated = admission.HeldBy(core, pods), cfg.AcceleratorsAmong(core) > 0
	return c
}

// turnAsk tells one ask of a merge for its turn from another.
func turnAsk(uid types.UID, st *v1beta1.MergeJobStatus) string {
	return fmt.Sprintf("%s/turn at %d", uid, st.TurnTime.Unix())
}

// turnKey names the user and the limits at which the merge asks for its turn; empty if it needs none. Merges with one key would
// wait behind one another, so one of them asks at a time.
func (t *state) turnKey() string {
	a := t.asking()
	limits := a.limits.UserLimits(admission.HeldBy(a.core, a.spec.MinReplicas), a.model)
	if len(limits) == 0 {
		return ""
	}
	words := []string{t.job.Profile.Name, t.owner().User}
	for _, l := range limits {
		words = append(words, string(l.Resource), l.Model)
	}
	return strings.Join(words, "\x00")
}

// blockedTurn is why the merge has to wait at a cap; nil if it need not, or asks for no turn.
func (t *facts) blockedTurn() *admission.Blocked {
	if t.st.TurnTime == nil || t.job.Turn.Ask != turnAsk(t.job.Object.UID, t.st) {
		return nil
	}
	return t.job.Turn.Blocked
}

// noteBlockedTurns finds the merges of the line that wait at a cap. Those that could not use their turn ask no longer:
// trainings of their owner must not wait for them.
func (p *planner) noteBlockedTurns(line []*merge) {
	for _, t := range p.merges {
		if t.position == 0 || t.hasStoreTrouble() || p.whyClosed() != nil {
			t.st.TurnTime = nil
		}
	}
	for _, t := range line {
		if t.blockedTurn() == nil {
			continue
		}
		if key := t.turnKey(); p.blocked[key] == nil {
			p.blocked[key] = t
		}
	}
}

// endIdleAsks has merges of the line ask for their turn no longer that got it and cannot use it, because another one of the pool
// asks for its place: trainings of their owner must not wait for them. They ask anew when the pool is free. Those that wait at a
// cap go on asking, because younger trainings of their owner must not overtake them there.
func (p *planner) endIdleAsks(line []*merge) {
	for _, t := range line {
		if t.st.TurnTime == nil || t.seeksTurn || t.blockedTurn() != nil {
			continue
		}
		if asked := p.now.Sub(t.st.TurnTime.Time); asked >= 0 && asked < turnPatience {
			p.wakeAt(t.st.TurnTime.Add(turnPatience)) // The pool may be free in a moment.
			continue
		}
		t.st.TurnTime = nil
	}
}

// seekTurn asks the caps of the profile whether the merge may start, and returns the answer.
func (t *merge) seekTurn() turn {
	t.seeksTurn = true
	key := t.turnKey()
	if key == "" {
		t.st.TurnTime = nil
		return turnTaken
	}
	if first := t.p.blocked[key]; first != nil {
		if first != t {
			t.st.TurnTime = nil
		}
		return turnBlocked
	}
	asked := t.st.TurnTime
	switch answer := t.job.Turn; {
	case asked == nil || t.p.now.Before(asked.Time):
	case answer.Ask != turnAsk(t.job.Object.UID, t.st):
		if last := asked.Add(turnPatience); t.p.now.Before(last) {
			t.p.wakeAt(last)
			return turnUnknown
		}
		return turnBlocked // Without an answer it stays as it is, and lets others pass.
	case answer.Admitted:
		return turnTaken
	}
	// It asks for the first time, or anew because its grant is over: another merge of the pool asked for its place meanwhile.
	now := metaTime(t.p.now)
	t.st.TurnTime = &now
	t.p.wakeAt(now.Add(turnPatience))
	return turnUnknown
}

// mostPods is how many pods the run that begins now may have: what its caps leave to it beside all else that its user holds.
func (t *state) mostPods() int32 {
	most := t.asking().mostPods()
	if t.st.TurnTime == nil {
		return most
	}
	return min(most, t.spec.MinReplicas+t.job.Turn.Surplus)
}

// sayBlockedTurn says of a merge in the line that it waits at a cap, or behind another that does. It returns false for every
// other merge.
func (t *description) sayBlockedTurn(length int) bool {
	if len(t.p.blocked) == 0 || t.job.Profile == nil {
		return false
	}
	why := t.blockedTurn()
	first := t.p.blocked[t.turnKey()]
	if why == nil && (first == nil || first == t.merge) {
		return false
	}
	message := fmt.Sprintf("Place %d of %d in the line of pool %s. ", t.position, length, t.st.Pool)
	if why != nil {
		message += why.DescribeBlock(t.job.Profile.Name) + " Until then it keeps its place and lets other merges pass."
	} else {
		message += fmt.Sprintf("%s has the same owner and waits at a cap of profile %s; this merge follows it, and lets others pass "+
			"meanwhile.", t.nameFor(v1beta1.RefTo(first.job.Key())), t.job.Profile.Name)
	}
	t.sayProgress("Queued (at a cap)", v1beta1.ReasonQuotaExceeded, message)
	return true
}
