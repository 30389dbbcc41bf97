package ledger

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhoHeldWhatAtATime(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		queue := func(name string) func(*Stay) { return func(s *Stay) { s.Queue, s.Profile = name, name } }
		long := stay("long", "12 12:00:00", "16 12:00:00", finally(Succeeded))
		open := stay("open", "14 10:00:00", "14 11:00:00", by("bob"))
		before := stay("before", "14 08:00:00", "14 12:00:00", finally(Failed))
		record(ctx, g, l, open, long, before, stay("after", "14 12:00:01", "14 13:00:00"),
			stay("rec", "14 08:00:00", "14 13:00:00", queue("rec")))
		held := func(q HeldQuery) (uids []string, more bool) {
			stays, more, err := l.HeldAt(ctx, q)
			g.Expect(err).NotTo(HaveOccurred())
			for _, s := range stays {
				uids = append(uids, s.UID)
			}
			return uids, more
		}
		for _, c := range []struct {
			q    HeldQuery
			uids []string
			more bool
		}{
			{HeldQuery{At: at("14 12:00:00"), Queue: "ads"}, []string{"long", "open"}, false},
			{HeldQuery{At: at("14 11:59:59"), Queue: "ads", Profile: "ads"}, []string{"long", "before", "open"}, false},
			{HeldQuery{At: at("14 12:00:00"), Profile: "rec"}, []string{"rec"}, false},
			{HeldQuery{At: at("14 12:00:00")}, []string{"long", "rec", "open"}, false},
			{HeldQuery{At: at("14 12:00:00"), Limit: 2}, []string{"long", "rec"}, true},
			{HeldQuery{At: at("12 12:00:00")}, []string{"long"}, false},
			{HeldQuery{At: at("12 11:59:59")}, nil, false},
			{HeldQuery{At: at("16 12:00:00")}, nil, false},
			{HeldQuery{At: at("14 12:00:00"), Queue: "' OR 1=1 --\x00"}, nil, false},
		} {
			uids, more := held(c.q)
			g.Expect(uids).To(ConsistOf(c.uids), "%+v", c.q)
			g.Expect(more).To(Equal(c.more))
		}
		stays, _, err := l.HeldAt(ctx, HeldQuery{At: at("14 12:00:00"), Queue: "ads"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stays).To(Equal([]Stay{long, open}), "whole, in the order in which they began")
	})
}

func TestPodsOfARun(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		is := func(change func(*Pod)) func(*Stay) {
			return func(s *Stay) {
				s.Run = "1-1"
				change(&s.Pod)
			}
		}
		run := is(func(*Pod) {})
		long := stay("long", "12 12:00:00", "16 12:00:00", finally(Succeeded), run)
		open := stay("open", "14 10:00:00", "14 11:00:00", run)
		record(ctx, g, l, long, open, stay("before", "14 08:00:00", "14 10:30:00", finally(Failed), run),
			stay("of another run", "14 10:00:00", "14 12:00:00", is(func(p *Pod) { p.Run = "1-2" })),
			stay("of another task", "16 10:00:00", "16 12:00:00", is(func(p *Pod) { p.Task = "other" })))
		of := func(from, to string) (found []string) {
			stays, err := l.RunStays(ctx, at(from), at(to), []string{"none", "1-1", "1-1"})
			g.Expect(err).NotTo(HaveOccurred())
			for _, s := range stays {
				g.Expect(s.Resources).To(Equal(long.Resources))
				found = append(found, s.UID+s.Begin.Format(" 02 15:04")+s.End.Format(" 02 15:04"))
			}
			return found
		}
		g.Expect(of("14 10:30:00", "14 12:00:00")).To(Equal([]string{"long 14 10:30 14 12:00", "open 14 10:30 14 11:00"}))
		g.Expect(of("13 12:00:00", "15 12:00:00")).To(Equal([]string{
			"long 13 12:00 15 12:00", "before 14 08:00 14 10:30", "open 14 10:00 14 11:00",
		}))
		g.Expect(of("14 12:00:00", "14 12:00:00")).To(BeEmpty())
		g.Expect(of("17 12:00:00", "12 12:00:00")).To(BeEmpty())
		g.Expect(of("16 11:00:00", "16 12:00:00")).To(Equal([]string{
			"long 16 11:00 16 12:00", "of another task 16 11:00 16 12:00",
		}), "tasks are told apart by whoever asks")
	})
}
