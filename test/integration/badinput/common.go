package badinput

import (
	"fmt"
	"slices"
	"strings"
)

// What is said of jobs of more than one kind.
const (
	minimumOfZero = "spec.minReplicas: Invalid value: 0: spec.minReplicas in body should be greater than or equal to 1"
	maximumOfZero = "spec.maxReplicas: Invalid value: 0: spec.maxReplicas in body should be greater than or equal to 1"
	aboveMaximum  = "spec.minReplicas: Invalid value: minReplicas (%d) must not exceed maxReplicas (%d): " +
		"lower minReplicas or raise maxReplicas"
	noContainers = "spec.template.spec.containers: Required value"
	noImage      = " has no image, without which Kubernetes refuses its pod: set its image"
	again        = ": delete the job and create it again"
)

// common are mistakes in what jobs of every kind have.
func common() []Case {
	return slices.Concat(replicas(), templates(), people(), labels())
}

// replicas are mistakes in the number of pods.
func replicas() []Case {
	return []Case{
		refused("minReplicas above maxReplicas", `{"spec":{"minReplicas":5}}`, fmt.Sprintf(aboveMaximum, 5, 4)),
		refused("minReplicas of 4097", `{"spec":{"minReplicas":4097,"maxReplicas":4096}}`,
			"spec.minReplicas: Invalid value: 4097: spec.minReplicas in body should be less than or equal to 4096",
			fmt.Sprintf(aboveMaximum, 4097, 4096)),
		tooLarge("spec.maxReplicas", 4097, 4096),
	}
}

