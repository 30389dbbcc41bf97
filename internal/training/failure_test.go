package training

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// fail lets the pod of a worker fail with that message.
func (w *simulator) fail(index int32, message string) *simulator {
	w.t.Helper()
	return w.change(index, func(p *podstate.Worker) {
		p.Scheduled, p.Phase, p.Ready = true, corev1.PodFailed, false
		p.Failure = podstate.Failure{ExitCode: 1, Reason: "Error", Message: message}
	})
}

// restartContainers restarts the containers of workers where they are.
func (w *simulator) restartContainers(message string, indices ...int32) *simulator {
	w.t.Helper()
	for _, i := range indices {
		w.change(i, func(p *podstate.Worker) {
			p.ContainerRestarts++
			p.Failure = podstate.Failure{ExitCode: 1, Reason: "Error", Message: message}
		})
	}
	return w
}

// another is an error unlike the others.
func another(n int) string { return "error " + strings.Repeat("x", n) }

// recover lets everything come back after a failure.
func (w *simulator) recover() *simulator {
	w.t.Helper()
	return w.settle().pass(losses.LongestBackoff).settle().run().settle()
}

func TestFailureBudget(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Restarts.Max = ptr.To[int32](3)
	w.trains()
	for n := range 3 {
		w.fail(1, another(n)).recover()
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	}
	w.fail(1, "the last.").step() // The sentence ends once.
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed), "although every pod was new")
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTooManyRestarts))
	g.Expect(w.status().Message).To(Equal("4 restarts within 24h0m0s are more than restarts.max (3) allows. The last: " +
		"worker 1 failed with exit code 1 (Error): the last."))
	g.Expect(w.status().Restarts).To(Equal(int32(4)))
}

func TestLastWordsAreNotARuleBelowThem(t *testing.T) {
	for message, shown := range map[string]string{
		"Traceback:\nValueError: no such file\n":                 "ValueError: no such file",
		"mpirun could not start a daemon.\n----------\n\n  ==\n": "mpirun could not start a daemon.",
		"----------\n**********":                                 "**********",
		"":                                                       "",
	} {
		w := newSimulator(t, 2, 2)
		w.trains().fail(1, message).step()
		NewWithT(t).Expect(w.status().LastFailure.Message).To(Equal(shown))
	}
}

func TestRestartsLeaveTheWindow(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Restarts.Max, w.o.Job.Spec.Restarts.WindowSeconds = ptr.To[int32](1), ptr.To[int32](3600)
	w.trains()
	for n := range 4 {
		w.fail(1, another(n)).recover().pass(time.Hour)
	}
	g.Expect(w.settle().status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.status().Restarts).To(Equal(int32(4)), "the count goes on")
}

func TestProgressForgives(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Restarts.Max = ptr.To[int32](1)
	w.trains()
	for n := range 5 {
		w.change(0, func(p *podstate.Worker) { p.Progress = int64(100 * (n + 1)) })
		w.fail(1, "the same each time").recover()
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	}
	g.Expect(w.status().Progress).To(Equal(int64(500)))
}

func TestSameFailureTwice(t *testing.T) {
	for name, c := range map[string]struct {
		between time.Duration
		second  string
		fails   bool
	}{
		"at once":             {0, "CUDA error", true},
		"long after":          {15 * time.Minute, "CUDA error", false},
		"another failure":     {0, "NCCL error", false},
		"without any message": {0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2).trains()
			first := "CUDA error"
			if c.second == "" {
				first = ""
			}
			w.fail(1, first).settle().pass(losses.FirstBackoff).settle().run().settle().pass(c.between).fail(1, c.second).step()
			if !c.fails {
				g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
				return
			}
			g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
			g.Expect(w.status().Message).To(Equal("The same failure happened twice within 10m0s, without progress in between: worker 1 " +
				"failed with exit code 1 (Error): CUDA error."))
			g.Expect(w.status().LastFailure.Message).To(Equal("CUDA error"))
		})
	}
}

