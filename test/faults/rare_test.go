package faults

import (
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Stories that jobs seldom have.
var (
	replacing = tell(story{
		name: "a job is deleted and another of its name created", slug: "anew", gpus: 4, leaves: fullSize, rare: true,
		namesTaken: true,
		prelude:    func(s *site) { s.runs(4) },
		strike: func(s *site) {
			s.DeleteJob(jobName)
			s.submit(4)
		},
		sequel: func(s *site) { s.trains(4, "the new job runs") },
		verify: ownsItsParts,
	})
	saving = tell(story{
		name: "a checkpoint is saved before a job is suspended, and it goes on", slug: "save", gpus: 4, leaves: fullSize, rare: true,
		prelude: func(s *site) {
			// Longer than any weather holds back what the training says.
			s.runs(4, func(job *v1alpha1.ElasticTrainingJob) { job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](300) })
		},
		strike: func(s *site) { s.suspend(true) },
		sequel: func(s *site) {
			asked := func() string { return s.Worker(jobName, 0).Annotations[v1alpha1.AnnotationCheckpointRequested] }
			s.Eventually(asked).ShouldNot(BeEmpty(), "worker 0 is asked for a checkpoint")
			s.Expect(s.Workers(jobName, testutil.Running)()).To(HaveLen(4), "nobody leaves before it is saved")
			s.Patch(s.Worker(jobName, 0), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationCheckpointDone, asked()))
			s.Eventually(s.Fetch(jobName)).Should(testutil.HaveReason(v1alpha1.ReasonSuspended), "the job holds nothing")
			s.suspend(false)
			s.trains(4, "the job goes on")
		},
	})
	restarting = tell(story{
		name: "worker 1 fails, and a rule creates every worker anew", slug: "again", gpus: 4, restarts: 1, leaves: fullSize, rare: true,
		prelude: func(s *site) {
			s.runs(4, func(job *v1alpha1.ElasticTrainingJob) {
				job.Spec.FailurePolicy = &v1alpha1.FailurePolicy{Rules: []v1alpha1.FailureRule{
					{Action: v1alpha1.ActionRestartJob, OnEvents: []v1alpha1.FailureEvent{v1alpha1.OnPodFailed}},
				}}
			})
		},
		strike: func(s *site) { s.Fail(jobName, 1, 3, "out of luck") },
		sequel: func(s *site) { s.startsAnew(4) },
	})
	ranging = tell(story{
		name: "a job gets another minimum and starts anew", slug: "range", gpus: 4, leaves: fullSize, rare: true,
		prelude: func(s *site) {
			s.runs(4, func(job *v1alpha1.ElasticTrainingJob) {
				job.Spec.Elasticity.OnRangeChange = v1alpha1.RangeChangeRestart
			})
		},
		strike: func(s *site) { s.patchJob(`{"spec":{"minReplicas":3}}`) },
		sequel: func(s *site) { s.startsAnew(4) },
	})
	plain = tell(story{
		name: "an isolated job without torchrun is created, loses surplus and starts anew", slug: "plain", gpus: 3, rare: true,
		leaves: append(fullSize[:4:4], fullSize[5:]...),
		strike: func(s *site) {
			s.submit(3, func(job *v1alpha1.ElasticTrainingJob) {
				job.Spec.Rendezvous.Backend, job.Spec.Rendezvous.SSHKeys = v1alpha1.BackendNone, true
				job.Spec.NetworkPolicy = v1alpha1.NetworkPolicyIsolated
				job.Spec.RunPolicy.MaxRestarts = ptr.To[int32](0)
			})
		},
		sequel: func(s *site) {
			s.trains(3, "the job runs")
			s.Evict(jobName, 2)
			s.startsAnew(3)
		},
	})
	expiring = tell(story{
		name: "a job ends and deletes itself after its time", slug: "expire", gpus: 4, rare: true,
		prelude: func(s *site) {
			s.runs(4, func(job *v1alpha1.ElasticTrainingJob) { job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](3) })
		},
		strike: func(s *site) { s.SucceedAll(jobName) },
		sequel: func(s *site) { s.Eventually(s.Remains).Should(BeEmpty(), "the job is gone with everything it had") },
	})
)

// startsAnew awaits a job that trains in its second attempt with so many workers.
func (s *site) startsAnew(workers int) {
	s.Eventually(s.Fetch(jobName)).Should(And(testutil.Train(workers), Satisfy(upToDate),
		HaveField("Status.Attempt.Number", BeEquivalentTo(2))), "every worker is created anew")
}

// ownsItsParts checks that nothing is left of an earlier job, and nothing was adopted from it.
func ownsItsParts(s *site) {
	job := s.Read(jobName)
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &schedulingv1beta1.PodGroupList{}} {
		s.Expect(s.Client.List(s.t.Context(), list, client.InNamespace(s.Namespace))).To(Succeed(), "the parts are listed")
		s.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			if part, ok := o.(client.Object); !ok || !metav1.IsControlledBy(part, job) {
				return fmt.Errorf("%T belongs to somebody else: %v", o, o)
			}
			return nil
		})).To(Succeed(), "everything is the job's own")
	}
}
