package cost

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Input is what is known of a period.
type Input struct {
	Period Period
	Prices *Prices
	// Accelerators are the resources that count as such. Those that have a price do anyway.
	Accelerators []string
	// Held is what pods held in the spans between Period.CutTimes, and Runs how many runs there were, in any order.
	Held []Held
	Runs []Runs
	// Used is what was seen of roles on days that the period touches, each day of a part once, in any order.
	Used []Used
	// Granted returns what sizing would have granted each pod of a role by the rules of a tier, and false if that is unknown;
	// nil if it is never known. See sizing.History.GrantedAmount.
	Granted func(role sizing.Key, tier string) (Granted, bool)
	// Trained is what became of the GPU time of trainings that report their progress, on the days in UTC that the period touches, in
	// any order.
	Trained []Trained
	// Losses and Waits are those of the period.
	Losses []Loss
	Waits  []Wait
	// Rooms is how much was free at times of the period, in any order; none if it was not measured. Mix is the reference mix
	// in words.
	Rooms []Measured
	Mix   string
	// Earlier are reports of earlier periods of the same length, in any order. Others do no harm.
	Earlier []Earlier
	// Notes are what else is uncertain or unknown, in sentences for readers.
	Notes []string
}

// Resources are amounts by the name of the resource: in MiB for memory, in thousandths for all others, so that cpu is in
// millicores and shares of an accelerator count.
type Resources map[string]int64

// Held is what pods that are alike held in a span of time.
type Held struct {
	Owner Owner
	// Tier of their priority; empty for none.
	Tier string
	// Role of the pods in the metrics of their task; empty for pods without metrics.
	Role sizing.Role
	// Surplus says that they are workers beyond the core of their gang.
	Surplus bool
	// Model of their accelerators; empty for none.
	Model string
	// Resources that each of them holds.
	Resources Resources
	// Outcome is how they ended: Succeeded, Failed, Deleted or Lost; empty for those that have not.
	Outcome string
	// From is when the span began. A span crosses no midnight, neither of the report's zone nor of UTC.
	From time.Time
	// Seconds is for how long they were there, summed over pods, and Uncertain the part of it that is of days on which a pod ended
	// at a guess.
	Seconds, Uncertain int64
	// Pods is how many of them were there last in this span, so that each counts once in the period.
	Pods int64
}

// Runs is how many runs of a task there were.
type Runs struct {
	Owner Owner
	Runs  int64
}

// Used is what was seen of a part on a day.
type Used struct {
	// Day is the midnight of UTC that it began with.
	Day time.Time
	Key sizing.Key
	sizing.Usage
}

// Granted is how much each pod of a role would have been granted at most.
type Granted struct {
	// Millicores and MemoryBytes of all containers; 0 if unknown.
	Millicores, MemoryBytes int64
}

// Loss is work that was lost because a gang was stopped.
type Loss struct {
	// Of is the owner of the gang.
	Of Owner
	// For is the owner of the gang that got the room; nil for a gang that failed.
	For *Owner
	// Pods of the gang whose work was lost.
	Pods []LostPods
}

// LostPods are pods that are alike, and whose work of a time was lost.
type LostPods struct {
	Number int64
	// Since is when their last checkpoint was written, or they began where none is known, and Until when they were stopped. What is
	// not of the period is of another report.
	Since, Until time.Time
	// Surplus, Model and Resources as those of Held.
	Surplus   bool
	Model     string
	Resources Resources
}

// Wait is how long a gang waited for its place.
type Wait struct {
	// Job as namespace/name.
	Job  string
	Time time.Duration
}

// Measured is how much was free at a time.
type Measured struct {
	At time.Time
	// Free are accelerators that were free.
	Free float64
	// Unusable is the expected share of them that a gang of the mix cannot use; unknown if the mix was empty then.
	Unusable Ratio
}

// Earlier is what is compared with another report, and made with [Report.Summary].
type Earlier struct {
	// From and To, which is excluded, are its period.
	From, To time.Time
	Currency string
	Total    Total
	// Rows are the costs of all rows.
	Rows []EarlierRow
}

// EarlierRow is what a row cost in another report.
type EarlierRow struct {
	Dimension Dimension
	Key       Key
	Cost      decimal.Decimal
}
