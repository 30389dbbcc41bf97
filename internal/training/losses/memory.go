package losses

import (
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// ranOutOfCutMemory is true for a worker that ran out of memory after sizing had given it less than its template asks for. The
// operator is to blame for that, so it costs the job no restart.
func (b *Books) ranOutOfCutMemory(l *loss) bool {
	return l.failure.OutOfMemory() && l.counted && sizing.WasCut(b.Status.Sizing, sizing.Part{
		Role: trainingpod.RoleOf(b.Spec, l.index), Container: l.failure.Container,
	})
}

// noteOOM notes that a container ran out of memory, for the history of the task. If sizing had given it less than its template
// asks for, status notes it too, so that the next attempt gives it all.
func (b *Books) noteOOM(l *loss, r ruling) {
	if !l.failure.OutOfMemory() || !l.counted {
		return
	}
	part := sizing.Part{Role: trainingpod.RoleOf(b.Spec, l.index), Container: l.failure.Container}
	tier, _ := b.Tier()
	kill := sizing.OOMKill{Pod: string(l.uid), Part: part,
		Limit: trainingpod.MemoryLimit(b.Job, tier.QoS, l.index, part.Container)}
	if w := b.At[l.index]; w != nil && l.inPlace {
		kill.Restarts = w.ContainerRestarts
	}
	b.OOMKills = append(b.OOMKills, kill)
	if !r.starved {
		return
	}
	sizing.NoteOOM(b.Status.Sizing, part, b.Now)
}
