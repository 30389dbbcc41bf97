package faults

import (
	"fmt"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Stories that jobs seldom have.
var (
	replacing = tell(story{
		name: "a job is deleted and another of its name created", slug: "anew", gpus: 4, leaves: fullSize, rare: true,
		namesTaken: true, deletes: jobName, createsOnce: true,
		setup: func(env *environment) { env.runs(4) },
		action: func(env *environment) {
			env.DeleteJob(jobName)
			env.submit(4)
		},
		sequel: func(env *environment) { env.trains(4, "the new job runs") },
		verify: ownsItsParts,
	})
	saving = tell(story{
		name: "a checkpoint is saved before a job is suspended, and it goes on", slug: "save", gpus: 4, leaves: fullSize, rare: true,
		setup: func(env *environment) {
			// Longer than any fault holds back what the training says.
			env.runs(4, func(job *v1beta1.ElasticTrainingJob) { job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](300) })
		},
		action: func(env *environment) { env.suspend(true) },
		sequel: func(env *environment) {
			asked := func() string { return env.Worker(jobName, 0).Annotations[v1beta1.AnnotationCheckpointRequested] }
			env.Eventually(asked).ShouldNot(BeEmpty(), "worker 0 is asked for a checkpoint")
			env.Expect(env.Workers(jobName, testutil.Running)()).To(HaveLen(4), "nobody leaves before it is saved")
			done := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationCheckpointDone, asked())
			env.Patch(env.Worker(jobName, 0), done)
			env.Eventually(env.Fetch(jobName)).Should(testutil.HaveReason(v1beta1.ReasonSuspended), "the job holds nothing")
			env.suspend(false)
			env.trains(4, "the job goes on")
		},
	})
	restarting = tell(story{
		name: "worker 1 fails, and a rule creates every worker anew", slug: "again", gpus: 4, restarts: 1, leaves: fullSize, rare: true,
		setup: func(env *environment) {
			env.runs(4, func(job *v1beta1.ElasticTrainingJob) {
				job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
					{Action: v1beta1.ActionRestartJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed}},
				}}
			})
		},
		action: func(env *environment) { env.Fail(jobName, 1, 3, "out of luck") },
		sequel: func(env *environment) { env.startsAnew(4) },
	})
	ranging = tell(story{
		name: "a job gets another minimum and starts anew", slug: "range", gpus: 4, leaves: fullSize, rare: true,
		setup: func(env *environment) {
			env.runs(4, func(job *v1beta1.ElasticTrainingJob) {
				job.Spec.Elasticity.RangeUpdate = v1beta1.RangeUpdateRestart
			})
		},
		action: func(env *environment) { env.patchJob(`{"spec":{"minReplicas":3}}`) },
		sequel: func(env *environment) { env.startsAnew(4) },
	})
	plain = tell(story{
		name: "an isolated job without torchrun is created, loses surplus and starts anew", slug: "plain", gpus: 3, rare: true,
		leaves: append(fullSize[:4:4], fullSize[5:]...),
		action: func(env *environment) {
			env.submit(3, func(job *v1beta1.ElasticTrainingJob) {
				job.Spec.Framework.Type, job.Spec.Framework.SSH = v1beta1.FrameworkCustom, v1beta1.SSHKeyPair
				job.Spec.NetworkPolicy = v1beta1.NetworkPolicyIsolated
				job.Spec.Restarts.Max = ptr.To[int32](0)
			})
		},
		sequel: func(env *environment) {
			env.trains(3, "the job runs")
			env.Evict(jobName, 2)
			env.startsAnew(3)
		},
	})
	paging = tell(story{
		name: "a page is named, changed and gone while a job is suspended", slug: "page", gpus: 2, rare: true,
		leaves: append(slices.Clone(fullSize[:3]), "Service a-workers", "PodGroup a", "Service a-pages"),
		setup: func(env *environment) {
			env.submit(2)
			env.trains(2, "the job runs before the story begins")
		},
		action: func(env *environment) { env.patchJob(`{"spec":{"pages":[{"name":"board","port":6006}]}}`) },
		sequel: func(env *environment) {
			env.leadsTo(6006, "the page is reached")
			env.patchJob(`{"spec":{"pages":[{"name":"board","port":6007}]}}`)
			env.leadsTo(6007, "the page is reached at its new port")
			env.suspend(true)
			env.Eventually(env.Fetch(jobName)).Should(And(testutil.HaveReason(v1beta1.ReasonSuspended),
				HaveField("Status.PageRoute", BeEmpty())), "what led to it goes with the job's workers")
			env.suspend(false)
			env.trains(2, "the job goes on")
			env.leadsTo(6007, "the page is reached again")
		},
	})
	expiring = tell(story{
		name: "a job ends and deletes itself after its time", slug: "expire", gpus: 4, rare: true,
		deletes: jobName, createsOnce: true,
		setup: func(env *environment) {
			env.runs(4, func(job *v1beta1.ElasticTrainingJob) { job.Spec.Cleanup.TTLSecondsAfterFinished = ptr.To[int32](3) })
		},
		action: func(env *environment) { env.SucceedAll(jobName) },
		sequel: func(env *environment) {
			env.Eventually(env.Remains).Should(BeEmpty(), "the job is gone with everything it had")
		},
	})
)

// startsAnew awaits a job that trains in its second attempt with so many workers.
func (env *environment) startsAnew(workers int) {
	env.Eventually(env.Fetch(jobName)).Should(And(testutil.Train(workers), Satisfy(upToDate),
		HaveField("Status.Attempt.Number", BeEquivalentTo(2))), "every worker is created anew")
}

// ownsItsParts checks that nothing is left of an earlier job, and nothing was adopted from it.
func ownsItsParts(env *environment) {
	job := env.Read(jobName)
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &schedulingv1beta1.PodGroupList{}} {
		env.Expect(env.Client.List(env.t.Context(), list, client.InNamespace(env.Namespace))).To(Succeed(), "the parts are listed")
		env.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			if part, ok := o.(client.Object); !ok || !metav1.IsControlledBy(part, job) {
				return fmt.Errorf("%T belongs to somebody else: %v", o, o)
			}
			return nil
		})).To(Succeed(), "everything is the job's own")
	}
}

// leadsTo awaits that the job's page is reached, at a port of worker 0. What failed is tried again after half a minute.
func (env *environment) leadsTo(port int32, why string) {
	env.Eventually(func(g Gomega) {
		job := env.Read(jobName)
		g.Expect(testutil.Condition(job, v1beta1.ConditionPagesRouted).Reason).To(Equal(v1beta1.ReasonRouted))
		g.Expect(job.Status.Pages).To(HaveLen(1))
		service, ingress := &corev1.Service{}, &networkingv1.Ingress{}
		key := client.ObjectKey{Namespace: env.Namespace, Name: jobName + "-pages"}
		g.Expect(env.Client.Get(env.t.Context(), key, service)).To(Succeed())
		g.Expect(service.Spec.Ports).To(ConsistOf(HaveField("TargetPort.IntVal", port)))
		g.Expect(env.Client.Get(env.t.Context(), key, ingress)).To(Succeed())
		g.Expect(ingress.Labels[v1beta1.LabelPages]).To(Equal(service.Labels[v1beta1.LabelPages]))
	}).Should(Succeed(), why)
}
