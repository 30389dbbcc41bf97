package ledger

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A database of each version before this one is brought up to date, with all that it has.
func TestMigrationKeepsWhatThereIs(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(migrations).To(HaveLen(5), "what is to be kept is recorded by statements of each version")
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
		g.Expect(l.RecordEntries(ctx, Entries{Trained: dayOfTraining()})).To(Succeed())
		g.Expect(goodput(ctx, g, l, "14", "15")).To(Equal([]Goodput{lostTwoHours}))
	})
}

// Each report that is served opens the ledger to read it, on replicas that do not lead too: it waits for no writer, and writes
// nothing.
func TestReadersWaitForNoWriter(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		writer := opened(t, g, where)
		record(t.Context(), g, writer, stay("a", "14 22:00:00", "14 23:00:00"))
		err := writer.writeTransaction(t.Context(), "write", func(ctx context.Context, tx transaction) error {
			if _, err := tx.ExecContext(ctx, "UPDATE ledger_begin SET at = at - 1"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // shorter than any wait for a lock
			defer cancel()
			reader, err := OpenToRead(ctx, where)
			if err != nil {
				return err
			}
			g.Expect(gpuSeconds(ctx, g, reader, "14 00:00:00", "15 00:00:00")).To(Equal(map[string][2]int64{"": seconds(3600)}))
			return errors.Join(reader.Export(ctx, io.Discard, at("14 00:00:00"), at("15 00:00:00")), reader.Close())
		})
		g.Expect(err).NotTo(HaveOccurred())

		reader, err := OpenToRead(t.Context(), where)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reader.RecordEntries(t.Context(), Entries{Stays: []Stay{stay("b", "14 22:00:00", "14 23:00:00")}})).
			To(And(MatchError(ErrInvalid), MatchError(ContainSubstring("it was opened to be read"))))
		g.Expect(reader.Close()).To(Succeed())
	})
}

// Whoever reads makes and migrates nothing, and says in plain words who does.
func TestReadersMigrateNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		refused := func() error {
			l, err := OpenToRead(t.Context(), where)
			g.Expect(l).To(BeNil())
			return err
		}
		g.Expect(refused()).To(And(MatchError(ErrBehind), MatchError(ErrUnavailable)), "there is none")
		if where.File != "" {
			g.Expect(where.File).NotTo(BeAnExistingFile())
			g.Expect(os.WriteFile(where.File, nil, 0o600)).To(Succeed())
		}
		g.Expect(refused()).To(MatchError(ErrBehind), "it has no tables")
		kind, writer, reader, err := connectDatabase(where)
		g.Expect(err).NotTo(HaveOccurred())
		old, err := openLedger(t.Context(), kind, writer, reader, schema{migrations[:2], time.Now})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(old.Close()).To(Succeed())
		for range 2 {
			g.Expect(refused()).To(And(MatchError(ErrBehind), MatchError("open the ledger to read it: the ledger is not ready to be "+
				"read: its tables are of version 2, and this program reads version 5: the operator that leads mends that when it "+
				"starts; ask again then")))
		}
		leader := opened(t, g, where)
		l, err := OpenToRead(t.Context(), where)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.Close()).To(Succeed())
		_, err = leader.writer.ExecContext(t.Context(), "INSERT INTO ledger_version (version) VALUES (99)")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(refused()).To(And(MatchError(ErrUnusable), MatchError(ContainSubstring("knows none after 5"))))
	})
	_, err := OpenToRead(t.Context(), Options{})
	NewWithT(t).Expect(err).To(MatchError(ErrInvalid))
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
