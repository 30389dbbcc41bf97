package profile

import (
	"context"
	"maps"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

const (
	alice = "alice@example.com"
	// keeps is in each refusal of the guard.
	keeps = "keeps accelerators and resource claims in namespace"
	// mostGPUs is what alice may have.
	mostGPUs = 2
	model    = "NVIDIA-A100-SXM4-80GB"
)

// Whoever may do everything in the team's namespaces tries each way to more GPUs than the profile lets a user have, with webhooks
// on. What controllers create for her is hers too: what counts in the end is who holds GPUs.
var _ = Describe("T11: a user of a profile that refuses other workloads", Ordered, ContinueOnFailure, suite.Long, func() {
	var in *testutil.Installation
	var first, second *testutil.Scenario
	var hers client.Client
	BeforeAll(func(ctx SpecContext) {
		address, err := testutil.FreeAddress()
		Expect(err).NotTo(HaveOccurred(), "there is a port for the webhooks")
		in = shared.Own(ctx, cluster.Options{GPUNodes: 2, GPUsPerNode: 8, SchedulePeriod: 100 * time.Millisecond},
			"--webhooks", "--webhook-bind-address="+address)
		Expect(in.InstallWebhooks(ctx, address)).To(Succeed(), "the webhooks answer")
		nodes := &corev1.NodeList{}
		Expect(in.Client.List(ctx, nodes)).To(Succeed())
		for i := range nodes.Items {
			n := nodes.Items[i].DeepCopy()
			n.Labels["nvidia.com/gpu.product"] = model
			Expect(in.Client.Patch(ctx, n, client.MergeFrom(&nodes.Items[i]))).To(Succeed())
		}
		first, second = in.NewScenario(GinkgoT(), "first"), in.NewScenario(GinkgoT(), "second")
		hers, err = in.As(alice)
		Expect(err).NotTo(HaveOccurred())
		for _, s := range []*testutil.Scenario{first, second} {
			s.Join("ads")
			allow(s, hers)
		}
		Expect(in.Client.Create(ctx, refusing())).To(Succeed())
		Eventually(profileIn(in)).Should(
			condition(v1beta1.ConditionOtherWorkloadsRefused, v1beta1.ReasonGuardInForce), "the guard is in force")
		// The API server learns of a ConfigMap a moment after it is written.
		Eventually(func() error { return hers.Create(ctx, pod(first, "probe", nil), client.DryRunAll) }).Should(
			MatchError(ContainSubstring(keeps)))
	})

	with := func(change func(*corev1.Pod)) func(context.Context) error {
		return func(ctx context.Context) error { return hers.Create(ctx, pod(first, "tried", change)) }
	}
	DescribeTable("is refused", func(ctx SpecContext, try func(context.Context) error, says string) {
		Expect(try(ctx)).To(MatchError(ContainSubstring(says)))
	},
		Entry("way 1: a plain pod", with(func(*corev1.Pod) {}), keeps),
		Entry("way 2: a pod in the other namespace", func(ctx context.Context) error {
			return hers.Create(ctx, pod(second, "tried", nil))
		}, keeps),
		Entry("way 3: a pod whose init container asks", with(func(p *corev1.Pod) {
			p.Spec.InitContainers = p.Spec.Containers
			p.Spec.Containers = []corev1.Container{{Name: "b", Image: "registry.example/b:1"}}
		}), keeps),
		Entry("way 4: a pod whose sidecar asks", with(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{*p.Spec.Containers[0].DeepCopy()}
			p.Spec.InitContainers[0].Name, p.Spec.InitContainers[0].RestartPolicy = "b", ptr.To(corev1.ContainerRestartPolicyAlways)
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}), keeps),
		Entry("way 5: a pod that names the model by nodeSelector", with(func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": model}
		}), keeps),
		Entry("way 6: a pod that names the model by affinity", with(func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: []string{model},
					}},
				}}},
			}}
		}), keeps),
		Entry("way 7: a pod that no scheduler places", with(func(p *corev1.Pod) { p.Spec.NodeName = "gpu-0" }), keeps),
		Entry("way 8: a pod of another scheduler", with(func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }), keeps),
		Entry("way 9: a pod of the team's Queue", with(func(p *corev1.Pod) {
			p.Spec.SchedulerName = gang.SchedulerName
			p.Annotations = map[string]string{schedulingv1beta1.QueueNameAnnotationKey: "ads"}
		}), keeps),
		Entry("way 10: a pod that looks like a worker", with(likeWorker), keeps),
		Entry("way 11: a pod that requests less than its limit", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = gpus(1)
			p.Spec.Containers[0].Resources.Limits = gpus(8)
		}), "must be equal to nvidia.com/gpu limit of 8"),
		Entry("way 12: a pod that requests without a limit", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: gpus(8)}
		}), "Limit must be set"),
		Entry("way 13: a pod with a resource claim", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("eight")}}
		}), keeps),
		Entry("way 14: a pod that names a DeviceClass as a resource", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
				"deviceclass.resource.kubernetes.io/gpu.nvidia.com": resource.MustParse("8"),
			}
		}), keeps),
		Entry("way 15: a pod that asks for parts of GPUs", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"volcano.sh/vgpu-number": resource.MustParse("8")}
		}), keeps),
		Entry("way 16: as an account of her namespace with the operator's name", func(ctx context.Context) error {
			account := "system:serviceaccount:" + first.Namespace + ":" + testutil.OperatorServiceAccount
			testutil.BindUser(first, account, "ClusterRole", "edit")
			c, err := in.As(account)
			if err != nil {
				return err
			}
			create := func() error {
				return c.Create(ctx, pod(first, "tried", func(p *corev1.Pod) {
					likeWorker(p)
					p.OwnerReferences[0].Kind = v1beta1.ResourceQuotaProfileKind // or policies for such a name refuse it
				}))
			}
			Eventually(create).ShouldNot(MatchError(ContainSubstring("cannot create resource")), "the binding counts")
			return create()
		}, keeps),
		Entry("way 17: an ephemeral container that asks", func(ctx context.Context) error {
			return hers.SubResource("ephemeralcontainers").Patch(ctx, small(ctx, first, "debugged", hers), client.RawPatch(
				types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"e","image":"registry.example/e:1",`+
					`"resources":{"limits":{"nvidia.com/gpu":"8"}}}]}}`)))
		}, "spec.ephemeralContainers[0].resources: Forbidden"),
		Entry("way 18: a pod that is resized", func(ctx context.Context) error {
			return hers.SubResource("resize").Patch(ctx, small(ctx, first, "resized", hers), client.RawPatch(
				types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"a","resources":`+
					`{"requests":{"nvidia.com/gpu":"8"},"limits":{"nvidia.com/gpu":"8"}}}]}}`)))
		}, "only cpu and memory resources are mutable"),
		Entry("way 19: a training of more than the cap", func(ctx context.Context) error {
			return hers.Create(ctx, testutil.Job("more").In(first.Namespace).GPUs(1).Range(mostGPUs+1, mostGPUs+1).Obj())
		}, "profile ads lets a user hold at most 2 nvidia.com/gpu"),
		Entry("way 20: a training of somebody else's", func(ctx context.Context) error {
			return hers.Create(ctx, testutil.Job("bobs").In(first.Namespace).GPUs(1).Range(1, 1).Owner("bob").Obj())
		}, "assign-owner"),
		Entry("way 21: a merge of more than the cap", func(ctx context.Context) error {
			allowSecret(first)
			merge := testutil.Merge("more").In(first.Namespace).GPUs(8).Pool("tideline-merge").With(func(s *v1beta1.MergeJobSpec) {
				s.Store = v1beta1.ModelStore{Type: v1beta1.StoreS3, Prefix: "a", S3: &v1beta1.S3Store{
					Bucket: "models", Endpoint: "https://s3.example", CredentialsRef: v1beta1.ObjectRef{Name: "hers"},
				}}
			}).Obj()
			return hers.Create(ctx, merge)
		}, "lets a user hold at most 2 nvidia.com/gpu"),
		Entry("way 22: deleting what she is judged by", func(ctx context.Context) error {
			return hers.Delete(ctx, theGuard())
		}, "cannot delete resource"),
		Entry("way 23: another profile", func(ctx context.Context) error {
			return hers.Patch(ctx, refusing(), client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"caps":{"otherWorkloads":"Count"}}}`)))
		}, "cannot patch resource"),
		Entry("way 24: a namespace without the team's label", func(ctx context.Context) error {
			return hers.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first.Namespace}}, client.RawPatch(
				types.MergePatchType, []byte(`{"metadata":{"labels":{"`+testutil.TeamLabel+`":null}}}`)))
		}, "cannot patch resource"),
	)

	DescribeTable("gets no pod with GPUs by", func(ctx SpecContext, object func() client.Object, pods client.MatchingLabels) {
		Expect(hers.Create(ctx, object())).To(Succeed())
		said := func() ([]string, error) { return eventsOf(ctx, in, first.Namespace, object().GetName()) }
		theirs := func() ([]corev1.Pod, error) {
			list := &corev1.PodList{}
			err := in.Client.List(ctx, list, client.InNamespace(first.Namespace), pods)
			return list.Items, err
		}
		Eventually(said).Should(ContainElement(ContainSubstring(keeps)), "an event tells of the refusal")
		Expect(theirs()).To(BeEmpty())
		Consistently(theirs).WithTimeout(several).Should(BeEmpty())
		first.Delete(object())
	},
		Entry("way 25: a Deployment", func() client.Object {
			labels := map[string]string{"app": "deployment"}
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "deployment"},
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)}}
		}, client.MatchingLabels{"app": "deployment"}),
		Entry("way 26: a StatefulSet, as notebooks are", func() client.Object {
			labels := map[string]string{"app": "notebook"}
			return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "notebook"},
				Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)}}
		}, client.MatchingLabels{"app": "notebook"}),
		Entry("way 27: a Job", func() client.Object {
			labels := map[string]string{"app": "job"}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "job"},
				Spec: batchv1.JobSpec{Template: template(labels)}}
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			return job
		}, client.MatchingLabels{"app": "job"}),
		Entry("way 28: a Volcano Job", func() client.Object {
			labels := map[string]string{"app": "volcano"}
			return &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "volcano"},
				Spec: batchv1alpha1.JobSpec{SchedulerName: gang.SchedulerName, MinAvailable: 1, Queue: "ads",
					Tasks: []batchv1alpha1.TaskSpec{{Name: "task", Replicas: 1, Template: template(labels)}}}}
		}, client.MatchingLabels{"app": "volcano"}),
	)

	It("way 29: waits with a second training at the cap, and trains with the first", func(ctx SpecContext) {
		for _, name := range []string{"a", "b"} {
			Expect(hers.Create(ctx, testutil.Job(name).In(first.Namespace).GPUs(1).Range(mostGPUs, mostGPUs).Obj())).To(Succeed())
			if name == "a" {
				Eventually(first.Fetch(name)).Should(testutil.Train(mostGPUs), "Tideline's own pods are let through")
			}
		}
		Eventually(first.Fetch("b")).Should(testutil.Wait(waits))
		Consistently(func() (int64, error) { return held(ctx, in, first.Namespace, second.Namespace) }).
			WithTimeout(several).Should(BeEquivalentTo(mostGPUs), "after all that was tried she holds what she may")
		first.DeleteJob("a")
		first.DeleteJob("b")
	})

	It("is refused in a namespace that is new to the profile, also while no operator runs", func(ctx SpecContext) {
		third := in.NewScenario(GinkgoT(), "third")
		allow(third, hers)
		Expect(hers.Create(ctx, pod(third, "before", nil))).To(Succeed(), "it belongs to no profile")
		in.Operator.Kill()
		third.Join("ads")
		Eventually(func() error { return hers.Create(ctx, pod(third, "after", nil), client.DryRunAll) }).Should(
			MatchError(ContainSubstring(keeps)), "once the API server has the label")
		Expect(hers.Create(ctx, pod(third, "small", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}))).To(Succeed(), "what asks for no device is let through")
		Expect(in.Operator.Start(ctx)).To(Succeed())
	})

	It("meets a guard that is written again when somebody deletes or edits it, and follows the caps", func(ctx SpecContext) {
		npu := func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/npu": resource.MustParse("1")}
		}
		try := func(change func(*corev1.Pod)) func() error {
			return func() error { return hers.Create(ctx, pod(first, "tried", change), client.DryRunAll) }
		}
		refuses := MatchError(ContainSubstring(keeps))
		Expect(try(npu)()).To(Succeed(), "the profile does not limit it")
		Expect(in.Client.Delete(ctx, theGuard())).To(Succeed())
		written := func() (*corev1.ConfigMap, error) {
			c := theGuard()
			return c, in.Client.Get(ctx, client.ObjectKeyFromObject(c), c)
		}
		whole := HaveField("Data", And(HaveKeyWithValue("namespaces", "In "+testutil.TeamLabel+" ads"),
			HaveKeyWithValue("resources", ContainSubstring("nvidia.com/gpu"))))
		Eventually(written).Should(whole, "it is there again")
		first.Patch(theGuard(), `{"data":{"resources":"","namespaces":"Exists nothing"}}`)
		Eventually(written).Should(whole, "it is as it was")
		Eventually(try(nil)).Should(refuses)

		first.Patch(refusing(), `{"spec":{"queue":{"capability":{"example.com/npu":"4"}}}}`)
		Eventually(try(npu)).Should(refuses, "it does now")
	})

	It("lets pods without devices in, whatever a ConfigMap of its label says", func(ctx SpecContext) {
		forged := func(name string, data map[string]string) {
			c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testutil.OperatorNamespace, Name: name,
				Labels: map[string]string{v1beta1.LabelGuard: v1beta1.GuardOtherWorkloads}}, Data: data}
			Expect(in.Client.Create(ctx, c)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(in.Client.Delete(ctx, c)).To(Succeed()) })
		}
		other := in.NewScenario(GinkgoT(), "other")
		allow(other, hers)
		forged("empty", nil)
		forged("greedy", map[string]string{
			"resources": "cpu memory nvidia.com/gpu", "namespaces": "DoesNotExist nothing", "except": "", "operator": "thief",
			"profile": "forged",
		})
		Eventually(func() error { return hers.Create(ctx, pod(other, "tried", nil), client.DryRunAll) }).Should(
			MatchError(ContainSubstring("profile forged keeps")), "the API server has the ConfigMaps")
		Expect(hers.Create(ctx, pod(other, "cores", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}}
		}), client.DryRunAll)).To(Succeed())
	})

	It("is let through where the API server has no binding, which the profile says, and by a profile that refuses no more",
		func(ctx SpecContext) {
			binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			Expect(in.Client.Get(ctx, client.ObjectKey{Name: quota.GuardPolicy}, binding)).To(Succeed())
			Expect(in.Client.Delete(ctx, binding)).To(Succeed())
			Eventually(profileIn(in)).Should(HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", v1beta1.ConditionOtherWorkloadsRefused), HaveField("Status", metav1.ConditionFalse),
				HaveField("Reason", v1beta1.ReasonGuardMissing), HaveField("Message", HavePrefix(
					"There is no ValidatingAdmissionPolicyBinding tideline-other-workloads. Apply config/guard."))))))
			again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{Spec: binding.Spec}
			again.Name = binding.Name
			Expect(in.Client.Create(ctx, again)).To(Succeed())
			Eventually(profileIn(in)).Should(condition(v1beta1.ConditionOtherWorkloadsRefused, v1beta1.ReasonGuardInForce))

			first.Patch(refusing(), `{"spec":{"caps":{"otherWorkloads":"Count"}}}`)
			Eventually(func() error { return hers.Create(ctx, pod(first, "counted", nil), client.DryRunAll) }).Should(Succeed())
			Eventually(profileIn(in)).Should(WithTransform(func(p *v1beta1.ResourceQuotaProfile) *metav1.Condition {
				return meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionOtherWorkloadsRefused)
			}, BeNil()))
			first.Patch(refusing(), `{"spec":{"caps":{"otherWorkloads":"Refuse"}}}`)
			Eventually(func() error { return hers.Create(ctx, pod(first, "tried", nil), client.DryRunAll) }).Should(
				MatchError(ContainSubstring(keeps)))
			Expect(in.Client.Delete(ctx, refusing())).To(Succeed())
			Eventually(func() error {
				return in.Client.Get(ctx, client.ObjectKeyFromObject(theGuard()), &corev1.ConfigMap{})
			}).Should(MatchError(ContainSubstring("not found")), "the guard goes with its profile")
		})
})

// refusing is a profile that lets a user have two GPUs, and only by Tideline's jobs.
func refusing() *v1beta1.ResourceQuotaProfile {
	return testutil.Profile("ads").PerUser(mostGPUs).With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
		spec.Caps.OtherWorkloads = v1beta1.OtherWorkloadsRefuse
	}).Obj()
}

func theGuard() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: testutil.OperatorNamespace, Name: "tideline-guard-ads",
	}}
}

func profileIn(in *testutil.Installation) func() (*v1beta1.ResourceQuotaProfile, error) {
	ctx := GinkgoT().Context()
	return func() (*v1beta1.ResourceQuotaProfile, error) {
		p := &v1beta1.ResourceQuotaProfile{}
		return p, in.Client.Get(ctx, client.ObjectKey{Name: "ads"}, p)
	}
}

// likeWorker has a pod look as if a training owned it.
func likeWorker(p *corev1.Pod) {
	p.Labels = map[string]string{v1beta1.LabelJob: "forged", v1beta1.LabelPart: v1beta1.PartCore}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ElasticTrainingJobKind, Name: "forged", UID: "1",
		Controller: ptr.To(true),
	}}
}

// allow gives alice every right that a user may have in a namespace, also to Volcano's kinds.
func allow(s *testutil.Scenario, hers client.Client) {
	GinkgoHelper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "further"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"batch.volcano.sh", "scheduling.volcano.sh"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers", "pods/resize"}, Verbs: []string{"*"}},
		},
	}
	s.Create(role)
	testutil.BindUser(s, alice, "Role", role.Name)
	testutil.BindUser(s, alice, "ClusterRole", "admin")
	Eventually(func() error { return hers.List(s.Context(), &batchv1alpha1.JobList{}, client.InNamespace(s.Namespace)) }).
		Should(Succeed(), "the API server has seen the role")
	Eventually(func() error { return hers.List(s.Context(), &corev1.PodList{}, client.InNamespace(s.Namespace)) }).
		Should(Succeed(), "the API server has seen the cluster role")
}

// allowSecret creates the Secret that a merge of alice's names.
func allowSecret(s *testutil.Scenario) {
	GinkgoHelper()
	s.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "hers"}})
}

// pod asks for eight GPUs, changed so.
func pod(s *testutil.Scenario, name string, change func(*corev1.Pod)) *corev1.Pod {
	t := template(nil)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: t.Spec}
	if change != nil {
		change(p)
	}
	return p
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)}, Spec: corev1.PodSpec{
		SchedulerName: gang.SchedulerName, Containers: []corev1.Container{{
			Name: "a", Image: "registry.example/a:1", Resources: corev1.ResourceRequirements{Limits: gpus(8)},
		}},
	}}
}

// small creates a pod without GPUs, which she may have.
func small(ctx context.Context, s *testutil.Scenario, name string, hers client.Client) *corev1.Pod {
	GinkgoHelper()
	p := pod(s, name, func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })
	Expect(hers.Create(ctx, p)).To(Succeed())
	return p
}

// eventsOf are the messages of events of an object and of what it made, whose names begin with its name.
func eventsOf(ctx context.Context, in *testutil.Installation, namespace, name string) ([]string, error) {
	list := &corev1.EventList{}
	if err := in.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var all []string
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].InvolvedObject.Name, name) {
			all = append(all, list.Items[i].Message)
		}
	}
	return all, nil
}

// held are the GPUs of pods on nodes in namespaces.
func held(ctx context.Context, in *testutil.Installation, namespaces ...string) (int64, error) {
	n := int64(0)
	for _, namespace := range namespaces {
		pods := &corev1.PodList{}
		if err := in.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return 0, err
		}
		for i := range pods.Items {
			for _, c := range pods.Items[i].Spec.Containers {
				if asked := c.Resources.Limits[testutil.GPUResource]; pods.Items[i].Spec.NodeName != "" {
					n += asked.Value()
				}
			}
		}
	}
	return n, nil
}
