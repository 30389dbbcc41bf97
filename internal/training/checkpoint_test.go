package training

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

const grace = 60 * time.Second

// savingWorld is a job that trains and saves checkpoints before workers leave.
func savingWorld(t *testing.T) *simulator {
	t.Helper()
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To(int32(grace / time.Second))
	return w.trains()
}

// done acknowledges the request that worker 0 has.
func (w *simulator) done() *simulator {
	w.t.Helper()
	return w.change(0, func(p *podstate.Worker) { p.CheckpointDone = p.CheckpointRequested })
}

// atOnce does all that there is to do without letting time pass.
func (w *simulator) atOnce() *simulator {
	for range 5 {
		w.pace.noticed, w.pace.written = w.now.Add(-time.Hour), time.Time{}
		w.step()
	}
	return w
}

func TestCheckpointBeforeWhateverTheOperatorDecides(t *testing.T) {
	for name, c := range map[string]struct {
		decide  func(*simulator)
		happens func(*simulator) bool
	}{
		"surplus gives way": {func(w *simulator) { w.told(7) }, func(w *simulator) bool { return w.worker(7) == nil }},
		"maxReplicas":       {func(w *simulator) { w.scale(4) }, func(w *simulator) bool { return len(w.o.Workers) == 4 }},
		"suspend":           {func(w *simulator) { w.suspend(true) }, func(w *simulator) bool { return len(w.o.Workers) == 0 }},
		"range": {func(w *simulator) {
			w.o.Job.Spec.Elasticity.RangeUpdate, w.o.Job.Spec.MinReplicas = v1beta1.RangeUpdateRestart, 3
		}, func(w *simulator) bool { return w.status().Attempt.Number == 2 }},
	} {
		for how, acknowledged := range map[string]bool{"acknowledged": true, "not acknowledged": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				g := NewWithT(t)
				w := savingWorld(t)
				c.decide(w)
				w.step()
				g.Expect(w.status().Checkpoint).NotTo(BeNil(), "the request is in status first")
				g.Expect(w.last.RequestCheckpoint).To(BeNil())
				w.restart().step()
				g.Expect(w.last.RequestCheckpoint.Value).To(Equal(strconv.FormatInt(w.now.Unix()+1, 10)))
				g.Expect(w.last.RequeueAfter).To(BeNumerically("<=", grace))
				w.pass(grace / 2).step()
				g.Expect(c.happens(w)).To(BeFalse(), "worker 0 is still saving")
				if acknowledged {
					w.done().settle()
				} else {
					w.pass(grace / 2).settle()
				}
				g.Expect(c.happens(w)).To(BeTrue())
				w.o.Verdict.GiveUp = nil
				w.settle()
				g.Expect(w.status().Checkpoint).To(BeNil(), "nobody is about to leave any more")
				g.Expect(w.status().Restarts).To(BeZero())
			})
		}
	}
}

func TestCheckpointWhenVolcanoEvicts(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t)
	w.change(7, func(p *podstate.Worker) { p.Disruption, p.Terminating = "PreemptionByScheduler", true })
	w.step().pass(statuspace.SoonDelay).step().step().step()
	g.Expect(w.worker(0).CheckpointRequested).NotTo(BeZero(), "the leaver trains on for its grace, so there is time to save")
	w.deletePod(7).settle()
	g.Expect(w.status().Checkpoint).To(BeNil())
}

func TestNoCheckpointOfAJobThatDoesNotTrain(t *testing.T) {
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To(int32(60))
	w.settle().suspend(true).settle()
	NewWithT(t).Expect(w.status().Reason).To(Equal(v1beta1.ReasonSuspended))
}

func TestStopDuringAnEvictionHasItsOwnCheckpoint(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t)
	w.change(7, func(p *podstate.Worker) { p.Disruption, p.Terminating = "PreemptionByScheduler", true })
	w.step().pass(statuspace.SoonDelay).step().step().step().done().pass(2 * grace).step()
	first := w.worker(0).CheckpointRequested
	w.suspend(true).step().step()
	g.Expect(w.worker(0).CheckpointRequested).To(BeNumerically(">", first), "worker 7 still leaves, and what was saved then is old")
	g.Expect(w.last.DeletePods).To(BeEmpty())
	w.done().settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonSuspending))
}

func TestEachDepartureHasItsOwnCheckpoint(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t).scale(6).settle().done().settle()
	first := w.worker(0).CheckpointRequested
	w.pass(time.Minute).scale(4).step().step()
	g.Expect(w.worker(0).CheckpointRequested).To(BeNumerically(">", first))
	g.Expect(w.indices()).To(HaveLen(6), "the acknowledgement of the first is none of the second")
}

