package profile

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Data sets of a profile", Serial, func() {
	// clicks has versions 1 and 2 in claims of their own, and version 3 in an object store.
	clicks := func(spec *v1beta1.ResourceQuotaProfileSpec) {
		spec.DataSets = []v1beta1.ProfileDataSet{{Name: "clicks", Versions: []v1beta1.DataVersion{
			{Version: "1", Claim: "clicks-1"}, {Version: "2", Claim: "clicks-2", Folder: "raw"},
			{Version: "3", Prefix: "s3://ads/clicks/3"},
		}}}
	}
	naming := func(version string) func(*v1beta1.ElasticTrainingJob) {
		return func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: version}}
		}
	}
	// where is the claim that a worker mounts, its folder, and what its container is told.
	where := func(pod *corev1.Pod) string {
		var claim, folder, told string
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				Expect(v.PersistentVolumeClaim.ReadOnly).To(BeTrue(), "it is attached for reading")
				claim = v.PersistentVolumeClaim.ClaimName
				for _, m := range pod.Spec.Containers[0].VolumeMounts {
					if m.Name == v.Name {
						Expect(m.ReadOnly).To(BeTrue(), "it is mounted for reading")
						folder = m.SubPath
					}
				}
			}
		}
		for _, e := range pod.Spec.Containers[0].Env {
			if e.Name == "TIDELINE_DATA_CLICKS" {
				told = e.Value
			}
		}
		return fmt.Sprintf("%s/%s at %s", claim, folder, told)
	}
	drop := func(ctx SpecContext, version int) error {
		object := &v1beta1.ResourceQuotaProfile{}
		if err := shared.World.Client.Get(ctx, client.ObjectKey{Name: "ads"}, object); err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `[{"op":"remove","path":"/spec/dataSets/0/versions/%d"}]`, version)
		return shared.World.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch))
	}
	users := func(version int) func() ([]string, error) {
		return func() ([]string, error) {
			p, err := read("ads")()
			if err != nil || len(p.Status.DataSets) <= version {
				return nil, err
			}
			return p.Status.DataSets[version].UsedBy, nil
		}
	}

	It("are mounted by name and version, surplus and later workers included", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").With(clicks))
		ads.Claim("clicks-1", "/data/1")
		ads.Claim("clicks-2", "/data/2")
		ads.Submit(ads.job("one", 2, 3).With(naming("1")), ads.job("two", 1, 1).With(naming("2")),
			ads.job("three", 1, 1).With(naming("3")))
		Eventually(ads.Fetch("one")).Should(testutil.Train(3))
		Eventually(ads.Fetch("two")).Should(testutil.Train(1))
		Eventually(ads.Fetch("three")).Should(testutil.Train(1))
		ads.DeleteWorker("one", 1)
		Eventually(ads.Fetch("one")).Should(And(testutil.HaveRestarts(1), testutil.Train(3)))
		for i := range int32(3) {
			Expect(where(testutil.Get(ads.Scenario, &corev1.Pod{}, fmt.Sprintf("one-worker-%d", i)))).
				To(Equal("clicks-1/ at /data/clicks"))
		}
		Expect(where(testutil.Get(ads.Scenario, &corev1.Pod{}, "two-worker-0"))).To(Equal("clicks-2/raw at /data/clicks"))
		Expect(where(testutil.Get(ads.Scenario, &corev1.Pod{}, "three-worker-0"))).To(Equal("/ at s3://ads/clicks/3"))
		Eventually(read("ads")).Should(HaveField("Status.DataSets", HaveExactElements(
			And(HaveField("Version", "1"), HaveField("UsedBy", ConsistOf(ads.Namespace+"/one")), HaveField("Space.String()", "1Gi")),
			And(HaveField("Version", "2"), HaveField("UsedBy", ConsistOf(ads.Namespace+"/two")), HaveField("Space.String()", "1Gi")),
			And(HaveField("Version", "3"), HaveField("Jobs", int32(1)), HaveField("Space", BeNil())),
		)), "who uses what is known")
	})

	It("are waited for, the version and the claim", func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads"))
		ads.Submit(ads.job("a", 1, 1).With(naming("1")))
		Eventually(ads.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonDataSetNotFound))
		Expect(ads.Read("a").Status.Message).To(HavePrefix("spec.dataSets[0].name: profile ads has no data set clicks; it has none."))
		By("a profile that has the data set")
		object, err := read("ads")()
		Expect(err).NotTo(HaveOccurred())
		before := object.DeepCopy()
		clicks(&object.Spec)
		Expect(shared.World.Client.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
		Eventually(ads.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonDataClaimNotFound))
		Expect(ads.Read("a").Status.Message).To(HavePrefix(fmt.Sprintf(
			"Version 1 of data set clicks is in PersistentVolumeClaim clicks-1, which namespace %s does not have or is deleting.",
			ads.Namespace)))
		Expect(ads.Pods("a")).To(BeEmpty(), "nothing is created before")
		By("a claim that the data set names")
		ads.Claim("clicks-1", "/data/1")
		Eventually(ads.Fetch("a")).Should(testutil.Train(1), "it goes on by itself")
	})

	It("stay while jobs use them that run, wait or are suspended", func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").With(clicks))
		ads.Claim("clicks-1", "/data/1")
		ads.Submit(ads.job("a", 1, 1).With(naming("1")), ads.job("waits", 99, 99).With(naming("3")))
		Eventually(ads.Fetch("a")).Should(testutil.Train(1))
		Eventually(users(2)).Should(ConsistOf(ads.Namespace + "/waits"))
		Eventually(users(0)).Should(ConsistOf(ads.Namespace + "/a"))
		const refused = "spec.dataSets: Invalid value: a version of a data set that jobs use cannot be removed, and status.dataSets " +
			"says which jobs use what: wait until they have ended, or delete them"
		for _, version := range []int{0, 2} {
			err := drop(ctx, version)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(refused)))
		}
		ads.Patch(ads.Read("a"), `{"spec":{"suspend":true}}`)
		Eventually(ads.Fetch("a")).Should(HaveField("Status.Phase", v1beta1.PhaseSuspended))
		Consistently(users(0)).WithTimeout(several).Should(ConsistOf(ads.Namespace+"/a"), "a suspended job comes back to it")
		Expect(drop(ctx, 0)).To(MatchError(ContainSubstring(refused)))
		Expect(drop(ctx, 1)).To(Succeed(), "version 2 has no user")
		ads.DeleteJob("a")
		Eventually(users(0)).Should(BeEmpty())
		Expect(drop(ctx, 0)).To(Succeed(), "nor has version 1 any more")
	})
})
