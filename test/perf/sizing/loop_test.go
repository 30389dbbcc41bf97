package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// steady is a task that needs the same at all times, whole days long.
func steady(tier string, need, requested amounts) task {
	t, _ := config.DefaultTiers().FindTier(tier)
	day := run{slices.Repeat([]float64{need.cpu}, slotsPerDay), slices.Repeat([]float64{need.memory}, slotsPerDay)}
	return task{name: "steady", tier: t, requested: requested, runs: slices.Repeat([]run{day}, sixWeeks), tooLittle: true}
}

// last is what a recommender says after six weeks.
func last(t task, who contestant) amounts {
	r := newRecommender(who, t)
	play(t, r, policy{who: who}.of(t))
	got, _ := r.recommend(sixWeeks, 0)
	return got
}

func between(t *testing.T, who string, got, want float64) {
	t.Helper()
	if got < want*0.999 || got > want*1.061 {
		t.Errorf("%s recommends %.4f, want %.4f and up to a bucket more", who, got, want)
	}
}

// For constant use all contestants are as documented: use × margin, and up to a bucket of 5 % more.
func TestConstantUse(t *testing.T) {
	used := amounts{1.7, 3 * gib}
	asked := amounts{17, 30 * gib}
	main := steady("main-traffic", used, asked)
	target, upper, simple := last(main, vpaTarget), last(main, vpaUpperBound), last(main, krr)
	between(t, "VPA's CPU", target.cpu, used.cpu*1.15)
	between(t, "VPA's memory", target.memory, used.memory*1.15)
	// Six weeks of samples each minute make its multiplier 1 + 1/42.
	between(t, "VPA's upper bound of CPU", upper.cpu, target.cpu*43/42)
	between(t, "KRR's CPU", simple.cpu, used.cpu)
	between(t, "KRR's memory", simple.memory, used.memory*1.15)
	for tier, buffer := range map[string]amounts{
		"exploratory": {1.25, 1.15}, "small-traffic": {1.54, 1.30}, "main-traffic": {2, 1.5},
	} {
		got := last(steady(tier, used, asked), tideline)
		between(t, "Tideline's CPU in "+tier, got.cpu, used.cpu*buffer.cpu)
		between(t, "Tideline's memory in "+tier, got.memory, used.memory*buffer.memory)
	}
}

// Samples of five minutes that count five times are those of each minute.
func TestVPAIsFedAsItFeedsItself(t *testing.T) {
	task := drawShifting(5, 3)
	task.requested = amounts{1000, 1 << 50} // so that nothing is held down
	v := newVPA(task, true)
	state := model.NewAggregateContainerState()
	for _, day := range task.ran()[:10] {
		r := task.runs[day]
		v.learn(day, 0, seen{cpu: r.cpu, memory: r.memory}, task.requested)
		pod := model.NewContainerState(v.pod.Request, state)
		for minute := range len(r.cpu) * minutes {
			at := begin.AddDate(0, 0, day).Add(time.Duration(minute) * time.Minute)
			for resource, usage := range map[model.ResourceName]model.ResourceAmount{
				model.ResourceCPU:    model.CPUAmountFromCores(r.cpu[minute/minutes]),
				model.ResourceMemory: model.MemoryAmountFromBytes(r.memory[minute/minutes]),
			} {
				pod.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: usage, Resource: resource})
			}
		}
	}
	want := v.recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{container: state})[container]
	got := v.recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{container: v.state})[container]
	for _, resource := range []model.ResourceName{model.ResourceCPU, model.ResourceMemory} {
		for which, pair := range [][2]model.Resources{{got.Target, want.Target}, {got.UpperBound, want.UpperBound}} {
			if ratio := float64(pair[0][resource]) / float64(pair[1][resource]); math.Abs(ratio-1) > 0.06 {
				t.Errorf("%s: %d is %.3f of what it is by the minute", resource, which, ratio)
			}
		}
	}
}

// A kill is seen as it happens: the run begins again with what is decided then.
func TestAKillIsDecidedOnAtOnce(t *testing.T) {
	made := steady("exploratory", amounts{1, 10 * gib}, amounts{4, 9.5 * gib})
	for who, want := range map[contestant]int{tideline: 1, vpaTarget: 1, asAsked: 3 * sixWeeks} {
		got := judge([]task{made}, policy{who: who})
		if got.kills != want || got.tooLittle != 1 {
			t.Errorf("%d kills of contestant %d, want %d", got.kills, who, want)
		}
	}
}

// Slack is made equal, and what is drawn and played again is the same.
func TestSlackIsMadeEqual(t *testing.T) {
	var tasks []task
	for i := range 90 {
		tasks = append(tasks, drawShifting(7, i))
	}
	own := judge(tasks, policy{who: tideline})
	for who := vpaTarget; who < contestants; who++ {
		even := equalised(tasks, who, own.tiers)
		for tier, s := range even.tiers {
			got, want := s.mean(), own.tiers[tier].mean()
			if math.Abs(got.cpu-want.cpu) > 1 || math.Abs(got.memory-want.memory) > 1 {
				t.Errorf("%s has %+v in %s, Tideline %+v", names[who], got, tier, want)
			}
		}
	}
}

func TestIntervals(t *testing.T) {
	i := intervalOf([]float64{1, 2, 3, 4})
	if i.mean != 2.5 || math.Abs(i.least-(2.5-3.182*math.Sqrt(5.0/12))) > 1e-9 || !i.excludesZero() {
		t.Errorf("the interval is %+v", i)
	}
	if intervalOf([]float64{-1, 2, 0, 1}).excludesZero() {
		t.Error("an interval around zero is told apart")
	}
}

func TestInterpolated(t *testing.T) {
	values := []float64{1, 2, 4, 8, 16}
	for share, want := range map[float64]float64{0: 1, 0.25: 2, 0.625: 6, 0.95: 14.4, 1: 16} {
		if got := interpolated(values, share); math.Abs(got-want) > 1e-9 {
			t.Errorf("the share of %.3f is %.2f, want %.2f", share, got, want)
		}
	}
}
