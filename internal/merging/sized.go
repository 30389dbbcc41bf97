package merging

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// sizeAttempt computes the requests of the attempt that asks, from what earlier pods of the job used.
func (t *state) sizeAttempt() *v1beta1.SizingStatus {
	if t.job.History == nil {
		return nil
	}
	tier, _ := t.tierInEffect()
	return sizing.SizeRequests(trainingpod.MergeAsks(t.job.Object, tier.QoS), *t.job.History, sizing.Rules{
		Mode: sizing.ModeOf(t.spec.Sizing, t.job.Profile), Tier: tier, Before: t.st.Sizing,
	}, t.p.now)
}

// withdrawIfStarved takes an attempt back if one of its pods ran out of memory with a smaller limit than its template asks
// for. It reports whether it did. Such a failure is Tideline's and not the merge program's, so the run does not fail by it.
func (t *merge) withdrawIfStarved(w *podstate.Worker) (withdrawn bool) {
	if !w.Failure.OutOfMemory() {
		return false
	}
	part := sizing.Part{Role: sizing.RoleOf(w.Index), Container: w.Failure.Container}
	tier, _ := t.tierInEffect()
	t.d.OOMKills = append(t.d.OOMKills, sizing.OOMKill{
		Pod: string(w.UID), Part: part, Limit: trainingpod.MergeMemoryLimit(t.job.Object, tier.QoS, w.Index, part.Container),
	})
	if !sizing.WasCut(t.st.Sizing, part) {
		return false
	}
	sizing.NoteOOM(t.st.Sizing, part, t.p.now)
	t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonAsking, fmt.Sprintf("Pod %s ran out of memory with a "+
		"smaller limit than its template asks for. Tideline takes the attempt back, and the run asks again with the full amount.",
		mergepod.PodName(t.job.Object.Name, w.Index)))
	return true
}
