package profile

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// waits is the reason of what a limit of a profile keeps from running.
const waits = v1beta1.ReasonQuotaExceeded

var _ = Describe("Caps", Serial, func() {
	It("behaviour 5: a user at the cap waits with the figures, in order, and starts when the first ends", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").PerUser(8))
		ads.Submit(ads.job("first", 6, 6).Owner("alice"))
		Eventually(ads.Fetch("first")).Should(testutil.Train(6))
		ads.Submit(ads.job("second", 4, 4).Owner("alice"))
		Eventually(ads.Fetch("second")).Should(testutil.Wait(waits))
		Expect(ads.Read("second").Status.Message).To(Equal("alice may hold at most 8 nvidia.com/gpu (profile ads). 6 " +
			"nvidia.com/gpu in use, and the job asks for 4 nvidia.com/gpu. The job starts by itself when enough is released."))
		Expect(ads.Pods("second")).To(BeEmpty(), "there is no gang that others would make room for")
		ads.Submit(ads.job("third", 2, 2).Owner("alice"))
		Eventually(ads.Fetch("third")).Should(testutil.Wait(waits), "it would fit, and does not overtake")
		Expect(ads.Read("third").Status.Message).To(HaveSuffix(
			"Position 2 in the queue for this limit, after %s/second.", ads.Namespace))
		ads.Submit(ads.job("others", 6, 6).Owner("bob"))
		Eventually(ads.Fetch("others")).Should(testutil.Train(6), "another user has caps of their own")
		ads.DeleteJob("first")
		Eventually(ads.Fetch("second")).Should(testutil.Train(4))
		Eventually(ads.Fetch("third")).Should(testutil.Train(2))
	})

	It("behaviour 5: senior goes before intern where the team's queue is full", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.Queue.Capability = gpus(4)
			spec.Members = []v1beta1.ProfileMember{
				{Kind: v1beta1.MemberUser, Name: "ivy", Standing: v1beta1.StandingIntern}, {Kind: v1beta1.MemberUser, Name: "sam",
					Standing: v1beta1.StandingSenior},
			}
		}))
		ads.Submit(ads.job("running", 4, 4).Owner("bob"))
		Eventually(ads.Fetch("running")).Should(testutil.Train(4))
		ads.Submit(ads.job("intern", 3, 3).Owner("ivy"))
		Eventually(ads.Fetch("intern")).Should(testutil.Wait(waits))
		ads.Submit(ads.job("senior", 3, 3).Owner("sam"))
		Eventually(ads.Fetch("senior")).Should(testutil.Wait(waits))
		ads.DeleteJob("running")
		Eventually(ads.Fetch("senior")).Should(testutil.Train(3), "it came later, and goes first")
		Consistently(ads.Fetch("intern")).WithTimeout(several).Should(testutil.Wait(waits))
		ads.DeleteJob("senior")
		Eventually(ads.Fetch("intern")).Should(testutil.Train(3))
	})

	It("behaviour 5: the GPUs of a notebook count", suite.Long, func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").PerUser(4))
		ads.Create(notebook(ads, "alice", 2))
		Eventually(read("ads")).Should(HaveField("Status.Accelerators", HavePrefix("2/")), "the notebook is seen")
		ads.Submit(ads.job("a", 3, 3).Owner("alice"))
		Eventually(ads.Fetch("a")).Should(testutil.Wait(waits))
		Expect(ads.Read("a").Status.Message).To(ContainSubstring("2 nvidia.com/gpu in use, and the job asks for 3 nvidia.com/gpu."))
		ads.Delete(notebook(ads, "alice", 2))
		Eventually(ads.Fetch("a")).Should(testutil.Train(3))
	})

	It("behaviour 5: what could never fit is told, also where no webhook refused it", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.Caps = &v1beta1.ProfileCaps{PerJob: []v1beta1.ResourceCap{{
				Resource: string(testutil.GPUResource), Max: resource.MustParse("4"),
			}}}
		}))
		ads.Submit(ads.job("a", 5, 5), ads.job("b", 2, 8))
		Eventually(ads.Fetch("a")).Should(testutil.BeStalled(waits))
		Expect(ads.Read("a").Status.Message).To(Equal("The job asks for at least 5 nvidia.com/gpu, and profile ads lets a job hold " +
			"at most 4 nvidia.com/gpu. Lower minReplicas, or ask an administrator to raise the limit."))
		Eventually(ads.Fetch("b")).Should(And(testutil.Train(4), testutil.HaveReason(waits)), "and one that can grows as far as it may")
	})

	It("behaviour 5: surplus of the user gives way to what waits at the cap", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").PerUser(8))
		ads.Submit(ads.job("elastic", 2, 16).Owner("alice").Cooldown(time.Hour))
		Eventually(ads.Fetch("elastic")).Should(testutil.Train(8), "surplus grows to the cap, though more is idle")
		core := ads.UIDs("elastic")
		ads.Submit(ads.job("waiting", 5, 5).Owner("alice"))
		Eventually(ads.Fetch("waiting")).Should(testutil.Train(5))
		Eventually(ads.Fetch("elastic")).Should(testutil.Train(3))
		after := ads.UIDs("elastic")
		for i := range 2 {
			Expect(after[i]).To(Equal(core[i]), "worker %d of the core is the one it was", i)
		}
	})

	It("behaviour 5: what an operator that was killed has allowed is not allowed again", suite.Long, func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").PerUser(4))
		var all []*testutil.JobBuilder
		for i := range 4 {
			all = append(all, ads.job(fmt.Sprintf("job-%d", i), 2, 2).Owner("alice"))
		}
		ads.Submit(all...)
		Eventually(read("ads")).Should(HaveField("Status.Accelerators", HavePrefix("4/")))
		shared.Operator().Kill()
		Expect(shared.Operator().Start(ctx)).To(Succeed())
		Consistently(read("ads")).WithTimeout(several).Should(HaveField("Status.Accelerators", HavePrefix("4/")))
		ads.DeleteJob("job-0")
		Eventually(ads.Fetch("job-2")).Should(testutil.Train(2))
		Consistently(ads.Fetch("job-3")).WithTimeout(several).Should(testutil.Wait(waits))
	})
})

