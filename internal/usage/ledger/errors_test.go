package ledger

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

func TestDatabaseOfANewerVersionIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		_, err := l.writer.ExecContext(t.Context(), "INSERT INTO ledger_version (version) VALUES (99)")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = Open(t.Context(), where)
		g.Expect(err).To(MatchError(ErrUnusable))
		g.Expect(err).To(MatchError("open the ledger: the ledger cannot be used: its tables are of version 99, and this operator " +
			"knows none after 5: run the operator that wrote them, or a newer one"))
	})
}

func TestDatabaseThatIsNoLedger(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		for _, table := range []string{"pod_day", "task_day"} {
			_, err := l.writer.ExecContext(t.Context(), "DROP TABLE "+table)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(l.RecordEntries(t.Context(), Entries{Stays: []Stay{stay("a", "14 22:00:00",
			"14 23:00:00")}})).To(MatchError(ErrUnusable))
		_, err := l.QueryUsage(t.Context(), Query{From: at("14 00:00:00"), To: at("16 00:00:00")})
		g.Expect(err).To(MatchError(ErrUnusable))
		_, err = l.writer.ExecContext(t.Context(), "DELETE FROM ledger_version")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = Open(t.Context(), where)
		g.Expect(err).To(MatchError(ErrUnusable), "tables that are there already are somebody else's")
	})
}

func TestFileThatIsNoDatabase(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ledger ?#%41.db")
	g.Expect(os.WriteFile(file, []byte(strings.Repeat("Dear diary, ", 1000)), 0o600)).To(Succeed())
	_, err := Open(t.Context(), Options{File: file})
	g.Expect(err).To(MatchError(And(ContainSubstring("is damaged, or no database"), ContainSubstring(file))))
	g.Expect(err).To(MatchError(ErrUnusable))
	g.Expect(err).NotTo(MatchError(ErrUnavailable))

	g.Expect(os.Remove(file)).To(Succeed())
	opened(t, g, Options{File: file})
	g.Expect(file).To(BeARegularFile(), "its name is a name and no address")

	_, err = Open(t.Context(), Options{File: filepath.Join(t.TempDir(), "none", "ledger.db")})
	g.Expect(err).To(MatchError(ErrUnavailable))
	_, err = Open(t.Context(), Options{})
	g.Expect(err).To(MatchError(ErrInvalid))
	_, err = Open(t.Context(), Options{File: file, PostgresDSN: "postgres://"})
	g.Expect(err).To(MatchError(ErrInvalid))
}

// lock has another connection keep writers out until it is called.
func lock(t *testing.T, g *WithT, l *Ledger, where Options) (unlock func() error) {
	t.Helper()
	_, connector, _, err := connectDatabase(where)
	g.Expect(err).NotTo(HaveOccurred())
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	if l.kind.lock != "" {
		_, err = tx.ExecContext(t.Context(), l.kind.lock)
		g.Expect(err).NotTo(HaveOccurred())
	}
	return tx.Rollback
}

func TestLockedDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		entries := Entries{Stays: []Stay{stay("a", "14 22:00:00", "14 23:00:00")}}
		unlock := lock(t, g, l, where)

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := l.RecordEntries(ctx, entries)
		g.Expect(time.Since(began)).To(BeNumerically("<", 3*time.Second), "no longer than the context, and a little")
		g.Expect(err).To(MatchError(And(ContainSubstring("did not answer in time"), ContainSubstring("it is tried again"))))
		g.Expect(err).To(MatchError(ErrUnavailable))
		g.Expect(err).To(MatchError(context.DeadlineExceeded))

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		err = l.RecordEntries(ctx, entries)
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(err).NotTo(MatchError(ErrUnavailable), "the caller waits no longer")

		found, err := l.QueryUsage(t.Context(), Query{From: at("14 00:00:00"), To: at("15 00:00:00")})
		g.Expect(err).NotTo(HaveOccurred(), "who reads does not wait for who writes")
		g.Expect(found).To(BeEmpty())

		if where.File != "" {
			l.kind.patience = 10 * time.Millisecond
			err = l.RecordEntries(t.Context(), entries)
			g.Expect(err).To(MatchError(ErrUnavailable))
			g.Expect(err).To(MatchError(ContainSubstring("is locked by another process")))
			l.kind.patience = time.Minute
		}
		unlocked := make(chan error, 1)
		time.AfterFunc(400*time.Millisecond, func() { unlocked <- unlock() }) // longer than SQLite itself waits
		g.Expect(l.RecordEntries(t.Context(), entries)).To(Succeed(), "as soon as it is its turn")
		g.Expect(<-unlocked).To(Succeed())
	})
}

func TestPatience(t *testing.T) {
	g := NewWithT(t)
	l := opened(t, g, Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	g.Expect(l.kind.patience).To(Equal(5 * time.Second))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "100"} {
		for _, db := range []*sql.DB{l.writer, l.reader} {
			var found string
			g.Expect(db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&found)).To(Succeed())
			g.Expect(found).To(Equal(want), pragma)
		}
	}
	_, err := l.reader.ExecContext(t.Context(), "DELETE FROM series")
	g.Expect(err).To(HaveOccurred(), "who reads cannot write")
}

