package training

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// freeNode is the node that a scheduler chooses for a worker: its own, or the next that it does not avoid.
func (w *simulator) freeNode(p *podstate.Worker) string {
	for n := p.Index; ; n++ {
		node := fmt.Sprintf("n%d", n)
		if _, silent := w.o.Unreachable[node]; !silent && !slices.Contains(p.Avoids, node) {
			return node
		}
	}
}

// reject has the kubelet of a worker's node not take it.
func (w *simulator) reject(index int32, reason string) *simulator {
	w.t.Helper()
	return w.change(index, func(p *podstate.Worker) {
		if p.Node == "" {
			p.Node = w.freeNode(p)
		}
		p.Scheduled, p.Phase, p.Ready, p.Rejected = true, corev1.PodFailed, false, true
		p.Failure = podstate.Failure{Reason: reason, Message: "Allocate failed due to no healthy devices, which is unexpected"}
	})
}

// silence has the node of a worker answer no more.
func (w *simulator) silence(index int32) *simulator {
	w.t.Helper()
	if w.o.Unreachable == nil {
		w.o.Unreachable = map[string]time.Time{}
	}
	w.o.Unreachable[w.worker(index).Node] = w.now
	return w
}

// loseByTaint has the control plane ask the worker of a silent node to leave, which no kubelet hears.
func (w *simulator) loseByTaint(index int32) *simulator {
	w.t.Helper()
	return w.change(index, func(p *podstate.Worker) { p.Disruption, p.Terminating, p.Ready = reasonTaint, true, false })
}

func TestPodsThatFailForTheirNode(t *testing.T) {
	exited := []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
	for name, c := range map[string]struct {
		reason     string
		containers []corev1.ContainerStatus
		phase      corev1.PodPhase
		want       bool
	}{
		"its program failed":                    {"", exited, corev1.PodFailed, false},
		"no container ever ended":               {"", nil, corev1.PodFailed, true},
		"a device plugin rejects":               {"UnexpectedAdmissionError", nil, corev1.PodFailed, true},
		"rejected when the kubelet began again": {"UnexpectedAdmissionError", exited, corev1.PodFailed, true},
		"another pod was quicker":               {"OutOfnvidia.com/gpu", nil, corev1.PodFailed, true},
		"the node's labels changed":             {"NodeAffinity", exited, corev1.PodFailed, true},
		"the node shuts down":                   {"NodeShutdown", nil, corev1.PodFailed, true},
		"its own deadline":                      {"DeadlineExceeded", nil, corev1.PodFailed, false},
		"it runs":                               {"", nil, corev1.PodRunning, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}
			pod.Status = corev1.PodStatus{Phase: c.phase, Reason: c.reason, ContainerStatuses: c.containers}
			NewWithT(t).Expect(podstate.ReadWorker(pod, 1).Rejected).To(Equal(c.want))
		})
	}
}

func TestRejectionsCostTheJobNothing(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4, 4).trains().deletePod(3).settle()
	g.Expect(w.status().Restarts).To(Equal(int32(1)), "the deletion")
	began := w.now
	for n := int32(1); n <= 12; n++ {
		w.reject(3, "UnexpectedAdmissionError")
		node := w.worker(3).Node
		w.step().pass(statuspace.SoonDelay).step()
		g.Expect(w.status().Restarts).To(Equal(int32(1)), "rejection %d is no failure of the job's", n)
		g.Expect(jobstate.IsFinished(w.status())).To(BeFalse())
		g.Expect(w.status().AvoidedNodes).To(ContainElement(And(HaveField("Name", node), HaveField("Until", Not(BeNil())))))
		g.Expect(w.worker(3).Phase).To(Equal(corev1.PodFailed), "it stays for a back-off")
		w.pass(losses.BackoffAfter(n)).step().step()
		g.Expect(w.worker(3).Phase).To(Equal(corev1.PodPending), "created anew")
		g.Expect(w.worker(3).Avoids).To(ContainElement(node), "elsewhere")
	}
	g.Expect(w.now.Sub(began)).To(BeNumerically(">", 30*time.Minute), "the default of deadlines.belowMinSeconds")
	g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventNodeRejected))
	g.Expect(w.status().Message).To(ContainSubstring("rejected worker 3 (UnexpectedAdmissionError)"))
	w.run().settle()
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
	g.Expect(rejections(w, 3)).To(BeZero(), "it runs")
}

