package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// slotsPerDay are the samples of a day, of slotSeconds each.
	slotsPerDay = 288
	slotSeconds = 300
	// week is how many days of history there are, and how many follow, whose need is the truth.
	week = 7

	mib = 1 << 20
	gib = 1 << 30
)

// shape is how the need of a task comes and goes.
type shape int

// Shapes.
const (
	periodic shape = iota
	ramping
	bursty
	leaking
	throttled
	killed
)

// shapes are how often there is each of them, in percent of all tasks.
var shapes = []struct {
	shape
	name    string
	percent int
}{
	{periodic, "periodic", 25},
	{ramping, "ramping", 20},
	{bursty, "bursty", 20},
	{leaking, "leaking", 15},
	{throttled, "throttled", 10},
	{killed, "OOM-killed", 10},
}

// span is what a figure of a task is drawn from.
type span struct{ least, most float64 }

// uniform draws from all of a span alike, and logUniform so that every factor is as likely as another.
func (s span) uniform(r *rand.Rand) float64 { return s.least + r.Float64()*(s.most-s.least) }

func (s span) logUniform(r *rand.Rand) float64 {
	return math.Exp(span{math.Log(s.least), math.Log(s.most)}.uniform(r))
}

// The workload. It was written down before anything was run on it, and nobody tunes it.
var (
	// processorsNeeded and bytesNeeded are what a task needs when nothing is the matter; log-uniform.
	processorsNeeded = span{0.5, 32}
	bytesNeeded      = span{1 * gib, 128 * gib}
	// runHours are how long the run of every day takes; in whole hours.
	runHours = span{4, 24}
	// runDeviation is by how much the need of a day's run differs from that of another: the standard deviation of its logarithm, for
	// CPU; half of that for memory. sampleDeviation is the same for samples of one run, which follow one another (sampleMemory of
	// what was is kept); a fifth of that for memory.
	runDeviation    = span{0.02, 0.15}
	sampleDeviation = span{0.03, 0.15}
	sampleMemory    = 0.8
	// periodHours and swing are of what is periodic: how long a period is, and by which share CPU rises and falls; a fifth of that
	// for memory. Throttled and OOM-killed tasks are periodic as well.
	periodHours = span{1, 24}
	swing       = span{0.2, 0.7}
	// rise is by which share the CPU of what ramps is higher after a week; half of that for memory. It goes on all the time.
	rise = span{0.1, 0.6}
	// burstShare is the share of the time that bursts take, burstSlots how many samples one takes in the mean, and burstFactor and
	// burstMemory how much is needed then of what is needed else.
	burstShare  = span{0.01, 0.10}
	burstSlots  = 3.0
	burstFactor = span{1.5, 5}
	burstMemory = span{1, 1.5}
	// leak is by which share memory is higher at the end of a run than at its beginning. It differs between runs by leakDeviation.
	leak          = span{0.3, 2}
	leakDeviation = 0.15
	// asked is what people ask for, of the CPU that suffices 95 % of the time and of the peak of memory in the week of history;
	// log-uniform. With the tasks that ask for too little that leaves 43 % of the CPU and 46 % of the memory unused, in the mean:
	// Rzadca et al. measured 46 % where limits are set by hand (Autopilot, EuroSys 2020). Throttled tasks ask for tooFewProcessors,
	// killed ones for tooFewBytes.
	asked            = span{1, 6}
	tooFewProcessors = span{0.5, 1}
	tooFewBytes      = span{0.8, 0.99}
)

// amounts are of CPU, in processors, and of memory, in bytes.
type amounts struct{ cpu, memory float64 }

// run is what a day's run of a task needs, by sample.
type run struct{ cpu, memory []float64 }

// task is one container that runs every day.
type task struct {
	shape
	// name of a shape of the second workload, and whether it asks for less memory than it needs.
	name      string
	tooLittle bool
	tier      config.Tier
	// runs of six weeks, one a day; without samples on a day without a run.
	runs []run
	// requested is what it requests, in whole millicores and MiB. Its limits are the same.
	requested amounts
}

// draw makes a task of a seed. The same seed and index make the same task.
func draw(seed uint64, index int) task {
	r := rand.New(rand.NewPCG(seed, uint64(index)))
	tiers := config.DefaultTiers()
	t := task{tier: tiers[index%len(tiers)], shape: drawShape(r)}
	t.name = t.shape.String()
	needs := drawNeeds(r, t.shape)
	for day := range sixWeeks {
		t.runs = append(t.runs, needs.run(r, day))
	}
	ratio := amounts{asked.logUniform(r), asked.logUniform(r)}
	switch t.shape {
	case throttled:
		ratio.cpu = tooFewProcessors.logUniform(r)
	case killed:
		ratio.memory, t.tooLittle = tooFewBytes.logUniform(r), true
	default:
	}
	need := needed(t.runs[:week], 0.95)
	t.requested = amounts{math.Ceil(need.cpu*ratio.cpu*1000) / 1000, math.Ceil(need.memory*ratio.memory/mib) * mib}
	return t
}

