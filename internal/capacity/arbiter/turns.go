package arbiter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Turns are decided for each profile with limits by itself:
//
//	trainings, merges of its namespaces -> claimants \
//	other pods there, guests in its Queue -> others   +-> admission.AdmitJobs -> turns; grants for the next evaluation
//	use of its budgets, order, last grants           /

// TurnOf is what the limits of its profile leave to a training; zero if that was not decided. A reconcile must have begun by what
// [Arbiter.FollowTrainings] is told before it asks.
func (a *Arbiter) TurnOf(job types.NamespacedName) admission.Turn {
	return a.turnIn(&a.turns, admission.Key{NamespacedName: job})
}

// MergeTurn is [Arbiter.TurnOf] for a merge. It is zero for one that does not ask.
func (a *Arbiter) MergeTurn(job types.NamespacedName) admission.Turn {
	return a.turnIn(&a.mergeTurns, admission.Key{NamespacedName: job, Merge: true})
}

func (a *Arbiter) turnIn(of *board[admission.Turn], job admission.Key) admission.Turn {
	a.mu.RLock()
	defer a.mu.RUnlock()
	turn := of.verdicts[job.NamespacedName]
	if a.lapsing[job] {
		return admission.Turn{Ask: turn.Ask} // The evaluation that is under way may give it to another.
	}
	return turn
}

// actingNow is since when reconciles are at work on the jobs that have a grant, or have written what the caches may not have
// seen. Those that begin later act on no grant that may lapse now.
func (a *Arbiter) actingNow(ctx context.Context, now time.Time) map[admission.Key]time.Time {
	lapsing := map[admission.Key]bool{}
	for _, grants := range a.grants {
		for job, grant := range grants {
			lapsing[job] = grant.TurnsLate(now)
		}
	}
	a.mu.Lock()
	a.lapsing = lapsing
	a.mu.Unlock()
	acting := map[admission.Key]time.Time{}
	for job := range lapsing {
		ask := a.actingTraining
		if job.Merge {
			ask = a.actingMerge
		}
		if ask == nil {
			continue
		}
		if since := ask(ctx, job.NamespacedName); !since.IsZero() {
			acting[job] = since
		}
	}
	return acting
}

// soonTurn is the part of a turn that wakes a job at once.
func soonTurn(t admission.Turn) admission.Turn {
	t.Capped = nil // It is words alone: Surplus says how far the job may grow.
	if b := t.Blocked; b != nil {
		t.Blocked = &admission.Blocked{Limit: b.Limit, Never: b.Never, Leaving: b.Leaving, Place: min(b.Place, farPlace)}
	}
	return t
}

// spentInterval is how often the use of budgets is asked for, and unreadInterval how often while it is being read.
const spentInterval, unreadInterval = 10 * time.Second, time.Second

// team is a profile with limits, the jobs that claim its room, and what else uses that room.
type team struct {
	profile   *v1beta1.ResourceQuotaProfile
	limits    admission.Limits
	claimants map[admission.Key]*admission.Claimant
	others    []admission.Use
}

// teams are the profiles with limits.
type teams struct {
	c        *collector
	profiles *profilecache.Profiles
	of       map[string]*team
	// namespaces caches the team of each namespace; nil for one without.
	namespaces map[string]*team
	// claiming are the gangs that ask for room, or may do so from now on; nil until an order needs them.
	claiming []*capacity.Gang
}

// decideTurns decides which jobs each profile with limits admits.
func (c *collector) decideTurns(ctx context.Context) error {
	c.in.turns, c.in.mergeTurns = map[types.NamespacedName]admission.Turn{}, map[types.NamespacedName]admission.Turn{}
	c.in.grants = map[string]admission.Grants{}
	profiles, err := profilecache.ReadProfiles(ctx, c.arbiter.reader)
	if err != nil {
		return err
	}
	t := &teams{c: c, profiles: profiles, of: map[string]*team{}, namespaces: map[string]*team{}}
	c.in.fair, c.in.moved, c.in.reserved = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range profiles.All() {
		for i := range p.Spec.Reservations {
			c.in.reserved[p.Spec.Reservations[i].JobRef.Name] = true
		}
		if p.Status.Queue != "" && p.Spec.Queue.SurplusSharing != v1beta1.SurplusExcluded {
			c.in.fair[p.Status.Queue] = true
		}
		if p.Status.Queue != "" && p.Spec.Queue.Repacking == v1beta1.RepackingMove {
			c.in.moved[p.Status.Queue] = true
		}
		if limits := admission.LimitsOf(p); limits.Gates() {
			t.of[p.Name] = &team{profile: p, limits: limits, claimants: map[admission.Key]*admission.Claimant{}}
		}
	}
	if len(t.of) == 0 {
		return nil
	}
	// Before the pods, which are added to the claimants.
	for key, job := range c.jobs {
		t.addClaimant(ctx, key, job)
	}
	for _, merge := range c.merges {
		t.addMerge(ctx, merge)
	}
	for _, p := range c.pods {
		t.addPod(ctx, p)
	}
	// By name, because gangs that one profile seats take room from those of the next: each evaluation must seat the same.
	for _, name := range slices.Sorted(maps.Keys(t.of)) {
		t.decide(name, t.of[name])
	}
	return nil
}

