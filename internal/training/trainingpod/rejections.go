package trainingpod

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// ManyRejections is after how many rejections of one worker in a row, by whatever nodes, its job claims no room that others have:
// what leaves for it would be rejected again.
const ManyRejections = 3

// RejectedAgain tells whether kubelets have rejected a core worker of a job that often, and it has not run since.
func RejectedAgain(st *v1alpha1.ElasticTrainingJobStatus) bool {
	return st.Attempt != nil && slices.ContainsFunc(st.Members, func(m v1alpha1.Member) bool {
		return m.Index < st.Attempt.MinReplicas && m.Lost && !m.Left && m.Rejections >= ManyRejections
	})
}
