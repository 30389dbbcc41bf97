package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A database of each version before this one is brought up to date, with all that it has.
func TestMigrationKeepsWhatThereIs(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(migrations).To(HaveLen(4), "what is to be kept is recorded by statements of each version")
		version := func(n int) *Ledger {
			kind, writer, reader, err := connectDatabase(where)
			g.Expect(err).NotTo(HaveOccurred())
			old, err := openLedger(ctx, kind, writer, reader, schema{migrations[:n], time.Now})
			g.Expect(err).NotTo(HaveOccurred())
			return old
		}
		old := version(1)
		running, done := stay("a", "14 22:00:00", "15 01:00:00"), stay("b", "14 22:00:00", "15 01:00:00", finally(Failed), by("bob"))
		record(ctx, g, old, running, done)
		g.Expect(old.RecordEntries(ctx, Entries{Decisions: []Decision{{At: at("14 22:00:00"), Kind: "Waited"}}})).To(Succeed())
		g.Expect(old.Close()).To(Succeed())
		old = version(2)
		g.Expect(old.RecordEntries(ctx, Entries{PartDays: []PartDay{seen(part("pytorch"), "15 00:00:00", 1, "second")}})).To(Succeed())
		g.Expect(old.Close()).To(Succeed())

		for range 2 { // it is brought up to date once
			l, err := Open(ctx, where)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(l.OpenStays(ctx)).To(Equal([]Stay{running}))
			g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", User)).To(Equal(map[string][2]int64{
				"alice": seconds(3 * 3600), "bob": seconds(3 * 3600),
			}))
			g.Expect(l.QueryDecisions(ctx, DecisionQuery{})).To(HaveLen(1))
			tasks, err := l.TasksOf(ctx, at("15 00:00:00"), "ElasticTrainingJob")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(l.StaysOf(ctx, tasks...)).To(ConsistOf(running, done))
			g.Expect(l.RecordEntries(ctx, Entries{PartDays: []PartDay{seen(part("pytorch"), "14 00:00:00", 1, "new")}})).To(Succeed())
			g.Expect(l.KnownSince(ctx)).To(BeTemporally("==", at("14 22:00:00")), "as far as an older ledger tells")
			g.Expect(l.Close()).To(Succeed())
		}
		l := opened(t, g, where)
		g.Expect(partDays(t, g, l, PartQuery{From: at("14 00:00:00"), To: at("16 00:00:00")})).To(HaveLen(2))
		g.Expect(l.ClaimDelivery(ctx, delivery("alice@example.com"), time.Time{})).To(BeTrue())
	})
}

// A ledger says since when it has everything: since it was made, whoever opens it later, and at most since it was pruned.
func TestSinceWhenEverythingIsKnown(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		where.Clock = func() time.Time { return at("14 12:00:00") }
		l := opened(t, g, where)
		record(t.Context(), g, l, stay("a", "10 00:00:00", "14 13:00:00"))
		where.Clock = nil
		g.Expect(opened(t, g, where).KnownSince(t.Context())).To(BeTemporally("==", at("14 12:00:00")),
			"a pod that was there before does not tell of those that were gone")
		_, err := l.PruneBefore(t.Context(), at("12 00:00:00"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.KnownSince(t.Context())).To(BeTemporally("==", at("14 12:00:00")))
		_, err = l.PruneBefore(t.Context(), at("20 06:00:00"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.KnownSince(t.Context())).To(BeTemporally("==", at("20 00:00:00")), "what was deleted is unknown")
	})
}
