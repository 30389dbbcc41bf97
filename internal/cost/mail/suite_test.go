package mail

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil/post"
)

const secret = post.Password

var monday = time.Date(2026, time.November, 23, 9, 0, 0, 0, time.UTC)

// servePost starts a server for mail.
func servePost(t *testing.T, o post.Options) *post.Server {
	t.Helper()
	p, err := post.Serve(t.Context(), o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Close)
	return p
}

// serverOf is the one that its Secret names, with other values.
func serverOf(g *WithT, p *post.Server, other ...string) Server {
	g.THelper()
	data := maps.Clone(p.Secret)
	for i := 0; i < len(other); i += 2 {
		data[other[i]] = []byte(other[i+1])
	}
	s, err := ParseServer(data, true)
	g.Expect(err).NotTo(HaveOccurred())
	s.Timeout = time.Minute
	return s
}

// message is one with all that messages may have.
func message(to string) Message {
	return Message{
		ID: MessageID("uid", monday, 1, delivery.Recipient{Kind: ledger.DeliverReport, Address: to}), From: post.From, To: to,
		Subject: "Kosten — 成本 week 47", Date: monday, Text: "Total ¥ 12.50\n.\nend", HTML: `<h1>Total</h1><img src="cid:chart.png">`,
		Pictures:    []File{{Name: "chart.png", Content: []byte("\x89PNG\r\n\x1a\n\x00")}},
		Attachments: []File{{Name: "report.csv", Type: "text/csv", Content: []byte("user,cost\n'=1+1,12.50\n")}},
	}
}

func composeMessage(d ledger.Delivery) (Message, error) { return message(d.Address), nil }

// openLedger opens one in a file, which is created if there is none.
func openLedger(t *testing.T, g *WithT, file string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{File: file})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func newLedger(t *testing.T, g *WithT) *ledger.Ledger {
	t.Helper()
	return openLedger(t, g, filepath.Join(t.TempDir(), "ledger.db"))
}

// week is the round of a week's report.
func week(addresses ...string) delivery.Round {
	r := delivery.Round{Report: "uid", Period: monday.Add(-9 * time.Hour), Next: monday.AddDate(0, 0, 7), Retry: time.Minute}
	for _, address := range addresses {
		r.Recipients = append(r.Recipients, delivery.Recipient{Kind: ledger.DeliverReport, Address: address})
	}
	return r
}

// turn plans and delivers, as the operator does again and again.
func turn(
	ctx context.Context, l *ledger.Ledger, book Ledger, to Server, r delivery.Round, now time.Time,
) (*delivery.Decision, error) {
	var err error
	if r.Deliveries, err = l.QueryDeliveries(ctx, r.Report, r.Period); err != nil {
		return nil, err
	}
	d := delivery.Plan(r, now)
	return d, Deliver(ctx, book, to, d, composeMessage, func() time.Time { return now })
}

// states are those of deliveries, by address.
func states(t *testing.T, g *WithT, l *ledger.Ledger, r delivery.Round) map[string]ledger.DeliveryState {
	t.Helper()
	deliveries, err := l.QueryDeliveries(t.Context(), r.Report, r.Period)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]ledger.DeliveryState{}
	for _, d := range deliveries {
		g.Expect(d.Error).NotTo(ContainSubstring(secret[:4]))
		found[d.Address] = d.State
	}
	return found
}
