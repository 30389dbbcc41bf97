package faults

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Names of the merges of a story, of which the first is the heavier one.
const firstMerge, nextMerge = "a", "b"

// mergeStories are told as stories are, and rareMergeStories in the full grid only. Two merges that take turns make every
// write that one makes.
var (
	mergeStories     = []*story{takingTurns}
	rareMergeStories = []*story{merging, retrying, timingOut, returning, pausing, stretching, removing, renewing}
)

// merged is what there is of a merge that has merged and whose pods were stopped.
var merged = []string{"MergeJob a"}

var (
	merging = tell(story{
		name: "a merge runs and merges", slug: "merge", gpus: 2, leaves: append(merged[:1:1], "Pod a-merge-1"),
		runs:   []string{firstMerge},
		strike: func(s *site) { s.submitMerge(firstMerge, day) },
		sequel: func(s *site) {
			s.awaitRun(firstMerge, 1)
			pod := s.mergePod(1)
			ended := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
			s.Expect(s.Client.Status().Patch(s.t.Context(), pod, ended)).To(Succeed(), "a pod ends before the marker is written")
			s.completes(firstMerge, 1)
		},
	})
	takingTurns = tell(story{
		name: "two merges take turns in a pool that holds one", slug: "turns", gpus: 2, leaves: append(merged[:1:1], "MergeJob b"),
		runs: []string{firstMerge, nextMerge},
		prelude: func(s *site) {
			suspended := func(spec *v1alpha1.MergeJobSpec) { spec.Suspend = true }
			s.submitMerge(firstMerge, 2*day, suspended)
			s.submitMerge(nextMerge, day, suspended)
			for _, name := range []string{firstMerge, nextMerge} {
				s.Eventually(s.FetchMerge(name)).Should(HaveField("Status.Weight", Not(BeNil())), "its store was read")
			}
		},
		strike: func(s *site) {
			s.suspendMerge(firstMerge, false)
			s.suspendMerge(nextMerge, false)
		},
		sequel: func(s *site) {
			s.completes(firstMerge, 1)
			s.completes(nextMerge, 1)
		},
	})
	retrying = tell(story{
		name: "a merge ends without the marker, and its next run merges", slug: "retry", gpus: 2, leaves: merged, rare: true,
		runs:    []string{firstMerge, firstMerge},
		prelude: func(s *site) { s.runsMerge() },
		strike:  func(s *site) { s.Expect(s.ExitMerge(s.t.Context(), firstMerge)).To(Succeed(), "its pods end") },
		sequel:  func(s *site) { s.completes(firstMerge, 2) },
	})
	timingOut = tell(story{
		name: "a merge takes too long, and its next run merges", slug: "late", gpus: 2, leaves: merged, rare: true,
		runs: []string{firstMerge, firstMerge},
		strike: func(s *site) {
			s.submitMerge(firstMerge, day, func(spec *v1alpha1.MergeJobSpec) {
				spec.RunTimeoutSeconds, spec.BackoffSeconds = ptr.To[int32](1), ptr.To[int32](5)
			})
		},
		sequel: func(s *site) {
			s.Eventually(s.FetchMerge(firstMerge)).Should(HaveField("Status.History", HaveLen(1)), "it is stopped")
			s.patchMerge(firstMerge, `{"spec":{"runTimeoutSeconds":600}}`)
			s.completes(firstMerge, 2)
		},
	})
	returning = tell(story{
		name: "a merge loses a pod and asks again for the same run", slug: "return", gpus: 2, leaves: merged, rare: true,
		runs:    []string{firstMerge},
		prelude: func(s *site) { s.runsMerge() },
		strike:  func(s *site) { s.Delete(s.mergePod(1)) },
		sequel: func(s *site) {
			s.Eventually(s.FetchMerge(firstMerge)).Should(HaveField("Status.Run.Attempt", BeEquivalentTo(2)), "it asks again")
			s.completes(firstMerge, 1)
		},
	})
	pausing = tell(story{
		name: "a merge is suspended and resumed", slug: "pause", gpus: 2, leaves: merged, rare: true,
		runs:    []string{firstMerge, firstMerge},
		prelude: func(s *site) { s.runsMerge() },
		strike:  func(s *site) { s.suspendMerge(firstMerge, true) },
		sequel: func(s *site) {
			s.Eventually(s.FetchMerge(firstMerge)).Should(And(HaveField("Status.Phase", v1alpha1.MergeSuspended),
				HaveField("Status.Run", BeNil())), "the merge holds nothing")
			s.suspendMerge(firstMerge, false)
			s.completes(firstMerge, 2)
		},
	})
	stretching = tell(story{
		name: "a merge runs with surplus and merges", slug: "stretch", gpus: 3, leaves: merged, rare: true,
		runs: []string{firstMerge},
		strike: func(s *site) {
			s.submitMerge(firstMerge, day, func(spec *v1alpha1.MergeJobSpec) { spec.MaxReplicas = 3 })
		},
		sequel: func(s *site) {
			s.Eventually(s.Remains).Should(ContainElements("PodGroup a-merge-surplus", "Pod a-merge-2"), "there is surplus")
			s.completes(firstMerge, 1)
		},
	})
	removing = tell(story{
		name: "a merge is deleted while it runs", slug: "remove", gpus: 2, rare: true,
		runs:   []string{firstMerge},
		strike: func(s *site) { s.submitMerge(firstMerge, day) },
		sequel: func(s *site) {
			s.awaitRun(firstMerge, 1)
			s.deleteMerge()
			s.Eventually(s.Remains).Should(BeEmpty(), "the merge is gone with everything it had")
		},
	})
	renewing = tell(story{
		name: "a merge is deleted while it runs, and another of its name created", slug: "renew", gpus: 2, leaves: merged, rare: true,
		namesTaken: true,
		runs:       []string{firstMerge, firstMerge},
		prelude:    func(s *site) { s.runsMerge() },
		strike: func(s *site) {
			s.deleteMerge()
			s.submitMerge(firstMerge, day)
		},
		sequel: func(s *site) { s.completes(firstMerge, 1) },
	})
)

