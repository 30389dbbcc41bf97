package badinput

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// ProfileCases returns every case of ResourceQuotaProfile.
func ProfileCases() []Case {
	return casesOf(v1beta1.ResourceQuotaProfileKind,
		profileNames(), selectors(), shares(), lists(), members(), caps(), order(), sizing(), reservations(), dataOfProfiles(),
		formerProfileNames())
}

func profileNames() []Case {
	const (
		form = "must be a DNS-1123 label, because it is the value of labels: at most 63 lower-case letters, digits and dashes, " +
			"without dots"
		taken = "is that of a Queue of Volcano itself: choose another name"
	)
	return []Case{
		named("with a dot", "team.ads", "", form),
		named("of 64 letters", strings.Repeat("a", 64), "", form),
		named("of Volcano's Queue default", "default", "", taken),
		named("of Volcano's Queue root", "root", "", taken),
	}
}

// selectors are mistakes in which namespaces are the team's.
func selectors() []Case {
	const selector = "spec.namespaceSelector"
	none := selector + ": Invalid value: namespaceSelector must not be empty, because it would choose every namespace of the " +
		"cluster: set matchLabels or matchExpressions"
	return []Case{
		refused("no spec", `{"spec":null}`, "spec: Required value").blind().decoded(none),
		refused("no selector", setting(selector, "null"), selector+": Required value").blind().decoded(none),
		refused("an empty selector", setting(selector, `{"matchLabels":null}`), none),
		refused("no key", setting(selector, `{"matchExpressions":[{"operator":"Exists"}]}`),
			selector+".matchExpressions[0].key: Required value").blind().decoded(),
		refused("no operator", setting(selector, `{"matchExpressions":[{"key":"team"}]}`),
			selector+".matchExpressions[0].operator: Required value").blind().decoded(),
		refused("17 expressions", setting(selector, `{"matchExpressions":`+many(17, `{"key":"team%d","operator":"Exists"}`)+`}`),
			selector+".matchExpressions: Too many: 17: must have at most 16 items").blind(),
		refused("a key of 318 letters", expression(strings.Repeat("k", 318), "Exists", `[]`),
			selector+".matchExpressions[0].key: Too long: may not be more than 317 bytes").blind(),
		refused("an operator of 1025 letters", expression("team", strings.Repeat("o", 1025), `[]`),
			selector+".matchExpressions[0].operator: Too long: may not be more than 1024 bytes").blind(),
		refused("257 values", expression("team", "In", many(257, `"v%d"`)),
			selector+".matchExpressions[0].values: Too many: 257: must have at most 256 items").blind(),
		refused("a value of 64 letters", expression("team", "In", `["`+strings.Repeat("v", 64)+`"]`),
			selector+".matchExpressions[0].values[0]: Too long: may not be more than 63 bytes").blind(),
	}
}

// expression is a selector of namespaces by one expression; values is a list in JSON.
func expression(key, operator, values string) string {
	return setting("spec.namespaceSelector", fmt.Sprintf(`{"matchExpressions":[{"key":%q,"operator":%q,"values":%s}]}`,
		key, operator, values))
}

