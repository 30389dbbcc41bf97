package cost

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Dimensions are all there are, in the order in which they are shown.
var Dimensions = []Dimension{ByUser, ByTeam, ByTask}

const (
	// cancelled pods were deleted while they ran, and running ones have not ended.
	cancelled, running = "Cancelled", "Running"
)

// outcomes are the names in the order in which they are shown. Others come before them.
var outcomes = []string{"Succeeded", "Failed", cancelled, "Lost", running}

// ComputeReport computes what a period cost. The order of the input does not change the report.
//
//	cost of a pod-hour = devices × price + max(cores requested, used) × price + max(GiB requested, used) × price
//	waste              = (requested − used) × price, over the time for which use is known
//	recoverable        = (requested − max(used, granted by sizing)) × price, of that time; of CPU and memory
//
// Surplus workers pay less for devices, by their discount. The use of a role is the mean use of its busiest pod for CPU,
// and the highest peak of a day for memory. Every pod of the role counts with that, so the waste is a lower bound. Time
// with unknown use costs what was requested, and counts no waste.
func ComputeReport(in *Input) *Report {
	c := newCounter(in)
	for i := range in.Held {
		c.countHeld(&in.Held[i])
	}
	// Runs come from a query of their own: a run with pods in several spans or rows of Held must count once.
	for i := range in.Runs {
		ran := sums{runs: in.Runs[i].Runs}
		c.total.add(&ran)
		c.addToOwner(in.Runs[i].Owner, &ran)
	}
	// After all that makes rows.
	for i := range in.Trained {
		c.countTrained(&in.Trained[i])
	}
	return c.buildReport()
}

// counter counts what a period cost.
type counter struct {
	in           *Input
	zone         *time.Location
	accelerators []string
	uses         map[roleDay]use
	total        sums
	rows         map[Dimension]map[Key]*row
	outcomes     map[string]*sums
	days         map[int64]*sums
	queues       map[string]trainedSums
	merges       sums
	lost         Lost
	// before are seconds of pods before the first prices. unpriced are seconds in which pods held a resource without a price.
	before   int64
	unpriced map[string]int64
}

// row is the sum for a Key.
type row struct {
	sums
	// team and user of everything in the row. manyTeams and manyUsers tell that there are several.
	team, user           string
	manyTeams, manyUsers bool
}

func newCounter(in *Input) *counter {
	c := &counter{
		in: in, zone: in.Period.From.Location(), accelerators: acceleratorsOf(in), uses: usesOf(in.Used),
		rows: map[Dimension]map[Key]*row{}, outcomes: map[string]*sums{}, days: map[int64]*sums{}, unpriced: map[string]int64{},
		queues: map[string]trainedSums{},
	}
	for _, dimension := range Dimensions {
		c.rows[dimension] = map[Key]*row{}
	}
	return c
}

// keyOf is the key of the row of a dimension in which an owner counts.
func keyOf(dimension Dimension, o Owner) Key {
	switch dimension {
	case ByUser:
		return Key{User: o.User}
	case ByTeam:
		return Key{Team: o.Team}
	case ByTask:
		return Key{Namespace: o.Namespace, Kind: o.Kind, Task: o.Task}
	}
	return Key(o)
}

// countHeld counts what some pods held.
func (c *counter) countHeld(h *Held) {
	s := c.accountFor(h)
	c.total.add(&s)
	c.addToOwner(h.Owner, &s)
	sumOf(c.outcomes, outcomeOf(h.Outcome)).add(&s)
	// A span crosses no midnight of the zone, so all of it belongs to the day of its begin.
	sumOf(c.days, dayOf(h.From.In(c.zone)).Unix()).add(&s)
}

// addToOwner adds to the rows of an owner.
func (c *counter) addToOwner(o Owner, s *sums) {
	for _, dimension := range Dimensions {
		rows, key := c.rows[dimension], keyOf(dimension, o)
		r := rows[key]
		if r == nil {
			r = &row{team: o.Team, user: o.User}
			rows[key] = r
		}
		// A row names a team or a user only if all that is in it agrees. Otherwise a reader would charge one for the others.
		r.manyTeams, r.manyUsers = r.manyTeams || r.team != o.Team, r.manyUsers || r.user != o.User
		r.add(s)
	}
	if o.Kind == v1beta1.MergeJobKind {
		c.merges.add(s)
	}
}

func sumOf[K comparable](all map[K]*sums, key K) *sums {
	if all[key] == nil {
		all[key] = &sums{}
	}
	return all[key]
}

