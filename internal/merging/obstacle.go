package merging

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/schedule"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// obstacle is what keeps a merge out of the line.
type obstacle struct {
	reason, message string
	// short is the reason in a few words, for `kubectl get`.
	short string
	// stalled is true when nothing will happen until somebody changes something.
	stalled bool
	// phase is Waiting unless it says otherwise.
	phase v1alpha1.MergePhase
}

// findObstacle runs the checks in the order in which a user would mend what they find.
func (t *merge) findObstacle() *obstacle {
	for _, check := range []func(*state) *obstacle{
		duplicate, suspended, invalidSpec, unknownTier, tierNotAllowed, qosNotMet, limitExceeded,
		graceTooLong, poolNotAllowed, badSchedule, uncountable, predecessor, storeTrouble, hasMerged, backingOff,
		notDue, awaitingApproval, neverFits, poolShut, keptAside,
	} {
		if o := check(t.state); o != nil {
			t.d.ReadStore = t.d.ReadStore || o.reason == v1alpha1.ReasonReadingStore
			return o
		}
	}
	return nil
}

func suspended(t *state) *obstacle {
	if !t.spec.Suspend {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonSuspended, phase: v1alpha1.MergeSuspended, short: "Suspended",
		message: "The merge is suspended: set spec.suspend to false for it to go on."}
}

func invalidSpec(t *state) *obstacle {
	if t.job.Invalid == "" {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonInvalidSpec, message: t.job.Invalid, short: "invalid spec", stalled: true}
}

func unknownTier(t *state) *obstacle {
	tiers, asked := t.p.o.Config.Tiers, t.spec.Tier
	if written := &t.job.Object.Status; written.Run != nil {
		asked = cmp.Or(asked, written.Tier)
	}
	if _, known := tiers.Find(asked); known {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonUnknownTier, short: "unknown tier", stalled: true, message: fmt.Sprintf(
		"spec.tier: %q is not a tier of the operator's configuration, which knows %s: delete the MergeJob and create it with one of "+
			"these.", asked, tiers.Names())}
}

// tier is the tier in effect: the one that the job asks for, or, until its run ends, that is on record, or the default of its
// profile. It is false for one that the job may not have.
func (t *state) tier() (config.Tier, bool) {
	if written := &t.job.Object.Status; written.Run != nil {
		return t.p.o.Config.Tiers.InEffect(t.spec.Tier, written.Tier)
	}
	return t.p.o.Config.Tiers.OpenTo(t.job.Profile, t.owner()).Find(t.spec.Tier)
}

func (t *state) owner() ownership.Owner { return ownership.OfMerge(t.job.Object, t.p.o.WebhooksOff) }

func tierNotAllowed(t *state) *obstacle {
	if _, allowed := t.tier(); allowed {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonTierNotAllowed, short: "tier not allowed", stalled: true, message: fmt.Sprintf(
		"spec.tier: %q is not a tier that profile %s allows, which allows %s: delete the MergeJob and create it with one of these, or "+
			"have the profile allow it.", t.spec.Tier, t.job.Profile.Name,
		t.p.o.Config.Tiers.NamesOpenTo(t.job.Profile, t.owner()))}
}

// qosNotMet refuses pods that would not be what their tier promises. A run that has begun goes on with pods that are held to the
// tier as far as the template allows.
func qosNotMet(t *state) *obstacle {
	tier, _ := t.tier()
	found := trainingpod.CheckMergeQoS(t.spec, tier)
	if len(found) == 0 {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonQoSNotMet, short: "QoS not met", stalled: true,
		message: trainingpod.Say(found) + ". Change spec.template, or delete the MergeJob and create it of another tier."}
}

func limitExceeded(t *state) *obstacle {
	most := t.p.o.Config.Limits.MaxWorkersPerJob
	if t.spec.MaxReplicas <= most {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonLimitExceeded, short: "too large", stalled: true, message: fmt.Sprintf(
		"spec.maxReplicas: %d is more than the %d that the operator's configuration allows (limits.maxWorkersPerJob): lower it, or "+
			"ask for the limit to be raised.", t.spec.MaxReplicas, most)}
}

// graceTooLong refuses pods that may take longer to leave than the configuration allows. A run that has begun goes on.
func graceTooLong(t *state) *obstacle {
	found := trainingpod.CheckMergeGrace(t.spec, t.p.o.Config.Limits)
	if len(found) == 0 {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonLimitExceeded, short: "grace too long", stalled: true,
		message: trainingpod.Say(found) + "."}
}