func TestNoCheckpointOfBeforeTheRequestAnswersIt(t *testing.T) {
	for name, c := range map[string]struct{ ahead, before time.Duration }{
		"in the same second":            {0, 900 * time.Millisecond},
		"by a clock that is ahead":      {time.Hour, 10 * time.Minute},
		"by a clock that is far behind": {-time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := savingWorld(t)
			w.pass(w.now.Truncate(time.Second).Add(time.Second).Sub(w.now)) // A second begins.
			routine := func() { w.change(0, func(p *podstate.Worker) { p.CheckpointDone = w.now.Add(c.ahead).Unix() }) }
			routine()
			w.pass(c.before).scale(4).settle().restart().settle()
			g.Expect(w.worker(0).CheckpointRequested).To(BeNumerically(">", w.worker(0).CheckpointDone))
			g.Expect(w.indices()).To(HaveLen(8), "what was saved before is no answer")
			if w.pass(time.Second); c.ahead < 0 {
				routine()
				w.settle()
				g.Expect(w.indices()).To(HaveLen(8), "that a checkpoint is of after the request is not known")
				w.done()
			} else {
				w.pass(c.before)
				routine()
			}
			w.settle()
			g.Expect(w.indices()).To(HaveLen(4), "it has saved since")
		})
	}
}

// asksAnew tells whether a new request has a number above all that worker 0 knew, and above the time of what it saved by a clock
// that is right.
func (m *planned) asksAnew() bool {
	was, is := m.was.Checkpoint, m.st.Checkpoint
	if is == nil || was != nil && was.Number == is.Number {
		return true
	}
	i := slices.IndexFunc(m.o.Workers, func(w podstate.Worker) bool { return w.Index == 0 })
	return is.Number > m.now.Unix() && (was == nil || is.Number > was.Number) &&
		is.Number > m.o.Workers[i].CheckpointRequested && is.Number > m.o.Workers[i].CheckpointDone
}

// The clock that a request was made by was an hour ahead, and is right now.
func TestARequestOfAnotherClockHoldsNoDepartureBack(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t).scale(4).settle()
	asked := w.worker(0).CheckpointRequested
	g.Expect(w.indices()).To(HaveLen(8))
	w.o.Job.Status.Checkpoint.RequestTime = metav1.NewTime(w.now.Add(time.Hour))
	w.settle()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(asked), "it is the same request")
	w.pass(grace + time.Second).settle()
	g.Expect(w.indices()).To(HaveLen(4))
}

func TestRequestsWithinASecondHaveNumbersOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t).scale(6).atOnce()
	first := w.worker(0).CheckpointRequested
	w.done().atOnce()
	g.Expect(w.indices()).To(HaveLen(6))
	w.scale(4).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first + 1))
	w.scale(5).done().atOnce().scale(3).step()
	g.Expect(w.status().Checkpoint.Number).To(Equal(first + 2))
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first+1), "it is not asked yet")
	w.suspend(true).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first + 3))
	w.change(0, func(p *podstate.Worker) { p.CheckpointDone = first + 2 }).atOnce()
	g.Expect(w.indices()).To(HaveLen(5), "that was the answer to the request before")
	w.done().settle()
	g.Expect(w.indices()).To(BeEmpty())
}

func TestAJobWhoseNumbersAreUsedUpIsAlwaysAnswered(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t).change(0, func(p *podstate.Worker) { p.CheckpointDone = math.MaxInt64 }).scale(4).step()
	g.Expect(w.status().Checkpoint.Number).To(BeEquivalentTo(math.MaxInt64))
	w.settle()
	g.Expect(w.indices()).To(HaveLen(4))
}

func TestARequestThatHasNoNumberIsAnsweredByItsTime(t *testing.T) {
	g := NewWithT(t)
	w := savingWorld(t).scale(4).step()
	w.status().Checkpoint.Number = 0
	w.settle()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(w.status().Checkpoint.RequestTime.Unix()))
	g.Expect(w.indices()).To(HaveLen(8))
	w.done().settle()
	g.Expect(w.indices()).To(HaveLen(4))
}

// asksForAChange tells whether a request for a checkpoint stands only while a worker that runs is to leave, or surplus to join.
func (m *planned) asksForAChange() bool {
	switch {
	case m.st.Checkpoint == nil, !m.trains(), m.st.MasterCompletionTime != nil:
		return true
	case m.o.Job.Spec.Suspend, m.st.Preemption != nil, m.st.Attempt.Number != m.was.Attempt.Number:
		return true
	}
	spec := &m.o.Job.Spec
	if spec.Elasticity.RangeUpdate == v1beta1.RangeUpdateRestart &&
		(spec.MinReplicas != m.was.Attempt.MinReplicas || spec.MaxReplicas != m.maximum()) {
		return true
	}
	return slices.ContainsFunc(m.o.Workers, func(w podstate.Worker) bool {
		if w.Scheduled && w.Phase == corev1.PodPending && w.Index >= m.was.Attempt.MinReplicas && w.Index < m.maximum() &&
			w.Attempt == m.was.Attempt.ID() && !w.Terminating {
			return true // It is to join.
		}
		if w.Phase != corev1.PodRunning || w.Attempt != m.was.Attempt.ID() {
			return false
		}
		isRemainder := spec.Elasticity.Step > 1 && w.Index >= m.was.Attempt.MinReplicas
		return isRemainder || w.Index >= m.maximum() || slices.Contains(m.o.Verdict.GiveUp, w.UID) || w.Terminating || m.toldToLeave(&w)
	})
}

