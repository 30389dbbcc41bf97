// Package week makes up what a week of a busy cluster cost, for tests of reports and to look at one.
package week

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
	_ "time/tzdata" // the week is one of Shanghai, also where no zones are installed

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// people are users by team; who has no team has no profile.
var people = []struct {
	team  string
	users []string
}{
	{"ads", []string{"chen", "liu.wei", "alice", "tomas"}},
	{"ranking", []string{"bob", "zhang.min", "ingrid"}},
	{"speech", []string{"maria", "sun.li"}},
	{"vision", []string{"okafor", "yuki", "dmitri", "fatima"}},
	{"", []string{"legacy-batch", ""}},
}

// tasks are names that tasks have.
var tasks = []string{
	"ctr", "ctr-large", "recall-two-tower", "asr-conformer", "embedding-refresh", "ocr-finetune",
	"video-tagging-pretrain", "ab-probe",
}

// Report is of a week in November 2026, the same each time: fifteen people, of whom some use what they have, and one forgot a
// notebook.
func Report() cost.Report {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		panic(err)
	}
	from := time.Date(2026, 11, 9, 9, 0, 0, 0, zone)
	random := rand.New(rand.NewPCG(6, 2026))
	var byTask []cost.Row
	for _, team := range people {
		for _, user := range team.users {
			for _, task := range tasks[random.IntN(3):][:2+random.IntN(4)] {
				key := cost.Key{Team: team.team, User: user, Namespace: cmp.Or(team.team, "default"), Kind: "ElasticTrainingJob", Task: task}
				if user == "" {
					key.Kind = "Pod"
				} else {
					key.Task = user + "-" + task
				}
				byTask = append(byTask, row(key, random))
			}
		}
	}
	notebook := row(cost.Key{Team: "vision", User: "yuki", Namespace: "vision", Kind: "Pod", Task: "notebook-yuki"}, random)
	notebook.AcceleratorHours, notebook.Cost = decimal.NewFromInt(8*168), decimal.RequireFromString("31069.92")
	notebook.Utilization = cost.Ratio{Value: 0.004, Known: true}
	notebook.Recoverable = notebook.Cost.Mul(decimal.RequireFromString("0.96"))
	notebook.Waste = notebook.Cost.Mul(decimal.RequireFromString("0.98"))
	byTask = append(byTask, notebook)
	r := cost.Report{
		Period:   cost.Period{From: from, To: from.AddDate(0, 0, 7)},
		Currency: "CNY",
		By: map[cost.Dimension][]cost.Row{
			cost.ByTask: byTask,
			cost.ByUser: merge(byTask, func(k cost.Key) cost.Key { return cost.Key{User: k.User, Team: k.Team} }),
			cost.ByTeam: merge(byTask, func(k cost.Key) cost.Key { return cost.Key{Team: k.Team} }),
		},
		Notes: []string{"Prometheus answered nothing on Wednesday 11 November from 02:00 to 05:00: use in that time is unknown."},
	}
	r.Total = merge(byTask, func(cost.Key) cost.Key { return cost.Key{} })[0]
	for dimension, rows := range r.By {
		for i := range rows {
			rows[i].Share = part(rows[i].Cost, r.Total.Cost)
		}
		slices.SortStableFunc(rows, func(a, b cost.Row) int { return b.Cost.Cmp(a.Cost) })
		r.By[dimension] = rows
	}
	around(&r, random)
	return r
}

// around adds what is beside the rows.
func around(r *cost.Report, random *rand.Rand) {
	total := r.Total
	of := func(share string) decimal.Decimal { return total.Cost.Mul(decimal.RequireFromString(share)) }
	known := func(v float64) cost.Ratio { return cost.Ratio{Value: v, Known: true} }
	r.Before = &cost.Total{Cost: *total.Before, Utilization: known(0.58), Waste: of("0.33"), Unusable: known(0.31)}
	for _, o := range []struct{ name, share string }{
		{"Succeeded", "0.61"}, {"Running", "0.17"}, {"Failed", "0.12"}, {"Cancelled", "0.08"}, {"Lost", "0.02"},
	} {
		paid := of(o.share)
		r.Outcomes = append(r.Outcomes, cost.Outcome{
			Name: o.name, Cost: paid, Share: part(paid, total.Cost), Pods: paid.Div(decimal.NewFromInt(40)).IntPart(),
		})
	}
	r.Lost = cost.Lost{Preemptions: of("0.013"), Restarts: of("0.041"), Incidents: 57}
	r.Room = &cost.Room{Free: 23.6, Unusable: known(0.42), Mix: "the gangs that asked this week, 64 of them for 4 to 8 accelerators"}
	r.Forecast = &cost.Forecast{Cost: of("1.06"), Low: of("0.93"), High: of("1.21"), Periods: 9}
	r.Merges = cost.Merges{Runs: 214, Cost: of("0.026"), Utilization: known(0.71)}
	r.Waits = cost.Waits{
		Gangs: 388, Median: 4*time.Minute + 10*time.Second, Longest: 9*time.Hour + 20*time.Minute, LongestOf: "speech/asr-conformer",
	}
	day := r.Period.From
	for i := range 8 {
		share := 0.11 + 0.05*random.Float64()
		next := time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, day.Location())
		if next.After(r.Period.To) {
			next = r.Period.To
		}
		paid := total.Cost.Mul(decimal.NewFromFloat(share * next.Sub(day).Hours() / 24))
		d := cost.Day{
			From: day, Cost: paid, Waste: paid.Mul(decimal.NewFromFloat(0.25 + 0.15*random.Float64())),
			Utilization: known(0.5 + 0.25*random.Float64()), Free: 12 + 25*random.Float64(), Unusable: known(0.25 + 0.4*random.Float64()),
		}
		if i == 2 {
			d.Utilization = cost.Ratio{}
		}
		r.Days = append(r.Days, d)
		day = next
	}
}

