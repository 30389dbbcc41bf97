package profile

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("A profile", Serial, func() {
	It("behaviour 4: keeps a namespace that a later one claims too, which says so", suite.Long, func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads"))
		Eventually(read("ads")).Should(HaveField("Status.Namespaces", ConsistOf(ads.Namespace)))
		profile(testutil.Profile("all").With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.NamespaceSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: testutil.TeamLabel, Operator: metav1.LabelSelectorOpExists},
			}}
		}))
		Eventually(read("all")).Should(And(
			condition(v1beta1.ConditionNamespaceConflict, v1beta1.ReasonNamespaceTaken), condition(v1beta1.ConditionReady,
				v1beta1.ReasonQueueReady), HaveField("Status.Namespaces", BeEmpty())), "the later one says whose it is")
		ads.Submit(ads.job("a", 1, 1))
		Eventually(ads.Fetch("a")).Should(And(testutil.Train(1), onRecord("ads"), HaveField("Status.Queue", "ads")), "jobs are ads'")
	})

	It("behaviour 4: puts back what somebody edited in its Queue, and keeps what others set there", func(ctx SpecContext) {
		profile(testutil.Profile("ads"))
		Eventually(queue("ads")).Should(deserve(16), "all there is")
		edited, err := queue("ads")()
		Expect(err).NotTo(HaveOccurred())
		Expect(shared.World.Client.Patch(ctx, edited, client.RawPatch("application/merge-patch+json", []byte(
			`{"metadata":{"annotations":{"example.com/note":"ours"}},"spec":{"deserved":{"nvidia.com/gpu":"1"}}}`)))).To(Succeed())
		Eventually(queue("ads")).Should(And(deserve(16), HaveField("Annotations", HaveKey("example.com/note"))))
	})

	It("behaviour 4: harms no job when it is deleted, and its Queue goes with the last of them", func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads"))
		ads.Submit(ads.job("a", 2, 4))
		Eventually(ads.Fetch("a")).Should(And(testutil.Train(4), onRecord("ads")))
		before := ads.UIDs("a")
		gone, err := read("ads")()
		Expect(err).NotTo(HaveOccurred())
		Expect(shared.World.Client.Delete(ctx, gone)).To(Succeed())
		Eventually(ads.Fetch("a")).Should(onRecord(v1beta1.DefaultProfile), "the job says that it has none")
		Consistently(queue("ads")).WithTimeout(several).Should(deserve(16), "the Queue stays with its share")
		Expect(ads.UIDs("a")).To(Equal(before), "nobody lost a worker")
		ads.DeleteJob("a")
		Eventually(func() error {
			return shared.World.Client.Get(ctx, client.ObjectKey{Name: "ads"}, &schedulingv1beta1.Queue{})
		}).
			Should(MatchError(ContainSubstring("not found")), "the Queue goes with the last gang")
	})

	It("leaves a Queue of its name alone until it is handed over", func() {
		ads := newTeam("ads")
		taken := ads.NewQueueNamed("ads", schedulingv1beta1.QueueSpec{Weight: 7})
		profile(testutil.Profile("ads"))
		Eventually(read("ads")).Should(condition(v1beta1.ConditionStalled, v1beta1.ReasonQueueTaken))
		ads.Submit(ads.job("a", 1, 1))
		Eventually(ads.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonProfileNotReady), "jobs wait and say why")
		Expect(queue("ads")()).To(HaveField("Spec.Weight", BeEquivalentTo(7)), "it was not touched")
		ads.Patch(taken, `{"metadata":{"labels":{"`+v1beta1.LabelProfile+`":"ads"}}}`)
		Eventually(queue("ads")).Should(And(deserve(16), HaveField("Spec.Weight", BeEquivalentTo(1))))
		Eventually(ads.Fetch("a")).Should(testutil.Train(1), "the job goes on by itself")
	})

	It("allows the tiers that it lists, and has a default of its own", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").Tiers("small-traffic", "exploratory"))
		ads.Submit(ads.job("a", 1, 1))
		Eventually(ads.Fetch("a")).Should(And(testutil.Train(1), HaveField("Status.Tier", "small-traffic")))
		Expect(ads.Worker("a", 0).Spec.PriorityClassName).To(Equal("tideline-small-traffic"))
		ads.Submit(ads.job("b", 1, 1).Tier("main-traffic"))
		Eventually(ads.Fetch("b")).Should(testutil.BeStalled(v1beta1.ReasonTierNotAllowed), "also where no webhook refused it")
		Expect(ads.Read("b").Status.Message).To(HavePrefix(`spec.tier: profile ads does not allow tier "main-traffic"; it ` +
			`allows exploratory, small-traffic`))
	})
})

