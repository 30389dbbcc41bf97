package losses

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// ruling is what to do about an occurrence.
type ruling struct {
	action v1beta1.FailureAction
	// rule names the user's rule that decided; empty if the operator's default did.
	rule string
	// gang is true where one loss restarts all workers because they cannot go on without one of them.
	gang bool
	// starved is true for a worker that ran out of memory after sizing gave it less than its template asks for.
	starved bool
}

func ruleMatches(r *v1beta1.FailureRule, o occurrence) bool {
	switch {
	case len(r.OnEvents) > 0 && !slices.Contains(r.OnEvents, o.event):
		return false
	case len(r.Targets) > 0 && !slices.ContainsFunc(r.Targets, func(t v1beta1.WorkerTarget) bool { return t.Contains(o.index) }):
		return false
	case r.OnExitCodes != nil && !matchesCode(r.OnExitCodes, o.exitCode):
		return false
	case len(r.OnPodConditions) > 0 && !haveCommon(r.OnPodConditions, o.conditions):
		return false
	case len(r.OnReasons) > 0 && !haveCommon(r.OnReasons, o.reasons):
		return false
	}
	return true
}

func matchesCode(c *v1beta1.ExitCodes, code int32) bool {
	// Zero is for a worker without an exit code, which NotIn would match.
	return code != 0 && slices.Contains(c.Values, code) == (c.Operator == v1beta1.ExitCodesIn)
}

func haveCommon(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// Outcome is the end or the new attempt that the losses of one evaluation lead to.
type Outcome struct {
	// Action is ActionFailJob, ActionCompleteJob or ActionRestartJob; empty if the job continues.
	Action          v1beta1.FailureAction
	Reason, Message string
}

// weight orders outcomes: if one evaluation yields several, the one with the highest weight wins. An end by a rule of the user's
// outweighs one by the budget, because the user wrote it for this case.
func (o Outcome) weight() int {
	switch {
	case o.Action == "":
		return 0
	case o.Action == v1beta1.ActionRestartJob:
		return 1
	case o.Reason != v1beta1.ReasonFailurePolicy:
		return 2
	case o.Action == v1beta1.ActionCompleteJob:
		return 3
	}
	return 4
}

// ruleOn decides what to do about a loss.
func (b *Books) ruleOn(l *loss) ruling {
	switch {
	case l.stranded, !l.ran && (l.disruption != "" || l.rejected):
		// A stranded worker did not complete its task. A worker that was evicted before it ran never joined the rendezvous, so no
		// peer has to restart.
		return ruling{action: v1beta1.ActionRestartWorker}
	case b.ranOutOfCutMemory(l):
		return ruling{action: v1beta1.ActionRestartJob, starved: true}
	}
	o := l.asOccurrence()
	o.aside = !b.endsTraining(l)
	return b.matchRule(o)
}

// matchRule returns the first rule that matches. Without one the worker is replaced, which torchrun's agents can absorb; workers
// without torchrun start anew together.
func (b *Books) matchRule(o occurrence) ruling {
	if policy := b.Spec.FailurePolicy; policy != nil {
		for i := range policy.Rules {
			if r := &policy.Rules[i]; ruleMatches(r, o) {
				name := r.Name
				if name == "" {
					name = strconv.Itoa(i)
				}
				return ruling{action: r.Action, rule: name}
			}
		}
	}
	if !rendezvous.UsesTorchrun(b.Spec) {
		// Workers that know each other by name and number, as MPI's do, cannot continue without one of them.
		switch {
		case o.event != v1beta1.OnTaskCompleted && !o.aside:
			return ruling{action: v1beta1.ActionRestartJob, gang: true}
		case o.event == v1beta1.OnTaskCompleted && o.index == 0 && b.MasterDecides():
			return ruling{action: v1beta1.ActionCompleteJob}
		}
	}
	return ruling{action: v1beta1.ActionRestartWorker}
}

// leadTo makes o the outcome if it outweighs the one so far.
func (b *Books) leadTo(o Outcome) {
	if o.weight() > b.Outcome.weight() {
		b.Outcome = o
	}
}

// applyRuling carries a ruling out for a loss that was just recorded.
func (b *Books) applyRuling(l *loss, r ruling) {
	by := "by rule " + strconv.Quote(r.rule) + " of the failure policy"
	switch {
	case r.starved:
		by = "with all the memory that they ask for, because one was given less and ran out of it"
	case r.rule == "":
		by = "because framework.type is " + string(b.Spec.Framework.Type)
	}
	what := l.describeLoss()
	switch r.action {
	case v1beta1.ActionFailJob:
		b.leadTo(Outcome{r.action, v1beta1.ReasonFailurePolicy, fmt.Sprintf("The job has failed %s: %s.", by, what)})
	case v1beta1.ActionCompleteJob:
		b.leadTo(Outcome{r.action, v1beta1.ReasonFailurePolicy, fmt.Sprintf("The job is complete %s: %s.", by, what)})
	case v1beta1.ActionRestartJob:
		b.leadTo(Outcome{r.action, v1beta1.ReasonRestarting, fmt.Sprintf("All workers are created again %s: %s.", by, what)})
	case v1beta1.ActionIgnore:
		l.left = l.left || b.IsSurplus(l.index) // A core worker is replaced all the same: without a whole core no worker trains.
	case v1beta1.ActionRestartWorker:
	}
}
