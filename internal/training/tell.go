package training

import (
	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/pages"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// prepareWorkers decides on the objects that the workers of this decision need: NetworkPolicy, key pair, list of hosts. It runs
// with the core; surplus is created later and finds them.
func (p *planner) prepareWorkers() {
	p.d.CreateNetworkPolicy = p.Spec.NetworkPolicy == v1beta1.NetworkPolicyIsolated && len(p.d.CreateWorkers) > 0
	p.tellWorkers()
}

// planPages plans how the pages of worker 0 are reached. It is no phase: whatever stops the job from creating workers, what runs
// keeps its pages, and what has ended or stopped loses them.
func planPages(p *planner) {
	plan := pages.PlanPages(pages.Input{
		Job: p.Job, Config: p.Config.Pages, Seen: p.Pages, Now: p.Now,
		Runs: p.Status.Attempt != nil && p.Invalid == "" && !jobstate.IsFinished(p.Status) && !jobstate.IsStopped(p.Status),
	})
	p.d.Pages, p.Status.Pages, p.Status.PageRoute = plan, plan.Pages, plan.RouteKind
	if plan.RequeueAfter > 0 {
		p.requeueAfter(plan.RequeueAfter)
	}
	if plan.Status == "" {
		p.ConditionWriter().Remove(v1beta1.ConditionPagesRouted)
		return
	}
	p.ConditionWriter().Set(v1beta1.ConditionPagesRouted, plan.Status, plan.Reason, plan.Message)
}

// tellWorkers keeps the ConfigMap of host names, and the key pair, of workers that do not use torchrun.
func (p *planner) tellWorkers() {
	if rendezvous.UsesTorchrun(p.Spec) {
		return // Its agents find each other by their rendezvous.
	}
	p.d.CreateSSHKeys = p.Spec.Framework.SSH == v1beta1.SSHKeyPair && len(p.d.CreateWorkers) > 0
	// Surplus is listed as the written status has it, so that a burst of changes writes the ConfigMap once.
	var surplus []int32
	for _, m := range p.Job.Status.Members {
		if p.IsSurplus(m.Index) && m.Index < p.Maximum && !m.IsLost() {
			surplus = append(surplus, m.Index)
		}
	}
	hosts := &jobstate.Hosts{Data: p.d.Blueprint.HostFiles(surplus)}
	if have := p.Hosts; have != nil {
		hosts.UID = have.UID
		if containsAll(have.Digests, hosts.Data) {
			return
		}
	}
	p.d.WriteHosts = hosts
}

// containsAll is true if the digests are those of every wanted entry. Entries that somebody added do not matter.
func containsAll(digests, wanted map[string]string) bool {
	for key, want := range wanted {
		if have, ok := digests[key]; !ok || have != text.Digest(want) {
			return false
		}
	}
	return true
}