func TestLossOfWorkerZeroInPlaceIsOneRestart(t *testing.T) {
	for name, waves := range map[string][][]int32{
		"all at once":          {{0, 1, 2, 3}},
		"worker 0 first":       {{0}, {1, 3}, {2}},
		"worker 0 in between":  {{2}, {0, 3}, {1}},
		"worker 0 last":        {{1}, {2}, {3}, {0}},
		"only worker 0's died": {{0}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains()
			for _, wave := range waves {
				w.restartContainers("", wave...).settle()
			}
			g.Expect(w.status().Restarts).To(Equal(int32(1)))
			g.Expect(w.last.DeletePods).To(BeEmpty(), "everybody keeps the pod")
		})
	}
}

func TestRestartInPlaceOfAnotherWorkerCounts(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().restartContainers("a", 3).settle().restartContainers("b", 3).settle()
	g.Expect(w.status().Restarts).To(Equal(int32(2)), "the same worker twice is no single incident")
	w.pass(2*incidentWindow).restartContainers("c", 2).settle()
	g.Expect(w.status().Restarts).To(Equal(int32(3)))
	w.deletePod(0).settle().run().settle().restartContainers("", 1, 2, 3).settle()
	g.Expect(w.status().Restarts).To(Equal(int32(4)), "the loss of worker 0's pod restarts the containers of all others")
	w.restart().settle()
	g.Expect(w.status().Restarts).To(Equal(int32(4)), "counted once, also after a restart of the operator")
	g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventWorkerLost))
}

func TestBackoffIsEachWorkersOwn(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 3, 3).trains()
	stays := func(index int32) time.Duration {
		start := w.now
		w.settle()
		for w.worker(index) != nil && w.worker(index).Phase == corev1.PodFailed && w.now.Sub(start) < time.Hour {
			w.pass(time.Second).step()
		}
		return w.now.Sub(start)
	}
	g.Expect(stays(1)).To(BeZero())
	for n, want := range []time.Duration{losses.FirstBackoff, 2 * losses.FirstBackoff, 4 * losses.FirstBackoff} {
		w.fail(1, another(n))
		g.Expect(stays(1)).To(BeNumerically("~", want, 6*time.Second), "failure %d of worker 1", n+1)
		w.settle().run().settle()
	}
	w.fail(2, "another")
	g.Expect(stays(2)).To(BeNumerically("~", 10*time.Second, 6*time.Second), "the first of worker 2")
	g.Expect(losses.BackoffAfter(20)).To(Equal(losses.LongestBackoff))
}

func TestClockThatIsPutBackLengthensNoBackoff(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.fail(1, another(0)).settle().run().settle()
	w.fail(1, another(1)).step()
	w.step()
	g.Expect(w.worker(1).Phase).To(Equal(corev1.PodFailed), "it waits for its back-off")
	w.stepClock(-time.Hour)
	w.step()
	written := w.written
	for range 30 {
		w.pass(2 * time.Second).step()
	}
	g.Expect(w.written-written).To(BeNumerically("<=", 1), "nothing new is to be said")
	w.pass(losses.LongestBackoff).settle()
	g.Expect(w.worker(1).Phase).To(Equal(corev1.PodPending), "the worker is created again")
}

func TestFailurePolicyFirstMatchWins(t *testing.T) {
	failed := v1beta1.FailureRule{Action: v1beta1.ActionFailJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed}}
	again := v1beta1.FailureRule{Action: v1beta1.ActionRestartWorker, OnReasons: []string{"Error"}}
	for name, c := range map[string]struct {
		rules []v1beta1.FailureRule
		phase v1beta1.JobPhase
	}{
		"fail first":    {[]v1beta1.FailureRule{failed, again}, v1beta1.PhaseFailed},
		"restart first": {[]v1beta1.FailureRule{again, failed}, v1beta1.PhaseRunning},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2)
			w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: c.rules}
			w.trains().fail(1, "no").step()
			g.Expect(w.status().Phase).To(Equal(c.phase))
			g.Expect(w.status().Restarts).To(Equal(int32(1)), "whether it counts is another question")
		})
	}
}

