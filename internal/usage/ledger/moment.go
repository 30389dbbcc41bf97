package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MostHeld is how many stays HeldAt returns at most.
const MostHeld = 10_000

// HeldQuery asks for the pods that held something at a time. A field that is empty leaves none out.
type HeldQuery struct {
	At time.Time
	// Queue and Profile that they count for.
	Queue, Profile string
	// Limit is how many are returned at most, from 1 to MostHeld, which is the default.
	Limit int
}

// HeldAt are the stays, whole, of the pods that held something at a time, those that began first before others. One that was not
// seen to end goes on at any time after it was seen last. More says that there were more than the limit.
func (l *Ledger) HeldAt(ctx context.Context, q HeldQuery) (stays []Stay, more bool, err error) {
	if q.Limit <= 0 || q.Limit > MostHeld {
		q.Limit = MostHeld
	}
	at := q.At.Unix()
	args := []any{dayOf(q.At), at, int64(running)}
	var condition strings.Builder
	for _, chosen := range []struct{ column, value string }{{"s.queue", q.Queue}, {"s.profile", q.Profile}} {
		if chosen.value != "" {
			args = append(args, cleanText(chosen.value))
			fmt.Fprintf(&condition, " AND %s = $%d", chosen.column, len(args))
		}
	}
	question := "SELECT " + stayColumns("e.") + `
		FROM pod_day p JOIN series s ON s.id = p.series JOIN pod_day e ON e.pod_uid = p.pod_uid AND e.state > 0
		WHERE p.day = $1 AND p.begin_at <= $2 AND (p.end_at > $2 OR p.state = $3)` + condition.String() +
		fmt.Sprintf(" ORDER BY p.begin_at, p.pod_uid LIMIT %d", q.Limit+1)
	parsed := parser{}
	err = l.readTransaction(ctx, "read from the ledger who held what", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, question, args, func(scan func(...any) error) error {
			s, err := scanStay(scan, parsed)
			stays = append(stays, s)
			return err
		})
	})
	if more = len(stays) > q.Limit; more {
		stays = stays[:q.Limit]
	}
	slices.SortFunc(stays, func(a, b Stay) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.UID, b.UID)) })
	return stays, more, err
}

// RunStays are the stays of pods of some runs that were there in a range of time, to excluded, cut to it, by begin and UID. The
// range counts in whole seconds. Of what the days say of a pod, what the first day of the range says counts. One that was not
// seen to end goes on until it was seen last. Runs of several tasks may have one name.
func (l *Ledger) RunStays(ctx context.Context, from, to time.Time, runs []string) ([]Stay, error) {
	if len(runs) == 0 || !from.Before(to) {
		return nil, nil
	}
	names := make([]string, len(runs))
	for i, run := range runs {
		names[i] = cleanText(run)
	}
	slices.Sort(names)
	first, end := daysWithin(from, to)
	question := "SELECT p.pod_uid, p.name, p.node, p.run, p.resources, " + seriesColumns + fmt.Sprintf(`,
			p.begin_at, p.end_at, p.state, p.outcome, p.uncertain
		FROM pod_day p JOIN series s ON s.id = p.series
		WHERE p.day >= %d AND p.day < %d AND p.begin_at < %d AND p.end_at > %d`, first, end, to.Unix(), from.Unix()) +
		" AND p.run IN %s ORDER BY p.day"
	found, parsed := map[string]*Stay{}, parser{}
	err := l.readTransaction(ctx, "read the pods of runs from the ledger", func(ctx context.Context, tx transaction) error {
		return eachOf(ctx, tx, question, slices.Compact(names), func(scan func(...any) error) error {
			s, err := scanStay(scan, parsed)
			if err != nil {
				return err
			}
			if before := found[s.UID]; before != nil {
				before.End, before.Final, before.Outcome, before.Uncertain = s.End, s.Final, s.Outcome, s.Uncertain
				return nil
			}
			found[s.UID] = &s
			return nil
		})
	})
	stays := make([]Stay, 0, len(found))
	for _, s := range found {
		stays = append(stays, s.ClippedTo(from, to))
	}
	slices.SortFunc(stays, func(a, b Stay) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.UID, b.UID)) })
	return stays, err
}

// ClippedTo is the part of a stay in a range of time. That of one that was not there in it ends before it begins.
func (s *Stay) ClippedTo(from, to time.Time) Stay {
	part := *s
	if part.Begin.Before(from) {
		part.Begin = from
	}
	if part.End.After(to) {
		part.End = to
	}
	return part
}
