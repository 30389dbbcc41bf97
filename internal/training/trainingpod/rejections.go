package trainingpod

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// ManyRejections is after how many rejections of one worker in a row, by any nodes, other jobs no longer make room for its job:
// the worker would probably be rejected again.
const ManyRejections = 3

// RejectedAgain is true if nodes have rejected a core worker of the job ManyRejections times and it has not run since.
func RejectedAgain(st *v1beta1.ElasticTrainingJobStatus) bool {
	return st.Attempt != nil && slices.ContainsFunc(st.Members, func(m v1beta1.Member) bool {
		if m.Index >= st.Attempt.MinReplicas || !m.IsLost() || m.HasLeft() {
			return false
		}
		r, _ := st.RetryOf(m.Index)
		return r.Rejections >= ManyRejections
	})
}