func poolNotAllowed(t *state) *obstacle {
	merges := t.p.o.Config.Merges
	if profile := t.job.Profile; merges.AllowsPool(t.spec.Pool) && !config.ProfileAllowsPool(profile, t.spec.Pool) {
		return &obstacle{reason: v1alpha1.ReasonPoolNotAllowed, short: "pool not allowed", stalled: true, message: fmt.Sprintf(
			"spec.pool: %q is no pool that profile %s allows (spec.merges.pools), which allows %s: name one of these.",
			t.spec.Pool, profile.Name, strings.Join(profile.Spec.Merges.Pools, ", "))}
	}
	if merges.AllowsPool(t.spec.Pool) {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonPoolNotAllowed, short: "pool not allowed", stalled: true, message: fmt.Sprintf(
		"spec.pool: %q is no pool for merges by the operator's configuration (merges.pools), which allows %s: name one of these.",
		t.spec.Pool, strings.Join(merges.Pools, ", "))}
}

func badSchedule(t *state) *obstacle {
	due := t.spec.Schedule
	if due == nil || due.Interval != nil {
		return nil
	}
	_, err := schedule.Parse(due.Cron, due.TimeZone)
	if err == nil {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonInvalidSchedule, short: "invalid schedule", stalled: true,
		message: fmt.Sprintf("spec.schedule: %v.", err)}
}

// uncountable keeps a gang from Volcano by which its scheduler would end: of a pod, or of all pods of the core together.
func uncountable(t *state) *obstacle {
	one, all := trainingpod.Requests(&t.spec.Template.Spec), corev1.ResourceList{}
	trainingpod.AddRequests(all, one, t.spec.MinReplicas)
	for _, ask := range []struct {
		who      string
		requests corev1.ResourceList
	}{{"A pod asks", one}, {"All pods of the core ask", all}} {
		if name, q, found := trainingpod.Uncountable(ask.requests); found {
			return &obstacle{reason: v1alpha1.ReasonRejected, short: "rejected", stalled: true, message: fmt.Sprintf("%s for %s of %s, "+
				"which is less than nothing or more than can be counted: change spec.template.", ask.who, q.String(), name)}
		}
	}
	return nil
}

// duplicate keeps a MergeJob away from a model that another merges, or that one created before it may merge. It comes before all
// other obstacles, because the first waits until the later ones have said so.
func duplicate(t *state) *obstacle {
	for _, r := range t.job.Rivals {
		does := "merges"
		if !r.Running {
			does = "came first to merge"
		}
		if r.Running || t.later(r) {
			return &obstacle{reason: v1alpha1.ReasonDuplicateModel, short: "duplicate model", stalled: true, message: fmt.Sprintf(
				"MergeJob %s %s %s, and a prefix holds one model: delete one of the two, or give each model a prefix of its own.",
				t.name(r.Key.Namespace, r.Key.Name), does, t.place())}
		}
	}
	return nil
}

// place is where the job merges, for users.
func (t *state) place() string {
	bucket := fmt.Sprintf("bucket %q", t.spec.Store.Bucket)
	if t.spec.Store.Prefix == "" {
		return bucket
	}
	return fmt.Sprintf("what is under %q in %s", t.spec.Store.Prefix, bucket)
}

// predecessor has the first of several MergeJobs of one model wait until no other can have pods.
func predecessor(t *state) *obstacle {
	if namesake := t.namesake(); namesake != nil {
		return namesake
	}
	waits := ""
	if held, next, until := t.p.held(t.job.Strangers); len(held) > 0 {
		t.p.wake(next)
		n := int32(len(held))
		waits = fmt.Sprintf("%s of another MergeJob of this model %s still there (%s), waited for until %s at the latest",
			count(n, "pod"), plural(n, "is", "are"), t.names(held), until.UTC().Format(time.RFC3339))
	}
	for _, r := range t.job.Rivals {
		if !r.Yields {
			waits = "MergeJob " + t.name(r.Key.Namespace, r.Key.Name) + " of this model has not yielded yet"
		}
	}
	if waits == "" {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonPredecessorLeaving, short: "predecessor leaving",
		message: "No model is merged twice at once, and " + waits + ": it goes on by itself."}
}

