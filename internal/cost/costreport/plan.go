// Package costreport plans CostReports: which report is due, which are kept, and what the status says. It is pure.
package costreport

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/schedule"
)

// mostMissed is how many reports that were missed are made up at most, the last ones.
const mostMissed = 60

// Observed is what there is of a CostReport.
type Observed struct {
	Report *v1beta1.CostReport
	// Invalid says what admission would have refused; empty for nothing.
	Invalid string
	// Obstacle is why no report can be made now; nil for none.
	Obstacle *Obstacle
	// Kept are the reports of it that are kept, in any order. Unknown is true while the obstacle hides them.
	Kept    []Kept
	Unknown bool
	// Recorded is until when the ledger has all that ran.
	Recorded time.Time
	// LedgerVolatile is in one sentence why the ledger goes with the operator's pod; empty if it does not, or that is unknown.
	LedgerVolatile string
	// UseUnasked is true if no Prometheus is asked what was used, so that no report can tell.
	UseUnasked bool
	// Directory is what was left out of the directory because it is wrong, each in one sentence without a full stop. Nothing is
	// known of it while MailUnknown or Unknown is true.
	Directory []string
	// Mails are those of the last one; nil where it has no recipients. MailUnknown is true while the obstacle hides them.
	Mails       *Mails
	MailUnknown bool
}

// Obstacle is why no report can be made.
type Obstacle struct {
	Reason, Message string
	// Stalled is true if a person must change something. It is checked again all the same, because no watch reports the change.
	Stalled bool
	// Passing says that it passes by itself, in seconds. It only has a report wait that is due, which says nothing else meanwhile.
	Passing bool
	// Again is how soon to look again. Default: a minute.
	Again time.Duration
}

// Kept is a report that is kept.
type Kept struct {
	From, To time.Time
	Revision int32
	// MadeAt is when it was made.
	MadeAt time.Time
	// Asked says that the annotation asked for it.
	Asked   bool
	Summary v1beta1.ReportSummary
}

// Decision is what to do about a CostReport. Nothing is done before the written status announces it. To make a report or to
// send its mails takes minutes, and an operator that is killed meanwhile finds in the status which revision it was making.
type Decision struct {
	// Announces is true while the status does not say yet what is to be done: nothing else is decided then.
	Announces bool
	// Make is the report to be made now, the earliest first; nil for none.
	Make *Making
	// Due is when the earliest report is due that is not made: in the past while one waits. Zero where none will be.
	Due time.Time
	// ForgetBefore is when periods ended that are kept no more; zero for none.
	ForgetBefore time.Time
	// Publish says that the last report is to be summed up where the operator runs.
	Publish bool
	// Mails is what becomes of the mails of the last report; nil where it has no recipients, or they are unknown.
	Mails *MailsDecision
	// Status to be written.
	Status v1beta1.CostReportStatus
	// Again is when to look again; zero for not before something changes.
	Again time.Time
}

// Making is a report to be made.
type Making struct {
	Period cost.Period
	// Revision from 1.
	Revision int32
	// Asked is the value of the annotation that asked for it; empty for one that was due.
	Asked string
}

const (
	// again is how often it is tried anew what an obstacle is in the way of.
	again = time.Minute
	// recording is how long a report waits for what ran in its last minute to be recorded; then it is made and says what it
	// lacks. recordingAgain is how often it looks.
	recording, recordingAgain = 2 * time.Minute, 2 * time.Second
	// announcing is how long after a status was written it is looked at again: the cache has it by then.
	announcing = 50 * time.Millisecond
)

// Plan decides what to do about a CostReport.
func Plan(o Observed, now time.Time) Decision {
	p := planner{o: o, spec: &o.Report.Spec, now: now}
	p.d.Status = *o.Report.Status.DeepCopy()
	p.d.Status.ObservedGeneration = o.Report.Generation
	p.obstacle = o.Obstacle
	if o.Invalid != "" {
		p.obstacle = &Obstacle{Reason: v1beta1.ReasonInvalidSpec, Message: o.Invalid, Stalled: true}
	} else if line, err := schedule.Parse(p.spec.Schedule, p.spec.TimeZone); err != nil {
		p.obstacle = &Obstacle{Reason: v1beta1.ReasonInvalidSchedule, Message: "spec.schedule: " + err.Error() + ".", Stalled: true}
	} else {
		p.line, p.valid = line, true
	}
	p.planMails()
	p.review()
	p.d.Due = p.earliestDue()
	p.planRest()
	p.writeStatus()
	if !p.isTold() {
		p.announceWork()
	}
	return p.d
}

