package badinput

import (
	"fmt"
	"strconv"
	"strings"
)

// policies are the fields that say how a job runs, what is done about lost workers, and when it ends.
func policies() []Case {
	cases := []Case{
		unknown("spec.elasticity.rangeUpdate", "Never", "NextAttempt", "Restart"),
		unknown("spec.successPolicy.operator", "Some", "All", "Any"),
		unknown("spec.progress.stall.policy", "Retry", "Tell", "Restart", "Fail"),
		refused("a restart for hangs without a budget", `{"spec":{"restarts":{"max":0},"progress":{"stall":{"policy":"Restart"}}}}`,
			"spec.progress.stall.policy: Invalid value: policy Restart counts as a restart, and restarts.max is 0: raise restarts.max, "+
				"or set policy to Tell or Fail"),
	}
	cases = append(cases, within([]limits{
		{"spec.checkpoint.graceSeconds", 0, 3600},
		{"spec.deadlines.activeSeconds", 1, 31536000},
		{"spec.deadlines.belowMinSeconds", 1, 31536000},
		{"spec.deadlines.forceDeleteSeconds", 60, 86400},
		{"spec.restarts.max", 0, 100},
		{"spec.progress.stall.factor", 2, 1000},
		{"spec.deadlines.schedulingSeconds", 1, 31536000},
		{"spec.cleanup.ttlSecondsAfterFinished", 0, 31536000},
		{"spec.restarts.windowSeconds", 60, 31536000},
	})...)
	cases = append(cases, successTargets()...)
	return append(append(cases, failureRules()...), failureTargets()...)
}

// successTargets are mistakes in the workers whose success counts.
func successTargets() []Case {
	const list = "spec.successPolicy.targets"
	with := func(what, targets string, says ...string) Case {
		return refused("a success policy with "+what, setting(list, targets), says...)
	}
	return append(targetsOf(list, with), with("no targets", `[]`, tooFew(list)).decoded())
}

// failureTargets are mistakes in the workers that a failure rule is for.
func failureTargets() []Case {
	const rules, list = "spec.failurePolicy.rules", "spec.failurePolicy.rules[0].targets"
	with := func(what, targets string, says ...string) Case {
		rule := `[{"action":"FailJob","onEvents":["PodFailed"],"targets":` + targets + `}]`
		return refused("a failure rule with "+what, setting(rules, rule), says...)
	}
	return append(targetsOf(list, with), with("no targets", `[]`, tooFew(list)))
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
		refused("a failure rule that matches nothing", setting(rules, `[{"action":"FailJob","targets":[{"indexes":"0"}]}]`),
			rule+": Invalid value: a rule must say what it matches: set onEvents, onExitCodes, onPodConditions or onReasons"),
		anAction("no action", "", "Required value").decoded(rule + `.action: Unsupported value: "": ` + actions),
		anAction("an unknown action", `,"action":"Retry"`, `Unsupported value: "Retry": `+actions),
		ruled("a name of 65 letters", `"onEvents":["PodFailed"],"name":"`+strings.Repeat("n", 65)+`"`,
			rule+".name: Too long: may not be more than 64 bytes").blind(),
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

// targetsOf are mistakes in a list of targets at a path, which with puts into a patch.
func targetsOf(path string, with func(what, targets string, says ...string) Case) []Case {
	indexes := path + "[0].indexes"
	const pattern = `^([0-9]{1,4}(-[0-9]{1,4})?,)*[0-9]{1,4}(-([0-9]{1,4})?)?$`
	wrong := func(value string) string {
		return fmt.Sprintf("%[1]s: Invalid value: %[2]q: %[1]s in body should match '%[3]s'", indexes, value, pattern)
	}
	cases := []Case{
		with("9 targets", many(9, `{"indexes":"%d"}`), path+": Too many: 9: must have at most 8 items").blind(),
		with("a target without indexes", `[{}]`, indexes+": Required value").blind().decoded(tooShort(indexes)),
		with("empty indexes", `[{"indexes":""}]`, tooShort(indexes)),
		with("indexes of 257 letters", `[{"indexes":"`+strings.Repeat("1,", 128)+`1"}]`,
			indexes+": Too long: may not be more than 256 bytes").blind(),
	}
	for _, value := range []string{"all", "0..3", "1, 2", "10000", "-3", "0-3-", "8-,9"} {
		cases = append(cases, with("indexes "+value, `[{"indexes":`+strconv.Quote(value)+`}]`, wrong(value)))
	}
	return cases
}

// tooFew are the words for an empty list.
func tooFew(path string) string {
	return fmt.Sprintf("%[1]s: Invalid value: 0: %[1]s in body should have at least 1 items", path)
}
