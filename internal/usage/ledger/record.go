package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
)

const podDayColumns = "pod_uid, day, begin_at, end_at, state, outcome, uncertain, series, name, node, run, resources"

// RecordEntries adds entries, all of them or none. Entries that are there already change nothing; a stay that is recorded again
// only grows, until it is final, what was seen of a day is replaced only by what saw as much or more, of rooms of one time the
// first stays, and of a training each moment and each step counts once.
func (l *Ledger) RecordEntries(ctx context.Context, e Entries) error {
	const doing = "record in the ledger"
	if err := e.check(); err != nil {
		return l.explainFailure(ctx, doing, err)
	}
	if e.isEmpty() {
		return nil
	}
	return l.writeTransaction(ctx, doing, func(ctx context.Context, tx transaction) error {
		if err := recordStays(ctx, tx, e.Stays); err != nil {
			return err
		}
		if err := recordDecisions(ctx, tx, e.Decisions); err != nil {
			return err
		}
		if err := recordParts(ctx, tx, e.PartDays, e.OOMKills); err != nil {
			return err
		}
		if err := recordCollected(ctx, tx, e.Collected); err != nil {
			return err
		}
		if err := recordRooms(ctx, tx, e.Rooms); err != nil {
			return err
		}
		return recordTrained(ctx, tx, e.Trained)
	})
}

func recordStays(ctx context.Context, tx transaction, stays []Stay) error {
	if len(stays) == 0 {
		return nil
	}
	ids, err := seriesIDs(ctx, tx, stays)
	if err != nil {
		return err
	}
	// Only the last day of a pod can change, so the days before it are not loaded, however long the pod has run.
	before, err := lastDays(ctx, tx, stays)
	if err != nil {
		return err
	}
	after := maps.Clone(before)
	for i := range stays {
		s := toSighting(stays[i], ids)
		// Except if a clock was ahead: then the true end may lie in an earlier day.
		if needsAll(after[s.uid], s) {
			if before[s.uid], after[s.uid], err = withEarlierDays(ctx, tx, before[s.uid], after[s.uid]); err != nil {
				return err
			}
		}
		after[s.uid] = extendDays(after[s.uid], s)
	}
	return replaceDays(ctx, tx, before, after)
}

// toSighting reads a stay.
func toSighting(s Stay, ids map[series]int64) sighting {
	day := podDay{
		uid: cleanText(s.UID), begin: s.Begin.Unix(), end: s.End.Unix(), series: ids[seriesOf(s.Pod)],
		name: cleanText(s.Name), node: cleanText(s.Node), run: cleanText(s.Run), resources: s.Resources.canonicalText(),
	}
	if s.Final {
		day.outcome, day.uncertain = Outcome(cleanText(string(s.Outcome))), s.Uncertain
	}
	return sighting{day, s.Final}
}

// lastDays loads the last day of each pod.
func lastDays(ctx context.Context, tx transaction, stays []Stay) (map[string][]podDay, error) {
	uids := make([]string, len(stays))
	for i := range stays {
		uids[i] = cleanText(stays[i].UID)
	}
	slices.Sort(uids)
	found := make(map[string][]podDay, len(stays))
	err := eachOf(ctx, tx, "SELECT "+podDayColumns+" FROM pod_day WHERE state > 0 AND pod_uid IN %s", slices.Compact(uids),
		func(scan func(...any) error) error {
			d, err := scanPodDay(scan)
			found[d.uid] = append(found[d.uid], d)
			return err
		})
	return found, err
}

// withEarlierDays loads the days before those that were loaded, and puts them before both lists, which begin on the same day.
func withEarlierDays(ctx context.Context, tx transaction, before, after []podDay) (allBefore, allAfter []podDay, err error) {
	if len(before) == 0 {
		return before, after, nil // all days are of these entries
	}
	var earlier []podDay
	err = tx.eachRow(ctx, "SELECT "+podDayColumns+" FROM pod_day WHERE pod_uid = $1 AND day < $2 ORDER BY day",
		[]any{before[0].uid, before[0].day}, func(scan func(...any) error) error {
			d, err := scanPodDay(scan)
			earlier = append(earlier, d)
			return err
		})
	return slices.Concat(earlier, before), slices.Concat(earlier, after), err
}

