package order

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// On a cluster of its own, because who used how much is in the ledger before its operator starts. It has two GPUs.
var _ = Describe("Order", Ordered, func() {
	const waits = v1beta1.ReasonQuotaExceeded
	// first matches a training that waits after no other: by the order that holds when its message is written.
	first := HaveField("Status.Message", Not(ContainSubstring(", after ")))
	var in *testutil.Installation
	BeforeAll(func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		configuration, file := filepath.Join(folder, "configuration.yaml"), filepath.Join(folder, "ledger.db")
		tiers, err := yaml.Marshal(map[string]any{"tiers": slices.Insert(config.DefaultTiers(), 0, config.Tier{
			Name: "short", Priority: 900, SurplusPriority: -400, QoS: config.QoSBurstable, LongestRunSeconds: 3,
			Sizing: config.DefaultTiers()[0].Sizing,
		})})
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(configuration, []byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\nledger:\n  file: "+file+
			"\n"+string(tiers)), 0o600)).To(Succeed(), "there is a configuration")
		for _, profile := range []string{"fair", "budget"} {
			Expect(recordUse(ctx, file, profile, "much", 100*time.Hour)).To(Succeed(), "much has used 100 hours")
		}
		in = suite.Own(ctx, cluster.Options{GPUNodes: 1, GPUsPerNode: 2, SchedulePeriod: 100 * time.Millisecond},
			"--config="+configuration)
	})
	// begin makes a team with an order, without cap and capability, in which ivy is an intern and sam a senior, and a training
	// that holds both GPUs.
	begin := func(name string, order v1beta1.ProfileOrder) team {
		GinkgoHelper()
		s := in.NewScenario(GinkgoT(), name)
		s.Create(testutil.Profile(name).With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.Order = &order
			spec.Members = []v1beta1.ProfileMember{
				{Kind: v1beta1.MemberUser, Name: "ivy", Standing: v1beta1.StandingIntern},
				{Kind: v1beta1.MemberUser, Name: "sam", Standing: v1beta1.StandingSenior},
			}
		}).Obj())
		s.Join(name)
		t := team{s}
		t.Submit(t.job("running", 2, 2).Owner("bob"))
		Eventually(t.Fetch("running")).Should(testutil.Train(2))
		return t
	}

	It("behaviour 18a: of two GPUs that become free a senior's newer training goes before an intern's older", func() {
		ads := begin("ads", v1beta1.ProfileOrder{})
		ads.Submit(ads.job("intern", 2, 2).Owner("ivy"))
		Eventually(ads.Fetch("intern")).Should(testutil.Wait(waits))
		Expect(ads.Pods("intern")).To(BeEmpty(), "there is no gang that Volcano would place")
		ads.Submit(ads.job("senior", 2, 2).Owner("sam"))
		Eventually(ads.Fetch("senior")).Should(And(testutil.Wait(waits), first))
		ads.DeleteJob("running")
		Eventually(ads.Fetch("senior")).Should(testutil.Train(2), "it came later, and goes first")
		Consistently(ads.Fetch("intern")).WithTimeout(several).Should(testutil.Wait(waits))
		ads.DeleteJob("senior")
		Eventually(ads.Fetch("intern")).Should(testutil.Train(2))
		ads.DeleteJob("intern")
	})

	It("behaviour 18b: of two users of one standing the one who used much goes behind", func() {
		fair := begin("fair", v1beta1.ProfileOrder{})
		fair.Submit(fair.job("older", 2, 2).Owner("much"))
		Eventually(fair.Fetch("older")).Should(testutil.Wait(waits))
		fair.Submit(fair.job("newer", 2, 2).Owner("little"))
		Eventually(fair.Fetch("newer")).Should(And(testutil.Wait(waits), first))
		fair.DeleteJob("running")
		Eventually(fair.Fetch("newer")).Should(testutil.Train(2))
		Consistently(fair.Fetch("older")).WithTimeout(several).Should(testutil.Wait(waits))
		fair.DeleteJob("newer")
		Eventually(fair.Fetch("older")).Should(testutil.Train(2))
		fair.DeleteJob("older")
	})

	It("behaviour 18c: an intern's training runs within its bound, although seniors' keep coming", func() {
		const ageing = 10 * time.Second
		aged := begin("aged", v1beta1.ProfileOrder{Ageing: &metav1.Duration{Duration: ageing}})
		aged.Submit(aged.job("intern", 2, 2).Owner("ivy"))
		Eventually(aged.Fetch("intern")).Should(testutil.Wait(waits))
		began, running, passed := time.Now(), "running", 0
		for i := 0; aged.Read("intern").Status.RunningSince == nil; i++ {
			Expect(time.Since(began)).To(BeNumerically("<", 3*ageing+20*time.Second), "its bound, and an evaluation and a training more")
			next := fmt.Sprintf("senior-%d", i)
			aged.Submit(aged.job(next, 2, 2).Owner("sam"))
			Eventually(aged.Fetch(next)).Should(testutil.Wait(waits))
			aged.DeleteJob(running)
			Eventually(func() bool {
				return aged.Read(next).Status.RunningSince != nil || aged.Read("intern").Status.RunningSince != nil
			}).Should(BeTrue())
			running, passed = next, passed+1
		}
		Expect(passed).To(BeNumerically(">", 1), "seniors' went before it at first")
		aged.DeleteJob("intern")
		aged.DeleteJob(running)
	})

	// limited makes a team with caps, whose jobs ask for one GPU.
	limited := func(name string, caps v1beta1.ProfileCaps) team {
		GinkgoHelper()
		s := in.NewScenario(GinkgoT(), name)
		s.Create(testutil.Profile(name).With(func(spec *v1beta1.ResourceQuotaProfileSpec) { spec.Caps = &caps }).Obj())
		s.Join(name)
		return team{s}
	}

	It("behaviour 5: a user who has used up a budget waits, and others train", func() {
		budget := limited("budget", v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{
			Window: metav1.Duration{Duration: 168 * time.Hour}, PerUser: 50,
		}}})
		budget.Submit(budget.job("over", 1, 1).Owner("much"))
		Eventually(budget.Fetch("over")).Should(And(testutil.Wait(waits), HaveField("Status.Message", ContainSubstring("50"))))
		budget.Submit(budget.job("under", 1, 1).Owner("little@example.com"))
		Eventually(budget.Fetch("under")).Should(testutil.Train(1))
		Consistently(budget.Fetch("over")).WithTimeout(several).Should(testutil.Wait(waits))
		budget.DeleteJob("over")
		budget.DeleteJob("under")
	})

	It("behaviour 5: a cap by model counts trainings that name the model, and no others", func(ctx SpecContext) {
		nodes := &corev1.NodeList{}
		Expect(in.Client.List(ctx, nodes)).To(Succeed())
		for i := range nodes.Items {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"nvidia.com/gpu.product":"A100"}}}`))
			Expect(in.Client.Patch(ctx, &nodes.Items[i], patch)).To(Succeed())
		}
		model := limited("model", v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{
			{Resource: string(testutil.GPUResource), Model: "A100", Max: resource.MustParse("1")},
			{Resource: string(testutil.GPUResource), Model: "H100", Max: resource.MustParse("0")},
		}})
		on := func(name string) *testutil.JobBuilder {
			return model.job(name, 1, 1).Owner("amy").With(func(j *v1beta1.ElasticTrainingJob) {
				j.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100"}}
			})
		}
		model.Submit(on("first"))
		Eventually(model.Fetch("first")).Should(testutil.Train(1), "the cap on another model does not count")
		model.Submit(on("second"))
		Eventually(model.Fetch("second")).Should(And(testutil.Wait(waits), HaveField("Status.Message", ContainSubstring("A100"))))
		model.DeleteJob("first")
		Eventually(model.Fetch("second")).Should(testutil.Train(1))
		model.DeleteJob("second")
	})

	It("behaviour 5: a cap on pods counts pods", func() {
		pods := limited("pods", v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{{
			Resource: string(corev1.ResourcePods), Max: resource.MustParse("1"),
		}}})
		pods.Submit(pods.job("first", 1, 1).Owner("amy"))
		Eventually(pods.Fetch("first")).Should(testutil.Train(1))
		pods.Submit(pods.job("second", 1, 1).Owner("amy"))
		Eventually(pods.Fetch("second")).Should(And(testutil.Wait(waits), HaveField("Status.Message", ContainSubstring("pods"))))
		pods.DeleteJob("first")
		Eventually(pods.Fetch("second")).Should(testutil.Train(1))
		pods.DeleteJob("second")
	})

	It("ends a training that has run for as long as its tier allows", func() {
		short := limited("short", v1beta1.ProfileCaps{})
		short.Submit(short.job("long", 1, 1).Tier("short").Owner("amy"))
		Eventually(short.Fetch("long")).Should(testutil.Train(1))
		Eventually(short.Fetch("long")).Should(And(HaveField("Status.Phase", v1beta1.PhaseFailed),
			HaveField("Status.Message", ContainSubstring("as long as tier short allows"))))
	})
})

// recordUse records that a user held one GPU until now.
func recordUse(ctx context.Context, file, profile, user string, d time.Duration) error {
	l, err := ledger.Open(ctx, ledger.Options{File: file})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	now := time.Now()
	return l.RecordEntries(ctx, ledger.Entries{Stays: []ledger.Stay{{
		Pod: ledger.Pod{
			UID: "used-" + profile, Namespace: profile, Name: "used", Node: "gpu-0", Profile: profile, Queue: profile, User: user,
			Kind: "Pod", Task: "used",
			Resources: ledger.Resources{string(testutil.GPUResource): 1000},
		},
		Begin: now.Add(-d), End: now, Final: true, Outcome: ledger.Succeeded,
	}}})
}