// restored counts the writes of PodGroups within the time, in which worker 0 saves every so often.
func (w *simulator) restored(within, every time.Duration) (writes int) {
	for passed := time.Duration(0); passed < within; passed += every {
		w.pass(every).change(0, func(p *podstate.Worker) { p.CheckpointDone = w.now.Unix() })
		for range 2 {
			w.step()
			writes += len(w.last.RestoreGroups)
		}
	}
	return writes
}

func TestPodGroupsTellOfTheLastCheckpoint(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains()
	g.Expect(w.restored(time.Hour, 20*time.Minute)).To(Equal(2*3), "core and surplus, once for each checkpoint")
	told := gang.Group{MinMember: 2, PriorityClass: w.last.Blueprint.CoreGroup().PriorityClass}
	g.Expect(told.WithCheckpoint(time.Unix(w.worker(0).CheckpointDone, 0), nil).HasDrifted(*w.o.Core)).To(BeFalse())
	g.Expect(w.restored(time.Hour, 10*time.Second)).To(BeNumerically("~", 2*60, 2), "once a minute")
	w.pass(time.Minute).step().pass(time.Hour).step()
	g.Expect(w.last.RestoreGroups).To(BeEmpty(), "at rest nothing is written")
}

func TestPodGroupsTellOfNoCheckpointThatIsNotBelieved(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains()
	began := w.status().RunningSince.Time
	w.pass(time.Hour)
	for name, saved := range map[string]int64{
		"before the attempt": began.Add(-time.Hour).Unix(), "never": 0, "beyond all times": math.MaxInt64,
	} {
		w.change(0, func(p *podstate.Worker) { p.CheckpointDone = saved }).step()
		g.Expect(w.last.RestoreGroups).To(BeEmpty(), name)
	}
	w.change(0, func(p *podstate.Worker) { p.CheckpointDone = w.now.Add(5 * time.Minute).Unix() }).step()
	g.Expect(w.last.RestoreGroups).To(BeEmpty(), "in the future")
	g.Expect(w.last.RequeueAfter).To(BeNumerically("<=", 5*time.Minute), "which ends")
	w.pass(5 * time.Minute).step()
	g.Expect(w.last.RestoreGroups).To(HaveLen(2))
}

func TestPodGroupsKeepTheTimeThatANewWorker0DoesNotKnow(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).trains()
	w.pass(time.Hour).change(0, func(p *podstate.Worker) { p.CheckpointDone = w.now.Unix() }).step()
	saved := w.last.RestoreGroups[0].Group.LastCheckpoint
	w.change(0, func(p *podstate.Worker) { p.CheckpointDone = 0 }).step()
	g.Expect(w.last.RestoreGroups).To(BeEmpty())
	w.o.Config.Tiers[0].Name, w.o.Job.Status.Attempt.Tier = "renamed", "renamed"
	w.step()
	g.Expect(w.last.RestoreGroups).To(HaveEach(HaveField("Group.LastCheckpoint", BeTemporally("==", saved))),
		"a patch without it would take it away")
}

// growingSaver has a job that saves checkpoints, whose core has run for long, and room for so much surplus.
func growingSaver(t *testing.T, room int32) *simulator {
	t.Helper()
	w := growing(t, v1beta1.GrowthOnlyIfFits, room)
	w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To(int32(grace / time.Second))
	return w
}

// placed gives nodes to workers that do not run yet.
func (w *simulator) placed(indices ...int32) *simulator {
	for _, i := range indices {
		w.change(i, func(p *podstate.Worker) { p.Scheduled = true })
	}
	return w
}

func TestACheckpointIsSavedBeforeSurplusJoins(t *testing.T) {
	g := NewWithT(t)
	w := growingSaver(t, 3)
	w.step().step()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3, 4}))
	g.Expect(w.status().Checkpoint).To(BeNil(), "who has no node does not join yet")
	w.placed(2, 3).atOnce()
	g.Expect(w.status().Checkpoint.For).To(Equal(forGrowth))
	first := w.worker(0).CheckpointRequested
	g.Expect(first).To(Equal(w.now.Unix() + 1))
	w.pass(2 * time.Second).placed(4).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first), "one checkpoint serves a step")
	w.done().run(2, 3, 4).pass(5 * time.Second).atOnce().settle()
	g.Expect(w.status().Checkpoint).To(BeNil())
	g.Expect(w.indices()).To(HaveLen(5))
	g.Expect(w.status().Restarts).To(BeZero())
}

