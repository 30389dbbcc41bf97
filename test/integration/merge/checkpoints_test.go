package merge

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// after is a schedule of so many increments alone.
func after(n int32) *v1beta1.MergeSchedule { return &v1beta1.MergeSchedule{Increments: &n} }

var _ = Describe("checkpoints", func() {
	It("behaviour 9: a merge after every two checkpoints, over the last three", func(ctx SpecContext) {
		p := newPool("window", 4)
		p.Increments("a", 1, 1)
		p.Create(p.merge("a").With(func(s *v1beta1.MergeJobSpec) { s.Schedule, s.Window = after(2), ptr.To[int32](3) }).Obj())
		Eventually(p.FetchMerge("a")).Should(haveSummary("Waiting (weight 50 < 100)"), "one of two, and no full model")
		for _, step := range []struct {
			first, last int
			list        []string
		}{
			{2, 2, []string{"000001", "000002"}},
			{3, 4, []string{"000002", "000003", "000004"}},
			{5, 9, []string{"000007", "000008", "000009"}},
		} {
			// The operator may read the store when only some of them are there.
			p.Increments("a", step.first, step.last)
			Eventually(p.FetchMerge("a"), time.Minute).Should(And(haveSummary("Running (4/4)"),
				HaveField("Status.Run.Base", "")), "%d to %d", step.first, step.last)
			job := p.ReadMerge("a")
			list := names(testutil.Get(p.Scenario, &corev1.ConfigMap{}, "a-merge-increments"))
			Expect(list).To(HaveLen(int(job.Status.Run.Increments)))
			Expect(list[len(list)-1]).To(Equal(job.Status.Run.LastIncrement))
			if job.Status.Run.LastIncrement == step.list[len(step.list)-1] {
				Expect(list).To(Equal(step.list))
			}
			pod := testutil.Get(p.Scenario, &corev1.Pod{}, testutil.MergePod("a", 0))
			Expect(pod.Spec.Containers[0].Env).To(ContainElements(corev1.EnvVar{Name: "TIDELINE_LAST_FULL_PATH"},
				corev1.EnvVar{Name: "TIDELINE_INCREMENTS_COUNT", Value: strconv.Itoa(len(list))}))
			p.finish(ctx, job)
			Eventually(p.FetchMerge("a")).Should(And(HaveField("Status.Run", BeNil()),
				HaveField("Status.LastFull.Name", job.Status.Run.ID), HaveField("Status.LastFull.LastIncrement", list[len(list)-1])))
		}
	}, SpecTimeout(4*time.Minute))

	It("behaviour 10: a store in a volume that pods mount, and what its ConfigMap reports", func(ctx SpecContext) {
		p := newPool("volume", 4)
		p.Claim("models", "/tmp")
		p.Create(p.merge("a").Backoff(1).With(func(s *v1beta1.MergeJobSpec) {
			s.Schedule = after(2)
			s.Store = v1beta1.ModelStore{Type: v1beta1.StoreClaim, Claim: &v1beta1.ClaimStore{Name: "models"}, Prefix: "a"}
		}).Obj())
		missing := And(haveReason(v1beta1.ReasonReportMissing), haveCondition(v1beta1.ConditionStoreUnavailable))
		Eventually(p.FetchMerge("a")).Should(And(missing, HaveField("Status.Message", ContainSubstring("does not exist"))))
		report := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "a-merge-store"},
			Data:       map[string]string{"increments": "step-1 2026-11-27T10:00:00Z\n"},
		}
		p.Create(report)
		// The operator watches reports that are labelled, and looks for one that is missing once a minute.
		Eventually(p.FetchMerge("a"), 2*time.Minute).Should(And(missing,
			HaveField("Status.Message", ContainSubstring("is not labelled for this merge"))), "whoever labels it wants it read")
		p.Patch(report, `{"metadata":{"labels":{"tideline.io/job":"a"}},"data":{"increments":"step-1 this morning\n"}}`)
		Eventually(p.FetchMerge("a")).Should(And(haveReason(v1beta1.ReasonReportInvalid),
			haveCondition(v1beta1.ConditionStoreUnavailable), HaveField("Status.Message", ContainSubstring("line 1 of increments"))))

		write := func(key string, lines ...string) {
			p.Patch(report, fmt.Sprintf(`{"data":{%q:%q}}`, key, strings.Join(lines, "\n")))
		}
		steps := []string{"step-1 2026-11-27T10:00:00Z"}
		write("increments", steps...)
		Eventually(p.FetchMerge("a")).Should(haveSummary("Waiting (weight 50 < 100)"), "the report is read at once")
		steps = append(steps, "step-2 2026-11-27T10:10:00Z")
		write("increments", steps...)
		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"))
		pod := testutil.Get(p.Scenario, &corev1.Pod{}, testutil.MergePod("a", 0))
		Expect(pod.Spec.Containers[0].Env).To(ContainElements(
			corev1.EnvVar{Name: "TIDELINE_STORE_PATH", Value: "/models"},
			corev1.EnvVar{Name: "TIDELINE_STORE_REPORT", Value: "a-merge-store"}))
		Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(
			corev1.VolumeMount{Name: "tideline-store", MountPath: "/models"}))
		Expect(names(testutil.Get(p.Scenario, &corev1.ConfigMap{}, "a-merge-increments"))).To(Equal([]string{"step-1", "step-2"}))

		Expect(p.ExitMerge(ctx, "a")).To(Succeed())
		Eventually(p.FetchMerge("a")).Should(HaveField("Status.History", ContainElement(And(
			HaveField("Outcome", v1beta1.OutcomeFailed),
			HaveField("Message", ContainSubstring("ConfigMap a-merge-store does not list"))))),
			"programs that end without a report have failed")
		Eventually(p.FetchMerge("a")).Should(haveSummary("Running (4/4)"))
		run := p.ReadMerge("a").Status.Run.ID
		steps = append(steps, "step-3 "+time.Now().UTC().Format(time.RFC3339))
		write("increments", steps...)
		write("full", run+" "+time.Now().UTC().Format(time.RFC3339))
		Eventually(p.FetchMerge("a")).Should(And(haveMerged(), HaveField("Status.LastFull.Name", run),
			HaveField("Status.LastFull.LastIncrement", "step-2"), HaveField("Status.Increments", int32(1))), "the report ends the run")
		Eventually(p.MergePods).WithArguments(ctx, "a").Should(BeEmpty(), "also while its pods linger")
	}, SpecTimeout(5*time.Minute))
})
