package training

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Hosts is the ConfigMap that tells workers of each other where torchrun does not.
type Hosts struct {
	// UID of the ConfigMap; empty for one that is to be created.
	UID types.UID
	// Data are its keys.
	Data map[string]string
}

// prepareWorkers has everything there that workers to be created need. The policy comes with the core: surplus is created once
// that runs.
func (p *planner) prepareWorkers() {
	p.d.CreateNetworkPolicy = p.spec.NetworkPolicy == v1alpha1.NetworkPolicyIsolated && len(p.d.CreateWorkers) > 0
	p.tellWorkers()
}

// tellWorkers keeps what workers without torchrun are told: who there is, and how they log in to each other. The surplus that
// counts is what status lists as running, so that a burst of changes is told once, as status is written.
func (p *planner) tellWorkers() {
	if rendezvous.Torchrun(p.o.Job) {
		return
	}
	p.d.CreateSSHKeys = p.spec.Rendezvous.SSHKeys && len(p.d.CreateWorkers) > 0
	var surplus []int32
	for _, m := range p.o.Job.Status.Members {
		if p.isSurplus(m.Index) && m.Index < p.maximum && !m.Lost {
			surplus = append(surplus, m.Index)
		}
	}
	hosts := &Hosts{Data: p.d.Blueprint.Hosts(surplus)}
	if have := p.o.Hosts; have != nil {
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

// model is the model of accelerator for a new attempt: the one on which the core fits as far as is known, else that of the
// attempt before, which has fitted or was chosen, else the first listed.
func (p *planner) model() string {
	a := p.spec.Accelerator
	switch {
	case a == nil || a.Mixed || len(a.Models) == 0:
		return ""
	case slices.Contains(a.Models, p.o.Verdict.Model):
		return p.o.Verdict.Model
	case p.o.Job.Status.Attempt != nil && slices.Contains(a.Models, p.o.Job.Status.Attempt.Model):
		return p.o.Job.Status.Attempt.Model
	}
	return a.Models[0]
}

// adoptModel starts the next attempt on another model while nothing of this one has been placed and the core fits there, and not
// here. Like adoptRange, it does nothing else in this evaluation.
func (p *planner) adoptModel() bool {
	a := p.st.Attempt
	if a.Model == "" || p.o.Verdict.Model == "" || p.model() == a.Model || len(p.st.Members) > 0 {
		return false
	}
	for w := range p.workers() {
		if w.Scheduled {
			return false
		}
	}
	p.recordAttempt(a.Number + 1)
	return true
}

func (p *planner) unknownAccelerator() *Obstacle {
	if p.spec.Accelerator == nil {
		return nil
	}
	resource := config.AcceleratorResource(p.spec.Accelerator.Resource)
	if _, known := p.o.Config.Accelerators.ModelLabel(resource); known {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonUnknownAccelerator,
		Message: fmt.Sprintf("spec.accelerator.resource: in which label nodes name the model of %q is not known, as it is for %s: "+
			"delete the job and create it with one of these, or without accelerator and with a nodeSelector.",
			resource, p.o.Config.Accelerators.Names()),
		Stalled: true,
	}
}

// gpus is how many GPUs ready workers hold, worker 0 among them or not.
func (p *planner) gpus(ready int32, master bool) int64 {
	others := trainingpod.GPUs(p.o.Job, 1)
	n := int64(ready) * others
	if master {
		n += trainingpod.GPUs(p.o.Job, 0) - others
	}
	return n
}

// onModels says which models of accelerator will do for what is asked.
func (p *planner) onModels() string {
	switch a := p.spec.Accelerator; {
	case a == nil:
		return ""
	case p.st.Attempt != nil && p.st.Attempt.Model != "":
		return "; of model " + p.st.Attempt.Model
	default:
		return "; of models " + strings.Join(a.Models, ", ")
	}
}
