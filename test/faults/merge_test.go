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

	"github.com/tideline-io/tideline/api/v1beta1"
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
		action: func(env *environment) { env.submitMerge(firstMerge, day) },
		sequel: func(env *environment) {
			env.awaitRun(firstMerge, 1)
			pod := env.mergePod(1)
			ended := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
			env.Expect(env.Client.Status().Patch(env.t.Context(), pod, ended)).To(Succeed(), "a pod ends before the marker is written")
			env.completes(firstMerge, 1)
		},
	})
	takingTurns = tell(story{
		name: "two merges take turns in a pool that holds one", slug: "turns", gpus: 2, leaves: append(merged[:1:1], "MergeJob b"),
		runs: []string{firstMerge, nextMerge},
		setup: func(env *environment) {
			suspended := func(spec *v1beta1.MergeJobSpec) { spec.Suspend = true }
			env.submitMerge(firstMerge, 2*day, suspended)
			env.submitMerge(nextMerge, day, suspended)
			for _, name := range []string{firstMerge, nextMerge} {
				env.Eventually(env.FetchMerge(name)).Should(HaveField("Status.Weight", Not(BeNil())), "its store was read")
			}
		},
		action: func(env *environment) {
			env.suspendMerge(firstMerge, false)
			env.suspendMerge(nextMerge, false)
		},
		sequel: func(env *environment) {
			env.completes(firstMerge, 1)
			env.completes(nextMerge, 1)
		},
	})
	retrying = tell(story{
		name: "a merge ends without the marker, and its next run merges", slug: "retry", gpus: 2, leaves: merged, rare: true,
		runs:  []string{firstMerge, firstMerge},
		setup: func(env *environment) { env.runsMerge() },
		action: func(env *environment) {
			env.Expect(env.ExitMerge(env.t.Context(), firstMerge)).To(Succeed(), "its pods end")
		},
		sequel: func(env *environment) { env.completes(firstMerge, 2) },
	})
	timingOut = tell(story{
		name: "a merge takes too long, and its next run merges", slug: "late", gpus: 2, leaves: merged, rare: true,
		runs: []string{firstMerge, firstMerge},
		action: func(env *environment) {
			env.submitMerge(firstMerge, day, func(spec *v1beta1.MergeJobSpec) {
				spec.RunTimeoutSeconds, spec.BackoffSeconds = ptr.To[int32](1), ptr.To[int32](5)
			})
		},
		sequel: func(env *environment) {
			env.Eventually(env.FetchMerge(firstMerge)).Should(HaveField("Status.History", HaveLen(1)), "it is stopped")
			env.patchMerge(firstMerge, `{"spec":{"runTimeoutSeconds":600}}`)
			env.completes(firstMerge, 2)
		},
	})
	returning = tell(story{
		name: "a merge loses a pod and asks again for the same run", slug: "return", gpus: 2, leaves: merged, rare: true,
		runs:   []string{firstMerge},
		setup:  func(env *environment) { env.runsMerge() },
		action: func(env *environment) { env.Delete(env.mergePod(1)) },
		sequel: func(env *environment) {
			env.Eventually(env.FetchMerge(firstMerge)).Should(HaveField("Status.Run.Attempt", BeEquivalentTo(2)), "it asks again")
			env.completes(firstMerge, 1)
		},
	})
	pausing = tell(story{
		name: "a merge is suspended and resumed", slug: "pause", gpus: 2, leaves: merged, rare: true,
		runs:   []string{firstMerge, firstMerge},
		setup:  func(env *environment) { env.runsMerge() },
		action: func(env *environment) { env.suspendMerge(firstMerge, true) },
		sequel: func(env *environment) {
			env.Eventually(env.FetchMerge(firstMerge)).Should(And(HaveField("Status.Phase", v1beta1.MergeSuspended),
				HaveField("Status.Run", BeNil())), "the merge holds nothing")
			env.suspendMerge(firstMerge, false)
			env.completes(firstMerge, 2)
		},
	})
	stretching = tell(story{
		name: "a merge runs with surplus and merges", slug: "stretch", gpus: 3, leaves: merged, rare: true,
		runs: []string{firstMerge},
		action: func(env *environment) {
			env.submitMerge(firstMerge, day, func(spec *v1beta1.MergeJobSpec) { spec.MaxReplicas = 3 })
		},
		sequel: func(env *environment) {
			env.Eventually(env.Remains).Should(ContainElements("PodGroup a-merge-surplus", "Pod a-merge-2"), "there is surplus")
			env.completes(firstMerge, 1)
		},
	})
	removing = tell(story{
		name: "a merge is deleted while it runs", slug: "remove", gpus: 2, rare: true,
		runs:   []string{firstMerge},
		action: func(env *environment) { env.submitMerge(firstMerge, day) },
		sequel: func(env *environment) {
			env.awaitRun(firstMerge, 1)
			env.deleteMerge()
			env.Eventually(env.Remains).Should(BeEmpty(), "the merge is gone with everything it had")
		},
	})
	renewing = tell(story{
		name: "a merge is deleted while it runs, and another of its name created", slug: "renew", gpus: 2, leaves: merged, rare: true,
		namesTaken: true,
		runs:       []string{firstMerge, firstMerge},
		setup:      func(env *environment) { env.runsMerge() },
		action: func(env *environment) {
			env.deleteMerge()
			env.submitMerge(firstMerge, day)
		},
		sequel: func(env *environment) { env.completes(firstMerge, 1) },
	})
)

