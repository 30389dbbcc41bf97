package sizing

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// ModeOf is the mode of sizing of a job: its own, else that of the namespace's profile, else Recommend.
func ModeOf(job *v1alpha1.JobSizing, profile *v1alpha1.ResourceQuotaProfile) v1alpha1.SizingMode {
	mode := v1alpha1.SizingRecommend
	if profile != nil && profile.Spec.Sizing != nil {
		mode = cmp.Or(profile.Spec.Sizing.Mode, mode)
	}
	return cmp.Or(ptr.Deref(job, v1alpha1.JobSizing{}).Mode, mode)
}
