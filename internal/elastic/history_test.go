package elastic

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	for range 5 + random.IntN(40) {
		happen(w, random)
		before := w.status().DeepCopy()
		w.step()
		if wrong := breaks(w, before.Restarts); wrong != "" {
			t.Errorf("%s: %+v", wrong, w.last)
			return false
		}
	}
	w.run().settle().pass(time.Hour).settle().run().settle().pass(time.Hour).run().settle()
	written := w.written
	again := Plan(w.o, w.now)
	switch {
	case PaceOf(w.status(), &again.Status) != PaceNever, len(again.DeletePods)+len(again.CreateWorkers) > 0, w.written != written:
		t.Errorf("is not at rest: %+v", again)
		return false
	case !finished(w.status()) && len(w.indices()) != w.pods():
		t.Errorf("has workers %v, wants %d of them: %+v", w.indices(), w.pods(), w.status())
		return false
	}
	return true
}

// wanted is how many workers the job must have at most.
func (w *world) wanted() int32 {
	a := w.status().Attempt
	return min(max(w.o.Job.Spec.MaxReplicas, a.MinReplicas), a.MaxReplicas)
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
	switch random.IntN(10) {
	case 0, 1, 2:
		w.run()
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
	switch random.IntN(5) {
	case 0:
		w.remove(p.UID)
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
	if d.Status.MasterCompletionTime == nil && slices.ContainsFunc(d.DeletePods, func(p Worker) bool {
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
