package training

import (
	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// prepareWorkers has everything there that workers to be created need. The policy comes with the core: surplus is created once
// that runs.
func (p *planner) prepareWorkers() {
	p.d.CreateNetworkPolicy = p.Spec.NetworkPolicy == v1alpha1.NetworkPolicyIsolated && len(p.d.CreateWorkers) > 0
	p.tellWorkers()
}

// tellWorkers keeps what workers without torchrun are told: who there is, and how they log in to each other. The surplus that
// counts is what status lists as running, so that a burst of changes is told once, as status is written.
func (p *planner) tellWorkers() {
	if rendezvous.Torchrun(p.Job) {
		return
	}
	p.d.CreateSSHKeys = p.Spec.Rendezvous.SSHKeys && len(p.d.CreateWorkers) > 0
	var surplus []int32
	for _, m := range p.Job.Status.Members {
		if p.IsSurplus(m.Index) && m.Index < p.Maximum && !m.Lost {
			surplus = append(surplus, m.Index)
		}
	}
	hosts := &jobstate.Hosts{Data: p.d.Blueprint.Hosts(surplus)}
	if have := p.Hosts; have != nil {
		hosts.UID = have.UID
		if says(have.Data, hosts.Data) {
			return
		}
	}
	p.d.WriteHosts = hosts
}

// says tells whether the data have all that is wanted; what somebody added is theirs.
func says(data, wanted map[string]string) bool {
	for key, want := range wanted {
		if have, ok := data[key]; !ok || have != want {
			return false
		}
	}
	return true
}
