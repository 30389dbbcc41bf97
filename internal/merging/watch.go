package merging

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// watchAttempt follows an attempt whose pods are placed.
func (t *merge) watchAttempt() {
	run, core := t.st.Run, t.corePods()
	running, succeeded := int32(0), int32(0)
	for i := range run.MinReplicas {
		w := core[i]
		if run.RunTime != nil && isLeaving(w) {
			// The pods may have completed the full model before this one left. Then the run has merged and not failed.
			if read := t.ensureStoreRead(); !read {
				return
			}
		}
		switch {
		case w != nil && w.HasFailed():
			if withdrawn := t.withdrawIfStarved(w); !withdrawn {
				t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonMergeFailed, t.failureMessage(w))
			}
			return
		case isLeaving(w):
			t.withdrawAfterLoss(i, w)
			return
		case w.HasSucceeded():
			succeeded++
		}
		// A pod that has succeeded already counts as running: a short merge may end before all pods were seen to run at once.
		if w.Phase == corev1.PodRunning || w.HasSucceeded() {
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

// withdrawAfterLoss takes back an attempt that lost a pod of its core. After maxLosses of them the run fails, so that other
// merges have their turn.
func (t *merge) withdrawAfterLoss(i int32, w *podstate.Worker) {
	why := "was deleted"
	if w != nil && w.Disruption != "" {
		why = "is being evicted (" + w.Disruption + ")"
	}
	run, pod := t.st.Run, mergepod.PodName(t.job.Object.Name, i)
	if run.Losses++; run.Losses >= maxLosses {
		t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonPodsLost, fmt.Sprintf("Pod %s %s. %d attempts of the run have lost "+
			"a pod. Check why (kubectl get events): for example, the pods use more memory than they request.", pod, why, run.Losses))
		return
	}
	t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonAsking, fmt.Sprintf("Pod %s %s. Tideline takes the attempt back, "+
		"and the run asks again (loss %d; the run fails at %d).", pod, why, run.Losses, maxLosses))
}

func (t *facts) failureMessage(w *podstate.Worker) string {
	return fmt.Sprintf("Pod %s failed%s. Read its logs (kubectl logs %[1]s); they stay until the next run.",
		mergepod.PodName(t.job.Object.Name, w.Index), w.Failure)
}

// watchStart takes the attempt back if its pods do not run in time.
func (t *merge) watchStart(core map[int32]*podstate.Worker) {
	run, limit := t.st.Run, t.startTimeout()
	deadline := run.PlaceTime.Add(limit)
	if t.p.now.Before(deadline) {
		t.p.wakeAt(deadline)
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
		t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonStartTimeout, fmt.Sprintf("Volcano placed the pods %d times, and "+
			"they did not run within startTimeoutSeconds (%s)%s. Remove the cause, or raise startTimeoutSeconds.", run.Withdrawals,
			limit, why))
		return
	}
	t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonStartTimeout, fmt.Sprintf("The pods did not run within "+
		"startTimeoutSeconds (%s) after they were placed%s. Tideline takes the attempt back, and the run asks again (timeout %d; the "+
		"run fails at %d).", limit, why, run.Withdrawals,
		maxStartTimeouts))
}

// watchMarker fails a run whose pods all succeeded without a complete full model. It judges by a reading of the store that began
// after the last pod ended, because an older one may miss the marker.
func (t *merge) watchMarker() {
	run := t.st.Run
	// Without a readable store nothing tells whether the model is complete. The run stays as it is until the store answers.
	if read := t.ensureStoreRead(); !read || t.fresh == nil {
		return
	}
	directory := t.spec.Store.Full + run.ID + "/"
	if t.fresh.Hollow == run.ID {
		t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonNoModel, fmt.Sprintf("All pods ended with exit code 0, but %s contains "+
			"only %s. The merge program must write the full model there (TIDELINE_OUTPUT_PATH), and the marker last.", directory,
			t.spec.Store.CompletionMarker))
		return
	}
	if t.spec.Store.Type == v1beta1.StoreClaim {
		t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonNoMarker, fmt.Sprintf("All pods ended with exit code 0, and ConfigMap %s "+
			"does not list %s under full: the merge program must report its full model when that is complete.",
			mergepod.ReportName(t.job.Object.Name), run.ID))
		return
	}
	t.endAttempt(v1beta1.OutcomeFailed, v1beta1.ReasonNoMarker, fmt.Sprintf("All pods ended with exit code 0, and there is "+
		"no %s in "+
		"%s: the merge program must write it when the full model is complete.", t.spec.Store.CompletionMarker, directory))
}

// watchRun stops a run that takes too long, and creates its surplus before that.
func (t *merge) watchRun() {
	tier := t.d.Blueprint.Tier
	limit, byTier := runTimeout(t.spec, tier)
	deadline := t.st.Run.RunTime.Add(limit)
	if !t.p.now.Before(deadline) {
		// The marker may have been written in the last moment. advanceRun would find it in that reading.
		if read := t.ensureStoreRead(); !read {
			return
		}
		bound, advice := "for runTimeoutSeconds ("+limit.String()+")", "Raise runTimeoutSeconds"
		if byTier {
			bound = fmt.Sprintf("for as long as a merge of tier %s may (%s; tiers[].longestRunSeconds of the operator's configuration)",
				tier.Name, limit)
			advice = "Use more or larger pods, or create it of a tier that may run for longer"
		}
		t.endAttempt(v1beta1.OutcomeTimedOut, v1beta1.ReasonRunTimeout, fmt.Sprintf("The merge ran %s and its full model is "+
			"not complete: "+
			"it was stopped. %s, or watch its logs while the next run runs.", bound, advice))
		return
	}
	t.p.wakeAt(deadline)
	if t.job.Object.Status.Run.RunTime == nil {
		return // Surplus is created once the written status says that the core runs.
	}
	t.makeSurplus()
}

// makeSurplus creates the pods beyond the core, once per attempt. The PodGroup is created last and records that the pods were
// created: pods that gave way are not created again. If Volcano's configuration does not let surplus give way, there is none,
// because it would hold room that the head of the line needs. If the API server refuses it, the attempt goes on without.
func (t *merge) makeSurplus() {
	run := t.st.Run
	if run.MaxReplicas <= run.MinReplicas || t.job.Surplus != nil || t.job.Problem.IsFinal() || len(t.p.o.SchedulerObstacles) > 0 ||
		run.Template != t.templateHash() {
		return
	}
	// Pods of an earlier, incomplete try exist already: the operator may have been killed before it created the PodGroup.
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
