package elastic

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// histories is how many random histories each run tries; TIDELINE_HISTORIES asks for more.
func histories(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("TIDELINE_HISTORIES"))
	if err != nil {
		return 2000
	}
	return n
}

// TestRandomHistories drives jobs through random events, restarts of the operator among them, and holds every decision to
// what must never happen and every end to its fixed point.
func TestRandomHistories(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for n := range histories(t) {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		if !history(t, random) {
			t.Fatalf("seed %d, history %d", seed, n)
		}
	}
}

func history(t *testing.T, random *rand.Rand) bool {
	t.Helper()
	minimum := 1 + random.Int32N(3)
	w := newWorld(t, minimum, minimum+random.Int32N(6))
	randomPolicies(w, random)
	for range 5 + random.IntN(40) {
		happen(w, random)
		before := w.status().DeepCopy()
		w.step()
		if wrong := breaks(w, before.Restarts); wrong != "" {
			t.Errorf("%s: %+v", wrong, w.last)
			return false
		}
	}
	for i := range w.o.Workers {
		w.o.Workers[i].Waiting = ""
	}
	w.suspend(false)
	for range 4 {
		w.run().settle().pass(10 * time.Minute).settle()
	}
	w.run().settle()
	written := w.written
	again := Plan(w.o, w.now)
	switch {
	case PaceOf(w.status(), &again.Status) != PaceNever, len(again.DeletePods)+len(again.CreateWorkers) > 0, w.written != written:
		t.Errorf("is not at rest: %+v", again)
		return false
	case w.restarts() != int(w.status().Restarts):
		t.Errorf("counted %d restarts for those of status: %+v", w.restarts(), w.status())
		return false
	case !finished(w.status()) && len(w.indices()) != w.pods():
		t.Errorf("has workers %v, wants %d of them: %+v", w.indices(), w.pods(), w.status())
		return false
	}
	return true
}

// randomPolicies gives the job rules and limits.
func randomPolicies(w *world, random *rand.Rand) {
	actions := []v1alpha1.FailureAction{
		v1alpha1.ActionIgnore, v1alpha1.ActionRestartWorker, v1alpha1.ActionRestartJob, v1alpha1.ActionCompleteJob,
		v1alpha1.ActionFailJob,
	}
	events := []v1alpha1.FailureEvent{
		v1alpha1.OnPodFailed, v1alpha1.OnPodEvicted, v1alpha1.OnNodeLost, v1alpha1.OnTaskCompleted,
	}
	spec := &w.o.Job.Spec
	if random.IntN(3) == 0 {
		spec.FailurePolicy = &v1alpha1.FailurePolicy{Rules: []v1alpha1.FailureRule{{
			Action: actions[random.IntN(len(actions))], OnEvents: events[:1+random.IntN(len(events))],
		}}}
	}
	spec.RunPolicy.MaxRestarts = ptr.To(random.Int32N(20))
	spec.SuccessPolicy = []v1alpha1.SuccessPolicy{
		v1alpha1.SuccessPolicyMaster, v1alpha1.SuccessPolicyAllWorkers, v1alpha1.SuccessPolicyAny,
	}[random.IntN(3)]
	if random.IntN(2) == 0 {
		spec.Elasticity.OnRangeChange = v1alpha1.RangeChangeRestart
	}
	if random.IntN(4) == 0 {
		spec.Rendezvous.Backend = v1alpha1.BackendNone
	}
}

// wanted is how many workers the job must have at most.
func (w *world) wanted() int32 {
	a := w.status().Attempt
	return min(max(w.o.Job.Spec.MaxReplicas, a.MinReplicas), a.MaxReplicas)
}

// restarts is how many restarts were counted for the figures over all jobs.
func (w *world) restarts() int {
	n := 0
	for _, m := range w.measures {
		for _, restarts := range m.Restarts {
			n += restarts
		}
	}
	return n
}

// pods is how many pods the job must have at its fixed point: none for workers that left and whose pods are gone.
func (w *world) pods() int {
	pods := int(w.wanted())
	for _, m := range w.status().Members {
		if m.Left && w.worker(m.Index) == nil {
			pods--
		}
	}
	return pods
}

// happen lets one thing happen to the job.
func happen(w *world, random *rand.Rand) {
	switch random.IntN(12) {
	case 0, 1, 2:
		w.run()
	case 10:
		w.suspend(!w.o.Job.Spec.RunPolicy.Suspend && random.IntN(3) == 0)
	case 11:
		w.o.Job.Spec.MinReplicas = 1 + random.Int32N(w.o.Job.Spec.MaxReplicas)
		w.o.Job.Generation++
	case 3:
		w.scale(w.o.Job.Spec.MinReplicas + random.Int32N(8))
	case 4:
		w.restart()
	case 5, 6:
		w.pass(time.Duration(random.IntN(400)) * time.Second)
	default:
		if len(w.o.Workers) > 0 {
			befall(w, random, w.o.Workers[random.IntN(len(w.o.Workers))])
		}
	}
}

// befall lets one thing happen to a worker.
func befall(w *world, random *rand.Rand, p Worker) {
	switch random.IntN(7) {
	case 0:
		w.remove(p.UID)
	case 5:
		if p.Phase == corev1.PodRunning {
			w.restartContainers([]string{"a", "b", ""}[random.IntN(3)], p.Index)
		}
	case 6:
		w.change(p.Index, func(p *Worker) { p.Waiting = []string{"", "ErrImagePull"}[random.IntN(2)] })
	case 1:
		if p.Index >= w.o.Job.Spec.MinReplicas {
			w.evict(p.Index)
		}
	case 2:
		w.change(p.Index, func(p *Worker) { p.Phase, p.Ready, p.Scheduled = corev1.PodFailed, false, true })
	case 3:
		w.change(p.Index, func(p *Worker) { p.Terminating = true }).step()
		if w.worker(p.Index) != nil && random.IntN(2) == 0 {
			w.end([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}[random.IntN(2)], p.Index).step()
		}
		w.remove(p.UID)
	default:
		if p.Phase == corev1.PodRunning && random.IntN(8) == 0 {
			w.change(p.Index, func(p *Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false })
		}
	}
}

// breaks names the rule that the last decision breaks.
func breaks(w *world, restartsBefore int32) string {
	d := w.last
	if d.Status.Restarts < restartsBefore {
		return "a counter went down"
	}
	trains := d.Status.MasterCompletionTime == nil && !finished(&d.Status) && !stopped(&d.Status)
	if trains && slices.ContainsFunc(d.DeletePods, func(p Worker) bool {
		return p.Index < d.Status.Attempt.MinReplicas && p.Attempt == d.Status.Attempt.ID() && p.Phase != corev1.PodFailed
	}) {
		return "a core worker that did not fail was deleted"
	}
	if slices.ContainsFunc(d.CreateWorkers, func(i int32) bool { return i >= w.wanted() }) {
		return "a worker beyond the maximum was created"
	}
	seen := map[int32]bool{}
	for _, p := range w.o.Workers {
		if seen[p.Index] {
			return "two pods have one index"
		}
		seen[p.Index] = true
	}
	return ""
}
