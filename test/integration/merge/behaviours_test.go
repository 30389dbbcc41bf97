package merge

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("the line of a pool", func() {
	DescribeTable("behaviour 1: merges due at once, one line, no deadlock", func(ctx SpecContext, merges int) {
		p := newPool("line", 12)
		for i := range merges {
			// The heaviest has the oldest full model, in an order of its own.
			p.Due(fmt.Sprintf("m%02d", i), 11*time.Hour+time.Duration((i*7)%merges)*time.Hour)
		}
		p.Full("early", "base", 6*time.Hour+14*time.Minute)
		p.Increments("early", 1, 1)
		seen := p.observe(ctx, 12, 4)
		// Not before all of them are seen to be due.
		p.Create(p.merge("early").Obj())
		for i := range merges {
			p.Create(p.merge(fmt.Sprintf("m%02d", i)).With(func(s *v1beta1.MergeJobSpec) { s.Suspend = true }).Obj())
		}
		Eventually(p.FetchMerge("early")).Should(haveSummary("Waiting (weight 62 < 100)"), "it is not due")
		for i := range merges {
			Eventually(p.FetchMerge(fmt.Sprintf("m%02d", i))).Should(HaveField("Status.Weight", Not(BeNil())), "its store was read")
		}
		for i := range merges {
			p.Patch(p.ReadMerge(fmt.Sprintf("m%02d", (i*7)%merges)), `{"spec":{"suspend":false}}`)
		}
		p.run(ctx)
		for i := range merges {
			Eventually(p.FetchMerge(fmt.Sprintf("m%02d", i)), 12*time.Minute).Should(haveMerged())
		}
		asked, most, idle := seen.saw()
		Expect(asked).To(HaveLen(merges), "each asked once")
		Expect(most).To(Equal(1), "never more than one gang waited for a place")
		Expect(idle).To(BeNumerically("<", 5*time.Second), "no room idle that the head would fit in")
		Expect(inversions(asked, merges)).To(BeNumerically("<", merges), "in the order of weight, but for the first ones")
		Expect(p.ReadMerge("early").Status.Summary).To(Equal("Waiting (weight 62 < 100)"))
	},
		Entry("twelve", SpecTimeout(15*time.Minute), 12), Entry("forty", suite.Long, SpecTimeout(15*time.Minute), 40))

	It("behaviour 3: a head too big for now stays head, and 3b: also when a heavier one enters; one that takes nothing from "+
		"it goes ahead", func(ctx SpecContext) {
		p := newPool("sticky", 6)
		p.Due("first", 50*time.Hour)
		p.Create(p.merge("first").Obj())
		Eventually(p.running("first")).Should(Equal(4))
		p.Due("big", 40*time.Hour)
		p.Create(p.merge("big").Pods(5, 5).Obj())
		Eventually(p.FetchMerge("big")).Should(And(haveSummary("Queued (asking)"),
			HaveField("Status.BlockedBy.Shortfall", ContainSubstring("3 nvidia.com/gpu"))), "it says what it lacks")
		p.Due("small", 12*time.Hour)
		p.Due("heavy", 90*time.Hour)
		p.Create(p.merge("small").Pods(1, 1).Obj(), p.merge("heavy").Obj())
		// How many there are behind it is told a merge within a minute; its own place soon.
		Eventually(p.FetchMerge("heavy")).Should(And(havePosition(2), HaveField("Status.BlockedBy.Head.Name", "big")))
		Eventually(p.running("small")).Should(Equal(1), "it fits beside the head")
		Eventually(p.FetchMerge("small")).Should(HaveField("Status.Message",
			ContainSubstring("It went ahead of big: it uses room that big will not need.")))
		Eventually(p.FetchMerge("big"), 90*time.Second).Should(HaveField("Status.Message", ContainSubstring("small goes ahead: ")))
		Expect(p.ReadMerge("heavy")).To(havePosition(2), "it does not fit, and is not passed over")
		Eventually(p.FetchMerge("first")).Should(haveSummary("Running (4/4)"))
		p.finish(ctx, p.ReadMerge("first"))
		Eventually(p.running("big")).Should(Equal(5), "there is room for the head now")
		Eventually(p.FetchMerge("heavy")).Should(haveReason(v1beta1.ReasonAsking), "the next head asks")
	})

	It("sets a head aside whose claim of a volume is not there, and asks again when it is", suite.Long, func(ctx SpecContext) {
		p := newPool("claims", 4)
		p.Due("stuck", 90*time.Hour)
		p.Due("second", 50*time.Hour)
		p.Due("third", 40*time.Hour)
		p.Create(p.merge("stuck").With(func(s *v1beta1.MergeJobSpec) {
			s.Template.Spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "model"},
			}}}
		}).Obj())
		Eventually(p.FetchMerge("stuck")).Should(haveReason(v1beta1.ReasonAsking))
		p.Create(p.merge("second").Obj(), p.merge("third").Obj())
		// Whether it waits for its time or goes behind the others of the line depends on the nodes of other specs, which come and go.
		Eventually(p.FetchMerge("stuck"), 2*time.Minute).Should(And(HaveField("Status.SetAside", Not(BeNil())),
			HaveField("Status.Message", ContainSubstring("4 pods of 1 nvidia.com/gpu. Volcano placed 0 of them in "))), "it has 45 s")
		Eventually(p.EventsOf).WithArguments(p.ReadMerge("stuck").UID).Should(ContainElement(ContainSubstring("Withdrawn: From ")))
		Eventually(p.MergePods).WithArguments(ctx, "stuck").Should(BeEmpty(), "it holds nothing")
		for _, name := range []string{"second", "third"} {
			Eventually(p.running(name), time.Minute).Should(Equal(4), "%s has its turn", name)
			Eventually(p.FetchMerge(name)).Should(haveSummary("Running (4/4)"))
			p.finish(ctx, p.ReadMerge(name))
			Eventually(p.FetchMerge(name)).Should(haveMerged())
		}
		p.Claim("model", "/tmp")
		Eventually(p.running("stuck"), time.Minute).Should(Equal(4), "the claim is there")
		Eventually(p.FetchMerge("stuck")).Should(And(haveSummary("Running (4/4)"), HaveField("Status.SetAside", BeNil())))
	}, SpecTimeout(4*time.Minute))

	It("says why a merge can never fit, and lets others pass", func() {
		p := newPool("shapes", 4)
		p.Due("huge", 90*time.Hour)
		p.Due("fits", 12*time.Hour)
		p.Create(p.merge("huge").Pods(5, 5).Obj())
		Eventually(p.FetchMerge("huge")).Should(And(haveSummary("Waiting (never fits)"), haveReason(v1beta1.ReasonNeverFits),
			HaveField("Status.Message", ContainSubstring("short of 1 nvidia.com/gpu"))))
		p.Create(p.merge("fits").Obj())
		Eventually(p.running("fits")).Should(Equal(4))
		p.AddNode(2)
		Eventually(p.FetchMerge("huge")).Should(havePhase(v1beta1.MergeQueued), "judged again when nodes came")
		p.Due("larger", 80*time.Hour)
		p.Create(p.merge("larger").Pods(9, 9).Obj())
		Eventually(p.FetchMerge("larger")).Should(haveReason(v1beta1.ReasonNeverFits))
		p.Patch(p.ReadMerge("larger"), `{"spec":{"minReplicas":2,"maxReplicas":2}}`)
		Eventually(p.FetchMerge("larger")).Should(havePhase(v1beta1.MergeQueued), "and when it asks for less")
	})
})

