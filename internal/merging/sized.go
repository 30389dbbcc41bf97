package merging

import (
	"fmt"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// sized is what use calls for in the attempt that asks.
func (t *state) sized() *v1alpha1.SizingStatus {
	if t.job.History == nil {
		return nil
	}
	tier, _ := t.tier()
	return sizing.Size(trainingpod.MergeAsks(t.job.Object, tier.QoS), *t.job.History, sizing.Rules{
		Mode: sizing.ModeOf(t.spec.Sizing, t.job.Profile), Tier: tier, Before: t.st.Sizing,
	}, t.p.now)
}

// withdrawIfStarved takes an attempt back if a pod of it ran out of memory and had been given less than it asked for. It reports
// whether it did.
func (t *merge) withdrawIfStarved(w *podstate.Worker) (withdrawn bool) {
	if !w.Failure.OutOfMemory() {
		return false
	}
	part := sizing.Part{Role: sizing.RoleOf(w.Index), Container: w.Failure.Container}
	tier, _ := t.tier()
	t.d.OOMKills = append(t.d.OOMKills, sizing.OOMKill{
		Pod: string(w.UID), Part: part, Limit: trainingpod.MergeMemoryLimit(t.job.Object, tier.QoS, w.Index, part.Container),
	})
	if !sizing.Cut(t.st.Sizing, part) {
		return false
	}
	sizing.NoteOOM(t.st.Sizing, part, t.p.now)
	t.end(v1alpha1.OutcomeWithdrawn, v1alpha1.ReasonAsking, fmt.Sprintf("Pod %s had been given less memory than it asked for, and "+
		"ran out of it: the attempt is taken back, and the run asks again, with all of it.",
		mergepod.PodName(t.job.Object.Name, w.Index)))
	return true
}
