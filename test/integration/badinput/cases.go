package badinput

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Cases returns every case of ElasticTrainingJob.
func Cases() []Case {
	return casesOf(v1beta1.ElasticTrainingJobKind, common(), ranges(), workers(), reservedVariables(), numbers(), rendezvousConf(),
		words(), names(), shapes(), pages(), dataOfJobs(), roles(), policies(), formerNames())
}

// ranges are mistakes in the number of workers, and fields that a job lacks.
func ranges() []Case {
	const (
		noMinimum = "spec.minReplicas: Required value"
		noMaximum = "spec.maxReplicas: Required value"
		step      = "spec.elasticity.step"
		within    = "spec.elasticity.stepWithin"
		longStep  = step + ": Invalid value: elasticity.step (%d) must not exceed maxReplicas - minReplicas (%d), because the job " +
			"would never grow: lower elasticity.step or raise maxReplicas"
	)
	return []Case{
		refused("no spec", `{"spec":null}`, "spec: Required value").blind().decoded(maximumOfZero, minimumOfZero, noContainers),
		refused("no minReplicas", `{"spec":{"minReplicas":null}}`, noMinimum).blind().decoded(minimumOfZero),
		refused("no maxReplicas", `{"spec":{"maxReplicas":null}}`, noMaximum).blind().
			decoded(maximumOfZero, fmt.Sprintf(aboveMaximum, 2, 0)),
		refused("minReplicas of 0", `{"spec":{"minReplicas":0}}`, minimumOfZero),
		refused("maxReplicas of 0", `{"spec":{"maxReplicas":0}}`, maximumOfZero, fmt.Sprintf(aboveMaximum, 2, 0)),
		tooSmall("spec.replicas", 0, 1).decoded(),
		tooLarge("spec.replicas", 4097, 4096),
		tooSmall(step, 0, 1).decoded(),
		refused("step of 4097", setting(step, `4097`),
			step+": Invalid value: 4097: "+step+" in body should be less than or equal to 4096", fmt.Sprintf(longStep, 4097, 2)),
		refused("a step beyond the range", setting(step, `3`), fmt.Sprintf(longStep, 3, 2)),
		refused("a step of one within a node", setting(within, `{"level":"Node"}`), within+": Invalid value: stepWithin keeps the "+
			"workers of a step together, and elasticity.step is 1: set it to 2 or more, or remove stepWithin"),
		refused("a step within a HyperNode of no tier", setting("spec.elasticity", `{"step":2,"stepWithin":{"level":"HyperNode"}}`),
			within+".tier: Invalid value: level HyperNode needs tier, that of the HyperNodes that hold whole steps: set it, or set "+
				"level to Node"),
		refused("a step within a node of a tier", setting("spec.elasticity", `{"step":2,"stepWithin":{"level":"Node","tier":1}}`),
			within+".tier: Invalid value: tier (1) is for level HyperNode; a step of level Node is on one node: remove tier, or set "+
				"level to HyperNode"),
		refused("a step within nothing", setting("spec.elasticity", `{"step":2,"stepWithin":{}}`), within+".level: Required value").
			blind().decoded(within + `.level: Unsupported value: "": supported values: "Node", "HyperNode"`),
		refused("a step within a tier of 0", setting("spec.elasticity", `{"step":2,"stepWithin":{"level":"HyperNode","tier":0}}`),
			within+".tier: Invalid value: 0: "+within+".tier in body should be greater than or equal to 1"),
		refused("a step within a tier of 101", setting("spec.elasticity", `{"step":2,"stepWithin":{"level":"HyperNode","tier":101}}`),
			within+".tier: Invalid value: 101: "+within+".tier in body should be less than or equal to 100"),
		refused("a step within a wider HyperNode than all workers", `{"spec":{"networkTopology":{"highestTierAllowed":1},"elasticity":`+
			`{"step":2,"stepWithin":{"level":"HyperNode","tier":2}}}}`, within+".tier: Invalid value: tier (2) must not exceed "+
			"networkTopology.highestTierAllowed (1), because all workers are in one HyperNode of that: lower tier or raise "+
			"highestTierAllowed"),
		refused("a step within a rack", setting("spec.elasticity", `{"step":2,"stepWithin":{"level":"Rack"}}`),
			within+`.level: Unsupported value: "Rack": supported values: "Node", "HyperNode"`).blind(),
	}
}

// numbers are the fields with a range and nothing else.
func numbers() []Case {
	return within([]limits{
		{"spec.elasticity.growth.cooldownSeconds", 0, 86400},
		{"spec.elasticity.growth.maxPerHour", 1, 3600},
		{"spec.elasticity.growth.outageSeconds", 0, 86400},
		{"spec.elasticity.growth.leastGainPercent", 0, 100},
		{"spec.elasticity.shrink.minRunSeconds", 0, 86400},
		{"spec.elasticity.shrink.starvationSeconds", 0, 86400},
		{"spec.framework.port", 1024, 65535},
		{"spec.framework.torchrun.joinTimeoutSeconds", 30, 86400},
		{"spec.framework.torchrun.lastCallTimeoutSeconds", 1, 3600},
		{"spec.framework.torchrun.readTimeoutSeconds", 300, 86400},
		{"spec.successPolicy.completionGraceSeconds", 0, 86400},
	})
}

