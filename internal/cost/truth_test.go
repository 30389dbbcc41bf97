package cost

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// rates are what an hour costs in millionths of a unit of money, as the truth knows them.
type rates struct {
	core, gib        int64
	device           map[string]int64
	discountPermille int64
}

const changing = `
currency: EUR
prices:
- validFrom: "2026-10-20"
  cpuCoreHour: "0.22"
  memoryGiBHour: "0.031"
  accelerators:
  - {resource: nvidia.com/gpu, hourly: "8.50", surplusDiscount: "0.40"}
  - {resource: nvidia.com/gpu, model: A100, hourly: "21.00", surplusDiscount: "0.40"}
- validFrom: "2026-10-01"
  cpuCoreHour: "0.2"
  memoryGiBHour: "0.03"
  accelerators:
  - {resource: nvidia.com/gpu, hourly: "7.123456", surplusDiscount: "0.25"}
  - {resource: nvidia.com/gpu, model: A100, hourly: "20", surplusDiscount: "0.25"}
`

// changingRates are those of the list above; the day is that of a clock on the wall.
func changingRates(day string) rates {
	if day >= "2026-10-20" {
		return rates{core: 220_000, gib: 31_000, device: map[string]int64{"": 8_500_000, "A100": 21_000_000}, discountPermille: 400}
	}
	return rates{core: 200_000, gib: 30_000, device: map[string]int64{"": 7_123_456, "A100": 20_000_000}, discountPermille: 250}
}

// truth counts in whole numbers what each pod cost from one hour to the next, by the clock on the wall.
type truth struct {
	zone *time.Location
	// used is what a pod of a role used on a day of UTC, for so many quarters of the time: thousandths of a core, and bytes.
	used map[usedKey]usedTruth
	rows map[string]*[2]big.Int // what cores and devices cost, and what memory did
}

type usedKey struct {
	day string
	of  sizing.Key
}

type usedTruth struct{ cpuQuarters, cpu, memory int64 }

// see learns what was used.
func (u *truth) see(used []Used) {
	for i := range used {
		key := usedKey{used[i].Day.Format(time.DateOnly), used[i].Key}
		if key.of.Container == "" {
			continue
		}
		key.of.Container = ""
		seen := usedTruth{cpuQuarters: used[i].SeenSeconds / 10_000, memory: used[i].MemoryPeak}
		for bucket := range used[i].CPU {
			upper := 0.001 * math.Pow(1.05, float64(bucket))
			seen.cpu = int64(math.Round((upper + upper/1.05) / 2 * 1000))
		}
		u.used[key] = seen
	}
}

// hours walks from one hour to the next, or the next half of one, where that is when days begin.
func (u *truth) hours(p *pod, period Period, each func(from time.Time, seconds int64)) {
	from, to := moment.LaterOf(p.begin, period.From), moment.EarlierOf(p.end, period.To)
	step := time.Hour
	if _, offset := from.In(u.zone).Zone(); offset%3600 != 0 {
		step /= 2
	}
	for from.Before(to) {
		next := moment.EarlierOf(to, from.Truncate(step).Add(step))
		each(from, next.Unix()-from.Unix())
		from = next
	}
}

// pay counts a pod. All is in millionths of money × thousandths of a byte or core × quarters of the time × seconds.
func (u *truth) pay(p *pod, period Period) {
	of := roleOf(p.Held)
	var sum int64
	var high, low uint64 // of memory, which 64 bits do not hold
	u.hours(p, period, func(from time.Time, seconds int64) {
		r := changingRates(from.In(u.zone).Format(time.DateOnly))
		used := u.used[usedKey{from.UTC().Format(time.DateOnly), of}]
		device, known := r.device[p.Model]
		if !known {
			device = r.device[""]
		}
		device *= 1000
		if p.Surplus {
			device -= device / 1000 * r.discountPermille
		}
		gpus := p.Resources[gpu] * device * 4 / 1000
		cores := 4 * p.Resources["cpu"]
		if beyond := (used.cpu - p.Resources["cpu"]) * used.cpuQuarters; beyond > 0 {
			cores += beyond
		}
		memory := 4 * p.Resources["memory"] << 20
		if beyond := (used.memory - p.Resources["memory"]<<20) * used.cpuQuarters; beyond > 0 {
			memory += beyond
		}
		sum += (gpus + cores*r.core) * seconds
		h, l := bits.Mul64(uint64(memory*r.gib), uint64(seconds))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	})
	bytes := new(big.Int).SetUint64(high)
	bytes.Add(bytes.Lsh(bytes, 64), new(big.Int).SetUint64(low))
	o := p.Owner
	for _, key := range []string{
		"total", "user " + o.User, "team " + o.Team, "task " + o.Namespace + "/" + o.Kind + "/" + o.Task, "outcome " + p.Outcome,
	} {
		if u.rows[key] == nil {
			u.rows[key] = &[2]big.Int{}
		}
		u.rows[key][0].Add(&u.rows[key][0], big.NewInt(sum))
		u.rows[key][1].Add(&u.rows[key][1], bytes)
	}
}

