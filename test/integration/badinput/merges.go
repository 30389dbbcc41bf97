package badinput

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// MergeCases returns every case of MergeJob.
func MergeCases() []Case {
	return casesOf(v1beta1.MergeJobKind, common(), merges(), schedules(), mergePods(), stores(), folders(), formerMergeNames())
}

// merges are mistakes in what is merged, where, and how often it is tried.
func merges() []Case {
	const long = "is too long (%d characters): the longest pod name, NAME-merge-%d, must not exceed 63 characters; " +
		"shorten the name to %d characters or fewer"
	return append([]Case{
		refused("no spec", `{"spec":null}`, "spec: Required value").blind().decoded(
			unsupported("spec.store.type", "", storeTypes...), noContainers),
		refused("minReplicas of 0", `{"spec":{"minReplicas":0}}`, minimumOfZero).decoded(),
		refused("maxReplicas of 0", `{"spec":{"maxReplicas":0}}`, maximumOfZero, fmt.Sprintf(aboveMaximum, 2, 0)).decoded(
			fmt.Sprintf(aboveMaximum, 2, 1)),
		named("of 56 characters", strings.Repeat("a", 56), "", fmt.Sprintf(long, 56, 3, 55)),
		named("of 55 characters with 11 pods", strings.Repeat("a", 55), `,"spec":{"maxReplicas":11}`, fmt.Sprintf(long, 55, 10, 54)),
		refused("a window larger than a run", `{"spec":{"window":6,"maxIncrementsPerRun":5}}`, "spec.window: Invalid value: "+
			"window (6) must not exceed maxIncrementsPerRun (5): lower window or raise maxIncrementsPerRun"),
		empty("spec.model").decoded(),
		tooLong("spec.model", 128),
		mismatch("spec.model", "ctr/v2", "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"),
		tooLong("spec.trainingTask", 253),
		empty("spec.pool").decoded(),
		tooLong("spec.pool", 63),
		mismatch("spec.pool", "Merges", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
	}, within([]limits{
		{"spec.backoffSeconds", 1, 86400},
		{"spec.maxIncrementsPerRun", 1, 5000},
		{"spec.runTimeoutSeconds", 1, 604800},
		{"spec.schedule.increments", 1, 5000},
		{"spec.startTimeoutSeconds", 1, 86400},
		{"spec.threshold", 1, 1000},
		{"spec.weight.boost", 0, 1000},
		{"spec.weight.perIncrement", 0, 100},
		{"spec.window", 1, 1000},
	})...)
}

// schedules are mistakes in how often a model is merged.
func schedules() []Case {
	const (
		interval, cron = "spec.schedule.interval", "spec.schedule.cron"
		either         = "spec.schedule: Invalid value: a schedule has an interval, a cron line or a number of increments: set one " +
			"of them, but not both interval and cron, or leave schedule out to merge once"
		alone = "spec.schedule.timeZone: Invalid value: timeZone (Europe/Berlin) goes with cron: remove it, or set cron"
		zone  = "spec.schedule.cron: Invalid value: %q: the time zone has a field of its own: set timeZone"
		units = `^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?$`
		span  = "spec.schedule.interval: Invalid value: %q: interval must be from 10s to 8760h"
	)
	schedule := func(what, fields string, says ...string) Case {
		return refused("schedule: "+what, setting("spec.schedule", `{`+fields+`}`), says...)
	}
	return []Case{
		schedule("empty", ``, either),
		schedule("an interval and a cron line", `"interval":"10h","cron":"@daily"`, either),
		schedule("an interval, a cron line and increments", `"interval":"10h","cron":"@daily","increments":5`, either),
		schedule("a time zone of increments", `"increments":5,"timeZone":"Europe/Berlin"`, alone),
		schedule("a time zone alone", `"timeZone":"Europe/Berlin"`, either, alone),
		schedule("a time zone of an interval", `"interval":"10h","timeZone":"Europe/Berlin"`, alone),
		schedule("9 seconds", `"interval":"9s"`, fmt.Sprintf(span, "9s")),
		schedule("more than a year", `"interval":"8761h"`, fmt.Sprintf(span, "8761h")).decoded(fmt.Sprintf(span, "8761h0m0s")),
		// The API server's durations have days, Go's have none.
		mismatch(interval, "1d", units).unreadable(),
		schedule("no duration", `"interval":"daily"`,
			fmt.Sprintf("%[1]s: Invalid value: %[2]q: %[1]s in body should match '%[3]s'", interval, "daily", units),
			fmt.Sprintf("%[1]s: Invalid value: %[2]q: %[1]s in body must be of type duration: %[2]q", interval, "daily"),
		).blind().unreadable(),
		schedule("an interval of 33 letters", `"interval":"1.`+strings.Repeat("0", 30)+`h"`,
			interval+": Too long: may not be more than 32 bytes").blind().decoded(),
		empty(cron).decoded(either),
		tooLong(cron, 128),
		schedule("a time zone in the cron line", `"cron":"CRON_TZ=UTC 0 3 * * *"`, fmt.Sprintf(zone, "CRON_TZ=UTC 0 3 * * *")),
		schedule("an empty time zone", `"cron":"@daily","timeZone":""`, tooShort("spec.schedule.timeZone")).decoded(),
		schedule("a time zone of 65 letters", `"cron":"@daily","timeZone":"`+strings.Repeat("z", 65)+`"`,
			"spec.schedule.timeZone: Too long: may not be more than 64 bytes").blind(),
	}
}

// mergePods are what Tideline decides for the pods of merges, and not for every pod.
func mergePods() []Case {
	const containers = `[{"name":"side","image":"x"},{"name":"merge","image":"x",` +
		`"env":[{"name":"A","value":"1"},{"name":"TIDELINE_RUN","value":"1"}]}]`
	return []Case{
		decided("schedulingGates", oneGate, gated+"suspend"),
		decided("restartPolicy", `"OnFailure"`, "restartPolicy (OnFailure) must be Never, so that a merge that fails makes room "+
			"for the next: remove it or set Never"),
		refused("variable TIDELINE_RUN", inPod("containers", containers), "spec.template.spec.containers: Invalid value: "+
			"env TIDELINE_RUN of container merge is reserved: variables that begin with TIDELINE_ are set by Tideline; remove it"),
		refused("a label of Tideline's", `{"spec":{"template":{"metadata":{"labels":{"tideline.io/merge":"other"}}}}}`,
			"spec.template.metadata.labels: Invalid value: label tideline.io/merge is set by Tideline: remove it"),
	}
}
