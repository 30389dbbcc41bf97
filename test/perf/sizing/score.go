package main

import (
	"slices"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// contestant is who says what a container should request.
type contestant int

// Contestants.
const (
	tideline contestant = iota
	vpaTarget
	vpaUpperBound
	krr
	contestants // is how many there are
)

var names = [contestants]string{"Tideline", "VPA target", "VPA upper bound", "KRR"}

// A run is said to be throttled if it needs more CPU than it requests in more than this share of its samples.
const oftenThrottled = 0.05

// outcome is what is known of a task in the end.
type outcome struct {
	shape
	tier      config.Tier
	requested amounts
	killed    bool // in the history
	// recommended by each contestant on the history.
	recommended [contestants]amounts
	// following is what came then, and need the CPU at the percentile of the tier, and the peak of memory.
	following []run
	need      amounts
}

// play shows the history of a task to the contestants.
func play(t task) outcome {
	o := t.observe()
	out := outcome{
		shape: t.shape, tier: t.tier, requested: t.requested, killed: o.wasKilled(), following: t.following(),
		need: needed(t.following(), float64(t.tier.Sizing.CPUPercentile)/100),
	}
	out.recommended[tideline] = byTideline(o)
	out.recommended[vpaTarget], out.recommended[vpaUpperBound] = byVPA(o)
	out.recommended[krr] = byKRR(o)
	return out
}

// A policy is what becomes of what is recommended.
type policy struct {
	who contestant
	// asked has everybody keep what was requested.
	asked bool
	// uncapped takes a recommendation as it is. Else it is cut to what was requested, or, of memory after a kill, to twice of that,
	// which is what Tideline keeps to by itself.
	uncapped bool
	// factor is what recommendations are multiplied by, before they are cut; the zero value for nothing.
	factor amounts
}

// granted is what the container of a task requests in the following week.
func (p policy) granted(o outcome) amounts {
	if p.asked {
		return o.requested
	}
	got := o.recommended[p.who]
	if p.factor != (amounts{}) {
		got = amounts{got.cpu * p.factor.cpu, got.memory * p.factor.memory}
	}
	if p.uncapped {
		return got
	}
	most := o.requested
	if o.killed {
		most.memory *= 2
	}
	return amounts{min(got.cpu, most.cpu), min(got.memory, most.memory)}
}

// score is how requests of some tasks did.
type score struct {
	// cpu and memory are slacks: what is requested beyond what is needed, in percent of that; sorted. Of these, cutCPU and cutMemory
	// are those of tasks that are granted less than was asked.
	cpu, memory, cutCPU, cutMemory []float64
	// runs of the following week. Among them, often needed more CPU than they request in more than 5 % of their samples, killed
	// needed more memory at any time, and violated is the number of runs that did either.
	runs, often, killed, violated int
}

// judge holds what tasks are granted to what they need.
func judge(outcomes []outcome, p policy) score {
	var s score
	for _, o := range outcomes {
		got := p.granted(o)
		cpu, memory := slack(got.cpu, o.need.cpu), slack(got.memory, o.need.memory)
		s.cpu, s.memory = append(s.cpu, cpu), append(s.memory, memory)
		if got.cpu < o.requested.cpu {
			s.cutCPU = append(s.cutCPU, cpu)
		}
		if got.memory < o.requested.memory {
			s.cutMemory = append(s.cutMemory, memory)
		}
		for _, r := range o.following {
			s.add(r, got)
		}
	}
	for _, slacks := range [][]float64{s.cpu, s.memory, s.cutCPU, s.cutMemory} {
		slices.Sort(slacks)
	}
	return s
}

// slack is by how many percent of the need more is requested.
func slack(requested, need float64) float64 { return 100 * (requested/need - 1) }

func (s *score) add(r run, got amounts) {
	above := 0
	for _, cpu := range r.cpu {
		if cpu > got.cpu {
			above++
		}
	}
	share, killed := float64(above)/float64(len(r.cpu)), slices.Max(r.memory) > got.memory
	count := func(n *int, that bool) {
		if that {
			*n++
		}
	}
	s.runs++
	count(&s.often, share > oftenThrottled)
	count(&s.killed, killed)
	count(&s.violated, share > oftenThrottled || killed)
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// equalised is the policy by which a contestant leaves the same mean slack as Tideline, by one factor for CPU and one for
// memory.
func equalised(outcomes []outcome, p policy) policy {
	want := judge(outcomes, policy{who: tideline, uncapped: p.uncapped})
	p.factor.cpu = factorFor(average(want.cpu), func(factor float64) float64 {
		return average(slacks(outcomes, policy{p.who, p.asked, p.uncapped, amounts{factor, 1}}, amounts.ofCPU))
	})
	p.factor.memory = factorFor(average(want.memory), func(factor float64) float64 {
		return average(slacks(outcomes, policy{p.who, p.asked, p.uncapped, amounts{1, factor}}, amounts.ofMemory))
	})
	return p
}

// rivals are Tideline as it is, and the others at the same mean slack.
func rivals(outcomes []outcome, uncapped bool) [contestants]policy {
	all := [contestants]policy{tideline: {who: tideline, uncapped: uncapped, factor: amounts{1, 1}}}
	for who := tideline + 1; who < contestants; who++ {
		all[who] = equalised(outcomes, policy{who: who, uncapped: uncapped})
	}
	return all
}

func (a amounts) ofCPU() float64    { return a.cpu }
func (a amounts) ofMemory() float64 { return a.memory }

// slacks are those of one resource, in order of the tasks.
func slacks(outcomes []outcome, p policy, of func(amounts) float64) []float64 {
	all := make([]float64, len(outcomes))
	for i, o := range outcomes {
		all[i] = slack(of(p.granted(o)), of(o.need))
	}
	return all
}

// factorFor is the factor, up to 100, at which the slack, which rises with it, is the one that is wanted.
func factorFor(want float64, slackAt func(factor float64) float64) float64 {
	least, most := 0.0, 100.0
	for most-least > 1e-9 {
		middle := (least + most) / 2
		if slackAt(middle) < want {
			least = middle
		} else {
			most = middle
		}
	}
	return most
}

// over are the points by which the median of slacks is over a buffer; 0 for no slacks at all.
func over(slacks []float64, bufferPercent int32) float64 {
	if len(slacks) == 0 {
		return 0
	}
	return interpolated(slacks, 0.5) - float64(bufferPercent-100)
}

// verdict is what the aims are about, in a tier.
type verdict struct {
	// over are the points by which the median slack of Tideline is over the tier's buffer, and cut are those of what it cuts.
	over, cut amounts
	// violated are runs at equal mean slack.
	violated [contestants]int
}

// compare holds the outcomes of a tier to the aims.
func compare(outcomes []outcome) verdict {
	var v verdict
	for who, p := range rivals(outcomes, false) {
		s := judge(outcomes, p)
		v.violated[who] = s.violated
		if contestant(who) == tideline {
			rule := outcomes[0].tier.Sizing
			v.over = amounts{over(s.cpu, rule.CPUBufferPercent), over(s.memory, rule.MemoryBufferPercent)}
			v.cut = amounts{over(s.cutCPU, rule.CPUBufferPercent), over(s.cutMemory, rule.MemoryBufferPercent)}
		}
	}
	return v
}

// of are the outcomes of a tier.
func of(outcomes []outcome, tier string) []outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return o.tier.Name != tier })
}
