package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// Schema is the version of what [JSON] writes. Fields may be added to a version; one whose meaning changes makes a new one.
const Schema = "tideline.io/cost-report/v1"

// document is a report for programs: docs/reports.md has its fields. Amounts are strings, rounded to the currency's minor units;
// shares are from 0 to 1; what is unknown is null.
type document struct {
	Schema   string    `json:"schema"`
	Report   string    `json:"report"`
	Revision int       `json:"revision"`
	Person   string    `json:"person,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	TimeZone string    `json:"timeZone"`
	Currency string    `json:"currency"`
	Total    entry     `json:"total"`
	Before   *totals   `json:"before"`
	Rows     []entry   `json:"rows"`
	Queues   []queue   `json:"queues"`
	Outcomes []outcome `json:"outcomes"`
	Lost     losses    `json:"lost"`
	Days     []day     `json:"days"`
	Room     *room     `json:"room"`
	Forecast *forecast `json:"forecast"`
	Merges   merges    `json:"merges"`
	Waits    waits     `json:"waits"`
	Notes    []string  `json:"notes"`
}

type entry struct {
	Dimension         cost.Dimension `json:"dimension,omitempty"`
	Team              string         `json:"team,omitempty"`
	User              string         `json:"user,omitempty"`
	Namespace         string         `json:"namespace,omitempty"`
	Kind              string         `json:"kind,omitempty"`
	Task              string         `json:"task,omitempty"`
	Cost              string         `json:"cost"`
	CostBefore        *string        `json:"costBefore"`
	CostShare         *float64       `json:"costShare"`
	Waste             *string        `json:"waste"`
	Recoverable       *string        `json:"recoverable"`
	Utilization       *float64       `json:"utilization"`
	CPUUtilization    *float64       `json:"cpuUtilization"`
	MemoryUtilization *float64       `json:"memoryUtilization"`
	AcceleratorHours  string         `json:"acceleratorHours"`
	CPUHours          string         `json:"cpuHours"`
	MemoryGiBHours    string         `json:"memoryGiBHours"`
	Runs              int64          `json:"runs"`
	Pods              int64          `json:"pods"`
	Uncertain         *float64       `json:"uncertain"`
	Progress          *progress      `json:"progress"`
}

type queue struct {
	Queue    string    `json:"queue"`
	Progress *progress `json:"progress"`
}

type totals struct {
	Cost        string   `json:"cost"`
	Utilization *float64 `json:"utilization"`
	Waste       string   `json:"waste"`
	Unusable    *float64 `json:"unusable"`
}

type outcome struct {
	Name  string   `json:"name"`
	Cost  string   `json:"cost"`
	Share *float64 `json:"share"`
	Pods  int64    `json:"pods"`
}

type losses struct {
	Preemptions string `json:"preemptions"`
	Restarts    string `json:"restarts"`
	Incidents   int64  `json:"incidents"`
}

type day struct {
	From        time.Time `json:"from"`
	Cost        string    `json:"cost"`
	Utilization *float64  `json:"utilization"`
	Waste       string    `json:"waste"`
	Free        float64   `json:"free"`
	Unusable    *float64  `json:"unusable"`
}

type room struct {
	Free     float64  `json:"free"`
	Unusable *float64 `json:"unusable"`
	Mix      string   `json:"mix"`
}

type forecast struct {
	Cost    string `json:"cost"`
	Low     string `json:"low"`
	High    string `json:"high"`
	Periods int    `json:"periods"`
}

type merges struct {
	Runs        int64    `json:"runs"`
	Cost        string   `json:"cost"`
	Utilization *float64 `json:"utilization"`
}

type waits struct {
	Gangs          int64  `json:"gangs"`
	MedianSeconds  int64  `json:"medianSeconds"`
	LongestSeconds int64  `json:"longestSeconds"`
	LongestOf      string `json:"longestOf,omitempty"`
}

// JSON is the report for programs, of [Schema]. Names are as users wrote them, but for what is no UTF-8; what cannot be printed
// is escaped, so that who looks at the file in a terminal sees it as well.
func JSON(r cost.Report, o Options) ([]byte, error) {
	r, o = applyOptions(r, o)
	m := moneyOf(r.Currency)
	d := document{
		Schema: Schema, Report: o.Name, Revision: o.Revision, Person: o.Person, From: r.Period.From, To: r.Period.To,
		TimeZone: r.Period.From.Location().String(), Currency: r.Currency, Total: m.toEntry("", r.Total),
		Rows: []entry{}, Queues: []queue{}, Outcomes: []outcome{}, Days: []day{}, Notes: append([]string{}, r.Notes...),
		Lost:   losses{m.plainAmount(r.Lost.Preemptions), m.plainAmount(r.Lost.Restarts), r.Lost.Incidents},
		Merges: merges{r.Merges.Runs, m.plainAmount(r.Merges.Cost), nullableShare(r.Merges.Utilization)},
		Waits:  waits{r.Waits.Gangs, int64(r.Waits.Median / time.Second), int64(r.Waits.Longest / time.Second), r.Waits.LongestOf},
	}
	for _, dimension := range o.GroupBy {
		for _, row := range r.By[dimension] {
			d.Rows = append(d.Rows, m.toEntry(dimension, row))
		}
	}
	for _, of := range r.Queues {
		d.Queues = append(d.Queues, queue{of.Name, toProgress(of.Goodput)})
	}
	for _, of := range r.Outcomes {
		d.Outcomes = append(d.Outcomes, outcome{of.Name, m.plainAmount(of.Cost), nullableShare(of.Share), of.Pods})
	}
	for _, of := range r.Days {
		d.Days = append(d.Days, day{
			of.From, m.plainAmount(of.Cost), nullableShare(of.Utilization), m.plainAmount(of.Waste), of.Free, nullableShare(of.Unusable),
		})
	}
	if b := r.Before; b != nil {
		d.Before = &totals{m.plainAmount(b.Cost), nullableShare(b.Utilization), m.plainAmount(b.Waste), nullableShare(b.Unusable)}
	}
	if of := r.Room; of != nil {
		d.Room = &room{of.Free, nullableShare(of.Unusable), of.Mix}
	}
	if f := r.Forecast; f != nil {
		d.Forecast = &forecast{m.plainAmount(f.Cost), m.plainAmount(f.Low), m.plainAmount(f.High), f.Periods}
	}
	content, err := json.MarshalIndent(d, "", "  ")
	return escapeJSON(append(content, '\n')), err
}

func (m money) toEntry(dimension cost.Dimension, row cost.Row) entry {
	k := row.Key
	var waste, recoverable *string
	if hasKnownUse(row) {
		waste, recoverable = m.optionalAmount(&row.Waste), m.optionalAmount(&row.Recoverable)
	}
	return entry{
		Dimension: dimension, Team: k.Team, User: k.User, Namespace: k.Namespace, Kind: k.Kind, Task: k.Task,
		Cost: m.plainAmount(row.Cost), CostBefore: m.optionalAmount(row.Before), CostShare: nullableShare(row.Share),
		Waste: waste, Recoverable: recoverable,
		Utilization: nullableShare(row.Utilization), CPUUtilization: nullableShare(row.CPUUtilization),
		MemoryUtilization: nullableShare(row.MemoryUtilization),
		AcceleratorHours:  row.AcceleratorHours.StringFixedBank(3), CPUHours: row.CPUHours.StringFixedBank(3),
		MemoryGiBHours: row.MemoryGiBHours.StringFixedBank(3),
		Runs:           row.Runs, Pods: row.Pods, Uncertain: nullableShare(row.Uncertain),
		Progress: toProgress(row.Goodput),
	}
}

func (m money) optionalAmount(d *decimal.Decimal) *string {
	if d == nil {
		return nil
	}
	s := m.plainAmount(*d)
	return &s
}

// nullableShare is a share, or nil for one that is unknown.
func nullableShare(s cost.Ratio) *float64 {
	if !isKnown(s) {
		return nil
	}
	return &s.Value
}

// escapeJSON escapes in JSON what cannot be printed, but for its own line ends and blanks. It is in strings, where both mean the
// same.
func escapeJSON(content []byte) []byte {
	if !bytes.ContainsFunc(content, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return content
	}
	var b strings.Builder
	for _, r := range string(content) {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return []byte(b.String())
}
