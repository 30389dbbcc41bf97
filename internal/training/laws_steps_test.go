package training

import (
	"slices"

	"github.com/tideline-io/tideline/internal/capacity"
)

// createsWithin holds new surplus to where the verdict has room for its step, and to whole steps.
func (m *planned) createsWithin() bool {
	if m.o.Job.Spec.Elasticity.StepWithin == nil {
		return len(m.d.Blueprint.StepDomains) == 0
	}
	have := map[string]int32{}
	for i := range m.o.Workers {
		if p := &m.o.Workers[i]; m.current(p) && p.Index >= m.was.Attempt.MinReplicas && !p.Terminating && !p.HasEnded() {
			have[p.StepDomain]++
		}
	}
	for _, i := range m.d.CreateWorkers {
		if i < m.was.Attempt.MinReplicas {
			continue
		}
		within, known := m.d.Blueprint.StepDomains[i]
		have[within.Name]++
		if !known || !slices.ContainsFunc(m.o.Verdict.StepDomains, func(d capacity.StepDomain) bool {
			return d.Name == within.Name && have[within.Name] <= d.Workers
		}) {
			return false
		}
	}
	// What is created makes whole steps.
	for _, i := range m.d.CreateWorkers {
		if name := m.d.Blueprint.StepDomains[i].Name; i >= m.was.Attempt.MinReplicas && have[name]%m.o.Job.Spec.Elasticity.Step != 0 {
			return false
		}
	}
	return true
}