// isTold is true once the status at the API server says what is to be done. Its words do not count, because an error may be
// worded otherwise each time, but for those about a report that is made: takeRequest goes by them.
func (p *planner) isTold() bool {
	told, wanted := p.o.Report.Status.DeepCopy(), p.d.Status.DeepCopy()
	if p.d.Make != nil && told.Message != wanted.Message {
		return false
	}
	for _, st := range []*v1beta1.CostReportStatus{told, wanted} {
		st.Message = ""
		for i := range st.Conditions {
			st.Conditions[i].Message = ""
		}
	}
	return equality.Semantic.DeepEqual(told, wanted)
}

// planRest decides about what is done with reports that are there: after one was made, in the next round.
func (p *planner) planRest() {
	if p.o.Unknown || p.d.Make != nil {
		return
	}
	p.d.Publish = len(p.o.Kept) > 0
	if m := p.d.Mails; m != nil {
		m.Begin = len(m.Send) > 0 && m.Problem == ""
	}
}

// announceWork leaves all that is to be done to the next round, which finds it in the status.
func (p *planner) announceWork() {
	begins := p.d.Mails != nil && p.d.Mails.Begin
	if p.d.Make == nil && p.d.ForgetBefore.IsZero() && !p.d.Publish && !begins {
		return
	}
	p.d.Announces, p.d.Make, p.d.ForgetBefore, p.d.Publish = true, nil, time.Time{}, false
	if begins {
		p.d.Mails.Begin = false
	}
	p.d.Again = p.now.Add(announcing)
}

type planner struct {
	o        Observed
	spec     *v1beta1.CostReportSpec
	now      time.Time
	line     schedule.Schedule
	valid    bool
	obstacle *Obstacle
	// next is when the next one is due after now, and due are those that were not made.
	next time.Time
	due  []time.Time
	// making is the report that is made now, or as soon as what is in its way has passed.
	making *Making
	mail   mailing
	d      Decision
}

func (p *planner) review() {
	if !p.valid {
		return
	}
	p.next = p.line.Next(p.now)
	p.findForgettable()
	if p.o.Unknown {
		p.tryAgain()
		return
	}
	p.findMissed()
	p.wakeAt(p.mail.again)
	switch {
	case p.spec.Suspend:
		return
	case p.obstacle != nil && !p.obstacle.Passing:
		p.tryAgain()
		return
	}
	if m := p.takeRequest(); m != nil {
		p.making = m
	} else if len(p.due) > 0 {
		p.making = &Making{Period: p.periodUntil(p.due[0]), Revision: 1}
	}
	p.wakeAt(p.next)
	if p.obstacle == nil {
		if p.beingRecorded() {
			p.wakeAt(p.now.Add(recordingAgain))
			return
		}
		p.d.Make = p.making
		return
	}
	if p.making != nil {
		p.tryAgain()
	}
	p.obstacle = nil
}

// beingRecorded tells whether the end of what is reported is about to be recorded: what a report lacks is in no later one.
func (p *planner) beingRecorded() bool {
	return p.making != nil && p.o.Recorded.Before(p.making.Period.To) && p.now.Sub(p.making.Period.To) < recording
}

// tryAgain has it looked at again because of the obstacle.
func (p *planner) tryAgain() {
	after := again
	if p.obstacle != nil && p.obstacle.Again > 0 {
		after = p.obstacle.Again
	}
	p.wakeAt(p.now.Add(after))
}

// wakeAt has it looked at again at a time, if that is earlier.
func (p *planner) wakeAt(at time.Time) {
	if !at.IsZero() && (p.d.Again.IsZero() || at.Before(p.d.Again)) {
		p.d.Again = at
	}
}

// IsOutdated tells whether a report is no longer the last one, because the ledger is an older copy than the status. Such a
// report is not mailed.
func IsOutdated(r *v1beta1.CostReport, to time.Time) bool {
	return r.Status.Last != nil && to.Before(r.Status.Last.To.Time)
}

// lostUntil is the end of the last report in the status, if the ledger does not have it, because the ledger is new or an
// old copy; else zero.
func (p *planner) lostUntil() time.Time {
	told := p.o.Report.Status.Last
	if p.o.Unknown || told == nil {
		return time.Time{}
	}
	if last := p.lastKept(); last != nil && !IsOutdated(p.o.Report, last.To) {
		return time.Time{}
	}
	return told.To.Time
}

