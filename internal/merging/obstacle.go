package merging

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/schedule"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// obstacle is a reason that keeps a merge out of the line.
type obstacle struct {
	reason, message string
	// short is the reason in a few words, for `kubectl get`.
	short string
	// stalled is true if nothing happens until a person changes something.
	stalled bool
	// phase of the merge; empty for Waiting.
	phase v1beta1.MergePhase
}

// findObstacle returns the first obstacle. What a user must change comes before what passes with time, so that a user does
// not wait only to learn that the spec is wrong.
func (t *merge) findObstacle() *obstacle {
	for _, check := range []func(*state) *obstacle{
		duplicateModel, suspendedByUser, invalidSpec, unknownTier, tierNotAllowed, qosNotMet, limitExceeded,
		aboveCap, graceTooLong, poolNotAllowed, badSchedule, uncountableRequests, predecessorLeaving, storeTrouble, hasMerged,
		backingOff, notDue, budgetUsedUp, awaitingApproval, neverFits, poolShut, keptAside,
	} {
		if o := check(t.state); o != nil {
			t.d.ReadStore = t.d.ReadStore || o.reason == v1beta1.ReasonReadingStore
			return o
		}
	}
	return nil
}

func suspendedByUser(t *state) *obstacle {
	if !t.spec.Suspend {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonSuspended, phase: v1beta1.MergeSuspended, short: "Suspended",
		message: "The merge is suspended. Set spec.suspend to false to resume it."}
}

func invalidSpec(t *state) *obstacle {
	if t.job.Invalid == "" {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonInvalidSpec, message: t.job.Invalid, short: "invalid spec", stalled: true}
}

func unknownTier(t *state) *obstacle {
	// During a run without spec.tier the tier on record counts. It may have vanished from the configuration meanwhile.
	tiers, asked := t.p.o.Config.Tiers, t.spec.Tier
	if written := &t.job.Object.Status; written.Run != nil {
		asked = cmp.Or(t.job.Object.EffectiveTier(), written.Tier)
	}
	if _, known := tiers.FindTier(asked); known {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonUnknownTier, short: "unknown tier", stalled: true, message: fmt.Sprintf(
		"spec.tier: the operator's configuration has no tier %q; it has %s. Set spec.tier to one of these.",
		asked, tiers.JoinedNames())}
}

// tierInEffect is the tier that the job asks for, or the default of its profile. During a run it is the tier on record, so that
// a changed profile does not stop the run. It is false for a tier that the job may not use.
func (t *state) tierInEffect() (config.Tier, bool) {
	if written := &t.job.Object.Status; written.Run != nil {
		return t.p.o.Config.Tiers.InEffect(t.job.Object.EffectiveTier(), written.Tier)
	}
	return t.p.o.Config.Tiers.OpenTo(t.job.Profile, t.owner()).FindTier(t.spec.Tier)
}

func (t *state) owner() ownership.Owner { return ownership.OfMerge(t.job.Object, t.p.o.WebhooksOff) }

func tierNotAllowed(t *state) *obstacle {
	if _, allowed := t.tierInEffect(); allowed {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonTierNotAllowed, short: "tier not allowed", stalled: true, message: fmt.Sprintf(
		"spec.tier: profile %[2]s does not allow tier %[1]q; it allows %[3]s. Set spec.tier to one of these, or "+
			"ask an administrator to allow it in the profile.", t.spec.Tier, t.job.Profile.Name,
		t.p.o.Config.Tiers.NamesOpenTo(t.job.Profile, t.owner()))}
}

// qosNotMet refuses pods that would not have the quality of service of their tier. A run that has begun goes on, with the QoS
// of the tier as far as the template allows.
func qosNotMet(t *state) *obstacle {
	tier, _ := t.tierInEffect()
	found := trainingpod.CheckMergeQoS(t.spec, tier)
	if len(found) == 0 {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonQoSNotMet, short: "QoS not met", stalled: true,
		message: trainingpod.DescribeErrors(found) + ". Change spec.template or spec.tier."}
}

func limitExceeded(t *state) *obstacle {
	most := t.p.o.Config.Limits.MaxWorkersPerJob
	if t.spec.MaxReplicas <= most {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonLimitExceeded, short: "too large", stalled: true, message: fmt.Sprintf(
		"spec.maxReplicas: %d is more than the operator's configuration allows (limits.maxWorkersPerJob: %d). Lower it, or ask an "+
			"administrator to raise the limit.", t.spec.MaxReplicas, most)}
}