// row makes up one.
func row(key cost.Key, random *rand.Rand) cost.Row {
	hours := decimal.NewFromFloat(40 + 1500*random.Float64()*random.Float64()).Round(2)
	paid := hours.Mul(decimal.RequireFromString("21.00")).Add(hours.Mul(decimal.RequireFromString("2.1175")))
	used := 0.15 + 0.75*random.Float64()
	waste := paid.Mul(decimal.NewFromFloat(1 - used))
	before := paid.Mul(decimal.NewFromFloat(0.7 + 0.5*random.Float64()))
	return cost.Row{
		Key: key, Cost: paid, Before: &before,
		AcceleratorHours: hours, CPUHours: hours.Mul(decimal.NewFromInt(8)), MemoryGiBHours: hours.Mul(decimal.NewFromInt(64)),
		Utilization:       cost.Ratio{Value: used, Known: key.User != "legacy-batch"},
		CPUUtilization:    cost.Ratio{Value: used / 2, Known: true},
		MemoryUtilization: cost.Ratio{Value: 0.4, Known: true},
		Waste:             waste, Recoverable: waste.Mul(decimal.NewFromFloat(0.2 + 0.6*random.Float64())),
		Runs: 1 + random.Int64N(20), Pods: 2 + random.Int64N(200), Uncertain: cost.Ratio{Value: 0.01, Known: true},
	}
}

// merge adds rows up by a key, in the order in which they come.
func merge(rows []cost.Row, by func(cost.Key) cost.Key) []cost.Row {
	var merged []cost.Row
	at := map[cost.Key]int{}
	for _, row := range rows {
		key := by(row.Key)
		i, found := at[key]
		if !found {
			row.Key = key
			before := *row.Before
			row.Before = &before
			at[key] = len(merged)
			merged = append(merged, row)
			continue
		}
		sum := &merged[i]
		sum.Utilization = weighted(*sum, row)
		sum.Cost, sum.Waste, sum.Recoverable = sum.Cost.Add(row.Cost), sum.Waste.Add(row.Waste), sum.Recoverable.Add(row.Recoverable)
		*sum.Before = sum.Before.Add(*row.Before)
		sum.AcceleratorHours = sum.AcceleratorHours.Add(row.AcceleratorHours)
		sum.CPUHours, sum.MemoryGiBHours = sum.CPUHours.Add(row.CPUHours), sum.MemoryGiBHours.Add(row.MemoryGiBHours)
		sum.Runs, sum.Pods = sum.Runs+row.Runs, sum.Pods+row.Pods
	}
	return merged
}

// weighted is how much two rows used together, of what is known.
func weighted(a, b cost.Row) cost.Ratio {
	switch {
	case !a.Utilization.Known:
		return b.Utilization
	case !b.Utilization.Known:
		return a.Utilization
	}
	x, y := a.AcceleratorHours.InexactFloat64(), b.AcceleratorHours.InexactFloat64()
	return cost.Ratio{Value: (a.Utilization.Value*x + b.Utilization.Value*y) / (x + y), Known: true}
}

func part(of, whole decimal.Decimal) cost.Ratio {
	if whole.IsZero() {
		return cost.Ratio{}
	}
	return cost.Ratio{Value: of.Div(whole).InexactFloat64(), Known: true}
}

// Named is the week, in which everything that users write is of names; who is beyond the last has a number before it.
func Named(names []string, currency string) cost.Report {
	r := Report()
	for _, rows := range r.By {
		for i := range rows {
			name := names[i%len(names)]
			if i >= len(names) {
				name = fmt.Sprintf("%d%s", i, name)
			}
			rows[i].Key.User, rows[i].Key.Task = name, name
			rows[i].Key.Namespace, rows[i].Key.Kind, rows[i].Key.Team = name, name, name
		}
	}
	r.Waits.LongestOf, r.Room.Mix, r.Notes = names[1], names[2], slices.Clone(names)
	r.Currency = currency
	return r
}
