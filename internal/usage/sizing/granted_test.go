package sizing

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// What a role would be granted is what a job gets that asks for more.
func TestGrantedIsWhatJobsGet(t *testing.T) {
	g := NewWithT(t)
	for _, h := range []History{
		trainer(repeat(aDay(2, 8*gib), 7)...), trainer(aDay(3, gib)), trainer(repeat(aDay(0.001, 1<<20), 7)...),
	} {
		for _, tier := range config.DefaultTiers() {
			cpu, memory := sized(asking("900", "4Ti"), h, enforce(tier.Name))
			for resource, want := range map[string]int64{CPU: cpu.Sized.MilliValue(), Memory: memory.Sized.Value()} {
				granted, known := h.GrantedAmount(Worker, resource, tier.Sizing)
				g.Expect(known).To(BeTrue())
				g.Expect(granted).To(Equal(want), "%s in tier %s", resource, tier.Name)
			}
		}
	}
}

func TestGrantedOfAllContainers(t *testing.T) {
	g := NewWithT(t)
	rule := tier("exploratory").Sizing
	h := trainer(repeat(aDay(2, 8*gib), 7)...)
	alone, _ := h.GrantedAmount(Worker, Memory, rule)
	for _, part := range []Part{{Worker, "sidecar"}, {Worker, ""}, {Master, "trainer"}} {
		for i := range 7 {
			h.Add(part, noon.AddDate(0, 0, i-7), aDay(2, 8*gib))
		}
	}
	granted, known := h.GrantedAmount(Worker, Memory, rule)
	g.Expect(known).To(BeTrue())
	g.Expect(granted).To(Equal(2*alone), "of those of the role that have a name")

	h.Add(Part{Worker, "sidecar"}, noon, Usage{OOMKills: 1})
	_, known = h.GrantedAmount(Worker, Memory, rule)
	g.Expect(known).To(BeFalse(), "nothing is cut of what ran out of memory")
	_, known = h.GrantedAmount(Worker, CPU, rule)
	g.Expect(known).To(BeTrue())
	h.Add(Part{Worker, "new"}, noon, Usage{RunSeconds: 60, SeenSeconds: 60})
	_, known = h.GrantedAmount(Worker, CPU, rule)
	g.Expect(known).To(BeFalse(), "of one container too little is known")
	_, known = History{}.GrantedAmount(Worker, CPU, rule)
	g.Expect(known).To(BeFalse())
}

func TestMeanCPU(t *testing.T) {
	g := NewWithT(t)
	u := Usage{}
	_, known := u.MeanCPU()
	g.Expect(known).To(BeFalse())
	u.CPU.Add(1, 30)
	u.Throttled.Add(3, 10)
	mean, known := u.MeanCPU()
	g.Expect(known).To(BeTrue())
	g.Expect(float64(mean)).To(BeNumerically("~", 1500, 1500*(step-1)/2+1))
	low, high := Usage{}, Usage{}
	low.CPU.Add(0, 1)
	high.CPU.Add(1e9, 1)
	for _, u := range []Usage{low, high} {
		mean, _ = u.MeanCPU()
		g.Expect(mean).To(And(BeNumerically(">=", 0), BeNumerically("<", 17_000_000)))
	}
}