// day is older than the interval of the merges' schedule.
const day = 24 * time.Hour

// submitMerge creates a merge of two pods whose full model is so old, and which has three increments to merge.
func (s *site) submitMerge(name string, age time.Duration, changes ...func(*v1alpha1.MergeJobSpec)) {
	models := s.LocalModels(shared.stores)
	models.Due(name, age)
	b := testutil.Merge(name).In(s.Namespace).Nodes(s.Namespace).Pool("tideline-merge").Pods(2, 2).GPUs(1).
		Store(models.Of(name)).Backoff(1)
	for _, change := range changes {
		b.With(change)
	}
	s.Create(b.Obj())
}

// runsMerge creates a merge and returns when all its pods run.
func (s *site) runsMerge() {
	s.submitMerge(firstMerge, day)
	s.awaitRun(firstMerge, 1)
}

// awaitRun returns the merge when all pods of its n-th run run.
func (s *site) awaitRun(name string, n int) *v1alpha1.MergeJob {
	s.Eventually(s.FetchMerge(name)).Should(And(HaveField("Status.History", HaveLen(n-1)),
		HaveField("Status.Run.RunTime", Not(BeNil())), HaveField("Status.Run.Outcome", BeEmpty())), "run %d of %s runs", n, name)
	return s.ReadMerge(name)
}

// completes has the program of the merge's n-th run write the full model, while the training goes on and pods linger, and returns
// when the merge waits for its next time.
func (s *site) completes(name string, n int) {
	job, models := s.awaitRun(name, n), s.LocalModels(shared.stores)
	models.Increments(name, 4, 4)
	s.Expect(models.Complete(s.t.Context(), job)).To(Succeed(), "the full model is written")
	s.Eventually(s.FetchMerge(name)).Should(And(HaveField("Status.Reason", v1alpha1.ReasonNotDue), HaveField("Status.Run", BeNil()),
		HaveField("Status.Increments", BeEquivalentTo(1)), HaveField("Status.LastFull.Name", job.Status.Run.ID)), "%s has merged", name)
}

func (s *site) suspendMerge(name string, yes bool) {
	s.patchMerge(name, fmt.Sprintf(`{"spec":{"suspend":%t}}`, yes))
}

func (s *site) patchMerge(name, json string) {
	s.Patch(&v1alpha1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}, json)
}

func (s *site) deleteMerge() { s.Delete(s.ReadMerge(firstMerge)) }

// mergePod reads a pod of the first merge.
func (s *site) mergePod(i int) *corev1.Pod {
	return testutil.Get(s.Scenario, &corev1.Pod{}, testutil.MergePod(firstMerge, i))
}
