package decisionlog

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

var noon = time.Date(2026, time.November, 17, 12, 0, 0, 0, time.UTC)

// launch is a gang that others make room for.
var launch = v1beta1.GangRef{Namespace: "rec", Name: "launch"}

func after(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

type status = v1beta1.ElasticTrainingJobStatus

var job = &v1beta1.ElasticTrainingJob{
	ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: "ctr", UID: "uid", Annotations: map[string]string{v1beta1.AnnotationOwner: "alice"},
	},
	Spec: v1beta1.ElasticTrainingJobSpec{Task: "clicks"},
}

// training is a status of attempt 2, which began at noon.
func training(with ...func(*status)) *status {
	st := &status{
		Queue: "ads-q", Profile: "ads", Tier: "main",
		Attempt: &v1beta1.AttemptStatus{Number: 2, StartTime: after(0), MinReplicas: 2, MaxReplicas: 8},
	}
	for _, f := range with {
		f(st)
	}
	return st
}

// says has a status a condition that is true since some time after noon.
func says(kind, reason, message string, since time.Duration) func(*status) {
	return func(st *status) {
		st.Conditions = append(st.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: after(since),
		})
	}
}

func reconciling(reason string) func(*status) {
	return says(v1beta1.ConditionReconciling, reason, "because of "+reason, time.Minute)
}

// isOf are the figures that all decisions about the training have.
func isOf(more ...string) map[string]string {
	figures := map[string]string{
		Object: "ElasticTrainingJob", Queue: "ads-q", Profile: "ads", "tier": "main", "workers": "2..8",
		Task: "clicks", User: "alice",
	}
	for i := 0; i < len(more); i += 2 {
		figures[more[i]] = more[i+1]
	}
	return figures
}

// preempted has a status that the job was told to stop an hour after noon.
func preempted(lostSince *metav1.Time) func(*status) {
	return func(st *status) {
		st.Preemption = &v1beta1.PreemptionStatus{By: launch, Since: after(time.Hour), Tier: "launch", LostSince: lostSince}
	}
}

