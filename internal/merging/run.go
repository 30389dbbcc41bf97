package merging

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// maxStartTimeouts is how many attempts in a row may fail to start before the run fails and makes room for the next merge.
const maxStartTimeouts = 3

// maxLosses is how many attempts of a run may lose a pod before the run fails.
const maxLosses = 3

// maxBackoffDoublings bounds the back-off to 32 times backoffSeconds.
const maxBackoffDoublings = 5

// advanceRun takes a run one step further.
func (t *merge) advanceRun() {
	run := t.st.Run
	t.d.Blueprint = t.podBlueprint()
	switch s := t.job.Store; {
	// The end of an attempt is on record: all that is left to do is to remove its objects.
	case run.Outcome != "":
		t.clearAttempt()
	// The marker decides, whatever became of the pods: the merge program writes it last.
	case s != nil && s.Run == run.ID && s.RunComplete:
		t.endAttempt(v1beta1.OutcomeMerged, v1beta1.ReasonMerged, fmt.Sprintf("Merged %s into full model %s%s.",
			count(run.Increments, "increment"), run.ID, t.durationNote()))
	case t.spec.Suspend:
		t.endAttempt(v1beta1.OutcomeSuspended, v1beta1.ReasonSuspended, "Tideline stopped the run, because spec.suspend is true.")
	case run.PlaceTime == nil:
		t.makeGang()
	default:
		t.watchAttempt()
	}
}

// durationNote says how long the run ran.
func (t *state) durationNote() string {
	since := t.st.Run.RunTime
	if since == nil {
		return ""
	}
	return " in " + t.p.now.Sub(since.Time).Round(time.Second).String()
}

func (t *state) podBlueprint() mergepod.Blueprint {
	tier, _ := t.tierInEffect()
	return mergepod.Blueprint{Job: t.job.Object, Run: t.st.Run, Tier: tier, Pool: t.st.Pool}
}

// endAttempt records how an attempt ended. Its objects are deleted in a later evaluation, once the status has the outcome.
func (t *merge) endAttempt(outcome v1beta1.MergeOutcome, reason, message string) {
	run, now := t.st.Run, metaTime(t.p.now)
	if outcome == v1beta1.OutcomeWithdrawn && t.goesAhead() && reason != v1beta1.ReasonNeverFits {
		// Whatever the reason: a run that asked before its turn does not return as one whose turn it was.
		reason = v1beta1.ReasonGoingAhead
		if run.ByHand {
			t.st.RunNow = "" // The annotation counts again.
		}
	}
	message = clip(message, messageLimit)
	// Nothing that was decided before in this evaluation may create or delete objects of an attempt that has ended.
	t.d = JobDecision{Blueprint: t.d.Blueprint, ReadStore: t.d.ReadStore, OOMKills: t.d.OOMKills}
	run.Outcome, run.EndTime, run.Message, run.Reason = outcome, &now, message, reason
	// The run itself goes on after a withdrawn attempt, and keeps its time in the line.
	if outcome == v1beta1.OutcomeWithdrawn {
		return
	}
	t.st.QueueTime = nil
	result := v1beta1.MergeResult{
		Run: run.ID, Outcome: outcome, StartTime: run.RunTime, EndTime: now, Attempts: run.Attempt, Increments: run.Increments,
		LastIncrement: run.LastIncrement, Message: message,
	}
	t.st.History = append([]v1beta1.MergeResult{result}, t.st.History...)
	if len(t.st.History) > v1beta1.MergeHistoryLimit {
		t.st.History = t.st.History[:v1beta1.MergeHistoryLimit]
	}
	switch outcome { //nolint:exhaustive // a run that was suspended neither failed nor merged
	case v1beta1.OutcomeMerged:
		t.st.Failures, t.st.RetryTime, t.st.MergeTime, t.st.SetAside = 0, nil, &now, nil
		t.st.LastFull = &v1beta1.FullModel{Name: run.ID, Time: now, LastIncrement: run.LastIncrement}
		t.st.Increments = max(t.st.Increments-run.Increments, 0)
		if t.spec.Window != nil {
			t.st.Increments = 0 // Of those in the window, only a reading tells which waited. It follows at once.
		}
		// The last reading counted the increments that are merged now.
		t.fresh, t.d.ReadStore = nil, true
	case v1beta1.OutcomeFailed, v1beta1.OutcomeTimedOut:
		first := time.Duration(ptr.Deref(t.spec.BackoffSeconds, v1beta1.DefaultBackoffSeconds)) * time.Second
		backoff := first << min(t.st.Failures, maxBackoffDoublings)
		t.st.Failures++
		t.st.RetryTime = timePointer(t.p.now.Add(backoff))
	}
}

