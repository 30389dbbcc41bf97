package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// given is the memory that pod i of the run is made with.
func (m *merger) given(i int32) string {
	pod := mergepod.Blueprint{Job: m.object, Run: m.status().Run, Tier: m.world.config.Tiers[0]}.NewPod(i)
	return pod.Spec.Containers[0].Resources.Requests.Memory().String()
}

func TestRequestsOfMergesFollowUse(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	const day, gib = 24 * 60 * 60, 1 << 30
	used := sizing.Usage{RunSeconds: 7 * day, SeenSeconds: 7 * day, EvidenceSeconds: 7 * day, MemoryPeak: 2 * gib}
	used.CPU.Add(1, 7*288)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.Sizing = &v1beta1.JobSizing{Mode: v1beta1.SizingEnforce} })
	m.full(w, 12*time.Hour)
	m.history = &sizing.History{WindowDays: 7, Usage: map[sizing.Part]sizing.Usage{
		{Role: sizing.Master, Container: "merge"}: used, {Role: sizing.Worker, Container: "merge"}: used,
	}}
	w.settle()
	g.Expect(m.status().Sizing.Summary).To(MatchRegexp(`^cpu 4→1\.\d+, memory 16Gi→2\.3Gi$`))
	g.Expect(m.given(0)).To(Equal("2356Mi"))
	core := mergepod.Blueprint{Job: m.object, Run: m.status().Run}.CoreGroup()
	g.Expect(core.MinResources.Memory().Value()).To(BeEquivalentTo(4 * 2356 << 20))
	g.Expect(EventsBetween(&v1beta1.MergeJobStatus{}, m.status())).To(ContainElement(HaveField("Reason", v1beta1.EventSized)))

	run := m.status().Run.ID
	m.pods[2].Phase, m.pods[2].Failure = corev1.PodFailed, podstate.Failure{ExitCode: 137, Reason: "OOMKilled", Container: "merge"}
	w.pass(time.Second)
	w.settle()
	g.Expect(m.status().Run.ID).To(Equal(run), "the same run asks again")
	g.Expect(m.status().Run.Attempt).To(BeEquivalentTo(2))
	g.Expect(m.given(2)).To(Equal("16Gi"))
	g.Expect(m.given(0)).To(Equal("2356Mi"))
	g.Expect(m.status().Failures).To(BeZero())
	g.Expect(m.status().Run.Losses).To(BeZero())
}