// graceTooLong refuses pods with a longer grace period than the configuration allows. A run that has begun goes on.
func graceTooLong(t *state) *obstacle {
	found := trainingpod.CheckMergeGrace(t.spec, t.p.o.Config.Limits)
	if len(found) == 0 {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonLimitExceeded, short: "grace too long", stalled: true,
		message: trainingpod.DescribeErrors(found) + "."}
}

func poolNotAllowed(t *state) *obstacle {
	merges := t.p.o.Config.Merges
	if profile := t.job.Profile; merges.AllowsPool(t.spec.Pool) && !config.ProfileAllowsPool(profile, t.spec.Pool) {
		return &obstacle{reason: v1beta1.ReasonPoolNotAllowed, short: "pool not allowed", stalled: true, message: fmt.Sprintf(
			"spec.pool: profile %[2]s does not allow pool %[1]q; its spec.merges.pools allows %[3]s. Use one of these.",
			t.spec.Pool, profile.Name, strings.Join(profile.Spec.Merges.Pools, ", "))}
	}
	if merges.AllowsPool(t.spec.Pool) {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonPoolNotAllowed, short: "pool not allowed", stalled: true, message: fmt.Sprintf(
		"spec.pool: the operator's configuration does not allow merges in pool %q; its merges.pools allows %s. Use one of these.",
		t.spec.Pool, strings.Join(merges.Pools, ", "))}
}

func badSchedule(t *state) *obstacle {
	due := t.spec.Schedule
	if due == nil || due.Interval != nil || due.IsByIncrements() {
		return nil
	}
	_, err := schedule.Parse(due.Cron, due.TimeZone)
	if err == nil {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonInvalidSchedule, short: "invalid schedule", stalled: true,
		message: fmt.Sprintf("spec.schedule: %v.", err)}
}

// uncountableRequests keeps a gang from Volcano whose requests, of one pod or of the whole core, are negative or overflow. Its
// scheduler panics on such amounts, which would stop scheduling for all.
func uncountableRequests(t *state) *obstacle {
	one, all := trainingpod.PodRequests(&t.spec.Template.Spec), corev1.ResourceList{}
	trainingpod.AddRequests(all, one, t.spec.MinReplicas)
	for _, ask := range []struct {
		who      string
		requests corev1.ResourceList
	}{{"A pod asks", one}, {"All pods of the core ask", all}} {
		if name, q, found := trainingpod.FindUncountable(ask.requests); found {
			return &obstacle{reason: v1beta1.ReasonRejected, short: "rejected", stalled: true, message: fmt.Sprintf("%s for %s of %s. "+
				"That is negative, or more than a scheduler can count. Change spec.template.", ask.who, q.String(), name)}
		}
	}
	return nil
}

// describePlace names bucket and prefix for users.
func (t *facts) describePlace() string {
	bucket := fmt.Sprintf("bucket %q", t.spec.Store.Place())
	if t.spec.Store.Type == v1beta1.StoreClaim {
		bucket = fmt.Sprintf("claim %q", t.spec.Store.Place())
	}
	if t.spec.Store.Prefix == "" {
		return bucket
	}
	return fmt.Sprintf("prefix %q of %s", t.spec.Store.Prefix, bucket)
}

// predecessorLeaving makes a MergeJob wait until no other MergeJob of the model can have pods: two merges at once would write
// into one store, and merge increments twice.
func predecessorLeaving(t *state) *obstacle {
	if namesake := t.namesakeLeaving(); namesake != nil {
		return namesake
	}
	waits := ""
	if held, next, until := t.p.pendingLeftovers(t.job.Strangers); len(held) > 0 {
		t.p.wakeAt(next)
		n := int32(len(held))
		waits = fmt.Sprintf("%s of another MergeJob of this model still %s (%s). Tideline waits until %s at the latest",
			count(n, "pod"), plural(n, "exists", "exist"), t.leftoverNames(held), until.UTC().Format(time.RFC3339))
	}
	// A rival that has not yielded yet may begin a run with an old view of this job.
	for _, r := range t.job.Rivals {
		if !r.Yields {
			waits = "MergeJob " + t.rivalName(r.Key.Namespace, r.Key.Name) + " of this model has not yielded yet"
		}
	}
	if waits == "" {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonPredecessorLeaving, short: "predecessor leaving",
		message: waits + ". A model is merged once at a time; this merge continues by itself."}
}