func TestExitCodesAsTrainingOperatorTakesThem(t *testing.T) {
	permanent := make([]int32, 127)
	for i := range permanent {
		permanent[i] = int32(i + 1)
	}
	for code, phase := range map[int32]v1beta1.JobPhase{1: v1beta1.PhaseFailed, 137: v1beta1.PhaseRunning} {
		w := newSimulator(t, 2, 2)
		w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
			{Action: v1beta1.ActionFailJob, OnExitCodes: &v1beta1.ExitCodes{Operator: v1beta1.ExitCodesIn, Values: permanent}},
		}}
		w.trains().change(1, func(p *podstate.Worker) {
			p.Phase, p.Failure = corev1.PodFailed, podstate.Failure{ExitCode: code}
		}).step()
		NewWithT(t).Expect(w.status().Phase).To(Equal(phase), "exit code %d", code)
	}
}

func TestActionsOfAFailurePolicy(t *testing.T) {
	with := func(t *testing.T, action v1beta1.FailureAction) *simulator {
		w := newSimulator(t, 2, 3)
		w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
			{Name: "mine", Action: action, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed}},
		}}
		return w.trains().fail(2, "no")
	}
	t.Run("Ignore", func(t *testing.T) {
		g := NewWithT(t)
		w := with(t, v1beta1.ActionIgnore).recover()
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
		g.Expect(w.worker(2).Phase).To(Equal(corev1.PodFailed), "it is not replaced, and stays for its log")
	})
	t.Run("RestartJob", func(t *testing.T) {
		g := NewWithT(t)
		w := with(t, v1beta1.ActionRestartJob)
		before := w.worker(0).UID
		w.settle()
		g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
		w.run().settle().run().settle()
		g.Expect(w.status().ReadyReplicas).To(Equal(int32(3)))
		g.Expect(w.worker(0).UID).NotTo(Equal(before))
		g.Expect(w.status().Restarts).To(Equal(int32(1)))
		g.Expect(reasons(w.events)).To(ContainElement(v1beta1.EventRestarted))
	})
	t.Run("CompleteJob", func(t *testing.T) {
		w := with(t, v1beta1.ActionCompleteJob).settle()
		NewWithT(t).Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
	})
	t.Run("FailJob", func(t *testing.T) {
		g := NewWithT(t)
		w := with(t, v1beta1.ActionFailJob).settle()
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
		g.Expect(w.status().Message).To(Equal(
			`The job has failed by rule "mine" of the failure policy: worker 2 failed with exit code 1 (Error): no.`))
	})
}

func TestFailedRankRestartsAGangOnce(t *testing.T) {
	for name, fail := range map[string]func(*simulator){
		"a container in its pod":   func(w *simulator) { w.restartContainers("rank 1 is gone", 1) },
		"all containers at once":   func(w *simulator) { w.restartContainers("rank 1 is gone", 0, 1, 2) },
		"a pod":                    func(w *simulator) { w.fail(1, "rank 1 is gone") },
		"two pods at once":         func(w *simulator) { w.fail(1, "rank 1 is gone").fail(2, "rank 1 is gone") },
		"worker 0 and its peers":   func(w *simulator) { w.fail(0, "rank 0 is gone").restartContainers("rank 0 is gone", 1, 2) },
		"a pod that was deleted":   func(w *simulator) { w.deletePod(1) },
		"surplus, which is a peer": func(w *simulator) { w.restartContainers("rank 2 is gone", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 3).edit(plainBackend).trains()
			before := w.worker(0).UID
			fail(w)
			w.settle()
			g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
			g.Expect(w.status().Restarts).To(Equal(int32(1)), "once for the gang, however many of it failed")
			w.run().settle().run().settle()
			g.Expect(w.status().ReadyReplicas).To(Equal(int32(3)))
			g.Expect(w.worker(0).UID).NotTo(Equal(before))
			w.restart().settle()
			g.Expect(w.status().Restarts).To(Equal(int32(1)), "also after a restart of the operator")
		})
	}
}

func TestRestartsOfAGangAreLimited(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).edit(plainBackend)
	w.o.Job.Spec.Restarts.Max = ptr.To[int32](2)
	w.trains()
	for n := range 2 {
		w.restartContainers(another(n), int32(n)).recover()
		g.Expect(w.status().Attempt.Number).To(Equal(int32(n + 2)))
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	}
	w.restartContainers("the last", 1).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTooManyRestarts))
	g.Expect(w.status().Attempt.Number).To(Equal(int32(3)), "no attempt begins that would not be made")
}

