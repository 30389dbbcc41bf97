package badinput

import (
	"fmt"
	"strings"
)

// policies are the fields that say how a job runs, what is done about lost workers, and when it ends.
func policies() []Case {
	cases := []Case{
		unknown("spec.elasticity.rangeUpdate", "Never", "Wait", "Restart"),
		unknown("spec.successPolicy", "All", "Master", "AllWorkers", "Any"),
		unknown("spec.runPolicy.managedBy", "me", "tideline.io/elastictrainingjob-controller", "kueue.x-k8s.io/multikueue"),
	}
	cases = append(cases, within([]limits{
		{"spec.checkpoint.graceSeconds", 0, 3600},
		{"spec.deadlines.activeSeconds", 1, 31536000},
		{"spec.deadlines.belowMinSeconds", 1, 31536000},
		{"spec.deadlines.forceDeleteSeconds", 60, 86400},
		{"spec.restarts.max", 0, 100},
		{"spec.deadlines.schedulingSeconds", 1, 31536000},
		{"spec.cleanup.ttlSecondsAfterFinished", 0, 31536000},
		{"spec.restarts.windowSeconds", 60, 31536000},
	})...)
	return append(cases, failureRules()...)
}

// failureRules are mistakes in a rule of the failure policy.
func failureRules() []Case {
	const (
		rules, rule = "spec.failurePolicy.rules", "spec.failurePolicy.rules[0]"
		actions     = `supported values: "Ignore", "RestartWorker", "RestartJob", "CompleteJob", "FailJob"`
		events      = `supported values: "PodFailed", "PodEvicted", "NodeLost", "TaskCompleted"`
	)
	// Each rule is whole but for the mistake.
	ruled := func(what, fields string, says ...string) Case {
		return refused("a failure rule with "+what, setting(rules, `[{"action":"FailJob",`+fields+`}]`), says...)
	}
	anAction := func(what, action, says string) Case {
		return refused("a failure rule with "+what, setting(rules, `[{"onEvents":["PodFailed"]`+action+`}]`),
			rule+".action: "+says).blind()
	}
	return append([]Case{
		refused("33 failure rules", setting(rules, many(33, `{"name":"r%d","action":"Ignore","onEvents":["PodFailed"]}`)),
			rules+": Too many: 33: must have at most 32 items").blind(),
		refused("a failure rule that matches nothing", setting(rules, `[{"action":"FailJob","onWorkers":"Master"}]`),
			rule+": Invalid value: a rule must say what it matches: set onEvents, onExitCodes, onPodConditions or onReasons"),
		anAction("no action", "", "Required value").decoded(rule + `.action: Unsupported value: "": ` + actions),
		anAction("an unknown action", `,"action":"Retry"`, `Unsupported value: "Retry": `+actions),
		ruled("a name of 65 letters", `"onEvents":["PodFailed"],"name":"`+strings.Repeat("n", 65)+`"`,
			rule+".name: Too long: may not be more than 64 bytes").blind(),
		ruled("unknown workers", `"onEvents":["PodFailed"],"onWorkers":"Some"`,
			rule+`.onWorkers: Unsupported value: "Some": supported values: "Master", "Worker"`).blind(),
		ruled("an unknown event", `"onEvents":["PodLost"]`, rule+`.onEvents[0]: Unsupported value: "PodLost": `+events).blind(),
		ruled("no events", `"onEvents":[]`, tooFew(rule+".onEvents")),
		ruled("5 events", `"onEvents":["PodFailed","PodEvicted","NodeLost","TaskCompleted","PodFailed"]`,
			rule+".onEvents: Too many: 5: must have at most 4 items", rule+`.onEvents[4]: Duplicate value: "PodFailed"`).blind(),
		ruled("no conditions", `"onPodConditions":[]`, tooFew(rule+".onPodConditions")),
		ruled("17 conditions", `"onPodConditions":`+many(17, `"C%d"`),
			rule+".onPodConditions: Too many: 17: must have at most 16 items").blind(),
		ruled("a condition of 317 letters", `"onPodConditions":["`+strings.Repeat("C", 317)+`"]`,
			rule+".onPodConditions[0]: Too long: may not be more than 316 bytes").blind(),
		ruled("no reasons", `"onReasons":[]`, tooFew(rule+".onReasons")),
		ruled("17 reasons", `"onReasons":`+many(17, `"R%d"`), rule+".onReasons: Too many: 17: must have at most 16 items").blind(),
		ruled("a reason of 129 letters", `"onReasons":["`+strings.Repeat("R", 129)+`"]`,
			rule+".onReasons[0]: Too long: may not be more than 128 bytes").blind(),
	}, exitCodes(rules, rule+".onExitCodes")...)
}