func TestTransitionsOfATraining(t *testing.T) {
	attempt := training().Attempt.ID()
	about := func(d ledger.Decision) ledger.Decision {
		d.Namespace, d.Name, d.UID, d.Attempt = "ads", "ctr", "uid", attempt
		if d.Figures == nil {
			d.Figures = isOf()
		}
		return d
	}
	for name, c := range map[string]struct {
		before, after *status
		decided       []ledger.Decision
	}{
		"another attempt began": {&status{}, training(reconciling(v1beta1.ReasonStarting)), []ledger.Decision{{
			ID: attempt, At: noon, Kind: WentOn, Message: "Attempt 2 began, with 2..8 workers.",
		}}},
		"began to wait": {training(), training(reconciling(v1beta1.ReasonUnschedulable), func(st *status) { st.Place = 3 }),
			[]ledger.Decision{{
				ID: "Unschedulable 2", At: noon.Add(time.Minute), Kind: Waited, Reason: v1beta1.ReasonUnschedulable,
				Message: "because of Unschedulable", Figures: isOf("place", "3"),
			}}},
		"waits for another reason, since now": {
			training(reconciling(v1beta1.ReasonUnschedulable)), training(reconciling(v1beta1.ReasonQuotaExceeded)),
			[]ledger.Decision{{
				ID: "QuotaExceeded 2", At: noon.Add(time.Hour), Kind: Capped, Reason: v1beta1.ReasonQuotaExceeded,
				Message: "because of QuotaExceeded",
			}}},
		"waits for approval": {training(), training(reconciling(v1beta1.ReasonAwaitingApproval)), []ledger.Decision{{
			ID: "AwaitingApproval 2", At: noon.Add(time.Minute), Kind: AwaitedApproval, Reason: v1beta1.ReasonAwaitingApproval,
			Message: "because of AwaitingApproval",
		}}},
		"is stalled": {training(), training(says(v1beta1.ConditionStalled, v1beta1.ReasonUnknownTier, "no such tier", 0)),
			[]ledger.Decision{{
				ID: "UnknownTier 2", At: noon, Kind: Waited, Reason: v1beta1.ReasonUnknownTier, Message: "no such tier",
			}}},
		"goes its way": {training(), training(reconciling(v1beta1.ReasonRecovering)), nil},
		"only the words are other ones": {
			training(reconciling(v1beta1.ReasonUnschedulable)),
			training(says(v1beta1.ConditionReconciling, v1beta1.ReasonUnschedulable, "other words", 0)), nil},
		"ran for the first time": {training(), training(func(st *status) {
			st.RunningSince, st.StartTime = ptr.To(after(time.Hour)), ptr.To(after(time.Hour))
			st.WaitSeconds = ptr.To(int64(7200))
		}), []ledger.Decision{{
			ID: attempt, At: noon.Add(time.Hour), Kind: Ran, Figures: isOf("waitedSeconds", "7200"),
			Message: "The core of 2 began to run in queue ads-q, 2h0m0s after submission.",
		}}},
		"ran again": {training(), training(func(st *status) {
			st.RunningSince, st.StartTime = ptr.To(after(time.Hour)), ptr.To(after(-time.Hour))
			st.WaitSeconds = ptr.To(int64(7200))
		}), []ledger.Decision{{
			ID: attempt, At: noon.Add(time.Hour), Kind: Ran, Figures: isOf("waitedSeconds", "3600"),
			Message: "The core of 2 began to run in queue ads-q, 1h0m0s after the beginning of attempt 2.",
		}}},
		"gave way": {training(), training(func(st *status) {
			st.Elasticity = &v1beta1.ElasticityStatus{
				Evicted: []int32{6, 7}, LastEvictionTime: ptr.To(after(time.Hour)), LastEvictionReason: "Told", GaveWayTo: &launch,
			}
			st.ReadyReplicas = 6
		}), []ledger.Decision{{
			ID: timeID(after(time.Hour)), At: noon.Add(time.Hour), Kind: GaveWay, Reason: "Told", Other: "rec/launch",
			Message: "Surplus left for rec/launch (Told); 2 workers are away, 6 are ready.",
			Figures: isOf("away", "2", "ready", "6", "left", "0"),
		}}},
		"measured its outage": {training(outage(40)), training(outage(52)), []ledger.Decision{{
			ID: "52", At: noon.Add(time.Hour), Kind: OutageMeasured, Figures: isOf("seconds", "52"),
			Message: "A change of its size keeps the training from progress for 52s.",
		}}},
		"was preempted": {training(), training(says(v1beta1.ConditionSuspended, v1beta1.ReasonPreempted, "", 0), func(st *status) {
			st.Preemption = &v1beta1.PreemptionStatus{By: launch, Since: after(time.Hour), Tier: "launch"}
		}), []ledger.Decision{{
			ID: timeID(after(time.Hour)), At: noon.Add(time.Hour), Kind: Preempted, Reason: v1beta1.ReasonPreempted, Other: "rec/launch",
			Message: "It was stopped for rec/launch of tier launch.", Figures: isOf("tierOfOther", "launch"),
		}}},
		"its pods were told to leave": {
			training(preempted(nil)),
			training(preempted(ptr.To(after(time.Minute))),
				says(v1beta1.ConditionSuspended, v1beta1.ReasonPreempting, "", 90*time.Minute)),
			[]ledger.Decision{{
				ID: timeID(after(time.Hour)), At: noon.Add(90 * time.Minute), Kind: Stopped, Reason: v1beta1.ReasonPreempted,
				Other: "rec/launch", Message: "Tideline deleted its pods; the work of 1h29m0s since its last checkpoint is lost.",
				Figures: isOf("lostSince", "2026-11-17T12:01:00Z"),
			}},
		},
		"was suspended": {training(), training(says(v1beta1.ConditionSuspended, v1beta1.ReasonSuspended, "stopped", time.Hour)),
			[]ledger.Decision{{
				ID: timeID(after(time.Hour)), At: noon.Add(time.Hour), Kind: Suspended, Reason: v1beta1.ReasonSuspended, Message: "stopped",
			}}},
		"restarted": {training(), training(func(st *status) {
			st.Restarts = 3
			st.LastFailure = &v1beta1.WorkerFailure{
				Worker: 1, Time: after(time.Hour), ExitCode: 137, Reason: "OOMKilled", Message: "killed", LostSince: ptr.To(after(0)),
			}
		}), []ledger.Decision{{
			ID: "3", At: noon.Add(time.Hour), Kind: Restarted, Reason: "OOMKilled",
			Message: "Worker 1 was lost, which counted as restart 3. killed",
			Figures: isOf("worker", "1", "exitCode", "137", "lostSince", "2026-11-17T12:00:00Z"),
		}}},
		"ended": {training(), training(reconciling(v1beta1.ReasonUnschedulable), func(st *status) {
			st.CompletionTime, st.Phase = ptr.To(after(time.Hour)), v1beta1.PhaseFailed
			st.Reason, st.Message = v1beta1.ReasonDeadlineExceeded, "too long"
		}), []ledger.Decision{{
			ID: timeID(after(time.Hour)), At: noon.Add(time.Hour), Kind: Ended, Reason: v1beta1.ReasonDeadlineExceeded,
			Message: "too long", Figures: isOf("phase", "Failed", "restarts", "0"),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := make([]ledger.Decision, len(c.decided))
			for i := range want {
				want[i] = about(c.decided[i])
			}
			g.Expect(TrainingDecisions(job, c.before, c.after, noon.Add(time.Hour))).To(HaveExactElements(want))
			g.Expect(TrainingDecisions(job, c.after, c.after, noon.Add(time.Hour))).To(BeEmpty(), "told once")
			for _, d := range TrainingDecisions(job, c.before, c.after, noon.Add(2*time.Hour)) {
				delete(d.Figures, Left) // It is of two statuses.
				g.Expect(TrainingDecisions(job, &status{}, c.after, noon.Add(time.Hour))).To(ContainElement(And(
					HaveField("Kind", d.Kind), HaveField("ID", d.ID), HaveField("Message", d.Message), HaveField("Figures", d.Figures))),
					"it is the same decision when it is told again")
			}
		})
	}
}

// outage has a status that it was measured how long a change of size keeps the training from progress.
func outage(seconds int32) func(*status) {
	return func(st *status) {
		st.StartTime = ptr.To(after(0))
		st.Elasticity = &v1beta1.ElasticityStatus{OutageSeconds: seconds, LastGrowthTime: ptr.To(after(time.Minute))}
	}
}

func TestAnOutageIsToldWithItsTime(t *testing.T) {
	g := NewWithT(t)
	told := TrainingDecisions(job, &status{}, training(outage(40)), noon.Add(time.Hour))
	g.Expect(told).To(ContainElement(And(HaveField("Kind", OutageMeasured), HaveField("At", noon.Add(time.Minute)))),
		"when the size last changed, where nothing says when it was measured: an old job must not hide what came since")
	next := training(outage(40), func(st *status) { st.Elasticity.LastGrowthTime, st.Attempt.Number = ptr.To(after(time.Hour)), 3 })
	g.Expect(TrainingDecisions(job, training(outage(40)), next, noon.Add(2*time.Hour))).NotTo(
		ContainElement(HaveField("Kind", OutageMeasured)), "it grew again and restarted, and nothing was measured")
}

func TestASpeedIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	speeds := func(perHour string, since time.Duration) func(*status) {
		return func(st *status) {
			st.Elasticity = &v1beta1.ElasticityStatus{Speeds: []v1beta1.MeasuredSpeed{
				{Workers: 4, PercentPerHour: "10", Time: metav1.NewTime(noon.Add(-24 * time.Hour))},
				{Workers: 8, PercentPerHour: perHour, Time: after(since)},
			}}
		}
	}
	begun := job.DeepCopy()
	begun.CreationTimestamp = after(0)
	told := TrainingDecisions(begun, training(), training(speeds("15", time.Minute)), noon.Add(time.Hour))
	g.Expect(told).To(ConsistOf(And(HaveField("Kind", SpeedMeasured), HaveField("At", noon.Add(time.Minute)),
		HaveField("Message", "With 8 workers the training does 15 % of its steps in an hour."),
		HaveField("Figures", And(HaveKeyWithValue(Workers, "8"), HaveKeyWithValue(PercentPerHour, "15"))))),
		"not what an earlier job of the task had measured")
	g.Expect(TrainingDecisions(begun, training(speeds("15", time.Minute)), training(speeds("15", time.Minute)), noon)).To(BeEmpty())
	g.Expect(TrainingDecisions(begun, training(speeds("15", time.Minute)), training(speeds("20", time.Hour)), noon)).To(HaveLen(1))
}

