package merging

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

func TestNotDueSaysItsWeight(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 12)
	m := w.add("ctr").full(w, 6*time.Hour+12*time.Minute)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeWaiting))
	g.Expect(m.status().Summary).To(Equal("Waiting (weight 62 < 100)"))
	g.Expect(m.status().DueTime.Time).To(BeTemporally("==", w.now.Add(3*time.Hour+48*time.Minute)))
	g.Expect(m.status().Position).To(BeNil())
	g.Expect(w.plan().RequeueAfter).To(Equal(3*time.Hour + 48*time.Minute))
	w.now = w.now.Add(time.Hour)
	g.Expect(w.carryOut(w.plan(), unlimited)).To(BeZero(), "the weight alone is no reason to write")
	w.pass(2*time.Hour + 48*time.Minute)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestHeaviestFirstOneAtATime(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 12)
	for i := range 40 {
		w.add(fmt.Sprintf("m%02d", i)).full(w, 10*time.Hour+time.Duration((i*7)%40)*time.Minute)
	}
	w.settle()
	g.Expect(w.running()).To(HaveLen(3), "the pool holds three")
	line := 0
	for _, m := range w.jobs {
		if m.status().Position != nil {
			line++
			if m.status().Run == nil {
				g.Expect(m.status().BlockedBy.Head).NotTo(BeNil(), "it says who asks")
			}
		}
	}
	g.Expect(line).To(Equal(37))
	for len(w.running()) > 0 {
		w.merge(w.running()[0])
		w.settle()
	}
	g.Expect(w.calls).To(HaveLen(40))
	for i, name := range w.calls {
		var n int
		_, err := fmt.Sscanf(name, "m%02d", &n)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect((n*7)%40).To(Equal(39-i), "in the order of weight")
	}
	for _, m := range w.jobs {
		g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeMerged))
		g.Expect(m.status().Summary).To(Equal("Waiting (no increments)"))
	}
}

func TestHeadIsSticky(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	w.config.Merges.StrictPools = []string{"tideline-merge"}
	w.add("runs").full(w, 11*time.Hour)
	w.settle()
	big := w.add("big", func(s *v1beta1.MergeJobSpec) { s.MinReplicas, s.MaxReplicas = 3, 3 }).full(w, 11*time.Hour)
	w.settle()
	g.Expect(big.status().Reason).To(Equal(v1beta1.ReasonAsking))
	heavy := w.add("heavy").full(w, 90*time.Hour)
	small := w.add("small", func(s *v1beta1.MergeJobSpec) { s.MinReplicas, s.MaxReplicas = 1, 1 }).full(w, 10*time.Hour)
	w.settle()
	g.Expect(*big.status().Position).To(Equal(int32(1)), "it stays head")
	g.Expect(*heavy.status().Position).To(Equal(int32(2)))
	g.Expect(*small.status().Position).To(Equal(int32(3)))
	g.Expect(heavy.status().BlockedBy.Head.Name).To(Equal("big"))
	w.merge(w.jobs[0])
	w.settle()
	g.Expect(w.calls).To(Equal([]string{"runs", "big"}), "then heavy asks, which does not fit beside it")
	g.Expect(heavy.status().Reason).To(Equal(v1beta1.ReasonAsking))
}

func TestMarkerWhilePodsLinger(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m, next := w.add("a").full(w, 12*time.Hour), w.add("b").full(w, 11*time.Hour)
	w.settle()
	g.Expect(m.names).To(Equal([]string{"000001", "000002", "000003"}))
	run := m.status().Run.ID
	m.store.fulls = append(m.store.fulls, Full{Name: run, Time: w.now})
	m.look()
	w.settle()
	g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeMerged))
	g.Expect(m.status().LastFull.Name).To(Equal(run))
	g.Expect(m.status().LastFull.LastIncrement).To(Equal("000003"))
	g.Expect(m.pods).To(BeEmpty(), "lingering pods are stopped")
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning), "the room is the next one's at once")
}

func TestMergeThatTakesLongerThanItsIntervalSaysSo(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.Schedule.Interval.Duration = 20 * time.Minute }).full(w, time.Hour)
	w.settle()
	w.now = w.now.Add(25 * time.Minute)
	w.merge(m)
	w.settle()
	g.Expect(m.status().Message).To(HaveSuffix(" The last merge took 25m0s, and spec.schedule leaves 20m0s between two, so " +
		"the merge cannot keep up. Merge less often, or use more or larger pods."))
}

