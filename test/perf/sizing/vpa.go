package main

import (
	"time"

	recommenderconfig "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// byVPA is the target or the upper bound that Vertical Pod Autoscaler's own recommender finds, as it is by default.
// It is fed as its cluster feeder does (recommender/input/cluster_feeder.go): the pod of each run is another pod with
// the same labels, and kills come as its observer of OOMs tells them. It looks each minute, and what it counts is one
// sample a minute; those of five minutes are alike here, so they are added once and counted five times, which is the
// same but for a histogram's scale.
type byVPA struct {
	upper       bool
	requested   amounts
	state       *model.AggregateContainerState
	pod         *model.ContainerState
	recommender logic.PodResourceRecommender
}

func newVPA(t task, upper bool) *byVPA {
	return &byVPA{upper: upper, requested: t.requested, state: model.NewAggregateContainerState(), recommender: vpaRecommender()}
}

func (v *byVPA) recommend(int, int) (amounts, bool) {
	if v.state.TotalSamplesCount == 0 {
		return amounts{}, false
	}
	got := v.recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{container: v.state})[container]
	if v.upper {
		return vpaAmounts(got.UpperBound), true
	}
	return vpaAmounts(got.Target), true
}

// minutes are those of a sample.
const minutes = slotSeconds / 60

func (v *byVPA) learn(day, from int, s seen, limits amounts) {
	v.pod = model.NewContainerState(model.Resources{
		model.ResourceCPU: model.CPUAmountFromCores(limits.cpu), model.ResourceMemory: model.MemoryAmountFromBytes(limits.memory),
	}, v.state)
	began := begin.AddDate(0, 0, day)
	for i := range s.cpu {
		at := began.Add(time.Duration(from+i) * slotSeconds * time.Second)
		last := at.Add((minutes - 1) * time.Minute)
		v.pod.AddSample(&model.ContainerUsageSample{
			MeasureStart: at, Usage: model.CPUAmountFromCores(s.cpu[i]), Resource: model.ResourceCPU,
		})
		v.pod.AddSample(&model.ContainerUsageSample{
			MeasureStart: at, Usage: model.MemoryAmountFromBytes(s.memory[i]), Resource: model.ResourceMemory,
		})
		v.state.TotalSamplesCount += minutes - 1
		v.state.LastSampleStart = last
		if s.killed && i+1 == len(s.cpu) {
			// It is refused when it is older than what is known, which it is not.
			_ = v.pod.RecordOOM(last, v.pod.Request[model.ResourceMemory])
		}
	}
}

func (v *byVPA) end(int) {}

// vpaRecommender is the recommender with the defaults of its flags, as its main function makes it.
func vpaRecommender() logic.PodResourceRecommender {
	c := recommenderconfig.DefaultRecommenderConfig()
	return logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction:       c.SafetyMarginFraction,
		PodMinCPUMillicores:        c.PodMinCPUMillicores,
		PodMinMemoryMb:             c.PodMinMemoryMb,
		TargetCPUPercentile:        c.TargetCPUPercentile,
		LowerBoundCPUPercentile:    c.LowerBoundCPUPercentile,
		UpperBoundCPUPercentile:    c.UpperBoundCPUPercentile,
		ConfidenceIntervalCPU:      c.ConfidenceIntervalCPU,
		TargetMemoryPercentile:     c.TargetMemoryPercentile,
		LowerBoundMemoryPercentile: c.LowerBoundMemoryPercentile,
		UpperBoundMemoryPercentile: c.UpperBoundMemoryPercentile,
		ConfidenceIntervalMemory:   c.ConfidenceIntervalMemory,
	})
}

func vpaAmounts(r model.Resources) amounts {
	return amounts{model.CoresFromCPUAmount(r[model.ResourceCPU]), model.BytesFromMemoryAmount(r[model.ResourceMemory])}
}
