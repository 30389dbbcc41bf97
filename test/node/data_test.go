//go:build linux

package node_test

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// reading is a job of one worker that says what is in a version of data set clicks, and whether it can write there.
func reading(s *testutil.Scenario, name, version string) {
	GinkgoHelper()
	const script = `cat "$TIDELINE_DATA_CLICKS/rows"; touch "$TIDELINE_DATA_CLICKS/mine" 2>&1; sleep 3600`
	s.Create(testutil.Job(name).In(s.Namespace).GPUs(1).Range(1, 1).With(func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.Framework.Type = v1beta1.FrameworkCustom
		job.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: version}}
	}).Template(func(t *corev1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		c.Image, c.Command, c.Args = mpiImage, []string{"sh", "-c", script}, nil
	}).Obj())
}

// hears are the last words of the only worker of a job.
func hears(s *testutil.Scenario, name string) func() ([]string, error) {
	return func() ([]string, error) {
		pods, err := s.Pods(name)
		if err != nil || len(pods) != 1 {
			return nil, err
		}
		return machine.Logs(&pods[0], "trainer")
	}
}

var _ = Describe("Data sets on a real node", func() {
	It("are read by two jobs in two versions at once, and by a third in one that comes later", func(ctx SpecContext) {
		s := shared.World.NewScenario(GinkgoT(), "data")
		folder := GinkgoT().TempDir()
		Expect(os.Chmod(folder, 0o777)).To(Succeed()) // a pod may be anybody
		write := func(version string) v1beta1.DataVersion {
			place := filepath.Join(folder, version)
			Expect(os.Mkdir(place, 0o777)).To(Succeed())
			Expect(os.Chmod(place, 0o777)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(place, "rows"), []byte("rows of "+version+"\n"), 0o644)).To(Succeed())
			return v1beta1.DataVersion{Version: version, Claim: "clicks", Folder: version}
		}
		s.Claim("clicks", folder)
		profile := testutil.Profile(s.Namespace).With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.DataSets = []v1beta1.ProfileDataSet{{
				Name: "clicks", Versions: []v1beta1.DataVersion{write("2026-10"), write("2026-11")},
			}}
		}).Obj()
		Expect(s.Client.Create(ctx, profile)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(s.Client.Delete(ctx, profile)).To(Succeed()) })
		s.Join(s.Namespace)

		reading(s, "a", "2026-10")
		reading(s, "b", "2026-11")
		says := func(version string) OmegaMatcher {
			return And(ContainElement("rows of "+version), ContainElement(ContainSubstring("Read-only file system")))
		}
		Eventually(hears(s, "a")).WithTimeout(2 * time.Minute).Should(says("2026-10"))
		Eventually(hears(s, "b")).WithTimeout(2 * time.Minute).Should(says("2026-11"))

		before := profile.DeepCopy()
		profile.Spec.DataSets[0].Versions = append(profile.Spec.DataSets[0].Versions, write("2026-12"))
		Expect(s.Client.Patch(ctx, profile, client.MergeFrom(before))).To(Succeed(), "a version comes")
		reading(s, "c", "2026-12")
		Eventually(hears(s, "c")).WithTimeout(2 * time.Minute).Should(says("2026-12"))
		Expect(hears(s, "a")()).To(says("2026-10"), "whoever trains keeps what it has")

		users := func() ([]v1beta1.DataSetStatus, error) {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(profile), profile)
			return profile.Status.DataSets, err
		}
		Eventually(users).WithTimeout(time.Minute).Should(HaveExactElements(
			HaveField("UsedBy", ConsistOf(s.Namespace+"/a")), HaveField("UsedBy", ConsistOf(s.Namespace+"/b")),
			HaveField("UsedBy", ConsistOf(s.Namespace+"/c"))), "who reads which is known")
		first := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/dataSets/0/versions/0"}]`))
		Expect(s.Client.Patch(ctx, profile, first)).To(MatchError(ContainSubstring("that jobs use cannot be removed")),
			"one that is read stays")
		s.DeleteJob("a")
		Eventually(func() error { return s.Client.Patch(ctx, profile, first) }).WithTimeout(time.Minute).Should(Succeed(),
			"and goes later")
		Expect(hears(s, "b")()).To(says("2026-11"))
	})
})
