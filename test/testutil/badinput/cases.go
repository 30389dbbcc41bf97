package badinput

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Cases returns every case.
func Cases() []Case {
	return slices.Concat(
		ranges(), templates(), reservedVariables(), numbers(), rendezvousConf(), words(), names(), shapes(), policies())
}

// refused is a mistake whose causes are named each as path, kind of mistake and rule.
func refused(what, patch string, says ...string) Case {
	return Case{What: what, Patch: patch, Says: says}
}

// blind marks a mistake after which the API server checks no further rules.
func (c Case) blind() Case {
	c.Blind = true
	return c
}

// decoded gives the causes that are left for the operator to see.
func (c Case) decoded(causes ...string) Case {
	c.Decoded = causes
	return c
}

func ranges() []Case {
	const (
		noMinimum = "spec.minReplicas: Invalid value: 0: spec.minReplicas in body should be greater than or equal to 1"
		noMaximum = "spec.maxReplicas: Invalid value: 0: spec.maxReplicas in body should be greater than or equal to 1"
		above     = "spec.minReplicas: Invalid value: minReplicas (%d) must not exceed maxReplicas (%d): " +
			"lower minReplicas or raise maxReplicas"
		noContainers = "spec.template.spec.containers: Required value"
	)
	return []Case{
		refused("no spec", `{"spec":null}`, "spec: Required value").blind().decoded(noMaximum, noMinimum, noContainers),
		refused("no minReplicas", `{"spec":{"minReplicas":null}}`, "spec.minReplicas: Required value").blind().decoded(noMinimum),
		refused("no maxReplicas", `{"spec":{"maxReplicas":null}}`, "spec.maxReplicas: Required value").blind().
			decoded(noMaximum, fmt.Sprintf(above, 2, 0)),
		refused("no template", `{"spec":{"template":null}}`, "spec.template: Required value").blind().decoded(noContainers),
		refused("a template without spec", `{"spec":{"template":{"spec":null}}}`, "spec.template.spec: Required value").blind().
			decoded(noContainers),
		refused("minReplicas of 0", `{"spec":{"minReplicas":0}}`, noMinimum),
		refused("maxReplicas of 0", `{"spec":{"maxReplicas":0}}`, noMaximum, fmt.Sprintf(above, 2, 0)),
		refused("minReplicas above maxReplicas", `{"spec":{"minReplicas":5}}`, fmt.Sprintf(above, 5, 4)),
		refused("minReplicas of 4097", `{"spec":{"minReplicas":4097,"maxReplicas":4096}}`,
			"spec.minReplicas: Invalid value: 4097: spec.minReplicas in body should be less than or equal to 4096",
			fmt.Sprintf(above, 4097, 4096)),
		tooLarge("spec.maxReplicas", 4097, 4096),
	}
}

// numbers are the fields with a range and nothing else.
func numbers() []Case {
	var cases []Case
	for _, field := range []struct {
		path             string
		minimum, maximum int
	}{
		{"spec.elasticity.cooldownSeconds", 0, 86400},
		{"spec.elasticity.minSurplusRunSeconds", 0, 86400},
		{"spec.elasticity.starvationSeconds", 0, 86400},
		{"spec.rendezvous.port", 1024, 65535},
		{"spec.rendezvous.joinTimeoutSeconds", 30, 86400},
		{"spec.rendezvous.lastCallTimeoutSeconds", 1, 3600},
		{"spec.rendezvous.readTimeoutSeconds", 300, 86400},
		{"spec.runPolicy.completionGraceSeconds", 0, 86400},
	} {
		cases = append(cases,
			tooSmall(field.path, field.minimum-1, field.minimum), tooLarge(field.path, field.maximum+1, field.maximum))
	}
	return cases
}

func tooSmall(path string, value, minimum int) Case {
	return refused(fmt.Sprintf("%s of %d", path, value), setting(path, strconv.Itoa(value)), fmt.Sprintf(
		"%[1]s: Invalid value: %[2]d: %[1]s in body should be greater than or equal to %[3]d", path, value, minimum))
}

func tooLarge(path string, value, maximum int) Case {
	return refused(fmt.Sprintf("%s of %d", path, value), setting(path, strconv.Itoa(value)), fmt.Sprintf(
		"%[1]s: Invalid value: %[2]d: %[1]s in body should be less than or equal to %[3]d", path, value, maximum))
}

// setting is the patch that sets the field at a dotted path to a value in JSON.
func setting(path, value string) string {
	names := strings.Split(path, ".")
	return `{"` + strings.Join(names, `":{"`) + `":` + value + strings.Repeat("}", len(names))
}

