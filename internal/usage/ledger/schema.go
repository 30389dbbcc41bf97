package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	clustered = " CLUSTERED"
	// beginVersion is since when a ledger says when it began.
	beginVersion = 4
)

// migrations make the tables of a version from those of the one before it; the first makes version 1. What was released is never
// changed, only added to. Days are counted from 1970-01-01, times are seconds since then, of decisions microseconds, all UTC.
// Where SQLite keeps a table in the order of its key, which PostgreSQL cannot, the statement ends with clustered.
var migrations = [][]string{{
	// Owners of pods. There are few of them, so they are stored once, and totals are computed by numbers.
	`CREATE TABLE series (
		id BIGINT PRIMARY KEY,
		digest TEXT NOT NULL UNIQUE,
		namespace TEXT NOT NULL,
		profile TEXT NOT NULL,
		queue TEXT NOT NULL,
		user_name TEXT NOT NULL,
		tier TEXT NOT NULL,
		kind TEXT NOT NULL,
		task TEXT NOT NULL,
		role TEXT NOT NULL,
		model TEXT NOT NULL
	)`,
	// The time of a pod on a day. The days of a pod follow one another; the state of the last says whether it has ended.
	`CREATE TABLE pod_day (
		pod_uid TEXT NOT NULL,
		day BIGINT NOT NULL,
		begin_at BIGINT NOT NULL,
		end_at BIGINT NOT NULL,
		state BIGINT NOT NULL,
		outcome TEXT NOT NULL,
		uncertain BIGINT NOT NULL,
		series BIGINT NOT NULL,
		name TEXT NOT NULL,
		node TEXT NOT NULL,
		run TEXT NOT NULL,
		resources TEXT NOT NULL,
		PRIMARY KEY (pod_uid, day)
	)`,
	`CREATE INDEX pod_day_by_day ON pod_day (day)`,
	`CREATE INDEX pod_day_open ON pod_day (pod_uid) WHERE state = 1`,
	// The sums of pod_day, kept in the transactions that write it.
	`CREATE TABLE task_day (
		day BIGINT NOT NULL,
		series BIGINT NOT NULL,
		resource TEXT NOT NULL,
		amount_seconds BIGINT NOT NULL,
		pod_seconds BIGINT NOT NULL,
		uncertain_seconds BIGINT NOT NULL,
		PRIMARY KEY (day, series, resource)
	)` + clustered,
	`CREATE TABLE decision (
		seq BIGINT PRIMARY KEY,
		digest TEXT NOT NULL UNIQUE,
		at BIGINT NOT NULL,
		kind TEXT NOT NULL,
		namespace TEXT NOT NULL,
		name TEXT NOT NULL,
		content TEXT NOT NULL
	)`,
	`CREATE INDEX decision_of ON decision (namespace, name, at)`,
	`CREATE INDEX decision_at ON decision (at)`,
}, {
	// The pods of a task on a day are found by the ids of its series.
	`DROP INDEX pod_day_by_day`,
	`CREATE INDEX pod_day_by_day ON pod_day (day, series)`,
	// What usage is kept of. As with series there are few, so they are written once.
	`CREATE TABLE part (
		id BIGINT PRIMARY KEY,
		digest TEXT NOT NULL UNIQUE,
		namespace TEXT NOT NULL,
		kind TEXT NOT NULL,
		task TEXT NOT NULL,
		role TEXT NOT NULL,
		container TEXT NOT NULL
	)`,
	// The use of a part on a day. It is not in the order of its key: rows are long, and those of a day are read together.
	`CREATE TABLE part_day (
		part BIGINT NOT NULL,
		day BIGINT NOT NULL,
		seen_seconds BIGINT NOT NULL,
		content TEXT NOT NULL,
		PRIMARY KEY (part, day)
	)`,
	`CREATE INDEX part_day_by_day ON part_day (day)`,
	// Until when days were looked at: also those on which nothing was seen.
	`CREATE TABLE collected_day (
		day BIGINT PRIMARY KEY,
		until_at BIGINT NOT NULL
	)`,
	`CREATE TABLE oom_kill (
		id TEXT PRIMARY KEY,
		part BIGINT NOT NULL,
		at BIGINT NOT NULL,
		limit_bytes BIGINT NOT NULL
	)`,
	`CREATE INDEX oom_kill_at ON oom_kill (at)`,
}, {
	// The mails about a period of a report, which is what keeps them from being sent twice. The digest is of all up to address.
	`CREATE TABLE delivery (
		digest TEXT PRIMARY KEY,
		report TEXT NOT NULL,
		period_end BIGINT NOT NULL,
		kind TEXT NOT NULL,
		user_name TEXT NOT NULL,
		address TEXT NOT NULL,
		state TEXT NOT NULL,
		at BIGINT NOT NULL,
		tries BIGINT NOT NULL,
		error TEXT NOT NULL
	)`,
	`CREATE INDEX delivery_of ON delivery (report, period_end)`,
	// The reports that were made, and their files.
	`CREATE TABLE report (
		report TEXT NOT NULL,
		period_end BIGINT NOT NULL,
		revision BIGINT NOT NULL,
		name TEXT NOT NULL,
		period_begin BIGINT NOT NULL,
		made_at BIGINT NOT NULL,
		summary TEXT NOT NULL,
		PRIMARY KEY (report, period_end, revision)
	)`,
	`CREATE INDEX report_of ON report (name, period_end)`,
	// How much was free at a time.
	`CREATE TABLE room (
		at BIGINT PRIMARY KEY,
		free DOUBLE PRECISION NOT NULL,
		unusable DOUBLE PRECISION NOT NULL,
		gangs BIGINT NOT NULL
	)`,
	`CREATE TABLE report_file (
		report TEXT NOT NULL,
		period_end BIGINT NOT NULL,
		revision BIGINT NOT NULL,
		name TEXT NOT NULL,
		content TEXT NOT NULL,
		PRIMARY KEY (report, period_end, revision, name)
	)`,
}, {
	// Since when the ledger has all that ran. A ledger of an older version did not say; its oldest entry is the best guess.
	`CREATE TABLE ledger_begin (at BIGINT NOT NULL)`,
	`INSERT INTO ledger_begin (at) SELECT MIN(begin_at) FROM pod_day HAVING MIN(begin_at) IS NOT NULL`,
}, {
	// Trainings that tell of their steps, and up to where they are accounted for: in seconds, in nanoseconds and in steps.
	`CREATE TABLE training (
		uid TEXT PRIMARY KEY,
		until_at BIGINT NOT NULL,
		heard_at BIGINT NOT NULL,
		step BIGINT NOT NULL
	)`,
	// What became of the GPU time of a training on a day, in GPU-seconds. What waits is of steps that no checkpoint has yet.
	`CREATE TABLE training_day (
		uid TEXT NOT NULL,
		day BIGINT NOT NULL,
		series BIGINT NOT NULL,
		held BIGINT NOT NULL,
		kept BIGINT NOT NULL,
		lost BIGINT NOT NULL,
		waiting BIGINT NOT NULL,
		first_step BIGINT NOT NULL,
		last_step BIGINT NOT NULL,
		PRIMARY KEY (uid, day)
	)`,
	`CREATE INDEX training_day_by_day ON training_day (day)`,
	`CREATE INDEX training_day_waiting ON training_day (uid) WHERE waiting > 0`,
}}

