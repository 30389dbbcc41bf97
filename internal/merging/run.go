package merging

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// maxStartTimeouts is how often in a row an attempt may fail to start before the run has failed, so that the next may pass.
const maxStartTimeouts = 3

// maxLosses is how many attempts of a run may lose a pod before it has failed.
const maxLosses = 3

// maxBackoffDoublings bounds the back-off to 32 times backoffSeconds.
const maxBackoffDoublings = 5

// goOn takes a run one step further.
func (t *merge) goOn() {
	run := t.st.Run
	t.d.Blueprint = t.blueprint()
	switch s := t.job.Store; {
	case run.Outcome != "":
		t.clear()
	case s != nil && s.Run == run.ID && s.RunComplete:
		t.end(v1alpha1.OutcomeMerged, v1alpha1.ReasonMerged, fmt.Sprintf("%s merged into full model %s%s.",
			count(run.Increments, "increment"), run.ID, t.took()))
	case t.spec.Suspend:
		t.end(v1alpha1.OutcomeSuspended, v1alpha1.ReasonSuspended, "The run was stopped, because spec.suspend is true.")
	case run.PlaceTime == nil:
		t.makeGang()
	default:
		t.watch()
	}
}

// took says how long the run ran.
func (t *state) took() string {
	since := t.st.Run.RunTime
	if since == nil {
		return ""
	}
	return " in " + t.p.now.Sub(since.Time).Round(time.Second).String()
}

func (t *state) blueprint() mergepod.Blueprint {
	tier, _ := t.tier()
	return mergepod.Blueprint{Job: t.job.Object, Run: t.st.Run, Tier: tier, Pool: t.st.Pool}
}

// end notes how an attempt ended. What it leaves is deleted when the status says so.
func (t *merge) end(outcome v1alpha1.MergeOutcome, reason, message string) {
	run, now := t.st.Run, metaTime(t.p.now)
	message = clip(message, messageLimit)
	t.d = JobDecision{Blueprint: t.d.Blueprint, ReadStore: t.d.ReadStore, OOMKills: t.d.OOMKills}
	run.Outcome, run.EndTime, run.Message, run.Reason = outcome, &now, message, reason
	if outcome == v1alpha1.OutcomeWithdrawn {
		return
	}
	t.st.QueueTime = nil
	result := v1alpha1.MergeResult{
		Run: run.ID, Outcome: outcome, StartTime: run.RunTime, EndTime: now, Attempts: run.Attempt, Increments: run.Increments,
		LastIncrement: run.LastIncrement, Message: message,
	}
	t.st.History = append([]v1alpha1.MergeResult{result}, t.st.History...)
	if len(t.st.History) > v1alpha1.MergeHistoryLimit {
		t.st.History = t.st.History[:v1alpha1.MergeHistoryLimit]
	}
	switch outcome { //nolint:exhaustive // a run that was suspended neither failed nor merged
	case v1alpha1.OutcomeMerged:
		t.st.Failures, t.st.RetryTime, t.st.MergeTime, t.st.SetAside = 0, nil, &now, nil
		t.st.LastFull = &v1alpha1.FullModel{Name: run.ID, Time: now, LastIncrement: run.LastIncrement}
		t.st.Increments = max(t.st.Increments-run.Increments, 0)
		t.fresh, t.d.ReadStore = nil, true
	case v1alpha1.OutcomeFailed, v1alpha1.OutcomeTimedOut:
		first := time.Duration(ptr.Deref(t.spec.BackoffSeconds, v1alpha1.DefaultBackoffSeconds)) * time.Second
		backoff := first << min(t.st.Failures, maxBackoffDoublings)
		t.st.Failures++
		t.st.RetryTime = timePointer(t.p.now.Add(backoff))
	}
}

