package training

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

func condition(w *simulator, kind string) string {
	c := meta.FindStatusCondition(w.status().Conditions, kind)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + "/" + c.Reason
}

func reasons(events []statuspace.Event) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.Reason
	}
	return all
}

func TestAttemptIsInStatusBeforeAnythingIsCreated(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).step()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
	g.Expect(w.o.Workers).To(BeEmpty())
	g.Expect(w.o.Core).To(BeNil())
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{0, 1}), "the core, worker 0 first, and no surplus yet")
	g.Expect(w.last.CreateGroups).To(HaveLen(1))
	g.Expect(w.last.CreateGroups[0].MinMember).To(Equal(int32(2)))
	g.Expect(w.written).To(Equal(1))
}

func TestOneWorkerIsSpokenOfAsOne(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 1, 1).step().step().run(0).settle()
	g.Expect(w.status().Message).To(Equal("Its only worker is ready."))
}

func TestSurplusFollowsOnceTheCoreRuns(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).step().step().run(0).step()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}))
	w.run(1).step()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.written).To(Equal(2), "two status writes until the core runs")
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/Growing"))
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/WaitingForRoom"))
	w.run().settle()
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("True/AtMaximum"))
	g.Expect(w.status().Summary).To(Equal("4/4 (2..4)"))
	g.Expect(w.status().Accelerators).To(Equal(int64(4)))
	g.Expect(*w.status().WaitSeconds).To(Equal(int64(3)))
}

func TestMaxReplicasDownAndUp(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 8).settle().run().settle().run(2, 3, 5).settle()
	w.scale(3).step()
	deleted := []int32{}
	for range 2 {
		for _, p := range w.last.DeletePods {
			deleted = append(deleted, p.Index)
		}
		w.step()
	}
	g.Expect(deleted).To(Equal([]int32{7, 6, 4, 5, 3}), "waiting pods first, then the highest index")
	w.settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2}))
	w.scale(8).step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{3, 4, 5, 6, 7}), "no cooldown: nobody was evicted")
	w.settle()
	g.Expect(w.status().Restarts).To(BeZero())
}

func TestRangeBeyondTheAttemptIsPending(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().scale(6).settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("True/NextAttempt"))
	holds := w.status().Attempt
	g.Expect(w.status().Summary).To(HaveSuffix(fmt.Sprintf("(%d..%d)", holds.MinReplicas, holds.MaxReplicas)),
		"the range that holds, and not the one that is to come")
	w.scale(4).settle()
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("absent"))
}

func TestRangeChangedBeforeAnythingIsPlacedIsAdopted(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 9, 9).settle()
	w.o.Core.Unschedulable = "no room"
	w.o.Job.Spec.MinReplicas = 4
	w.scale(6).pass(time.Second).settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
	g.Expect(condition(w, v1beta1.ConditionRangePending)).To(Equal("absent"))
	g.Expect(w.status().Restarts).To(BeZero())
	w.run().settle().run().settle()
	g.Expect(w.indices()).To(HaveLen(6))
	for _, p := range w.o.Workers {
		g.Expect(p.Attempt).To(Equal(w.status().Attempt.ID()))
	}
}

// profile is one of team ads with a Queue, whose jobs may have these tiers, the first by default.
func profile(tiers ...string) *v1beta1.ResourceQuotaProfile {
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	p.Status.Queue = "ads"
	for i, name := range tiers {
		p.Spec.Tiers = append(p.Spec.Tiers, v1beta1.ProfileTier{Name: name, Default: i == 0})
	}
	return p
}

func TestTierOfTheProfileStaysWithAJobThatHasBegun(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Profile = profile("small-traffic", "exploratory")
	w.settle()
	g.Expect(w.status().Tier).To(Equal("small-traffic"))
	g.Expect(w.status().Profile).To(Equal("ads"))
	w.o.Profile = profile("exploratory")
	w.run().settle()
	g.Expect(w.status().Tier).To(Equal("small-traffic"))
	g.Expect(w.last.Blueprint.Tier.Name).To(Equal("small-traffic"))
	w.o.Profile = nil
	w.settle()
	g.Expect(w.status().Tier).To(Equal("small-traffic"))
	g.Expect(w.status().Profile).To(Equal(v1beta1.DefaultProfile), "it says that its namespace has none")
	w.o.Config.Tiers = w.o.Config.Tiers[2:]
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonUnknownTier))
	g.Expect(w.status().Message).To(HavePrefix(`spec.tier: the operator's configuration has no tier "small-traffic"`))
}

