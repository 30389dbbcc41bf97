package sizing

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// ModeOf is what becomes of what a task was seen using: what its job says, else the profile of the namespace, else advice.
func ModeOf(job *v1alpha1.JobSizing, profile *v1alpha1.ResourceQuotaProfile) v1alpha1.SizingMode {
	mode := v1alpha1.SizingRecommend
	if profile != nil && profile.Spec.Sizing != nil {
		mode = cmp.Or(profile.Spec.Sizing.Mode, mode)
	}
	return cmp.Or(ptr.Deref(job, v1alpha1.JobSizing{}).Mode, mode)
}
