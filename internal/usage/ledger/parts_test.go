package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	. "github.com/onsi/gomega"
)

// part is a container of alice's task.
func part(container string) Part {
	return Part{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Role: "worker", Container: container}
}

func seen(p Part, day string, seconds int64, content string) PartDay {
	return PartDay{Part: p, Day: at(day), SeenSeconds: seconds, Content: content}
}

// partDays are what a ledger has of parts.
func partDays(t *testing.T, g *WithT, l *Ledger, q PartQuery) []PartDay {
	t.Helper()
	var days []PartDay
	g.Expect(l.PartDays(t.Context(), q, func(d PartDay) error {
		days = append(days, d)
		return nil
	})).To(Succeed())
	return days
}

func TestWhatSawLessReplacesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		all := PartQuery{From: at("01 00:00:00"), To: at("30 00:00:00")}
		day := func() []PartDay { return partDays(t, g, l, all) }
		for _, c := range []struct {
			recorded []PartDay
			want     PartDay
			why      string
		}{
			{[]PartDay{seen(part("pytorch"), "14 08:00:00", 60, "a")}, seen(part("pytorch"), "14 00:00:00", 60, "a"), "the first"},
			{[]PartDay{seen(part("pytorch"), "14 09:00:00", 59, "b")}, seen(part("pytorch"), "14 00:00:00", 60, "a"), "less"},
			{[]PartDay{seen(part("pytorch"), "14 10:00:00", 0, "")}, seen(part("pytorch"), "14 00:00:00", 60, "a"), "nothing"},
			{[]PartDay{seen(part("pytorch"), "14 23:59:59", 60, "c")}, seen(part("pytorch"), "14 00:00:00", 60, "c"), "as much"},
			{[]PartDay{
				seen(part("pytorch"), "14 00:00:00", 61, "d"), seen(part("pytorch"), "14 11:00:00", 90, "e"),
				seen(part("pytorch"), "14 12:00:00", 80, "f"),
			}, seen(part("pytorch"), "14 00:00:00", 90, "e"), "more, at once with less"},
		} {
			for range 2 {
				g.Expect(l.RecordEntries(t.Context(), Entries{PartDays: c.recorded})).To(Succeed())
				g.Expect(day()).To(Equal([]PartDay{c.want}), c.why)
			}
		}
	})
}

func TestPartsOfARangeOfDays(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		pods, other := part(""), part("pytorch")
		other.Task = "' OR 1=1 --"
		merge := part("merge")
		merge.Namespace, merge.Kind = "rec", "MergeJob"
		long := part(strings.Repeat("\x00long", 5000))
		days := []PartDay{
			seen(pods, "13 00:00:00", 1, "pods"), seen(part("pytorch"), "14 00:00:00", 2, "{}"), seen(other, "15 00:00:00", 3, ""),
			seen(merge, "16 00:00:00", 4, "m"), seen(long, "17 00:00:00", 5, "\x00"),
		}
		g.Expect(l.RecordEntries(t.Context(), Entries{PartDays: days})).To(Succeed())
		g.Expect(l.RecordEntries(t.Context(), Entries{PartDays: days})).To(Succeed())
		days[4].Container, days[4].Content = cleanText(days[4].Container), cleanText(days[4].Content)
		ask := func(q PartQuery) []PartDay { return partDays(t, g, l, q) }
		g.Expect(ask(PartQuery{From: at("01 00:00:00"), To: at("30 00:00:00")})).To(Equal(days))
		g.Expect(ask(PartQuery{From: at("14 23:00:00"), To: at("16 00:00:00")})).To(Equal(days[1:3]), "whole days")
		g.Expect(ask(PartQuery{From: at("14 23:00:00"), To: at("16 00:00:01")})).To(Equal(days[1:4]))
		g.Expect(ask(PartQuery{From: at("15 00:00:00"), To: at("15 00:00:00")})).To(BeEmpty())
		ofTask := PartQuery{From: at("01 00:00:00"), To: at("30 00:00:00"), Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr"}
		g.Expect(ask(ofTask)).To(Equal([]PartDay{days[0], days[1], days[4]}))
		ofTask.Task = other.Task
		g.Expect(ask(ofTask)).To(Equal(days[2:3]))
		g.Expect(ask(PartQuery{From: at("01 00:00:00"), To: at("30 00:00:00"), Kind: "MergeJob"})).To(Equal(days[3:4]))

		enough := errors.New("enough")
		n := 0
		g.Expect(l.PartDays(t.Context(), PartQuery{From: at("01 00:00:00"), To: at("30 00:00:00")}, func(PartDay) error {
			n++
			return enough
		})).To(And(MatchError(enough), Not(MatchError(ErrUnavailable))))
		g.Expect(n).To(Equal(1))
	})
}

