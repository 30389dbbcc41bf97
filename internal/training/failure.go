package training

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// sameFailureWindow is how close together two equal failures make a third one certain.
	sameFailureWindow = 10 * time.Minute
	// incidentWindow is how long after a restart the first restart of each other worker is taken for the same incident: when
	// worker 0 is lost its store dies with it and every agent exits, and which of them is noticed first is chance.
	incidentWindow = time.Minute
	// firstBackoff and longestBackoff bound how long a failed pod stays, as evidence and as a brake, before it is replaced.
	firstBackoff, longestBackoff = 10 * time.Second, 5 * time.Minute
)

// occurrence is what happened to a worker, as the rules of a failure policy see it.
type occurrence struct {
	index      int32
	event      v1alpha1.FailureEvent
	exitCode   int32
	conditions []string
	reasons    []string
}

// ruling is what a failure policy says of an occurrence.
type ruling struct {
	action v1alpha1.FailureAction
	// rule names the rule that decided; empty when none of the user's did.
	rule string
	// starved is true for a worker that ran out of memory of which it had been given less than it asked for.
	starved bool
}

// ruleOn is what the policy says of a loss. Nobody's peer was lost with a worker that never ran: it was to come, and will come
// later. Nor did a stranded worker complete its task.
func (p *planner) ruleOn(l *loss) ruling {
	switch {
	case l.stranded, !l.ran && (l.disruption != "" || l.rejected):
		return ruling{action: v1alpha1.ActionRestartWorker}
	case p.starved(l):
		return ruling{action: v1alpha1.ActionRestartJob, starved: true}
	}
	return p.rule(l.occurrence())
}

// rule finds the first rule that matches. Without one the worker is replaced, which is what torchrun wants.
func (p *planner) rule(o occurrence) ruling {
	if policy := p.spec.FailurePolicy; policy != nil {
		for i := range policy.Rules {
			if r := &policy.Rules[i]; matches(r, o) {
				name := r.Name
				if name == "" {
					name = strconv.Itoa(i)
				}
				return ruling{action: r.Action, rule: name}
			}
		}
	}
	if p.spec.Rendezvous.Backend == v1alpha1.BackendNone {
		// Workers that know each other by name and number do not go on without one of them.
		switch {
		case o.event == v1alpha1.OnPodEvicted, o.event == v1alpha1.OnNodeLost:
			return ruling{action: v1alpha1.ActionRestartJob}
		case o.event == v1alpha1.OnTaskCompleted && o.index == 0 && p.masterDecides():
			return ruling{action: v1alpha1.ActionCompleteJob}
		}
	}
	return ruling{action: v1alpha1.ActionRestartWorker}
}

func matches(r *v1alpha1.FailureRule, o occurrence) bool {
	switch {
	case len(r.OnEvents) > 0 && !slices.Contains(r.OnEvents, o.event):
		return false
	case r.OnWorkers != "" && (r.OnWorkers == v1alpha1.WorkerRoleMaster) != (o.index == 0):
		return false
	case r.OnExitCodes != nil && !matchesCode(r.OnExitCodes, o.exitCode):
		return false
	case len(r.OnPodConditions) > 0 && !overlap(r.OnPodConditions, o.conditions):
		return false
	case len(r.OnReasons) > 0 && !overlap(r.OnReasons, o.reasons):
		return false
	}
	return true
}