// clear deletes what an attempt leaves, but for pods that have ended: their logs tell how it went, until the next run begins.
func (t *merge) clear() {
	for i := range t.job.Pods {
		if w := t.job.Pods[i]; !w.Ended() && !w.Terminating {
			t.d.DeletePods = append(t.d.DeletePods, w)
		}
	}
	t.deleteGroups()
	dropped := t.dropped()
	if l := t.job.List; l != nil && (dropped || !t.withdrawn()) {
		t.d.DeleteList = l.UID
	}
	if t.cleared() {
		t.leave(dropped)
	}
}

// leave ends a run that asks for no room and holds none, unless it asks again.
func (t *merge) leave(dropped bool) {
	switch s := t.job.Store; {
	case dropped && s != nil && s.Run == t.st.Run.ID && s.RunComplete:
		// Its pods were placed the moment before they were told to go.
		t.end(v1alpha1.OutcomeMerged, v1alpha1.ReasonMerged, "The full model was complete when the attempt was taken back.")
	case t.withdrawn() && t.spec.Suspend:
		t.end(v1alpha1.OutcomeSuspended, v1alpha1.ReasonSuspended, "The run was stopped, because spec.suspend is true.")
	case dropped:
		// Whether its pods merged is known once the store was read after them.
		if read := t.ensureStoreRead(); read && s.Trouble == nil && t.job.List == nil {
			t.st.Run = nil
		}
	case !t.withdrawn() && t.job.List == nil:
		t.st.Run = nil
	}
}

// dropped tells of a run that was set aside: it begins anew, with what spec and pool are by then.
func (t *state) dropped() bool {
	return t.withdrawn() && (t.st.Run.Reason == v1alpha1.ReasonNeverFits || t.st.Run.Reason == v1alpha1.ReasonNotPlaced)
}

func (t *merge) deleteGroups() {
	if g := t.job.Core; g != nil {
		t.d.DeleteGroups = append(t.d.DeleteGroups, gang.Ref{Name: mergepod.CoreName(t.job.Object.Name), UID: g.UID})
	}
	if g := t.job.Surplus; g != nil {
		t.d.DeleteGroups = append(t.d.DeleteGroups, gang.Ref{Name: mergepod.SurplusName(t.job.Object.Name), UID: g.UID})
	}
}

// cleared tells whether nothing of the job asks for room or holds any.
func (t *state) cleared() bool {
	if t.job.Core != nil || t.job.Surplus != nil {
		return false
	}
	for i := range t.job.Pods {
		if !t.job.Pods[i].Ended() {
			return false
		}
	}
	return true
}

// makeGang creates the objects of the attempt, those that are missing, and notes when all pods are placed.
func (t *merge) makeGang() {
	run := t.st.Run
	if ended := t.endIfRefused(); ended {
		return
	}
	if run.Template != t.template() {
		t.end(v1alpha1.OutcomeWithdrawn, v1alpha1.ReasonAsking, "The template or the number of replicas changed: the attempt is taken "+
			"back, and the run asks with what they are now.")
		return
	}
	if t.job.Verdict.Never != nil {
		// Queue or nodes changed, or the verdict came late: others pass meanwhile.
		t.end(v1alpha1.OutcomeWithdrawn, v1alpha1.ReasonNeverFits, neverFits(t.state).message)
		return
	}
	if overdue := t.noteShortage(); overdue {
		t.setAside()
		return
	}
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
	case group.Drifted(*core):
		t.d.RestoreGroups = append(t.d.RestoreGroups, gang.Restore{Group: group, UID: core.UID})
	}
	core := t.core()
	placed, broken := int32(0), ""
	for i := range run.MinReplicas {
		switch w := core[i]; {
		case w == nil:
			t.d.CreatePods = append(t.d.CreatePods, i)
		case w.Failed():
			if withdrawn := t.withdrawIfStarved(w); withdrawn {
				return
			}
			broken = t.failed(w)
		case w.Scheduled && !w.Terminating:
			placed++
		}
	}
	switch {
	case broken != "":
		t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonMergeFailed, broken)
	case placed == run.MinReplicas:
		run.PlaceTime, t.st.SetAside = timePointer(t.p.now), nil
		run.Short, run.FitTime = false, nil
		t.watch()
	}
}

