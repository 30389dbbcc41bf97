package costreport

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// mailsOf are those of a report until Monday the 9th: one recipient for each state, which their mail came to an hour later; none
// was begun for those whose state is empty.
func mailsOf(states ...ledger.DeliveryState) *Mails {
	m := &Mails{Round: delivery.Round{Report: "u", Period: at("09 09:00"), Next: at("16 09:00"), Retry: time.Minute}}
	for i, state := range states {
		to := delivery.Recipient{Kind: ledger.DeliverReport, Address: fmt.Sprintf("%c@example.com", 'a'+i)}
		m.Round.Recipients = append(m.Round.Recipients, to)
		if state != "" {
			m.Round.Deliveries = append(m.Round.Deliveries, ledger.Delivery{
				Report: "u", Period: m.Round.Period, Kind: to.Kind, Address: to.Address, State: state, At: at("09 10:00"), Tries: 1,
				Error: "no answer",
			})
		}
	}
	return m
}

func TestWhatAReportSaysOfMails(t *testing.T) {
	const sent, down, held = ledger.DeliverySent, ledger.DeliveryDeferred, ledger.DeliveryHeld
	noServer := mailsOf("", sent)
	noServer.Problem = "There is no Secret smtp."
	settled := mailsOf(sent, sent)
	settled.Problem = noServer.Problem
	bad := mailsOf(sent)
	bad.Bad, bad.Missing = []string{`"x" is not an address`}, 2
	for name, c := range map[string]struct {
		mails                 *Mails
		now                   string
		mailed, reason, words string
		again                 string
		begin                 bool
		refused               []string
	}{
		"all were accepted": {mailsOf(sent, sent, sent), "09 10:00", "3/3", "AllMailed", "3 of 3 mails were accepted.", "", false, nil},
		"two were not": {mailsOf(sent, ledger.DeliveryRefused, ledger.DeliverySending), "09 10:00", "1/3", "SomeRefused",
			"1 of 3 mails were accepted; status.refused names 2 recipients whose server refused the mail for good, or whose " +
				"delivery is uncertain. Correct the addresses.", "", false, []string{"b@example.com (refused)",
				"c@example.com (unconfirmed)"}},
		"one has no address": {bad, "09 10:00", "1/2", "SomeRefused", "1 of 2 mails were accepted; status.refused names 1 " +
			"recipients whose server refused the mail for good, or whose delivery is uncertain. Correct the addresses.", "", false,
			bad.Bad},
		"being sent": {mailsOf("", sent, ""), "09 10:00", "1/3", "Mailing", "1 of 3 mails were accepted. 2 are being sent.", "", true,
			nil},
		"the server is down": {mailsOf(down, sent), "09 10:00", "1/2", "MailServerUnavailable", "1 of 2 mails were accepted. No " +
			"answer. The next try is at 2026-11-09T10:01:00Z.", "09 10:01", false, nil},
		"somebody must act": {mailsOf(held, down), "09 10:00", "0/2", "InvalidMailServer", "0 of 2 mails were accepted. No answer. " +
			"The next try is at 2026-11-09T10:01:00Z.", "09 10:01", false, nil},
		"no server": {noServer, "09 10:00", "1/2", "InvalidMailServer", "1 of 2 mails were accepted. There is no Secret smtp.",
			"09 10:01", false, nil},
		"no server, and nothing to send": {settled, "09 10:00", "2/2", "AllMailed", "2 of 2 mails were accepted.", "", false, nil},
		"no recipients":                  {nil, "09 10:00", "", "", "", "", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := planned(Observed{Report: weekly(), Kept: []Kept{kept("09 09:00", 1)}, Mails: c.mails}, at(c.now))
			g.Expect(d.Status.Mailed).To(Equal(c.mailed))
			if c.reason == "" {
				g.Expect(d.Status.Conditions).NotTo(ContainElement(HaveField("Type", "Mailed")))
				g.Expect(d.Mails).To(BeNil())
				return
			}
			g.Expect(d.Status.Conditions).To(ContainElement(And(HaveField("Type", "Mailed"), HaveField("Reason", c.reason),
				HaveField("Message", c.words))))
			g.Expect(d.Status.Refused).To(Equal(c.refused))
			g.Expect(d.Status.NotInDirectory).To(BeEquivalentTo(c.mails.Missing))
			g.Expect([]any{d.Mails.Begin, d.Mails.Bad}).To(Equal([]any{c.begin, len(c.mails.Bad)}))
			if c.again != "" {
				g.Expect(d.Again).To(BeTemporally("==", at(c.again)))
			} else {
				g.Expect(d.Again).To(BeTemporally("==", at("16 09:00")))
			}
		})
	}
}