// decide decides for one profile.
func (t *teams) decide(name string, team *team) {
	claimants := make([]admission.Claimant, 0, len(team.claimants))
	for job, c := range team.claimants {
		c.Acting = t.c.acting[job]
		claimants = append(claimants, *c)
	}
	for _, h := range team.limits.Hours {
		spent, err := t.c.arbiter.spent(name, h.Window)
		again, unread := spentInterval, errors.Is(err, admission.ErrUnread)
		if unread {
			again = unreadInterval
		}
		if err != nil {
			spent.ByUser = nil // The use is unknown, and an unknown use blocks no job.
		}
		team.limits.Spent, team.limits.Unread = append(team.limits.Spent, spent.ByUser), append(team.limits.Unread, unread)
		t.c.in.again = kube.SoonerOf(t.c.in.again, again)
	}
	t.prepareOrder(team, claimants)
	turns, grants := admission.AdmitJobs(team.limits, claimants, team.others, t.c.arbiter.grants[name], t.c.now)
	for job, turn := range turns {
		switch {
		case !job.Merge:
			t.c.in.turns[job.NamespacedName] = turn
		case team.claimants[job].Asks:
			t.c.in.mergeTurns[job.NamespacedName] = turn
		}
	}
	if len(grants) > 0 {
		t.c.in.grants[name] = grants
		t.c.in.again = kube.SoonerOf(t.c.in.again, admission.Arrival)
	}
}

// teamOf is the team of a namespace; nil if its profile limits nothing, or the cache does not have it yet.
func (t *teams) teamOf(ctx context.Context, namespace string) *team {
	if team, known := t.namespaces[namespace]; known {
		return team
	}
	var found *team
	if _, profile, err := t.profiles.ProfileOf(ctx, namespace); err == nil && profile != nil {
		found = t.of[profile.Name]
	}
	t.namespaces[namespace] = found
	return found
}

// addClaimant adds a job that has a gang or asks for one.
func (t *teams) addClaimant(ctx context.Context, key types.NamespacedName, job *v1beta1.ElasticTrainingJob) {
	team := t.teamOf(ctx, job.Namespace)
	st := &job.Status
	if team == nil || st.Attempt == nil || st.CompletionTime != nil || st.MasterCompletionTime != nil || st.Preemption != nil ||
		job.Spec.Suspend || job.DeletionTimestamp != nil {
		return
	}
	group, there := t.c.groups[key]
	asks, queue, since := !there || !isCoreOf(group, job), group.Queue, time.Time{}
	// A job whose attempt is larger than its gang must be admitted again.
	if asks = asks || group.MinMember < st.Attempt.MinReplicas; asks {
		if _, acting := t.c.acting[admission.Key{NamespacedName: key}]; isHindered(job) && !acting {
			return
		}
		queue, since = st.Queue, st.Attempt.StartTime.Time
	}
	cfg := t.c.arbiter.config
	claimed := t.claimedBy(ctx, job)
	core := trainingpod.CoreCounted(job, st.Attempt.MinReplicas, cfg.Sharing, claimed)
	owner := ownership.OfTraining(job, !cfg.Webhooks.Enabled)
	name := admission.Key{NamespacedName: key}
	team.claimants[name] = &admission.Claimant{
		Job: name, User: owner.User, Priority: t.c.tierOf(job).Priority, Standing: admission.StandingOf(team.profile, owner),
		Ask: admission.AskOf(job), Created: job.CreationTimestamp.Time, Since: since,
		Model:       admission.ModelOf(job.Spec.Accelerator, &job.Spec.Template.Spec, cfg.Accelerators),
		Asks:        asks,
		InQueue:     queue == team.profile.Name,
		Core:        admission.HeldBy(core, st.Attempt.MinReplicas),
		Worker:      admission.HeldBy(trainingpod.EachCounted(job, cfg.Sharing, claimed), 1),
		Accelerated: cfg.AcceleratorsAmong(core) > 0,
		Wants:       t.surplusWanted(key, job),
	}
}

