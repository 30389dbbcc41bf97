package ledger

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/tideline-io/tideline/test/testutil/points"
)

// Environment of a process that crashes.
const (
	crashAt    = "TIDELINE_LEDGER_CRASH_AT" // before the statement of this number
	crashStory = "TIDELINE_LEDGER_STORY"
	crashFile  = "TIDELINE_LEDGER_FILE"
	crashDSN   = "TIDELINE_LEDGER_DSN"
	// crashed is the exit status of a process that did.
	crashed = 7
)

func crashing() bool { return os.Getenv(crashAt) != "" }

// stories are what a process records until it crashes.
var stories = map[string]func(context.Context, *Ledger) error{"pods": recordPods, "reports": keepReports}

// crash records a story until it crashes.
func crash() {
	at, err := strconv.Atoi(os.Getenv(crashAt))
	if err == nil {
		where := Options{File: os.Getenv(crashFile), PostgresDSN: os.Getenv(crashDSN)}
		err = tell(context.Background(), where, os.Getenv(crashStory), &bomb{at: at})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// tell opens a ledger and records a story.
func tell(ctx context.Context, o Options, story string, b *bomb) error {
	kind, writer, reader, err := connectDatabase(o)
	if err != nil {
		return err
	}
	begin := func() time.Time { return at("01 00:00:00") }
	l, err := openLedger(ctx, kind, fused{writer, b}, fused{reader, b}, schema{migrations, begin})
	if err != nil {
		return err
	}
	b.opening = b.n
	if err := stories[story](ctx, l); err != nil {
		return err
	}
	return l.Close()
}

// recordPods records a story of pods that grow, end earlier than they were seen, and are forgotten, and of what they were seen
// using.
func recordPods(ctx context.Context, l *Ledger) error {
	for _, e := range []Entries{
		{Stays: []Stay{stay("old", "01 10:00:00", "02 10:00:00", finally(Succeeded)), stay("a", "14 22:00:00", "14 23:00:00"),
			stay("b", "14 22:00:00", "14 23:00:00", by("bob"))}},
		{Stays: []Stay{stay("a", "14 22:00:00", "17 01:00:00"), stay("b", "14 22:00:00", "15 01:00:00", by("bob"))},
			Decisions: []Decision{{At: at("14 22:00:00"), Kind: "Waited", Namespace: "ads", Name: "ctr"}}},
		{Stays: []Stay{stay("a", "14 22:00:00", "15 01:00:00", finally(Failed)), stay("c", "15 22:00:00", "16 01:00:00", by("carol"))},
			Decisions: []Decision{{At: at("15 22:00:00"), Kind: "GaveWay", Namespace: "ads", Name: "ctr"}}},
		{PartDays: []PartDay{seen(part("old"), "02 00:00:00", 60, "old"), seen(part("pytorch"), "14 00:00:00", 60, "less")},
			OOMKills: []OOMKill{{ID: "a/pytorch/0", Part: part("pytorch"), At: at("14 22:30:00"), LimitBytes: 1 << 30}}},
		{PartDays: []PartDay{seen(part("pytorch"), "14 00:00:00", 120, "more"), seen(part(""), "15 00:00:00", 60, "pods")},
			OOMKills: []OOMKill{
				{ID: "a/pytorch/0", Part: part("pytorch"), At: at("14 22:30:00"), LimitBytes: 1 << 30},
				{ID: "a/pytorch/1", Part: part("pytorch"), At: at("15 00:30:00"), LimitBytes: 1 << 30},
			},
			Collected: []Collected{{at("14 00:00:00"), at("15 00:20:00")}}},
		{Trained: []Trained{held("05 20:00:00", "06 02:00:00", took(0, 600, "05 20:00:00", "06 02:00:00"))}},
		{Trained: dayOfTraining()[:2]},
		{Trained: dayOfTraining()[2:]},
	} {
		if err := l.RecordEntries(ctx, e); err != nil {
			return err
		}
	}
	_, err := l.PruneBefore(ctx, at("10 00:00:00"))
	return err
}

// keepReports keeps two reports, one of them anew, forgets the first, and has mails of the other taken, refused and tried again.
func keepReports(ctx context.Context, l *Ledger) error {
	for _, r := range []KeptReport{kept("09 00:00:00", 1), kept("16 00:00:00", 1), kept("16 00:00:00", 2)} {
		which := fmt.Sprintf("%s, revision %d", r.To, r.Revision)
		if err := l.KeepReport(ctx, r, map[string]string{"report.html": "page of " + which, "report.csv": which}); err != nil {
			return err
		}
	}
	if _, err := l.ForgetReports(ctx, "report", at("16 00:00:00")); err != nil {
		return err
	}
	for _, m := range []struct {
		address string
		became  []DeliveryState
	}{
		{"alice@example.com", []DeliveryState{DeliveryRefused}}, {"bob@example.com", []DeliveryState{DeliveryDeferred, DeliverySent}},
	} {
		mail := delivery(m.address)
		for try, state := range m.became {
			mail.At, mail.Tries = mail.At.Add(time.Minute), try+1
			if _, err := l.ClaimDelivery(ctx, mail, mail.At.Add(time.Second)); err != nil { // begun anew by whoever goes on
				return err
			}
			became := mail
			became.State, became.Error = state, "as the server says"
			if err := l.MarkDelivery(ctx, became); err != nil {
				return err
			}
		}
	}
	return nil
}

// everything is what a ledger says.
func everything(ctx context.Context, l *Ledger) (string, error) {
	var b strings.Builder
	if err := l.Export(ctx, &b, at("01 00:00:00"), at("30 00:00:00")); err != nil {
		return "", err
	}
	usage, err := l.QueryUsage(ctx, Query{From: at("01 00:00:00"), To: at("30 00:00:00"), GroupBy: []Field{Day, User}})
	if err != nil {
		return "", err
	}
	decisions, err := l.QueryDecisions(ctx, DecisionQuery{})
	if err != nil {
		return "", err
	}
	stays, err := l.OpenStays(ctx)
	if err != nil {
		return "", err
	}
	var parts []PartDay
	from, to := at("01 00:00:00"), at("30 00:00:00")
	if err := l.PartDays(ctx, PartQuery{From: from, To: to}, func(d PartDay) error {
		parts = append(parts, d)
		return nil
	}); err != nil {
		return "", err
	}
	kills, err := l.OOMKills(ctx, from, to)
	if err != nil {
		return "", err
	}
	collected, err := l.CollectedDays(ctx, from, to)
	if err != nil {
		return "", err
	}
	mails, err := l.QueryDeliveries(ctx, "report", at("16 00:00:00"))
	if err != nil {
		return "", err
	}
	reports, err := l.QueryReports(ctx, "report", "")
	if err != nil {
		return "", err
	}
	trained, err := l.QueryGoodput(ctx, from, to)
	if err != nil {
		return "", err
	}
	err = json.NewEncoder(&b).Encode([]any{usage, decisions, stays, parts, kills, collected, mails, reports, trained})
	for _, r := range append(reports, kept("09 00:00:00", 1)) { // the last one is forgotten, with its files
		for _, file := range []string{"report.html", "report.csv"} {
			content, there, failed := l.ReportFile(ctx, r, file)
			err = errors.Join(err, failed)
			fmt.Fprintf(&b, "%s of %s, revision %d: %t %s\n", file, r.To, r.Revision, there, content)
		}
	}
	return b.String(), err
}

// A process that ends at any of its statements leaves a ledger that comes to the same when the same is recorded again.
func TestCrashAtEveryStatement(t *testing.T) {
	crashesAtEachStatement(t, "pods", true, 12, "carol", "more", "a/pytorch/1", `"Lost":57600}`)
}

func TestCrashAtEveryStatementOfReports(t *testing.T) {
	crashesAtEachStatement(t, "reports", false, 6, `"State":"Refused"`, `"State":"Sent"`,
		"revision 1: true page of 2026-11-16", "revision 2: true page of 2026-11-16",
		"2026-11-09 00:00:00 +0000 UTC, revision 1: false")
}

// crashesAtEachStatement tells a story with a crash at each statement, those that make the tables included or not; make test
// chooses one in four, and of PostgreSQL one of so many. The whole one must say what it is about.
func crashesAtEachStatement(t *testing.T, story string, tables bool, oneInOnPostgres int, whatItIsAbout ...string) {
	t.Helper()
	onBoth(t, func(t *testing.T, whole Options) {
		g := NewWithT(t)
		oneIn := 4
		if whole.File == "" {
			oneIn = oneInOnPostgres
		}
		counter := &bomb{}
		g.Expect(tell(t.Context(), whole, story, counter)).To(Succeed())
		g.Expect(counter.n).To(BeNumerically(">", 30), "statements")
		want, err := everything(t.Context(), opened(t, g, whole))
		g.Expect(err).NotTo(HaveOccurred())
		for _, what := range whatItIsAbout {
			g.Expect(want).To(ContainSubstring(what))
		}
		first := 1
		if !tables {
			first = counter.opening + 1
		}
		var all errgroup.Group
		all.SetLimit(8) // they wait for the disk
		for _, n := range points.Choose(t, first, counter.n, oneIn) {
			where := Options{}
			if whole.File != "" {
				where.File = filepath.Join(t.TempDir(), "ledger.db")
			} else {
				var err error
				where.PostgresDSN, err = server.Schema(t.Context())
				g.Expect(err).NotTo(HaveOccurred())
			}
			all.Go(func() error {
				found, err := crashAndGoOn(t.Context(), where, story, n)
				if err == nil && found != want {
					err = fmt.Errorf("another ledger:\n%s", found)
				}
				if err != nil {
					return fmt.Errorf("crash at statement %d: %w", n, err)
				}
				return nil
			})
		}
		g.Expect(all.Wait()).To(Succeed(), "without a crash:\n%s", want)
	})
}

// crashAndGoOn returns what a ledger says after a process crashed at a statement and this one recorded the same again.
func crashAndGoOn(ctx context.Context, where Options, story string, n int) (string, error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", crashAt, n), crashStory+"="+story, crashFile+"="+where.File,
		crashDSN+"="+where.PostgresDSN)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != crashed {
		return "", fmt.Errorf("the process did not crash: %w: %s", err, out)
	}
	if err := tell(ctx, where, story, &bomb{}); err != nil {
		return "", err
	}
	l, err := Open(ctx, where)
	if err != nil {
		return "", err
	}
	said, err := everything(ctx, l)
	return said, errors.Join(err, l.Close())
}

// bomb counts statements, the first ones open the ledger, and ends the process before the one of number at.
type bomb struct{ at, n, opening int }

func (b *bomb) tick() {
	b.n++
	if b.n == b.at {
		os.Exit(crashed)
	}
}

// fused connections tell a bomb of every statement, those that begin and end transactions included.
type fused struct {
	driver.Connector
	bomb *bomb
}

func (f fused) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	return fusedConn{c, f.bomb}, err
}

