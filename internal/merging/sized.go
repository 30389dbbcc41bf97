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
func (t *turn) sized() *v1alpha1.SizingStatus {
	if t.job.History == nil {
		return nil
	}
	tier, _ := t.tier()
	return sizing.Size(trainingpod.MergeAsks(t.job.Object, tier.QoS), *t.job.History, sizing.Rules{
		Mode: sizing.ModeOf(t.spec.Sizing, t.job.Profile), Tier: tier, Before: t.st.Sizing,
	}, t.p.now)
}

// starved takes an attempt back of which a pod ran out of memory of which it had been given less than it asked for, and tells
// whether it did: the run asks again, with all of it. A pod that ran out of what it asked for is noted too.
func (t *turn) starved(w *podstate.Worker) bool {
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