// quantity is the pattern of quantities.
const quantity = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$`

// A gate of the user's, and what is said of it but for how else a job of its kind is held back.
const (
	oneGate = `[{"name":"example.com/later"}]`
	gated   = "schedulingGates (example.com/later) keep the gang from being placed, because Volcano places no pod that a gate " +
		"holds: remove schedulingGates; to hold the job back, set "
)

// templates are mistakes in the pod of a job.
func templates() []Case {
	const (
		containers = "spec.template.spec.containers"
		port, cpu  = containers + "[0].startupProbe.httpGet.port", containers + "[0].resources.limits.cpu"
	)
	return []Case{
		refused("no template", `{"spec":{"template":null}}`, "spec.template: Required value").blind().decoded(noContainers),
		refused("a template without spec", `{"spec":{"template":{"spec":null}}}`, "spec.template.spec: Required value").blind().
			decoded(noContainers),
		refused("containers missing", inPod("containers", "null"), noContainers).blind(),
		refused("no containers", inPod("containers", "[]"),
			containers+": Invalid value: 0: "+containers+" in body should have at least 1 items"),
		refused("17 containers", inPod("containers", many(17, `{"name":"c%d","image":"trainer"}`)),
			containers+": Too many: 17: must have at most 16 items").blind(),
		refused("a container without name", inPod("containers", `[{"image":"trainer"}]`),
			containers+"[0].name: Required value").blind(),
		refused("two containers of one name", inPod("containers", `[{"name":"a","image":"x"},{"name":"a","image":"x"}]`),
			containers+`[1]: Duplicate value: {"name":"a"}`),
		refused("a container without image", inPod("containers", `[{"name":"a","image":"x"},{"name":"b"}]`),
			containers+": Invalid value: container b"+noImage),
		refused("an empty image", inPod("containers", `[{"name":"a","image":""}]`), containers+": Invalid value: container a"+noImage),
		refused("an init container without image", inPod("initContainers", `[{"name":"fetch"}]`),
			"spec.template.spec.initContainers: Invalid value: init container fetch"+noImage),
		refused("1001 variables", inPod("containers", `[{"name":"trainer","image":"x","env":`+many(1001, `{"name":"E%d"}`)+`}]`),
			containers+"[0].env: Too many: 1001: must have at most 1000 items").blind(),
		// The API server takes these for a port and a quantity, Go does not read them.
		refused("a port beyond all numbers",
			inPod("containers", `[{"name":"a","image":"x","startupProbe":{"httpGet":{"port":3000000000}}}]`),
			port+": Invalid value: 3000000000: "+port+" in body should be less than or equal to 65535").unreadable(),
		refused("a quantity with a broken exponent",
			inPod("containers", `[{"name":"a","image":"x","resources":{"limits":{"cpu":"1e1.5"}}}]`),
			cpu+`: Invalid value: "1e1.5": `+cpu+` in body should match '`+quantity+`'`).unreadable(),
		tooLarge("spec.template.spec.terminationGracePeriodSeconds", 86401, 86400),
		decided("schedulerName", `"default-scheduler"`,
			"schedulerName (default-scheduler) is set by Tideline, which schedules with Volcano: remove it"),
		decided("priorityClassName", `"high"`, "priorityClassName (high) follows from the tier: remove it and set spec.tier"),
		decided("priority", `5`, "priority (5) follows from the tier: remove it and set spec.tier"),
		decided("preemptionPolicy", `"Never"`, "preemptionPolicy (Never) follows from the tier: remove it and set spec.tier"),
		decided("nodeName", `"gpu-0"`, "nodeName (gpu-0) would bypass the scheduler: remove it and use nodeSelector"),
		refused("a PodGroup of the user's",
			`{"spec":{"template":{"metadata":{"annotations":{"scheduling.k8s.io/group-name":"g"}}}}}`,
			"spec.template.metadata.annotations: Invalid value: annotation scheduling.k8s.io/group-name is set by Tideline, "+
				"which speaks to Volcano: remove it"),
		refused("a device of the user's choice",
			`{"spec":{"template":{"metadata":{"annotations":{"volcano.sh/vgpu-ids-new":"GPU-0"}}}}}`,
			"spec.template.metadata.annotations: Invalid value: annotation volcano.sh/vgpu-ids-new is set by Tideline, "+
				"which speaks to Volcano: remove it"),
		refused("a NUMA policy that Volcano does not know",
			`{"spec":{"template":{"metadata":{"annotations":{"volcano.sh/numa-topology-policy":"one"}}}}}`,
			"spec.template.metadata.annotations: Invalid value: annotation volcano.sh/numa-topology-policy (one) must be none, "+
				"best-effort, restricted or single-numa-node, which Volcano reads: correct it, or remove it"),
		decided("ephemeralContainers", `[{"name":"debugger","image":"x"}]`,
			"a template cannot have ephemeralContainers: remove them, and use `kubectl debug` on a pod that runs"),
		ofPods("65 finalizers of pods", "finalizers", many(65, `"example.com/f%d"`),
			": Too many: 65: must have at most 64 items").blind(),
		ofPods("a long finalizer of pods", "finalizers", fmt.Sprintf(`[%q]`, strings.Repeat("x", 1025)),
			"[0]: Too long: may not be more than 1024 bytes").blind(),
		ofPods("a long name of pods", "name", fmt.Sprintf(`%q`, strings.Repeat("x", 1025)),
			": Too long: may not be more than 1024 bytes").blind(),
		ofPods("a long namespace of pods", "namespace", fmt.Sprintf(`%q`, strings.Repeat("x", 1025)),
			": Too long: may not be more than 1024 bytes").blind(),
		refused("a cooldown of the user's", `{"spec":{"template":{"metadata":{"labels":{"volcano.sh/cooldown-time":"8760h"}}}}}`,
			"spec.template.metadata.labels: Invalid value: label volcano.sh/cooldown-time is set by Tideline: remove it"),
	}
}

// people are mistakes in whose a job is and how important it is.
func people() []Case {
	const submitter, username, groups = "spec.submitter", "spec.submitter.username", "spec.submitter.groups"
	by := func(what, fields string, says ...string) Case {
		return refused("a submitter with "+what, setting(submitter, "{"+fields+"}"), says...)
	}
	grouped := func(what, list string, says ...string) Case {
		return by(what, `"username":"u","groups":`+list, says...)
	}
	return []Case{
		mismatch("spec.tier", "Main", "^[a-z]([-a-z0-9]*[a-z0-9])?$"),
		tooLong("spec.tier", 40),
		tooLong("spec.owner", 256),
		by("no name", ``, username+": Required value").blind().decoded(tooShort(username)).overwritten(),
		by("an empty name", `"username":""`, tooShort(username)).overwritten(),
		by("a name of 257 letters", `"username":"`+strings.Repeat("u", 257)+`"`,
			username+": Too long: may not be more than 256 bytes").blind(),
		grouped("65 groups", many(65, `"g%d"`), groups+": Too many: 65: must have at most 64 items").blind(),
		grouped("a group without a name", `[""]`,
			groups+`[0]: Invalid value: "": `+groups+"[0] in body should be at least 1 chars long"),
		grouped("a group of 254 letters", `["`+strings.Repeat("g", 254)+`"]`,
			groups+"[0]: Too long: may not be more than 253 bytes").blind(),
		grouped("a group twice", `["g","g"]`, groups+`[1]: Duplicate value: "g"`),
		unknown("spec.sizing.mode", "Always", "Disabled", "Recommend", "Enforce"),
	}
}

// labels are names that cannot be part of a host's.
func labels() []Case {
	const label = "must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, " +
		"beginning with a letter, without dots"
	return []Case{
		named("with a dot", "a.b", "", label),
		named("that begins with a digit", "1a", "", label),
	}
}
