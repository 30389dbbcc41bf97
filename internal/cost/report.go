// Package cost computes what a window of time cost, by owner, and how much of it was wasted. It is pure. It counts in
// decimals, which are rounded once, half to even, when a report is written.
package cost

import (
	"time"

	"github.com/shopspring/decimal"
)

// Dimension is what rows of a ranking are of.
type Dimension string

const (
	// ByUser ranks owners of pods.
	ByUser Dimension = "user"
	// ByTeam ranks profiles.
	ByTeam Dimension = "team"
	// ByTask ranks what jobs do, over their restarts, by namespace, kind and task.
	ByTask Dimension = "task"
)

// Owner is the owner of pods. Users may have written any of the fields.
type Owner struct {
	// Team is the profile that they count for; empty for none.
	Team string
	// User who owns them; empty for pods without a known owner.
	User string
	// Namespace, Kind and Task that they are of.
	Namespace, Kind, Task string
}

// Period is a window of time in a time zone.
type Period struct {
	// From and To, which is excluded, in the zone of the report, whose name they have as location.
	From, To time.Time
}

// Ratio is a part of a whole, from 0 to 1. Known is false if the ratio is unknown, which differs from 0.
type Ratio struct {
	Value float64
	Known bool
}

// Report is what a period cost. Amounts of money are in Currency and exact. The writers of a report round them.
type Report struct {
	Period   Period
	Currency string
	// Total of all that is in the rankings.
	Total Row
	// Before is the total of the last report of the same length before this one; nil if there is none.
	Before *Total
	// By are all rows of a dimension: each pod counts in one row of each, so that their sums are Total. The most costly is first; of
	// those that cost the same, the one whose key comes first.
	By map[Dimension][]Row
	// Outcomes are the costs by how pods ended.
	Outcomes []Outcome
	// Queues are those in which trainings report their progress; the one with the most GPU time that was not kept is first.
	Queues []Queue
	// Lost is the cost of work that preemptions and restarts destroyed.
	Lost Lost
	// Days of the period, one after another, in the zone of the report.
	Days []Day
	// Room is how much was free, and how much of that no gang could use; nil if it was not measured.
	Room *Room
	// Forecast of the period after this one; nil if there is too little history.
	Forecast *Forecast
	// Merges are what the pools of merges did.
	Merges Merges
	// Waits are how long gangs waited for their place.
	Waits Waits
	// Notes say what is uncertain or unknown, in sentences for readers.
	Notes []string
}

// Key names a row, by the fields of its dimension; the others are empty. A row of a user has Team if everything in it
// belongs to one team.
type Key Owner

// Row is what a user, a team or a task held.
type Row struct {
	Key Key
	// Cost of all that was held, and Share of it in the total's.
	Cost  decimal.Decimal
	Share Ratio
	// Before is what it was in the last report; nil if there is none.
	Before *decimal.Decimal
	// AcceleratorHours, CPUHours and MemoryGiBHours that were held, in devices, processors and GiB × hours. If more CPU or
	// memory was used than requested, the use counts.
	AcceleratorHours, CPUHours, MemoryGiBHours decimal.Decimal
	// Utilization is the time that accelerators were in use, of the time that they were held.
	Utilization Ratio
	// CPUUtilization and MemoryUtilization are what was used of what was requested.
	CPUUtilization, MemoryUtilization Ratio
	// Waste is the cost of what was requested and not used, and Recoverable the part of it above what sizing would have granted.
	Waste, Recoverable decimal.Decimal
	// Runs are attempts and runs of jobs, and pods of other workloads, each once. Pods is how many there were.
	Runs, Pods int64
	// Uncertain is the part of the time that is of days on which a pod ended at a guess.
	Uncertain Ratio
	// Goodput of the trainings among it that report their progress.
	Goodput Goodput
}

// Total is what is compared with another report.
type Total struct {
	Cost        decimal.Decimal
	Utilization Ratio
	Waste       decimal.Decimal
	Unusable    Ratio
}

// Outcome is what was paid for pods that ended so.
type Outcome struct {
	// Name is Succeeded, Failed, Cancelled, Lost or Running.
	Name  string
	Cost  decimal.Decimal
	Share Ratio
	Pods  int64
}

// Lost is what was paid for work that was lost: since the last checkpoint, or since the gang began where none is known.
type Lost struct {
	// Preemptions is for gangs that were stopped for others, charged to those, and Restarts for gangs that failed.
	Preemptions, Restarts decimal.Decimal
	// Incidents counts both.
	Incidents int64
}

// Day is one of the period, in the zone of the report: the first and last may be parts of one, and one of 23 or 25 hours is
// whole.
type Day struct {
	From        time.Time
	Cost        decimal.Decimal
	Utilization Ratio
	Waste       decimal.Decimal
	// Free are accelerators that were free on average, and Unusable the share of them that a gang like those of Room.Mix could not
	// use.
	Free     float64
	Unusable Ratio
}

// Room is what stood free.
type Room struct {
	// Free are accelerators that were free on average.
	Free float64
	// Unusable is the expected share of them that a gang drawn from Mix cannot use (Weng et al., USENIX ATC 2023).
	Unusable Ratio
	// Mix is the reference mix of gangs, in words.
	Mix string
}

// Forecast is what the next period is likely to cost.
type Forecast struct {
	Cost decimal.Decimal
	// Low and High are the bounds between which it lies in four of five times.
	Low, High decimal.Decimal
	// Periods is how many periods the forecast uses.
	Periods int
}

// Merges are what the pools of merges did in the period.
type Merges struct {
	Runs        int64
	Cost        decimal.Decimal
	Utilization Ratio
}

// Waits are of gangs that were placed in the period.
type Waits struct {
	Gangs int64
	// Median and Longest are waits.
	Median, Longest time.Duration
	// Longest names the job of the longest, as namespace/name.
	LongestOf string
}
