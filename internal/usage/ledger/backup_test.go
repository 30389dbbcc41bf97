package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// backedUp is a backup of a ledger.
func backedUp(ctx context.Context, g *WithT, l *Ledger) []byte {
	g.THelper()
	var b bytes.Buffer
	_, err := l.WriteBackup(ctx, &b)
	g.Expect(err).NotTo(HaveOccurred())
	return b.Bytes()
}

// elsewhere is an empty ledger in a file, and, if PostgreSQL is installed, one in PostgreSQL.
func elsewhere(t *testing.T, g *WithT) []*Ledger {
	t.Helper()
	where := []Options{{File: filepath.Join(t.TempDir(), "restored.db")}}
	if server != nil {
		dsn, err := server.Schema(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		where = append(where, Options{PostgresDSN: dsn})
	}
	var all []*Ledger
	for _, o := range where {
		all = append(all, opened(t, g, o))
	}
	return all
}

// A backup of either database restores a ledger in both that says the same, and goes on to record.
func TestBackupHasEverything(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		ctx := t.Context()
		where.Clock = func() time.Time { return at("02 03:04:05") }
		l := opened(t, g, where)
		for _, tell := range stories {
			g.Expect(tell(ctx, l)).To(Succeed())
		}
		room := FreeRoom{At: at("15 00:00:00"), Free: 3, Unusable: 0.25, Gangs: 2}
		g.Expect(l.RecordEntries(ctx, Entries{Rooms: []FreeRoom{room}})).To(Succeed())
		want, err := everything(ctx, l)
		g.Expect(err).NotTo(HaveOccurred())
		b := backedUp(ctx, g, l)
		for _, other := range elsewhere(t, g) {
			rows, err := other.Restore(ctx, bytes.NewReader(b), false)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rows).To(BeNumerically(">", 20))
			g.Expect(everything(ctx, other)).To(Equal(want))
			g.Expect(other.QueryRooms(ctx, at("14 00:00:00"), at("16 00:00:00"))).To(ConsistOf(room))
			g.Expect(other.KnownSince(ctx)).To(BeTemporally("==", at("10 00:00:00")), "since it was pruned, not since it was restored")

			_, err = other.Restore(ctx, bytes.NewReader(b), false)
			g.Expect(err).To(MatchError(ErrNotEmpty))
			record(ctx, g, other, stay("new", "20 00:00:00", "20 01:00:00"))
			_, err = other.Restore(ctx, bytes.NewReader(b), true)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(everything(ctx, other)).To(Equal(want), "in place of what it had")
			more := stay("new", "20 00:00:00", "20 01:00:00")
			record(ctx, g, other, more, more)
			g.Expect(gpuSeconds(ctx, g, other, "20 00:00:00", "21 00:00:00")).To(Equal(map[string][2]int64{"": seconds(3600)}))
		}
	})
}

// While others write, a backup has each of their transactions whole or not at all, and a ledger that is restored under their feet
// goes on to take what they record.
func TestBackupWhileOthersWrite(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l := opened(t, g, where)
		writer := opened(t, g, where)
		// Whoever waits has no turn of its own: on a busy machine the other may take the lock again for seconds.
		l.kind.patience, writer.kind.patience = time.Minute, time.Minute
		var writing errgroup.Group
		wrote := make(chan int, 1)
		writing.Go(func() error {
			for i := 0; ; i++ {
				pair := []Stay{
					stay(fmt.Sprint("a", i), "14 22:00:00", "15 01:00:00"), stay(fmt.Sprint("b", i), "14 22:00:00", "15 01:00:00", by("bob")),
				}
				if err := writer.RecordEntries(ctx, Entries{Stays: pair}); err != nil {
					if ctx.Err() != nil {
						return nil //nolint:nilerr // it was told to end
					}
					return err
				}
				select {
				case wrote <- i:
				default:
				}
			}
		})
		for range 5 {
			<-wrote // at least one more
			<-wrote
			b := backedUp(t.Context(), g, l)
			for _, other := range elsewhere(t, g) {
				_, err := other.Restore(t.Context(), bytes.NewReader(b), false)
				g.Expect(err).NotTo(HaveOccurred())
				used := gpuSeconds(t.Context(), g, other, "14 00:00:00", "16 00:00:00", User)
				g.Expect(used["alice"]).To(And(Equal(used["bob"]), Not(BeZero())), "no half of a transaction")
			}
			_, err := l.Restore(t.Context(), bytes.NewReader(b), true)
			g.Expect(err).NotTo(HaveOccurred())
		}
		<-wrote
		<-wrote
		stop()
		g.Expect(writing.Wait()).To(Succeed(), "who writes has noticed nothing")
		used := gpuSeconds(t.Context(), g, l, "14 00:00:00", "16 00:00:00", User)
		g.Expect(used["alice"]).To(And(Equal(used["bob"]), Not(BeZero())))
	})
}