// clearEarlierAttempts deletes what earlier attempts left under the names that this one needs, and reports whether all of it is
// gone.
func (t *merge) clearEarlierAttempts() (clean bool) {
	clean = true
	for i := range t.job.Pods {
		if w := t.job.Pods[i]; w.Attempt != t.attempt() {
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

// ensureList creates the ConfigMap with exactly the increments that the run is on record to merge, and reports whether it is
// there or will be.
func (t *merge) ensureList() (ready bool) {
	run := t.st.Run
	if t.job.List != nil {
		return true
	}
	if s := t.job.Store; s != nil && s.Trouble != nil {
		t.end(v1alpha1.OutcomeWithdrawn, s.Trouble.Reason, s.Trouble.Message)
		return false
	}
	if t.fresh == nil {
		t.d.ReadStore = true // An operator that has just started does not know the names.
		return false
	}
	list, n, err := CutList(t.fresh.Increments.List, run.LastIncrement)
	if err != nil {
		t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonStoreUnreachable, err.Error())
		return false
	}
	if base := nameOf(t.st.LastFull); int32(n) != run.Increments || base != run.Base {
		// The store changed since the run was recorded: the record goes first.
		run.Base, run.Increments = base, int32(n)
		if n == t.fresh.Increments.Listed {
			run.LastIncrement = t.lastListed()
		}
		return false
	}
	t.d.CreateList = list
	return true
}

// Over tells whether nothing more is to come of the run's attempt, so that a look at the store that begins now shows what came of
// it: all pods of the core have succeeded, or one of them failed or is leaving or gone since they ran, or their time is up; where
// its end is on record, that all pods have ended.
func Over(job *v1alpha1.MergeJob, tiers config.Tiers, pods []podstate.Worker, now time.Time) bool {
	run := job.Status.Run
	if run.Outcome != "" {
		return !slices.ContainsFunc(pods, func(w podstate.Worker) bool { return !w.Ended() })
	}
	succeeded, there := int32(0), int32(0)
	for i := range pods {
		switch w := &pods[i]; {
		case w.Attempt != mergepod.Attempt(run) || w.Index >= run.MinReplicas:
		case w.Succeeded():
			succeeded++
			there++
		case !leaves(w):
			there++
		}
	}
	tier, _ := tiers.InEffect(job.Spec.Tier, job.Status.Tier)
	limit, _ := runTimeout(&job.Spec, tier)
	ran := run.RunTime != nil && (there < run.MinReplicas || !now.Before(run.RunTime.Add(limit)))
	return succeeded == run.MinReplicas || ran
}

// leaves tells of a pod that failed, is gone, or was told to go.
func leaves(w *podstate.Worker) bool {
	return w == nil || w.Terminating || w.Disruption != "" || (w.Ended() && !w.Succeeded())
}

// runTimeout is how long the job's runs may take, and whether that is as long as its tier allows, and less than the job asks for.
func runTimeout(spec *v1alpha1.MergeJobSpec, tier config.Tier) (limit time.Duration, byTier bool) {
	limit = time.Duration(ptr.Deref(spec.RunTimeoutSeconds, v1alpha1.DefaultRunTimeoutSeconds)) * time.Second
	if most := tier.LongestRun(); most > 0 && most < limit {
		return most, true
	}
	return limit, false
}

// ensureStoreRead has the store read after the attempt was over, and reports whether it was, or could not be. Until then it is
// not known whether the full model of the attempt is complete.
func (t *merge) ensureStoreRead() (read bool) {
	s := t.job.Store
	if s != nil && s.Attempt == t.attempt() && s.RunOver && (t.fresh != nil || s.Trouble != nil) {
		return true
	}
	t.d.ReadStore = true
	return false
}

// endIfRefused ends an attempt whose objects the API server refuses, and reports whether it did. What trying again may mend has
// the time that pods have to start.
func (t *merge) endIfRefused() (ended bool) {
	p := t.job.Problem
	if p == nil {
		return false
	}
	if last := p.Since.Add(t.startTimeout()); !p.Final() && t.p.now.Before(last) {
		t.p.wake(last)
		return false
	}
	t.end(v1alpha1.OutcomeFailed, p.Reason, p.Message)
	return true
}

func (t *state) startTimeout() time.Duration {
	return time.Duration(ptr.Deref(t.spec.StartTimeoutSeconds, v1alpha1.DefaultStartTimeoutSeconds)) * time.Second
}

func (t *state) attempt() string { return mergepod.Attempt(t.st.Run) }

// core has the pods of the attempt's core, by index.
func (t *state) core() map[int32]*podstate.Worker {
	core := map[int32]*podstate.Worker{}
	for i := range t.job.Pods {
		if w := &t.job.Pods[i]; w.Attempt == t.attempt() && w.Index < t.st.Run.MinReplicas {
			core[w.Index] = w
		}
	}
	return core
}

// watch follows an attempt that is placed.
func (t *merge) watch() {
	run, core := t.st.Run, t.core()
	running, succeeded := int32(0), int32(0)
	for i := range run.MinReplicas {
		w := core[i]
		if run.RunTime != nil && leaves(w) {
			// It may have merged before it left, which the store shows.
			if read := t.ensureStoreRead(); !read {
				return
			}
		}
		switch {
		case w != nil && w.Failed():
			if withdrawn := t.withdrawIfStarved(w); !withdrawn {
				t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonMergeFailed, t.failed(w))
			}
			return
		case leaves(w):
			t.lose(i, w)
			return
		case w.Succeeded():
			succeeded++
		}
		if w.Phase == corev1.PodRunning || w.Succeeded() {
			running++
		}
	}
	if run.RunTime == nil && running == run.MinReplicas {
		run.RunTime, run.Withdrawals = timePointer(t.p.now), 0
	}
	switch {
	case run.RunTime == nil:
		t.watchStart(core)
	case succeeded == run.MinReplicas:
		t.watchMarker()
	default:
		t.watchRun()
	}
}

// lose takes an attempt back that a pod of the core left. After some of them others have their turn.
func (t *merge) lose(i int32, w *podstate.Worker) {
	why := "was deleted"
	if w != nil && w.Disruption != "" {
		why = "was told to leave (" + w.Disruption + ")"
	}
	run, pod := t.st.Run, mergepod.PodName(t.job.Object.Name, i)
	if run.Losses++; run.Losses >= maxLosses {
		t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonPodsLost, fmt.Sprintf("Pod %s %s, and %d attempts of the run have lost a pod: "+
			"see what takes them (kubectl get events), for example more memory used than requested.", pod, why, run.Losses))
		return
	}
	t.end(v1alpha1.OutcomeWithdrawn, v1alpha1.ReasonAsking, fmt.Sprintf("Pod %s %s: the attempt is taken back, and the run asks "+
		"again (%d of %d times).", pod, why, run.Losses, maxLosses))
}

