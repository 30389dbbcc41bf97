package badinput

import (
	"fmt"
	"strings"
)

// shapes are the fields that say what a worker looks like.
func shapes() []Case {
	const models, model = "spec.accelerator.models", "spec.accelerator.models[0]"
	accelerator := func(what, patch string, says string) Case {
		return refused("accelerator: "+what, `{"spec":{"accelerator":`+patch+`}}`, says)
	}
	return []Case{
		tooLong("spec.task", 63),
		mismatch("spec.task", "CTR", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
		tooSmall("spec.framework.nprocPerNode", 0, 1),
		tooLarge("spec.framework.nprocPerNode", 257, 256),
		unknown("spec.framework.type", "MPI", "Torchrun", "TensorFlow", "Custom"),
		unknown("spec.framework.ssh", "Password", "None", "KeyPair"),
		refused("a key pair for torchrun", setting("spec.framework.ssh", `"KeyPair"`), "spec.framework.ssh: Invalid value: "+
			"ssh KeyPair needs type Custom, because torchrun's workers do not log in to each other: set type to Custom or remove ssh"),
		refused("torchrun's timeouts without it", setting("spec.framework", `{"type":"Custom","torchrun":{}}`),
			"spec.framework.torchrun: Invalid value: torchrun is for type Torchrun: set type to Torchrun or remove torchrun"),
		unknown("spec.networkTopology.mode", "hard", "Hard", "Soft"),
		refused("a hard topology without a tier", setting("spec.networkTopology", `{"mode":"Hard"}`),
			"spec.networkTopology.highestTierAllowed: Invalid value: mode Hard needs highestTierAllowed, the highest tier of the "+
				"HyperNode that all workers share: set it, or set mode to Soft"),
		refused("a soft topology with a tier", setting("spec.networkTopology", `{"mode":"Soft","highestTierAllowed":1}`),
			"spec.networkTopology.highestTierAllowed: Invalid value: highestTierAllowed (1) is for mode Hard; with mode Soft Volcano "+
				"takes the lowest tier that has room: remove it, or set mode to Hard"),
		tooSmall("spec.networkTopology.highestTierAllowed", -1, 0),
		tooLarge("spec.networkTopology.highestTierAllowed", 101, 100),
		unknown("spec.networkPolicy", "Open", "None", "Isolated"),
		refused("isolated workers on the host's network",
			`{"spec":{"networkPolicy":"Isolated","template":{"spec":{"hostNetwork":true}}}}`, "spec.networkPolicy: Invalid value: "+
				"networkPolicy Isolated does not hold for workers with hostNetwork, which no NetworkPolicy covers: remove one of the two"),
		refused("a claim of the master without name", setting("spec.master.resources.claims", `[{"request":"r"}]`),
			"spec.master.resources.claims[0].name: Required value").blind(),
		accelerator("no models", `{"resourceName":"nvidia.com/gpu"}`, models+": Required value").blind(),
		accelerator("an empty list of models", `{"models":[]}`,
			models+": Invalid value: 0: "+models+" in body should have at least 1 items"),
		accelerator("17 models", `{"models":`+many(17, `"m%d"`)+`}`, models+": Too many: 17: must have at most 16 items").blind(),
		accelerator("a model of 64 letters", `{"models":["`+strings.Repeat("m", 64)+`"]}`,
			model+": Too long: may not be more than 63 bytes").blind(),
		accelerator("a model that is no label", `{"models":["A100 80GB"]}`, fmt.Sprintf(
			`%s: Invalid value: "A100 80GB": %[1]s in body should match '^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'`, model)),
		accelerator("a resource of 317 letters", `{"models":["A100"],"resourceName":"`+strings.Repeat("r", 317)+`"}`,
			"spec.accelerator.resourceName: Too long: may not be more than 316 bytes").blind(),
		accelerator("unknown mixing", `{"models":["A100"],"mixing":"Some"}`,
			unsupported("spec.accelerator.mixing", "Some", "Forbidden", "Allowed")).blind(),
	}
}

// pages are those of worker 0 that people open.
func pages() []Case {
	const list, first = "spec.pages", "spec.pages[0]"
	page := func(what, value string, says ...string) Case {
		return refused("pages: "+what, `{"spec":{"pages":`+value+`}}`, says...)
	}
	oneOf := first + ".port: Invalid value: page a must have one of port, a number, and portName, the name of a port of a " +
		"container: "
	const unknownPort = list + ": Invalid value: the portName of a page must be the name of a port in template.spec.containers or " +
		"initContainers: add the port to its container, or correct the name"
	return []Case{
		page("five", `[{"name":"a","port":1},{"name":"b","port":2},{"name":"c","port":3},{"name":"d","port":4},{"name":"e","port":5}]`,
			list+": Too many: 5: must have at most 4 items").blind(),
		page("two of a name", `[{"name":"a","port":1},{"name":"a","port":2}]`, `spec.pages[1]: Duplicate value: {"name":"a"}`),
		page("no name", `[{"port":6006}]`, first+".name: Required value").blind().decoded(fmt.Sprintf(
			`%s: Invalid value: "": %[1]s in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`, first+".name")),
		page("a name that is a path", `[{"name":"a/../b","port":6006}]`, fmt.Sprintf(
			`%s: Invalid value: "a/../b": %[1]s in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'`, first+".name")),
		page("a name of 33 letters", `[{"name":"`+strings.Repeat("a", 33)+`","port":6006}]`,
			first+".name: Too long: may not be more than 32 bytes").blind(),
		page("port 0", `[{"name":"a","port":0}]`, fmt.Sprintf(
			"%s: Invalid value: 0: %[1]s in body should be greater than or equal to 1", first+".port")).
			decoded(oneOf + "set one of the two"),
		page("an empty portName", `[{"name":"a","portName":""}]`, tooShort(first+".portName"), unknownPort).
			decoded(oneOf + "set one of the two"),
		page("a portName of 16 letters", `[{"name":"a","portName":"`+strings.Repeat("a", 16)+`"}]`,
			first+".portName: Too long: may not be more than 15 bytes").blind(),
		page("port 65536", `[{"name":"a","port":65536}]`, fmt.Sprintf(
			"%s: Invalid value: 65536: %[1]s in body should be less than or equal to 65535", first+".port")),
		page("neither port nor name of one", `[{"name":"a"}]`, oneOf+"set one of the two"),
		page("both", `[{"name":"a","port":6006,"portName":"http"}]`, unknownPort,
			oneOf+"remove one of the two"),
		page("a port of no container", `[{"name":"a","portName":"board"}]`, unknownPort),
		page("the port of the rendezvous", `[{"name":"a","port":29400}]`, list+": Invalid value: port 29400 of a page is that of the "+
			"rendezvous (framework.port), which trusts everybody who reaches it: choose another port"),
		refused("pages on the host's network", `{"spec":{"pages":[{"name":"a","port":6006}],"template":{"spec":{"hostNetwork":true}}}}`,
			list+": Invalid value: pages of workers with hostNetwork could be any port of the node: remove pages or hostNetwork"),
		refused("pages of isolated workers", `{"spec":{"pages":[{"name":"a","port":6006}],"networkPolicy":"Isolated"}}`,
			list+": Invalid value: pages cannot be reached while networkPolicy Isolated lets only workers of the job connect: remove one "+
				"of the two"),
	}
}