func TestSameFailureOfAGangTwice(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).edit(plainBackend).trains().restartContainers("CUDA error 1", 1).settle()
	w.pass(losses.FirstBackoff).settle().run().settle().restartContainers("CUDA error 2", 0).settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonSameFailureTwice), "who of them says it first is chance")
}

func TestWhatDoesNotRestartAGang(t *testing.T) {
	policy := func(s *v1beta1.ElasticTrainingJobSpec) {
		s.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
			{Action: v1beta1.ActionRestartWorker, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed}},
		}}
	}
	other := func(w *simulator) {
		w.change(1, func(p *podstate.Worker) {
			p.ContainerRestarts, p.Failure = 1, podstate.Failure{ExitCode: 1, Container: "logs"}
		})
	}
	rank := func(w *simulator) { w.restartContainers("no", 1) }
	done := func(w *simulator) { w.change(1, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded }) }
	for name, c := range map[string]struct {
		edit     func(*v1beta1.ElasticTrainingJobSpec)
		happens  func(*simulator)
		restarts int32
	}{
		"a rule that replaces the worker": {policy, rank, 1},
		"a container that does not train": {plainBackend, other, 1},
		"a rank that is done":             {plainBackend, done, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 3).edit(plainBackend).edit(c.edit).trains()
			c.happens(w)
			w.settle()
			g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
			g.Expect(w.status().Restarts).To(Equal(c.restarts))
		})
	}
}

func TestEvictedRankRestartsAGangUncounted(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3)
	w.o.Job.Spec.Framework.Type = v1beta1.FrameworkCustom
	w.trains().evict(2).settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.status().Restarts).To(BeZero(), "an eviction never counts")
	w.run().settle()
	w.change(0, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded }).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded), "without waiting for the others")
}

func TestNewAttemptKeepsTheCooldown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).edit(plainBackend)
	w.trains().evict(3).settle().run().settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2}), "worker 3 made room for somebody")
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonCoolingDown))
	w.pass(5 * time.Minute).settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
	w.suspend(true).settle()
	g.Expect(w.status().Elasticity).To(BeNil(), "a job that holds nothing owes nothing")
}

func TestWorkersThatNeverRanAreNobodysPeers(t *testing.T) {
	for name, edit := range map[string]func(*v1beta1.ElasticTrainingJobSpec){
		"None": plainBackend,
		"rule": func(s *v1beta1.ElasticTrainingJobSpec) {
			s.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{
				Action: v1beta1.ActionFailJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodEvicted, v1beta1.OnNodeLost},
			}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).edit(edit).settle().run().settle().run(2).settle()
			w.evict(3).settle()
			w.change(2, func(p *podstate.Worker) { p.Disruption = reasonNodeGone }).settle()
			g.Expect(w.status().Attempt.Number).To(Equal(int32(1)), "worker 3 waited, worker 2 is still there")
			g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
			w.evict(2).settle()
			g.Expect(w.status().Attempt.Number == 2 || w.status().Phase == v1beta1.PhaseFailed).To(BeTrue(), "worker 2 ran")
		})
	}
}

func TestSuccessPolicies(t *testing.T) {
	succeed := func(w *simulator, indices ...int32) {
		for _, i := range indices {
			w.change(i, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).settle()
		}
	}
	t.Run("AllWorkers", func(t *testing.T) {
		g := NewWithT(t)
		w := newSimulator(t, 3, 3)
		w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
		w.trains()
		succeed(w, 0, 2)
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
		w.deletePod(2).settle()
		succeed(w, 1)
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded), "worker 2 had succeeded before its pod was deleted")
	})
	t.Run("Any", func(t *testing.T) {
		g := NewWithT(t)
		w := newSimulator(t, 3, 3)
		w.o.Job.Spec.SuccessPolicy.Operator = v1beta1.SuccessOfAny
		w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
		w.trains()
		succeed(w, 2)
		g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonCompleting))
		w.pass(300 * time.Second).settle()
		g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
	})
}
