package costreport

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/text"
)

func (p *planner) writeStatus() {
	st := &p.d.Status
	st.NextTime = nil
	if p.valid && !p.spec.Suspend {
		st.NextTime = timeOf(p.next)
	}
	if last := p.lastKept(); last != nil && p.lostUntil().IsZero() {
		st.Last = last.Summary.DeepCopy()
	}
	reason, message := p.summarize()
	st.Reason, st.Message = reason, text.ClipLine(message, conditions.MessageLimit)
	p.sayMails()
	w := conditions.Writer{List: &st.Conditions, Generation: p.o.Report.Generation, Now: metav1.NewTime(p.now).Rfc3339Copy()}
	p.setReady(w)
	p.setReconciling(w)
	p.setStalled(w)
	p.setSuspended(w)
	p.setMailed(w)
	p.setLedgerVolatile(w)
	p.setDirectoryFaulty(w)
	w.RestoreTransitionTimes(p.o.Report.Status.Conditions)
}

// summarize returns the state of the report in one or two sentences.
func (p *planner) summarize() (reason, message string) {
	switch o := p.whatHinders(); {
	case p.spec.Suspend:
		return v1beta1.ReasonSuspended, "Tideline makes no report while spec.suspend is true. Reports that were due meanwhile " +
			"are made " +
			"afterwards."
	case o != nil && len(p.due) > 0:
		return o.Reason, o.Message + fmt.Sprintf(" %s.", waitingReports(p.due))
	case o != nil:
		return o.Reason, o.Message
	case p.making != nil:
		return v1beta1.ReasonReportDue, beingMade(p.making.Period)
	case p.d.Status.Last == nil:
		return v1beta1.ReasonReportScheduled, fmt.Sprintf("The first report is due at %s. To get one now, set annotation %s to "+
			"the time of now or earlier.", formatTime(p.next), v1beta1.AnnotationReportUntil)
	}
	return v1beta1.ReasonReportMade, p.describeLast()
}

// whatHinders is the obstacle that keeps reports from being made; nil for none and for a suspended report.
func (p *planner) whatHinders() *Obstacle {
	if p.spec.Suspend {
		return nil
	}
	return p.obstacle
}

// beingMade is the message while the report of a period is made. [planner.takeRequest] recognizes by it a report that was
// not finished.
func beingMade(period cost.Period) string {
	return fmt.Sprintf("Tideline is making the report from %s to %s.", formatTime(period.From), formatTime(period.To))
}

// setReady is for a report without an obstacle.
func (p *planner) setReady(w conditions.Writer) {
	ready := metav1.ConditionTrue
	if p.whatHinders() != nil {
		ready = metav1.ConditionFalse
	}
	w.Set(v1beta1.ConditionReady, ready, p.d.Status.Reason, p.d.Status.Message)
}

// setReconciling is for a report that is being made, or will be without an action of a person.
func (p *planner) setReconciling(w conditions.Writer) {
	o := p.whatHinders()
	switch {
	case o != nil && !o.Stalled:
		w.Set(v1beta1.ConditionReconciling, metav1.ConditionTrue, o.Reason, o.Message)
	case o == nil && p.making != nil:
		w.Set(v1beta1.ConditionReconciling, metav1.ConditionTrue, p.d.Status.Reason, p.d.Status.Message)
	default:
		w.Remove(v1beta1.ConditionReconciling)
	}
}

// setStalled is for a report that waits until a person changes something.
func (p *planner) setStalled(w conditions.Writer) {
	if o := p.whatHinders(); o != nil && o.Stalled {
		w.Set(v1beta1.ConditionStalled, metav1.ConditionTrue, o.Reason, o.Message)
		return
	}
	w.Remove(v1beta1.ConditionStalled)
}

// setSuspended is for a report with spec.suspend.
func (p *planner) setSuspended(w conditions.Writer) {
	if p.spec.Suspend {
		w.Set(v1beta1.ConditionSuspended, metav1.ConditionTrue, p.d.Status.Reason, p.d.Status.Message)
		return
	}
	w.Remove(v1beta1.ConditionSuspended)
}

