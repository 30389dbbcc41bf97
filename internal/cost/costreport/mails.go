package costreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/platform/schedule"
)

// Mails is what there is of the mails of the last report.
type Mails struct {
	// Round is who gets one, and what became of each so far.
	Round delivery.Round
	// Bad says which of spec.mail.to are no addresses.
	Bad []string
	// Missing counts users of the report that are not in the directory.
	Missing int
	// Problem is why none can be sent, in words for users; empty for nothing. It counts while one is to be sent.
	Problem string
}

// MailsDecision is what becomes of the mails of the last report.
type MailsDecision struct {
	*delivery.Decision

	// Begin says that those in Send are to be sent now.
	Begin bool
	// Bad counts recipients that have no address.
	Bad int
	// Problem is why those in Send cannot be sent, in words for users; empty for nothing.
	Problem string
}

// mailing is what the status says of mails.
type mailing struct {
	// sent of so many mails were accepted. refused are the recipients who will not get one, or whose delivery is uncertain.
	sent, of int
	refused  []string
	// reason and message say why some are not sent yet; empty where all are done.
	reason, message string
	// again is when the next is to be tried; zero for none.
	again time.Time
}

// planMails decides who gets a mail now, and what the status says of those that do not.
func (p *planner) planMails() {
	m := p.o.Mails
	if m == nil {
		return
	}
	d := &MailsDecision{Decision: delivery.Plan(m.Round, p.now), Bad: len(m.Bad)}
	p.mail = mailing{
		sent: d.Sent, of: len(m.Round.Recipients) + len(m.Bad), refused: slices.Concat(m.Bad, d.NotSent()), again: d.Retry,
	}
	if len(d.Send) > 0 && m.Problem != "" {
		d.Problem, p.mail.again = m.Problem, p.now.Add(again)
	}
	p.mail.reason, p.mail.message = d.whyUnfinished()
	p.d.Mails = d
}

// whyUnfinished is why some mails are not sent yet; empty if all are done.
func (d *MailsDecision) whyUnfinished() (reason, message string) {
	retry := ""
	if !d.Retry.IsZero() {
		retry = " The next try is at " + formatTime(d.Retry) + "."
	}
	switch {
	case d.Problem != "":
		return v1beta1.ReasonInvalidMailServer, d.Problem
	case len(d.Send) > 0:
		return v1beta1.ReasonMailing, fmt.Sprintf("%d are being sent.", len(d.Send))
	case len(d.Held) > 0:
		return v1beta1.ReasonInvalidMailServer, asSentence(d.Held[0].Error) + retry
	case len(d.Waiting) > 0:
		return v1beta1.ReasonMailServerUnavailable, asSentence(d.Waiting[0].Error) + retry
	}
	return "", ""
}

func asSentence(said string) string {
	if said == "" {
		return ""
	}
	return strings.ToUpper(said[:1]) + strings.TrimSuffix(said[1:], ".") + "."
}

// MailedUntil is until when a report is mailed: until the next one is due. For a report that a user asked for, whose period
// may be long over, that counts from when it was made. It is zero for no end.
func MailedUntil(spec *v1beta1.CostReportSpec, k *Kept) time.Time {
	line, err := schedule.Parse(spec.Schedule, spec.TimeZone)
	if err != nil {
		return time.Time{}
	}
	if k.Asked {
		return line.Next(k.MadeAt)
	}
	return line.Next(k.To)
}
