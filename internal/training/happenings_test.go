package training

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// chance decides what happens: random numbers, or the bytes of a fuzzer.
type chance interface {
	// IntN is in [0, n), for n up to 256.
	IntN(n int) int
}

// script decides by bytes. When they are used up, it decides 0, which is where nothing unusual happens.
type script []byte

// IntN uses up one byte.
func (s *script) IntN(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % n
}

// hostile is what somebody may write who wants to forge lines, steer terminals, or fill a disk.
var hostile = "\x1b[2J\r\nlevel=error msg=forged \u202e\x00\xff" + strings.Repeat("\U0001F4A3", 5000)

func oneIn(c chance, n int) bool { return c.IntN(n) == n-1 }

func pick[T any](c chance, of ...T) T { return of[c.IntN(len(of))] }

func int32N(c chance, n int32) int32 { return int32(c.IntN(int(n))) }

// somePolicies gives the job rules and limits.
func somePolicies(w *simulator, c chance) {
	spec := &w.o.Job.Spec
	if oneIn(c, 3) {
		spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{
			Action: pick(c, v1beta1.ActionRestartWorker, v1beta1.ActionIgnore, v1beta1.ActionRestartJob, v1beta1.ActionCompleteJob,
				v1beta1.ActionFailJob),
			OnEvents: []v1beta1.FailureEvent{
				pick(c, v1beta1.OnPodFailed, v1beta1.OnPodEvicted, v1beta1.OnNodeLost, v1beta1.OnTaskCompleted), v1beta1.OnPodFailed,
			}[:1+c.IntN(2)],
		}}}
	}
	all := []v1beta1.WorkerTarget{{Indexes: "0-"}}
	success := pick(c, v1beta1.SuccessPolicy{}, v1beta1.SuccessPolicy{Targets: all},
		v1beta1.SuccessPolicy{Operator: v1beta1.SuccessOfAny, Targets: all})
	spec.SuccessPolicy.Operator, spec.SuccessPolicy.Targets = success.Operator, success.Targets
	spec.Elasticity.RangeUpdate = pick(c, v1beta1.RangeUpdateNextAttempt, v1beta1.RangeUpdateRestart)
	spec.Elasticity.Growth.CooldownSeconds = ptr.To(pick[int32](c, 300, 10, 0))
	spec.Elasticity.Shrink.MinRunSeconds = ptr.To(pick[int32](c, 0, 600))
	for i := range w.o.Config.Tiers {
		w.o.Config.Tiers[i].MaxMinSurplusRunSeconds = 600
	}
	spec.Elasticity.Growth.Mode = pick(c, v1beta1.GrowthAlways, v1beta1.GrowthOnlyIfPays, v1beta1.GrowthOnlyIfFits)
	if oneIn(c, 3) {
		spec.Elasticity.Step = min(pick[int32](c, 2, 3), max(1, spec.MaxReplicas-spec.MinReplicas))
		if spec.Elasticity.Step > 1 && oneIn(c, 2) {
			spec.Elasticity.StepWithin = &v1beta1.StepWithin{Level: v1beta1.StepOnNode}
		}
	}
	spec.Checkpoint.GraceSeconds = ptr.To(pick[int32](c, 0, 0, 30, 300))
	if oneIn(c, 4) {
		spec.Framework.Type = v1beta1.FrameworkCustom
		spec.Framework.SSH = pick(c, v1beta1.SSHNone, v1beta1.SSHKeyPair)
	}
	if oneIn(c, 4) {
		spec.Master = &v1beta1.Master{Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
		}}
	}
	if oneIn(c, 4) {
		spec.Accelerator = &v1beta1.Accelerator{
			ResourceName: "nvidia.com/gpu", Models: []string{"A100", "H100"},
			Mixing: pick(c, v1beta1.MixingForbidden, v1beta1.MixingForbidden, v1beta1.MixingAllowed),
		}
	}
	if oneIn(c, 4) {
		spec.NetworkPolicy = v1beta1.NetworkPolicyIsolated
	}
	someLimits(spec, c)
	w.graceful = oneIn(c, 2)
}

func someLimits(spec *v1beta1.ElasticTrainingJobSpec, c chance) {
	run := &spec.Deadlines
	spec.Restarts.Max = ptr.To(int32N(c, 20))
	spec.Restarts.WindowSeconds = ptr.To(pick[int32](c, 86400, 600))
	if oneIn(c, 3) {
		run.ForceDeleteSeconds = ptr.To(pick[int32](c, 60, 600))
	}
	spec.Cleanup.PodPolicy = pick(c, v1beta1.CleanPodPolicyRunning, v1beta1.CleanPodPolicyNone, v1beta1.CleanPodPolicyAll)
	for _, limit := range []**int32{
		&run.ActiveSeconds, &run.SchedulingSeconds, &run.BelowMinSeconds, &spec.Cleanup.TTLSecondsAfterFinished,
	} {
		if oneIn(c, 8) {
			*limit = ptr.To(pick[int32](c, 3600, 600, 60, 1))
		}
	}
}