func templates() []Case {
	const containers = "spec.template.spec.containers"
	return []Case{
		refused("containers missing", inPod("containers", "null"), containers+": Required value").blind(),
		refused("no containers", inPod("containers", "[]"),
			containers+": Invalid value: 0: "+containers+" in body should have at least 1 items"),
		refused("17 containers", inPod("containers", many(17, `{"name":"c%d","image":"trainer"}`)),
			containers+": Too many: 17: must have at most 16 items").blind(),
		refused("a container without name", inPod("containers", `[{"image":"trainer"}]`),
			containers+"[0].name: Required value").blind(),
		refused("two containers of one name", inPod("containers", `[{"name":"a","image":"x"},{"name":"a","image":"x"}]`),
			containers+`[1]: Duplicate value: {"name":"a"}`),
		refused("1001 variables", inPod("containers", `[{"name":"trainer","image":"x","env":`+many(1001, `{"name":"E%d"}`)+`}]`),
			containers+"[0].env: Too many: 1001: must have at most 1000 items").blind(),
		decided("schedulerName", `"default-scheduler"`,
			"schedulerName (default-scheduler) is set by Tideline, which schedules with Volcano: remove it"),
		decided("priorityClassName", `"high"`, "priorityClassName (high) follows from the tier: remove it and set spec.tier"),
		decided("priority", `5`, "priority (5) follows from the tier: remove it and set spec.tier"),
		decided("preemptionPolicy", `"Never"`, "preemptionPolicy (Never) follows from the tier: remove it and set spec.tier"),
		decided("nodeName", `"gpu-0"`, "nodeName (gpu-0) would bypass the scheduler: remove it and use nodeSelector"),
		decided("hostname", `"h"`, "hostname (h) is set by Tideline to the name of each worker: remove it"),
		decided("subdomain", `"s"`, "subdomain (s) is set by Tideline to the job's headless Service: remove it"),
		decided("restartPolicy", `"Always"`, "restartPolicy (Always) must be OnFailure, so that containers restart in place and "+
			"keep their node and GPUs: remove it or set OnFailure"),
		refused("a PodGroup of the user's",
			`{"spec":{"template":{"metadata":{"annotations":{"scheduling.k8s.io/group-name":"g"}}}}}`,
			"spec.template.metadata.annotations: Invalid value: annotation scheduling.k8s.io/group-name is set by Tideline, "+
				"which speaks to Volcano: remove it"),
		refused("a cooldown of the user's", `{"spec":{"template":{"metadata":{"labels":{"volcano.sh/cooldown-time":"8760h"}}}}}`,
			"spec.template.metadata.labels: Invalid value: label volcano.sh/cooldown-time is set by Tideline: remove it"),
	}
}

// decided is a field of the pod that the user may not set, because Tideline decides it.
func decided(field, value, rule string) Case {
	path := "spec.template.spec." + field
	return refused(path, inPod(field, value), path+": Invalid value: "+rule)
}

// inPod is the patch that sets a field of the pod template.
func inPod(field, value string) string { return setting("spec.template.spec."+field, value) }

// many is a list of n elements; the format has one number.
func many(n int, format string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(elements, ",") + "]"
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
	const list, key, value = "spec.rendezvous.rdzvConf", "spec.rendezvous.rdzvConf[0].key", "spec.rendezvous.rdzvConf[0].value"
	const shortKey = key + `: Invalid value: "": ` + key + ` in body should be at least 1 chars long`
	const shortValue = value + `: Invalid value: "": ` + value + ` in body should be at least 1 chars long`
	conf := func(what, elements, says string) Case {
		return refused("rdzvConf: "+what, setting(list, elements), says)
	}
	cases := []Case{
		conf("empty", `[]`, list+": Invalid value: 0: "+list+" in body should have at least 1 items"),
		conf("17 pairs", many(17, `{"key":"k%d","value":"v"}`), list+": Too many: 17: must have at most 16 items").blind(),
		conf("a key twice", `[{"key":"a","value":"1"},{"key":"a","value":"2"}]`, list+`[1]: Duplicate value: {"key":"a"}`),
		conf("no key", `[{"value":"1"}]`, key+": Required value").blind().decoded(shortKey),
		conf("no value", `[{"key":"a"}]`, value+": Required value").blind().decoded(shortValue),
		conf("an empty key", `[{"key":"","value":"1"}]`, shortKey),
		conf("an empty value", `[{"key":"a","value":""}]`, shortValue),
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
			"%s: Invalid value: %[2]q: key %[2]s is set by Tideline: remove it; the timeouts have fields of their own in spec.rendezvous",
			key, name)))
	}
	return cases
}

