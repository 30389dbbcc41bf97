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
		unknown("spec.framework.type", "MPI", "Torchrun", "Custom"),
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