func TestObstacles(t *testing.T) {
	for _, c := range []struct {
		name      string
		edit      func(*jobstate.Observed)
		stalled   bool
		reason    string
		fragments []string
	}{
		{"invalid", func(o *jobstate.Observed) { o.Invalid = "spec.x: wrong" }, true, v1beta1.ReasonInvalidSpec,
			[]string{"spec.x: wrong"}},
		{"tier", func(o *jobstate.Observed) { o.Job.Spec.Tier = "gold" }, true, v1beta1.ReasonUnknownTier,
			[]string{`"gold"`, "main-traffic"}},
		{"QoS of the tier", func(o *jobstate.Observed) { o.Job.Spec.Tier = "main-traffic" }, true, v1beta1.ReasonQoSNotMet, []string{
			"spec.template.spec.containers[0].resources.requests: Required value: tier main-traffic (Guaranteed) needs cpu and memory",
			`"trainer" has neither`, "Set spec.tier to another tier, or suspend the job",
		}},
		{"QoS of the profile's default tier", func(o *jobstate.Observed) { o.Profile = profile("main-traffic") }, true,
			v1beta1.ReasonQoSNotMet, []string{"tier main-traffic (Guaranteed)"}},
		{"QoS of worker 0", func(o *jobstate.Observed) {
			o.Job.Spec.Tier, o.Job.Spec.Master = "small-traffic", &v1beta1.Master{Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
			}}
		}, true, v1beta1.ReasonQoSNotMet, []string{
			`spec.master.resources.limits[memory]: Invalid value: "2Gi": must equal the request (1Gi), because tier small-traffic is `,
		}},
		{"below zero", func(o *jobstate.Observed) {
			o.Job.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("-1")
		}, true, v1beta1.ReasonRejected, []string{"A worker asks for -1 of cpu"}},
		{"below zero, worker 0", func(o *jobstate.Observed) {
			o.Job.Spec.Master = &v1beta1.Master{Resources: &corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("-1Gi")},
			}}
		}, true, v1beta1.ReasonRejected, []string{"Worker 0 asks for -1Gi of memory"}},
		{"beyond counting", func(o *jobstate.Observed) {
			o.Job.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("8Ei")
		}, true, v1beta1.ReasonRejected, []string{"A worker asks for 9223372036854775807 of cpu", "too large to count"}},
		{"limit", func(o *jobstate.Observed) { o.Config.Limits.MaxWorkersPerJob = 3 }, true, v1beta1.ReasonLimitExceeded,
			[]string{"allows 3 workers per job (limits.maxWorkersPerJob), and this is 4", "Lower maxReplicas"}},
		{"protection of surplus", func(o *jobstate.Observed) {
			o.Job.Spec.Elasticity.Shrink.MinRunSeconds, o.Config.Tiers[0].MaxMinSurplusRunSeconds = ptr.To[int32](86400), 600
		}, true, v1beta1.ReasonLimitExceeded, []string{
			"spec.elasticity.shrink.minRunSeconds: Invalid value: 86400: must be at most 600 s in tier exploratory",
			"lower it, or ask an administrator to raise the limit.",
		}},
		{"grace of the template", func(o *jobstate.Observed) {
			o.Job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](601)
		}, true, v1beta1.ReasonLimitExceeded, []string{
			"spec.template.spec.terminationGracePeriodSeconds: Invalid value: 601: must be at most 600 s", "(limits.maxGraceSeconds",
			"Suspend the job, lower them, and resume it",
		}},
		{"grace for a checkpoint", func(o *jobstate.Observed) { o.Job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](601) }, true,
			v1beta1.ReasonLimitExceeded, []string{"spec.checkpoint.graceSeconds: Invalid value: 601: must be at most 600 s"}},
		{"volcano", func(o *jobstate.Observed) { o.VolcanoMissing = "PodGroup" }, false, v1beta1.ReasonVolcanoMissing,
			[]string{"PodGroup"}},
		{"no queue", func(o *jobstate.Observed) { o.Queue = jobstate.Queue{Name: "q", Missing: true} }, false,
			v1beta1.ReasonQueueNotFound, []string{`"q"`}},
		{"closed", func(o *jobstate.Observed) { o.Queue = jobstate.Queue{Name: "q", State: "Closed"} }, false,
			v1beta1.ReasonQueueClosed, []string{"Closed"}},
		{"tier of the profile", func(o *jobstate.Observed) {
			o.Job.Spec.Tier, o.Profile = "main-traffic", profile("exploratory", "small-traffic")
		}, true, v1beta1.ReasonTierNotAllowed, []string{`"main-traffic"`, "profile ads", "exploratory, small-traffic"}},
		{"tier beyond the owner's group", func(o *jobstate.Observed) {
			o.Profile = profile()
			o.Profile.Spec.Members = []v1beta1.ProfileMember{{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"}}
			o.Job.Spec.Tier, o.Job.Spec.Owner, o.Job.Spec.Submitter = "main-traffic", "ivy", &v1beta1.Submitter{Username: "ivy",
				Groups: []string{"interns"}}
		}, true, v1beta1.ReasonTierNotAllowed, []string{"allows exploratory to ivy as a member of interns. Set spec.tier"}},
		{"profile of unknown tiers", func(o *jobstate.Observed) { o.Profile = profile("gold") }, true, v1beta1.ReasonTierNotAllowed,
			[]string{"no tier of the operator's configuration"}},
		{"profile without a queue", func(o *jobstate.Observed) {
			o.Profile = profile()
			o.Profile.Status = v1beta1.ResourceQuotaProfileStatus{Message: "Queue ads exists and is not the profile's."}
		}, false, v1beta1.ReasonProfileNotReady, []string{
			"ResourceQuotaProfile ads", "has no Queue yet: Queue ads exists and is not the profile's.",
		}},
		{"unseen", func(o *jobstate.Observed) { o.Queue = jobstate.Queue{Name: "q"} }, false, v1beta1.ReasonQueueClosed,
			[]string{"not seen it yet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4)
			c.edit(&w.o)
			w.settle()
			g.Expect(w.o.Workers).To(BeEmpty())
			g.Expect(w.status().Attempt).To(BeNil(), "nothing begins")
			g.Expect(w.status().Reason).To(Equal(c.reason))
			stalled := map[bool]string{true: "True/" + c.reason, false: "absent"}[c.stalled]
			g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal(stalled))
			g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/" + c.reason))
			for _, f := range c.fragments {
				g.Expect(w.status().Message).To(ContainSubstring(f))
			}
			g.Expect(w.written).To(Equal(1))
		})
	}
}