// namesakeLeaving makes a MergeJob wait until the pods of an earlier MergeJob of its name are gone, because it needs their
// names. It waits outside the line, where it delays no other merge, however long one of the pods stays.
func (t *state) namesakeLeaving() *obstacle {
	all := t.job.Namesakes
	if len(all) == 0 {
		return nil
	}
	n := int32(len(all))
	if held, next, until := t.p.pendingLeftovers(all); len(held) > 0 {
		t.p.wakeAt(next)
		return &obstacle{reason: v1beta1.ReasonPredecessorLeaving, short: "predecessor leaving", message: fmt.Sprintf(
			"%s of an earlier MergeJob with this name still %s (%s), and this one needs the names. They should be gone by %s; the merge "+
				"continues by "+
				"itself.", count(n, "pod"), plural(n, "exists", "exist"), t.leftoverNames(all), until.UTC().Format(time.RFC3339))}
	}
	return &obstacle{reason: v1beta1.ReasonNameTaken, short: "name taken", message: fmt.Sprintf(
		"%s of an earlier MergeJob with this name still %s (%s), and this one needs the names. %s should have been gone by %s. Remove "+
			"finalizers, or delete with --force the pods of a node that is gone; then the merge continues by itself.", count(n, "pod"),
		plural(n, "exists", "exist"), t.leftoverNames(all), plural(n, "It", "They"), all[0].BlocksUntil().UTC().Format(time.RFC3339))}
}

// storeTrouble keeps a merge out of the line if its store cannot be read without a change, or was never read. A merge whose store
// was read before keeps its place.
func storeTrouble(t *state) *obstacle {
	s := t.job.Store
	switch {
	case s != nil && s.Trouble != nil && (s.Trouble.Stalled || !t.storeRead()):
		return &obstacle{reason: s.Trouble.Reason, message: s.Trouble.Message, short: "store unavailable", stalled: s.Trouble.Stalled}
	case !t.storeRead():
		return &obstacle{reason: v1beta1.ReasonReadingStore, short: "reading store",
			message: "Tideline reads the store for the first time, to see which increments wait."}
	}
	return nil
}

func hasMerged(t *state) *obstacle {
	if !t.isDone() {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonMerged, phase: v1beta1.MergeMerged, short: "Merged", message: fmt.Sprintf(
		"Merged into full model %s. The MergeJob has no schedule; set annotation %s to a new value to merge again.",
		nameOf(t.st.LastFull),
		v1beta1.AnnotationRunNow)}
}

func backingOff(t *state) *obstacle {
	retry := t.st.RetryTime
	if retry == nil || !t.p.now.Before(retry.Time) || len(t.st.History) == 0 || t.calledByHand() {
		return nil
	}
	t.p.wakeAt(retry.Time)
	last := t.st.History[0]
	phase := v1beta1.MergeFailed
	if last.Outcome == v1beta1.OutcomeTimedOut {
		phase = v1beta1.MergeTimedOut
	}
	return &obstacle{reason: v1beta1.ReasonBackoff, phase: phase, short: string(phase) + " (again at " + clockTime(retry.Time) +
		")",
		message: fmt.Sprintf("%s The merge joins the line again at %s, after %s in a row.", last.Message,
			retry.UTC().Format(time.RFC3339),
			count(t.st.Failures, "failure"))}
}

func notDue(t *state) *obstacle {
	threshold, weight := ptr.Deref(t.spec.Threshold, v1beta1.DefaultMergeThreshold), ptr.Deref(t.st.Weight, 0)
	switch {
	case t.calledByHand() && (t.fresh == nil || t.fresh.Increments.Listed > 0 || (t.spec.Window == nil && t.lastListed() != "")):
		return nil
	case t.st.Increments == 0 || t.calledByHand():
		// A run by hand needs at least one increment on record. Without one, a later run could not tell which increments are merged.
		return &obstacle{reason: v1beta1.ReasonNoIncrements, short: "no increments",
			message: "No new increments in " + t.spec.Store.Increments + ". The merge joins the line when there are some." +
				t.hollowNote() + t.slowScheduleNote()}
	case t.due:
		return nil
	}
	message := fmt.Sprintf("Weight %d is below the threshold of %d; %s %s", weight, threshold, count(t.st.Increments, "increment"),
		plural(t.st.Increments, "waits", "wait"))
	if s := t.spec.Schedule; s != nil && s.Increments != nil {
		message += fmt.Sprintf(", and %d weigh 100 (spec.schedule.increments)", *s.Increments)
	}
	if t.st.DueTime != nil {
		t.p.wakeAt(t.st.DueTime.Time)
		message += ". Its full model is old enough at " + t.st.DueTime.UTC().Format(time.RFC3339)
	}
	return &obstacle{reason: v1beta1.ReasonNotDue, short: fmt.Sprintf("weight %d < %d", weight, threshold),
		message: message + "." + t.hollowNote() + t.slowScheduleNote()}
}