// exitCodes are mistakes in onExitCodes, at its path in the first of the rules.
func exitCodes(rules, path string) []Case {
	const operators = `supported values: "In", "NotIn"`
	operator, values := path+".operator", path+".values"
	zero := fmt.Sprintf("%[1]s[0]: Invalid value: 0: %[1]s[0] in body should be greater than or equal to 1", values)
	codes := func(what, fields string, says ...string) Case {
		return refused("exit codes: "+what, setting(rules, `[{"action":"FailJob","onExitCodes":{`+fields+`}}]`), says...)
	}
	return []Case{
		codes("no operator", `"values":[1]`, operator+": Required value").blind().
			decoded(operator + `: Unsupported value: "": ` + operators),
		codes("an unknown operator", `"operator":"Is","values":[1]`, operator+`: Unsupported value: "Is": `+operators).blind(),
		codes("no values", `"operator":"In"`, values+": Required value").blind(),
		codes("an empty list of values", `"operator":"In","values":[]`, tooFew(values)),
		codes("256 values", `"operator":"In","values":`+many(256, "%d"),
			zero, values+": Too many: 256: must have at most 255 items").blind(),
		codes("0", `"operator":"In","values":[0]`, zero),
		codes("256", `"operator":"In","values":[256]`,
			fmt.Sprintf("%[1]s[0]: Invalid value: 256: %[1]s[0] in body should be less than or equal to 255", values)),
	}
}

// tooFew are the words for an empty list.
func tooFew(path string) string {
	return fmt.Sprintf("%[1]s: Invalid value: 0: %[1]s in body should have at least 1 items", path)
}

// policyUpdates are changes of them.
func policyUpdates() []Update {
	const (
		checkpoint = "spec.checkpoint: Invalid value: checkpoint is immutable, because pods have read it when they were created" + again
		inCharge   = "because two controllers would act on one job" + again
		added      = "spec.runPolicy.managedBy: Invalid value: managedBy cannot be added or removed later, " + inCharge
		kueue      = `{"spec":{"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue"}}}`
		tideline   = `"tideline.io/elastictrainingjob-controller"`
	)
	return []Update{
		changed("another grace", `{"spec":{"checkpoint":{"graceSeconds":30}}}`, setting("spec.checkpoint.graceSeconds", "60"),
			checkpoint),
		changed("a checkpoint added", `{}`, setting("spec.checkpoint.graceSeconds", "60"), checkpoint),
		changed("a checkpoint removed", `{"spec":{"checkpoint":{"graceSeconds":30}}}`, setting("spec.checkpoint", "null"), checkpoint),
		changed("another managedBy", kueue, setting("spec.runPolicy.managedBy", tideline),
			`spec.runPolicy.managedBy: Invalid value: `+tideline+`: managedBy is immutable, `+inCharge),
		changed("a managedBy added", `{}`, kueue, added),
		changed("a managedBy removed", kueue, setting("spec.runPolicy.managedBy", "null"), added),
		changed("a run policy with managedBy removed", kueue, setting("spec.runPolicy", "null"), added),
	}
}