// String is the name of a shape.
func (s shape) String() string {
	for _, known := range shapes {
		if known.shape == s {
			return known.name
		}
	}
	return ""
}

func drawShape(r *rand.Rand) shape {
	at := r.IntN(100)
	for _, s := range shapes {
		if at -= s.percent; at < 0 {
			return s.shape
		}
	}
	return periodic
}

// needs are the figures of a task, of which its runs are drawn.
type needs struct {
	shape
	base                         amounts
	slots                        int
	runDeviation                 float64
	sampleDeviation              float64
	period, phase, swing         float64
	rise                         float64
	burstShare, burst, burstSize float64
	leak                         float64
}

func drawNeeds(r *rand.Rand, s shape) needs {
	return needs{
		shape:           s,
		base:            amounts{processorsNeeded.logUniform(r), bytesNeeded.logUniform(r)},
		slots:           int(math.Round(runHours.uniform(r))) * slotsPerDay / 24,
		runDeviation:    runDeviation.uniform(r),
		sampleDeviation: sampleDeviation.uniform(r),
		period:          periodHours.logUniform(r) * slotsPerDay / 24,
		phase:           r.Float64(),
		swing:           swing.uniform(r),
		rise:            rise.uniform(r),
		burstShare:      burstShare.uniform(r),
		burst:           burstFactor.logUniform(r),
		burstSize:       burstMemory.uniform(r),
		leak:            leak.uniform(r),
	}
}

// run draws the run of a day.
func (n needs) run(r *rand.Rand, day int) run {
	of := amounts{
		n.base.cpu * math.Exp(n.runDeviation*r.NormFloat64()),
		n.base.memory * math.Exp(n.runDeviation/2*r.NormFloat64()),
	}
	leaks := n.leak * math.Exp(leakDeviation*r.NormFloat64())
	made := run{make([]float64, n.slots), make([]float64, n.slots)}
	noise, bursts := amounts{r.NormFloat64(), r.NormFloat64()}, false
	for slot := range n.slots {
		noise.cpu = sampleMemory*noise.cpu + math.Sqrt(1-sampleMemory*sampleMemory)*r.NormFloat64()
		noise.memory = sampleMemory*noise.memory + math.Sqrt(1-sampleMemory*sampleMemory)*r.NormFloat64()
		bursts = n.bursts(r, bursts)
		factor := n.factor(day*slotsPerDay+slot, float64(slot)/float64(n.slots), bursts, leaks)
		made.cpu[slot] = of.cpu * factor.cpu * math.Exp(n.sampleDeviation*noise.cpu)
		made.memory[slot] = of.memory * factor.memory * math.Exp(n.sampleDeviation/5*noise.memory)
	}
	return made
}

// bursts tells whether there is a burst, by whether there was one before.
func (n needs) bursts(r *rand.Rand, before bool) bool {
	if before {
		return r.Float64() >= 1/burstSlots
	}
	return r.Float64() < n.burstShare/(1-n.burstShare)/burstSlots
}

// factor is what the shape makes of the need at a slot since the beginning, at a share of the run.
func (n needs) factor(slot int, share float64, bursts bool, leaks float64) amounts {
	switch n.shape {
	case ramping:
		weeks := float64(slot) / (week * slotsPerDay)
		return amounts{1 + n.rise*weeks, 1 + n.rise/2*weeks}
	case bursty:
		if bursts {
			return amounts{n.burst, n.burstSize}
		}
		return amounts{1, 1}
	case leaking:
		return amounts{1, 1 + leaks*share}
	default:
		wave := math.Sin(2 * math.Pi * (float64(slot)/n.period + n.phase))
		return amounts{1 + n.swing*wave, 1 + n.swing/5*wave}
	}
}

// needed is the CPU that suffices for a share of the samples of runs, and the peak of their memory.
func needed(runs []run, share float64) amounts {
	var cpu []float64
	peak := 0.0
	for _, r := range runs {
		cpu = append(cpu, r.cpu...)
		peak = max(peak, slices.Max(r.memory))
	}
	slices.Sort(cpu)
	return amounts{cpu[max(int(math.Ceil(share*float64(len(cpu))-1e-9)), 1)-1], peak}
}