func TestTimeoutStopsBacksOffAndLetsTheNextPass(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m, next := w.add("a").full(w, 12*time.Hour), w.add("b").full(w, 11*time.Hour)
	w.settle()
	w.pass(2 * time.Hour)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeTimedOut))
	g.Expect(m.status().RetryTime.Time).To(BeTemporally("==", w.now.Add(time.Minute)))
	g.Expect(m.pods).To(BeEmpty())
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
	w.merge(next)
	w.settle()
	first := m.status().History[0].Run
	w.pass(time.Minute)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning), "it is tried again")
	g.Expect(m.status().Run.ID).NotTo(Equal(first), "by a run of its own")
	g.Expect(m.status().Failures).To(Equal(int32(1)))
}

func TestPodsThatEndedAreJudgedByALookThatCameAfter(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	m.look() // Before the pods end.
	for _, p := range m.pods {
		p.Phase = corev1.PodSucceeded
	}
	m.store.fulls = append(m.store.fulls, Full{Name: m.status().Run.ID, Time: w.now})
	d := w.plan()
	g.Expect(d.Jobs[0].Status.Run.Outcome).To(BeEmpty(), "the look says nothing about what pods wrote since")
	g.Expect(d.Jobs[0].ReadStore).To(BeTrue())
	w.settle()
	g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeMerged))
}

func TestLostPodTakesTheAttemptBackAndItAsksAgainFirst(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	w.add("heavy").full(w, 90*time.Hour)
	w.settle()
	delete(m.pods, 2)
	w.settle()
	run := m.status().Run
	g.Expect(run.Attempt).To(Equal(int32(2)))
	g.Expect(m.status().History).To(BeEmpty(), "it is the same run, and no failure")
	// The heavy one asked while the other ran, and stays head; the run that was taken back is the next.
	g.Expect(w.calls).To(Equal([]string{"a", "heavy"}))
	w.merge(w.jobs[1])
	w.settle()
	g.Expect(w.calls).To(Equal([]string{"a", "heavy", "a"}))
}

func TestStartTimeoutAsksAgainAndFailsInTheEnd(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.MinReplicas = 1 }).full(w, 12*time.Hour)
	starting := func() {
		for _, p := range m.pods {
			p.Phase, p.Waiting = corev1.PodPending, "ImagePullBackOff"
		}
	}
	for i := range int32(3) {
		for m.status().Run == nil || m.status().Run.Attempt != i+1 || !m.placed() {
			m.look()
			w.carryOut(w.plan(), unlimited)
			w.cluster()
			starting()
		}
		w.carryOut(w.plan(), unlimited)
		g.Expect(m.status().Phase).To(Equal(v1beta1.MergeStarting))
		g.Expect(m.status().Message).To(HavePrefix("Its only pod is placed, and does not run yet."))
		w.now = w.now.Add(5 * time.Minute)
		w.carryOut(w.plan(), unlimited)
		g.Expect(m.status().Run.Message).To(ContainSubstring("ImagePullBackOff"))
	}
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeFailed))
	g.Expect(m.status().History[0].Attempts).To(Equal(int32(3)))
}

func TestUnreachableStoreKeepsItsPlaceAndLetsOthersPass(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	busy := w.add("busy").full(w, 20*time.Hour)
	w.settle()
	m, next := w.add("a").full(w, 12*time.Hour), w.add("b").full(w, 11*time.Hour)
	w.add("c", func(s *v1beta1.MergeJobSpec) { s.MinReplicas = 9 }).full(w, 19*time.Hour) // asks, and does not fit
	w.settle()
	m.store.trouble = &Trouble{Reason: v1beta1.ReasonStoreUnreachable, Message: "No answer."}
	m.look()
	w.settle()
	g.Expect(*m.status().Position).To(Equal(int32(2)), "it keeps its place")
	g.Expect(m.status().Message).To(ContainSubstring("No answer."))
	w.jobs[3].object.Spec.Suspend = true
	w.merge(busy)
	w.settle()
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
	g.Expect(*m.status().Position).To(Equal(int32(1)))
	m.store.trouble = nil
	m.look()
	w.merge(next)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestRestartedOperatorWaitsForTheHeadsStore(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	busy := w.add("busy").full(w, 20*time.Hour)
	w.add("a").full(w, 12*time.Hour)
	w.add("b").full(w, 11*time.Hour)
	w.settle()
	a, b := w.jobs[1], w.jobs[2]
	a.object.Status.Run, a.core, a.list, a.sighting = nil, nil, nil, nil
	clear(a.pods)
	busy.pods = nil
	d := w.plan()
	for i := range d.Jobs {
		if d.Jobs[i].Job.Object == b.object {
			g.Expect(d.Jobs[i].Status.Run).To(BeNil(), "it does not pass one whose store was not seen yet")
		}
		if d.Jobs[i].Job.Object == a.object {
			g.Expect(d.Jobs[i].ReadStore).To(BeTrue())
		}
	}
}

func TestNeverFitsIsSetAside(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	huge, m := w.add("huge").full(w, 50*time.Hour), w.add("a").full(w, 12*time.Hour)
	huge.verdict.Never = &capacity.Answer{Nodes: 3, Largest: 2, Short: capacity.Amounts{corev1.ResourceCPU: 8000}}
	w.settle()
	g.Expect(huge.status().Summary).To(Equal("Waiting (never fits)"))
	g.Expect(huge.status().Message).To(ContainSubstring("At most 2 such pods would fit; short of 8 cpu."))
	g.Expect(huge.status().Position).To(BeNil())
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning), "others pass")
}