func TestStraysOfAnotherAttemptAreReplaced(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.change(1, func(p *podstate.Worker) { p.Attempt = "0-1" }).step()
	g.Expect(w.last.DeletePods).To(HaveLen(1))
	g.Expect(w.last.CreateWorkers).To(BeEmpty(), "its name is not free yet")
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{1}))
}

func TestDriftedPodGroupIsRestored(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	drifted := w.last.Blueprint.CoreGroup()
	drifted.MinMember = 1
	g.Expect(drifted.HasDrifted(*w.o.Core)).To(BeTrue())
	w.o.Config.Tiers[0].Name, w.o.Job.Status.Attempt.Tier = "renamed", "renamed"
	w.step()
	g.Expect(w.last.RestoreGroups).To(HaveLen(1))
	g.Expect(w.last.RestoreGroups[0].Group.PriorityClass).To(Equal("tideline-renamed"))
}

func TestDeletedJobGetsNoWorkers(t *testing.T) {
	w := newSimulator(t, 2, 2).trains()
	w.o.Job.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.o.Workers = nil
	w.step()
	NewWithT(t).Expect(w.last.CreateWorkers).To(BeEmpty())
}

// Garbage collection leaves the pods alone for as long as the job is there.
func TestJobThatAFinalizerHoldsKeepsNoPods(t *testing.T) {
	for finalizer, pods := range map[string]int{
		"example.com/hold": 2, metav1.FinalizerDeleteDependents: 2, metav1.FinalizerOrphanDependents: 0,
	} {
		g := NewWithT(t)
		w := newSimulator(t, 2, 2).trains()
		w.o.Job.DeletionTimestamp, w.o.Job.Finalizers = &metav1.Time{Time: w.now}, []string{finalizer}
		before := w.o.Job.Status.DeepCopy()
		d := Plan(w.o, w.now)
		g.Expect(d.DeletePods).To(HaveLen(pods), finalizer)
		g.Expect(d.DeleteGroups).To(HaveLen(pods/2), finalizer)
		g.Expect(&d.Status).To(Equal(before))
	}
}

func TestWaitingMessageSaysWhatIsAskedAndWhatVolcanoSays(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 9, 9).settle()
	g.Expect(w.status().Message).To(Equal("Waiting in queue default for Volcano to place the core of 9 workers (9 nvidia.com/gpu)."))
	w.o.Core.Unschedulable = "9/9 tasks in gang unschedulable"
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/Unschedulable"))
	g.Expect(w.status().Message).To(HaveSuffix("Volcano says: 9/9 tasks in gang unschedulable"))
	g.Expect(strings.Count(w.status().Message, "9 nvidia.com/gpu")).To(Equal(1))
}

func TestReadyOneByOneIsOneWritePerInterval(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8, 8).step().step()
	g.Expect(w.written).To(Equal(1))
	start := w.now
	for i := range int32(8) {
		for range 3 {
			w.pass(time.Second).step()
		}
		w.run(i).step()
	}
	elapsed := w.now.Sub(start)
	g.Expect(w.written).To(BeNumerically("<=", 2+int(elapsed/statuspace.CalmInterval)), "two, and one per interval")
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
}

