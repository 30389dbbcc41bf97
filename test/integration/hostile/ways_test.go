package hostile

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// On a cluster of its own, one spec after another: some are about all nodes that there are.
var _ = Describe("A user of a namespace", Ordered, ContinueOnFailure, suite.Long, func() {
	var in *installation
	BeforeAll(func(ctx SpecContext) { in = install(ctx) })

	// trains has alice train with as many workers as there are GPUs on her node.
	trains := func(minimum, gpus int32) *person {
		GinkgoHelper()
		her := in.person(alice, "hers", int64(gpus))
		her.submits(her.Job("a").Range(minimum, gpus).Obj())
		Eventually(her.Fetch("a")).Should(testutil.Train(int(gpus)), "hers has all GPUs")
		return her
	}
	// unharmed expects that no worker of hers leaves.
	unharmed := func(her *person, workers int) {
		GinkgoHelper()
		before := her.UIDs("a")
		Expect(before).To(HaveLen(workers))
		Consistently(her.Fetch("a")).WithTimeout(afterwards).Should(testutil.Train(workers), "no worker of hers leaves")
		Expect(her.UIDs("a")).To(Equal(before), "hers keeps its pods")
	}

	DescribeTable("has no worker leave for pods that could not use the room, because", func(change func(*corev1.Pod)) {
		her := trains(2, 4)
		him := in.person(mallory, "his")
		him.submits(him.gang("b", her.Namespace, change, 1, 1)...)
		unharmed(her, 4)
	},
		Entry("T1: gates hold them", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}}
		}),
		Entry("T1: their claim is of no volume", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "there-is-none"},
			}}}
		}),
	)

	// Volcano looks at each pod by itself and evicts surplus for both, which docs/security.md says.
	DescribeTable("costs a training no more than its surplus, where", func(change func(*corev1.Pod)) {
		her := trains(2, 4)
		core := her.UIDs("a")
		him := in.person(mallory, "his")
		him.submits(him.gang("b", her.Namespace, change, 1, 1)...)
		Consistently(her.Fetch("a")).WithTimeout(afterwards).Should(And(testutil.HavePhase(v1beta1.PhaseRunning),
			testutil.HaveRestarts(0), HaveField("Status.ReadyReplicas", BeNumerically(">=", 2))))
		Expect(her.UIDs("a")).To(And(HaveKeyWithValue(0, core[0]), HaveKeyWithValue(1, core[1])), "the core keeps its pods")
		him.removes(testutil.Get(him.Scenario, &schedulingv1beta1.PodGroup{}, "b"), him.Worker("b", 0), him.Worker("b", 1))
		Eventually(her.Fetch("a")).Should(testutil.Train(4), "hers has all GPUs again")
	},
		Entry("T5: both pods want the same port of the only node", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 7000, HostPort: 7000}}
		}),
		Entry("T5: no pod wants to be beside the other", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "lonely"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "lonely"}}, TopologyKey: corev1.LabelHostname,
				}},
			}}
		}),
	)

	It("T4: has no more leave for a gang of two shapes than it needs", func() {
		her, him := trains(1, 4), in.person(mallory, "his")
		him.submits(him.gang("b", her.Namespace, func(*corev1.Pod) {}, 0, 1, 1)...)
		placed := func() (count int, err error) {
			pods := &corev1.PodList{}
			err = him.Client.List(him.Context(), pods, client.InNamespace(him.Namespace))
			for i := range pods.Items {
				if pods.Items[i].Spec.NodeName != "" {
					count++
				}
			}
			return count, err
		}
		Eventually(placed).Should(Equal(3), "it gets its room")
		Eventually(her.Fetch("a")).Should(testutil.Train(2), "two have left")
		unharmed(her, 2)
	})

	It("T6: does not go before who ranks higher, by having come earlier", func() {
		const waits = v1beta1.ReasonQuotaExceeded
		her, him := in.person(alice, "hers", 2), in.person(mallory, "his")
		him.Create(testutil.Profile("ranks").With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.Order = &v1beta1.ProfileOrder{}
			spec.Members = []v1beta1.ProfileMember{
				{Kind: v1beta1.MemberUser, Name: mallory, Standing: v1beta1.StandingIntern},
				{Kind: v1beta1.MemberUser, Name: alice, Standing: v1beta1.StandingSenior},
			}
		}).Obj())
		her.Join("ranks")
		him.Join("ranks")
		her.submits(her.Job("running").Range(2, 2).Obj())
		Eventually(her.Fetch("running")).Should(testutil.Train(2))
		him.submits(him.Job("early").Pool(her.Namespace).Range(2, 2).Obj())
		Eventually(him.Fetch("early")).Should(testutil.Wait(waits))
		her.submits(her.Job("late").Range(2, 2).Obj())
		Eventually(her.Fetch("late")).Should(testutil.Wait(waits))
		her.removes(her.Read("running"))
		Eventually(her.Fetch("late")).Should(testutil.Train(2), "hers came later, and goes first")
		Expect(him.Fetch("early")()).To(testutil.Wait(waits))
	})

	// merge is a merge of hers or his that is due, on the nodes of a pool, in the line that all share.
	merge := func(of *person, name, pool string, age time.Duration) *testutil.MergeBuilder {
		GinkgoHelper()
		models := of.NewModels(in.store)
		models.Due(name, age)
		return testutil.Merge(name).In(of.Namespace).Nodes(pool).GPUs(1).Store(models.Of(name))
	}
	merges := func(her *person) {
		GinkgoHelper()
		Eventually(her.FetchMerge("model")).WithTimeout(4*time.Minute).Should(
			HaveField("Status.Phase", v1beta1.MergeRunning), "hers runs")
	}

	It("T8: does not stop another's merge by pods and PodGroups that look like it", func() {
		her, him := in.person(alice, "hers", 2), in.person(mallory, "his")
		job := merge(her, "model", her.Namespace, 12*time.Hour).Obj()
		forged := map[string]string{v1beta1.LabelMerge: job.Name, v1beta1.LabelModelHash: mergepod.ModelHash(job)}
		ghost := metav1.OwnerReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.MergeJobKind, Name: job.Name, UID: types.UID("ghost"),
			Controller: ptr.To(true),
		}
		for _, o := range him.gang("model-merge", her.Namespace, func(*corev1.Pod) {}, 1) {
			o.SetLabels(forged)
			o.SetFinalizers([]string{"example.com/never"})
			// Without garbage collection these would stay; with it they stay for their finalizers.
			o.SetOwnerReferences([]metav1.OwnerReference{ghost})
			if group, ok := o.(*schedulingv1beta1.PodGroup); ok {
				group.Spec.Queue = "tideline-merge"
			}
			him.submits(o)
			DeferCleanup(func(ctx SpecContext) {
				free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				Expect(client.IgnoreNotFound(him.Client.Patch(ctx, o, free))).To(Succeed())
			})
		}
		her.submits(job)
		merges(her)
	})

	It("T9: does not hold the line of merges by one that is never placed", func() {
		her, him := in.person(alice, "hers", 2), in.person(mallory, "his")
		him.submits(merge(him, "stuck", her.Namespace, 90*time.Hour).With(func(spec *v1beta1.MergeJobSpec) {
			spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "there-is-none"},
			}}}
		}).Obj())
		Eventually(him.FetchMerge("stuck")).Should(HaveField("Status.Reason", v1beta1.ReasonAsking), "his is at the head")
		her.submits(merge(her, "model", her.Namespace, 12*time.Hour).Obj())
		merges(her)
		Expect(him.ReadMerge("stuck").Status.SetAside).NotTo(BeNil(), "his was set aside")
	})

	It("T10: does not keep room by pods that take a year to end", func() {
		her, him, bob := in.person(alice, "hers"), in.person(mallory, "his"), in.person("bob@example.com", "bobs", 4)
		bob.submits(bob.Job("a").Range(2, 2).Obj())
		him.submits(him.Job("b").Pool(bob.Namespace).Range(2, 2).Obj())
		Eventually(bob.Fetch("a")).Should(testutil.Train(2))
		Eventually(him.Fetch("b")).Should(testutil.Train(2))
		pods, err := him.Pods("b")
		Expect(err).NotTo(HaveOccurred())
		for i := range pods {
			lingers := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`,
				cluster.LingerAnnotation))
			Expect(him.acts.Patch(him.Context(), &pods[i], lingers)).To(Succeed())
			year := int64((365 * 24 * time.Hour).Seconds())
			Expect(him.acts.Delete(him.Context(), &pods[i], client.GracePeriodSeconds(year))).To(Succeed())
		}
		her.submits(her.Job("urgent").Pool(bob.Namespace).Range(2, 2).Tier("main-traffic").Asks("1", "1Gi").Obj())
		Eventually(her.Fetch("urgent")).Should(testutil.Train(2), "hers does not wait for a year")
		for i := range pods {
			Expect(client.IgnoreNotFound(him.Client.Delete(him.Context(), &pods[i], client.GracePeriodSeconds(0)))).To(Succeed())
		}
	})

	It("T12: takes no memory of the operator by what its caches select", func() {
		const megabytes = 100
		her, him := in.person(alice, "hers", 1), in.person(mallory, "his")
		before, err := in.Operator.Memory()
		Expect(err).NotTo(HaveOccurred())
		for i := range megabytes {
			him.submits(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: him.Namespace, Name: fmt.Sprint("large-", i), Labels: map[string]string{v1beta1.LabelJob: "b"},
				},
				Data: map[string]string{"a": strings.Repeat("x", 1_000_000)},
			})
		}
		her.submits(her.Job("a").Range(1, 1).Obj())
		Eventually(her.Fetch("a")).Should(testutil.Train(1), "hers trains")
		after, err := in.Operator.Memory()
		Expect(err).NotTo(HaveOccurred())
		// The race detector needs several bytes for each that is kept, so all of it would be several times as much.
		Expect(after).To(BeNumerically("<", before+megabytes<<20), "bytes of the process")
	})

	It("T15: does not get a budget anew by a new start of the operator", func(ctx SpecContext) {
		her, him := in.person(alice, "hers", 2), in.person(mallory, "his")
		denied := in.person(mallory, "denied")
		for name, exceeded := range map[string]v1beta1.OnExceeded{"budget": v1beta1.ExceededQueue, "denies": v1beta1.ExceededDeny} {
			him.Create(testutil.Profile(name).With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
				spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{
					Window: metav1.Duration{Duration: 168 * time.Hour}, PerUser: 50, OnExceeded: exceeded,
				}}}
			}).Obj())
		}
		her.Join("budget")
		him.Join("budget")
		denied.Join("denies")
		him.submits(him.Job("over").Pool(her.Namespace).Range(1, 1).Obj())
		over := And(testutil.Wait(v1beta1.ReasonQuotaExceeded), HaveField("Status.Message", ContainSubstring("50")))
		Eventually(him.Fetch("over")).Should(over)
		Eventually(func() ([]v1beta1.OverBudget, error) {
			profile := &v1beta1.ResourceQuotaProfile{}
			err := in.Client.Get(ctx, client.ObjectKey{Name: "budget"}, profile)
			return profile.Status.OverBudget, err
		}).Should(HaveLen(1), "the profile names him")
		him.submits(merge(him, "model", her.Namespace, 12*time.Hour).Obj())
		mergeWaits := HaveField("Status.Reason", v1beta1.ReasonQuotaExceeded)
		Eventually(him.FetchMerge("model")).Should(mergeWaits)
		another := func() error { return denied.acts.Create(ctx, denied.Job("a").Range(1, 1).Obj(), client.DryRunAll) }
		Eventually(another).Should(MatchError(ContainSubstring("accelerator hours")))
		in.Operator.Kill()
		Expect(in.Operator.Start(ctx)).To(Succeed())
		Expect(in.AwaitWebhooks(ctx)).To(Succeed())
		her.submits(her.Job("a").Range(1, 1).Obj())
		Eventually(her.Fetch("a")).Should(testutil.Train(1), "hers trains")
		Consistently(func(g Gomega) {
			g.Expect(him.ReadMerge("model")).To(mergeWaits)
			g.Expect(him.Read("over")).To(testutil.Wait(v1beta1.ReasonQuotaExceeded))
			g.Expect(another()).To(MatchError(ContainSubstring("accelerator hours")))
		}).WithTimeout(afterwards).Should(Succeed(), "his wait on, and others are refused")
	})

	It("T16: does not get reserved room by a job of the name", func(ctx SpecContext) {
		her, him := in.person(alice, "hers", 4), in.person(mallory, "his")
		profile := testutil.Profile("launches").Reserve(1, 4, "launch", alice, time.Now().Add(time.Hour)).Obj()
		him.Create(profile)
		DeferCleanup(func(ctx context.Context) { Expect(him.Client.Delete(ctx, profile)).To(Succeed()) })
		her.Join("launches")
		him.Join("launches")
		phase := func() (v1beta1.ReservationPhase, error) {
			err := in.Client.Get(ctx, client.ObjectKeyFromObject(profile), profile)
			if len(profile.Status.Reservations) == 0 {
				return "", err
			}
			return profile.Status.Reservations[0].Phase, err
		}
		Eventually(phase).Should(Equal(v1beta1.ReservationHeld))
		him.submits(him.Job("launch").Pool(her.Namespace).Range(4, 4).Obj())
		Eventually(him.Fetch("launch")).Should(testutil.HaveReason(v1beta1.ReasonUnschedulable))
		Consistently(phase).WithTimeout(afterwards).Should(Equal(v1beta1.ReservationHeld), "his does not get it")
		her.submits(her.Job("launch").Range(4, 4).Obj())
		Eventually(her.Fetch("launch")).Should(testutil.Train(4), "hers does")
	})
})