func TestARejectedWorkerOfOneTriesTheNodeAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).settle().run(0).reject(1, "OutOfcpu").step().pass(statuspace.SoonDelay).step()
	w.pass(losses.FirstBackoff).step().step()
	waits := w.worker(1)
	g.Expect(waits.Avoids).To(Equal([]string{"n1"}))
	uid := waits.UID
	w.pass(losses.FirstAvoidance - time.Minute).settle()
	g.Expect(w.worker(1).UID).To(Equal(uid), "there may be room elsewhere")
	w.pass(time.Minute).settle()
	g.Expect(w.worker(1).UID).NotTo(Equal(uid), "its affinity cannot be changed")
	g.Expect(w.worker(1).Avoids).To(BeEmpty())
	g.Expect(w.status().Restarts).To(BeZero())
	w.reject(1, "OutOfcpu").step().pass(statuspace.SoonDelay).step()
	avoided := w.status().AvoidedNodes[0]
	g.Expect(avoided.Until.Sub(avoided.Time.Time)).To(Equal(2*losses.FirstAvoidance), "it doubles")
	w.pass(4 * time.Hour).settle().run().settle()
	g.Expect(w.status().AvoidedNodes).To(BeEmpty(), "forgotten")
}

func TestNodesThatAJobAvoidsAreBounded(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 40).settle().run(0, 1).settle()
	for i := int32(2); i < 40; i++ {
		w.reject(i, "UnexpectedAdmissionError")
	}
	w.step().pass(statuspace.SoonDelay).step()
	g.Expect(w.status().AvoidedNodes).To(HaveLen(v1beta1.MaxAvoidedNodes))
	g.Expect(w.status().Restarts).To(BeZero())
}

func TestARejectionOfAPodThatRanIsALossOfItsNode(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
		{Action: v1beta1.ActionFailJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed}},
		{Action: v1beta1.ActionRestartJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnNodeLost}},
	}}
	w.trains().reject(1, "UnexpectedAdmissionError").step()
	g.Expect(jobstate.IsFinished(w.status())).To(BeFalse(), "it did not fail")
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)), "the rule for lost nodes says so")
	g.Expect(w.status().Restarts).To(BeZero())
}

// A node loses its power. Five minutes later the control plane asks its pods to leave, and no kubelet hears it.
func TestANodeThatDoesNotAnswerIsNamedAndItsTimeDoesNotCount(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().silence(1).pass(5 * time.Minute).loseByTaint(1).settle()
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("False/" + v1beta1.ReasonNodeUnreachable))
	g.Expect(w.status().Message).To(And(ContainSubstring("Node n1 has not answered since 2026-11-20 10:"),
		ContainSubstring("kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")))
	g.Expect(w.status().Message).NotTo(ContainSubstring("by force"), "the user did not choose that")
	g.Expect(reasons(w.events)).To(ContainElement(v1beta1.ReasonNodeUnreachable))
	w.pass(24 * time.Hour).settle()
	g.Expect(jobstate.IsFinished(w.status())).To(BeFalse(), "deadlines.belowMinSeconds stands")
	g.Expect(w.status().Restarts).To(BeZero())
	// An administrator says that the node is gone.
	w.remove(w.worker(1).UID)
	delete(w.o.Unreachable, "n1")
	w.settle()
	g.Expect(w.worker(1)).NotTo(BeNil(), "created anew")
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("False/" + v1beta1.ReasonRecovering))
	w.pass(29 * time.Minute).settle()
	g.Expect(jobstate.IsFinished(w.status())).To(BeFalse())
	w.pass(2 * time.Minute).settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonBelowMinTimeout), "it begins anew once the node is gone")
}

func TestANodeThatDoesNotAnswerIsNamedBeforeItsPodIsAskedToLeave(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().silence(1).change(1, func(p *podstate.Worker) { p.Ready = false }).settle()
	w.pass(31 * time.Minute).settle() // Its pod tolerates such nodes for ever.
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/" + v1beta1.ReasonNodeUnreachable))
	g.Expect(w.status().Message).To(And(HavePrefix("1 of 2 workers ready. Node n1 of worker 1 has not answered since "),
		ContainSubstring("kubectl taint node n1")))
	g.Expect(meta.FindStatusCondition(w.status().Conditions, v1beta1.ConditionReady).Message).To(
		ContainSubstring("so worker 1 may have stopped"))
	g.Expect(jobstate.IsFinished(w.status())).To(BeFalse())
	delete(w.o.Unreachable, "n1")
	w.change(1, func(p *podstate.Worker) { p.Ready = true }).settle()
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("True/" + v1beta1.ReasonAtMaximum))
}