func TestAtRestNothingIsDone(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	before := w.written
	for range 100 {
		w.pass(time.Minute).step()
		g.Expect(w.last.DeletePods).To(BeEmpty())
		g.Expect(w.last.CreateWorkers).To(BeEmpty())
	}
	g.Expect(w.written).To(Equal(before))
}

func TestStory(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	g.Expect(reasons(w.events)).To(Equal([]string{"Scheduled", "Grew"}))
	w.evict(3).settle().pass(300 * time.Second).settle().run().settle()
	g.Expect(reasons(w.events)[2:]).To(Equal([]string{"GaveWay", "Grew"}))
	g.Expect(w.events[3].Message).To(Equal("Grew to 4 workers: worker 3 joined."))
	w.deletePod(0).settle().run().settle()
	g.Expect(reasons(w.events)[4:]).To(Equal([]string{"WorkerLost"}), "a worker created anew is not growth")
	w.scale(2).settle()
	g.Expect(reasons(w.events)[5:]).To(Equal([]string{"Resized"}))
	g.Expect(w.events[5].Message).To(Equal("Removed workers 2 and 3 because maxReplicas was lowered to 2; 2 workers ready."))
}

func TestGrowingBackBetweenTwoWritesIsTold(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().evict(3).settle()
	w.pass(300 * time.Second).step().run().pass(time.Second).step().pass(statuspace.CalmInterval).step()
	g.Expect(reasons(w.events)[2:]).To(Equal([]string{"GaveWay", "Grew"}))
}

func TestStoryOfWaiting(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Queue.Missing, w.o.Queue.State = true, ""
	w.settle()
	g.Expect(reasons(w.events)).To(Equal([]string{"QueueNotFound"}))
	w.o.Queue = jobstate.Queue{Name: "default", State: "Open"}
	w.settle()
	w.o.Core.Unschedulable = "no"
	w.settle()
	g.Expect(reasons(w.events)[1:]).To(Equal([]string{"Unschedulable"}))
}

func TestShrinkingIsSaidAtOnce(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 6).trains().scale(3).step()
	g.Expect(w.status().Summary).To(Equal("3/3 (2..3)"), "what is being deleted does not count")
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("True/AtMaximum"))
}

func TestRefusedRequestsAreExplainedAndRestAtThat(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).step().step()
	refused := jobstate.Obstacle{Reason: v1beta1.ReasonNameTaken, Message: "taken", Stalled: true}
	first := ExplainObstacle(w.o, w.now, Plan(w.o, w.now), refused)
	g.Expect(PaceOf(w.status(), &first)).To(Equal(statuspace.Now))
	first.DeepCopyInto(w.status())
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/NameTaken"))
	g.Expect(condition(w, v1beta1.ConditionReconciling)).To(Equal("absent"))
	w.pass(time.Minute)
	again := ExplainObstacle(w.o, w.now, Plan(w.o, w.now), refused)
	g.Expect(PaceOf(w.status(), &again)).To(Equal(statuspace.Never))
}

func TestObstaclesHideNeitherLossNorEnd(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.o.Core, w.o.Queue.State = nil, "Closed"
	w.deletePod(1).settle()
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonQueueClosed))
	w.change(0, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded }).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestQueueThatClosesUnderAWaitingGangIsTheReason(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).settle()
	w.o.Queue.State = "Closed"
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionScheduled)).To(Equal("False/QueueClosed"))
	w = newSimulator(t, 2, 4).settle()
	w.o.Queue.State = "Closed"
	w.run().settle()
	g.Expect(w.o.Surplus).To(BeNil(), "Volcano's webhook would refuse it")
	g.Expect(condition(w, v1beta1.ConditionFullSize)).To(Equal("False/QueueClosed"))
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Training"))
}

func TestList(t *testing.T) {
	g := NewWithT(t)
	g.Expect(describe.List(nil)).To(Equal("none"))
	g.Expect(describe.List([]int32{6})).To(Equal("6"))
	g.Expect(describe.List([]int32{6, 7})).To(Equal("6 and 7"))
	g.Expect(describe.List([]int32{2, 3, 4, 7, 9, 10})).To(Equal("2 to 4, 7, 9 and 10"))
}

func TestClipKeepsCharactersWhole(t *testing.T) {
	NewWithT(t).Expect(text.ClipLine("aaé", 6)).To(Equal("aaé"))
	NewWithT(t).Expect(text.ClipLine("aéééé", 7)).To(Equal("aé..."))
}