// addMerge adds a merge that has a run, or asks for its turn at the caps.
func (t *teams) addMerge(ctx context.Context, job *v1beta1.MergeJob) {
	team := t.teamOf(ctx, job.Namespace)
	if team == nil {
		return
	}
	if claimant := merging.ClaimantOf(job, team.profile, t.c.arbiter.config); claimant != nil {
		team.claimants[claimant.Job] = claimant
	}
}

// mergeOf is the claimant of a run that a pod belongs to; nil for a pod of no run.
func (t *teams) mergeOf(team *team, p *knownPod) *admission.Claimant {
	job := t.c.merges[p.owner.NamespacedName]
	if job == nil || job.UID != p.owner.uid {
		return nil
	}
	c := team.claimants[admission.Key{NamespacedName: p.owner.NamespacedName, Merge: true}]
	if c == nil || c.Asks {
		return nil
	}
	return c
}

// surplusWanted is how many surplus workers the job would create now if its profile allowed them.
func (t *teams) surplusWanted(key types.NamespacedName, job *v1beta1.ElasticTrainingJob) int32 {
	st := &job.Status
	if st.RunningSince == nil {
		return 0
	}
	wants := growth.WorthwhileSurplus(&job.Spec, st, job.WantedSurplus(st.Attempt.MinReplicas, st.Attempt.MaxReplicas))
	if left := t.c.cooldownLeft(job); left > 0 {
		t.c.in.again = kube.SoonerOf(t.c.in.again, left)
		// Places that were given up stay empty for the cooldown.
		wants -= int32(len(st.Elasticity.Evicted))
	}
	v := t.c.arbiter.VerdictFor(key)
	limited := !v.Unjudged || job.Spec.Elasticity.Growth.Mode == v1beta1.GrowthOnlyIfFits || job.Spec.Elasticity.StepWithin != nil
	if growsIfFits(job) && limited {
		wants = min(wants, v.SurplusLimit)
	}
	return max(wants, 0)
}

// isHindered is true for a job that waits for something other than its turn, so that it must not keep others from theirs.
func isHindered(job *v1beta1.ElasticTrainingJob) bool {
	stalled := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionStalled)
	if stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason != v1beta1.ReasonQuotaExceeded {
		return true
	}
	if trainingpod.RejectedAgain(&job.Status) {
		return true
	}
	scheduled := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionScheduled)
	return scheduled != nil && scheduled.Status == metav1.ConditionFalse && slices.Contains(hindrances, scheduled.Reason)
}

// hindrances are reasons that pass by themselves, so that jobs are not Stalled by them.
var hindrances = []string{
	v1beta1.ReasonVolcanoMissing, v1beta1.ReasonProfileNotReady, v1beta1.ReasonQueueNotFound, v1beta1.ReasonQueueClosed,
	v1beta1.ReasonAwaitingApproval, v1beta1.ReasonRestarting, v1beta1.ReasonBackOff, v1beta1.ReasonResourceClaimNotFound,
	v1beta1.ReasonDataSetNotFound, v1beta1.ReasonDataClaimNotFound,
}

// addPod adds what a pod holds, or will hold, to its claimant or to what else uses the team's room.
func (t *teams) addPod(ctx context.Context, known *knownPod) {
	p := known.pod
	if hasEnded(p) {
		return
	}
	queue := t.c.groups[known.group].Queue
	team := t.teamOf(ctx, p.Namespace)
	if holder := t.of[queue]; holder != nil && holder != team {
		holder.addGuest(p, t.countedOf(ctx, p))
	}
	if team == nil {
		return
	}
	requests := t.countedOf(ctx, p)
	model := t.modelOnNode(p, requests)
	key, index, ok := t.c.workerOf(known)
	if c := t.mergeOf(team, known); c != nil {
		addBound(c, model, admission.HeldBy(requests, 1)) // All pods that the run may have count already.
		return
	}
	if c := team.claimants[admission.Key{NamespacedName: key}]; ok && c != nil && !c.Asks {
		if model != "" {
			addBound(c, model, admission.HeldBy(requests, 1))
		}
		if index >= t.c.jobs[key].Status.Attempt.MinReplicas {
			c.Surplus = append(c.Surplus, admission.Surplus{
				UID: p.UID, Index: index, Model: model, Leaving: p.DeletionTimestamp != nil,
				Stays: p.Spec.NodeName != "" && t.c.mayStay(p, t.c.jobs[key]),
			})
		}
		return
	}
	if p.Spec.NodeName == "" {
		return
	}
	user, foreign := t.userOf(p)
	team.others = append(team.others, admission.Use{
		User: user, Model: model, Holds: admission.HeldBy(requests, 1), Foreign: foreign, Leaving: p.DeletionTimestamp != nil,
		InQueue: queue == team.profile.Name,
	})
}