func matchesCode(c *v1alpha1.ExitCodes, code int32) bool {
	return code != 0 && slices.Contains(c.Values, code) == (c.Operator == v1alpha1.ExitCodesIn)
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// outcome is the end, or the new attempt, that what happened in one evaluation leads to.
type outcome struct {
	// action is ActionFailJob, ActionCompleteJob or ActionRestartJob; empty when the job goes on as it is.
	action          v1alpha1.FailureAction
	reason, message string
}

// weight orders outcomes: of several in one evaluation the heaviest is meant. What the user's rules say of an end outweighs the
// budget.
func (o outcome) weight() int {
	switch {
	case o.action == "":
		return 0
	case o.action == v1alpha1.ActionRestartJob:
		return 1
	case o.reason != v1alpha1.ReasonFailurePolicy:
		return 2
	case o.action == v1alpha1.ActionCompleteJob:
		return 3
	}
	return 4
}

func (p *planner) leadTo(o outcome) {
	if o.weight() > p.outcome.weight() {
		p.outcome = o
	}
}

// answer does what the policy says of a loss that was just recorded.
func (p *planner) answer(l *loss, r ruling) {
	by := "by rule " + strconv.Quote(r.rule) + " of the failure policy"
	switch {
	case r.starved:
		by = "with the memory that they ask for, because one had been given less and ran out of it"
	case r.rule == "":
		by = "because rendezvous.backend is None"
	}
	what := l.describe()
	switch r.action {
	case v1alpha1.ActionFailJob:
		p.leadTo(outcome{r.action, v1alpha1.ReasonFailurePolicy, fmt.Sprintf("The job has failed %s: %s.", by, what)})
	case v1alpha1.ActionCompleteJob:
		p.leadTo(outcome{r.action, v1alpha1.ReasonFailurePolicy, fmt.Sprintf("The job is complete %s: %s.", by, what)})
	case v1alpha1.ActionRestartJob:
		p.leadTo(outcome{r.action, v1alpha1.ReasonRestarting, fmt.Sprintf("All workers are created anew %s: %s.", by, what)})
	case v1alpha1.ActionIgnore:
		l.left = l.left || p.isSurplus(l.index) // Without a whole core nobody trains.
	case v1alpha1.ActionRestartWorker:
	}
}

// countRestarts books restarts against the budget, and gives the job up when it is spent or when the same failure comes again.
// A rule of the user's that says to go on is trusted over the latter.
func (p *planner) countRestarts(l *loss, r ruling, restarts int32, again bool) {
	p.noteProgress(l.progress)
	if r.starved {
		return // That was our doing.
	}
	before := p.o.Job.Status.LastFailure
	p.st.Restarts += restarts
	p.noteRestarts(l, restarts)
	p.st.LastFailure = &v1alpha1.WorkerFailure{
		Worker: l.index, Time: p.time(), ExitCode: l.failure.ExitCode,
		Reason: text.Clip(l.reason(), 256), Message: text.Clip(l.failure.LastLine(), 1024), InPlace: l.inPlace,
		LostSince: p.lostSince(),
	}
	limit := ptr.Deref(p.spec.RunPolicy.MaxRestarts, v1alpha1.DefaultMaxRestarts)
	p.st.RestartTimes = slices.DeleteFunc(p.st.RestartTimes, func(t metav1.Time) bool { return !t.Add(p.window()).After(p.now) })
	for range min(restarts, limit+1-int32(len(p.st.RestartTimes))) {
		p.st.RestartTimes = append(p.st.RestartTimes, p.time())
	}
	if n := len(p.st.RestartTimes); n > int(limit) {
		p.leadTo(outcome{v1alpha1.ActionFailJob, v1alpha1.ReasonTooManyRestarts, fmt.Sprintf(
			"%d restarts within %s are more than runPolicy.maxRestarts (%d) allows; the last: %s.", n, p.window(), limit, l.describe())})
	}
	if r.rule == "" && again && before != nil && !p.progressed && sameFailure(before, p.st.LastFailure) &&
		p.now.Sub(before.Time.Time) < sameFailureWindow {
		p.leadTo(outcome{v1alpha1.ActionFailJob, v1alpha1.ReasonSameFailureTwice, fmt.Sprintf(
			"The same failure twice within %s, and no progress in between: %s.", sameFailureWindow, l.describe())})
	}
}

// noteProgress forgives the restarts before progress that the training reported.
func (p *planner) noteProgress(reported int64) {
	if master := p.at[0]; master != nil {
		reported = max(reported, master.Progress)
	}
	if reported <= p.st.Progress {
		return
	}
	p.st.Progress, p.st.RestartTimes = reported, nil
	p.st.LastFailure = nil
	p.progressed = true
}

// sameFailure tells whether two failures are equal in what they say, numbers apart, which may be times, ranks and addresses. One
// that says nothing is like no other.
func sameFailure(a, b *v1alpha1.WorkerFailure) bool {
	return a.Message != "" && numbers.ReplaceAllString(a.Message, "#") == numbers.ReplaceAllString(b.Message, "#") &&
		a.ExitCode == b.ExitCode && a.Reason == b.Reason
}

var numbers = regexp.MustCompile(`(0x)?[0-9][0-9a-f]*`)

func (p *planner) window() time.Duration {
	return time.Duration(ptr.Deref(p.spec.RunPolicy.WindowSeconds, v1alpha1.DefaultWindowSeconds)) * time.Second
}

// backoff is how long a pod that failed for the nth time in a row stays.
func backoff(failures int32) time.Duration {
	d := firstBackoff
	for range failures - 1 {
		if d *= 2; d > longestBackoff {
			return longestBackoff
		}
	}
	return d
}

// event is what happened, in the words of the failure policy.
func (l *loss) event() v1alpha1.FailureEvent {
	switch {
	case l.completed:
		return v1alpha1.OnTaskCompleted
	case l.disruption == reasonNodeGone, l.disruption == reasonTaint, l.rejected:
		return v1alpha1.OnNodeLost
	case l.disruption != "":
		return v1alpha1.OnPodEvicted
	}
	return v1alpha1.OnPodFailed
}

// Reasons of condition DisruptionTarget that stand for a lost node: of kube-controller-manager's pod garbage collector, for a pod
// whose node is gone or out of service, and of its taint eviction, for one whose node is unreachable.
const (
	reasonNodeGone = "DeletionByPodGC"
	reasonTaint    = "DeletionByTaintManager"
)

func (l *loss) occurrence() occurrence {
	o := occurrence{index: l.index, event: l.event(), exitCode: l.failure.ExitCode, conditions: l.conditions}
	for _, reason := range []string{l.disruption, l.failure.Reason} {
		if reason != "" {
			o.reasons = append(o.reasons, reason)
		}
	}
	return o
}

// reason is one word for what happened.
func (l *loss) reason() string {
	switch {
	case l.disruption != "":
		return l.disruption
	case l.failure.Reason != "":
		return l.failure.Reason
	case l.failure.ExitCode != 0:
		return "Error"
	}
	return deleted
}

// describe says what happened to the worker: "worker 3 failed with exit code 1 (Error): last line".
func (l *loss) describe() string {
	who := fmt.Sprintf("worker %d", l.index)
	switch {
	case l.completed:
		return who + " succeeded"
	case l.disruption != "":
		return who + " was evicted (" + l.disruption + ")"
	case l.rejected:
		return who + " was rejected by node " + l.node + l.failure.String()
	case l.failure == (podstate.Failure{}):
		return who + " was deleted"
	}
	return who + " failed" + l.failure.String()
}
