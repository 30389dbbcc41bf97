package main

import (
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// subject is a way to grow.
type subject struct {
	name string
	set  func(*v1beta1.ElasticTrainingJob)
	// equal divides free room equally, whoever gains how much.
	equal bool
}

// Where subjects stand that others are compared with.
const fixed, greedy, onlyIfPays = 0, 1, 4

// subjects are what is compared. What they do not set has its default.
var subjects = []subject{
	{name: "fixed", set: func(job *v1beta1.ElasticTrainingJob) { job.Spec.MaxReplicas = job.Spec.MinReplicas }},
	{name: "greedy: Always", set: grows(v1beta1.GrowthAlways, v1beta1.DefaultCooldownSeconds)},
	{name: "Always, cooldown 10 s", set: grows(v1beta1.GrowthAlways, 10)},
	{name: "OnlyIfFits", set: grows(v1beta1.GrowthOnlyIfFits, v1beta1.DefaultCooldownSeconds)},
	{name: "OnlyIfPays", set: grows(v1beta1.GrowthOnlyIfPays, v1beta1.DefaultCooldownSeconds)},
}

func grows(mode v1beta1.GrowthMode, cooldown int32) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.Elasticity.Growth = v1beta1.Growth{Mode: mode, CooldownSeconds: ptr.To(cooldown), OutageSeconds: ptr.To[int32](60)}
	}
}