func TestOnlyWorkersThatTrainedHaveLeft(t *testing.T) {
	evicted := func(since time.Duration, indices ...int32) func(*status) {
		return func(st *status) {
			st.Elasticity = &v1beta1.ElasticityStatus{Evicted: indices, LastEvictionTime: ptr.To(after(since))}
		}
	}
	members := func(st *status) {
		st.Members = []v1beta1.Member{{Index: 0}, {Index: 2}, {Index: 4}, {Index: 5, State: v1beta1.MemberLost}, {Index: 6}}
	}
	for name, c := range map[string]struct {
		before, after *status
		left          string
	}{
		"two that trained, and one that waited for room": {training(members), training(evicted(time.Hour, 2, 3, 4)), "2"},
		"one more":                     {training(members, evicted(0, 2, 4)), training(evicted(time.Hour, 2, 4, 6)), "1"},
		"one that was lost before":     {training(members), training(evicted(time.Hour, 5)), "0"},
		"only such as waited for room": {training(members, evicted(0, 2)), training(evicted(time.Hour, 2, 3)), "0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			gaveWay := And(HaveField("Kind", GaveWay), HaveField("Figures", HaveKeyWithValue(Left, c.left)))
			g.Expect(TrainingDecisions(job, c.before, c.after, noon.Add(time.Hour))).To(ContainElement(gaveWay))
		})
	}
}