var _ = Describe("Shares", Serial, func() {
	It("behaviour 9: the other borrows all that is idle, and gives it back, surplus first", func() {
		ads, search := newTeam("ads"), newTeam("search")
		profile(testutil.Profile("ads").Weight(3))
		profile(testutil.Profile("search").Weight(1))
		Eventually(queue("ads")).Should(deserve(12))
		Eventually(queue("search")).Should(deserve(4))

		search.Submit(search.job("borrower", 4, 16))
		Eventually(search.Fetch("borrower")).Should(testutil.Train(16), "all that is idle is lent")
		before := search.UIDs("borrower")
		Eventually(read("search")).Should(HaveField("Status.Accelerators", "16/4/-"))
		Expect(read("search")()).To(HaveField("Status.Borrowed", HaveKey(testutil.GPUResource)))
		Eventually(read("ads")).Should(HaveField("Status.Lent", HaveKey(testutil.GPUResource)))

		ads.Submit(ads.job("owner", 12, 12))
		Eventually(ads.Fetch("owner")).Should(testutil.Train(12), "the owner returns, and has its share")
		Eventually(search.Fetch("borrower")).Should(testutil.Train(4), "the borrower goes on with its share")
		after := search.UIDs("borrower")
		for i := range 4 {
			Expect(after[i]).To(Equal(before[i]), "worker %d of the core is the one it was: no gang was broken", i)
		}
		Expect(search.Read("borrower")).To(testutil.HaveRestarts(0))
	})

	It("behaviour 9: surplus that waits has the places of surplus above its share", suite.Long, func() {
		ads, search := newTeam("ads"), newTeam("search")
		profile(testutil.Profile("ads"))
		profile(testutil.Profile("search"))
		Eventually(queue("ads")).Should(deserve(8))
		search.Submit(search.job("first", 2, 16))
		Eventually(search.Fetch("first")).Should(testutil.Train(16))
		ads.Submit(ads.job("second", 2, 16))
		Eventually(ads.Fetch("second")).Should(testutil.Train(8), "each has its share, surplus and all")
		Eventually(search.Fetch("first")).Should(testutil.Train(8))
		Consistently(ads.Fetch("second")).WithTimeout(several).Should(testutil.Train(8), "and nobody takes it back")
		Expect(search.Read("first")).To(testutil.HaveRestarts(0))
	})

	It("behaviour 9: a guarantee is kept free, also while nobody uses it", func() {
		ads, search := newTeam("ads"), newTeam("search")
		profile(testutil.Profile("ads").Guarantee(10))
		profile(testutil.Profile("search"))
		Eventually(queue("ads")).Should(deserve(13))
		Eventually(queue("search")).Should(deserve(3))
		search.Submit(search.job("borrower", 2, 16))
		Eventually(search.Fetch("borrower")).Should(testutil.Train(6), "what is guaranteed to nobody is lent")
		Consistently(search.Fetch("borrower")).WithTimeout(several).Should(testutil.Train(6))
		ads.Submit(ads.job("owner", 10, 10))
		Eventually(ads.Fetch("owner")).Should(testutil.Train(10), "the owner runs at once")
		Expect(search.Fetch("borrower")()).To(testutil.Train(6), "and nobody gave way")
	})
})

var _ = Describe("Repacking", Serial, func() {
	It("behaviour 9: surplus of another queue moves for a gang in pieces, once its profile allows it", func(ctx SpecContext) {
		ads, search := newTeam("ads"), newTeam("search")
		profile(testutil.Profile("ads"))
		profile(testutil.Profile("search"))
		Eventually(queue("search")).Should(deserve(8))
		search.Submit(search.job("holder", 1, 2).GPUs(2))
		Eventually(search.Fetch("holder")).Should(testutil.Train(2))
		workers, err := search.Pods("holder")
		Expect(err).NotTo(HaveOccurred())
		before, node := search.UIDs("holder"), workers[0].Spec.NodeName
		Expect(workers).To(HaveEach(HaveField("Spec.NodeName", node)), "both are on one node")
		ads.Submit(ads.job("small", 1, 1).GPUs(4).Template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{
						Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
					}},
				}}},
			}}
		}))
		Eventually(ads.Fetch("small")).Should(testutil.Train(1))

		By("four GPUs free on each node, and a gang that needs six on one")
		ads.Submit(ads.job("large", 1, 1).GPUs(6).Starvation(time.Second))
		Eventually(ads.Fetch("large")).WithTimeout(2 * time.Minute).Should(HaveField("Status.Message",
			ContainSubstring("It would fit if surplus moved to other nodes: "+search.Namespace+"/holder (1).")))
		Consistently(search.Fetch("holder")).WithTimeout(several).Should(testutil.Train(2), "advice is all that it gets")

		By("a profile that allows it")
		Eventually(func() error {
			p, err := read("search")()
			if err != nil {
				return err
			}
			p.Spec.Queue.Repacking = v1beta1.RepackingMove
			return shared.World.Client.Update(ctx, p)
		}).Should(Succeed())
		Eventually(ads.Fetch("large")).WithTimeout(2 * time.Minute).Should(testutil.Train(1))
		Eventually(search.Fetch("holder")).Should(testutil.Train(2), "and the worker trains on the other node")
		Expect(search.UIDs("holder")[0]).To(Equal(before[0]), "its core stayed")
		Expect(search.Pods("holder")).To(ConsistOf(
			HaveField("Spec.NodeName", node), HaveField("Spec.NodeName", Not(Equal(node)))))
		Expect(search.Read("holder")).To(testutil.HaveRestarts(0))
	})
})
