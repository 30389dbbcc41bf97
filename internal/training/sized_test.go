package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// sizedWorld has a job whose trainer asks for 16 processors and 64Gi, and whose task used 2 and 8Gi for a week.
func sizedWorld(t *testing.T, mode v1beta1.SizingMode) *simulator {
	t.Helper()
	w := newSimulator(t, 2, 4)
	w.o.Job.Spec.Tier, w.o.Job.Spec.Sizing = "small-traffic", &v1beta1.JobSizing{Mode: mode}
	asked := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi")}
	w.o.Job.Spec.Template.Spec.Containers[0].Resources.Requests = asked
	const day, gib = 24 * 60 * 60, 1 << 30
	used := sizing.Usage{RunSeconds: 7 * day, SeenSeconds: 7 * day, EvidenceSeconds: 7 * day, MemoryPeak: 8 * gib}
	used.CPU.Add(2, 7*288)
	w.o.History = &sizing.History{WindowDays: 7, Usage: map[sizing.Part]sizing.Usage{
		{Role: sizing.Master, Container: "trainer"}: used, {Role: sizing.Worker, Container: "trainer"}: used,
	}}
	return w
}

// given is the memory that worker i is made with.
func (w *simulator) given(i int32) string {
	pod := trainingpod.Blueprint{Job: w.o.Job, Attempt: w.status().Attempt, Tier: w.o.Config.Tiers[1]}.NewPod(i)
	r := pod.Spec.Containers[0].Resources
	if r.Limits.Memory().Cmp(*r.Requests.Memory()) != 0 {
		w.t.Errorf("worker %d has a limit of %s and requests %s", i, r.Limits.Memory(), r.Requests.Memory())
	}
	return r.Requests.Memory().String()
}

func TestRequestsFollowUseWhereThatIsEnforced(t *testing.T) {
	g := NewWithT(t)
	w := sizedWorld(t, v1beta1.SizingEnforce).trains()
	g.Expect(w.status().Sizing.Summary).To(MatchRegexp(`^cpu 16→3\.\d+, memory 64Gi→10\.4Gi$`))
	g.Expect(w.given(0)).To(Equal("10650Mi"))
	g.Expect(w.given(3)).To(Equal("10650Mi"))
	core := trainingpod.Blueprint{Job: w.o.Job, Attempt: w.status().Attempt}.CoreGroup()
	g.Expect(core.MinResources.Memory().String()).To(Equal("21300Mi"), "the gang asks for what its pods ask for")
	g.Expect(w.last.RestoreGroups).To(BeEmpty())
	g.Expect(w.events).To(ContainElement(And(HaveField("Reason", v1beta1.EventSized), HaveField("Message", And(
		HavePrefix("By what was used, containers request: trainer of master cpu 3."),
		ContainSubstring("trainer of worker memory 10.4Gi instead of 64Gi: 8Gi peak memory over 7 of 7 days × 1.3 = 10.4Gi"))))))

	w.o.History = &sizing.History{WindowDays: 7}
	w.deletePod(1).settle()
	g.Expect(w.given(1)).To(Equal("10650Mi"), "an attempt goes on with what it began with")
	w.suspend(true).settle().suspend(false).settle()
	g.Expect(w.status().Sizing.Summary).To(BeEmpty(), "the next looks again")
}

func TestAdviceChangesNothing(t *testing.T) {
	g := NewWithT(t)
	w := sizedWorld(t, v1beta1.SizingRecommend).trains()
	g.Expect(w.status().Sizing.Summary).To(MatchRegexp(`^\(cpu 16→3\.\d+, memory 64Gi→10\.4Gi\)$`))
	g.Expect(w.given(1)).To(Equal("64Gi"))
	g.Expect(w.events).To(ContainElement(HaveField("Message", HavePrefix("By what was used, containers could request: "))))

	w = sizedWorld(t, v1beta1.SizingDisabled).trains()
	g.Expect(w.status().Sizing).To(BeNil())
	w = sizedWorld(t, v1beta1.SizingEnforce)
	w.o.History = nil
	g.Expect(w.trains().status().Sizing).To(BeNil(), "nobody collects")
}