func TestDaysThatWereCollected(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		for _, until := range []string{"14 10:00:00", "15 00:10:00", "14 11:00:00"} {
			g.Expect(l.RecordEntries(ctx, Entries{Collected: []Collected{{at("14 06:00:00"), at(until)}}})).To(Succeed())
		}
		g.Expect(l.RecordEntries(ctx, Entries{Collected: []Collected{
			{at("13 00:00:00"), at("13 05:00:00")}, {at("13 01:00:00"), at("14 05:00:00")}, {at("13 02:00:00"), at("14 04:00:00")},
		}})).To(Succeed())
		g.Expect(l.CollectedDays(ctx, at("01 00:00:00"), at("30 00:00:00"))).To(Equal([]Collected{
			{at("13 00:00:00"), at("14 04:00:00")}, {at("14 00:00:00"), at("14 11:00:00")},
		}), "the last note of each: the clock may have been set back")
		g.Expect(l.CollectedDays(ctx, at("14 00:00:00"), at("14 00:00:01"))).To(HaveLen(1))
		g.Expect(l.CollectedDays(ctx, at("15 00:00:00"), at("30 00:00:00"))).To(BeEmpty())
	})
}

func TestKillsCountOnce(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		first := OOMKill{ID: "pod/pytorch/0", Part: part("pytorch"), At: at("14 10:00:00"), LimitBytes: 1 << 30}
		second := OOMKill{ID: "pod/pytorch/1", Part: part("pytorch"), At: at("15 00:00:00")}
		g.Expect(l.RecordEntries(ctx, Entries{OOMKills: []OOMKill{first, first}})).To(Succeed())
		again := first
		again.At, again.LimitBytes = at("16 00:00:00"), 7
		g.Expect(l.RecordEntries(ctx, Entries{OOMKills: []OOMKill{second, again}})).To(Succeed())
		g.Expect(l.OOMKills(ctx, at("01 00:00:00"), at("30 00:00:00"))).To(Equal([]OOMKill{first, second}), "as first recorded")
		g.Expect(l.OOMKills(ctx, at("14 12:00:00"), at("15 00:00:00"))).To(Equal([]OOMKill{first}), "whole days")
		g.Expect(l.KillLimits(ctx)).To(Equal(map[Part]int64{first.Part: max(first.LimitBytes, second.LimitBytes)}), "the highest")
		g.Expect(l.OOMKills(ctx, at("15 00:00:00"), at("15 12:00:00"))).To(Equal([]OOMKill{second}))
	})
}

func TestPartsThatNoLedgerTakes(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		kill := OOMKill{ID: "a", Part: part("pytorch"), At: at("14 10:00:00")}
		for name, e := range map[string]Entries{
			"no day":       {PartDays: []PartDay{{Part: part("pytorch")}}, OOMKills: []OOMKill{kill}},
			"no id":        {OOMKills: []OOMKill{kill, {Part: kill.Part, At: kill.At}}},
			"an endless":   {OOMKills: []OOMKill{kill, {ID: strings.Repeat("x", MaxKillID+1), Part: kill.Part, At: kill.At}}},
			"no time":      {OOMKills: []OOMKill{kill, {ID: "b", Part: kill.Part}}},
			"no collected": {OOMKills: []OOMKill{kill}, Collected: []Collected{{Until: time.Now()}}},
		} {
			g.Expect(l.RecordEntries(t.Context(), e)).To(MatchError(ErrInvalid), name)
		}
		g.Expect(l.OOMKills(t.Context(), at("01 00:00:00"), at("30 00:00:00"))).To(BeEmpty())
	})
}

func TestPruneOfParts(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		killed := part("sidecar")
		g.Expect(l.RecordEntries(t.Context(), Entries{
			PartDays: []PartDay{
				seen(part("old"), "13 00:00:00", 1, "old"), seen(part("pytorch"), "13 00:00:00", 1, "old"),
				seen(part("pytorch"), "14 00:00:00", 1, "new"), seen(killed, "12 00:00:00", 1, "old"),
			},
			OOMKills: []OOMKill{
				{ID: "old", Part: part("old"), At: at("13 23:59:59")}, {ID: "new", Part: killed, At: at("14 00:00:00")},
			},
			Collected: []Collected{{at("13 00:00:00"), at("14 01:00:00")}, {at("14 00:00:00"), at("14 02:00:00")}},
		})).To(Succeed())
		for _, want := range []int64{5, 0} {
			g.Expect(l.PruneBefore(t.Context(), at("14 18:00:00"))).To(Equal(want), "three days of parts, a kill and a day")
		}
		all := PartQuery{From: at("01 00:00:00"), To: at("30 00:00:00")}
		g.Expect(partDays(t, g, l, all)).To(ConsistOf(HaveField("Content", "new")))
		g.Expect(l.OOMKills(t.Context(), at("01 00:00:00"), at("30 00:00:00"))).To(ConsistOf(HaveField("ID", "new")))
		g.Expect(l.CollectedDays(t.Context(), at("01 00:00:00"), at("30 00:00:00"))).To(HaveLen(1))
		var n int
		g.Expect(l.reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM part").Scan(&n)).To(Succeed())
		g.Expect(n).To(Equal(2), "nothing is left of one")
	})
}

// Whoever asks records the other entries without the one that PostgreSQL cannot keep; the ledger is not given up for it.
func TestANumberThatIsTooLargeIsAnInvalidEntry(t *testing.T) {
	_, kind := explainAnswer(&pgconn.PgError{Code: "22003", Message: "bigint out of range"})
	NewWithT(t).Expect(kind).To(MatchError(ErrInvalid))
}