func TestWorkersOfAStepThatStartOneAfterAnotherShareACheckpoint(t *testing.T) {
	g := NewWithT(t)
	w := growingSaver(t, 2)
	w.step().placed(2).atOnce()
	first := w.worker(0).CheckpointRequested
	w.pass(time.Second).done().run(2).atOnce()
	w.pass(time.Second).placed(3).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first))
}

func TestAStepHasItsOwnCheckpointWhereAnEarlierOneHasNotStarted(t *testing.T) {
	g := NewWithT(t)
	w := growingSaver(t, 2)
	w.step().placed(2, 3).atOnce().done().run(3).atOnce()
	first := w.worker(0).CheckpointRequested
	g.Expect(w.status().Checkpoint).NotTo(BeNil(), "worker 2 may still join")
	w.pass(10 * time.Minute).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first), "but nothing is asked for again and again")
	g.Expect(w.settle().last.RequeueAfter).To(BeNumerically(">", time.Hour), "nor looked at")
	w.o.Verdict.SurplusLimit = 4
	w.settle().placed(4, 5).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(BeNumerically(">", first))
}

func TestNoCheckpointIsAskedForWhereGrowthLosesNothing(t *testing.T) {
	for name, change := range map[string]func(*simulator){
		"":                           func(*simulator) {},
		"without a grace":            func(w *simulator) { w.o.Job.Spec.Checkpoint.GraceSeconds = nil },
		"all restart anyway":         func(w *simulator) { w.status().Elasticity.LastRestartTime = ptr.To(metav1.NewTime(w.now)) },
		"the core does not train":    func(w *simulator) { w.status().RunningSince = nil },
		"the surplus already leaves": func(w *simulator) { w.change(2, func(p *podstate.Worker) { p.Terminating = true }) },
	} {
		g := NewWithT(t)
		w := growingSaver(t, 1)
		w.step().placed(2).bind()
		w.status().Elasticity = &v1beta1.ElasticityStatus{}
		change(w)
		w.step()
		g.Expect(w.status().Checkpoint == nil).To(Equal(name != ""), name)
	}
}

func TestAnEvictionLongAfterGrowthHasItsOwnCheckpoint(t *testing.T) {
	g := NewWithT(t)
	w := growingSaver(t, 2)
	w.step().placed(2, 3).atOnce().done().run(3).atOnce()
	first := w.worker(0).CheckpointRequested
	w.pass(2*time.Hour).change(3, func(p *podstate.Worker) { p.Disruption, p.Terminating = "PreemptionByScheduler", true })
	w.step().pass(statuspace.SoonDelay).step().step().step()
	g.Expect(w.worker(0).CheckpointRequested).To(BeNumerically(">", first), "worker 2 has not started since")
	g.Expect(w.status().Checkpoint.For).To(Equal(forEviction))
}

func TestSurplusOfAClockAheadIsAskedForOnce(t *testing.T) {
	g := NewWithT(t)
	w := growingSaver(t, 1)
	w.step().placed(2).change(2, func(p *podstate.Worker) { p.BoundTime = metav1.NewTime(w.now.Add(time.Minute)) })
	asked := map[int64]bool{}
	for range 30 {
		w.atOnce().done().pass(time.Second)
		asked[w.worker(0).CheckpointRequested] = true
	}
	g.Expect(asked).To(HaveLen(1))
}

func TestWhoeverSavesIsNotAskedAgainForEachWorkerThatComes(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8)
	w.o.Job.Spec.Elasticity.Growth.Mode = v1beta1.GrowthAlways
	w.o.Job.Spec.Checkpoint.GraceSeconds = ptr.To(int32(grace / time.Second))
	w.settle().run().settle()
	w.placed(2).atOnce()
	g.Expect(w.status().Checkpoint).To(BeNil(), "all have just started")
	g.Expect(w.last.RequeueAfter).To(BeNumerically("<=", jobstate.RestartTime), "but they train on, and the surplus may take long")
	w.pass(jobstate.RestartTime).atOnce()
	first := w.worker(0).CheckpointRequested
	g.Expect(first).NotTo(BeZero())
	for _, i := range []int32{3, 4, 5} { // Place by place, while a save takes half a minute.
		w.pass(8 * time.Second).placed(i).atOnce()
	}
	g.Expect(w.worker(0).CheckpointRequested).To(Equal(first))
	w.done().pass(8 * time.Second).placed(6).atOnce()
	g.Expect(w.worker(0).CheckpointRequested).To(BeNumerically(">", first))
}
