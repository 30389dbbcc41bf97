package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

const trainingDayColumns = "uid, day, series, held, kept, lost, waiting, first_step, last_step"

func recordTrained(ctx context.Context, tx transaction, all []Trained) error {
	if len(all) == 0 {
		return nil
	}
	owners := make([]series, len(all))
	for i := range all {
		owners[i] = all[i].toSeries()
	}
	ids, err := names[series]{"series", seriesNames, func(s series) []string { return s.columnValues() }}.ensureIDs(ctx, tx, owners)
	if err != nil {
		return err
	}
	before, err := loadTrainings(ctx, tx, all)
	if err != nil {
		return err
	}
	after := make(map[string]*training, len(before))
	for uid, t := range before {
		after[uid] = &training{t.trainingCursor, maps.Clone(t.days)}
	}
	for i := range all {
		after[cleanText(all[i].UID)].follow(&all[i], ids[owners[i]])
	}
	return replaceTrainings(ctx, tx, before, after)
}

// toSeries is what a training counts for. Its pods are of several roles, so that it is of none.
func (e *Trained) toSeries() series {
	return seriesOf(Pod{
		Namespace: e.Namespace, Profile: e.Profile, Queue: e.Queue, User: e.User, Tier: e.Tier, Kind: e.Kind, Task: e.Task,
	})
}

// loadTrainings loads what entries may change of their trainings: the days that they are of, and those with steps that wait for a
// checkpoint. A training of which nothing is known has no days.
func loadTrainings(ctx context.Context, tx transaction, all []Trained) (map[string]*training, error) {
	found := make(map[string]*training, len(all))
	earliestDay := dayOf(all[0].From)
	for i := range all {
		e := &all[i]
		found[cleanText(e.UID)] = &training{days: map[int64]trainingDay{}}
		earliestDay = min(earliestDay, dayOf(e.From))
		for j := range e.Stretches {
			earliestDay = min(earliestDay, dayOf(e.Stretches[j].Began))
		}
	}
	uids := slices.Sorted(maps.Keys(found))
	err := eachOf(ctx, tx, "SELECT uid, until_at, heard_at, step FROM training WHERE uid IN %s", uids,
		func(scan func(...any) error) error {
			var uid string
			var at trainingCursor
			err := scan(&uid, &at.until, &at.heard, &at.step)
			if err == nil {
				found[uid].trainingCursor = at
			}
			return err
		})
	// Two questions, because each goes by an index of its own.
	for _, which := range []string{"waiting > 0", fmt.Sprintf("day >= %d", earliestDay)} {
		if err != nil {
			return nil, err
		}
		err = eachOf(ctx, tx, "SELECT "+trainingDayColumns+" FROM training_day WHERE "+which+" AND uid IN %s", uids,
			func(scan func(...any) error) error {
				var uid string
				var day int64
				var d trainingDay
				err := scan(&uid, &day, &d.series, &d.held, &d.kept, &d.lost, &d.waiting, &d.first, &d.last)
				if err == nil {
					found[uid].days[day] = d
				}
				return err
			})
	}
	return found, err
}

// replaceTrainings writes what differs between trainings before and after.
func replaceTrainings(ctx context.Context, tx transaction, before, after map[string]*training) error {
	var cursors, days [][]any
	for _, uid := range slices.Sorted(maps.Keys(after)) {
		was, is := before[uid], after[uid]
		if is.trainingCursor != was.trainingCursor {
			cursors = append(cursors, []any{uid, is.until, is.heard, is.step})
		}
		for _, day := range slices.Sorted(maps.Keys(is.days)) {
			if d := is.days[day]; d != was.days[day] {
				days = append(days, []any{uid, day, d.series, d.held, d.kept, d.lost, d.waiting, d.first, d.last})
			}
		}
	}
	if err := tx.insertRows(ctx, "INSERT INTO training (uid, until_at, heard_at, step)", cursors, " ON CONFLICT (uid) DO UPDATE "+
		"SET until_at = excluded.until_at, heard_at = excluded.heard_at, step = excluded.step"); err != nil {
		return err
	}
	return tx.insertRows(ctx, "INSERT INTO training_day ("+trainingDayColumns+")", days, " ON CONFLICT (uid, day) DO UPDATE SET "+
		"held = excluded.held, kept = excluded.kept, lost = excluded.lost, waiting = excluded.waiting, "+
		"first_step = excluded.first_step, last_step = excluded.last_step")
}

// Goodput is what became of the GPU time of the trainings of one owner that told of their steps, in GPU-seconds.
type Goodput struct {
	// Namespace, Profile, Queue, User, Kind and Task as those of [Pod].
	Namespace, Profile, Queue, User, Kind, Task string
	// Held by ready workers, and the parts of it that led to steps that a checkpoint has, and to steps that were lost. The rest led
	// to none, or to steps that no checkpoint has yet.
	Held, Kept, Lost int64
}

// QueryGoodput is what became of the GPU time of a range of time, to excluded: of all days, in UTC, that have a moment in it. A
// training that said nothing of its steps is not in it, because nothing is known of it. What is kept and lost of a training's day
// is no more than what it held, whatever it said of its steps.
func (l *Ledger) QueryGoodput(ctx context.Context, from, to time.Time) ([]Goodput, error) {
	first, end := daysWithin(from, to)
	var list []Goodput
	err := l.readTransaction(ctx, "read from the ledger what became of GPU time", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, `SELECT s.namespace, s.profile, s.queue, s.user_name, s.kind, s.task, CAST(SUM(c.held) AS BIGINT),
				CAST(SUM(c.kept) AS BIGINT), CAST(SUM(CASE WHEN c.lost < c.held - c.kept THEN c.lost ELSE c.held - c.kept END) AS BIGINT)
			FROM (SELECT d.series AS series, d.held AS held, CASE WHEN d.kept < d.held THEN d.kept ELSE d.held END AS kept, d.lost AS lost
				FROM training_day d JOIN training t ON t.uid = d.uid WHERE d.day >= $1 AND d.day < $2 AND t.heard_at > 0) c
			JOIN series s ON s.id = c.series
			GROUP BY s.namespace, s.profile, s.queue, s.user_name, s.kind, s.task
			ORDER BY s.namespace, s.profile, s.queue, s.user_name, s.kind, s.task`, []any{first, end},
			func(scan func(...any) error) error {
				var g Goodput
				err := scan(&g.Namespace, &g.Profile, &g.Queue, &g.User, &g.Kind, &g.Task, &g.Held, &g.Kept, &g.Lost)
				list = append(list, g)
				return err
			})
	})
	return list, err
}