// shares are mistakes in what a queue may have.
func shares() []Case {
	cases := []Case{tooSmall("spec.queue.weight", 0, 1).decoded(), tooLarge("spec.queue.weight", 1001, 1000)}
	for _, field := range []string{"guarantee", "deserved", "capability"} {
		path := "spec.queue." + field
		cases = append(cases, refused("a negative "+field, setting(path, `{"nvidia.com/gpu":"-1"}`),
			path+": Invalid value: "+field+" must not be negative: set 0 or more, or leave the resource out"))
	}
	for _, pair := range [][2]string{{"guarantee", "deserved"}, {"guarantee", "capability"}, {"deserved", "capability"}} {
		less, more := pair[0], pair[1]
		cases = append(cases, refused(less+" over "+more,
			setting("spec.queue", `{"`+less+`":{"nvidia.com/gpu":9,"cpu":1},"`+more+`":{"nvidia.com/gpu":"8"}}`),
			"spec.queue."+less+": Invalid value: "+less+" must not exceed "+more+" of the same resource: lower "+less+" or raise "+more))
	}
	const parent = "spec.queue.parent"
	return append(cases,
		tooLong(parent, 63),
		mismatch(parent, "Research", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
		unknown("spec.queue.surplusSharing", "Some", "Fair", "Excluded"),
		unknown("spec.queue.repacking", "Always", "Advise", "Move"),
		refused("its own parent", setting(parent, `"bad"`),
			parent+`: Invalid value: parent (bad) is the profile's own queue: name another, or leave parent out`),
	)
}

// lists are mistakes in what jobs may have.
func lists() []Case {
	const tiers, pools = "spec.tiers", "spec.merges.pools"
	return []Case{
		refused("17 tiers", setting(tiers, many(17, `{"name":"t%d"}`)), tiers+": Too many: 17: must have at most 16 items").blind(),
		refused("two defaults", setting(tiers, `[{"name":"a","default":true},{"name":"b","default":true}]`),
			tiers+": Invalid value: one tier at most may be the default: leave default out of the others"),
		refused("a tier without a name", setting(tiers, `[{}]`), tiers+"[0].name: Required value").blind().decoded(
			tiers + `[0].name: Invalid value: "": ` + tiers + `[0].name in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`),
		refused("a tier's name of 41 letters", setting(tiers, `[{"name":"`+strings.Repeat("a", 41)+`"}]`),
			tiers+"[0].name: Too long: may not be more than 40 bytes").blind(),
		refused("a tier's name with a blank", setting(tiers, `[{"name":"main traffic"}]`), tiers+
			`[0].name: Invalid value: "main traffic": `+tiers+`[0].name in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`),
		refused("idleness of minutes", setting("spec.idleAfter", `"59m"`),
			`spec.idleAfter: Invalid value: "59m": idleAfter must be from 1h to 720h`).
			decoded(`spec.idleAfter: Invalid value: "59m0s": idleAfter must be from 1h to 720h`),
		refused("idleness of months", setting("spec.idleAfter", `"721h"`),
			`spec.idleAfter: Invalid value: "721h": idleAfter must be from 1h to 720h`).
			decoded(`spec.idleAfter: Invalid value: "721h0m0s": idleAfter must be from 1h to 720h`),
		refused("idleness in words", setting("spec.idleAfter", `"a day"`),
			`spec.idleAfter: Invalid value: "a day": spec.idleAfter in body must be of type duration: "a day"`).blind().unreadable(),
		refused("a stop after minutes", setting("spec", `{"idleAfter":"1h","stopIdleAfter":"59m"}`), stopBeforeIdle,
			`spec.stopIdleAfter: Invalid value: "59m": stopIdleAfter must be from 1h to 720h`).
			decoded(stopBeforeIdle, `spec.stopIdleAfter: Invalid value: "59m0s": stopIdleAfter must be from 1h to 720h`),
		refused("a stop after months", setting("spec.stopIdleAfter", `"721h"`),
			`spec.stopIdleAfter: Invalid value: "721h": stopIdleAfter must be from 1h to 720h`).
			decoded(`spec.stopIdleAfter: Invalid value: "721h0m0s": stopIdleAfter must be from 1h to 720h`),
		refused("a stop before anything is named", setting("spec.stopIdleAfter", `"23h"`), stopBeforeIdle),
		refused("a stop in words", setting("spec.stopIdleAfter", `"a week"`),
			`spec.stopIdleAfter: Invalid value: "a week": spec.stopIdleAfter in body must be of type duration: "a week"`).
			blind().unreadable(),
		refused("65 pools", setting(pools, many(65, `"p%d"`)), pools+": Too many: 65: must have at most 64 items").blind(),
		refused("a pool's name of 64 letters", setting(pools, `["`+strings.Repeat("a", 64)+`"]`),
			pools+"[0]: Too long: may not be more than 63 bytes").blind(),
		refused("a pool's name in capitals", setting(pools, `["Merges"]`), pools+`[0]: Invalid value: "Merges": `+
			pools+`[0] in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`),
	}
}

// stopBeforeIdle is what is said of notebooks that would be stopped before they are named.
const stopBeforeIdle = "spec.stopIdleAfter: Invalid value: stopIdleAfter must be at least idleAfter (24h by default), from " +
	"which on notebooks are named: raise stopIdleAfter or lower idleAfter"

// members are mistakes in who is of the team.
func members() []Case {
	const list, tier, kinds = "spec.members", "^[a-z]([-a-z0-9]*[a-z0-9])?$", `supported values: "User", "Group"`
	const name = list + "[0].name"
	one := func(what, fields, says string) Case {
		return refused("a member with "+what, setting(list, "[{"+fields+"}]"), list+"[0]."+says)
	}
	return []Case{
		refused("257 members", setting(list, many(257, `{"kind":"User","name":"u%d"}`)),
			list+": Too many: 257: must have at most 256 items").blind(),
		refused("a member twice", setting(list, `[{"kind":"User","name":"u"},{"kind":"User","name":"u"}]`),
			list+`[1]: Duplicate value: {"kind":"User","name":"u"}`),
		one("no kind", `"name":"u"`, "kind: Required value").blind().decoded(list + `[0].kind: Unsupported value: "": ` + kinds),
		one("an unknown kind", `"kind":"Robot","name":"u"`, `kind: Unsupported value: "Robot": `+kinds).blind(),
		one("no name", `"kind":"User"`, "name: Required value").blind().decoded(tooShort(name)),
		refused("a member with an empty name", setting(list, `[{"kind":"Group","name":""}]`), tooShort(name)),
		one("a name of 254 letters", `"kind":"User","name":"`+strings.Repeat("u", 254)+`"`,
			"name: Too long: may not be more than 253 bytes").blind(),
		one("an unknown standing", `"kind":"User","name":"u","standing":"Boss"`,
			`standing: Unsupported value: "Boss": supported values: "Senior", "Staff", "Intern"`).blind(),
		one("a tier in capitals", `"kind":"User","name":"u","maxTier":"Main"`,
			`maxTier: Invalid value: "Main": `+list+`[0].maxTier in body should match '`+tier+`'`),
		one("a tier of 41 letters", `"kind":"User","name":"u","maxTier":"`+strings.Repeat("t", 41)+`"`,
			"maxTier: Too long: may not be more than 40 bytes").blind(),
	}
}

// sizing are mistakes in what becomes of what was used.
func sizing() []Case {
	const window = "spec.sizing.window"
	wrong := func(what, written, decoded string) Case {
		says := func(value string) string {
			return window + ": Invalid value: " + strconv.Quote(value) +
				": window must be whole days, from 24h to 672h: write 168h for a week"
		}
		return refused("a window "+what, setting(window, strconv.Quote(written)), says(written)).decoded(says(decoded))
	}
	return []Case{
		unknown("spec.sizing.mode", "Always", "Disabled", "Recommend", "Enforce"),
		wrong("of hours", "25h", "25h0m0s"),
		wrong("under a day", "0h", "0s"),
		wrong("of months", "696h", "696h0m0s"),
	}
}

// order are mistakes in who goes first.
func order() []Case {
	var cases []Case
	for _, field := range []struct{ name, low, lowDecoded, high, highDecoded, rule string }{
		{"ageing", "9s", "9s", "721h", "721h0m0s", "from 10s to 720h"},
		{"useHalfLife", "59m", "59m0s", "2161h", "2161h0m0s", "from 1h to 2160h"},
		{"longestHold", "-1s", "-1s", "25h", "25h0m0s", "from 0s to 24h"},
	} {
		path := "spec.order." + field.name
		says := func(value string) string {
			return path + ": Invalid value: " + strconv.Quote(value) + ": " + field.name + " must be " + field.rule
		}
		cases = append(cases,
			refused("too short a "+field.name, setting(path, strconv.Quote(field.low)), says(field.low)).decoded(says(field.lowDecoded)),
			refused("too long a "+field.name, setting(path, strconv.Quote(field.high)), says(field.high)).decoded(says(field.highDecoded)),
			refused("a "+field.name+" that is no time", setting(path, `"soon"`), path+`: Invalid value: "soon": `+path+
				` in body must be of type duration: "soon"`).blind().unreadable())
	}
	return cases
}

// caps are mistakes in what may be held at a time.
func caps() []Case {
	const hours = "spec.caps.acceleratorHours"
	hour := func(what, fields, says string) Case {
		return refused("a budget with "+what, setting(hours, "[{"+fields+"}]"), hours+"[0]."+says)
	}
	window := func(written string) string {
		return "window: Invalid value: " + strconv.Quote(written) + ": window must be from 1h to 8784h"
	}
	cases := []Case{
		unknown("spec.caps.otherWorkloads", "Some", "Count", "Ignore", "Refuse"),
		refused("9 budgets", setting(hours, many(9, `{"window":"%dh","perUser":1}`)), hours+": Too many: 9: must have at most 8 items").
			blind(),
		hour("no window", `"perUser":1`, "window: Required value").blind().decoded(hours + "[0]." + window("0s")),
		hour("a window of minutes", `"window":"59m","perUser":1`, window("59m")).decoded(hours + "[0]." + window("59m0s")),
		hour("a window of years", `"window":"8785h","perUser":1`, window("8785h")).decoded(hours + "[0]." + window("8785h0m0s")),
		hour("a window that is no time", `"window":"week","perUser":1`,
			`window: Invalid value: "week": `+hours+`[0].window in body must be of type duration: "week"`).blind().unreadable(),
		hour("no hours", `"window":"1h"`, "perUser: Required value").blind().decoded(),
		hour("hours below nothing", `"window":"1h","perUser":-1`,
			"perUser: Invalid value: -1: "+hours+"[0].perUser in body should be greater than or equal to 0"),
		hour("hours beyond counting", `"window":"1h","perUser":10000001`,
			"perUser: Invalid value: 10000001: "+hours+"[0].perUser in body should be less than or equal to 10000000"),
		hour("an unknown consequence", `"window":"1h","perUser":1,"onExceeded":"Kill"`,
			`onExceeded: Unsupported value: "Kill": supported values: "Queue", "Deny", "Notify"`).blind(),
	}
	for _, list := range []string{"spec.caps.perUser", "spec.caps.perJob"} {
		one := func(what, fields, says string) Case {
			return refused("a cap in "+list+" with "+what, setting(list, "[{"+fields+"}]"), list+"[0]."+says)
		}
		cases = append(cases,
			refused("33 caps in "+list, setting(list, many(33, `{"resource":"example.com/r%d","max":1}`)),
				list+": Too many: 33: must have at most 32 items").blind(),
			one("no resource", `"max":1`, "resource: Required value").blind().decoded(list+`[0].resource: Invalid value: "": `+list+
				"[0].resource in body should be at least 1 chars long"),
			one("an empty resource", `"resource":"","max":1`,
				`resource: Invalid value: "": `+list+"[0].resource in body should be at least 1 chars long"),
			one("a resource that nothing counts", `"resource":"services","max":1`, `resource: Invalid value: "services": resource is `+
				"nothing that pods hold: write cpu, memory, ephemeral-storage, pods, hugepages-SIZE, or a device such as nvidia.com/gpu"),
			one("a resource of 254 letters", `"resource":"`+"r/"+strings.Repeat("r", 252)+`","max":1`,
				"resource: Too long: may not be more than 253 bytes").blind(),
			one("no max", `"resource":"cpu"`, "max: Required value").blind().decoded(),
			one("a negative max", `"resource":"cpu","max":"-1"`, `max: Invalid value: "-1": max must not be negative: set 0 or more`),
			one("a broken max", `"resource":"cpu","max":"1e1.5"`,
				`max: Invalid value: "1e1.5": `+list+`[0].max in body should match '`+quantity+`'`).unreadable(),
			one("a max of 65 letters", `"resource":"cpu","max":"`+strings.Repeat("1", 65)+`"`,
				"max: Too long: may not be more than 64 bytes").blind(),
			one("a model of 64 letters", `"resource":"cpu","max":1,"model":"`+strings.Repeat("m", 64)+`"`,
				"model: Too long: may not be more than 63 bytes").blind(),
		)
	}
	return cases
}

// reservations are mistakes in what is held for somebody.
func reservations() []Case {
	const list, tier, label = "spec.reservations", "^[a-z]([-a-z0-9]*[a-z0-9])?$", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	const job = list + "[0].jobRef.name"
	const whole = `"name":"a","replicas":1,"resources":{"cpu":1},"until":"2026-12-01T00:00:00Z","jobRef":{"name":"t"},"owner":"ivy"`
	one := func(what, from, to, says string) Case {
		return refused("a reservation with "+what, setting(list, "[{"+strings.Replace(whole, from, to, 1)+"}]"), list+"[0]."+says)
	}
	return []Case{
		refused("33 reservations", setting(list, many(33, `{`+strings.Replace(whole, `"a"`, `"r%d"`, 1)+`}`)),
			list+": Too many: 33: must have at most 32 items").blind(),
		refused("two reservations of one name", setting(list, "[{"+whole+"},{"+whole+"}]"),
			list+`[1]: Duplicate value: {"name":"a"}`),
		one("a name in capitals", `"a"`, `"A"`, `name: Invalid value: "A": `+
			list+`[0].name in body should match '`+label+`'`),
		one("a name of 41 letters", `"a"`, `"`+strings.Repeat("a", 41)+`"`, "name: Too long: may not be more than 40 bytes").blind(),
		one("no replicas", `"replicas":1`, `"replicas":0`,
			`replicas: Invalid value: 0: `+list+`[0].replicas in body should be greater than or equal to 1`),
		one("no name", `"name":"a",`, ``, "name: Required value").blind().decoded(
			list + `[0].name: Invalid value: "": ` + list + `[0].name in body should match '` + label + `'`),
		one("replicas missing", `"replicas":1,`, ``, "replicas: Required value").blind().decoded(
			list + `[0].replicas: Invalid value: 0: ` + list + `[0].replicas in body should be greater than or equal to 1`),
		one("resources missing", `"resources":{"cpu":1},`, ``, "resources: Required value").blind(),
		one("no end", `"until":"2026-12-01T00:00:00Z",`, ``, "until: Required value").blind(),
		one("no owner", `,"owner":"ivy"`, ``, "owner: Required value").blind().decoded(tooShort(list + "[0].owner")),
		one("an owner without a name", `"ivy"`, `""`, strings.TrimPrefix(tooShort(list+"[0].owner"), list+"[0].")),
		one("an owner of 254 letters", `"ivy"`, `"`+strings.Repeat("i", 254)+`"`,
			"owner: Too long: may not be more than 253 bytes").blind(),
		one("no job", `,"jobRef":{"name":"t"}`, ``, "jobRef: Required value").blind().decoded(tooShort(job)),
		one("a job that is not named", `{"name":"t"}`, `{}`, "jobRef.name: Required value").blind().decoded(tooShort(job)),
		one("an end that is no time", `2026-12-01T00:00:00Z`, `tomorrow`,
			`until: Invalid value: "tomorrow": `+list+`[0].until in body must be of type date-time: "tomorrow"`).blind().unreadable(),
		one("4097 replicas", `"replicas":1`, `"replicas":4097`,
			`replicas: Invalid value: 4097: `+list+`[0].replicas in body should be less than or equal to 4096`),
		one("nothing to hold", `{"cpu":1}`, `{}`, "resources: Invalid value: resources must not be empty: name what is "+
			"held, such as nvidia.com/gpu"),
		one("resources of nothing", `{"cpu":1}`, `{"cpu":0}`,
			"resources: Invalid value: resources must be more than 0: raise them, or leave the resource out"),
		one("a job without a name", `"t"`, `""`, strings.TrimPrefix(tooShort(job), list+"[0].")),
		one("a job of 254 letters", `"t"`, `"`+strings.Repeat("t", 254)+`"`,
			"jobRef.name: Too long: may not be more than 253 bytes").blind(),
		one("a job in capitals", `"t"`, `"Job"`, `jobRef.name: Invalid value: "Job": `+job+
			` in body should match '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'`),
		one("a tier in capitals", `"ivy"`, `"ivy","tier":"Main"`,
			`tier: Invalid value: "Main": `+list+`[0].tier in body should match '`+tier+`'`),
		one("a tier of 41 letters", `"ivy"`, `"ivy","tier":"`+strings.Repeat("t", 41)+`"`,
			"tier: Too long: may not be more than 40 bytes").blind(),
	}
}