// clearAttempt deletes the objects of an attempt, except pods that have ended. Their logs stay until the next run begins.
func (t *merge) clearAttempt() {
	for i := range t.job.Pods {
		if w := t.job.Pods[i]; !w.HasEnded() && !w.Terminating {
			t.d.DeletePods = append(t.d.DeletePods, w)
		}
	}
	t.deleteGroups()
	dropped := t.startsAnew()
	if l := t.job.List; l != nil && (dropped || !t.isWithdrawn()) {
		t.d.DeleteList = l.UID
	}
	if t.holdsNothing() {
		t.closeRun(dropped)
	}
}

// closeRun removes a run from the status once it asks for no room and holds none, unless it will ask again.
func (t *merge) closeRun(dropped bool) {
	switch s := t.job.Store; {
	case dropped && s != nil && s.Run == t.st.Run.ID && s.RunComplete:
		// Volcano placed its pods just before Tideline deleted them, and they merged within their grace period.
		t.endAttempt(v1beta1.OutcomeMerged, v1beta1.ReasonMerged, "The full model was complete when Tideline took the attempt back.")
	case t.isWithdrawn() && t.spec.Suspend:
		t.endAttempt(v1beta1.OutcomeSuspended, v1beta1.ReasonSuspended, "Tideline stopped the run, because spec.suspend is true.")
	case dropped:
		// Only a reading of the store after the end of the pods shows whether they completed the full model.
		if read := t.ensureStoreRead(); read && s.Trouble == nil && t.job.List == nil {
			t.st.Run = nil
		}
	case !t.isWithdrawn() && t.job.List == nil:
		t.st.Run = nil
	}
}

// startsAnew tells whether the run was set aside, or went ahead in vain. Such a run is dropped; the next one takes spec and pool
// as they are then.
func (t *facts) startsAnew() bool {
	return t.isWithdrawn() && slices.Contains([]string{
		v1beta1.ReasonNeverFits, v1beta1.ReasonNotPlaced, v1beta1.ReasonGoingAhead,
	}, t.st.Run.Reason)
}

func (t *merge) deleteGroups() {
	if g := t.job.Core; g != nil {
		t.d.DeleteGroups = append(t.d.DeleteGroups, gang.Ref{Name: mergepod.CoreName(t.job.Object.Name), UID: g.UID})
	}
	if g := t.job.Surplus; g != nil {
		t.d.DeleteGroups = append(t.d.DeleteGroups, gang.Ref{Name: mergepod.SurplusName(t.job.Object.Name), UID: g.UID})
	}
}

// holdsNothing tells whether no object of the job asks for room or holds any.
func (t *facts) holdsNothing() bool {
	if t.job.Core != nil || t.job.Surplus != nil {
		return false
	}
	for i := range t.job.Pods {
		if !t.job.Pods[i].HasEnded() {
			return false
		}
	}
	return true
}

