package week

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/fromledger"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// earlierWeeks are those of which there are reports already.
const earlierWeeks = 5

// Computed is what a report says of a week that a cluster lived, counted from a ledger as the operator counts it, and compared
// with five weeks before. It is the same each time, and takes a second or two.
func Computed(ctx context.Context) (cost.Report, error) {
	folder, err := os.MkdirTemp("", "tideline-week-")
	if err != nil {
		return cost.Report{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		return cost.Report{}, err
	}
	until := time.Date(2026, 11, 16, 9, 0, 0, 0, zone)
	// The ledger begins before all weeks.
	begin := func() time.Time { return until.AddDate(0, 0, -7*(earlierWeeks+2)) }
	l, err := ledger.Open(ctx, ledger.Options{File: filepath.Join(folder, "ledger.db"), Clock: begin})
	if err != nil {
		return cost.Report{}, err
	}
	defer func() { _ = l.Close() }()
	s := simulate(until, earlierWeeks+1)
	if err := l.RecordEntries(ctx, s.entries); err != nil {
		return cost.Report{}, err
	}
	list, err := cost.ParsePrices([]byte(prices))
	if err != nil {
		return cost.Report{}, err
	}
	var report *cost.Report
	var earlier []cost.Earlier
	for week := range earlierWeeks + 1 {
		in := &cost.Input{
			Period: cost.PeriodUntil(until.AddDate(0, 0, -7*(earlierWeeks-week)), wholeWeek, zone), Prices: list, Earlier: earlier,
		}
		if err := fromledger.LoadInput(ctx, l, in, nil, config.DefaultTiers()); err != nil {
			return cost.Report{}, err
		}
		s.tell(in)
		report = cost.ComputeReport(in)
		earlier = append(earlier, report.Summary())
	}
	return *report, nil
}

// tell adds what was decided in a period.
func (s *simulator) tell(in *cost.Input) {
	within := func(at time.Time) bool { return !at.Before(in.Period.From) && at.Before(in.Period.To) }
	for _, l := range s.losses {
		if within(l.Pods[0].Until) {
			in.Losses = append(in.Losses, l)
		}
	}
	for _, b := range s.waits {
		if within(b.at) {
			in.Waits = append(in.Waits, b.Wait)
		}
	}
}

// partDay is what was seen of a part on a day.
func partDay(of ledger.Part, day time.Time, u sizing.Usage) ledger.PartDay {
	content, _ := json.Marshal(u) // of numbers it has no error
	return ledger.PartDay{Part: of, Day: day, SeenSeconds: u.SeenSeconds, Content: string(content)}
}
