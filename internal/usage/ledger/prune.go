package ledger

import (
	"context"
	"time"
)

// PruneBefore deletes the days, in UTC, that ended before a time, and decisions, kills, measured room, what became of GPU time,
// mails and reports of such days, and says how many records those were. All days of a stay that was not seen to end are kept, so
// that its end can be recorded, and the mails of the last period of each report, so that none is sent again.
func (l *Ledger) PruneBefore(ctx context.Context, before time.Time) (int64, error) {
	var pruned int64
	day := dayOf(before)
	err := l.writeTransaction(ctx, "prune the ledger", func(ctx context.Context, tx transaction) error {
		pruned = 0
		for _, old := range []struct {
			statement string
			before    int64
		}{
			{"DELETE FROM pod_day WHERE day < $1 AND pod_uid NOT IN (SELECT pod_uid FROM pod_day WHERE state = 1)", day},
			{"DELETE FROM decision WHERE at < $1", time.Unix(day*secondsOfDay, 0).UnixMicro()},
			{"DELETE FROM part_day WHERE day < $1", day},
			{"DELETE FROM collected_day WHERE day < $1", day},
			{"DELETE FROM oom_kill WHERE at < $1", day * secondsOfDay},
			{"DELETE FROM training_day WHERE day < $1", day},
			{"DELETE FROM room WHERE at < $1", day * secondsOfDay},
			{"DELETE FROM delivery WHERE period_end < $1 AND EXISTS (SELECT 1 FROM delivery later WHERE later.report = delivery.report " +
				"AND later.period_end > delivery.period_end)", day * secondsOfDay},
			{"DELETE FROM report_file WHERE period_end < $1", day * secondsOfDay},
			{"DELETE FROM report WHERE period_end < $1", day * secondsOfDay},
		} {
			result, err := tx.ExecContext(ctx, old.statement, old.before)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			pruned += n
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM part WHERE NOT EXISTS (SELECT 1 FROM part_day d WHERE d.part = part.id) "+
			"AND id NOT IN (SELECT part FROM oom_kill)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM training WHERE until_at < $1 AND NOT EXISTS "+
			"(SELECT 1 FROM training_day d WHERE d.uid = training.uid)", day*secondsOfDay); err != nil {
			return err
		}
		// What was before is unknown from now on, and reports and budgets must say so.
		if _, err := tx.ExecContext(ctx, "UPDATE ledger_begin SET at = $1 WHERE at < $1", day*secondsOfDay); err != nil {
			return err
		}
		return sumAnew(ctx, tx, day)
	})
	return pruned, err
}

// sumAnew computes the sums of the days before a day again from what is left of them, and forgets series without any entry.
func sumAnew(ctx context.Context, tx transaction, before int64) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM task_day WHERE day < $1", before); err != nil {
		return err
	}
	sums := map[cell]amountSum{}
	parsed := parser{}
	question := "SELECT " + podDayColumns + " FROM pod_day WHERE day < $1"
	err := tx.eachRow(ctx, question, []any{before}, func(scan func(...any) error) error {
		d, err := scanPodDay(scan)
		if err != nil {
			return err
		}
		resources, err := parsed.parseResources(d.resources)
		if err != nil {
			return err
		}
		d.addAmounts(sums, resources, 1)
		return nil
	})
	if err != nil {
		return err
	}
	if err := addSums(ctx, tx, sums); err != nil {
		return err
	}
	// NOT IN would have PostgreSQL go through all days of all pods for each series.
	_, err = tx.ExecContext(ctx, "DELETE FROM series WHERE id IN (SELECT id FROM series EXCEPT SELECT series FROM pod_day EXCEPT "+
		"SELECT series FROM training_day)")
	return err
}