// What is no whole backup is refused, wherever it is cut or damaged, and the ledger keeps what it has.
func TestBrokenBackupsChangeNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		ctx := t.Context()
		l := opened(t, g, where)
		g.Expect(recordPods(ctx, l)).To(Succeed())
		whole := backedUp(ctx, g, l)
		want, err := everything(ctx, l)
		g.Expect(err).NotTo(HaveOccurred())
		broken := map[string][]byte{"nothing": nil, "no gzip": []byte("series"), "other JSON": packed(`{"a": 1}`)}
		for cut := 1; cut < len(whole); cut += len(whole)/12 + 1 {
			broken[fmt.Sprintf("cut at %d", cut)] = whole[:cut]
		}
		flipped := bytes.Clone(whole)
		flipped[len(flipped)-5] ^= 1 // the sum of all
		broken["damaged"] = flipped
		begin := fmt.Sprintf(`{"tidelineLedger":%d}`, len(migrations))
		for name, lines := range map[string]string{
			"newer": `{"tidelineLedger":99}`, "fewer rows": begin + "\n" + `{"rows":3}`, "no tail": begin,
			"another table": begin + "\n" + `{"table":"pg_authid","columns":["a"]}`,
			"statements":    begin + "\n" + `{"table":"room; DROP TABLE series","columns":["a"]}`,
			"other columns": begin + "\n" + `{"table":"ledger_begin","columns":["at) SELECT 1; --"]}`,
			"short row":     begin + "\n" + `{"table":"room","columns":["at","free","unusable","gangs"]}` + "\n[1]",
			"another type":  begin + "\n" + `{"table":"ledger_begin","columns":["at"]}` + "\n[{}]",
			"row of none":   begin + "\n[1]",
		} {
			broken[name] = packed(lines + "\n")
		}
		for name, b := range broken {
			_, err := l.Restore(ctx, bytes.NewReader(b), true)
			g.Expect(err).To(MatchError(ErrInvalid), name)
		}
		g.Expect(everything(ctx, l)).To(Equal(want), "nothing has changed")
	})
}

func packed(lines string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(lines))
	_ = w.Close()
	return b.Bytes()
}

// Every table is in the backup: a new one must be added to the list.
func TestBackupHasAllTables(t *testing.T) {
	g := NewWithT(t)
	l := opened(t, g, Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	rows, err := l.reader.QueryContext(t.Context(),
		"SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'ledger_version'")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = rows.Close() }()
	var there []string
	for rows.Next() {
		var name string
		g.Expect(rows.Scan(&name)).To(Succeed())
		there = append(there, name)
	}
	g.Expect(rows.Err()).NotTo(HaveOccurred())
	g.Expect(tables).To(ConsistOf(there))
	unpacked, err := gzip.NewReader(bytes.NewReader(backedUp(t.Context(), g, l)))
	g.Expect(err).NotTo(HaveOccurred())
	var first map[string]any
	g.Expect(json.NewDecoder(unpacked).Decode(&first)).To(Succeed())
	g.Expect(first).To(HaveKeyWithValue("tidelineLedger", BeEquivalentTo(len(migrations))))
	g.Expect(strings.Join(tables, " ")).NotTo(ContainSubstring("ledger_version"))
}
