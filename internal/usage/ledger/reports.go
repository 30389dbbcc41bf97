package ledger

import (
	"context"
	"maps"
	"slices"
	"time"
)

// KeptReport is a report that was made. It is never changed: one that is made anew of the same period is another revision.
type KeptReport struct {
	// Report is the UID of the CostReport, and Name is its name.
	Report, Name string
	// From and To, which is excluded, are the period. They count in whole seconds.
	From, To time.Time
	// Revision counts from 1.
	Revision int
	// MadeAt is when it was made. It counts in microseconds.
	MadeAt time.Time
	// Summary of it, in a form that the ledger does not look into.
	Summary string
}

func (r *KeptReport) check() error {
	switch {
	case r.Report == "" || r.Name == "" || r.Revision < 1:
		return problemf(ErrInvalid, "a report needs the UID and the name of its CostReport, and a revision from 1 on")
	case r.From.Before(earliest) || !r.From.Before(r.To) || r.MadeAt.Before(earliest):
		return problemf(ErrInvalid, "report %q was made at %s, of %s to %s", r.Name, r.MadeAt.Format(time.RFC3339),
			r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	}
	return nil
}

// KeepReport keeps a report with its files, which are text. What is kept of the same report, period and revision stays as it is.
func (l *Ledger) KeepReport(ctx context.Context, r KeptReport, files map[string]string) error {
	const doing = "keep a report in the ledger"
	if err := r.check(); err != nil {
		return l.explainFailure(ctx, doing, err)
	}
	return l.writeTransaction(ctx, doing, func(ctx context.Context, tx transaction) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO report
				(report, period_end, revision, name, period_begin, made_at, summary) `+rowParameters(1, 7)+` ON CONFLICT DO NOTHING`,
			cleanText(r.Report), r.To.Unix(), r.Revision, cleanText(r.Name), r.From.Unix(), r.MadeAt.UnixMicro(), cleanText(r.Summary))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n == 0 || err != nil {
			return err
		}
		rows := make([][]any, 0, len(files))
		for _, name := range slices.Sorted(maps.Keys(files)) {
			rows = append(rows, []any{cleanText(r.Report), r.To.Unix(), r.Revision, cleanText(name), cleanText(files[name])})
		}
		return tx.insertRows(ctx, "INSERT INTO report_file (report, period_end, revision, name, content)", rows, "")
	})
}

// QueryReports are those of a CostReport, by its UID, or, with an empty one, of all that had a name: by period and revision,
// the last ones first.
func (l *Ledger) QueryReports(ctx context.Context, report, name string) ([]KeptReport, error) {
	of, value := "report", report
	if report == "" {
		of, value = "name", name
	}
	var found []KeptReport
	err := l.readTransaction(ctx, "read reports from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT report, name, period_begin, period_end, revision, made_at, summary FROM report WHERE "+of+
			" = $1 ORDER BY period_end DESC, revision DESC, made_at DESC", []any{cleanText(value)}, func(scan func(...any) error) error {
			var r KeptReport
			var from, to, at int64
			err := scan(&r.Report, &r.Name, &from, &to, &r.Revision, &at, &r.Summary)
			r.From, r.To, r.MadeAt = time.Unix(from, 0).UTC(), time.Unix(to, 0).UTC(), time.UnixMicro(at).UTC()
			found = append(found, r)
			return err
		})
	})
	return found, err
}

// ReportFile returns a file of a kept report; false if there is no file of that name.
func (l *Ledger) ReportFile(ctx context.Context, r KeptReport, name string) (content string, there bool, err error) {
	err = l.readTransaction(ctx, "read a report from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT content FROM report_file WHERE report = $1 AND period_end = $2 AND revision = $3 AND name = $4",
			[]any{cleanText(r.Report), r.To.Unix(), r.Revision, cleanText(name)}, func(scan func(...any) error) error {
				there = true
				return scan(&content)
			})
	})
	return content, there, err
}

// ForgetReports deletes reports of a CostReport, by its UID, whose periods ended before a time, and says how many those were.
func (l *Ledger) ForgetReports(ctx context.Context, report string, before time.Time) (int64, error) {
	var forgotten int64
	err := l.writeTransaction(ctx, "forget old reports", func(ctx context.Context, tx transaction) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM report_file WHERE report = $1 AND period_end < $2", cleanText(report), before.Unix())
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, "DELETE FROM report WHERE report = $1 AND period_end < $2", cleanText(report), before.Unix())
		if err != nil {
			return err
		}
		forgotten, err = result.RowsAffected()
		return err
	})
	return forgotten, err
}
