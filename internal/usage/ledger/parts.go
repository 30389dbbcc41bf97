package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Part is what uses processors, memory and accelerators: a container of the pods of a role of a task, over all its runs;
// without a container, such pods as a whole.
type Part struct {
	// Namespace, Kind and Task as those of [Pod].
	Namespace, Kind, Task string
	// Role of the pods among those of their job.
	Role string
	// Container by its name; empty for pods as a whole.
	Container string
}

// String names the part in messages.
func (p Part) String() string {
	return fmt.Sprintf("container %q of the %ss of %s %s/%s", p.Container, p.Role, p.Kind, p.Namespace, p.Task)
}

// PartDay is the use of a part on a day.
type PartDay struct {
	Part
	// Day is any time of that day, in UTC; where it is read, the midnight that it begins with.
	Day time.Time
	// SeenSeconds is for how long the part was seen. Of what is recorded of a day, that which saw most stays, and the later one if
	// both saw as much: what saw less is no news, but a gap.
	SeenSeconds int64
	// Content is what was seen, as a text. The ledger does not interpret it.
	Content string
}

// Collected says until when a day was looked at. Of several times the latest stays.
type Collected struct {
	// Day is any time of that day, in UTC; where it is read, the midnight that it begins with.
	Day time.Time
	// Until counts in whole seconds.
	Until time.Time
}

// MaxKillID is the length of the longest ID of an OOMKill, in bytes.
const MaxKillID = 500

// OOMKill is the kill of a container that ran out of memory. Each is recorded once.
type OOMKill struct {
	// ID tells it from all others, from 1 to MaxKillID bytes.
	ID string
	// Part that the container is of.
	Part
	// At is when it was killed. It counts in whole seconds.
	At time.Time
	// LimitBytes is how much memory it was allowed; 0 for without limit.
	LimitBytes int64
}

func (k *OOMKill) check() error {
	switch {
	case k.ID == "" || len(k.ID) > MaxKillID:
		return problemf(ErrInvalid, "the ID of a kill of %s has %d bytes, and must have from 1 to %d", k.Part, len(k.ID), MaxKillID)
	case k.At.Before(earliest):
		return problemf(ErrInvalid, "%s was killed in the year %d", k.Part, k.At.Year())
	}
	return nil
}

var partNames = names[Part]{"part", []string{"namespace", "kind", "task", "role", "container"}, func(p Part) []string {
	return []string{p.Namespace, p.Kind, p.Task, p.Role, p.Container}
}}

// partColumns are the columns of a part in a table p.
const partColumns = "p.namespace, p.kind, p.task, p.role, p.container"

// partFields are where these columns are read to.
func partFields(p *Part) []any { return []any{&p.Namespace, &p.Kind, &p.Task, &p.Role, &p.Container} }

func (p Part) withCleanNames() Part {
	return Part{cleanText(p.Namespace), cleanText(p.Kind), cleanText(p.Task), cleanText(p.Role), cleanText(p.Container)}
}

func recordParts(ctx context.Context, tx transaction, days []PartDay, kills []OOMKill) error {
	if len(days)+len(kills) == 0 {
		return nil
	}
	parts := make([]Part, 0, len(days)+len(kills))
	for i := range days {
		parts = append(parts, days[i].withCleanNames())
	}
	for i := range kills {
		parts = append(parts, kills[i].withCleanNames())
	}
	ids, err := partNames.ensureIDs(ctx, tx, parts)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, d := range mostPerPart(days) {
		rows = append(rows, []any{ids[d.withCleanNames()], dayOf(d.Day), d.SeenSeconds, cleanText(d.Content)})
	}
	if err := tx.insertRows(ctx, "INSERT INTO part_day (part, day, seen_seconds, content)", rows, " ON CONFLICT (part, day) "+
		"DO UPDATE "+
		"SET seen_seconds = excluded.seen_seconds, content = excluded.content WHERE excluded.seen_seconds >= part_day.seen_seconds",
	); err != nil {
		return err
	}
	rows = nil
	for i := range kills {
		k := &kills[i]
		rows = append(rows, []any{cleanText(k.ID), ids[k.withCleanNames()], k.At.Unix(), max(k.LimitBytes, 0)})
	}
	return tx.insertRows(ctx, "INSERT INTO oom_kill (id, part, at, limit_bytes)", rows, " ON CONFLICT (id) DO NOTHING")
}

// mostPerPart are the days of parts that saw most, one of each: PostgreSQL changes a row once in a statement.
func mostPerPart(days []PartDay) []PartDay {
	type key struct {
		Part
		day int64
	}
	at := make(map[key]int, len(days))
	var best []PartDay
	for i := range days {
		k := key{days[i].withCleanNames(), dayOf(days[i].Day)}
		switch j, known := at[k]; {
		case !known:
			at[k] = len(best)
			best = append(best, days[i])
		case days[i].SeenSeconds >= best[j].SeenSeconds:
			best[j] = days[i]
		}
	}
	return best
}