// claimedBy is what the devices that each worker of a job claims count as; nothing for claims that cannot be read, because
// the job waits until they can.
func (t *teams) claimedBy(ctx context.Context, job *v1beta1.ElasticTrainingJob) corev1.ResourceList {
	claims, err := t.c.arbiter.devices.ClaimsOf(ctx, job.Namespace, &job.Spec.Template.Spec)
	if err != nil {
		return nil
	}
	return claims.Count().Resources
}

// countedOf is what a pod holds as limits count it.
func (t *teams) countedOf(ctx context.Context, p *corev1.Pod) corev1.ResourceList {
	return t.c.arbiter.config.Sharing.CountedWith(p, t.c.arbiter.devices.CountedOf(ctx, p))
}

// addBound adds a pod of the claimant to what it holds of a model.
func addBound(c *admission.Claimant, model string, holds admission.MilliAmounts) {
	if c.Bound == nil {
		c.Bound = map[string]admission.MilliAmounts{}
	}
	if c.Bound[model] == nil {
		c.Bound[model] = admission.MilliAmounts{}
	}
	for name, amount := range holds {
		c.Bound[model][name] += amount
	}
}

// addGuest adds a pod of the team's queue from a namespace outside the team. It counts for the queue alone.
func (team *team) addGuest(p *corev1.Pod, counted corev1.ResourceList) {
	if p.Spec.NodeName == "" {
		return
	}
	// A pod that holds reserved room does not count once the training is there that the room is for, or it would count twice.
	if name, reserved := p.Labels[v1beta1.LabelReservation]; reserved {
		for i := range team.profile.Spec.Reservations {
			r := &team.profile.Spec.Reservations[i]
			for _, c := range team.claimants {
				if r.Name == name && isFor(r, c) {
					return
				}
			}
		}
	}
	team.others = append(team.others, admission.Use{
		Holds: admission.HeldBy(counted, 1), InQueue: true, Foreign: true, Leaving: p.DeletionTimestamp != nil,
	})
}

// isFor is true if the reservation holds its room for the job: whoever gives a job its name alone gets nothing.
func isFor(r *v1beta1.ProfileReservation, c *admission.Claimant) bool {
	return !c.Job.Merge && r.JobRef.Name == c.Job.Name && r.Owner == c.User
}

// userOf is the user that a pod counts for: the owner of its training or merge, or for other pods the user that they
// name.
func (t *teams) userOf(p *corev1.Pod) (user string, foreign bool) {
	if owner := metav1.GetControllerOf(p); owner != nil {
		key := types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}
		if job := t.c.jobs[key]; job != nil && job.UID == owner.UID {
			return job.Spec.Owner, false
		}
		if job := t.c.merges[key]; job != nil && job.UID == owner.UID {
			return job.Spec.Owner, false
		}
	}
	if kind, _ := kube.OurController(p); kind != "" {
		return p.Annotations[v1beta1.AnnotationOwner], false // Its job is gone, but the pod still holds its room.
	}
	return t.c.arbiter.config.Ledger.UserNamedBy(p), true
}

// modelOnNode is the model of accelerator that a pod has; empty for a pod without one or without a node.
func (t *teams) modelOnNode(p *corev1.Pod, requests corev1.ResourceList) string {
	var labels map[string]string
	if node := t.c.nodes[p.Spec.NodeName]; node != nil {
		labels = node.labels
	}
	for _, name := range t.c.arbiter.config.Accelerators.ResourceNames() {
		if _, asked := requests[corev1.ResourceName(name)]; asked {
			label, _ := t.c.arbiter.config.Accelerators.ModelLabel(name)
			if model := labels[label]; model != "" {
				return model
			}
		}
	}
	return ""
}