func TestHeadWaitsUntilTheGangOfADeletedMergeIsGone(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8)
	m := w.add("a").full(w, 12*time.Hour)
	w.leaving = []Leftover{{Gone: w.now}}
	w.settle()
	g.Expect(m.status().Run).To(BeNil())
	g.Expect(m.status().Message).To(Equal("Place 1 of 1 in the line of pool tideline-merge, with weight 120. The gang of a " +
		"deleted MergeJob has not left the pool yet. Tideline waits for it until 2026-11-22T06:10:00Z at the latest."))
	w.leaving = nil
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestIncrementsBeyondTheLimitAreMergedNextTime(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.MaxIncrementsPerRun = ptr.To[int32](2) })
	w.settle()
	g.Expect(m.names).To(Equal([]string{"000001", "000002"}), "exactly those counted")
	g.Expect(m.status().Run.Increments).To(Equal(int32(2)))
	m.store.increments = append(m.store.increments, "000004")
	w.merge(m)
	w.settle()
	g.Expect(m.status().Increments).To(Equal(int32(2)))
	w.pass(10 * time.Hour)
	g.Expect(m.names).To(Equal([]string{"000003", "000004"}))
}

func TestRunNowIsObeyedOnce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.Schedule = nil })
	w.settle()
	w.merge(m)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeMerged), "once, without a schedule")
	m.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: "x"}
	w.now = w.now.Add(time.Second)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
	w.merge(m)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeMerged))
	g.Expect(m.status().History).To(HaveLen(2))
}

func TestSuspendStopsTheRun(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	m.object.Spec.Suspend = true
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeSuspended))
	g.Expect(m.pods).To(BeEmpty())
	g.Expect(m.core).To(BeNil())
	g.Expect(m.list).To(BeNil())
	m.object.Spec.Suspend = false
	w.pass(time.Second)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestTierOrdersTheLineAndMakesNoMergeDueEarlier(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	w.add("busy").full(w, 50*time.Hour)
	w.settle()
	w.add("head", func(s *v1beta1.MergeJobSpec) { s.MinReplicas = 3 }).full(w, 45*time.Hour)
	w.settle()
	plain := w.add("plain").full(w, 30*time.Hour)
	main := w.add("main", func(s *v1beta1.MergeJobSpec) { s.Tier = "main-traffic" }).full(w, 11*time.Hour)
	young := w.add("young", func(s *v1beta1.MergeJobSpec) { s.Tier = "main-traffic" }).full(w, 6*time.Hour)
	w.settle()
	g.Expect(*main.status().Weight).To(Equal(int64(440)))
	g.Expect(*main.status().Position).To(Equal(int32(2)))
	g.Expect(*plain.status().Position).To(Equal(int32(3)))
	g.Expect(young.status().Summary).To(Equal("Waiting (weight 60 < 100)"))
}

func TestAnotherTierCountsAtOnceInTheLine(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	runs := w.add("runs").full(w, 50*time.Hour)
	w.settle()
	g.Expect(runs.status().Phase).To(Equal(v1beta1.MergeRunning))
	g.Expect(runs.status().Selector).To(Equal("tideline.io/merge=runs"))
	w.add("head", func(s *v1beta1.MergeJobSpec) { s.MinReplicas = 4 }).full(w, 45*time.Hour)
	w.settle()
	first, second := w.add("first").full(w, 30*time.Hour), w.add("second").full(w, 20*time.Hour)
	w.settle()
	g.Expect(*first.status().Position).To(BeNumerically("<", *second.status().Position))
	for _, m := range []*merger{second, runs} {
		m.object.Generation++
		m.object.Spec.Tier = "main-traffic"
	}
	w.settle()
	g.Expect(*first.status().Position).To(BeNumerically(">", *second.status().Position))
	g.Expect(runs.status().Tier).To(Equal("exploratory"), "pods that have a place keep their tier")
}

