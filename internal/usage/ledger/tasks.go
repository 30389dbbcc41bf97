package ledger

import (
	"context"
	"maps"
	"strconv"
	"time"
)

// TaskDay are the pods of a task on a day.
type TaskDay struct {
	// Namespace, Kind and Task as those of [Pod].
	Namespace, Kind, Task string
	// Pods is how many there were.
	Pods int64
	// day and series are where StaysOf finds them.
	day    int64
	series []int64
}

// TasksOf are the tasks of some kinds, or of all if there are none, that had pods on a day, in UTC, in the order of their names.
func (l *Ledger) TasksOf(ctx context.Context, day time.Time, kinds ...string) ([]TaskDay, error) {
	args, ofKinds := []any{dayOf(day)}, ""
	if len(kinds) > 0 {
		ofKinds = " AND s.kind IN " + parameterList(2, len(kinds))
	}
	for _, kind := range kinds {
		args = append(args, cleanText(kind))
	}
	var tasks []TaskDay
	err := l.readTransaction(ctx, "read the tasks of a day from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, `SELECT s.namespace, s.kind, s.task, s.id, COUNT(*) FROM pod_day p JOIN series s ON s.id = p.series
			WHERE p.day = $1`+ofKinds+`
			GROUP BY s.namespace, s.kind, s.task, s.id ORDER BY s.namespace, s.kind, s.task, s.id`, args,
			func(scan func(...any) error) error {
				t := TaskDay{day: dayOf(day)}
				var series, pods int64
				if err := scan(&t.Namespace, &t.Kind, &t.Task, &series, &pods); err != nil {
					return err
				}
				last := len(tasks) - 1
				if last < 0 || tasks[last].Namespace != t.Namespace || tasks[last].Kind != t.Kind || tasks[last].Task != t.Task {
					tasks = append(tasks, t)
					last++
				}
				tasks[last].Pods += pods
				tasks[last].series = append(tasks[last].series, series)
				return nil
			})
	})
	return tasks, err
}

// StaysOf are the stays, whole, of the pods that tasks of one day had on it, as TasksOf returned them. What a pod was is what was
// said on that day. A stay whose first days were pruned begins later than it did.
func (l *Ledger) StaysOf(ctx context.Context, tasks ...TaskDay) ([]Stay, error) {
	var series []int64
	for i := range tasks {
		series = append(series, tasks[i].series...)
	}
	if len(series) == 0 {
		return nil, nil
	}
	question := "SELECT " + stayColumns("e.") + `
		FROM pod_day p JOIN series s ON s.id = p.series JOIN pod_day e ON e.pod_uid = p.pod_uid AND e.state > 0
		WHERE p.day = ` + strconv.FormatInt(tasks[0].day, 10) + " AND p.series IN %s"
	var stays []Stay
	parsed := parser{}
	err := l.readTransaction(ctx, "read the stays of a day from the ledger", func(ctx context.Context, tx transaction) error {
		return eachOf(ctx, tx, question, series, func(scan func(...any) error) error {
			s, err := scanStay(scan, parsed)
			stays = append(stays, s)
			return err
		})
	})
	return stays, err
}

// stayColumns are those of a stay of the pod of a day p, of series s, which ends as it does on day last.
func stayColumns(last string) string {
	return "p.pod_uid, p.name, p.node, p.run, p.resources, " + seriesColumns + `,
		(SELECT b.begin_at FROM pod_day b WHERE b.pod_uid = p.pod_uid ORDER BY b.day LIMIT 1),
		` + last + "end_at, " + last + "state, " + last + "outcome, " + last + "uncertain"
}

// scanStay reads them.
func scanStay(scan func(...any) error, parsed parser) (Stay, error) {
	var s Stay
	var of series
	var resources string
	var begin, end, uncertain int64
	var last state
	into := append([]any{&s.UID, &s.Name, &s.Node, &s.Run, &resources}, of.scanTargets()...)
	if err := scan(append(into, &begin, &end, &last, &s.Outcome, &uncertain)...); err != nil {
		return s, err
	}
	of.describePod(&s.Pod)
	s.Begin, s.End = time.Unix(begin, 0).UTC(), time.Unix(end, 0).UTC()
	s.Final, s.Uncertain = last == ended, uncertain != 0
	held, err := parsed.parseResources(resources)
	s.Resources = maps.Clone(held)
	return s, err
}