// truthOf is what some pods cost in a period.
func truthOf(in *Input, pods []pod) *truth {
	u := &truth{zone: in.Period.From.Location(), used: map[usedKey]usedTruth{}, rows: map[string]*[2]big.Int{}}
	u.see(in.Used)
	for i := range pods {
		if pods[i].begin.Before(in.Period.To) && pods[i].end.After(in.Period.From) {
			u.pay(&pods[i], in.Period)
		}
	}
	return u
}

// hold holds a report to the truth.
func (u *truth) hold(g *WithT, r *Report) {
	g.THelper()
	is := func(got decimal.Decimal, key string) {
		g.THelper()
		found, known := u.rows[key]
		g.Expect(known).To(BeTrue(), key)
		want := new(big.Rat).SetFrac(&found[0], big.NewInt(4*1000*3600*1_000_000))
		want.Add(want, new(big.Rat).SetFrac(&found[1], new(big.Int).Mul(big.NewInt(4*3600*1_000_000), big.NewInt(1<<30))))
		delete(u.rows, key)
		off := new(big.Rat).Sub(got.Rat(), want)
		g.Expect(off.Abs(off).Cmp(big.NewRat(1, 1_000_000_000))).To(Equal(-1), "%s: %s is not %s", key, got, want.FloatString(9))
		g.Expect(RoundAmount(got, r.Currency).StringFixed(2)).To(Equal(halfEven(want)), key)
	}
	is(r.Total.Cost, "total")
	for _, row := range r.By[ByUser] {
		is(row.Cost, "user "+row.Key.User)
	}
	for _, row := range r.By[ByTeam] {
		is(row.Cost, "team "+row.Key.Team)
	}
	for _, row := range r.By[ByTask] {
		is(row.Cost, "task "+row.Key.Namespace+"/"+row.Key.Kind+"/"+row.Key.Task)
	}
	ended := map[string]string{"Cancelled": "Deleted", "Running": ""}
	for _, o := range r.Outcomes {
		name, other := ended[o.Name]
		if !other {
			name = o.Name
		}
		is(o.Cost, "outcome "+name)
	}
	g.Expect(u.rows).To(BeEmpty(), "nothing is missing")
}

// halfEven is a number with two digits behind the point.
func halfEven(x *big.Rat) string {
	cents := new(big.Rat).Mul(x, big.NewRat(100, 1))
	whole, rest := new(big.Int).QuoRem(cents.Num(), cents.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1).Cmp(cents.Denom())
	if twice > 0 || twice == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(whole, big.NewInt(100)).FloatString(2)
}

const weekOfRuns = 82_000

// weekOf are runs like those of the Philly trace (Jeon et al., USENIX ATC 2019; Microsoft's philly-traces): half of them last 19
// minutes, a tenth three hours and more, a hundredth days; 93.2 % ask for one GPU; of 15 teams. Who ran them, and how they ended,
// the trace does not tell in this form, so that is made up, with the shares that its paper tells: 32 % of the time succeeded,
// 29 % was cancelled, 39 % failed.
func weekOf(r *rand.Rand, p Period) []pod {
	owners := people(300)
	var tasks []pod
	for i := range 500 {
		task := randomPod(r, owners[i%len(owners):][:1], p, 0)
		task.Owner.Task = fmt.Sprintf("task-%d", i)
		tasks = append(tasks, task)
	}
	var pods []pod
	for run := range weekOfRuns {
		first := tasks[r.IntN(len(tasks))]
		seconds := 1144 * math.Exp(1.785*r.NormFloat64())
		if r.IntN(50) == 0 {
			seconds *= 10
		}
		first.begin = p.From.Add(time.Duration(r.Int64N(int64(p.To.Sub(p.From)/time.Second))) * time.Second)
		first.end = first.begin.Add(time.Duration(min(1+seconds, 10*24*3600)) * time.Second)
		first.Outcome = []string{"Succeeded", "Deleted", "Failed"}[third(r.Float64())]
		if first.end.After(p.To.Add(time.Hour)) {
			first.Outcome = ""
		}
		first.run = strconv.Itoa(run)
		first.Surplus, first.Resources = false, Resources{"cpu": 8000, "memory": 65_536, gpu: 1000}
		workers := 1
		if r.IntN(1000) >= 932 {
			first.Resources[gpu] = 8000
			workers = 1 + r.IntN(8)
		}
		for i := range workers {
			worker := first
			if worker.Role != "" {
				worker.Role = sizing.RoleOf(int32(i))
			}
			worker.Surplus = i > 1
			pods = append(pods, worker)
		}
	}
	return pods
}

