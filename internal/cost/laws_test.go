package cost

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const worlds = 60

// drawnPeriod is a random period over a change of prices, and what was there.
type drawnPeriod struct {
	*rand.Rand
	period Period
	pods   []pod
	used   []Used
}

func newDrawnPeriod(seed uint64) *drawnPeriod {
	r := rand.New(rand.NewPCG(seed, 11))
	z := zone([]string{"Europe/Berlin", "Asia/Shanghai", "Asia/Kolkata", "America/New_York"}[r.IntN(4)])
	to := time.Date(2026, time.October, 20+r.IntN(10), r.IntN(24), r.IntN(60), r.IntN(60), 0, z)
	w := &drawnPeriod{Rand: r, period: PeriodUntil(to, time.Duration(1+r.IntN(200))*time.Hour, z)}
	owners := people(6)
	for i := range 1 + r.IntN(60) {
		w.pods = append(w.pods, randomPod(r, owners, w.period, i))
	}
	w.used = randomUse(r, w.pods, w.period)
	return w
}

// granted is a rule that grants a share of what is asked, and nothing to the masters of merges.
func granted(role sizing.Key, _ string) (Granted, bool) {
	if role.Kind == "MergeJob" && role.Role == sizing.Master {
		return Granted{}, false
	}
	return Granted{Millicores: 3000, MemoryBytes: 8 << 30}, true
}

func (w *drawnPeriod) input(p Period, list string) *Input {
	in := inputOf(p, prices(list), w.pods)
	in.Used, in.Granted = w.used, granted
	return in
}

// losses are some of what preemptions and restarts destroyed.
func (w *drawnPeriod) losses(in *Input) {
	for range w.IntN(5) {
		pod := w.pods[w.IntN(len(w.pods))]
		l := Loss{Of: pod.Owner, Pods: []LostPods{{1, pod.begin, pod.end, pod.Surplus, pod.Model, pod.Resources}}}
		if w.IntN(3) > 0 {
			by := w.pods[w.IntN(len(w.pods))].Owner
			l.For = &by
		}
		in.Losses = append(in.Losses, l)
	}
}

func TestBehaviour3SumsAreTheSameInEveryDimension(t *testing.T) {
	g := NewWithT(t)
	for seed := range uint64(worlds) {
		w := newDrawnPeriod(seed)
		in := w.input(w.period, changing)
		w.losses(in)
		r := ComputeReport(in)
		same := func(name string, whole decimal.Decimal, parts ...decimal.Decimal) {
			g.THelper()
			g.Expect(decimal.Sum(decimal.Zero, parts...).Equal(whole)).To(BeTrue(), "seed %d: %s", seed, name)
		}
		for _, dimension := range Dimensions {
			rows := r.By[dimension]
			of := func(field func(*Row) decimal.Decimal) []decimal.Decimal {
				var all []decimal.Decimal
				for i := range rows {
					all = append(all, field(&rows[i]))
				}
				return all
			}
			for name, field := range map[string]func(*Row) decimal.Decimal{
				"cost": func(r *Row) decimal.Decimal { return r.Cost }, "waste": func(r *Row) decimal.Decimal { return r.Waste },
				"recoverable":  func(r *Row) decimal.Decimal { return r.Recoverable },
				"accelerators": func(r *Row) decimal.Decimal { return r.AcceleratorHours },
				"CPU":          func(r *Row) decimal.Decimal { return r.CPUHours },
				"memory":       func(r *Row) decimal.Decimal { return r.MemoryGiBHours },
				"runs":         func(r *Row) decimal.Decimal { return decimal.NewFromInt(r.Runs) },
				"pods":         func(r *Row) decimal.Decimal { return decimal.NewFromInt(r.Pods) },
			} {
				same(string(dimension)+" "+name, field(&r.Total), of(field)...)
			}
			for i := range rows {
				g.Expect(rows[i].Cost.IsNegative()).To(BeFalse(), "seed %d: %v", seed, rows[i].Key)
				g.Expect(rows[i].Recoverable.GreaterThan(rows[i].Waste)).To(BeFalse(), "seed %d: %v", seed, rows[i].Key)
				if i > 0 {
					g.Expect(rows[i].Cost.GreaterThan(rows[i-1].Cost)).To(BeFalse(), "the most costly is first")
				}
			}
		}
		var days, outcomes []decimal.Decimal
		for _, day := range r.Days {
			days = append(days, day.Cost)
		}
		for _, o := range r.Outcomes {
			outcomes = append(outcomes, o.Cost)
		}
		same("days", r.Total.Cost, days...)
		same("outcomes", r.Total.Cost, outcomes...)
		g.Expect(r.Total.Waste.GreaterThan(r.Total.Cost)).To(BeFalse())
	}
}

