package report

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// longestCell is how many bytes of a text a cell of a CSV file has; spreadsheets take 32,767 characters.
const longestCell = 1000

// csvColumns are those of [CSV]. They are only ever added to, at the end.
var csvColumns = []string{
	"report", "revision", "period_start", "period_end", "dimension", "rank", "name", "team", "user", "namespace", "kind", "task",
	"currency", "cost", "cost_before", "cost_share", "waste", "recoverable_waste", "accelerator_utilization", "cpu_utilization",
	"memory_utilization", "accelerator_hours", "cpu_hours", "memory_gib_hours", "runs", "pods", "uncertain_share",
	"goodput", "progress_gpu_hours", "kept_gpu_hours", "lost_gpu_hours",
}

// CSV is one record per row of each dimension, the most costly first, and one per queue in which trainings report their progress,
// with a header (RFC 4180). Amounts are rounded to the
// currency's minor units, shares are from 0 to 1, and what is unknown is empty. A text that a spreadsheet would take for a
// formula begins with an apostrophe, and what cannot be printed is shown as in \x00.
func CSV(r cost.Report, o Options) ([]byte, error) {
	r, o = applyOptions(r, o)
	m := moneyOf(r.Currency)
	records := [][]string{csvColumns}
	for _, dimension := range o.GroupBy {
		for i, row := range r.By[dimension] {
			k := row.Key
			said, _ := rowName(dimension, k)
			before := ""
			if row.Before != nil {
				before = m.plainAmount(*row.Before)
			}
			waste, recoverable := m.wastedAmounts(row)
			records = append(records, append([]string{
				textCell(o.Name), strconv.Itoa(o.Revision), r.Period.From.Format(time.RFC3339), r.Period.To.Format(time.RFC3339),
				textCell(string(dimension)), strconv.Itoa(i + 1), textCell(said), textCell(k.Team), textCell(k.User),
				textCell(k.Namespace), textCell(k.Kind),
				textCell(k.Task), textCell(r.Currency), m.plainAmount(row.Cost), before, formatRatio(row.Share), waste, recoverable,
				formatRatio(row.Utilization), formatRatio(row.CPUUtilization), formatRatio(row.MemoryUtilization),
				row.AcceleratorHours.StringFixedBank(3), row.CPUHours.StringFixedBank(3), row.MemoryGiBHours.StringFixedBank(3),
				strconv.FormatInt(row.Runs, 10), strconv.FormatInt(row.Pods, 10), formatRatio(row.Uncertain),
			}, goodputCells(row.Goodput)...))
		}
	}
	return writeCSV(append(records, queueRecords(r, o)...))
}

// queueRecords have what became of GPU time by queue. They have no amounts: what a queue cost is in no report.
func queueRecords(r cost.Report, o Options) [][]string {
	var records [][]string
	for i, q := range r.Queues {
		record := make([]string, len(csvColumns))
		copy(record, []string{
			textCell(o.Name), strconv.Itoa(o.Revision), r.Period.From.Format(time.RFC3339), r.Period.To.Format(time.RFC3339), "queue",
			strconv.Itoa(i + 1), textCell(q.Name),
		})
		cells := goodputCells(q.Goodput)
		copy(record[len(record)-len(cells):], cells)
		records = append(records, record)
	}
	return records
}

// writeCSV writes records with the line ends of RFC 4180.
func writeCSV(records [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	err := w.WriteAll(records)
	return b.Bytes(), err
}

// textCell is a text for a spreadsheet, in which it stays a text. Wide forms of the signs count as the signs in some languages'
// spreadsheets (https://owasp.org/www-community/attacks/CSV_Injection).
func textCell(s string) string {
	line := text.ClipLine(s, longestCell)
	if strings.IndexAny(s, "=+-@\t\r\n＝＋－＠") == 0 || strings.IndexAny(strings.TrimLeft(line, " "), "=+-@＝＋－＠") == 0 {
		return "'" + line
	}
	return line
}

// formatRatio is a share for programs, from 0 to 1; empty where it is unknown.
func formatRatio(s cost.Ratio) string {
	if !isKnown(s) {
		return ""
	}
	return strconv.FormatFloat(s.Value, 'f', 4, 64)
}