// findMissed finds the times at which a report was due and was not made: since the last one that was, or since there is the
// object. Reports kept only in a lost ledger are not regenerated from a new one.
func (p *planner) findMissed() {
	after := p.o.Report.CreationTimestamp.Time
	if lost := p.lostUntil(); lost.After(after) {
		after = lost
	}
	made := map[int64]bool{}
	for i := range p.o.Kept {
		k := &p.o.Kept[i]
		made[k.To.Unix()] = true
		// One that was asked for says nothing about those before it.
		if k.To.After(after) && !k.Asked {
			after = k.To
		}
	}
	for at := p.line.Next(after); !at.IsZero() && !at.After(p.now); at = p.line.Next(at) {
		if !made[at.Unix()] {
			p.due = append(p.due, at)
		}
		if len(p.due) > min(mostMissed, int(p.keptLimit())) {
			p.due = p.due[1:]
		}
	}
	p.due = slices.DeleteFunc(p.due, p.isForgotten) // It would be made, deleted, and missing again.
}

// earliestDue is when the earliest missing report is due. While it is unknown which reports are kept, the status tells the
// last one.
func (p *planner) earliestDue() time.Time {
	switch {
	case !p.valid || p.spec.Suspend:
		return time.Time{}
	case len(p.due) > 0:
		return p.due[0]
	case !p.o.Unknown:
		return p.next
	}
	after := p.o.Report.CreationTimestamp.Time
	if last := p.o.Report.Status.Last; last != nil && last.To.After(after) {
		after = last.To.Time
	}
	return p.line.Next(after)
}

func (p *planner) keptLimit() int32 {
	if p.spec.HistoryLimit == nil {
		return 12
	}
	return max(*p.spec.HistoryLimit, 1)
}

// takeRequest records the request of the annotation, and returns that report once for each value; nil for none. The status
// has its revision before it is made, so that an operator that was killed meanwhile makes it once.
func (p *planner) takeRequest() *Making {
	st, value := &p.d.Status, p.o.Report.Annotations[v1beta1.AnnotationReportUntil]
	to, err := time.Parse(time.RFC3339, value)
	if err != nil || to.After(p.now) {
		st.AskedUntil, st.AskedRevision = "", 0
		p.wakeAt(to) // by a clock that is a little ahead of ours it is now
		return nil
	}
	last := int32(0)
	for i := range p.o.Kept {
		if k := &p.o.Kept[i]; k.To.Equal(to) {
			last = max(last, k.Revision)
		}
	}
	period := p.periodUntil(to)
	if st.AskedUntil != value {
		st.AskedUntil, st.AskedRevision = value, last+1
	} else if !to.After(p.lostUntil()) && p.o.Report.Status.Message != beingMade(period) {
		return nil // It was made, and is in the ledger that was lost.
	}
	if last >= st.AskedRevision || p.isForgotten(to) {
		return nil
	}
	return &Making{Period: period, Revision: st.AskedRevision, Asked: value}
}

// isForgotten tells whether a report that ends at a time is too old to be kept.
func (p *planner) isForgotten(to time.Time) bool {
	later := map[int64]bool{}
	for i := range p.o.Kept {
		if k := &p.o.Kept[i]; k.To.After(to) {
			later[k.To.Unix()] = true
		}
	}
	return len(later) >= int(p.keptLimit())
}

func (p *planner) periodUntil(to time.Time) cost.Period {
	zone, err := time.LoadLocation(p.spec.TimeZone)
	if err != nil { // The schedule has been read in it.
		zone = time.UTC
	}
	window := 168 * time.Hour
	if p.spec.Window != nil {
		window = p.spec.Window.Duration
	}
	return cost.PeriodUntil(to, window, zone)
}

// findForgettable finds the end of the periods that are no longer kept.
func (p *planner) findForgettable() {
	var ends []int64
	for i := range p.o.Kept {
		ends = append(ends, p.o.Kept[i].To.Unix())
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	if more := len(ends) - int(p.keptLimit()); more > 0 {
		p.d.ForgetBefore = time.Unix(ends[more], 0)
	}
}

// lastKept is the last revision of the last period.
func (p *planner) lastKept() *Kept {
	var last *Kept
	for i := range p.o.Kept {
		k := &p.o.Kept[i]
		if last == nil || k.To.After(last.To) || k.To.Equal(last.To) && k.Revision > last.Revision {
			last = k
		}
	}
	return last
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t).Rfc3339Copy()
	return &at
}