func scanPodDay(scan func(...any) error) (podDay, error) {
	var d podDay
	var uncertain int64
	err := scan(&d.uid, &d.day, &d.begin, &d.end, &d.state, &d.outcome, &uncertain, &d.series, &d.name, &d.node, &d.run,
		&d.resources)
	d.uncertain = uncertain != 0
	return d, err
}

// replaceDays writes what differs between the days of pods before and after, and by how much sums do.
func replaceDays(ctx context.Context, tx transaction, before, after map[string][]podDay) error {
	sums := map[cell]amountSum{}
	parsed := parser{}
	var rows [][]any
	for _, uid := range slices.Sorted(maps.Keys(after)) {
		was, is := before[uid], after[uid]
		for i, d := range is {
			if i < len(was) && was[i] == d {
				continue
			}
			rows = append(rows, d.toRow())
			resources, err := parsed.parseResources(d.resources)
			if err != nil {
				return err
			}
			d.addAmounts(sums, resources, 1)
			if i < len(was) {
				// Sums of days change by the difference, however many pods the day has.
				was[i].addAmounts(sums, resources, -1)
			}
		}
		for _, d := range was[min(len(is), len(was)):] {
			resources, err := parsed.parseResources(d.resources)
			if err != nil {
				return err
			}
			d.addAmounts(sums, resources, -1)
			if _, err := tx.ExecContext(ctx, "DELETE FROM pod_day WHERE pod_uid = $1 AND day = $2", d.uid, d.day); err != nil {
				return err
			}
		}
	}
	if err := tx.insertRows(ctx, "INSERT INTO pod_day ("+podDayColumns+")", rows, " ON CONFLICT (pod_uid, day) DO UPDATE SET "+
		"end_at = excluded.end_at, state = excluded.state, outcome = excluded.outcome, uncertain = excluded.uncertain"); err != nil {
		return err
	}
	return addSums(ctx, tx, sums)
}

func (d podDay) toRow() []any {
	uncertain := int64(0)
	if d.uncertain {
		uncertain = 1
	}
	return []any{
		d.uid, d.day, d.begin, d.end, int64(d.state), string(d.outcome), uncertain, d.series, d.name, d.node, d.run, d.resources,
	}
}

// addSums adds to the sums of days, in their order, so that the index is walked through once.
func addSums(ctx context.Context, tx transaction, sums map[cell]amountSum) error {
	maps.DeleteFunc(sums, func(_ cell, sum amountSum) bool { return sum == amountSum{} })
	cells := slices.SortedFunc(maps.Keys(sums), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.series, b.series), cmp.Compare(a.resource, b.resource))
	})
	rows := make([][]any, len(cells))
	for i, c := range cells {
		sum := sums[c]
		rows[i] = []any{c.day, c.series, c.resource, sum.amountSeconds, sum.podSeconds, sum.uncertainSeconds}
	}
	return tx.insertRows(ctx, "INSERT INTO task_day (day, series, resource, amount_seconds, pod_seconds, uncertain_seconds)", rows,
		" ON CONFLICT (day, series, resource) DO UPDATE SET amount_seconds = task_day.amount_seconds + excluded.amount_seconds, "+
			"pod_seconds = task_day.pod_seconds + excluded.pod_seconds, "+
			"uncertain_seconds = task_day.uncertain_seconds + excluded.uncertain_seconds")
}

// parser reads resources. There are few different ones.
type parser map[string]Resources

func (p parser) parseResources(text string) (Resources, error) {
	if r, ok := p[text]; ok {
		return r, nil
	}
	var r Resources
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, problemf(ErrUnusable, "resources of a pod are not what was written: restore a backup")
	}
	p[text] = r
	return r, nil
}

// OpenStays returns the stays that were not seen to end, whole, by the UIDs of their pods.
func (l *Ledger) OpenStays(ctx context.Context) ([]Stay, error) {
	var stays []Stay
	parsed := parser{}
	err := l.readTransaction(ctx, "read open stays from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT "+stayColumns("p.")+" FROM pod_day p JOIN series s ON s.id = p.series "+
			"WHERE p.state = 1 ORDER BY p.pod_uid", nil, func(scan func(...any) error) error {
			s, err := scanStay(scan, parsed)
			stays = append(stays, s)
			return err
		})
	})
	return stays, err
}