func TestWhatUsersWriteIsBounded(t *testing.T) {
	g := NewWithT(t)
	hostile := "\x1b[2J\r\n\x00\xff" + strings.Repeat("\U0001F4A3", 5000)
	st := training(says(v1beta1.ConditionReconciling, v1beta1.ReasonUnschedulable, hostile, 0), func(st *status) {
		st.Restarts = 1
		st.LastFailure = &v1beta1.WorkerFailure{Message: hostile}
	})
	for _, d := range TrainingDecisions(job, &status{}, st, noon) {
		g.Expect(len(d.Message)).To(BeNumerically("<=", longest))
		g.Expect(utf8.ValidString(d.Message)).To(BeTrue())
		g.Expect(d.Message).NotTo(ContainSubstring("\x1b"))
	}
}

// However often a training comes to wait for one reason and another, each is kept once in an attempt.
func TestReasonsThatTakeTurnsAreKeptOnce(t *testing.T) {
	g := NewWithT(t)
	ids, before := map[string]bool{}, training()
	for i := range 100 {
		st := training(reconciling([]string{v1beta1.ReasonUnschedulable, v1beta1.ReasonQuotaExceeded}[i%2]))
		for _, d := range TrainingDecisions(job, before, st, noon.Add(time.Duration(i)*time.Minute)) {
			ids[d.Kind+d.ID] = true
		}
		before = st
	}
	g.Expect(ids).To(HaveLen(2))
}

