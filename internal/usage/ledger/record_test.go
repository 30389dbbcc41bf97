package ledger

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWhatIsRecordedTwiceCountsOnce(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		s := stay("a", "14 22:00:00", "15 03:00:00", finally(Succeeded))
		record(ctx, g, l, s)
		record(ctx, g, l, s, s)
		record(ctx, g, l, stay("a", "14 21:00:00", "15 04:00:00", finally(Failed)))
		record(ctx, g, l, stay("a", "14 22:00:00", "16 03:00:00"))
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day, Task)).To(Equal(map[string][2]int64{
			"2026-11-14 ctr": seconds(2 * 3600), "2026-11-15 ctr": seconds(3 * 3600),
		}), "the first end that is known for good stays, and so does the first begin")
		g.Expect(l.OpenStays(ctx)).To(BeEmpty())
	})
}

func TestStaysGrow(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		for _, end := range []string{"14 22:10:00", "14 22:20:00", "14 22:15:00", "15 00:00:00", "17 01:00:00", "16 01:00:00"} {
			record(ctx, g, l, stay("a", "14 22:00:00", end))
		}
		record(ctx, g, l, stay("a", "14 20:00:00", "17 01:00:00")) // a begin that moves is not believed
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day)).To(Equal(map[string][2]int64{
			"2026-11-14": seconds(2 * 3600), "2026-11-15": seconds(86400), "2026-11-16": seconds(86400), "2026-11-17": seconds(3600),
		}))
		g.Expect(l.OpenStays(ctx)).To(Equal([]Stay{stay("a", "14 22:00:00", "17 01:00:00")}), "whole, as it was given")
	})
}

// The clock of who said that a pod still ran was ahead of who says when it ended.
func TestTheEndThatIsKnownForGoodWins(t *testing.T) {
	for _, c := range []struct {
		end  string
		want map[string][2]int64
	}{
		{"17 00:30:00", map[string][2]int64{
			"2026-11-14": seconds(7200), "2026-11-15": seconds(86400), "2026-11-16": seconds(86400), "2026-11-17": seconds(1800),
		}},
		{"17 00:00:00", map[string][2]int64{
			"2026-11-14": seconds(7200), "2026-11-15": seconds(86400), "2026-11-16": seconds(86400),
		}},
		{"15 01:00:00", map[string][2]int64{"2026-11-14": seconds(7200), "2026-11-15": seconds(3600)}},
		{"14 22:00:01", map[string][2]int64{"2026-11-14": seconds(1)}},
		{"13 12:00:00", map[string][2]int64{}},
		{"17 05:00:00", map[string][2]int64{
			"2026-11-14": seconds(7200), "2026-11-15": seconds(86400), "2026-11-16": seconds(86400), "2026-11-17": seconds(5 * 3600),
		}},
	} {
		t.Run(c.end, func(t *testing.T) {
			ledgers(t, func(g *WithT, l *Ledger) {
				ctx := t.Context()
				record(ctx, g, l, stay("a", "14 22:00:00", "14 23:00:00"))
				record(ctx, g, l, stay("a", "14 22:00:00", "17 01:00:00"))
				record(ctx, g, l, stay("a", "14 22:00:00", c.end, finally(Failed)))
				record(ctx, g, l, stay("a", "14 22:00:00", "18 01:00:00"))
				g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day)).To(Equal(c.want))
				g.Expect(l.OpenStays(ctx)).To(BeEmpty())
			})
		})
	}
}

func TestClockThatStepsWithinOneRecord(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l, stay("a", "14 22:00:00", "16 01:00:00"))
		record(ctx, g, l, stay("a", "14 22:00:00", "18 01:00:00"), stay("a", "14 22:00:00", "15 00:00:05", finally(Deleted)),
			stay("b", "14 22:00:00", "18 01:00:00"), stay("b", "14 22:00:00", "14 22:00:05", finally(Deleted)))
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day)).To(Equal(map[string][2]int64{
			"2026-11-14": seconds(7200 + 5), "2026-11-15": seconds(5),
		}))
	})
}