// hollowNote warns of a directory with a marker and nothing else, which looks like a full model.
func (t *facts) hollowNote() string {
	if t.fresh == nil || t.fresh.Hollow == "" {
		return ""
	}
	return fmt.Sprintf(" Tideline ignores %s%s/: it contains only %s and no model.", t.spec.Store.Full, t.fresh.Hollow,
		t.spec.Store.CompletionMarker)
}

// slowScheduleNote warns of a schedule that leaves less time between two merges than the last one took.
func (t *facts) slowScheduleNote() string {
	if len(t.st.History) == 0 || t.st.History[0].Outcome != v1beta1.OutcomeMerged || t.st.History[0].StartTime == nil {
		return ""
	}
	last := t.st.History[0]
	took := last.EndTime.Sub(last.StartTime.Time)
	_, interval, scheduled := t.fullModelAge()
	if !scheduled || took <= interval {
		return ""
	}
	return fmt.Sprintf(" The last merge took %s, and spec.schedule leaves %s between two, so the merge cannot keep up. "+
		"Merge less often, or use more or larger pods.", took, interval)
}

// awaitingApproval keeps a merge that is due out of the line until its tier is approved. Each run needs an approval that is valid
// when it begins.
func awaitingApproval(t *state) *obstacle {
	tier, _ := t.tierInEffect()
	waits, until := approval.Question{
		Job: t.job.Object, Resource: "mj", Tier: tier.Name, Profile: t.job.Profile, WebhooksOff: t.p.o.WebhooksOff,
	}.AnswerAt(t.p.now)
	if waits != "" {
		return &obstacle{reason: v1beta1.ReasonAwaitingApproval, short: "awaiting approval", message: waits}
	}
	if !until.IsZero() {
		t.p.wakeAt(until) // The approval may expire before the merge has its turn.
	}
	return nil
}

// neverFits keeps out of the line a merge that its pool could not hold even if nothing else ran.
func neverFits(t *state) *obstacle {
	never := t.job.Verdict.Never
	if never == nil {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonNeverFits, short: "never fits", message: fmt.Sprintf("%s of %s %s not fit into pool "+
		"%s even if nothing else runs. %s Lower minReplicas or the requests, or enlarge the pool. Until then other merges pass; "+
		"Tideline "+
		"checks again when the pool's Queue or nodes change.", count(t.spec.MinReplicas, "pod"), t.podRequests(),
		plural(t.spec.MinReplicas, "does", "do"), t.st.Pool, never.SayEmpty("pod"))}
}

// poolShut keeps merges out of the line of a pool that takes no gangs.
func poolShut(t *state) *obstacle { return t.p.whyClosed() }

// whyClosed is the reason for which the pool takes no gangs; nil for a pool that does.
func (p *planner) whyClosed() *obstacle {
	switch o := &p.o; {
	case o.VolcanoMissing != "":
		return &obstacle{reason: v1beta1.ReasonVolcanoMissing, short: "Volcano missing", message: fmt.Sprintf(
			"The API server does not serve %s. Install Volcano; then the merge continues by itself.", o.VolcanoMissing)}
	case o.QueueMissing:
		mend := "Create it, or change spec.pool. Then the merge continues by itself."
		if o.Pool == config.DefaultPool {
			mend = "Tideline creates it, and the merge then continues by itself; if this lasts, the operator's log says why."
		}
		return &obstacle{reason: v1beta1.ReasonQueueNotFound, short: "no queue", message: fmt.Sprintf(
			"The pool's Volcano Queue %q does not exist. %s", o.Pool, mend)}
	case !p.isQueueOpen():
		return &obstacle{reason: v1beta1.ReasonQueueClosed, short: "queue closed", message: fmt.Sprintf(
			"The pool's Volcano Queue %q is not open (state %s). Open it, or change spec.pool.", o.Pool, o.QueueState)}
	}
	return nil
}
