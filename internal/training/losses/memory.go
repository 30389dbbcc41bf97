package losses

import (
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// starved tells whether a worker ran out of memory of which it had been given less than it asked for. Nobody but the operator
// is to blame for that.
func (b *Books) starved(l *loss) bool {
	return l.failure.OutOfMemory() && l.counted && sizing.Cut(b.Status.Sizing, sizing.Part{
		Role: sizing.RoleOf(l.index), Container: l.failure.Container,
	})
}

// noteOOM remembers that a container ran out of memory: in status where it had been given less than it asked for, so that it is
// given all of it from the next attempt on, and for those who keep what the task uses.
func (b *Books) noteOOM(l *loss, r ruling) {
	if !l.failure.OutOfMemory() || !l.counted {
		return
	}
	part := sizing.Part{Role: sizing.RoleOf(l.index), Container: l.failure.Container}
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