// makeGang creates the missing objects of the attempt, and records when Volcano has placed all pods.
func (t *merge) makeGang() {
	run := t.st.Run
	if ended := t.endIfRefused(); ended {
		return
	}
	if run.Template != t.templateHash() {
		t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonAsking, "The template or the number of replicas changed. "+
			"Tideline takes the attempt back, and the run asks again with the new values.")
		return
	}
	if t.job.Verdict.Never != nil {
		// The Queue or the nodes changed, or the arbiter judged late. Other merges pass meanwhile.
		t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonNeverFits, neverFits(t.state).message)
		return
	}
	if over := t.endVainAttempt(); over {
		return
	}
	// In this order: a kubelet shows the ConfigMap of an earlier run as long as one of its pods is left on the node, and the pods of
	// this attempt need the ConfigMap to start.
	if clean := t.clearEarlierAttempts(); !clean {
		return
	}
	if ready := t.ensureList(); !ready {
		return
	}
	group := t.d.Blueprint.CoreGroup()
	switch core := t.job.Core; {
	case core == nil:
		t.d.CreateGroups = append(t.d.CreateGroups, group)
	case group.HasDrifted(*core):
		t.d.RestoreGroups = append(t.d.RestoreGroups, gang.Restore{Group: group, UID: core.UID})
	}
	core := t.corePods()
	placed, broken := int32(0), ""
	for i := range run.MinReplicas {
		switch w := core[i]; {
		case w == nil:
			t.d.CreatePods = append(t.d.CreatePods, i)
		case w.HasFailed():
			if withdrawn := t.withdrawIfStarved(w); withdrawn {
				return
			}
			broken = t.failureMessage(w)
		case w.Scheduled && !w.Terminating:
			placed++
		}
	}
	switch {
	case broken != "":
		t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonMergeFailed, broken)
	case placed == run.MinReplicas:
		run.PlaceTime, t.st.SetAside, t.st.AheadRetryTime = timePointer(t.p.now), nil, nil
		run.ExpectedEndTime = timePointer(t.p.now.Add(t.usualRun()))
		run.Short, run.FitTime = false, nil
		t.watchAttempt()
	}
}

// endVainAttempt takes back an attempt that Volcano did not place in time, and reports whether it did.
func (t *merge) endVainAttempt() (over bool) {
	if t.st.Run.Ahead != nil {
		return t.standBack()
	}
	overdue := t.noteShortage()
	if overdue {
		t.setAside()
	}
	return overdue
}

// clearEarlierAttempts deletes the objects of earlier attempts, whose names this one needs, and reports whether all are gone.
func (t *merge) clearEarlierAttempts() (clean bool) {
	clean = true
	for i := range t.job.Pods {
		if w := t.job.Pods[i]; w.Attempt != t.attemptName() {
			clean = false
			if !w.Terminating {
				t.d.DeletePods = append(t.d.DeletePods, w)
			}
		}
	}
	if l := t.job.List; l != nil && l.Run != t.st.Run.ID {
		clean, t.d.DeleteList = false, l.UID
	}
	return clean
}

// ensureList creates the ConfigMap with exactly the increments that the status records for the run. It reports whether the
// ConfigMap exists or is about to be created.
func (t *merge) ensureList() (ready bool) {
	run := t.st.Run
	if t.job.List != nil {
		return true
	}
	if s := t.job.Store; s != nil && s.Trouble != nil {
		t.endAttempt(v1beta1.OutcomeWithdrawn, s.Trouble.Reason, s.Trouble.Message)
		return false
	}
	// The status has the number of increments, not their names, which an operator that has just started lacks. A list by an earlier
	// spec may be of a window that is none any more.
	if t.fresh == nil || t.hasStaleSighting() {
		t.d.ReadStore = true
		return false
	}
	last := run.LastIncrement
	if t.spec.Window != nil {
		last = t.lastListed() // What was written since has moved the window on, and no pod has seen the list yet.
	}
	list, n, err := CutList(t.fresh.Increments.List, last)
	if err != nil {
		t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonStoreUnreachable, err.Error())
		return false
	}
	if base := t.baseOfRun(); int32(n) != run.Increments || base != run.Base || last != run.LastIncrement {
		// The store changed after the run was recorded. The status is corrected first: pods must not merge other increments than it
		// says.
		run.Base, run.Increments = base, int32(n)
		if n == t.fresh.Increments.Listed {
			run.LastIncrement = t.lastListed()
		}
		return false
	}
	t.d.CreateList = list
	return true
}