func TestPodsOfUnreachableNodesAreDeletedByForceWhenTheUserWantsThat(t *testing.T) {
	for name, lose := range map[string]func(*simulator){
		"while it trains": func(*simulator) {},
		"while it stops":  func(w *simulator) { w.suspend(true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2)
			w.graceful = true
			w.o.Job.Spec.Deadlines.ForceDeleteSeconds = ptr.To[int32](600)
			w.trains().silence(1).pass(5 * time.Minute).loseByTaint(1)
			lose(w)
			w.settle()
			dead := w.worker(1).UID
			g.Expect(w.status().Message).To(ContainSubstring("by force at 2026-11-20 10:1"))
			g.Expect(w.last.RequeueAfter).To(BeNumerically("<=", 5*time.Minute))
			w.pass(4 * time.Minute).step()
			g.Expect(w.worker(1).UID).To(Equal(dead))
			w.pass(time.Minute).settle()
			g.Expect(w.last.ForceDeletePods).To(BeEmpty(), "once")
			if w.o.Job.Spec.Suspend {
				g.Expect(w.indices()).To(BeEmpty())
				g.Expect(condition(w, v1beta1.ConditionSuspended)).To(Equal("True/Suspended"))
				return
			}
			w.run().settle()
			g.Expect(w.worker(1).UID).NotTo(Equal(dead))
			g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
		})
	}
}

func TestAWorkerThatIsRecordedAliveIsNotDeletedByForce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Deadlines.ForceDeleteSeconds = ptr.To[int32](60)
	w.trains().silence(1).pass(time.Hour).loseByTaint(1)
	g.Expect(Plan(w.o, w.now).ForceDeletePods).To(BeEmpty(), "its loss is in status first")
	w.settle().run().settle()
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
}

func TestOnlyNodesThatMayBeSilentAreLookedAt(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).trains()
	g.Expect(podstate.SilentNodes(w.o.Workers)).To(BeEmpty(), "a job at rest asks nothing")
	w.change(0, func(p *podstate.Worker) { p.Ready = false })
	w.change(2, func(p *podstate.Worker) { p.Terminating, p.Node = true, "n0" })
	g.Expect(podstate.SilentNodes(w.o.Workers)).To(Equal([]string{"n0"}))

	node, since := &corev1.Node{}, metav1.NewTime(w.now)
	for status, silent := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true,
	} {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: since}}
		at, is := podstate.UnreachableSince(node)
		g.Expect(is).To(Equal(silent), "Ready is %s", status)
		if is {
			g.Expect(at).To(Equal(since.Time))
		}
	}
}

// A broken device plugin of the only node with room.
func TestANodeThatRejectsAgainAndAgainDoesNotEndTheTraining(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().deletePod(1).settle()
	for n := int32(1); n <= 6; n++ {
		w.change(1, func(p *podstate.Worker) { p.Node = "broken" }).reject(1, "UnexpectedAdmissionError").settle()
		w.pass(losses.BackoffAfter(n)).settle()
		g.Expect(w.worker(1).Avoids).To(Equal([]string{"broken"}))
		g.Expect(strings.Contains(w.status().Message, "no other job makes room for this one")).To(Equal(
			n >= trainingpod.ManyRejections), "rejection %d", n)
		w.pass(losses.AvoidanceAfter(n)).settle()
		g.Expect(jobstate.IsFinished(w.status())).To(BeFalse(), "after %d rejections and %s", n, losses.AvoidanceAfter(n))
		g.Expect(w.worker(1).Avoids).To(BeEmpty(), "it is tried again")
	}
	g.Expect(w.status().Restarts).To(Equal(int32(1)), "the deletion")
	w.run().settle()
	g.Expect(trainingpod.RejectedAgain(w.status())).To(BeFalse(), "it runs")
}

func TestWhatTheTemplateExcludesItselfIsNotTriedAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n7"}},
			}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}}},
		}},
	}}
	w.settle().run(0).change(1, func(p *podstate.Worker) { p.Node = "n7" }).reject(1, "OutOfcpu").settle()
	w.pass(losses.FirstBackoff).settle().pass(losses.FirstAvoidance).settle()
	uid := w.worker(1).UID
	w.pass(time.Minute).settle()
	g.Expect(w.worker(1).UID).To(Equal(uid), "it stays")
}

