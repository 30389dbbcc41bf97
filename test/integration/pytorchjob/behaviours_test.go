package pytorchjob

import (
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
)

const (
	always = kubeflowv1.RestartPolicyAlways
	never  = kubeflowv1.RestartPolicyNever
	byCode = kubeflowv1.RestartPolicyExitCode

	new0, new1 = "; new pods: 0", "; new pods: 1"
	// What is left at the end, of two pods, when cleanPodPolicy is None.
	theirsStays = "; left: pods 0, 1, Services"
	oursRuns    = "; left: pods 0, 1, Services, PodGroup"
	oursEnded   = "; left: pods 0, 1"
	nothing     = "; left: nothing"

	// objectsGo is what the page says once, above its table: when Services and PodGroups are deleted.
	objectsGo = "Cleanup"
)

// behaviours are what becomes of jobs, with a reason where it is not the same.
var behaviours = []behaviour{
	// The same with both.
	{
		what: "a Worker's container exits with 1", job: pyTorchJob(1, 1), event: exits(1, 1),
		theirs: runs, ours: runs,
	},
	{
		what: "the Master's container exits with 1", job: pyTorchJob(1, 1), event: exits(0, 1),
		theirs: runs, ours: runs,
	},
	{
		what: "a Worker's pod is deleted", job: pyTorchJob(1, 1), event: deleted(1),
		theirs: runs + new1, ours: runs + new1,
	},
	{
		what: "the Master's pod is deleted", job: pyTorchJob(1, 1), event: deleted(0),
		theirs: runs + new0, ours: runs + new0,
	},
	{
		what: "a node evicts a pod", job: pyTorchJob(1, 1), event: evicted,
		theirs: runs + new1, ours: runs + new1,
	},
	{
		what: "a node is drained", job: pyTorchJob(1, 1), event: drained,
		theirs: runs + new1, ours: runs + new1,
	},
	{
		what: "`restartPolicy: ExitCode`: a node evicts a pod", job: pyTorchJob(1, 1, restart(byCode)), event: evicted,
		theirs: runs + new1, ours: runs + new1,
	},
	{
		what: "a Worker succeeds", job: pyTorchJob(1, 1), event: succeed(1),
		theirs: runs, ours: runs,
	},
	{
		what: "no Master: one of 2 Workers succeeds", job: pyTorchJob(0, 2), event: succeed(1),
		theirs: runs, ours: runs,
	},
	{
		what: "`cleanPodPolicy: All`: all succeed", job: pyTorchJob(1, 1, cleanPods(kubeflowv1.CleanPodPolicyAll)),
		event:  succeed(1, 0),
		theirs: succeeded + nothing, ours: succeeded + nothing,
	},

	// Not the same.
	{
		what: "a container fails twice with the same last words", job: pyTorchJob(1, 1), event: exitsAlike,
		theirs: runs, ours: failed + oursRuns,
		why: "[SameFailureTwice](troubleshooting.md#samefailuretwice)",
	},
	{
		what: "no `backoffLimit`: a container fails 11 times", job: pyTorchJob(1, 1),
		event:  exits(1, slices.Repeat([]int{1}, 11)...),
		theirs: runs, ours: failed + oursRuns,
		why: "`restarts.max` is 10 within a day",
	},
	{
		what: "`backoffLimit: 2`: a container fails twice", job: pyTorchJob(1, 1, backoffLimit(2)), event: exits(1, 1, 1),
		theirs: failed + nothing, ours: runs,
		why: "Restarts must exceed `restarts.max`, but reach `backoffLimit`",
	},
	{
		what: "`backoffLimit: 2`: a container fails three times", job: pyTorchJob(1, 1, backoffLimit(2)), event: exits(1, 1, 1, 1),
		theirs: failed + nothing, ours: failed + oursRuns,
		why: "Training-operator then deletes all pods, whatever `cleanPodPolicy` says",
	},
	{
		what: "`backoffLimit: 0`: a node evicts a pod", job: pyTorchJob(1, 1, backoffLimit(0)), event: evicted,
		theirs: failed + nothing, ours: runs + new1,
		why: "Tideline never counts evictions",
	},
	{
		what: "`backoffLimit: 0`: a pod is deleted", job: pyTorchJob(1, 1, backoffLimit(0)), event: deleted(1),
		theirs: runs + new1, ours: failed + "; left: pods 0, Services, PodGroup",
		why: "Tideline counts deleted pods, the other containers' restarts",
	},
	{
		what: "`restartPolicy: Never`: a container exits with 1", job: pyTorchJob(1, 1, restart(never)), event: exits(1, 1),
		theirs: failed + theirsStays, ours: failed + oursRuns,
		why: objectsGo,
	},
	{
		what: "`restartPolicy: Never`: a pod is deleted", job: pyTorchJob(1, 1, restart(never)), event: deleted(1),
		theirs: failed + "; left: pods 0, Services", ours: failed + "; left: pods 0, Services, PodGroup",
		why: objectsGo,
	},
	{
		what: "`restartPolicy: Never`: a node evicts a pod", job: pyTorchJob(1, 1, restart(never)), event: evicted,
		theirs: failed + theirsStays, ours: runs + new1,
		why: "It is no failure of the training",
	},
	{
		what: "`restartPolicy: Never`: a node is drained", job: pyTorchJob(1, 1, restart(never)), event: drained,
		theirs: failed + "; left: pods 0, Services", ours: runs + new1,
		why: "Nor is a drain",
	},
	{
		what: "`restartPolicy: ExitCode`: a container exits with 1", job: pyTorchJob(1, 1, restart(byCode)), event: exits(1, 1),
		theirs: failed + theirsStays, ours: failed + oursRuns,
		why: objectsGo,
	},
	{
		what: "`restartPolicy: ExitCode`: a container exits with 137", job: pyTorchJob(1, 1, restart(byCode)), event: exits(1, 137),
		theirs: runs + new1, ours: runs,
		why: "The container restarts in place",
	},
	{
		what: "`restartPolicy: ExitCode`, `backoffLimit: 1`: a container exits with 137 twice",
		job:  pyTorchJob(1, 1, restart(byCode), backoffLimit(1)), event: exits(1, 137, 137),
		theirs: runs + new1, ours: failed + oursRuns,
		why: "Training-operator counts anew for each pod",
	},
	{
		what: "`restartPolicy: ExitCode`, `ttlSecondsAfterFinished: 0`: a container exits with 1",
		job:  pyTorchJob(1, 1, restart(byCode), deletedAfter(0)), event: exits(1, 1),
		theirs: failed + theirsStays, ours: gone + nothing,
		why: "Training-operator writes no completion time",
	},
	{
		what: "`activeDeadlineSeconds: 20`: the time passes", job: pyTorchJob(1, 1, deadline(20)),
		theirs: runs, ours: failed + oursRuns,
		why: "Training-operator looks only when the job changes",
	},
	{
		what: "2 to 4 Workers, and room for 3", job: pyTorchJob(0, 4, elastic(2, 4)), room: 3,
		theirs: waits, ours: runs,
		why: "Training-operator places all at once",
	},
	{
		what: "`suspend: true`", job: pyTorchJob(1, 1), event: (*side).suspend,
		theirs: suspended + nothing, ours: suspended + "; left: Services",
		why: "Tideline keeps the Service for resuming",
	},
	{
		what: "the Master succeeds, and a Worker runs on", job: pyTorchJob(1, 1), event: succeed(0),
		theirs: succeeded + theirsStays, ours: runs,
		why: "The others have `completionGraceSeconds` (300)",
	},
	{
		what: "elastic, no Master: one of 2 Workers succeeds", job: pyTorchJob(0, 2, elastic(2, 2)), event: succeed(1),
		theirs: succeeded + theirsStays, ours: runs,
		why: "As above",
	},
	{
		what: "no Master: both Workers succeed", job: pyTorchJob(0, 2), event: succeed(1, 0),
		theirs: succeeded + theirsStays, ours: succeeded + oursEnded,
		why: objectsGo,
	},
	{
		what: "all succeed", job: pyTorchJob(1, 1), event: succeed(1, 0),
		theirs: succeeded + theirsStays, ours: succeeded + oursEnded,
		why: objectsGo,
	},
	{
		what: "`cleanPodPolicy: Running`: all succeed", job: pyTorchJob(1, 1, cleanPods(kubeflowv1.CleanPodPolicyRunning)),
		event:  succeed(1, 0),
		theirs: succeeded + theirsStays, ours: succeeded + oursEnded,
		why: objectsGo,
	},
	{
		what: "`restartPolicy: Always`: all exit with 0", job: pyTorchJob(1, 1, restart(always)), event: succeed(1, 0),
		theirs: runs, ours: succeeded + oursEnded,
		why: "Exit code 0 is success",
	},
}