// failed says that a pod of the core failed.
func (t *state) failed(w *podstate.Worker) string {
	return fmt.Sprintf("Pod %s failed%s: see its logs (kubectl logs %[1]s), which stay until the next run.",
		mergepod.PodName(t.job.Object.Name, w.Index), w.Failure)
}

// watchStart takes the attempt back when its pods do not run in time.
func (t *merge) watchStart(core map[int32]*podstate.Worker) {
	run, limit := t.st.Run, t.startTimeout()
	deadline := run.PlaceTime.Add(limit)
	if t.p.now.Before(deadline) {
		t.p.wake(deadline)
		return
	}
	why := ""
	for i := range run.MinReplicas {
		if w := core[i]; w != nil && w.Waiting != "" {
			why = fmt.Sprintf(": pod %s waits (%s)", mergepod.PodName(t.job.Object.Name, i), joinWords(w.Waiting, w.WaitingMessage))
			break
		}
	}
	run.Withdrawals++
	if run.Withdrawals >= maxStartTimeouts {
		t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonStartTimeout, fmt.Sprintf("Placed %d times, the pods did not run within "+
			"startTimeoutSeconds (%s)%s. Mend what they wait for, or raise startTimeoutSeconds.", run.Withdrawals, limit, why))
		return
	}
	t.end(v1alpha1.OutcomeWithdrawn, v1alpha1.ReasonStartTimeout, fmt.Sprintf("The pods did not run within startTimeoutSeconds "+
		"(%s) of being placed%s: the attempt is taken back, and the run asks again (%d of %d times).", limit, why, run.Withdrawals,
		maxStartTimeouts))
}