func TestMailsOfASuspendedReportAreTriedAgain(t *testing.T) {
	g := NewWithT(t)
	r := weekly(func(r *v1beta1.CostReport) { r.Spec.Suspend = true })
	o := Observed{Report: r, Kept: []Kept{kept("09 09:00", 1)}, Mails: mailsOf(ledger.DeliveryDeferred)}
	g.Expect(planned(o, at("09 10:00")).Again).To(BeTemporally("==", at("09 10:01")))
	g.Expect(planned(o, at("09 10:01")).Mails.Begin).To(BeTrue())
}

// What is wrong in the directory is left out, and somebody must be told.
func TestWhatIsWrongInTheDirectoryIsTold(t *testing.T) {
	g := NewWithT(t)
	o := Observed{Report: weekly(), Kept: []Kept{kept("09 09:00", 1)}}
	said := func() *metav1.Condition {
		o.Report.Status = planned(o, at("10 00:00")).Status
		return meta.FindStatusCondition(o.Report.Status.Conditions, v1beta1.ConditionDirectoryFaulty)
	}
	g.Expect(said()).To(BeNil())
	o.Directory = []string{`user "me": leader "me" is that user`, `user "one": mail "x" is no address`}
	g.Expect(said()).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1beta1.ReasonEntriesLeftOut),
		HaveField("Message", `Tideline goes on without these entries of the directory: user "me": leader "me" is that user; `+
			`user "one": mail "x" is no address.`))))
	was := said()
	o.Directory, o.MailUnknown = nil, true
	g.Expect(said()).To(Equal(was), "while the directory cannot be read, what was known of it stays")
	o.MailUnknown, o.Directory = false, strings.Split("a b c d e f g", " ")
	g.Expect(said().Message).To(HaveSuffix("a; b; c; d; e. There are 2 more."))
	o.Directory = nil
	g.Expect(said()).To(BeNil())
}

// Without a directory the recipients are unknown, and the status of mails stays.
func TestUnknownMails(t *testing.T) {
	g := NewWithT(t)
	o := Observed{Report: weekly(), Kept: []Kept{kept("09 09:00", 1)}}
	o.Mails = mailsOf(ledger.DeliverySent, ledger.DeliverySent, ledger.DeliveryRefused)
	o.Mails.Missing = 1
	o.Report.Status, o.Mails, o.MailUnknown = planned(o, at("10 00:00")).Status, nil, true
	o.Obstacle = &Obstacle{Reason: v1beta1.ReasonInvalidDirectory, Message: "There is none.", Stalled: true}
	st := planned(o, at("10 01:00")).Status
	g.Expect(st.Reason).To(Equal(v1beta1.ReasonInvalidDirectory))
	g.Expect([]any{st.Mailed, st.NotInDirectory, st.Refused}).To(Equal([]any{"2/3", int32(1), []string{"c@example.com (refused)"}}))
	g.Expect(st.Conditions).To(ContainElement(And(HaveField("Type", v1beta1.ConditionMailed), HaveField("Reason", "SomeRefused"))))
}

func TestUntilWhenAReportIsMailed(t *testing.T) {
	g := NewWithT(t)
	spec, due, asked := &weekly().Spec, kept("09 09:00", 1), askedFor("09 00:00")
	due.MadeAt = at("16 10:00")
	g.Expect(MailedUntil(spec, &due)).To(BeTemporally("==", at("16 09:00")), "then the next one is")
	asked.MadeAt = at("09 10:00")
	g.Expect(MailedUntil(spec, &asked)).To(BeTemporally("==", at("16 09:00")),
		"one was due since its period ended, before anybody asked")
}
