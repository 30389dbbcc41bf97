package main

import (
	"slices"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// recommender says what the container of a task should request, and learns from what became of that.
type recommender interface {
	// recommend is asked at each start: on a day, at a slot of its run. It is false for what it cannot say yet.
	recommend(day, slot int) (amounts, bool)
	// learn has the part of a day's run up to a kill or its end, which began at a slot.
	learn(day, from int, s seen, limits amounts)
	// end has the run of a day behind it.
	end(day int)
}

// seen is what metrics have of a run under its limits, by sample. A container does not use more than its limit: a sample at which
// it needs more CPU is throttled. If it needs more memory it is killed, and that sample is the last.
type seen struct {
	cpu       []float64
	throttled []bool
	memory    []float64
	killed    bool
}

// mostTries bounds how often a run is started anew after a kill. After that its memory stays at the limit.
const mostTries = 3

// runScore is what became of a run.
type runScore struct {
	// cpu and memory are what was requested beyond what the run needed, in percent of that.
	cpu, memory   float64
	often, killed bool
}

// played is what became of a task under a recommender.
type played struct {
	scores []runScore
	// kills of all runs, also of those that are not scored.
	kills int
}

// play has a recommender decide at each start of a task for six weeks: what it grants is the limit under which it sees the next
// run. Runs are scored from the second week on, and from the third run of the task.
func play(t task, r recommender, grants func(amounts, bool) amounts) played {
	var p played
	for i, day := range t.ran() {
		got, score := playRun(t, r, day, grants, &p.kills, p.kills > 0)
		r.end(day)
		if day < week || i < 2 {
			continue
		}
		need := needed([]run{t.runs[day]}, float64(t.tier.Sizing.CPUPercentile)/100)
		score.cpu, score.memory = slack(got.cpu, need.cpu), slack(got.memory, need.memory)
		p.scores = append(p.scores, score)
	}
	return p
}

// playRun plays a run, and returns what was granted in the mean.
func playRun(t task, r recommender, day int, grants func(amounts, bool) amounts, kills *int, wasKilled bool) (amounts, runScore) {
	needs := t.runs[day]
	var mean amounts
	var score runScore
	above, tries, n := 0, 0, len(needs.cpu)
	for slot := 0; slot < n; {
		from := slot
		got := t.requested
		if said, known := r.recommend(day, slot); known {
			got = grants(said, wasKilled)
		}
		var s seen
		for ; slot < n && !s.killed; slot++ {
			s.killed = needs.memory[slot] > got.memory && tries < mostTries
			s.cpu = append(s.cpu, min(needs.cpu[slot], got.cpu))
			s.throttled = append(s.throttled, needs.cpu[slot] > got.cpu)
			s.memory = append(s.memory, min(needs.memory[slot], got.memory))
			if needs.cpu[slot] > got.cpu {
				above++
			}
			mean.cpu, mean.memory = mean.cpu+got.cpu/float64(n), mean.memory+got.memory/float64(n)
		}
		if s.killed {
			tries++
			*kills++
			score.killed, wasKilled = true, true
		}
		r.learn(day, from, s, got)
	}
	score.often = float64(above) > oftenThrottled*float64(n)
	return mean, score
}

// A policy is what becomes of what is recommended.
type policy struct {
	who contestant
	// factors by tier, by which recommendations are multiplied before they are cut.
	factors map[string]amounts
}

// of is what is granted to a task: at most what was asked, or, of memory after a kill, twice of that, which is what Tideline
// keeps to by itself.
func (p policy) of(t task) func(amounts, bool) amounts {
	factor, scaled := p.factors[t.tier.Name]
	return func(said amounts, wasKilled bool) amounts {
		if p.who == tideline {
			return said
		}
		if scaled {
			said = amounts{said.cpu * factor.cpu, said.memory * factor.memory}
		}
		most := t.requested
		if wasKilled {
			most.memory *= 2
		}
		return amounts{min(said.cpu, most.cpu), min(said.memory, most.memory)}
	}
}

// score is how requests of some tasks did.
type score struct {
	// cpu and memory are the mean slacks.
	cpu, memory float64
	// runs, and how many of them needed more CPU than granted in more than 5 % of their samples, were killed, or either.
	runs, often, killed, violated int
}

func (s *score) add(p played) {
	for _, r := range p.scores {
		s.cpu, s.memory = s.cpu+r.cpu, s.memory+r.memory
		s.runs++
		count := func(n *int, that bool) {
			if that {
				*n++
			}
		}
		count(&s.often, r.often)
		count(&s.killed, r.killed)
		count(&s.violated, r.often || r.killed)
	}
}

// mean is the mean slack.
func (s *score) mean() amounts { return amounts{s.cpu / float64(s.runs), s.memory / float64(s.runs)} }

// share is n in percent of the runs.
func (s *score) share(n int) float64 { return 100 * float64(n) / float64(s.runs) }

// result is what became of all tasks of a seed under a policy.
type result struct {
	tiers, shapes map[string]*score
	// tooLittle are the tasks that ask for too little memory, and their kills: of one the most.
	tooLittle, kills, most int
}

func judge(tasks []task, p policy) result {
	res := result{tiers: map[string]*score{}, shapes: map[string]*score{}}
	for _, t := range tasks {
		of := play(t, newRecommender(p.who, t), p.of(t))
		for name, all := range map[string]map[string]*score{t.tier.Name: res.tiers, t.name: res.shapes} {
			if all[name] == nil {
				all[name] = &score{}
			}
			all[name].add(of)
		}
		if t.tooLittle {
			res.tooLittle++
			res.kills += of.kills
			res.most = max(res.most, of.kills)
		}
	}
	return res
}

// slack is by how many percent of the need more is requested.
func slack(requested, need float64) float64 { return 100 * (requested/need - 1) }

const (
	// near is how close, in points, mean slacks must be to be equal, and mostTurns how often that is tried.
	near      = 0.2
	mostTurns = 8
)

// equalised has a contestant leave the same mean slack of CPU and of memory in each tier, by one factor for each.
func equalised(tasks []task, who contestant, want map[string]*score) result {
	factors := map[string]amounts{}
	cpu, memory := map[string]*secant{}, map[string]*secant{}
	for _, tier := range config.DefaultTiers() {
		factors[tier.Name] = amounts{1, 1}
		cpu[tier.Name], memory[tier.Name] = &secant{}, &secant{}
	}
	var res result
	for turn := range mostTurns {
		res = judge(tasks, policy{who, factors})
		done := true
		for name, s := range res.tiers {
			got, aim := s.mean(), want[name].mean()
			if max(got.cpu-aim.cpu, aim.cpu-got.cpu, got.memory-aim.memory, aim.memory-got.memory) > near {
				done = false
			}
			if turn+1 < mostTurns {
				f := factors[name]
				factors[name] = amounts{cpu[name].next(f.cpu, got.cpu, aim.cpu), memory[name].next(f.memory, got.memory, aim.memory)}
			}
		}
		if done {
			break
		}
	}
	return res
}

// secant looks for the factor at which a slack is the one that is wanted. Slack rises with the factor.
type secant struct {
	known           bool
	factor, reached float64
}

func (s *secant) next(factor, got, want float64) float64 {
	if max(got-want, want-got) < near/2 {
		return factor
	}
	slope := (got + 100) / factor // as if nothing were cut
	if s.known && factor != s.factor {
		if seen := (got - s.reached) / (factor - s.factor); seen > slope/20 {
			slope = seen
		}
	}
	s.known, s.factor, s.reached = true, factor, got
	return min(max(factor+(want-got)/slope, factor/2, 0.1), factor*2, 20)
}

// average of some numbers.
func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// sortedCopy is for percentiles.
func sortedCopy(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}
