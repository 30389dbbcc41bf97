package arbiter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

const (
	// atRest is for how long nothing happens in the end: longer than the longest pause between two claims of a gang, and what the
	// last one takes.
	atRest = 3 * time.Hour
	// quiet is for how long no pod may have come or gone then.
	quiet = 30 * time.Minute
)

// TestRandomQueues drives a few gangs that share nodes through random events, and holds the arbiter and the planner of trainings
// together to the laws of who leaves for which gang. In every fourth history the clock is also put forward and back by an hour.
// TIDELINE_HISTORIES is how many, 8 by default, of TIDELINE_SEED, 4 by default.
func TestRandomQueues(t *testing.T) {
	histories, seed := environ.Number(t, "TIDELINE_HISTORIES", 8), environ.Number(t, "TIDELINE_SEED", 4)
	shards := uint64(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	var sum laws
	t.Run("all", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
				t.Parallel()
				for n := shard; n < histories; n += shards {
					steps := n/shards%4 == 3
					l := history(t, rand.New(rand.NewPCG(seed, n)), steps, nil)
					if l.broken != "" {
						history(t, rand.New(rand.NewPCG(seed, n)), steps, t.Logf)
						t.Fatalf("TIDELINE_SEED=%d, history %d: %s", seed, n, l.broken)
					}
					mu.Lock()
					sum.victims, sum.stops, sum.told = sum.victims+l.victims, sum.stops+l.stops, sum.told+l.told
					sum.claimsEnded, sum.resumed = sum.claimsEnded+l.claimsEnded, sum.resumed+l.resumed
					sum.stepped += l.stepped
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d victims, %d choices of steps, %d stops, %d claims ended, %d told, %d resumed",
		sum.victims, sum.stepped, sum.stops, sum.claimsEnded, sum.told, sum.resumed)
	few := uint64(min(sum.victims, sum.stepped, sum.stops, sum.claimsEnded, sum.told, sum.resumed))
	if histories >= 200 && few < histories/20 {
		t.Errorf("TIDELINE_SEED=%d: the histories prove little", seed)
	}
}

// history is what happens in one simulator. It tells the story if somebody listens.
func history(t *testing.T, c *rand.Rand, steps bool, tell func(string, ...any)) *laws {
	t.Helper()
	if tell == nil {
		tell = func(string, ...any) {}
	}
	w := newSimulator(tell)
	for range 2 + c.IntN(2) {
		w.addNode(int64(3 + c.IntN(4)))
	}
	if c.IntN(4) == 0 {
		w.queues[0].capability = int64(6 + c.IntN(8))
	}
	for range 2 { // These fill the nodes.
		minimum := 1 + int32(c.IntN(2))
		t := w.addTraining("low", "default", minimum, minimum+5, int64(1+c.IntN(2)), hindrance{})
		t.job.Spec.Elasticity.Step = pick[int32](c, 1, 1, 2, 5)
	}
	pass := func(by time.Duration) {
		if err := w.advance(t.Context(), by); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 + c.IntN(16) {
		what := w.happen(c)
		if steps && c.IntN(4) == 0 {
			what += ", and " + w.stepClock(pick(c, time.Hour, -time.Hour))
		}
		tell("%s: %s;%s", w.now.Format(time.TimeOnly), what, w.picture())
		pass(pick(c, time.Second, 10*time.Second, 70*time.Second, 70*time.Second, 2*time.Minute, 6*time.Minute))
		if w.laws.broken != "" {
			return w.laws
		}
	}
	if steps {
		w.stepClock(-w.skew)
		pass(w.mostSkew) // What was put off by a clock that was ahead is due by then.
	}
	pass(time.Hour)
	w.patience = 5 * time.Minute
	pass(atRest - time.Hour)
	tell("%s: at rest;%s", w.now.Format(time.TimeOnly), w.picture())
	w.laws.rest(w, quiet)
	return w.laws
}

func pick[T any](c *rand.Rand, of ...T) T { return of[c.IntN(len(of))] }

// happen lets one thing happen, and says what.
func (w *simulator) happen(c *rand.Rand) string {
	switch c.IntN(23) {
	case 0, 1, 2, 3, 4:
		return w.trainingComes(c)
	case 5, 6, 7:
		return w.foreignComes(c)
	case 8:
		return w.gangEnds(c)
	case 9, 10:
		return w.workerEnds(c)
	case 11, 12:
		return w.hindranceChanges(c)
	case 13:
		q := pick(c, w.queues...)
		q.shut = !q.shut && c.IntN(2) == 0
		return fmt.Sprintf("queue %s is %s", q.name, q.state())
	case 14:
		if len(w.nodes) < 4 {
			return "added " + w.addNode(int64(1+c.IntN(5))).Name
		}
		return "nothing"
	case 15, 16:
		return w.nodeChanges(c)
	case 17:
		return w.podIsMadeAnew(c)
	case 18:
		w.restart()
		w.laws.forget()
		return "the operator starts anew"
	case 19:
		return w.nodeFlaps(c)
	case 20:
		return w.schedulerStops(c)
	}
	return "nothing"
}

func someHindrance(c *rand.Rand) hindrance {
	switch c.IntN(12) {
	case 0:
		return hindrance{gated: true}
	case 1:
		return hindrance{refused: true}
	case 2:
		return hindrance{nowhere: true}
	case 3, 4, 5:
		return hindrance{hidden: true}
	case 6:
		return hindrance{short: true}
	}
	return hindrance{}
}

func (w *simulator) trainingComes(c *rand.Rand) string {
	for _, t := range slices.Clone(w.trainings) {
		if t.job.Status.CompletionTime != nil {
			w.remove(t.job.Name)
		}
	}
	if len(w.trainings) > 5 {
		return "nothing"
	}
	minimum := 1 + int32(c.IntN(3))
	t := w.addTraining(pick(c, "low", "low", "mid", "high"), pick(c, "default", "default", "default", "default", "other"), minimum,
		minimum+int32(c.IntN(4)), int64(1+c.IntN(2)), someHindrance(c))
	if c.IntN(4) == 0 {
		asks := requests(2)
		t.job.Spec.Master = &v1beta1.Master{Resources: &asks}
	}
	if more := t.job.Spec.MaxReplicas - minimum; more > 1 && c.IntN(2) == 0 {
		t.job.Spec.Elasticity.Step = 2 + int32(c.IntN(int(more)-1))
	}
	t.job.Spec.Elasticity.Growth.Mode = pick(c, v1beta1.GrowthAlways, v1beta1.GrowthAlways, v1beta1.GrowthOnlyIfFits)
	t.grace = pick(c, 0, 5*time.Second, 5*time.Second, 90*time.Second, 30*time.Minute)
	return fmt.Sprintf("training %s comes in queue %s, %d..%d by %d, %s", t.job.Name, t.queue, minimum, t.job.Spec.MaxReplicas,
		max(1, t.job.Spec.Elasticity.Step), w.hindered[t.job.Name])
}

func (w *simulator) foreignComes(c *rand.Rand) string {
	if len(w.groups) > 10 {
		return "nothing"
	}
	name := w.addForeign(pick(c, "default", "default", "other"), int64(c.IntN(3)), c.IntN(4), int64(1+c.IntN(2)),
		pick[int32](c, 0, 6000), someHindrance(c))
	return fmt.Sprintf("%s comes in queue %s, %s", name, w.queueOf(name).name, w.hindered[name])
}

// gangEnds ends a training by its worker 0, or takes a gang away.
func (w *simulator) gangEnds(c *rand.Rand) string {
	if len(w.trainings) > 0 && c.IntN(2) == 0 {
		t := pick(c, w.trainings...)
		for _, p := range w.podsOf(t.job.Name) {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && p.Name == t.job.Name+"-worker-0" {
				p.Status.Phase = corev1.PodSucceeded
				return t.job.Name + " succeeds"
			}
		}
	}
	if len(w.groups) == 0 {
		return "nothing"
	}
	name := pick(c, w.groups...).GetName()
	if t := w.trainingOf(w.groups[w.group(name)]); t != nil {
		name = t.job.Name
	}
	w.remove(name)
	return name + " is deleted"
}

// workerEnds has a worker of a core complete, or fail.
func (w *simulator) workerEnds(c *rand.Rand) string {
	if len(w.pods) == 0 {
		return "nothing"
	}
	p := pick(c, w.pods...)
	if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
		return "nothing"
	}
	if p.Status.Conditions = nil; c.IntN(2) == 0 {
		p.Status.Phase = corev1.PodSucceeded
		return p.Name + " completes"
	}
	p.Status.Phase = corev1.PodFailed
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "trainer", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
	}}
	return p.Name + " fails"
}

