package training

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// outlivesRules is true for a job that need not meet the rules for new jobs, which may be stricter than when it began: its gang
// is there, its attempt goes on, or it was stopped, by its user or for another, and is what it was when that attempt began. One
// that was changed meanwhile begins like a new job: otherwise what a new job may not have would take three edits.
func outlivesRules(s *jobstate.State) bool {
	a := s.Job.Status.Attempt
	return s.Core != nil || a != nil && (!jobstate.IsStopped(&s.Job.Status) || a.Checked == hashChecked(s))
}

// hashChecked hashes what the rules for new jobs check: parts of the spec, and the tier that an attempt would have now. It leaves
// the range out, which may change at any time and whose limits always hold.
func hashChecked(s *jobstate.State) string {
	content, err := json.Marshal([]any{
		s.Spec.Template, s.Spec.Master, s.Spec.Checkpoint.GraceSeconds, s.Spec.Elasticity.Shrink.MinRunSeconds,
		s.Spec.Framework.NprocPerNode, nextTier(s),
	})
	if err != nil {
		return "" // A template that came from JSON goes back to it.
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}
