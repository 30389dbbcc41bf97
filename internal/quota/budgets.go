package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// Budget is what was used of one of a profile's budgets, in the order of its spec.
type Budget struct {
	// Known is false while the ledger was not read. Unread is true of such a budget while it is being read.
	Known, Unread bool
	// ByUser is in thousandths of an accelerator × seconds.
	ByUser map[string]int64
	// Since is from when the use is known, if that is later than the window began; zero if all of it is.
	Since time.Time
}

// knownSince is when the ledger began, if some budget's window began before; zero if not.
func (r *review) knownSince() time.Time {
	var since time.Time
	if r.profile.Spec.Caps == nil {
		return since
	}
	for _, b := range r.p.o.Budgets[r.profile.Name] {
		if b.Known && b.Since.After(since) {
			since = b.Since
		}
	}
	return since
}

// sayOverBudget lists the users who have used up a budget, and returns the number of budgets whose use is unknown, and of those
// that are being read. Of the latter the status stays as it was: an operator that begins anew lets no user over budget in.
func (r *review) sayOverBudget() (unknown, unread int) {
	before := r.st.OverBudget
	r.st.OverBudget = nil
	if r.profile.Spec.Caps == nil {
		return 0, 0
	}
	budgets := r.p.o.Budgets[r.profile.Name]
	for i, h := range r.profile.Spec.Caps.AcceleratorHours {
		switch {
		case i >= len(budgets) || !budgets[i].Known && !budgets[i].Unread:
			unknown++
			continue
		case budgets[i].Unread:
			unread++
			for _, o := range before {
				if o.Window == h.Window && o.MaxHours == int64(h.PerUser) && len(r.st.OverBudget) < v1beta1.OverBudgetLimit {
					r.st.OverBudget = append(r.st.OverBudget, o)
				}
			}
			continue
		}
		for _, user := range slices.Sorted(maps.Keys(budgets[i].ByUser)) {
			used := budgets[i].ByUser[user]
			if user != "" && used >= int64(h.PerUser)*admission.Hour && len(r.st.OverBudget) < v1beta1.OverBudgetLimit {
				r.st.OverBudget = append(r.st.OverBudget, v1beta1.OverBudget{
					User: user, Window: h.Window, UsedHours: used / admission.Hour, MaxHours: int64(h.PerUser), OnExceeded: h.OnExceeded,
				})
			}
		}
	}
	return unknown, unread
}

// setBudgetExceeded names the first users who have used up a budget. While budgets are being read it stays as it was.
func (r *review) setBudgetExceeded(unknown, unread int) {
	if unread > 0 {
		return
	}
	var words []string
	for _, o := range r.st.OverBudget[:min(len(r.st.OverBudget), namedConflicts)] {
		words = append(words, fmt.Sprintf("%s with %d of %d hours in %s",
			o.User, o.UsedHours, o.MaxHours, text.FormatDuration(o.Window.Duration)))
	}
	if more := len(r.st.OverBudget) - namedConflicts; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	partly := ""
	if since := r.knownSince(); !since.IsZero() {
		partly = fmt.Sprintf("The use before %s is unknown, because the ledger began then: budgets count what was used since.",
			since.UTC().Format(time.RFC3339))
	}
	switch {
	case len(words) > 0:
		r.setCondition(v1beta1.ConditionBudgetExceeded, metav1.ConditionTrue, v1beta1.ReasonBudgetExceeded, strings.TrimSpace(
			fmt.Sprintf("Used up their accelerator hours: %s. Jobs that run continue. %s", strings.Join(words, ", "), partly)))
	case unknown > 0:
		r.setCondition(v1beta1.ConditionBudgetExceeded, metav1.ConditionUnknown, v1beta1.ReasonLedgerUnavailable,
			"The use of accelerators is unknown, because the ledger cannot be read or the operator keeps none (ledger in its "+
				"configuration). Until it is known, budgets block no job.")
	case partly != "":
		r.setCondition(v1beta1.ConditionBudgetExceeded, metav1.ConditionUnknown, v1beta1.ReasonLedgerBegan, partly)
	default:
		r.conditionWriter().Remove(v1beta1.ConditionBudgetExceeded)
	}
}

// setLedgerVolatile says of a profile with budgets that they begin anew with each pod of the operator.
func (r *review) setLedgerVolatile() {
	if r.p.o.LedgerVolatile == "" || r.profile.Spec.Caps == nil || len(r.profile.Spec.Caps.AcceleratorHours) == 0 {
		r.conditionWriter().Remove(v1beta1.ConditionLedgerVolatile)
		return
	}
	r.setCondition(v1beta1.ConditionLedgerVolatile, metav1.ConditionTrue, v1beta1.ReasonLostWithPod,
		r.p.o.LedgerVolatile+" Budgets begin anew with each pod of the operator.")
}