// watchMarker judges a run all of whose pods succeeded, by a look at the store that began after that.
func (t *merge) watchMarker() {
	run := t.st.Run
	if read := t.ensureStoreRead(); !read || t.fresh == nil {
		return
	}
	directory := t.spec.Store.Full + run.ID + "/"
	if t.fresh.Hollow == run.ID {
		t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonNoModel, fmt.Sprintf("All pods ended with exit code 0, and in %s there is "+
			"nothing but %s: the merge program must write the full model there (TIDELINE_OUTPUT_PATH), and the marker last.", directory,
			t.spec.Store.CompletionMarker))
		return
	}
	t.end(v1alpha1.OutcomeFailed, v1alpha1.ReasonNoMarker, fmt.Sprintf("All pods ended with exit code 0, and there is no %s in "+
		"%s: the merge program must write it when the full model is complete.", t.spec.Store.CompletionMarker, directory))
}

// watchRun stops a run that takes too long, and keeps its surplus.
func (t *merge) watchRun() {
	tier := t.d.Blueprint.Tier
	limit, byTier := runTimeout(t.spec, tier)
	deadline := t.st.Run.RunTime.Add(limit)
	if !t.p.now.Before(deadline) {
		if read := t.ensureStoreRead(); !read {
			return
		}
		bound, advice := "for runTimeoutSeconds ("+limit.String()+")", "Raise runTimeoutSeconds"
		if byTier {
			bound = fmt.Sprintf("for as long as a merge of tier %s may (%s; tiers[].longestRunSeconds of the operator's configuration)",
				tier.Name, limit)
			advice = "Use more or larger pods, or create it of a tier that may run for longer"
		}
		t.end(v1alpha1.OutcomeTimedOut, v1alpha1.ReasonRunTimeout, fmt.Sprintf("The merge ran %s and its full model is not complete: "+
			"it was stopped. %s, or watch its logs while the next run runs.", bound, advice))
		return
	}
	t.p.wake(deadline)
	if t.job.Object.Status.Run.RunTime == nil {
		return // Surplus comes when the status says that the core runs.
	}
	t.makeSurplus()
}

// makeSurplus creates the pods beyond the core, once: the PodGroup comes last and says that they were created. Where Volcano does
// not let surplus give way, there is none: it would hold room that the head of the line needs. What was refused is not asked for
// again in this attempt, which goes on without.
func (t *merge) makeSurplus() {
	run := t.st.Run
	if run.MaxReplicas <= run.MinReplicas || t.job.Surplus != nil || t.job.Problem.Final() || len(t.p.o.SchedulerObstacles) > 0 ||
		run.Template != t.template() {
		return
	}
	there := map[int32]bool{}
	for i := range t.job.Pods {
		there[t.job.Pods[i].Index] = true
	}
	for i := run.MinReplicas; i < run.MaxReplicas; i++ {
		if !there[i] {
			t.d.CreatePods = append(t.d.CreatePods, i)
		}
	}
	group := t.d.Blueprint.SurplusGroup()
	t.d.CreateLast = &group
}
