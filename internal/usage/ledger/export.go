package ledger

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
)

// Export writes the days of pods within a range of time, to excluded, as CSV with a line of names, in the order of days and UIDs.
// Of days that the range cuts, the part inside is written, so that sums over the lines are those of Usage. Each resource has a
// column, in the unit of Resources. Cells that a spreadsheet would calculate begin with an apostrophe. It does not keep what
// it has written, and sees the ledger as it was when it began.
func (l *Ledger) Export(ctx context.Context, w io.Writer, from, to time.Time) error {
	return l.readTransaction(ctx, "export the ledger", func(ctx context.Context, tx transaction) error {
		begin, end := from.Unix(), max(from.Unix(), to.Unix())
		resources, err := resourcesOf(ctx, tx, begin, end)
		if err != nil {
			return err
		}
		out := csv.NewWriter(w)
		header := []string{
			"day", "pod_uid", "namespace", "name", "node", "profile", "queue", "user", "tier", "kind", "task", "run", "role", "model",
			"begin", "end", "seconds", "outcome", "uncertain",
		}
		for _, resource := range resources {
			header = append(header, defuseFormula(resource+unitOf(resource)))
		}
		if err := out.Write(header); err != nil {
			return writeError{err}
		}
		days, err := daysOf(ctx, tx, begin, end)
		if err != nil {
			return err
		}
		parsed := parser{}
		for _, day := range days {
			if err := exportDay(ctx, tx, out, span{day, begin, end}, resources, parsed); err != nil {
				return err
			}
		}
		out.Flush()
		if err := out.Error(); err != nil {
			return writeError{err}
		}
		return nil
	})
}

// resourcesOf are the names of resources that pods had within a range of time.
func resourcesOf(ctx context.Context, tx transaction, begin, end int64) ([]string, error) {
	var names []string
	err := tx.eachRow(ctx, "SELECT DISTINCT resource FROM task_day WHERE day >= $1 AND day <= $2 AND pod_seconds > 0 ORDER "+
		"BY resource",
		[]any{begin / secondsOfDay, end / secondsOfDay}, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		})
	return names, err
}

func unitOf(resource string) string {
	if resource == "memory" || resource == "ephemeral-storage" || strings.HasPrefix(resource, "hugepages-") {
		return " (MiB)"
	}
	return " (1/1000)"
}

// daysOf are those on which pods were there within a range of time.
func daysOf(ctx context.Context, tx transaction, begin, end int64) ([]int64, error) {
	var days []int64
	err := tx.eachRow(ctx, "SELECT DISTINCT day FROM pod_day WHERE day >= $1 AND day <= $2 ORDER BY day",
		[]any{begin / secondsOfDay, end / secondsOfDay}, func(scan func(...any) error) error {
			var day int64
			err := scan(&day)
			days = append(days, day)
			return err
		})
	return days, err
}

// exportDay writes the pods of a day. One day at a time, because a database that sorts them keeps all it sorts.
func exportDay(
	ctx context.Context, tx transaction, out *csv.Writer, within span, resources []string, parsed parser,
) error {
	return tx.eachRow(ctx, "SELECT p."+strings.ReplaceAll(podDayColumns, ", ", ", p.")+", "+seriesColumns+`
		FROM pod_day p JOIN series s ON s.id = p.series
		WHERE p.day = $1 AND p.begin_at < $2 AND p.end_at > $3 ORDER BY p.pod_uid`,
		[]any{within.day, within.end, within.begin},
		func(scan func(...any) error) error {
			var s series
			d, err := scanPodDay(func(into ...any) error { return scan(append(into, s.scanTargets()...)...) })
			if err != nil {
				return err
			}
			held, err := parsed.parseResources(d.resources)
			if err != nil {
				return err
			}
			begin, end := max(d.begin, within.begin), min(d.end, within.end)
			record := []string{
				dayText(d.day), d.uid, s.namespace, d.name, d.node, s.profile, s.queue, s.user, s.tier, s.kind, s.task, d.run, s.role,
				s.model, timeText(begin), timeText(end), strconv.FormatInt(end-begin, 10), string(d.outcome),
				strconv.FormatBool(d.uncertain),
			}
			for _, resource := range resources {
				record = append(record, strconv.FormatInt(held[resource], 10))
			}
			for i := range record {
				record[i] = defuseFormula(record[i])
			}
			if err := out.Write(record); err != nil {
				return writeError{err}
			}
			return nil
		})
}

func timeText(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// defuseFormula marks a text that a spreadsheet would take for a formula (https://owasp.org/www-community/attacks/CSV_Injection).
func defuseFormula(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