// outcomeOf is the name for people of an outcome of Held.
func outcomeOf(ended string) string {
	switch ended {
	case "":
		return running
	case "Deleted":
		return cancelled
	}
	return ended
}

// useOf is what each of these pods used, and what sizing would have granted it.
func (c *counter) useOf(h *Held) (use, Granted) {
	of := roleDayOf(h.From, sizing.Key{Namespace: h.Owner.Namespace, Kind: h.Owner.Kind, Task: h.Owner.Task, Role: h.Role})
	u := c.uses[of]
	// Without metrics there is nothing to compare with the request, so nothing counts as wasted.
	if u == (use{}) || c.in.Granted == nil {
		return u, Granted{}
	}
	granted, _ := c.in.Granted(of.role, h.Tier)
	return u, granted
}

// buildReport makes the report of what was counted.
func (c *counter) buildReport() *Report {
	earlier := c.in.comparablePeriods()
	r := &Report{
		Period: c.in.Period, Currency: c.in.Prices.Currency, By: map[Dimension][]Row{}, Days: c.listDays(), Room: c.in.freeRoom(),
		Waits: sumWaits(c.in.Waits),
		Merges: Merges{
			Runs: c.merges.runs, Cost: c.merges.cost, Utilization: ratioOf(c.merges.devices.used, c.merges.devices.seen),
		},
	}
	// Before the rows are made: losses move from the rows of jobs that were stopped to the rows of those that caused the stop.
	c.chargeLosses()
	r.Lost = c.lost
	r.Total = c.total.toRow(Key{}, c.total.cost)
	for _, dimension := range Dimensions {
		r.By[dimension] = c.rankRows(dimension)
	}
	r.compareWith(earlier)
	r.Outcomes, r.Queues = c.listOutcomes(), c.listQueues()
	r.Forecast = forecastNext(c.in, earlier, c.total.cost)
	r.Notes = c.writeNotes(r)
	return r
}

// toRow makes a row of the report of sums.
func (s *sums) toRow(key Key, total decimal.Decimal) Row {
	return Row{
		Key: key, Cost: s.cost, Share: ratioOf(s.cost, total),
		AcceleratorHours: s.devices.charged, CPUHours: s.cores.charged, MemoryGiBHours: s.gib.charged,
		Utilization:    ratioOf(s.devices.used, s.devices.seen),
		CPUUtilization: ratioOf(s.cores.used, s.cores.seen), MemoryUtilization: ratioOf(s.gib.used, s.gib.seen),
		Waste: s.waste, Recoverable: s.recoverable, Runs: s.runs, Pods: s.pods,
		Uncertain: ratioOf(decimal.NewFromInt(s.uncertain), decimal.NewFromInt(s.seconds)), Goodput: s.trained.toGoodput(),
	}
}

// rankRows returns the rows of a dimension, the largest cost first.
func (c *counter) rankRows(dimension Dimension) []Row {
	list := make([]Row, 0, len(c.rows[dimension]))
	for key, r := range c.rows[dimension] {
		if dimension != ByTeam && !r.manyTeams {
			key.Team = r.team
		}
		if dimension == ByTask && !r.manyUsers {
			key.User = r.user
		}
		list = append(list, r.toRow(key, c.total.cost))
	}
	slices.SortFunc(list, func(a, b Row) int { return cmp.Or(b.Cost.Cmp(a.Cost), a.Key.compare(b.Key)) })
	return list
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.User, other.User), cmp.Compare(k.Team, other.Team), cmp.Compare(k.Namespace, other.Namespace),
		cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Task, other.Task))
}

func (c *counter) listOutcomes() []Outcome {
	var list []Outcome
	names := slices.SortedFunc(maps.Keys(c.outcomes), func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(outcomes, a), slices.Index(outcomes, b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		s := c.outcomes[name]
		list = append(list, Outcome{Name: name, Cost: s.cost, Share: ratioOf(s.cost, c.total.cost), Pods: s.pods})
	}
	return list
}

// listDays returns all days of the period, also days on which nothing ran, so that charts have no gaps.
func (c *counter) listDays() []Day {
	var list []Day
	p := c.in.Period
	for from := p.From; from.Before(p.To); from = nextDay(from) {
		d := Day{From: from}
		if s := c.days[dayOf(from).Unix()]; s != nil {
			d.Cost, d.Waste, d.Utilization = s.cost, s.waste, ratioOf(s.devices.used, s.devices.seen)
		}
		d.Free, d.Unusable = meanRoom(c.in.Rooms, from, nextDay(from))
		list = append(list, d)
	}
	return list
}