func TestModeOfSizing(t *testing.T) {
	g := NewWithT(t)
	profile := &v1beta1.ResourceQuotaProfile{}
	g.Expect(sizing.ModeOf(nil, nil)).To(Equal(v1beta1.SizingRecommend))
	g.Expect(sizing.ModeOf(nil, profile)).To(Equal(v1beta1.SizingRecommend))
	profile.Spec.Sizing = &v1beta1.ProfileSizing{Mode: v1beta1.SizingEnforce}
	g.Expect(sizing.ModeOf(nil, profile)).To(Equal(v1beta1.SizingEnforce))
	g.Expect(sizing.ModeOf(&v1beta1.JobSizing{}, profile)).To(Equal(v1beta1.SizingEnforce))
	out := &v1beta1.JobSizing{Mode: v1beta1.SizingDisabled}
	g.Expect(sizing.ModeOf(out, profile)).To(Equal(v1beta1.SizingDisabled), "a job may opt out")
}

// Behaviour 3: what we gave too little of is given back at once, and is nobody else's failure.
func TestBehaviour3OutOfTheMemoryThatItWasGiven(t *testing.T) {
	g := NewWithT(t)
	w := sizedWorld(t, v1beta1.SizingEnforce).trains()
	w.change(1, func(p *podstate.Worker) {
		p.ContainerRestarts++
		p.Failure = podstate.Failure{ExitCode: 137, Reason: "OOMKilled", Container: "trainer"}
	})
	w.step()
	g.Expect(w.last.OOMKills).To(Equal([]sizing.OOMKill{{
		Pod: string(w.worker(1).UID), Part: sizing.Part{Role: sizing.Worker, Container: "trainer"}, Restarts: 1, Limit: 10650 << 20,
	}}))
	w.settle()
	g.Expect(w.status().Attempt.Number).To(BeEquivalentTo(2))
	g.Expect(w.given(1)).To(Equal("64Gi"))
	g.Expect(w.given(0)).To(Equal("10650Mi"), "worker 0 has enough")
	g.Expect(w.status().Restarts).To(BeZero())
	g.Expect(w.status().LastFailure).To(BeNil())
	g.Expect(w.events).To(ContainElement(And(HaveField("Reason", v1beta1.EventRestarted), HaveField("Message", HavePrefix(
		"All workers are created again with all the memory that they ask for, because one was given less and ran out of it: worker 1 "+
			"failed with exit code 137 (OOMKilled).")))))

	w.run(0, 1, 2, 3).settle()
	w.suspend(true).settle().suspend(false).settle()
	g.Expect(w.given(1)).To(Equal("64Gi"), "nor is it cut in the attempts after that")
	w.suspend(true).settle().pass(7 * 24 * time.Hour).suspend(false).settle()
	g.Expect(w.given(1)).To(Equal("10650Mi"), "until that is a window ago")
}

func TestOutOfMemoryThatWasAskedForIsTheJobsOwn(t *testing.T) {
	g := NewWithT(t)
	w := sizedWorld(t, v1beta1.SizingRecommend).trains()
	w.change(0, func(p *podstate.Worker) {
		p.ContainerRestarts++
		p.Failure = podstate.Failure{ExitCode: 137, Reason: "OOMKilled", Container: "trainer"}
	})
	w.step()
	g.Expect(w.last.OOMKills).To(HaveLen(1))
	g.Expect(w.last.OOMKills[0].Limit).To(BeEquivalentTo(64 << 30))
	w.settle()
	g.Expect(w.status().Attempt.Number).To(BeEquivalentTo(1))
	g.Expect(w.status().Restarts).To(BeEquivalentTo(1))
}
