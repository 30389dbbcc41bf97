package merging

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// budgetInterval is how often a merge that waits for a budget looks again. Use in a window of hours or days shrinks slowly.
const budgetInterval = time.Minute

// asking is what a merge asks of the limits of its profile.
type asking struct {
	spec *v1beta1.MergeJobSpec
	// limits hold for merges, which run in the Queue of their pool.
	limits admission.Limits
	// each is what a pod and core what the gang asks for, as limits count it.
	each, core corev1.ResourceList
	// model of accelerator that the pods demand; empty for none or several.
	model string
}

func askingOf(spec *v1beta1.MergeJobSpec, profile *v1beta1.ResourceQuotaProfile, cfg *config.Configuration) asking {
	return asking{
		spec: spec, limits: admission.LimitsOf(profile).InOtherQueues(),
		each:  trainingpod.MergeCounted(spec, 1, cfg.Sharing),
		core:  trainingpod.MergeCounted(spec, spec.MinReplicas, cfg.Sharing),
		model: admission.ModelOf(nil, &spec.Template.Spec, cfg.Accelerators),
	}
}

func (t *state) asking() asking { return askingOf(t.spec, t.job.Profile, t.p.o.Config) }

// mostPods is how many pods a run may grow to: maxReplicas, or what the caps leave.
func (a asking) mostPods() int32 {
	return a.limits.MostPods(a.spec.MinReplicas, a.spec.MaxReplicas, admission.HeldBy(a.each, 1), a.model)
}

// aboveCap keeps out a merge whose pods exceed a cap of its profile by themselves.
func aboveCap(t *state) *obstacle {
	a := t.asking()
	limit, asked := a.limits.NeverFits(admission.HeldBy(a.core, a.spec.MinReplicas), a.model)
	if limit == nil {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonQuotaExceeded, short: "above a cap", stalled: true, message: limit.TooLarge(
		asked, t.job.Profile.Name) + ". Lower minReplicas, or ask an administrator to raise the limit."}
}

// budgetUsedUp keeps a merge with accelerators out of the line while its owner has used up a budget. A run that has begun goes
// on.
func budgetUsedUp(t *state) *obstacle {
	over := admission.BudgetUsedUp(t.job.Profile, t.owner().User, v1beta1.ExceededQueue, v1beta1.ExceededDeny)
	if over == nil || t.p.o.Config.AcceleratorsAmong(t.asking().core) == 0 {
		return nil
	}
	if over.User == "" {
		return &obstacle{reason: v1beta1.ReasonQuotaExceeded, short: "no budget", stalled: true, message: fmt.Sprintf(
			"Profile %s gives users no accelerator hours in %s. Remove the accelerators, or ask an administrator for hours.",
			t.job.Profile.Name, text.FormatDuration(over.Window.Duration))}
	}
	t.p.wakeAt(t.p.now.Add(budgetInterval))
	return &obstacle{reason: v1beta1.ReasonQuotaExceeded, short: "budget used up", message: fmt.Sprintf(
		"%s has used %d of %d accelerator hours in %[5]s (profile %[4]s). The merge joins the line by itself when enough of "+
			"them are older than %[5]s.", over.User, over.UsedHours, over.MaxHours, t.job.Profile.Name,
		text.FormatDuration(over.Window.Duration))}
}