func TestSurplusComesWhenTheCoreRunsWhereItGivesWay(t *testing.T) {
	g := NewWithT(t)
	wide := func(s *v1beta1.MergeJobSpec) { s.MaxReplicas = 6 }
	w := newSimulator(t, 4)
	m := w.add("a", wide).full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.pods).To(HaveLen(6))
	g.Expect(m.surplus).NotTo(BeNil())
	delete(m.pods, 5)
	w.settle()
	g.Expect(m.pods).To(HaveLen(5), "surplus that left is not created again in this run")
	w.merge(m)
	w.settle()
	g.Expect(m.surplus).To(BeNil())

	w = newSimulator(t, 4)
	w.obstacles = []string{"plugin cdp is missing"}
	m = w.add("a", wide).full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.pods).To(HaveLen(4))
	g.Expect(m.status().Message).To(ContainSubstring("does not let surplus give way"))
}

func TestRefusedObjectsEndTheRunAndTheLineGoesOn(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	next := w.add("b").full(w, 11*time.Hour)
	w.carryOut(w.plan(), unlimited)
	m.look()
	next.look()
	for m.status().Run == nil {
		w.carryOut(w.plan(), unlimited)
	}
	m.problem = &Problem{Reason: v1beta1.ReasonRejected, Message: "Cannot create pod a-merge-0: no."}
	w.carryOut(w.plan(), unlimited)
	m.problem = nil
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeFailed))
	g.Expect(m.status().Message).To(ContainSubstring("Cannot create pod"))
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestRefusedSurplusIsNotAskedForAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.MaxReplicas = 6 }).full(w, 12*time.Hour)
	w.settle()
	m.surplus = nil
	delete(m.pods, 4)
	delete(m.pods, 5)
	m.problem = &Problem{Reason: v1beta1.ReasonQuotaExceeded, Message: "Cannot create pod a-merge-4: exceeded quota."}
	d := w.plan().Jobs[0]
	g.Expect(d.CreatePods).To(BeEmpty())
	g.Expect(d.Status.Run.Outcome).To(BeEmpty(), "the core goes on")
	g.Expect(d.Status.Message).To(ContainSubstring("continues without its surplus: Cannot create pod a-merge-4"))
}

func TestUncountableRequestsStayAway(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) {
		s.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}
	}).full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonRejected))
	g.Expect(m.status().Message).To(HavePrefix("A pod asks for -1 of cpu"))
}

func TestPaceOfEqualStatusesIsNever(t *testing.T) {
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	w.now = w.now.Add(time.Hour)
	if n := w.carryOut(w.plan(), unlimited); n != 0 {
		t.Errorf("%d writes at rest: %+v", n, m.status())
	}
}

func TestWhoIsDueAtOnceGainsWeightInTheLine(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	w.add("busy").full(w, 50*time.Hour)
	w.settle()
	w.add("head", func(s *v1beta1.MergeJobSpec) { s.MinReplicas = 3 }).full(w, 45*time.Hour)
	w.settle()
	first := w.add("first")
	once := w.add("once", func(s *v1beta1.MergeJobSpec) { s.Schedule = nil })
	w.settle()
	w.now = w.now.Add(5 * time.Hour)
	d := w.plan()
	for i := range d.Jobs {
		switch d.Jobs[i].Job.Object {
		case first.object:
			g.Expect(*d.Jobs[i].Status.Position).To(Equal(int32(2)), "half an interval heavier")
		case once.object:
			g.Expect(*d.Jobs[i].Status.Position).To(Equal(int32(3)), "a fifth of a day heavier")
		}
	}
	g.Expect(*first.status().Weight).To(Equal(int64(100)))
}

func TestCronIsDueAtItsNextTime(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4) // 06:00Z
	m := w.add("a", func(s *v1beta1.MergeJobSpec) {
		s.Schedule = &v1beta1.MergeSchedule{Cron: "0 9 * * *", TimeZone: "Europe/Berlin"}
	}).full(w, 6*time.Hour)
	never := w.add("b", func(s *v1beta1.MergeJobSpec) { s.Schedule = &v1beta1.MergeSchedule{Cron: "0 0 30 2 *"} })
	w.settle()
	g.Expect(m.status().DueTime.Time).To(BeTemporally("==", morning.Add(2*time.Hour)))
	g.Expect(*m.status().Weight).To(Equal(int64(91)), "22 of 24 hours since the time before")
	g.Expect(never.status().Reason).To(Equal(v1beta1.ReasonInvalidSchedule))
}

func TestNoFullModelIsDueAtOnceWhateverTheThreshold(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.Threshold = ptr.To[int32](300) })
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestRunByHandWithNothingToMergeMergesNothingTwice(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a")
	w.settle()
	w.merge(m)
	w.settle()
	m.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: "x"}
	w.pass(time.Second)
	g.Expect(m.status().Run.Increments).To(BeZero())
	w.merge(m)
	w.settle()
	g.Expect(m.status().LastFull.LastIncrement).To(Equal("000003"))
	g.Expect(m.status().Increments).To(BeZero())
}