type fusedConn struct {
	driver.Conn
	bomb *bomb
}

func (c fusedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.bomb.tick()
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return fusedTx{tx, c.bomb}, err
}

func (c fusedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.bomb.tick()
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c fusedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.bomb.tick()
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type fusedTx struct {
	driver.Tx
	bomb *bomb
}

func (t fusedTx) Commit() error {
	t.bomb.tick()
	return t.Tx.Commit()
}

func TestFileThatIsLost(t *testing.T) {
	g := NewWithT(t)
	ctx, where := t.Context(), Options{File: filepath.Join(t.TempDir(), "ledger.db")}
	l, err := Open(ctx, where)
	g.Expect(err).NotTo(HaveOccurred())
	record(ctx, g, l, stay("a", "14 22:00:00", "14 23:00:00", finally(Succeeded)), stay("b", "14 22:00:00", "14 23:00:00"))
	g.Expect(l.Close()).To(Succeed())
	backup, err := os.ReadFile(where.File)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(os.Remove(where.File)).To(Succeed())
	l, err = Open(ctx, where)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00")).To(BeEmpty(), "begun anew")
	still := []Stay{stay("b", "14 22:00:00", "15 02:00:00"), stay("c", "14 23:30:00", "15 02:00:00")}
	record(ctx, g, l, still...)
	g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day)).To(Equal(map[string][2]int64{
		"2026-11-14": seconds(7200 + 1800), "2026-11-15": seconds(2 * 7200),
	}))
	g.Expect(l.Close()).To(Succeed())

	g.Expect(os.WriteFile(where.File, backup, 0o600)).To(Succeed())
	l = opened(t, g, where)
	record(ctx, g, l, still...)
	g.Expect(gpuSeconds(ctx, g, l, "01 00:00:00", "30 00:00:00", Day)).To(Equal(map[string][2]int64{
		"2026-11-14": seconds(3600 + 7200 + 1800), "2026-11-15": seconds(2 * 7200),
	}), "the backup has what is no more, and the rest is recorded again")
	info, err := os.Stat(where.File)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "names of people are in it")
	g.Expect(l.RecordEntries(ctx, Entries{Decisions: []Decision{{At: time.Now(), Kind: "Waited"}}})).To(Succeed())
}
