package ledger

import (
	"context"
	"fmt"
	"strings"
)

const clustered = " CLUSTERED"

// migrations make the tables of a version from those of the one before it; the first makes version 1. What was released is never
// changed, only added to. Days are counted from 1970-01-01, times are seconds since then, of decisions microseconds, all UTC.
// Where SQLite keeps a table in the order of its key, which PostgreSQL cannot, the statement ends with clustered.
var migrations = [][]string{{
	// Who answers for a pod. There are few of them, so they are written once, and totals are made of numbers.
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
}}

// migrate brings the tables up to date.
func migrate(ctx context.Context, tx transaction) error {
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS ledger_version (version BIGINT NOT NULL)`); err != nil {
		return err
	}
	var version int
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM ledger_version`).Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return problemf(ErrUnusable, "its tables are of version %d, and this operator knows none after %d: run the operator that "+
			"wrote them, or a newer one", version, len(migrations))
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
	return nil
}