func TestAWorkerThatSucceededAfterARejectionHoldsNoClock(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
	w.settle().run(0).reject(1, "OutOfcpu").settle().pass(losses.FirstBackoff).settle()
	w.change(1, func(p *podstate.Worker) {
		p.Scheduled, p.Phase, p.FinishedAt = true, corev1.PodSucceeded, metav1.NewTime(w.now)
	}).settle()
	g.Expect(w.status().RunningSince).NotTo(BeNil(), "the core runs, or has")
	g.Expect(rejections(w, 1)).To(BeZero())
}

func TestAWorkerThatLeavesForTwoReasonsIsDeletedOnce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).trains().change(2, func(p *podstate.Worker) { p.Node = "n7" }).reject(2, "OutOfcpu").settle()
	w.pass(losses.FirstBackoff).settle()
	g.Expect(w.worker(2).Avoids).To(Equal([]string{"n7"}))
	w.pass(losses.FirstAvoidance - statuspace.SoonDelay).told(2).step().pass(statuspace.SoonDelay).step().step()
	g.Expect(w.last.DeletePods).To(HaveLen(1), "it gives way, and the node that it avoids may be used again")
}

func rejections(w *simulator, worker int32) int32 {
	r, _ := w.status().RetryOf(worker)
	return r.Rejections
}

// doubt has more workers have failed on the node of a worker than chance explains.
func (w *simulator) doubt(index int32) string {
	w.t.Helper()
	node := w.worker(index).Node
	if node == "" {
		node = w.freeNode(w.worker(index))
		w.change(index, func(p *podstate.Worker) { p.Node = node })
	}
	w.o.Doubted = []string{node}
	return node
}

func TestAWorkerThatFailsOnADoubtedNodeIsCreatedAgainElsewhere(t *testing.T) {
	for name, index := range map[string]int32{"core": 1, "surplus": 3, "the first": 0} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 3, 4).trains()
			node := w.doubt(index)
			before := w.worker(index).UID
			w.restartContainers("CUDA error", index).step()
			g.Expect(w.worker(index).UID).To(Equal(before), "until that is written")
			w.pass(statuspace.SoonDelay).settle()
			g.Expect(w.worker(index).UID).NotTo(Equal(before))
			g.Expect(w.worker(index).Avoids).To(Equal([]string{node}))
			g.Expect(w.status().Restarts).To(Equal(int32(1)), "the failure, and not the move")
			g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventNodeAvoided))
			g.Expect(w.status().AvoidedNodes).To(HaveLen(1))
			g.Expect(w.status().AvoidedNodes[0].Failed).To(BeTrue())
			g.Expect(w.last.DeletePods).To(BeEmpty())
			if index == 1 {
				g.Expect(w.status().Message).To(ContainSubstring("More workers failed there before than chance explains"))
			}
			w.run().settle()
			g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
			g.Expect(w.status().Restarts).To(Equal(int32(1)))
		})
	}
}

func TestAWorkerThatFailsElsewhereOrForItselfStaysWhereItIs(t *testing.T) {
	for name, fail := range map[string]func(*simulator){
		"on another node": func(w *simulator) {
			w.doubt(2)
			w.restartContainers("CUDA error", 1)
		},
		"out of memory": func(w *simulator) {
			w.doubt(1)
			w.restartContainers("", 1).change(1, func(p *podstate.Worker) {
				p.Failure = podstate.Failure{ExitCode: 137, Reason: "OOMKilled", Container: "trainer"}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 3, 3).trains()
			before := w.worker(1).UID
			fail(w)
			w.settle()
			g.Expect(w.worker(1).UID).To(Equal(before))
			g.Expect(w.status().Restarts).To(Equal(int32(1)))
			g.Expect(w.status().AvoidedNodes).To(BeEmpty())
		})
	}
}

func TestWhatFailuresSayOfNodes(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4, 4).trains()
	var failed []losses.Failure
	w.judge = func(_ *view, d *Decision) { failed = append(failed, d.Failed...) }
	for i := range int32(4) {
		w.change(i, func(p *podstate.Worker) { p.Node = fmt.Sprintf("n%d", i) })
	}
	w.settle()
	w.restartContainers("CUDA error", 0).reject(1, "UnexpectedAdmissionError").reject(2, "OutOfcpu").deletePod(3)
	w.step()
	g.Expect(failed).To(ConsistOf(losses.Failure{Node: "n0"}, losses.Failure{Node: "n1", Rejected: true}),
		"a quicker pod and a deletion say nothing")
}
