// Package decisionlog selects the decisions about a job that are kept, to answer later why it waited, ran, or had to leave.
// They follow from the status alone, so that a crash loses none: the same status gives the same decisions again.
package decisionlog

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// Kinds of decisions, as [ledger.Decision] has them.
const (
	// Waited: the job waits for its place, or until a person removes an obstacle.
	Waited = "Waited"
	// Capped: it waits because of a cap of its profile.
	Capped = "Capped"
	// AwaitedApproval: it waits for approval of its tier.
	AwaitedApproval = "AwaitedApproval"
	// Approved: it began by an approval.
	Approved = "Approved"
	// Ran: its core began to run.
	Ran = "Ran"
	// GaveWay: surplus of it left.
	GaveWay = "GaveWay"
	// OutageMeasured: it was measured how long a change of its size kept it from progress.
	OutageMeasured = "OutageMeasured"
	// SpeedMeasured: it was measured how fast it trains with a number of workers.
	SpeedMeasured = "SpeedMeasured"
	// LeftInVain: the gang for which its workers left was not placed in time.
	LeftInVain = "LeftInVain"
	// Preempted: it was stopped whole for another job.
	Preempted = "Preempted"
	// Stopped: its pods were deleted to make room for the job that preempted it.
	Stopped = "Stopped"
	// Suspended: its user stopped it.
	Suspended = "Suspended"
	// Restarted: it lost a worker, which cost it a restart.
	Restarted = "Restarted"
	// WentOn: another attempt began.
	WentOn = "WentOn"
	// Withdrawn: an attempt of a merge was taken back.
	Withdrawn = "Withdrawn"
	// Ended: it succeeded or failed, or a run of a merge ended.
	Ended = "Ended"
	// NodeSuspected: what is held against a node, which the decision is about.
	NodeSuspected = "NodeSuspected"
)

// Figures of decisions that others look for.
const (
	// Object is the kind of the job.
	Object = "object"
	// Task of its pods, and User who owns it.
	Task = "task"
	User = "user"
	// Queue and Profile that it was in.
	Queue   = "queue"
	Profile = "profile"
	// LostSince is the time from which the decision lost the work of all pods, in RFC 3339; absent for no loss.
	LostSince = "lostSince"
	// WaitedSeconds is how long a job that ran had waited for its place.
	WaitedSeconds = "waitedSeconds"
	// Left is how many workers that trained gave way together; absent where that is not known any more.
	Left = "left"
	// Seconds is how long changes of size keep a training from progress.
	Seconds = "seconds"
	// Workers that trained, and PercentPerHour of the training that they did.
	Workers        = "workers"
	PercentPerHour = "percentPerHour"
	// Witnesses are the tasks that failed on a node, as JSON; absent if nothing is held against it any more. Told is there once the
	// administrator was told of it. Owners says how the owners of jobs were known.
	Witnesses = "witnesses"
	Told      = "told"
	Owners    = "owners"
)

// longest is the longest message that is kept, in bytes.
const longest = 1024

// telling collects what a status says.
type telling struct {
	job      metav1.Object
	attempt  string
	figures  map[string]string
	decided  []ledger.Decision
	position int32
}

// addDecision adds a decision, whose id tells it from others of its kind about the job.
func (t *telling) addDecision(at metav1.Time, kind, id string, d ledger.Decision, figures ...string) {
	d.At, d.Kind, d.ID = at.Time, kind, id
	d.Namespace, d.Name, d.UID = t.job.GetNamespace(), t.job.GetName(), string(t.job.GetUID())
	d.Attempt, d.Message = t.attempt, text.ClipLine(d.Message, longest)
	d.Figures = make(map[string]string, len(t.figures)+len(figures)/2)
	for name, value := range t.figures {
		if value != "" {
			d.Figures[name] = value
		}
	}
	for i := 0; i+1 < len(figures); i += 2 {
		d.Figures[figures[i]] = figures[i+1]
	}
	t.decided = append(t.decided, d)
}

// addWait adds what a job waits for, if that is not the ordinary way of a job: once for each reason and turn.
func (t *telling) addWait(conditions []metav1.Condition, turn string) {
	for _, kind := range []string{v1beta1.ConditionReconciling, v1beta1.ConditionStalled} {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || ordinary[c.Reason] {
			continue
		}
		kind, figures := Waited, []string(nil)
		switch c.Reason {
		case v1beta1.ReasonQuotaExceeded, v1beta1.ReasonLimitExceeded:
			kind = Capped
		case v1beta1.ReasonAwaitingApproval:
			kind = AwaitedApproval
		}
		if t.position > 0 {
			figures = []string{"place", strconv.Itoa(int(t.position))}
		}
		t.addDecision(c.LastTransitionTime, kind, c.Reason+" "+turn, ledger.Decision{Reason: c.Reason, Message: c.Message}, figures...)
	}
}

// ordinary reasons are of a job that goes its way.
var ordinary = map[string]bool{
	v1beta1.ReasonSubmitted: true, v1beta1.ReasonStarting: true, v1beta1.ReasonTraining: true, v1beta1.ReasonRecovering: true,
	v1beta1.ReasonCompleting: true, v1beta1.ReasonPreempting: true, v1beta1.ReasonPreempted: true,
	v1beta1.ReasonSuspending: true, v1beta1.ReasonSuspended: true, v1beta1.ReasonRestarting: true,
	v1beta1.ReasonReadingStore: true, v1beta1.ReasonMerging: true, v1beta1.ReasonStopping: true,
}

// newDecisions are the decisions of a status that the one before it does not have. A wait whose condition changed only its
// reason began now, because the status has no time of that change.
func newDecisions(before, after []ledger.Decision, waited bool, now time.Time) []ledger.Decision {
	type key struct{ kind, id string }
	known := make(map[key]bool, len(before))
	for i := range before {
		known[key{before[i].Kind, before[i].ID}] = true
	}
	var fresh []ledger.Decision
	for _, d := range after {
		if known[key{d.Kind, d.ID}] {
			continue
		}
		if isWait(d.Kind) && waited && now.After(d.At) {
			d.At = now
		}
		fresh = append(fresh, d)
	}
	return fresh
}

func isWait(kind string) bool { return kind == Waited || kind == Capped || kind == AwaitedApproval }

// isObstructed tells whether conditions say that a job waits.
func isObstructed(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1beta1.ConditionReconciling) ||
		meta.IsStatusConditionTrue(conditions, v1beta1.ConditionStalled)
}

// lostFigures are the figures of work that is lost since a time, if any is.
func lostFigures(since *metav1.Time) []string {
	if since == nil {
		return nil
	}
	return []string{LostSince, since.UTC().Format(time.RFC3339)}
}

func timeID(t metav1.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func formatNumber[T int32 | int64 | int](n T) string { return strconv.FormatInt(int64(n), 10) }
