package ledger

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestDecisions(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		decision := func(n int, with ...func(*Decision)) Decision {
			d := Decision{
				At: at("14 22:00:00").Add(time.Duration(n) * time.Microsecond), Kind: "Waited", Namespace: "ads", Name: "ctr", UID: "u",
				Attempt: "1", Reason: "QuotaExceeded", Message: fmt.Sprint("message ", n), Other: "ads/launch",
				Figures: map[string]string{"used": "8", "cap": "8"},
			}
			for _, f := range with {
				f(&d)
			}
			return d
		}
		named := func(name string) func(*Decision) { return func(d *Decision) { d.Name = name } }
		elsewhere := func(d *Decision) { d.Namespace = "rec" }
		approved := func(d *Decision) { d.Kind, d.Figures = "Approved", nil }
		all := []Decision{
			decision(5), decision(1), decision(3, named("b")), decision(3, named("a")), decision(4, elsewhere), decision(6, approved),
		}
		g.Expect(l.RecordEntries(ctx, Entries{Decisions: all[:4]})).To(Succeed())
		g.Expect(l.RecordEntries(ctx, Entries{Decisions: append(all, all...)})).To(Succeed())
		sorted := []Decision{all[1], all[2], all[3], all[4], all[0], all[5]}
		ask := func(q DecisionQuery) []Decision {
			found, err := l.QueryDecisions(ctx, q)
			g.Expect(err).NotTo(HaveOccurred())
			return found
		}
		g.Expect(ask(DecisionQuery{})).To(Equal(sorted), "once each, newest last, those of one moment as they came")
		g.Expect(ask(DecisionQuery{Namespace: "ads", Name: "ctr"})).To(Equal([]Decision{all[1], all[0], all[5]}))
		g.Expect(ask(DecisionQuery{Namespace: "rec"})).To(Equal([]Decision{all[4]}))
		g.Expect(ask(DecisionQuery{From: all[2].At, To: all[0].At})).To(Equal(sorted[1:4]))
		g.Expect(ask(DecisionQuery{Kinds: []string{"Approved", "Waited"}})).To(HaveLen(6))
		g.Expect(ask(DecisionQuery{Namespace: "ads", Kinds: []string{"Approved"}})).To(Equal([]Decision{all[5]}))
		g.Expect(ask(DecisionQuery{Limit: 2})).To(Equal(sorted[4:]), "the newest")
		g.Expect(ask(DecisionQuery{Name: "' OR 1=1 --"})).To(BeEmpty())
		g.Expect(ask(DecisionQuery{Limit: -1})).To(HaveLen(6))
		each := func(q DecisionQuery) (found []Decision) {
			g.Expect(l.EachDecision(ctx, q, func(d *Decision) { found = append(found, *d) })).To(Succeed())
			return found
		}
		g.Expect(each(DecisionQuery{Limit: 1})).To(Equal(sorted), "all of them")
		g.Expect(each(DecisionQuery{Kinds: []string{"Approved"}})).To(Equal([]Decision{all[5]}))
	})
}

func TestDecisionsWithAnIDAreKnownByIt(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx, d := t.Context(), Decision{ID: "1", At: at("14 22:00:00"), Kind: "Waited", Name: "ctr", UID: "u", Message: "first"}
		other := func(change func(*Decision)) Decision {
			o := d
			o.Message = "second"
			change(&o)
			return o
		}
		g.Expect(l.RecordEntries(ctx, Entries{Decisions: []Decision{d}})).To(Succeed())
		g.Expect(l.RecordEntries(ctx, Entries{Decisions: []Decision{
			other(func(o *Decision) { o.At = at("15 22:00:00") }), other(func(o *Decision) { o.ID = "2" }),
			other(func(o *Decision) { o.UID = "v" }), other(func(o *Decision) { o.Kind = "Ran" }),
		}})).To(Succeed())
		found, err := l.QueryDecisions(ctx, DecisionQuery{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveLen(4))
		g.Expect(found[0].Message).To(Equal("first"))
	})
}

func TestPrune(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		long := stay("long", "12 12:00:00", "16 12:00:00", by("bob"))
		g.Expect(l.RecordEntries(ctx, Entries{
			Stays: []Stay{
				long, stay("old", "12 12:00:00", "14 00:00:00", finally(Succeeded), by("carol")),
				stay("both", "13 12:00:00", "14 12:00:00", finally(Lost), uncertain),
				stay("new", "14 00:00:00", "14 01:00:00", finally(Failed)),
			},
			Decisions: []Decision{{At: at("13 23:59:59"), Kind: "Waited"}, {At: at("14 00:00:00"), Kind: "Waited"}},
		})).To(Succeed())
		for _, want := range []int64{4, 0} {
			pruned, err := l.PruneBefore(ctx, at("14 18:00:00"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pruned).To(Equal(want), "two days of old, one of both, and a decision")
		}
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day, User)).To(Equal(map[string][2]int64{
			"2026-11-12 bob": seconds(43200), "2026-11-13 bob": seconds(86400), "2026-11-14 bob": seconds(86400),
			"2026-11-15 bob": seconds(86400), "2026-11-16 bob": seconds(43200), "2026-11-14 alice": {43200 + 3600, 43200},
		}))
		g.Expect(l.OpenStays(ctx)).To(Equal([]Stay{long}), "whole")
		found, err := l.QueryDecisions(ctx, DecisionQuery{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveLen(1))
		var n int
		g.Expect(l.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM series").Scan(&n)).To(Succeed())
		g.Expect(n).To(Equal(2), "nothing is left of carol's")

		long.Final, long.Outcome, long.End = true, Failed, at("13 06:00:00")
		record(ctx, g, l, long, stay("both", "13 12:00:00", "15 12:00:00", finally(Succeeded)))
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day, User)).To(Equal(map[string][2]int64{
			"2026-11-12 bob": seconds(43200), "2026-11-13 bob": seconds(6 * 3600), "2026-11-14 alice": {43200 + 3600, 43200},
		}))
	})
}