func TestTransitionsOfAMerge(t *testing.T) {
	merge := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "model", UID: "uid"}}
	type mergeStatus = v1beta1.MergeJobStatus
	inLine := func(with ...func(*mergeStatus)) *mergeStatus {
		st := &mergeStatus{Pool: "merges", Profile: "ads", Tier: "main", QueueTime: ptr.To(after(0)), Position: ptr.To(int32(2))}
		for _, f := range with {
			f(st)
		}
		return st
	}
	waits := func(reason string) func(*mergeStatus) {
		return func(st *mergeStatus) {
			st.Conditions = []metav1.Condition{{
				Type: v1beta1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: reason, Message: "because of " + reason,
				LastTransitionTime: after(time.Minute),
			}}
		}
	}
	runs := func(st *mergeStatus) {
		st.Position = nil
		st.Run = &v1beta1.MergeRun{
			ID: "run", Attempt: 1, AskTime: after(time.Minute), RunTime: ptr.To(after(time.Hour)), MinReplicas: 4, Increments: 9,
		}
	}
	for name, c := range map[string]struct {
		before, after *mergeStatus
		kind, says    string
		at            time.Duration
		figures       []string
	}{
		"stands in the line": {&mergeStatus{}, inLine(waits(v1beta1.ReasonInLine), func(st *mergeStatus) {
			st.BlockedBy = &v1beta1.MergeBlock{Head: &v1beta1.GangRef{Namespace: "rec", Name: "other"}, Shortfall: "3 GPUs"}
		}), Waited, "because of InLine", time.Minute, []string{"place", "2", "head", "rec/other", "shortfall", "3 GPUs"}},
		"is capped": {inLine(waits(v1beta1.ReasonInLine)), inLine(waits(v1beta1.ReasonQuotaExceeded)), Capped,
			"because of QuotaExceeded", 2 * time.Hour, []string{"place", "2"}},
		"waits for approval": {inLine(), inLine(waits(v1beta1.ReasonAwaitingApproval)), AwaitedApproval, "because of AwaitingApproval",
			time.Minute, []string{"place", "2"}},
		"runs": {inLine(waits(v1beta1.ReasonInLine)), inLine(runs), Ran, "Run run began in pool merges with 4 pods, 1h0m0s after it " +
			"joined the line.", time.Hour, []string{"waitedSeconds", "3600", "increments", "9"}},
		"is taken back": {inLine(runs), inLine(runs, func(st *mergeStatus) {
			st.Run.Outcome, st.Run.EndTime, st.Run.Message = v1beta1.OutcomeWithdrawn, ptr.To(after(2*time.Hour)), "a pod was lost"
		}), Withdrawn, "a pod was lost", 2 * time.Hour, []string{"lostSince", "2026-11-17T13:00:00Z"}},
		"is suspended": {inLine(), inLine(func(st *mergeStatus) {
			st.Conditions = []metav1.Condition{{
				Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, Message: "stopped", LastTransitionTime: after(time.Hour),
			}}
		}), Suspended, "stopped", time.Hour, nil},
		"ended": {inLine(runs), inLine(runs, func(st *mergeStatus) {
			st.History = []v1beta1.MergeResult{{
				Run: "run", Outcome: v1beta1.OutcomeFailed, EndTime: after(time.Hour), Message: "no marker", Attempts: 2,
			}}
		}), Ended, "no marker", time.Hour, []string{"attempts", "2", "increments", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			figures := map[string]string{Object: "MergeJob", Task: "model", Queue: "merges", Profile: "ads", "tier": "main"}
			for i := 0; i < len(c.figures); i += 2 {
				figures[c.figures[i]] = c.figures[i+1]
			}
			told := MergeDecisions(merge, c.before, c.after, noon.Add(2*time.Hour))
			g.Expect(told).To(HaveExactElements(And(
				HaveField("Kind", c.kind), HaveField("Message", c.says), HaveField("At", noon.Add(c.at)), HaveField("Figures", figures),
				HaveField("ID", Not(BeEmpty())))), fmt.Sprint(told))
			g.Expect(MergeDecisions(merge, c.after, c.after, noon)).To(BeEmpty(), "told once")
			g.Expect(MergeDecisions(merge, &mergeStatus{}, c.after, noon)).To(ContainElement(And(
				HaveField("Kind", c.kind), HaveField("ID", told[0].ID), HaveField("Message", c.says))))
		})
	}
}
