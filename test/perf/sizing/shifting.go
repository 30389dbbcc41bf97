package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// The second workload, of needs that move. It was written down before anything was run on it, and no rule was chosen by it: it is
// for judging. The shapes are of 15 kinds, as often as each other, and all figures are log-normal where nothing else is said.
const (
	// sixWeeks is how many days there are.
	sixWeeks = 6 * week
	// asksTooLittle is the share of tasks that ask for less memory than they need.
	asksTooLittle = 0.12
)

// reported are the seeds of the page, for both workloads. Rules are tuned on others.
var reported = []uint64{
	1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016,
}

// shiftingNames are the shapes of the second workload.
var shiftingNames = []string{
	"steady", "drift across days", "Pareto", "one heavy weekday", "heavy every 10 days", "regime change", "fall of the level",
	"20-minute runs", "two days of history", "loading spike", "random walk by day", "ramp that ends", "4 % more each day",
	"day and night", "weekdays only",
}

// moving are the figures of a task of the second workload.
type moving struct {
	name string
	// base is what it needs at first, and deviations by how much runs and samples differ: standard deviations of logarithms.
	base                    amounts
	slots                   int
	ofRun, ofSample         float64
	changes                 int     // the day on which a regime or ramp ends or begins
	jump                    amounts // what the need is multiplied by then, or on heavy days
	phase, perDay           float64
	walk                    []float64
	first, heavyDay, spikes int
}

// drawShifting makes a task of the second workload. The same seed and index make the same task.
func drawShifting(seed uint64, index int) task {
	r := rand.New(rand.NewPCG(seed, 1<<32+uint64(index)))
	tiers := config.DefaultTiers()
	name := shiftingNames[index/len(tiers)%len(shiftingNames)]
	t := task{tier: tiers[index%len(tiers)], name: name}
	m := drawMoving(r, name)
	for day := range sixWeeks {
		t.runs = append(t.runs, m.run(r, day))
	}
	// People ask by what they saw in the first week of the task: 1.1 times of it at least, and twice in the median. Who asks for too
	// little has seen a lighter run.
	early := make([]run, 0, week)
	for _, made := range t.runs {
		if len(made.cpu) > 0 && len(early) < week {
			early = append(early, made)
		}
	}
	need := needed(early, 0.95)
	ratio := amounts{max(2*math.Exp(0.5*r.NormFloat64()), 1.1), max(2*math.Exp(0.5*r.NormFloat64()), 1.1)}
	if r.Float64() < asksTooLittle {
		ratio.memory, t.tooLittle = span{0.6, 0.98}.uniform(r), true
	}
	t.requested = amounts{math.Ceil(need.cpu*ratio.cpu*1000) / 1000, math.Ceil(need.memory*ratio.memory/mib) * mib}
	return t
}

func drawMoving(r *rand.Rand, name string) moving {
	m := moving{
		name: name, base: amounts{4 * math.Exp(r.NormFloat64()), 12 * gib * math.Exp(r.NormFloat64())},
		slots: int(span{2, 24}.logUniform(r) * slotsPerDay / 24),
		ofRun: 0.08 * math.Exp(0.4*r.NormFloat64()), ofSample: 0.10 * math.Exp(0.4*r.NormFloat64()),
		changes: 10 + r.IntN(25), phase: r.Float64(), heavyDay: r.IntN(10), spikes: 1 + r.IntN(2),
		jump: amounts{span{1.3, 2.5}.uniform(r), span{1.5, 2.2}.uniform(r)},
	}
	switch name {
	case "drift across days":
		m.perDay = span{0.005, 0.02}.uniform(r)
	case "4 % more each day":
		m.perDay = 0.04
	case "20-minute runs":
		m.slots = 4
	case "two days of history":
		m.first = week + r.IntN(sixWeeks-2*week)
	case "ramp that ends":
		m.perDay = span{0.03, 0.08}.uniform(r)
	default:
	}
	m.walk = make([]float64, sixWeeks)
	for day := 1; day < sixWeeks; day++ {
		m.walk[day] = m.walk[day-1] + 0.08*r.NormFloat64()
	}
	return m
}

// run draws the run of a day; one without samples where there is none.
func (m moving) run(r *rand.Rand, day int) run {
	level := m.level(r, day)
	if level == (amounts{}) {
		return run{}
	}
	level.cpu *= math.Exp(m.ofRun * r.NormFloat64())
	level.memory *= math.Exp(m.ofRun / 2 * r.NormFloat64())
	made := run{make([]float64, m.slots), make([]float64, m.slots)}
	noise := amounts{r.NormFloat64(), r.NormFloat64()}
	for slot := range m.slots {
		noise.cpu = sampleMemory*noise.cpu + math.Sqrt(1-sampleMemory*sampleMemory)*r.NormFloat64()
		noise.memory = sampleMemory*noise.memory + math.Sqrt(1-sampleMemory*sampleMemory)*r.NormFloat64()
		factor := m.inRun(r, slot)
		made.cpu[slot] = level.cpu * factor.cpu * math.Exp(m.ofSample*noise.cpu)
		made.memory[slot] = level.memory * factor.memory * math.Exp(m.ofSample/4*noise.memory)
	}
	return made
}

// level is what a day's run needs, but for noise; nothing on a day without a run.
func (m moving) level(r *rand.Rand, day int) amounts {
	by := amounts{1, 1}
	weekday := (day + m.heavyDay) % week
	switch m.name {
	case "drift across days", "4 % more each day":
		by = amounts{math.Pow(1+m.perDay, float64(day)), math.Pow(1+m.perDay, float64(day))}
	case "ramp that ends":
		days := float64(min(day, m.changes))
		by = amounts{1 + m.perDay*days, 1 + m.perDay*days}
	case "Pareto":
		heavy := math.Min(math.Pow(1-r.Float64(), -1/3.0), 5)
		by = amounts{heavy, math.Sqrt(heavy)}
	case "one heavy weekday":
		if weekday == 0 {
			by = m.jump
		}
	case "heavy every 10 days":
		if (day+m.heavyDay)%10 == 0 {
			by = m.jump
		}
	case "regime change":
		if day >= m.changes {
			by = m.jump
		}
	case "fall of the level":
		if day >= m.changes {
			by = amounts{1 / m.jump.cpu, 1 / m.jump.memory}
		}
	case "random walk by day":
		by = amounts{math.Exp(m.walk[day]), math.Exp(m.walk[day] / 2)}
	case "two days of history":
		if day < m.first {
			return amounts{}
		}
	case "weekdays only":
		if weekday >= 5 {
			return amounts{}
		}
	default:
	}
	return amounts{m.base.cpu * by.cpu, m.base.memory * by.memory}
}

// inRun is by how much more a slot of a run needs than others.
func (m moving) inRun(r *rand.Rand, slot int) amounts {
	switch m.name {
	case "Pareto":
		return amounts{min(math.Pow(1-r.Float64(), -1/4.0), 4), 1}
	case "loading spike":
		if slot < m.spikes {
			return amounts{m.jump.cpu, m.jump.memory}
		}
	case "day and night":
		wave := math.Sin(2 * math.Pi * (float64(slot)/slotsPerDay + m.phase))
		return amounts{1 + 0.5*wave, 1 + 0.1*wave}
	default:
	}
	return amounts{1, 1}
}

// ran are the days of a task on which it ran.
func (t task) ran() []int {
	var days []int
	for day := range t.runs {
		if len(t.runs[day].cpu) > 0 {
			days = append(days, day)
		}
	}
	return slices.Clip(days)
}
