package merging

import (
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// budgetInterval is how often a merge that waits for a budget looks again. Use in a window of hours or days shrinks slowly.
const budgetInterval = time.Minute

// limits are those of the profile that hold for merges, which run in the Queue of their pool.
func (t *state) limits() admission.Limits { return admission.LimitsOf(t.job.Profile).InOtherQueues() }

// counted is what n pods ask for as limits count it.
func (t *state) counted(n int32) admission.MilliAmounts {
	return admission.MilliAmountsOf(trainingpod.MergeCounted(t.spec, n, t.p.o.Config.Sharing))
}

// model of accelerator that the pods demand; empty for none or several.
func (t *state) model() string {
	return admission.ModelOf(nil, &t.spec.Template.Spec, t.p.o.Config.Accelerators)
}

// aboveCap keeps out a merge whose pods exceed a cap of its profile by themselves.
func aboveCap(t *state) *obstacle {
	limit, asked := t.limits().NeverFits(t.counted(t.spec.MinReplicas), t.model())
	if limit == nil {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonQuotaExceeded, short: "above a cap", stalled: true, message: limit.TooLarge(
		asked, t.job.Profile.Name) + ". Lower minReplicas, or ask an administrator to raise the limit."}
}

// budgetUsedUp keeps a merge with accelerators out of the line while its owner has used up a budget. A run that has begun goes
// on.
func budgetUsedUp(t *state) *obstacle {
	over := admission.BudgetUsedUp(t.job.Profile, t.owner().User, v1alpha1.ExceededQueue, v1alpha1.ExceededDeny)
	if over == nil ||
		t.p.o.Config.AcceleratorsAmong(trainingpod.MergeCounted(t.spec, t.spec.MinReplicas, t.p.o.Config.Sharing)) == 0 {
		return nil
	}
	if over.User == "" {
		return &obstacle{reason: v1alpha1.ReasonQuotaExceeded, short: "no budget", stalled: true, message: fmt.Sprintf(
			"Profile %s gives users no accelerator hours in %s. Remove the accelerators, or ask an administrator for hours.",
			t.job.Profile.Name, text.FormatDuration(over.Window.Duration))}
	}
	t.p.wakeAt(t.p.now.Add(budgetInterval))
	return &obstacle{reason: v1alpha1.ReasonQuotaExceeded, short: "budget used up", message: fmt.Sprintf(
		"%s has used %d of %d accelerator hours in %[5]s (profile %[4]s). The merge joins the line by itself when enough of "+
			"them are older than %[5]s.", over.User, over.UsedHours, over.MaxHours, t.job.Profile.Name,
		text.FormatDuration(over.Window.Duration))}
}

// mostPods is how many pods a run may grow to: maxReplicas, or what the caps of the profile leave.
func (t *state) mostPods() int32 {
	return t.limits().MostPods(t.spec.MinReplicas, t.spec.MaxReplicas, t.counted(1), t.model())
}