// day is older than the interval of the merges' schedule.
const day = 24 * time.Hour

// submitMerge creates a merge of two pods whose full model is so old, and which has three increments to merge.
func (env *environment) submitMerge(name string, age time.Duration, changes ...func(*v1beta1.MergeJobSpec)) {
	models := env.LocalModels(shared.stores)
	models.Due(name, age)
	b := testutil.Merge(name).In(env.Namespace).Nodes(env.Namespace).Pool("tideline-merge").Pods(2, 2).GPUs(1).
		Store(models.Of(name)).Backoff(1)
	for _, change := range changes {
		b.With(change)
	}
	env.Create(b.Obj())
}

// runsMerge creates a merge and returns when all its pods run.
func (env *environment) runsMerge() {
	env.submitMerge(firstMerge, day)
	env.awaitRun(firstMerge, 1)
}

// awaitRun returns the merge when all pods of its n-th run run.
func (env *environment) awaitRun(name string, n int) *v1beta1.MergeJob {
	env.Eventually(env.FetchMerge(name)).Should(And(HaveField("Status.History", HaveLen(n-1)),
		HaveField("Status.Run.RunTime", Not(BeNil())), HaveField("Status.Run.Outcome", BeEmpty())), "run %d of %s runs", n, name)
	return env.ReadMerge(name)
}

// completes has the program of the merge's n-th run write the full model, while the training goes on and pods linger, and returns
// when the merge waits for its next time.
func (env *environment) completes(name string, n int) {
	job, models := env.awaitRun(name, n), env.LocalModels(shared.stores)
	models.Increments(name, 4, 4)
	env.Expect(models.Complete(env.t.Context(), job)).To(Succeed(), "the full model is written")
	env.Eventually(env.FetchMerge(name)).Should(And(HaveField("Status.Reason", v1beta1.ReasonNotDue),
		HaveField("Status.Run", BeNil()), HaveField("Status.Increments", BeEquivalentTo(1)),
		HaveField("Status.LastFull.Name", job.Status.Run.ID)), "%s has merged", name)
}

func (env *environment) suspendMerge(name string, yes bool) {
	env.patchMerge(name, fmt.Sprintf(`{"spec":{"suspend":%t}}`, yes))
}

func (env *environment) patchMerge(name, json string) {
	env.Patch(&v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name}}, json)
}

func (env *environment) deleteMerge() { env.Delete(env.ReadMerge(firstMerge)) }

// mergePod reads a pod of the first merge.
func (env *environment) mergePod(i int) *corev1.Pod {
	return testutil.Get(env.Scenario, &corev1.Pod{}, testutil.MergePod(firstMerge, i))
}
