package training

import (
	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// sized is what use calls for in the attempt that begins.
func (p *planner) sized() *v1alpha1.SizingStatus {
	if p.o.History == nil {
		return nil
	}
	tier, _ := p.tier()
	return sizing.Size(trainingpod.Asks(p.o.Job, tier.QoS), *p.o.History, sizing.Rules{
		Mode: sizing.ModeOf(p.spec.Sizing, p.o.Profile), Tier: tier, Before: p.st.Sizing,
	}, p.now)
}

// starved tells whether a worker ran out of memory of which it had been given less than it asked for. Nobody but the operator
// is to blame for that.
func (p *planner) starved(l *loss) bool {
	return l.failure.OutOfMemory() && l.counted && sizing.Cut(p.st.Sizing, sizing.Part{
		Role: sizing.RoleOf(l.index), Container: l.failure.Container,
	})
}

// noteOOM remembers that a container ran out of memory: in status where it had been given less than it asked for, so that it is
// given all of it from the next attempt on, and for those who keep what the task uses.
func (p *planner) noteOOM(l *loss, r ruling) {
	if !l.failure.OutOfMemory() || !l.counted {
		return
	}
	part := sizing.Part{Role: sizing.RoleOf(l.index), Container: l.failure.Container}
	tier, _ := p.tier()
	kill := sizing.OOMKill{Pod: string(l.uid), Part: part,
		Limit: trainingpod.MemoryLimit(p.o.Job, tier.QoS, l.index, part.Container)}
	if w := p.at[l.index]; w != nil && l.inPlace {
		kill.Restarts = w.ContainerRestarts
	}
	p.d.OOMKills = append(p.d.OOMKills, kill)
	if !r.starved {
		return
	}
	sizing.NoteOOM(p.st.Sizing, part, p.now)
}
