package config

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Sizing is how much more than what was used containers of a tier may request. The more important a tier, the more room they have
// for what was not seen yet.
type Sizing struct {
	// CPUPercentile is the share of the time, in percent, at which the processors that were used suffice; from 50 to 100. Default:
	// 90, 95 and 99 in the tiers that the operator knows, 95 in others.
	CPUPercentile int32 `json:"cpuPercentile"`
	// CPUBufferPercent is what is requested of those processors, in percent, from 100 to 1000. Default: 125, 154 and 200 in the
	// tiers that the operator knows, which are the target utilisations of 0.80, 0.65 and 0.50 that Kubecost publishes; 154 in
	// others.
	CPUBufferPercent int32 `json:"cpuBufferPercent"`
	// MemoryBufferPercent is what is requested of the highest peak of memory, in percent, from 100 to 1000. Default: 115, which is
	// what Vertical Pod Autoscaler and KRR leave, 130 and 150 in the tiers that the operator knows; 130 in others.
	MemoryBufferPercent int32 `json:"memoryBufferPercent"`
	// MinCPU and MinMemory are quantities below which nothing is cut. Default: 100m and 250Mi.
	MinCPU    string `json:"minCPU"`
	MinMemory string `json:"minMemory"`
	// MaxMemory is the quantity up to which memory is raised after a container ran out of it, and at most to twice of what was asked
	// for. Default: empty, for no other bound.
	MaxMemory string `json:"maxMemory"`
}

// defaultSizing is that of a tier by its name.
func defaultSizing(tier string) Sizing {
	s := Sizing{CPUPercentile: 95, CPUBufferPercent: 154, MemoryBufferPercent: 130, MinCPU: "100m", MinMemory: "250Mi"}
	switch tier {
	case "exploratory":
		s.CPUPercentile, s.CPUBufferPercent, s.MemoryBufferPercent = 90, 125, 115
	case "main-traffic":
		s.CPUPercentile, s.CPUBufferPercent, s.MemoryBufferPercent = 99, 200, 150
	}
	return s
}

// withDefaults fills in what is left out.
func (s Sizing) withDefaults(other Sizing) Sizing {
	return Sizing{
		CPUPercentile:       cmp.Or(s.CPUPercentile, other.CPUPercentile),
		CPUBufferPercent:    cmp.Or(s.CPUBufferPercent, other.CPUBufferPercent),
		MemoryBufferPercent: cmp.Or(s.MemoryBufferPercent, other.MemoryBufferPercent),
		MinCPU:              cmp.Or(s.MinCPU, other.MinCPU),
		MinMemory:           cmp.Or(s.MinMemory, other.MinMemory),
		MaxMemory:           cmp.Or(s.MaxMemory, other.MaxMemory),
	}
}

func (p *problems) sizing(at string, s Sizing) {
	p.between(at+".cpuPercentile", s.CPUPercentile, 50, 100)
	p.between(at+".cpuBufferPercent", s.CPUBufferPercent, 100, 1000)
	p.between(at+".memoryBufferPercent", s.MemoryBufferPercent, 100, 1000)
	for _, field := range []struct{ name, value, example string }{
		{"minCPU", s.MinCPU, "100m"}, {"minMemory", s.MinMemory, "250Mi"}, {"maxMemory", s.MaxMemory, "64Gi"},
	} {
		if field.name == "maxMemory" && field.value == "" {
			continue
		}
		if q, err := resource.ParseQuantity(field.value); err != nil || q.Sign() < 0 {
			p.value(at+"."+field.name, field.value, "it must be a quantity of 0 or more, as "+field.example)
		}
	}
}
