package ledger

import (
	"context"
	"strconv"
	"time"
)

// HeldByQueue is for how long pods of a kind and role held a node, summed over pods, by queue: on the days, in UTC, that have a
// moment of the range, whole. It comes from the sums of days and takes no longer for more pods.
func (l *Ledger) HeldByQueue(ctx context.Context, kind, role string, from, to time.Time) (map[string]time.Duration, error) {
	first, end := daysWithin(from, to)
	held := map[string]time.Duration{}
	// A day of a series has one sum for each resource, and the pods of a series all ask for the same ones: the largest sum has
	// every pod once. Day by day, each series is found by the key, also where PostgreSQL has no statistics yet.
	const question = `SELECT d.queue, CAST(SUM(d.seconds) AS BIGINT)
		FROM (SELECT s.queue AS queue, t.series, MAX(t.pod_seconds) AS seconds FROM task_day t JOIN series s ON s.id = t.series
			WHERE t.day = $1 AND s.kind = $2 AND s.role = $3 GROUP BY t.series, s.queue) d
		GROUP BY d.queue`
	err := l.readTransaction(ctx, "read from the ledger what queues held", func(ctx context.Context, tx transaction) error {
		for day := first; day < end; day++ {
			args := []any{day, cleanText(kind), cleanText(role)}
			if err := tx.eachRow(ctx, question, args, func(scan func(...any) error) error {
				var queue string
				var seconds int64
				err := scan(&queue, &seconds)
				held[queue] += time.Duration(seconds) * time.Second
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return held, err
}

// SumDecisions sums up figure sum of the decisions that are asked for, by the value of figure by. A decision without the first
// counts as 1. The limit plays no part.
func (l *Ledger) SumDecisions(ctx context.Context, q DecisionQuery, by, sum string) (map[string]int64, error) {
	sums := map[string]int64{}
	err := l.EachDecision(ctx, q, func(d *Decision) {
		n := int64(1)
		if figure, is := d.Figures[sum]; is {
			n, _ = strconv.ParseInt(figure, 10, 64) // What is no number is zero.
		}
		if n > 0 {
			sums[d.Figures[by]] += n
		}
	})
	return sums, err
}