func TestUncertainEnds(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l, stay("a", "14 23:00:00", "15 02:00:00", finally(Lost), uncertain))
		record(ctx, g, l, stay("b", "14 23:00:00", "15 03:00:00", uncertain)) // not final: it is seen again
		record(ctx, g, l, stay("c", "14 23:00:00", "14 23:00:30", finally(Succeeded)))
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day)).To(Equal(map[string][2]int64{
			"2026-11-14": seconds(2*3600 + 30), "2026-11-15": {5 * 3600, 2 * 3600},
		}))
		g.Expect(gpuSeconds(ctx, g, l, "15 01:00:00", "15 04:00:00")).To(Equal(map[string][2]int64{"": {3 * 3600, 3600}}))
	})
}

// A day keeps what was said of the pod when that day was recorded first, so that sums can be told to the end.
func TestWhatAPodIsStaysForADay(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l, stay("a", "14 22:00:00", "14 23:00:00"))
		record(ctx, g, l, stay("a", "14 22:00:00", "15 01:00:00", by("bob")))
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", User)).To(Equal(map[string][2]int64{
			"alice": seconds(7200), "bob": seconds(3600),
		}))
		record(ctx, g, l, stay("a", "14 22:00:00", "14 22:00:01", by("carol"), finally(Failed)))
		g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", User)).To(Equal(map[string][2]int64{"alice": seconds(1)}))
	})
}

func TestEntriesAreRecordedTogetherOrNotAtAll(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		good := stay("a", "14 22:00:00", "14 23:00:00")
		for name, bad := range map[string]Entries{
			"no UID": {Stays: []Stay{good, stay("", "14 22:00:00", "14 23:00:00")}},
			"no times": {Stays: []Stay{good, stay("b", "14 22:00:00", "14 23:00:00", func(s *Stay) {
				s.Begin, s.End = time.Time{}, time.Time{}
			})}},
			"no end ever": {Stays: []Stay{good, stay("b", "14 22:00:00", "14 23:00:00", func(s *Stay) {
				s.End = s.End.AddDate(20, 0, 0)
			})}},
			"no time when": {Stays: []Stay{good}, Decisions: []Decision{{Kind: "Waited"}}},
		} {
			g.Expect(l.RecordEntries(ctx, bad)).To(MatchError(ErrInvalid), name)
		}
		g.Expect(l.OpenStays(ctx)).To(BeEmpty())
		g.Expect(l.RecordEntries(ctx, Entries{})).To(Succeed())
	})
}

// What users write cannot make an entry that a database does not take.
func TestTextsOfUsers(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		long := string(make([]byte, 20_000)) + "\xff' OR 1=1; DROP TABLE pod_day; --"
		record(ctx, g, l, stay("a", "14 22:00:00", "14 23:00:00", by(long), func(s *Stay) { s.Resources[long] = 5 }))
		decision := Decision{At: at("14 22:00:00"), Kind: long, Name: long, Message: long}
		g.Expect(l.RecordEntries(ctx, Entries{Decisions: []Decision{decision}})).To(Succeed())
		list, err := l.QueryUsage(ctx, Query{From: at("14 00:00:00"), To: at("15 00:00:00"), Where: map[Field][]string{User: {long}}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(3))
		g.Expect(l.QueryDecisions(ctx, DecisionQuery{Name: long, Kinds: []string{long}})).To(HaveLen(1))
	})
}

func TestReadersWhileWriting(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil {
					found := gpuSeconds(t.Context(), g, l, "14 00:00:00", "15 12:00:00", Day)
					g.Expect(found["2026-11-14"][0]).To(Equal(found["2026-11-15"][0]), "one state of the ledger")
				}
			})
		}
		var writers sync.WaitGroup
		for w := range 2 {
			writers.Go(func() {
				for i := range 20 {
					record(t.Context(), g, l, stay(fmt.Sprint(w, "-", i), "14 23:00:00", "15 01:00:00", finally(Succeeded)))
				}
			})
		}
		writers.Wait()
		cancel()
		all.Wait()
		g.Expect(gpuSeconds(t.Context(), g, l, "14 00:00:00", "16 00:00:00")).To(Equal(map[string][2]int64{"": seconds(40 * 7200)}))
	})
}