// hindranceChanges lifts what keeps a gang from its place, or has the scheduler place it no more.
func (w *simulator) hindranceChanges(c *rand.Rand) string {
	if len(w.groups) == 0 {
		return "nothing"
	}
	name := pick(c, w.groups...).GetName()
	h := w.hindered[name]
	if h == nil || h.nowhere {
		return "nothing"
	}
	foreignRefused := h.refused && w.trainingOf(w.groups[w.group(name)]) == nil
	if foreignRefused {
		return "nothing" // Who made it does not make its pods later.
	}
	if *h == (hindrance{lifted: h.lifted}) {
		h.hidden = c.IntN(2) == 0
	} else {
		*h = hindrance{lifted: h.hidden}
	}
	for _, p := range w.podsOf(name) {
		p.Spec.SchedulingGates = nil
	}
	return fmt.Sprintf("of %s %s", name, h)
}

// nodeChanges cordons a node, opens it again, or loses it.
func (w *simulator) nodeChanges(c *rand.Rand) string {
	n := pick(c, w.nodes...)
	if len(w.nodes) == 1 || c.IntN(3) > 0 {
		n.Spec.Unschedulable = !n.Spec.Unschedulable
		return fmt.Sprintf("%s is cordoned: %t", n.Name, n.Spec.Unschedulable)
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(o *corev1.Node) bool { return o == n })
	for _, p := range slices.Clone(w.pods) {
		if p.Spec.NodeName == n.Name {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
			})
			w.gone(p)
		}
	}
	return n.Name + " is lost"
}