// silent holds for errors that have no part of a password, nor wrap one that has.
func silent() types.GomegaMatcher {
	return WithTransform(func(err error) string {
		var all []string
		var collect func(error)
		collect = func(err error) {
			if err == nil {
				return
			}
			all = append(all, err.Error())
			switch wrapper := err.(type) { //nolint:errorlint // each error of the tree is looked at
			case interface{ Unwrap() error }:
				collect(wrapper.Unwrap())
			case interface{ Unwrap() []error }:
				for _, wrapped := range wrapper.Unwrap() {
					collect(wrapped)
				}
			}
		}
		collect(err)
		return strings.ToLower(strings.Join(all, "\n"))
	}, And(Not(ContainSubstring("hunter")), Not(ContainSubstring("gatherer"))))
}

func TestPasswordsAreInNoError(t *testing.T) {
	nowhere := "127.0.0.1:1"
	for _, dsn := range []string{
		"postgres://tideline:hunter2@" + nowhere + "/ledger",
		"postgres://tideline:hunter/gatherer@" + nowhere + "/ledger",
		"postgres://tideline:12/hunter@" + nowhere + "/ledger",
		"postgres://tideline:hunter#gatherer@" + nowhere + "/ledger",
		"postgres://tideline:hunter?gatherer@" + nowhere + "/ledger",
		"postgres://tideline:hunter%zzgatherer@" + nowhere + "/ledger",
		"postgres://tideline:hunter@gatherer@" + nowhere + "/ledger",
		"postgres://tideline:hunter:gatherer@" + nowhere + "/ledger",
		"postgres://tideline:hunter gatherer@" + nowhere + "/ledger",
		"postgres://tideline@" + nowhere + "/ledger?password=hunter2&sslmode=gatherer",
		"postgres://tideline@" + nowhere + "/ledger?sslpassword=hunter2&sslcert=/gatherer&sslkey=/gatherer",
		"host=127.0.0.1 port=1 user=tideline password=hunter2 dbname=ledger",
		"host=127.0.0.1 port=1 user=tideline password=hunter gatherer dbname=ledger",
		"host=127.0.0.1 port=1 user=tideline password='hunter gatherer",
		"host=127.0.0.1 port=hunter user=tideline password=gatherer",
		"host=hunter.invalid user=tideline password=gatherer connect_timeout=2",
		"hunter2",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := Open(ctx, Options{PostgresDSN: dsn})
			g.Expect(err).To(Or(MatchError(ErrUnavailable), MatchError(ErrInvalid)))
			g.Expect(err).To(silent())
		})
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	g := NewWithT(t)
	_, err := Open(t.Context(), Options{PostgresDSN: "postgres://tideline@127.0.0.1:1/ledger?sslmode=disable"})
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err).To(MatchError("open the ledger: the ledger is not available: PostgreSQL: it cannot be reached (dial: connect: " +
		"connection refused): see whether it is up, and whether host, port and TLS of the DSN are right; it is tried again"))
}

func TestServerThatRefuses(t *testing.T) {
	if server == nil {
		t.Skip(notInstalled)
	}
	g := NewWithT(t)
	_, err := Open(t.Context(), Options{PostgresDSN: strings.Replace(server.DSN(), "/postgres?", "/hunter?", 1)})
	g.Expect(err).To(And(silent(), MatchError(ContainSubstring("has no such database (SQLSTATE 3D000)"))))
	g.Expect(err).To(MatchError(ErrUnavailable))
	_, err = Open(t.Context(), Options{PostgresDSN: strings.Replace(server.DSN(), "tideline@", "hunter@", 1)})
	g.Expect(err).To(And(silent(), MatchError(ContainSubstring("does not accept the user or the password (SQLSTATE 28000)"))))
	g.Expect(err).To(MatchError(ErrUnavailable))
	dsn, err := server.Schema(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Open(t.Context(), Options{PostgresDSN: dsn + "&default_transaction_read_only=on"})
	g.Expect(err).To(And(MatchError(ContainSubstring("it only reads")), MatchError(ErrUnavailable)))
}

// A server that is restarted ends its connections. What was on its way is recorded again.
func TestServerThatHangsUp(t *testing.T) {
	if server == nil {
		t.Skip(notInstalled)
	}
	g := NewWithT(t)
	dsn, err := server.Schema(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	l := opened(t, g, Options{PostgresDSN: dsn + "&application_name=hangs-up"})
	other := opened(t, g, Options{PostgresDSN: dsn})
	for range 3 {
		_, err := other.writer.ExecContext(t.Context(),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hangs-up'")
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func() error {
			err := l.RecordEntries(t.Context(), Entries{Stays: []Stay{stay("a", "14 22:00:00", "14 23:00:00")}})
			g.Expect(err).To(Or(Succeed(), MatchError(ErrUnavailable)))
			return err
		}).Should(Succeed())
	}
	g.Expect(l.OpenStays(t.Context())).To(HaveLen(1))
}

func TestCanceledQuestions(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.QueryUsage(ctx, Query{From: at("14 00:00:00"), To: at("16 00:00:00")})
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(errors.Is(err, ErrUnavailable)).To(BeFalse())
	})
}