var _ = Describe("T11: merges", Serial, func() {
	It("do not pass a cap of their team, also where no webhook refused them", func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").PerUser(8))
		merge := testutil.Merge("large").In(ads.Namespace).With(func(s *v1beta1.MergeJobSpec) {
			s.Owner, s.Pool, s.MinReplicas, s.MaxReplicas = "alice", "tideline-merge", 2, 2
			s.Store = v1beta1.ModelStore{Type: v1beta1.StoreS3, Prefix: "a", S3: &v1beta1.S3Store{
				Bucket: "models", Endpoint: "https://s3.example", CredentialsRef: v1beta1.ObjectRef{Name: "none"},
			}}
			s.Template.Spec.Containers[0].Resources.Limits = gpus(8)
		}).Obj()
		ads.Create(merge)
		Eventually(ads.FetchMerge("large")).Should(HaveField("Status.Reason", waits))
		Expect(ads.ReadMerge("large").Status.Message).To(HavePrefix("The job asks for at least 16 nvidia.com/gpu, and profile ads " +
			"lets a user hold at most 8 nvidia.com/gpu."))
		Expect(ads.MergePods(ctx, "large")).To(BeEmpty(), "it runs nothing")
	})
})

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
}

// notebook is a pod of nobody's job that holds GPUs, and names who answers for it.
func notebook(t team, user string, n int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: "notebook", Labels: map[string]string{v1beta1.AnnotationOwner: user},
		},
		Spec: corev1.PodSpec{
			SchedulerName: gang.SchedulerName,
			Containers: []corev1.Container{{
				Name: "notebook", Image: "registry.example/notebook:1", Resources: corev1.ResourceRequirements{Limits: gpus(n)},
			}},
		},
	}
}
