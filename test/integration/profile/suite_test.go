// Package profile shows the numbered behaviours of ResourceQuotaProfiles on a real API server and a real Volcano, with the
// operator as a real process. Shares are of the whole cluster, so one spec follows another, on 16 GPUs that all of them have.
package profile

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// several is a few of Volcano's cycles.
const several = 3 * time.Second

func TestProfile(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Profiles")
}

var shared = suite.New(cluster.Options{GPUNodes: 2, GPUsPerNode: 8, SchedulePeriod: 100 * time.Millisecond}).
	MustUse("create queues.scheduling.volcano.sh", "patch queues.scheduling.volcano.sh", "delete queues.scheduling.volcano.sh",
		"patch resourcequotaprofiles/status.tideline.io")

// team is a scenario in a namespace of a team.
type team struct{ *testutil.Scenario }

func newTeam(name string) team {
	GinkgoHelper()
	t := team{shared.World.NewScenario(GinkgoT(), name)}
	t.Join(name)
	return t
}

// job is one of one GPU a worker, on whatever node, that grows again after a second.
func (t team) job(name string, minimum, maximum int32) *testutil.JobBuilder {
	return testutil.Job(name).In(t.Namespace).GPUs(1).Range(minimum, maximum).Cooldown(time.Second)
}

// Every spec begins without profiles, and without their Queues, which go with the last gang of the spec before.
var _ = BeforeEach(func(ctx SpecContext) {
	ours := client.HasLabels{v1beta1.LabelProfile}
	Eventually(func() ([]schedulingv1beta1.Queue, error) {
		list := &schedulingv1beta1.QueueList{}
		err := shared.World.Client.List(ctx, list, ours)
		return list.Items, err
	}).Should(BeEmpty())
})

// profile creates a profile, which is removed when the spec ends.
func profile(b *testutil.ProfileBuilder) {
	GinkgoHelper()
	object := b.Obj()
	Expect(shared.World.Client.Create(GinkgoT().Context(), object)).To(Succeed(), "the profile is created")
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(shared.World.Client.Delete(ctx, object))).To(Succeed())
	})
}

// read reads a profile, for Eventually.
func read(name string) func() (*v1beta1.ResourceQuotaProfile, error) {
	ctx := GinkgoT().Context()
	return func() (*v1beta1.ResourceQuotaProfile, error) {
		p := &v1beta1.ResourceQuotaProfile{}
		return p, shared.World.Client.Get(ctx, client.ObjectKey{Name: name}, p)
	}
}

// queue reads a Queue, for Eventually.
func queue(name string) func() (*schedulingv1beta1.Queue, error) {
	ctx := GinkgoT().Context()
	return func() (*schedulingv1beta1.Queue, error) {
		q := &schedulingv1beta1.Queue{}
		return q, shared.World.Client.Get(ctx, client.ObjectKey{Name: name}, q)
	}
}

// deserve matches a Queue with a share of n GPUs.
func deserve(n int64) types.GomegaMatcher {
	return WithTransform(func(q *schedulingv1beta1.Queue) int64 {
		gpus := q.Spec.Deserved[testutil.GPUResource]
		return gpus.Value()
	}, Equal(n))
}

// condition matches a profile of which a condition is True with this reason.
func condition(kind, reason string) types.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", kind), HaveField("Status", metav1.ConditionTrue), HaveField("Reason", reason))))
}

// onRecord matches a job whose status names the profile.
func onRecord(profile string) types.GomegaMatcher { return HaveField("Status.Profile", profile) }