// namesake has a MergeJob wait until pods of an earlier one of its name are gone: it needs their names. Out of the line it keeps
// no other waiting, however long one of them stays.
func (t *state) namesake() *obstacle {
	all := t.job.Namesakes
	if len(all) == 0 {
		return nil
	}
	n := int32(len(all))
	if held, next, until := t.p.held(all); len(held) > 0 {
		t.p.wake(next)
		return &obstacle{reason: v1alpha1.ReasonPredecessorLeaving, short: "predecessor leaving", message: fmt.Sprintf(
			"%s of an earlier MergeJob of this name %s still there (%s), whose names this one needs: it goes on by itself, and they "+
				"should be gone by %s.", count(n, "pod"), plural(n, "is", "are"), t.names(all), until.UTC().Format(time.RFC3339))}
	}
	return &obstacle{reason: v1alpha1.ReasonNameTaken, short: "name taken", message: fmt.Sprintf(
		"%s of an earlier MergeJob of this name %s still there (%s), whose names this one needs. %s should have left by %s: remove "+
			"finalizers, or delete with --force what is on a node that is gone; the merge goes on by itself then.", count(n, "pod"),
		plural(n, "is", "are"), t.names(all), plural(n, "It", "They"), all[0].Until().UTC().Format(time.RFC3339))}
}

// later tells whether the job was created after the rival. One whose store was never read, for want of credentials perhaps, comes
// after one whose was: a model is not kept from its own team by naming its place.
func (t *state) later(r Rival) bool {
	key := t.job.Key()
	if reads := t.job.Object.Status.Weight != nil; r.Reads != reads {
		return r.Reads
	}
	return cmp.Or(r.Created.Compare(t.job.Object.CreationTimestamp.Time), cmp.Compare(r.Key.Namespace, key.Namespace),
		cmp.Compare(r.Key.Name, key.Name)) < 0
}

// name is how another MergeJob is called: those of other namespaces are nobody's business.
func (t *state) name(namespace, name string) string {
	if namespace == t.job.Object.Namespace {
		return name
	}
	return "of another namespace"
}

// storeTrouble keeps out of the line who has no store, or none that was ever read. Others keep their place.
func storeTrouble(t *state) *obstacle {
	s := t.job.Store
	switch {
	case s != nil && s.Trouble != nil && (s.Trouble.Stalled || !t.storeRead()):
		return &obstacle{reason: s.Trouble.Reason, message: s.Trouble.Message, short: "store unavailable", stalled: s.Trouble.Stalled}
	case !t.storeRead():
		return &obstacle{reason: v1alpha1.ReasonReadingStore, short: "reading store",
			message: "The store is read for the first time, to see which increments wait."}
	}
	return nil
}

func hasMerged(t *state) *obstacle {
	if !t.done() {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonMerged, phase: v1alpha1.MergeMerged, short: "Merged", message: fmt.Sprintf(
		"Merged into full model %s. It has no schedule: a new value of annotation %s merges it again.", nameOf(t.st.LastFull),
		v1alpha1.AnnotationRunNow)}
}

func backingOff(t *state) *obstacle {
	retry := t.st.RetryTime
	if retry == nil || !t.p.now.Before(retry.Time) || len(t.st.History) == 0 || t.calledByHand() {
		return nil
	}
	t.p.wake(retry.Time)
	last := t.st.History[0]
	phase := v1alpha1.MergeFailed
	if last.Outcome == v1alpha1.OutcomeTimedOut {
		phase = v1alpha1.MergeTimedOut
	}
	return &obstacle{reason: v1alpha1.ReasonBackoff, phase: phase, short: string(phase) + " (again at " + clock(retry.Time) + ")",
		message: fmt.Sprintf("%s It joins the line again at %s, after %s in a row.", last.Message, retry.UTC().Format(time.RFC3339),
			count(t.st.Failures, "failure"))}
}