func words() []Case {
	return []Case{
		refused("a tier in capitals", `{"spec":{"tier":"Main"}}`,
			`spec.tier: Invalid value: "Main": spec.tier in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`),
		refused("a tier of 41 letters", `{"spec":{"tier":"`+strings.Repeat("t", 41)+`"}}`,
			"spec.tier: Too long: may not be more than 40 bytes").blind(),
		refused("an owner of 257 letters", `{"spec":{"owner":"`+strings.Repeat("o", 257)+`"}}`,
			"spec.owner: Too long: may not be more than 256 bytes").blind(),
		refused("an unknown cleanPodPolicy", `{"spec":{"runPolicy":{"cleanPodPolicy":"Some"}}}`,
			`spec.runPolicy.cleanPodPolicy: Unsupported value: "Some": supported values: "None", "Running", "All"`).blind(),
		refused("an unknown shrinkBy", `{"spec":{"elasticity":{"shrinkBy":"Somebody"}}}`,
			`spec.elasticity.shrinkBy: Unsupported value: "Somebody": supported values: "Auto", "Scheduler", "Operator"`).blind(),
		refused("an unknown surplus", `{"spec":{"elasticity":{"surplus":"Some"}}}`,
			`spec.elasticity.surplus: Unsupported value: "Some": supported values: "All", "Fitting"`).blind(),
	}
}

func names() []Case {
	named := func(what, name, more, says string) Case {
		return refused("a name "+what, `{"metadata":{"name":"`+name+`"}`+more+`}`,
			"metadata.name: Invalid value: name ("+name+") "+says)
	}
	const label = "must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, " +
		"beginning with a letter, without dots"
	const groups = "must not end in -surplus or -merge, which name the PodGroups of other jobs: choose another name"
	const long = "is too long (%d characters): the longest host name, NAME-worker-%d, must not exceed 63 characters; " +
		"shorten the name to %d characters or fewer"
	return []Case{
		named("of 55 characters", strings.Repeat("a", 55), "", fmt.Sprintf(long, 55, 3, 54)),
		named("of 54 characters with 11 workers", strings.Repeat("a", 54), `,"spec":{"maxReplicas":11}`, fmt.Sprintf(long, 54, 10, 53)),
		named("with a dot", "a.b", "", label),
		named("that begins with a digit", "1a", "", label),
		named("of a surplus group", "a-surplus", "", groups),
		named("of a merge", "a-merge", "", groups),
	}
}

// Update is a change of a valid job that is refused.
type Update struct {
	What, Before, Patch, Says string
}

// Updates returns every case of an immutable field; Before is merged into the job when it is created.
func Updates() []Update {
	const (
		again    = ": delete the job and create it anew"
		tier     = "because pods carry its priority class from their creation" + again
		added    = "spec.tier: Invalid value: tier cannot be added or removed later, "
		owned    = "spec.owner: Invalid value: owner cannot be added or removed later, because it is checked when the job is created"
		template = "spec.template: Invalid value: template is immutable, because running workers cannot follow it" + again
	)
	return append([]Update{
		{"another image", `{}`, inPod("containers", `[{"name":"trainer","image":"other"}]`), template},
		{"another port", `{}`, setting("spec.rendezvous.port", "29401"), "spec.rendezvous: Invalid value: rendezvous is immutable, " +
			"because running workers have read it when they started" + again},
		{"another tier", `{"spec":{"tier":"main-traffic"}}`, setting("spec.tier", `"exploratory"`),
			`spec.tier: Invalid value: "exploratory": tier is immutable, ` + tier},
		{"a tier added", `{}`, setting("spec.tier", `"exploratory"`), added + tier},
		{"a tier removed", `{"spec":{"tier":"main-traffic"}}`, setting("spec.tier", "null"),
			added + tier},
		{"another owner", `{"spec":{"owner":"alice"}}`, setting("spec.owner", `"bob"`),
			`spec.owner: Invalid value: "bob": owner is immutable` + again},
		{"an owner added", `{}`, setting("spec.owner", `"bob"`), owned + again},
		{"an owner removed", `{"spec":{"owner":"alice"}}`, setting("spec.owner", "null"), owned + again},
	}, slices.Concat(shapeUpdates(), policyUpdates())...)
}