// happen lets one thing happen to the job, and says what.
func happen(w *simulator, c chance) string {
	switch c.IntN(24) {
	case 0, 1, 2, 3:
		w.run()
		return "all run"
	case 4:
		w.endPods()
		return "pods that leave are gone"
	case 5, 6:
		w.pass(time.Duration(c.IntN(200)) * 2 * time.Second)
		return "time passes"
	case 7:
		w.scale(w.o.Job.Spec.MinReplicas + int32N(c, 8))
		return "maxReplicas changes"
	case 8:
		w.o.Job.Spec.MinReplicas = 1 + int32N(c, w.o.Job.Spec.MaxReplicas)
		w.o.Job.Generation++
		return "minReplicas changes"
	case 9:
		w.suspend(!w.o.Job.Spec.Suspend && oneIn(c, 2))
		return "suspend changes"
	case 10:
		w.restart()
		return "the operator restarts"
	case 11, 12:
		w.o.Verdict = someVerdict(w, c)
		return "the arbiter judges"
	case 13:
		someObstacle(w, c)
		return "the way is barred, or open again"
	case 14:
		return report(w, c)
	case 15:
		return loseNode(w, c)
	case 16:
		return actLate(w)
	case 17:
		w.trouble = trouble{failing: oneIn(c, 2), credit: c.IntN(6)}
		w.trouble.refused = !w.trouble.failing
		return "the API server refuses"
	}
	if len(w.o.Workers) == 0 {
		return "nothing"
	}
	return befall(w, c, w.o.Workers[c.IntN(len(w.o.Workers))])
}

// actLate has another operator look, and the next time act on what it saw.
func actLate(w *simulator) string {
	if w.late == nil {
		w.late = ptr.To(w.look())
		return "another operator looks, and is paused"
	}
	v := *w.late
	w.late = nil
	w.act(v)
	return "another operator acts on what it saw"
}

// someVerdict is what an arbiter may say, and some things that it should not.
func someVerdict(w *simulator, c chance) capacity.Verdict {
	other := types.NamespacedName{Namespace: "ads", Name: "ranker"}
	var v capacity.Verdict
	switch c.IntN(6) {
	case 1, 2:
		v.To = pick(c, other, types.NamespacedName{Namespace: "ads", Name: "ctr"})
		v.GiveUp = []types.UID{"unknown"}
		for _, p := range w.o.Workers {
			if oneIn(c, 3) && (p.Index >= w.o.Job.Spec.MinReplicas || oneIn(c, 4)) {
				v.GiveUp = append(v.GiveUp, p.UID)
			}
		}
	case 3:
		v.Preempt = &capacity.Preemption{By: other, Tier: "main-traffic"}
	case 4:
		v.Resume = true
	case 5:
		v.Waiting = 3
		v.Place = 1 + int32N(c, 3)
		v.Answer = capacity.Answer{Fits: oneIn(c, 3), Nodes: c.IntN(3), Largest: 1, QueueLimit: oneIn(c, 3)}
		v.From = []capacity.Holder{{Job: other, Workers: 2}}
	}
	v.SurplusLimit, v.Model = int32N(c, 10), pick(c, "", "A100", "H100", "L40")
	v.RoomSince = pick(c, time.Time{}, w.now, w.now.Add(-time.Hour))
	w.o.StepHosts = map[string][]string{"a": {"host"}, "b": {"host"}}
	if e := w.o.Job.Spec.Elasticity; e.StepWithin != nil && !oneIn(c, 8) {
		v.StepDomains, v.SurplusLimit = []capacity.StepDomain{}, 0
		for _, name := range []string{"b", "a", ""} {
			if n := e.Step * int32N(c, 3); n > 0 {
				v.StepDomains = append(v.StepDomains, capacity.StepDomain{Name: name, Workers: n})
				v.SurplusLimit += n
			}
		}
	}
	return v
}

// someObstacle bars the way of the job, or opens it.
func someObstacle(w *simulator, c chance) {
	w.open()
	switch c.IntN(7) {
	case 1:
		w.o.Invalid = "spec: is not as it should be"
	case 2:
		w.o.VolcanoMissing = "PodGroup"
	case 3:
		w.o.Queue.State = pick(c, "Closed", "")
	case 4:
		w.o.Queue = jobstate.Queue{Name: pick(c, "default", hostile), Missing: true}
	case 5:
		w.o.SchedulerObstacles = []string{"action preempt is missing"}
	case 6:
		w.refuses = pick(c, "Cannot create pod: violates PodSecurity.", hostile)
	}
}