func third(x float64) int {
	switch {
	case x < 0.32:
		return 0
	case x < 0.61:
		return 1
	}
	return 2
}

func TestBehaviour1TotalsOfAWeekAreTheTruth(t *testing.T) {
	g := NewWithT(t)
	shanghai := zone("Asia/Shanghai")
	r := rand.New(rand.NewPCG(1, 7))
	p := PeriodUntil(time.Date(2026, time.October, 26, 9, 0, 0, 0, shanghai), 168*time.Hour, shanghai) // the price changes in it
	pods := weekOf(r, p)
	in := inputOf(p, prices(changing), pods)
	in.Used = randomUse(r, pods, p)
	report := ComputeReport(in)
	g.Expect(report.Total.Runs).To(BeEquivalentTo(weekOfRuns), "every run once")
	g.Expect(report.Total.Pods).To(BeEquivalentTo(len(pods)))
	g.Expect(report.Total.Cost.GreaterThan(d("1000000"))).To(BeTrue())
	truthOf(in, pods).hold(g, report)
}

// What is counted is right on days of 23 and 25 hours, over the end of a month, and where the price changes at a midnight within.
func TestBehaviour5ClocksMonthsAndPricesThatChange(t *testing.T) {
	g := NewWithT(t)
	berlin := zone("Europe/Berlin")
	for name, c := range map[string]struct {
		to    time.Time
		hours float64
		days  string
	}{
		"clocks set back":    {time.Date(2026, time.October, 26, 9, 0, 0, 0, berlin), 169, "19 20 21 22 23 24 25 26"},
		"clocks set forward": {time.Date(2027, time.March, 29, 0, 0, 0, 0, berlin), 167, "22 23 24 25 26 27 28"},
		"end of a month":     {time.Date(2026, time.November, 3, 0, 0, 0, 0, berlin), 168, "27 28 29 30 31 01 02"},
	} {
		r := rand.New(rand.NewPCG(2, 3))
		p := PeriodUntil(c.to, 168*time.Hour, berlin)
		always := randomPod(r, people(1), p, 0)
		always.begin, always.end, always.Role = p.From.AddDate(0, 0, -3), p.To.AddDate(0, 0, 3), ""
		always.Resources = Resources{gpu: 1000}
		pods := []pod{always}
		for i := range 500 {
			pods = append(pods, randomPod(r, people(20), p, i))
		}
		in := inputOf(p, prices(changing), pods)
		in.Used = randomUse(r, pods, p)
		report := ComputeReport(in)
		truthOf(in, pods).hold(g, report)
		var days []string
		sum := decimal.Zero
		for _, day := range report.Days {
			days = append(days, day.From.Format("02"))
			sum = sum.Add(day.Cost)
		}
		g.Expect(strings.Join(days, " ")).To(Equal(c.days), name)
		g.Expect(sum.Equal(report.Total.Cost)).To(BeTrue(), name)
		alone := ComputeReport(inputOf(p, prices(changing), pods[:1]))
		g.Expect(alone.Total.AcceleratorHours).To(equal(fmt.Sprint(c.hours)), name)
		g.Expect(alone.Total.Runs).To(BeEquivalentTo(1))
	}
	// The day of 25 hours costs 25 hours, and a price holds from the midnight of its day in the zone of the report.
	whole := pod{Held: Held{Resources: Resources{gpu: 1000}}, begin: time.Unix(0, 0), end: time.Unix(2e9, 0)}
	day := func(y int, m time.Month, n int) decimal.Decimal {
		return ComputeReport(inputOf(PeriodUntil(time.Date(y, m, n+1, 0, 0, 0, 0, berlin), 24*time.Hour, berlin), prices(changing),
			[]pod{whole})).Total.Cost
	}
	g.Expect(day(2026, time.October, 25)).To(equal("212.5"))
	g.Expect(day(2027, time.March, 28)).To(equal("195.5"))
	g.Expect(day(2026, time.October, 19)).To(equal("170.962944"))
	g.Expect(day(2026, time.October, 20)).To(equal("204"))
}
