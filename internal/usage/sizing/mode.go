package sizing

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// ModeOf is the mode of sizing of a job: its own, else that of the namespace's profile, else Recommend.
func ModeOf(job *v1beta1.JobSizing, profile *v1beta1.ResourceQuotaProfile) v1beta1.SizingMode {
	mode := v1beta1.SizingRecommend
	if profile != nil && profile.Spec.Sizing != nil {
		mode = cmp.Or(profile.Spec.Sizing.Mode, mode)
	}
	return cmp.Or(ptr.Deref(job, v1beta1.JobSizing{}).Mode, mode)
}