// recordCollected notes until when days were looked at. The last note holds: a clock that is set back leaves a later one, and a
// day that is looked at once too often does no harm.
func recordCollected(ctx context.Context, tx transaction, collected []Collected) error {
	for _, c := range collected { // there are few
		if err := tx.insertRows(ctx, "INSERT INTO collected_day (day, until_at)", [][]any{{dayOf(c.Day), c.Until.Unix()}},
			" ON CONFLICT (day) DO UPDATE SET until_at = excluded.until_at"); err != nil {
			return err
		}
	}
	return nil
}

// PartQuery asks for the use of parts. An empty field matches all parts, but From and To are required.
type PartQuery struct {
	// From and To are the range of time, To excluded. It covers all days, in UTC, that have a moment in it.
	From, To time.Time
	// Namespace, Kind, Task and Role.
	Namespace, Kind, Task, Role string
}

// PartDays hands out the use of parts, in the order of days. It does not keep what it has handed out, and sees the
// ledger as it was when it began. An error of each ends it, and is returned.
func (l *Ledger) PartDays(ctx context.Context, q PartQuery, each func(PartDay) error) error {
	var condition strings.Builder
	from, to := daysWithin(q.From, q.To)
	args := []any{from, to}
	for _, chosen := range []struct{ column, value string }{
		{"p.namespace", q.Namespace}, {"p.kind", q.Kind}, {"p.task", q.Task}, {"p.role", q.Role},
	} {
		if chosen.value != "" {
			args = append(args, cleanText(chosen.value))
			fmt.Fprintf(&condition, " AND %s = $%d", chosen.column, len(args))
		}
	}
	return l.readTransaction(ctx, "read what containers used from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT d.day, d.seen_seconds, d.content, "+partColumns+`
			FROM part_day d JOIN part p ON p.id = d.part WHERE d.day >= $1 AND d.day < $2`+condition.String()+" ORDER BY d.day", args,
			func(scan func(...any) error) error {
				var d PartDay
				var day int64
				if err := scan(append([]any{&day, &d.SeenSeconds, &d.Content}, partFields(&d.Part)...)...); err != nil {
					return err
				}
				d.Day = midnightOf(day)
				if err := each(d); err != nil {
					return writeError{err}
				}
				return nil
			})
	})
}

// OOMKills are those within a range of days, as that of PartQuery, in the order in which they happened.
func (l *Ledger) OOMKills(ctx context.Context, from, to time.Time) ([]OOMKill, error) {
	first, end := daysWithin(from, to)
	var kills []OOMKill
	err := l.readTransaction(ctx, "read kills from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT k.id, k.at, k.limit_bytes, "+partColumns+` FROM oom_kill k JOIN part p ON p.id = k.part
			WHERE k.at >= $1 AND k.at < $2 ORDER BY k.at, k.id`, []any{first * secondsOfDay, end * secondsOfDay},
			func(scan func(...any) error) error {
				var k OOMKill
				var at int64
				err := scan(append([]any{&k.ID, &at, &k.LimitBytes}, partFields(&k.Part)...)...)
				k.At = time.Unix(at, 0).UTC()
				kills = append(kills, k)
				return err
			})
	})
	return kills, err
}

// KillLimits are the highest limits of memory, in bytes, at which parts ran out of it, by part: of all kills that are kept. It is
// one number for a part, however often it was killed. A kill without a limit is not among them.
func (l *Ledger) KillLimits(ctx context.Context) (map[Part]int64, error) {
	limits := map[Part]int64{}
	err := l.readTransaction(ctx, "read from the ledger at which limits containers were killed",
		func(ctx context.Context, tx transaction) error {
			clear(limits)
			return tx.eachRow(ctx, "SELECT k.most, "+partColumns+` FROM (SELECT part, MAX(limit_bytes) AS most FROM oom_kill
				WHERE limit_bytes > 0 GROUP BY part) k JOIN part p ON p.id = k.part`, nil, func(scan func(...any) error) error {
				var part Part
				var limit int64
				err := scan(append([]any{&limit}, partFields(&part)...)...)
				limits[part] = limit
				return err
			})
		})
	return limits, err
}

// CollectedDays are those within a range of days, as that of PartQuery, in their order. A day that is not among them was never
// looked at.
func (l *Ledger) CollectedDays(ctx context.Context, from, to time.Time) ([]Collected, error) {
	first, end := daysWithin(from, to)
	var days []Collected
	err := l.readTransaction(ctx, "read from the ledger which days were collected", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT day, until_at FROM collected_day WHERE day >= $1 AND day < $2 ORDER BY day", []any{first, end},
			func(scan func(...any) error) error {
				var day, until int64
				err := scan(&day, &until)
				days = append(days, Collected{midnightOf(day), time.Unix(until, 0).UTC()})
				return err
			})
	})
	return days, err
}

// dayOf is the day of a time, in UTC.
func dayOf(t time.Time) int64 { return t.Unix() / secondsOfDay }

// midnightOf is when a day begins.
func midnightOf(day int64) time.Time { return time.Unix(day*secondsOfDay, 0).UTC() }

// daysWithin are the days with a moment in a range: from the first one until before the end.
func daysWithin(from, to time.Time) (first, end int64) { return dayOf(from), dayOf(to.Add(-1)) + 1 }