func notDue(t *state) *obstacle {
	threshold, weight := ptr.Deref(t.spec.Threshold, v1alpha1.DefaultMergeThreshold), ptr.Deref(t.st.Weight, 0)
	switch {
	case t.calledByHand() && (t.fresh == nil || t.fresh.Increments.Listed > 0 || t.lastListed() != ""):
		return nil
	case t.st.Increments == 0 || t.calledByHand():
		// Without any increment on record, nobody could tell later which of them the full model of a run by hand has.
		return &obstacle{reason: v1alpha1.ReasonNoIncrements, short: "no increments",
			message: "Nothing was written to " + t.spec.Store.Increments + " that is not merged: it joins the line when there is." +
				t.hollow() + t.slow()}
	case t.due:
		return nil
	}
	message := fmt.Sprintf("Weight %d is below the threshold of %d; %s %s", weight, threshold, count(t.st.Increments, "increment"),
		plural(t.st.Increments, "waits", "wait"))
	if t.st.DueTime != nil {
		t.p.wake(t.st.DueTime.Time)
		message += ". By the age of its full model it is due at " + t.st.DueTime.UTC().Format(time.RFC3339)
	}
	return &obstacle{reason: v1alpha1.ReasonNotDue, short: fmt.Sprintf("weight %d < %d", weight, threshold),
		message: message + "." + t.hollow() + t.slow()}
}

// hollow says that what may look like the last full model is none.
func (t *state) hollow() string {
	if t.fresh == nil || t.fresh.Hollow == "" {
		return ""
	}
	return fmt.Sprintf(" %s%s/ is no full model: there is nothing in it but %s.", t.spec.Store.Full, t.fresh.Hollow,
		t.spec.Store.CompletionMarker)
}

// slow tells of a schedule that leaves less time between two merges than the last one took.
func (t *state) slow() string {
	if len(t.st.History) == 0 || t.st.History[0].Outcome != v1alpha1.OutcomeMerged || t.st.History[0].StartTime == nil {
		return ""
	}
	last := t.st.History[0]
	took := last.EndTime.Sub(last.StartTime.Time)
	_, interval, scheduled := t.age()
	if !scheduled || took <= interval {
		return ""
	}
	return fmt.Sprintf(" The last merge took %s, longer than spec.schedule leaves between two (%s), so that it is behind for ever: "+
		"merge less often, or with more or larger pods.", took, interval)
}

// awaitingApproval keeps a merge that is due out of the line until its tier is approved. Each run begins anew.
func awaitingApproval(t *state) *obstacle {
	tier, _ := t.tier()
	waits, until := approval.Question{
		Job: t.job.Object, Resource: "mj", Tier: tier.Name, Profile: t.job.Profile, WebhooksOff: t.p.o.WebhooksOff,
	}.Answer(t.p.now)
	if waits != "" {
		return &obstacle{reason: v1alpha1.ReasonAwaitingApproval, short: "awaiting approval", message: waits}
	}
	if !until.IsZero() {
		t.p.wake(until) // Its turn may not come until then.
	}
	return nil
}

// neverFits sets a merge aside that its pool could not hold if nothing else ran.
func neverFits(t *state) *obstacle {
	never := t.job.Verdict.Never
	if never == nil {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonNeverFits, short: "never fits", message: fmt.Sprintf("%s of %s ask for more than pool "+
		"%s could give if nothing else ran. %s It is set aside, others pass, and it is judged again when the pool's Queue or nodes "+
		"change: lower minReplicas or the requests, or enlarge the pool.", count(t.spec.MinReplicas, "pod"), t.asks(), t.st.Pool,
		never.SayEmpty())}
}

// poolShut keeps merges out of the line of a pool that takes no gangs.
func poolShut(t *state) *obstacle { return t.p.shut() }

// shut says why the pool takes no gangs; nil for one that does.
func (p *planner) shut() *obstacle {
	switch o := &p.o; {
	case o.VolcanoMissing != "":
		return &obstacle{reason: v1alpha1.ReasonVolcanoMissing, short: "Volcano missing", message: fmt.Sprintf(
			"The API server does not serve %s: install Volcano; the merge goes on by itself then.", o.VolcanoMissing)}
	case o.QueueMissing:
		return &obstacle{reason: v1alpha1.ReasonQueueNotFound, short: "no queue", message: fmt.Sprintf(
			"Volcano Queue %q, the pool, does not exist: create it (config/pool has that of the default pool), or change spec.pool; the "+
				"merge goes on by itself then.", o.Pool)}
	case !p.open():
		return &obstacle{reason: v1alpha1.ReasonQueueClosed, short: "queue closed", message: fmt.Sprintf(
			"Volcano Queue %q, the pool, is not open (its state is %s): open it, or change spec.pool.", o.Pool, o.QueueState)}
	}
	return nil
}
