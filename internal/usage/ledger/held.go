package ledger

import (
	"context"
	"slices"
	"time"
)

// Held is what pods that are alike held in a span of time.
type Held struct {
	// Pod is what they are alike in: all but UID, Name, Node and Run, which are empty. Resources are not to be changed.
	Pod
	// First says that their names end with -0, as those of the first pods of jobs.
	First bool
	// Outcome of the pods; empty for those that have not ended.
	Outcome Outcome
	// From and To are the span.
	From, To time.Time
	// PodSeconds is for how long they were there, summed over pods, and UncertainSeconds the part of it that is of days on which a
	// pod ended at a guess.
	PodSeconds, UncertainSeconds int64
	// Pods is how many of them were there last in this span: over all spans each counts once.
	Pods int64
}

// EachHeld hands out what pods held in each of the spans between two of the cuts, which are in order and count in whole
// seconds: in the order of spans, and of a span in no order. Of a cut that is there twice one counts, so that no span is empty.
// EachHeld does not keep what it has handed out, and sees the ledger as it was when it began. An error of each ends it, and is
// returned. The outcome is how a pod ended, also if that was after the last cut.
func (l *Ledger) EachHeld(ctx context.Context, cuts []time.Time, each func(Held) error) error {
	cuts = slices.CompactFunc(slices.Clone(cuts), time.Time.Equal)
	return l.readTransaction(ctx, "read from the ledger what pods held", func(ctx context.Context, tx transaction) error {
		parsed := parser{}
		for i := 1; i < len(cuts); i++ {
			from, to := cuts[i-1].Unix(), cuts[i].Unix()
			for day := from / secondsOfDay; day*secondsOfDay < to; day++ {
				part := span{day, max(from, day*secondsOfDay), min(to, (day+1)*secondsOfDay)}
				last := i == len(cuts)-1 && part.end == to
				if err := heldIn(ctx, tx, part, last, parsed, func(h Held) error {
					h.From, h.To = cuts[i-1], cuts[i]
					return each(h)
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// heldIn hands out what was held in a part of a day, which is the last one of all or not.
func heldIn(ctx context.Context, tx transaction, part span, last bool, parsed parser, each func(Held) error) error {
	wasLast := "p.state > 0 AND p.end_at <= $2"
	if last {
		wasLast = "1 = 1"
	}
	// The many rows are summed by numbers, before the few sums are told apart by texts.
	question := "SELECT " + seriesColumns + `, t.resources, t.outcome, t.first_pod, t.seconds, t.uncertain, t.pods
		FROM (SELECT p.series AS series, p.resources AS resources, CASE WHEN p.name LIKE '%-0' THEN 1 ELSE 0 END AS first_pod,
			CASE WHEN p.state > 0 THEN p.outcome
				ELSE COALESCE((SELECT e.outcome FROM pod_day e WHERE e.pod_uid = p.pod_uid AND e.state > 0), '') END AS outcome,
			CAST(SUM(` + secondsWithin + `) AS BIGINT) AS seconds, CAST(SUM(p.uncertain * ` + secondsWithin + `) AS BIGINT) AS uncertain,
			SUM(CASE WHEN ` + wasLast + ` THEN 1 ELSE 0 END) AS pods
		FROM pod_day p WHERE p.day = $1 AND ` + isWithin + `
		GROUP BY p.series, p.resources, 3, 4) t JOIN series s ON s.id = t.series`
	return tx.eachRow(ctx, question, []any{part.day, part.end, part.begin}, func(scan func(...any) error) error {
		var h Held
		var of series
		var text string
		var first int64
		if err := scan(append(of.scanTargets(), &text, &h.Outcome, &first, &h.PodSeconds, &h.UncertainSeconds,
			&h.Pods)...); err != nil {
			return err
		}
		of.describePod(&h.Pod)
		h.First = first != 0
		var err error
		if h.Resources, err = parsed.parseResources(text); err != nil {
			return err
		}
		if err := each(h); err != nil {
			return writeError{err}
		}
		return nil
	})
}

const (
	// secondsWithin are those of a day p of a pod from $3 until $2. Both databases have a greatest and a least, by different names.
	secondsWithin = "(CASE WHEN p.end_at < $2 THEN p.end_at ELSE $2 END - CASE WHEN p.begin_at > $3 THEN p.begin_at ELSE $3 END)"
	// isWithin chooses days p of pods that were there from $3 until before $2, also those that were gone in the same second.
	isWithin = "p.begin_at < $2 AND (p.end_at > $3 OR p.begin_at >= $3)"
)

// Runs is how many runs of a task an owner had.
type Runs struct {
	// Profile, User, Namespace, Kind and Task as those of [Pod].
	Profile, User, Namespace, Kind, Task string
	// Runs counts each once, whatever number of pods it has; a pod without a run counts as one.
	Runs int64
}

// CountRuns counts the runs that had a pod in a range of time, to excluded. Each counts once. If its pods have different owners,
// it counts for the one that was recorded first.
func (l *Ledger) CountRuns(ctx context.Context, from, to time.Time) ([]Runs, error) {
	first, end := daysWithin(from, to)
	var runs []Runs
	err := l.readTransaction(ctx, "count runs in the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, `SELECT s.profile, s.user_name, s.namespace, s.kind, s.task, COUNT(*)
			FROM (SELECT MIN(p.series) AS series FROM pod_day p JOIN series o ON o.id = p.series
				WHERE p.day >= $1 AND p.day < $4 AND `+isWithin+`
				GROUP BY o.namespace, o.kind, o.task, p.run, CASE WHEN p.run = '' THEN p.pod_uid ELSE '' END) r
			JOIN series s ON s.id = r.series
			GROUP BY s.profile, s.user_name, s.namespace, s.kind, s.task
			ORDER BY s.namespace, s.kind, s.task, s.user_name, s.profile`,
			[]any{first, to.Unix(), from.Unix(), end}, func(scan func(...any) error) error {
				var r Runs
				err := scan(&r.Profile, &r.User, &r.Namespace, &r.Kind, &r.Task, &r.Runs)
				runs = append(runs, r)
				return err
			})
	})
	return runs, err
}