// IsOver tells whether the pods of the run's attempt will not complete the full model any more, so that a reading of the store
// that begins now shows the result. That is so once all pods of the core have succeeded; after they ran, once one of them
// failed, is leaving or is gone, or the time of the run is up. If the status records the end of the attempt, all its pods must
// have ended.
func IsOver(job *v1beta1.MergeJob, tiers config.Tiers, pods []podstate.Worker, now time.Time) bool {
	run := job.Status.Run
	if run.Outcome != "" {
		return !slices.ContainsFunc(pods, func(w podstate.Worker) bool { return !w.HasEnded() })
	}
	succeeded, there := int32(0), int32(0)
	for i := range pods {
		switch w := &pods[i]; {
		case w.Attempt != mergepod.AttemptName(run) || w.Index >= run.MinReplicas:
		case w.HasSucceeded():
			succeeded++
			there++
		case !isLeaving(w):
			there++
		}
	}
	tier, _ := tiers.InEffect(job.EffectiveTier(), job.Status.Tier)
	limit, _ := runTimeout(&job.Spec, tier)
	ran := run.RunTime != nil && (there < run.MinReplicas || !now.Before(run.RunTime.Add(limit)))
	return succeeded == run.MinReplicas || ran
}

// isLeaving tells whether a pod failed, is gone, is being deleted, or is about to be evicted.
func isLeaving(w *podstate.Worker) bool {
	return w == nil || w.Terminating || w.Disruption != "" || (w.HasEnded() && !w.HasSucceeded())
}

// runTimeout is how long a run of the job may take. byTier tells whether the tier allows less than the job asks for.
func runTimeout(spec *v1beta1.MergeJobSpec, tier config.Tier) (limit time.Duration, byTier bool) {
	limit = time.Duration(ptr.Deref(spec.RunTimeoutSeconds, v1beta1.DefaultRunTimeoutSeconds)) * time.Second
	if most := tier.LongestRun(); most > 0 && most < limit {
		return most, true
	}
	return limit, false
}

// ensureStoreRead asks for a reading of the store that begins after the attempt is over, and reports whether it was made or
// failed. Before it, nothing tells whether the full model of the attempt is complete.
func (t *merge) ensureStoreRead() (read bool) {
	s := t.job.Store
	if s != nil && s.Attempt == t.attemptName() && s.RunOver && (t.fresh != nil || s.Trouble != nil) {
		return true
	}
	t.d.ReadStore = true
	return false
}

// endIfRefused ends an attempt whose objects the API server refuses, and reports whether it did. A refusal that a later try may
// overcome, such as an exhausted quota, has as long as pods have to start.
func (t *merge) endIfRefused() (ended bool) {
	p := t.job.Problem
	if p == nil {
		return false
	}
	if last := p.Since.Add(t.startTimeout()); !p.IsFinal() && t.p.now.Before(last) {
		t.p.wakeAt(last)
		return false
	}
	t.endAttempt(v1beta1.OutcomeFailed, p.Reason, p.Message)
	return true
}

func (t *facts) startTimeout() time.Duration {
	return time.Duration(ptr.Deref(t.spec.StartTimeoutSeconds, v1beta1.DefaultStartTimeoutSeconds)) * time.Second
}

func (t *facts) attemptName() string { return mergepod.AttemptName(t.st.Run) }

// corePods are the pods of the attempt's core by index.
func (t *facts) corePods() map[int32]*podstate.Worker {
	core := map[int32]*podstate.Worker{}
	for i := range t.job.Pods {
		if w := &t.job.Pods[i]; w.Attempt == t.attemptName() && w.Index < t.st.Run.MinReplicas {
			core[w.Index] = w
		}
	}
	return core
}