// nodeFlaps cordons a node again and again for a few seconds.
func (w *simulator) nodeFlaps(c *rand.Rand) string {
	n, times := pick(c, w.nodes...), 2+c.IntN(8)
	for range times {
		for _, by := range []time.Duration{5 * time.Second, 55 * time.Second} {
			n.Spec.Unschedulable = !n.Spec.Unschedulable
			w.changes++
			if err := w.advance(context.Background(), by); err != nil {
				return err.Error()
			}
		}
	}
	return fmt.Sprintf("%s was cordoned %d times", n.Name, times)
}

// schedulerStops lets minutes pass in which no pod is placed.
func (w *simulator) schedulerStops(c *rand.Rand) string {
	w.stopped = true
	err := w.advance(context.Background(), pick(c, 30*time.Second, 3*time.Minute, 20*time.Minute))
	if w.stopped = false; err != nil {
		return err.Error()
	}
	w.changes++
	return "the scheduler is back"
}

// podIsMadeAnew has whoever made a foreign gang delete a pod that waits, and make another.
func (w *simulator) podIsMadeAnew(c *rand.Rand) string {
	if len(w.pods) == 0 {
		return "nothing"
	}
	p := pick(c, w.pods...)
	for _, name := range slices.SortedFunc(maps.Keys(w.laws.promised), func(a, b types.NamespacedName) int {
		return cmp.Compare(a.Name, b.Name)
	}) {
		if pods := w.podsOf(name.Name); len(pods) > 0 {
			p = pods[0] // One for which others leave.
		}
	}
	if w.trainingOf(p) != nil || !placeable(p) || w.group(gang.GroupOf(p)) < 0 {
		return "nothing"
	}
	w.gone(p)
	if _, err := w.tick(context.Background()); err != nil {
		return err.Error()
	}
	w.admit(p.DeepCopy())
	return p.Name + " is made anew"
}
