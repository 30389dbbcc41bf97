package training

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// TestRandomHistories drives jobs through random events, restarts of the operator among them, and holds every decision to
// what must never happen and every end to its fixed point. TIDELINE_HISTORIES is how many, 150 by default, and
// TIDELINE_SEED repeats those of an earlier run.
func TestRandomHistories(t *testing.T) {
	histories := environ.Number(t, "TIDELINE_HISTORIES", 150)
	seed := environ.Number(t, "TIDELINE_SEED", uint64(time.Now().UnixNano()))
	shards := uint64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			for n := shard; n < histories; n += shards {
				if wrong := history(t, rand.New(rand.NewPCG(seed, n)), nil); wrong != "" {
					history(t, rand.New(rand.NewPCG(seed, n)), t.Logf)
					t.Fatalf("TIDELINE_SEED=%d, history %d: %s", seed, n, wrong)
				}
			}
		})
	}
}

// history is the life of one job. It returns what was wrong with it, and tells the story if somebody listens.
func history(t *testing.T, c chance, tell func(string, ...any)) string {
	t.Helper()
	minimum := 1 + int32N(c, 3)
	w := newSimulator(t, minimum, minimum+int32N(c, 6))
	somePolicies(w, c)
	steps := oneIn(c, 4)
	if tell == nil {
		tell = func(string, ...any) {}
	}
	wrong := ""
	w.judge = func(v *view, d *Decision) {
		if wrong == "" {
			wrong = brokenLaw(&v.Observed, d, w.clock(), steps)
		}
		tell("  %s: deletes %d, creates %v; restarts %d; %s; next in %s", d.Status.Reason, len(d.DeletePods), d.CreateWorkers,
			d.Status.Restarts, d.Status.Message, d.RequeueAfter)
	}
	for range 5 + c.IntN(40) {
		what := happen(w, c)
		if steps && oneIn(c, 6) {
			what += ", and " + w.stepClock(pick(c, time.Hour, -time.Hour))
		}
		tell("%s: %s; %s", w.now.Format(time.TimeOnly), what, w.picture())
		if wrong == "" {
			wrong = impure(&w.o, w.clock())
		}
		w.step()
		if wrong != "" || w.o.Job.DeletionTimestamp != nil {
			return wrong
		}
	}
	if w.mostSkew > 0 {
		w.skew = 0
		w.pass(w.mostSkew) // What the operator put off by a clock that was ahead is due by then.
	}
	settled := w.calmDown()
	switch {
	case wrong != "" || w.o.Job.DeletionTimestamp != nil:
		return wrong
	case !settled:
		return "does not come to rest"
	}
	return w.atRest()
}

// stepClock puts the operator's clock forward or back, as its node's is when it is set.
func (w *simulator) stepClock(by time.Duration) string {
	w.skew += by
	w.mostSkew = max(w.mostSkew, w.skew.Abs()+time.Hour)
	return fmt.Sprintf("the operator's clock is %s ahead", w.skew)
}

// picture is how the pods stand, in a line.
func (w *simulator) picture() string {
	var text strings.Builder
	for _, p := range w.o.Workers {
		fmt.Fprintf(&text, " %s=%d/%s/%s", p.UID, p.Index, p.Attempt, p.Phase)
		if p.Terminating {
			text.WriteString("/leaves")
		}
		if p.Disruption != "" {
			text.WriteString("/" + p.Disruption)
		}
	}
	return text.String()
}

// calmDown takes away what is in the way of the job, gives it time, and tells whether it came to rest each time.
func (w *simulator) calmDown() bool {
	w.open()
	w.o.Unreachable = nil
	w.endPods()
	for i := range w.o.Workers {
		w.o.Workers[i].Waiting = ""
	}
	if w.o.Job.Spec.Suspend {
		w.suspend(false)
	}
	w.trouble, w.o.Verdict = trouble{}, capacity.Verdict{
		Resume: true, SurplusLimit: v1beta1.MaxWorkers, RoomSince: w.now.Add(-24 * time.Hour),
		StepDomains: []capacity.StepDomain{{Name: "a", Workers: v1beta1.MaxWorkers}},
	}
	w.o.StepHosts = map[string][]string{"a": {"host"}}
	for range 4 {
		if !w.run().settles() || !w.pass(10*time.Minute).settles() {
			return false
		}
	}
	return w.run().settles()
}

// atRest says what is not as it must be in the end; empty for nothing.
func (w *simulator) atRest() string {
	st := w.status()
	if what := restless(w.o, w.clock()); what != "" {
		return "at rest it " + what
	}
	if counted := w.restarts(); counted != int(st.Restarts) {
		return fmt.Sprintf("counted %d restarts for those of status, %d", counted, st.Restarts)
	}
	if !jobstate.IsFinished(st) {
		if have := w.indices(); len(have) != w.pods() {
			return fmt.Sprintf("has workers %v, wants %d of them", have, w.pods())
		}
		return ""
	}
	keeps := w.o.Job.Spec.Cleanup.PodPolicy == v1beta1.CleanPodPolicyNone
	if !keeps && (podsThatRun(&w.o) > 0 || w.o.Core != nil || w.o.Surplus != nil || w.o.Service != "") {
		return "has ended and left something behind"
	}
	return ""
}

// restarts is how many restarts were counted for the figures over all jobs.
func (w *simulator) restarts() int {
	n := 0
	for _, m := range w.measures {
		for _, restarts := range m.Restarts {
			n += restarts
		}
	}
	return n
}

// pods is how many pods the job must have at its fixed point: none for workers that left and whose pods are gone.
func (w *simulator) pods() int {
	a, elasticity := w.status().Attempt, w.o.Job.Spec.Elasticity
	most := elasticity.WholeSteps(min(max(w.o.Job.Spec.MaxReplicas, a.MinReplicas), a.MaxReplicas) - a.MinReplicas)
	core, surplus, ended := a.MinReplicas, most, int32(0)
	for _, m := range w.status().Members {
		if !m.HasLeft() {
			continue
		}
		if m.Index < a.MinReplicas {
			core--
		} else {
			surplus--
		}
		if w.worker(m.Index) != nil {
			ended++
		}
	}
	return int(core + elasticity.WholeSteps(surplus) + ended)
}