// schema makes the tables by the first of the migrations, or all of them.
type schema struct {
	migrations [][]string
	// clock says when a ledger begins.
	clock func() time.Time
}

// migrate brings the tables up to the version that migrations end with.
func (s schema) migrate(ctx context.Context, tx transaction) error {
	migrations := s.migrations
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS ledger_version (version BIGINT NOT NULL)`); err != nil {
		return err
	}
	version, err := readVersion(ctx, tx, len(migrations))
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		for _, statement := range migrations[version] {
			if _, err := tx.ExecContext(ctx, strings.Replace(statement, clustered, tx.clustered, 1)); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO ledger_version (version) VALUES (%d)`, version+1)); err != nil {
			return err
		}
	}
	if version < beginVersion {
		return nil
	}
	// Of a ledger that had pods before this table the migration has said when it began.
	_, err = tx.ExecContext(ctx, "INSERT INTO ledger_begin (at) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM ledger_begin)",
		s.clock().Unix())
	return err
}

// readVersion reads of which version the tables are, and refuses one that is newer than this operator.
func readVersion(ctx context.Context, tx transaction, newest int) (version int, err error) {
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM ledger_version`).Scan(&version); err != nil {
		return 0, err
	}
	if version > newest {
		return 0, problemf(ErrUnusable, "its tables are of version %d, and this operator knows none after %d: run the operator that "+
			"wrote them, or a newer one", version, newest)
	}
	return version, nil
}

// checkVersion refuses tables that are not of this version.
func checkVersion(ctx context.Context, tx transaction) error {
	var tables, version int
	if err := tx.QueryRowContext(ctx, tx.versionTables).Scan(&tables); err != nil {
		return err
	}
	if tables > 0 {
		var err error
		if version, err = readVersion(ctx, tx, len(migrations)); err != nil {
			return err
		}
	}
	if version < len(migrations) {
		return behindf("its tables are of version %d, and this program reads version %d", version, len(migrations))
	}
	return nil
}

// KnownSince is since when the ledger has all that ran: since it was made, or since the last day that was pruned. What ran before
// is unknown, but for the days of pods that are or were still there then.
func (l *Ledger) KnownSince(ctx context.Context) (time.Time, error) {
	var at int64
	err := l.readTransaction(ctx, "read when the ledger began", func(ctx context.Context, tx transaction) error {
		return tx.QueryRowContext(ctx, "SELECT MAX(at) FROM ledger_begin").Scan(&at)
	})
	return time.Unix(at, 0).UTC(), err
}