// open takes every obstacle out of the way.
func (w *simulator) open() {
	w.o.Invalid, w.o.VolcanoMissing, w.o.SchedulerObstacles = "", "", nil
	w.o.Queue = jobstate.Queue{Name: "default", State: gang.QueueOpen}
	w.refuses = ""
}

// report has the training say something on worker 0's pod.
func report(w *simulator, c chance) string {
	master := w.worker(0)
	if master == nil {
		return "nothing"
	}
	if oneIn(c, 2) {
		master.Progress += int64(c.IntN(3))
		return "worker 0 reports progress"
	}
	if oneIn(c, 2) {
		ahead := pick(c, -time.Minute, 0, time.Minute)
		master.CheckpointDone = w.now.Add(ahead).Unix()
		return "worker 0 saves by itself, by a clock that is " + ahead.String() + " ahead"
	}
	master.CheckpointDone = master.CheckpointRequested - int64(c.IntN(2))
	return "worker 0 reports a checkpoint"
}

// loseNode takes every second worker, or its neighbours, from the job with their node.
func loseNode(w *simulator, c chance) string {
	reason, node := pick(c, reasonTaint, reasonNodeGone), int32N(c, 2)
	if oneIn(c, 4) {
		w.o.Unreachable = nil
		return "nodes answer again"
	}
	for i := range w.o.Workers {
		if p := &w.o.Workers[i]; p.Scheduled && p.Index%2 == node {
			p.Disruption, p.Terminating, p.Ready = reason, true, false
			if reason == reasonTaint {
				w.silence(p.Index)
			}
		}
	}
	if reason == reasonNodeGone {
		w.endPods()
	}
	return "a node is lost (" + reason + ")"
}

// befall lets one thing happen to a worker.
func befall(w *simulator, c chance, p podstate.Worker) string {
	switch c.IntN(11) {
	case 10:
		w.change(p.Index, func(p *podstate.Worker) {
			p.Marks.Attempt, p.Marks.Part = pick(c, p.Marks.Attempt, "", hostile), pick(c, p.Marks.Part, "gold", "")
		})
		return "somebody changes labels"
	case 9:
		w.reject(p.Index, pick(c, "UnexpectedAdmissionError", "OutOfcpu", hostile))
		return "a node rejects a worker"
	case 0:
		if oneIn(c, 2) {
			w.change(p.Index, func(p *podstate.Worker) { p.Scheduled = true })
			return "a worker is placed"
		}
		w.run(p.Index)
		return "a worker runs"
	case 1:
		w.remove(p.UID)
		return "a worker is deleted"
	case 2:
		if p.Phase != corev1.PodRunning {
			return "nothing"
		}
		if w.o.Doubted = nil; oneIn(c, 3) {
			w.o.Doubted, w.o.Shunned = []string{p.Node}, []string{p.Node}
		}
		w.restartContainers(pick(c, "a", "b", ""), p.Index)
		return "containers restart in place"
	case 3:
		w.change(p.Index, func(p *podstate.Worker) { p.Waiting = pick(c, "", "ErrImagePull", "CreateContainerConfigError") })
		return "an image is missing, or there"
	case 4:
		if p.Index >= w.o.Job.Spec.MinReplicas {
			w.evict(p.Index)
		}
		return "Volcano evicts"
	case 5:
		w.change(p.Index, func(p *podstate.Worker) {
			p.Disruption = pick(c, corev1.PodReasonPreemptionByScheduler, evictionAPI, "")
		})
		return "a worker is about to be evicted, or is spared"
	case 6:
		w.change(p.Index, func(p *podstate.Worker) {
			p.Phase, p.Ready, p.Scheduled = corev1.PodFailed, false, true
			p.Failure = podstate.Failure{ExitCode: 1, Reason: pick(c, "Error", hostile), Message: pick(c, "", "a", "b", hostile)}
		})
		return "a worker fails"
	case 7:
		w.change(p.Index, func(p *podstate.Worker) { p.Terminating = true }).step()
		if w.worker(p.Index) != nil && oneIn(c, 2) {
			w.end(pick(c, corev1.PodSucceeded, corev1.PodFailed), p.Index).step()
		}
		if oneIn(c, 2) {
			return "a worker is being deleted"
		}
		w.remove(p.UID)
		return "a worker is deleted gracefully"
	}
	if p.Phase == corev1.PodRunning && oneIn(c, 8) {
		w.change(p.Index, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false })
		return "a worker succeeds"
	}
	return "nothing"
}