var _ = Describe("the life of a merge", func() {
	It("behaviour 4: a marker while pods linger stops them, and the next starts at once", func(ctx SpecContext) {
		p := newPool("linger", 4)
		p.Due("a", 50*time.Hour)
		p.Due("b", 40*time.Hour)
		p.Create(p.merge("a").Obj())
		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"))
		p.Create(p.merge("b").Obj())
		run := p.ReadMerge("a").Status.Run
		Expect(run.Increments).To(Equal(int32(3)))
		pod := testutil.Get(p.Scenario, &corev1.Pod{}, testutil.MergePod("a", 0))
		Expect(pod.Spec.Containers[0].Env).To(ContainElements(
			corev1.EnvVar{Name: "TIDELINE_RUN_ID", Value: run.ID},
			corev1.EnvVar{Name: "TIDELINE_OUTPUT_PATH", Value: "a/full/" + run.ID + "/"},
			corev1.EnvVar{Name: "TIDELINE_LAST_FULL_PATH", Value: "a/full/base/"},
		), "the program is told what to do")
		list := testutil.Get(p.Scenario, &corev1.ConfigMap{}, "a-merge-increments")
		Expect(names(list)).To(Equal([]string{"000001", "000002", "000003"}), "exactly the increments that were counted")
		p.Increments("a", 4, 4)
		Expect(p.Complete(ctx, p.ReadMerge("a"))).To(Succeed())
		Eventually(p.FetchMerge("a")).Should(And(haveMerged(), HaveField("Status.LastFull.Name", run.ID),
			HaveField("Status.Increments", int32(1)), haveSummary("Waiting (weight 0 < 100)")), "one more was written meanwhile")
		Eventually(p.running("b")).Should(Equal(4), "the room is free")
		Expect(p.MergePods(ctx, "a")).To(BeEmpty())
	})

	It("behaviour 4: a run that takes too long is stopped, backs off, and the next passes", func() {
		p := newPool("timeout", 4)
		p.Due("a", 50*time.Hour)
		p.Due("b", 40*time.Hour)
		p.Create(p.merge("a").Backoff(600).With(func(s *v1beta1.MergeJobSpec) { s.RunTimeoutSeconds = ptr.To[int32](2) }).Obj())
		Eventually(p.running("a")).Should(Equal(4))
		p.Create(p.merge("b").Obj())
		Eventually(p.FetchMerge("a")).Should(And(havePhase(v1beta1.MergeTimedOut), haveReason(v1beta1.ReasonBackoff),
			HaveField("Status.Message", ContainSubstring("runTimeoutSeconds (2s)"))))
		Eventually(p.running("b")).Should(Equal(4))
		Expect(p.EventsOf(p.ReadMerge("a").UID)).To(ContainElement(
			ContainSubstring("TimedOut: The merge ran for runTimeoutSeconds (2s)")))
	})

	It("behaviour 4: pods that end well without marker or model have failed; one that fails says why", func(ctx SpecContext) {
		p := newPool("exit", 4)
		p.Due("a", 50*time.Hour)
		p.Create(p.merge("a").Backoff(2).Obj())
		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"))
		Expect(p.ExitMerge(ctx, "a")).To(Succeed())
		Eventually(p.FetchMerge("a")).Should(And(havePhase(v1beta1.MergeFailed),
			HaveField("Status.Message", ContainSubstring("there is no _SUCCESS in full/"))))
		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"), "tried again after the back-off")
		Expect(p.EndMerge(ctx, "a", `{"status":{"phase":"Failed","containerStatuses":[{"name":"merge","image":"i","imageID":"i",`+
			`"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":3,"reason":"Error",`+
			`"message":"no space left"}}}]}}`)).To(Succeed())
		Eventually(p.FetchMerge("a")).Should(HaveField("Status.Message", ContainSubstring("with exit code 3 (Error): no space left")))
		Expect(p.ReadMerge("a").Status.Failures).To(Equal(int32(2)))

		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"))
		run := p.ReadMerge("a").Status.Run.ID
		Expect(p.Put("a", "full/"+run+"/_SUCCESS")).To(Succeed())
		Expect(p.ExitMerge(ctx, "a")).To(Succeed())
		Eventually(p.FetchMerge("a")).Should(And(havePhase(v1beta1.MergeFailed), HaveField("Status.Message",
			ContainSubstring("contains only _SUCCESS"))), "a marker without a model")
		Expect(p.ReadMerge("a").Status.LastFull.Name).To(Equal("base"))
	})

	It("takes an attempt back that loses a pod, and asks again for the same run", func(ctx SpecContext) {
		p := newPool("lost", 4)
		p.Due("a", 50*time.Hour)
		p.Create(p.merge("a").Obj())
		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"))
		run := p.ReadMerge("a").Status.Run.ID
		p.Delete(testutil.Get(p.Scenario, &corev1.Pod{}, testutil.MergePod("a", 2)))
		Eventually(p.FetchMerge("a")).Should(And(haveSummary("Running (4/4)"), HaveField("Status.Run.Attempt", int32(2))))
		Expect(p.ReadMerge("a").Status.Run.ID).To(Equal(run))
		Expect(p.ReadMerge("a").Status.Failures).To(BeZero())
		p.finish(ctx, p.ReadMerge("a"))
		Eventually(p.FetchMerge("a")).Should(haveMerged())
	})

	It("grows by surplus that gives way to the head of the line", func() {
		p := newPool("surplus", 8)
		p.Due("a", 50*time.Hour)
		p.Due("b", 40*time.Hour)
		p.Create(p.merge("a").Pods(4, 8).Obj())
		Eventually(p.running("a")).Should(Equal(8))
		p.Create(p.merge("b").Obj())
		Eventually(p.running("b")).Should(Equal(4), "surplus gave way")
		Eventually(p.running("a")).Should(Equal(4))
		Expect(p.ReadMerge("a").Status.Run.Attempt).To(Equal(int32(1)), "and the merge went on")
	})
})

// inversions counts pairs that are not in the order of behaviour 1's weights, of so many merges.
func inversions(asked []string, merges int) int {
	weight := func(name string) int {
		var i int
		_, err := fmt.Sscanf(name, "m%d", &i)
		Expect(err).NotTo(HaveOccurred())
		return (i * 7) % merges
	}
	n := 0
	for i := range asked {
		for j := range i {
			if weight(asked[j]) < weight(asked[i]) {
				n++
			}
		}
	}
	return n
}