// workers are fields of the pod that Tideline decides for workers, and not for every pod.
func workers() []Case {
	return []Case{
		decided("schedulingGates", oneGate, gated+"spec.suspend"),
		decided("hostname", `"h"`, "hostname (h) is set by Tideline to the name of each worker: remove it"),
		decided("subdomain", `"s"`, "subdomain (s) is set by Tideline to the job's headless Service: remove it"),
		decided("restartPolicy", `"Always"`, "restartPolicy (Always) must be OnFailure, so that containers restart in place and "+
			"keep their node and GPUs: remove it or set OnFailure"),
	}
}

func reservedVariables() []Case {
	var cases []Case
	for _, name := range []string{
		"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_RDZV_BACKEND",
		"PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_RDZV_CONF", "PET_LOCAL_ADDR",
	} {
		containers := fmt.Sprintf(
			`[{"name":"side","image":"x"},{"name":"trainer","image":"x","env":[{"name":"LR","value":"1"},{"name":%q,"value":"1"}]}]`, name)
		cases = append(cases, refused("variable "+name, inPod("containers", containers), "spec.template.spec.containers: "+
			"Invalid value: env "+name+" of container trainer is reserved: torchrun and Tideline set it; remove it"))
	}
	return cases
}

func rendezvousConf() []Case {
	const list = "spec.framework.torchrun.rdzvConf"
	const key, value = list + "[0].key", list + "[0].value"
	conf := func(what, elements, says string) Case {
		return refused("rdzvConf: "+what, setting(list, elements), says)
	}
	cases := []Case{
		conf("empty", `[]`, list+": Invalid value: 0: "+list+" in body should have at least 1 items"),
		conf("17 pairs", many(17, `{"key":"k%d","value":"v"}`), list+": Too many: 17: must have at most 16 items").blind(),
		conf("a key twice", `[{"key":"a","value":"1"},{"key":"a","value":"2"}]`, list+`[1]: Duplicate value: {"key":"a"}`),
		conf("no key", `[{"value":"1"}]`, key+": Required value").blind().decoded(tooShort(key)),
		conf("no value", `[{"key":"a"}]`, value+": Required value").blind().decoded(tooShort(value)),
		conf("an empty key", `[{"key":"","value":"1"}]`, tooShort(key)),
		conf("an empty value", `[{"key":"a","value":""}]`, tooShort(value)),
		conf("a key of 65 letters", `[{"key":"`+strings.Repeat("k", 65)+`","value":"1"}]`,
			key+": Too long: may not be more than 64 bytes").blind(),
		conf("a value of 257 letters", `[{"key":"a","value":"`+strings.Repeat("v", 257)+`"}]`,
			value+": Too long: may not be more than 256 bytes").blind(),
		conf("a capital letter", `[{"key":"Close","value":"1"}]`,
			key+`: Invalid value: "Close": `+key+` in body should match '^[a-z][a-z0-9_]*$'`),
		conf("a comma in a value", `[{"key":"a","value":"1,b=2"}]`,
			value+`: Invalid value: "1,b=2": `+value+` in body should match '^[^,=\s]+$'`),
	}
	for _, name := range []string{"is_host", "join_timeout", "last_call_timeout", "read_timeout"} {
		cases = append(cases, conf(name, `[{"key":"`+name+`","value":"1"}]`, fmt.Sprintf(
			"%s: Invalid value: %[2]q: key %[2]s is set by Tideline: remove it; the timeouts have fields of their own in "+
				"spec.framework.torchrun", key, name)))
	}
	return cases
}

// words are the fields with a choice of words.
func words() []Case {
	return []Case{
		unknown("spec.cleanup.podPolicy", "Some", "None", "Running", "All"),
		unknown("spec.elasticity.shrink.initiator", "Somebody", "Auto", "Scheduler", "Operator"),
		unknown("spec.elasticity.growth.mode", "Some", "Always", "OnlyIfFits", "OnlyIfPays"),
	}
}

func names() []Case {
	const groups = "must not end in -surplus or -merge, which name the PodGroups of other jobs: choose another name"
	const long = "is too long (%d characters): the longest host name, NAME-worker-%d, must not exceed 63 characters; " +
		"shorten the name to %d characters or fewer"
	return []Case{
		named("of 55 characters", strings.Repeat("a", 55), "", fmt.Sprintf(long, 55, 3, 54)),
		named("of 54 characters with 11 workers", strings.Repeat("a", 54), `,"spec":{"maxReplicas":11}`, fmt.Sprintf(long, 54, 10, 53)),
		named("of a surplus group", "a-surplus", "", groups),
		named("of a merge", "a-merge", "", groups),
	}
}