func TestOrderOfInputIsIrrelevant(t *testing.T) {
	g := NewWithT(t)
	for seed := range uint64(worlds) {
		w := newDrawnPeriod(seed)
		in := w.input(w.period, changing)
		w.losses(in)
		for i := range 9 {
			in.Rooms = append(in.Rooms, Measured{
				w.period.From.Add(time.Duration(i) * time.Minute), 100 * w.Float64(), Ratio{w.Float64(), w.IntN(3) > 0},
			})
			in.Waits = append(in.Waits, Wait{fmt.Sprint("job-", i), time.Duration(i/2) * time.Minute})
			in.Earlier = append(in.Earlier, Earlier{
				From: w.period.From.Add(-time.Duration(i+1) * time.Hour), To: w.period.To.Add(-time.Duration(i+1) * time.Hour),
				Currency: "EUR", Total: Total{Cost: decimal.NewFromInt(w.Int64N(1000))},
			})
		}
		want, err := json.Marshal(ComputeReport(in))
		g.Expect(err).NotTo(HaveOccurred())
		for range 3 {
			shuffle(w.Rand, in.Held)
			shuffle(w.Rand, in.Runs)
			shuffle(w.Rand, in.Used)
			shuffle(w.Rand, in.Losses)
			shuffle(w.Rand, in.Rooms)
			shuffle(w.Rand, in.Waits)
			shuffle(w.Rand, in.Earlier)
			got, err := json.Marshal(ComputeReport(in))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(Equal(string(want)), "seed %d", seed)
		}
	}
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func TestTwoPartsOfAPeriodAddUp(t *testing.T) {
	g := NewWithT(t)
	for seed := range uint64(worlds) {
		w := newDrawnPeriod(seed)
		length := int64(w.period.To.Sub(w.period.From) / time.Second)
		middle := w.period.From.Add(time.Duration(1+w.Int64N(length-1)) * time.Second)
		whole := ComputeReport(w.input(w.period, changing))
		first := ComputeReport(w.input(Period{w.period.From, middle}, changing))
		second := ComputeReport(w.input(Period{middle, w.period.To}, changing))
		cost := func(r *Report, dimension Dimension, key Key) decimal.Decimal {
			for i := range r.By[dimension] {
				row := &r.By[dimension][i]
				if row.Key.withoutDetails(dimension) == key.withoutDetails(dimension) {
					return row.Cost
				}
			}
			return decimal.Zero
		}
		for _, dimension := range Dimensions {
			for i := range whole.By[dimension] {
				row := &whole.By[dimension][i]
				g.Expect(cost(first, dimension, row.Key).Add(cost(second, dimension, row.Key))).To(nearly(row.Cost), "seed %d", seed)
			}
		}
		g.Expect(first.Total.Waste.Add(second.Total.Waste)).To(nearly(whole.Total.Waste), "seed %d", seed)
		g.Expect(first.Total.Recoverable.Add(second.Total.Recoverable)).To(nearly(whole.Total.Recoverable), "seed %d", seed)
		g.Expect(first.Total.CPUHours.Add(second.Total.CPUHours)).To(nearly(whole.Total.CPUHours), "seed %d", seed)
	}
}

func TestHigherPricesNeverCostLess(t *testing.T) {
	g := NewWithT(t)
	for seed := range uint64(worlds) {
		w := newDrawnPeriod(seed)
		before := ComputeReport(w.input(w.period, changing))
		for old, raised := range map[string]string{
			`cpuCoreHour: "0.22"`: `cpuCoreHour: "0.23"`, `memoryGiBHour: "0.03"`: `memoryGiBHour: "0.04"`,
			`hourly: "8.50"`: `hourly: "9"`, `hourly: "21.00"`: `hourly: "21.01"`, `"0.40"`: `"0.39"`, `hourly: "20"`: `hourly: "25"`,
		} {
			after := ComputeReport(w.input(w.period, strings.ReplaceAll(changing, old, raised)))
			for _, dimension := range Dimensions {
				for i := range after.By[dimension] {
					a := &after.By[dimension][i]
					j := slices.IndexFunc(before.By[dimension], func(b Row) bool { return b.Key == a.Key })
					g.Expect(a.Cost.LessThan(before.By[dimension][j].Cost)).To(BeFalse(), "seed %d: %s", seed, raised)
				}
			}
			g.Expect(after.Total.AcceleratorHours.Equal(before.Total.AcceleratorHours)).To(BeTrue())
		}
	}
}

func TestRandomPeriodsAreTheTruth(t *testing.T) {
	g := NewWithT(t)
	for seed := range uint64(worlds) {
		w := newDrawnPeriod(seed)
		in := w.input(w.period, changing)
		if len(in.Held) > 0 {
			truthOf(in, w.pods).hold(g, ComputeReport(in))
		}
	}
}