// describeLast gives the figures of the last report and when the next one is due.
func (p *planner) describeLast() string {
	l := p.d.Status.Last
	text := fmt.Sprintf("From %s to %s it cost %s", formatTime(l.From.Time), formatTime(l.To.Time), l.Total)
	if l.Waste != "" {
		text += fmt.Sprintf("; %s of it was wasted", l.Waste)
		if l.Recoverable != "" {
			text += ", and smaller requests would have saved " + l.Recoverable
		}
	}
	if l.Waste == "" && p.o.UseUnasked {
		text += "; what of it was used is not known, because " + UseUnasked
	}
	if l.Revision > 1 {
		text += fmt.Sprintf(" (revision %d)", l.Revision)
	}
	if !p.lostUntil().IsZero() {
		text += ". The ledger no longer has that report"
	}
	text += fmt.Sprintf(". The next report is due at %s.", formatTime(p.next))
	value := p.o.Report.Annotations[v1beta1.AnnotationReportUntil]
	if to, err := time.Parse(time.RFC3339, value); value != "" && (err != nil || to.After(p.now)) {
		text += fmt.Sprintf(" Annotation %s is %.40q: write a time in the past, for example 2026-11-16T09:00:00Z.",
			v1beta1.AnnotationReportUntil, value)
	}
	return text
}

// UseUnasked is why use and waste are unknown where no server is asked for them.
const UseUnasked = "the operator asks no Prometheus (prometheus.url of its configuration)"

// mailsKnown tells whether it is known who got the last report.
func (p *planner) mailsKnown() bool {
	return !p.o.Unknown && !p.o.MailUnknown && p.lostUntil().IsZero()
}

// sayMails counts the recipients who got the last report. If that is unknown, the status stays.
func (p *planner) sayMails() {
	st, m := &p.d.Status, p.mail
	switch {
	case !p.mailsKnown():
	case p.o.Mails == nil:
		st.Mailed, st.Refused, st.NotInDirectory = "", nil, 0
	default:
		st.Mailed, st.NotInDirectory = fmt.Sprintf("%d/%d", m.sent, m.of), int32(p.o.Mails.Missing)
		st.Refused = m.refused[:min(len(m.refused), v1beta1.ReportRefusedLimit)]
	}
}

// setMailed is for a report whose recipients all got it.
func (p *planner) setMailed(w conditions.Writer) {
	m := p.mail
	done := fmt.Sprintf("%d of %d mails were accepted", m.sent, m.of)
	switch {
	case !p.mailsKnown():
	case p.o.Mails == nil:
		w.Remove(v1beta1.ConditionMailed)
	case m.reason != "":
		w.Set(v1beta1.ConditionMailed, metav1.ConditionFalse, m.reason, fmt.Sprintf("%s. %s", done, m.message))
	case len(m.refused) > 0:
		w.Set(v1beta1.ConditionMailed, metav1.ConditionFalse, v1beta1.ReasonSomeRefused, fmt.Sprintf("%s; status.refused names %d "+
			"recipients whose server refused the mail for good, or whose delivery is uncertain. Correct the addresses.", done,
			len(m.refused)))
	default:
		w.Set(v1beta1.ConditionMailed, metav1.ConditionTrue, v1beta1.ReasonAllMailed, done+".")
	}
}

// setLedgerVolatile is for a report whose ledger goes with the operator's pod.
func (p *planner) setLedgerVolatile(w conditions.Writer) {
	if p.o.LedgerVolatile == "" {
		w.Remove(v1beta1.ConditionLedgerVolatile)
		return
	}
	w.Set(v1beta1.ConditionLedgerVolatile, metav1.ConditionTrue, v1beta1.ReasonLostWithPod,
		p.o.LedgerVolatile+" Reports, and what they are made from, are lost with it.")
}

// mostFaults is how many faults of the directory are named.
const mostFaults = 5

// setDirectoryFaulty is for a report whose directory has entries that were left out.
func (p *planner) setDirectoryFaulty(w conditions.Writer) {
	wrong := p.o.Directory
	if p.o.Unknown || p.o.MailUnknown {
		return
	}
	if len(wrong) == 0 {
		w.Remove(v1beta1.ConditionDirectoryFaulty)
		return
	}
	more := ""
	if n := len(wrong) - mostFaults; n > 0 {
		wrong, more = wrong[:mostFaults], fmt.Sprintf(" There are %d more.", n)
	}
	w.Set(v1beta1.ConditionDirectoryFaulty, metav1.ConditionTrue, v1beta1.ReasonEntriesLeftOut, fmt.Sprintf(
		"Tideline goes on without these entries of the directory: %s.%s", strings.Join(wrong, "; "), more))
}

func waitingReports(due []time.Time) string {
	if len(due) == 1 {
		return "The report that was due at " + formatTime(due[0]) + " waits for that"
	}
	return fmt.Sprintf("%d reports wait for that; the first was due at %s", len(due), formatTime(due[0]))
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
