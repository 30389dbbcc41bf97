package ledger

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// kept is the report of the week that ended on a day.
func kept(to string, revision int) KeptReport {
	return KeptReport{
		Report: "report", Name: "weekly", From: at(to).AddDate(0, 0, -7), To: at(to), Revision: revision,
		MadeAt: at(to).AddDate(0, 0, 1), Summary: `{"total":"1"}`,
	}
}

func TestReportsAreNeverChanged(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx, first := t.Context(), kept("16 09:00:00", 1)
		page := strings.Repeat("<p>日本 \x00</p>", 100_000)
		g.Expect(l.KeepReport(ctx, first, map[string]string{"report.html": page, "report.csv": "a,b"})).To(Succeed())
		again := first
		again.Summary = "other"
		g.Expect(l.KeepReport(ctx, again, map[string]string{"report.csv": "c,d", "report.json": "{}"})).To(Succeed(), "it is repeated")
		second := kept("16 09:00:00", 2)
		g.Expect(l.KeepReport(ctx, second, map[string]string{"report.csv": "e,f"})).To(Succeed())

		g.Expect(l.QueryReports(ctx, "report", "")).To(HaveExactElements(second, first))
		g.Expect(l.QueryReports(ctx, "", "weekly")).To(HaveExactElements(second, first))
		g.Expect(l.QueryReports(ctx, "", "monthly")).To(BeEmpty())
		for r, want := range map[*KeptReport]string{&first: "a,b", &second: "e,f"} {
			content, there, err := l.ReportFile(ctx, *r, "report.csv")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(there).To(BeTrue())
			g.Expect(content).To(Equal(want))
		}
		content, _, err := l.ReportFile(ctx, first, "report.html")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(content).To(Equal(strings.ReplaceAll(page, "\x00", "\uFFFD")))
		_, there, err := l.ReportFile(ctx, first, "report.json")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(there).To(BeFalse(), "files come with their report, or not at all")
	})
}

func TestOldReportsAreForgotten(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		for _, to := range []string{"09 09:00:00", "16 09:00:00", "23 09:00:00"} {
			g.Expect(l.KeepReport(ctx, kept(to, 1), map[string]string{"report.csv": to})).To(Succeed())
		}
		other := kept("09 09:00:00", 1)
		other.Report = "other"
		g.Expect(l.KeepReport(ctx, other, nil)).To(Succeed())
		g.Expect(l.ForgetReports(ctx, "report", at("16 09:00:00"))).To(BeEquivalentTo(1))
		g.Expect(l.QueryReports(ctx, "report", "")).To(HaveLen(2))
		g.Expect(l.QueryReports(ctx, "other", "")).To(HaveLen(1), "another one's")
		_, there, err := l.ReportFile(ctx, kept("09 09:00:00", 1), "report.csv")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(there).To(BeFalse())

		_, err = l.PruneBefore(ctx, at("20 00:00:00"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.QueryReports(ctx, "report", "")).To(HaveExactElements(kept("23 09:00:00", 1)),
			"no longer than all that is in the ledger")
	})
}

func TestReportsThatAreNone(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		for _, change := range []func(*KeptReport){
			func(r *KeptReport) { r.Report = "" }, func(r *KeptReport) { r.Name = "" }, func(r *KeptReport) { r.Revision = 0 },
			func(r *KeptReport) { r.From = r.To },
		} {
			r := kept("16 09:00:00", 1)
			change(&r)
			g.Expect(l.KeepReport(t.Context(), r, nil)).To(MatchError(ErrInvalid))
		}
	})
}
