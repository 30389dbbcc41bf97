package main

import (
	"time"

	recommenderconfig "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// byVPA are the target and the upper bound that Vertical Pod Autoscaler's own recommender finds, as it is by default. It is fed
// as its cluster feeder does (recommender/input/cluster_feeder.go): the pod of each run is another pod with the same labels, with
// a sample of CPU and one of memory each minute, which is how often it looks, and with kills as its observer of OOMs tells
// them. Metrics of five minutes are taken for each of these minutes.
func byVPA(o observed) (target, upperBound amounts) {
	state := model.NewAggregateContainerState()
	request := model.Resources{
		model.ResourceCPU:    model.CPUAmountFromCores(o.requested.cpu),
		model.ResourceMemory: model.MemoryAmountFromBytes(o.requested.memory),
	}
	for day, r := range o.runs {
		r.feed(model.NewContainerState(request, state), begin.AddDate(0, 0, day))
	}
	got := vpaRecommender().GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{container: state})[container]
	return vpaAmounts(got.Target), vpaAmounts(got.UpperBound)
}

// feed gives the samples of a run that began at a time to the state of its container.
func (s seen) feed(to *model.ContainerState, began time.Time) {
	for slot := range s.cpu {
		at := began.Add(time.Duration(slot) * slotSeconds * time.Second)
		cpu, memory := model.CPUAmountFromCores(s.cpu[slot]), model.MemoryAmountFromBytes(s.memory[slot])
		for ; at.Before(began.Add(time.Duration(slot+1) * slotSeconds * time.Second)); at = at.Add(time.Minute) {
			to.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: cpu, Resource: model.ResourceCPU})
			to.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: memory, Resource: model.ResourceMemory})
		}
		if s.killed[slot] {
			// It is refused when it is older than what is known, which it is not.
			_ = to.RecordOOM(at, to.Request[model.ResourceMemory])
		}
	}
}

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
