package costreport

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
)

// say writes what the status says.
func (p *planner) say() {
	st := &p.d.Status
	st.NextTime = nil
	if p.valid && !p.spec.Suspend {
		st.NextTime = timeOf(p.next)
	}
	if last := p.last(); last != nil && p.lost().IsZero() {
		st.Last = last.Summary.DeepCopy()
	}
	w := conditions.Writer{List: &st.Conditions, Generation: p.o.Report.Generation, Now: metav1.NewTime(p.now).Rfc3339Copy()}
	p.sayReady(w)
	p.sayMail(w)
	w.Settle(p.o.Report.Status.Conditions)
}

// sayReady says whether reports can be made.
func (p *planner) sayReady(w conditions.Writer) {
	w.Remove(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionSuspended)
	st, ready := &p.d.Status, metav1.ConditionTrue
	switch o := p.obstacle; {
	case p.spec.Suspend:
		st.Reason = v1alpha1.ReasonSuspended
		st.Message = "No report is made while spec.suspend is true; those that were due meanwhile are made afterwards."
		w.Set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, st.Reason, st.Message)
	case o != nil:
		ready, st.Reason, st.Message = metav1.ConditionFalse, o.Reason, o.Message
		if len(p.due) > 0 {
			st.Message += fmt.Sprintf(" %s.", waiting(p.due))
		}
		kind := v1alpha1.ConditionReconciling
		if o.Stalled {
			kind = v1alpha1.ConditionStalled
		}
		w.Set(kind, metav1.ConditionTrue, o.Reason, o.Message)
	case p.making != nil:
		st.Reason = v1alpha1.ReasonReportDue
		st.Message = fmt.Sprintf("The report of %s to %s is being made.", said(p.making.Period.From), said(p.making.Period.To))
		w.Set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, st.Reason, st.Message)
	case st.Last == nil:
		st.Reason = v1alpha1.ReasonReportScheduled
		st.Message = fmt.Sprintf("The first report is due at %s. Annotation %s makes one of the time until then.", said(p.next),
			v1alpha1.AnnotationReportUntil)
	default:
		st.Reason, st.Message = v1alpha1.ReasonReportMade, p.made()
	}
	w.Set(v1alpha1.ConditionReady, ready, st.Reason, st.Message)
}

// made says what the last report said.
func (p *planner) made() string {
	l := p.d.Status.Last
	text := fmt.Sprintf("From %s to %s it cost %s", said(l.From.Time), said(l.To.Time), l.Total)
	if l.Waste != "" {
		text += fmt.Sprintf(", of which %s was not used", l.Waste)
		if l.Recoverable != "" {
			text += fmt.Sprintf(" and %s could have been saved", l.Recoverable)
		}
	}
	if l.Revision > 1 {
		text += fmt.Sprintf(" (revision %d)", l.Revision)
	}
	if !p.lost().IsZero() {
		text += ". The ledger does not have that report any more"
	}
	text += fmt.Sprintf(". The next report is due at %s.", said(p.next))
	value := p.o.Report.Annotations[v1alpha1.AnnotationReportUntil]
	if to, err := time.Parse(time.RFC3339, value); value != "" && (err != nil || to.After(p.now)) {
		text += fmt.Sprintf(" Annotation %s is %.40q: write a time in the past, as in 2026-11-16T09:00:00Z.",
			v1alpha1.AnnotationReportUntil, value)
	}
	return text
}

// sayMail says who got the last report.
func (p *planner) sayMail(w conditions.Writer) {
	st, m := &p.d.Status, p.o.Mail
	if p.o.Unknown || p.o.MailUnknown || !p.lost().IsZero() {
		return
	}
	if m == nil {
		st.Mailed, st.Refused, st.NotInDirectory = "", nil, 0
		w.Remove(v1alpha1.ConditionMailed)
		return
	}
	st.Mailed, st.NotInDirectory = fmt.Sprintf("%d/%d", m.Sent, m.Of), int32(m.Missing)
	st.Refused = m.Refused[:min(len(m.Refused), v1alpha1.ReportRefusedLimit)]
	done := fmt.Sprintf("%d of %d mails were accepted", m.Sent, m.Of)
	switch {
	case m.Reason != "":
		w.Set(v1alpha1.ConditionMailed, metav1.ConditionFalse, m.Reason, fmt.Sprintf("%s. %s", done, m.Message))
	case len(m.Refused) > 0:
		w.Set(v1alpha1.ConditionMailed, metav1.ConditionFalse, v1alpha1.ReasonSomeRefused, fmt.Sprintf("%s; status.refused names %d "+
			"that were refused for good, or of which nobody knows whether they arrived. Correct the addresses.", done, len(m.Refused)))
	default:
		w.Set(v1alpha1.ConditionMailed, metav1.ConditionTrue, v1alpha1.ReasonAllMailed, done+".")
	}
}

// waiting says which reports wait.
func waiting(due []time.Time) string {
	if len(due) == 1 {
		return "The report that was due at " + said(due[0]) + " waits for that"
	}
	return fmt.Sprintf("%d reports wait for that, the first of which was due at %s", len(due), said(due[0]))
}

func said(t time.Time) string { return t.UTC().Format(time.RFC3339) }
