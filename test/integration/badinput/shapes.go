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
		unknown("spec.framework.type", "MPI", "C10d", "None"),
		refused("ssh keys for torchrun", setting("spec.framework.ssh", "true"), "spec.framework.ssh: Invalid value: "+
			"sshKeys needs backend None, because torchrun's workers do not log in to each other: set backend to None or remove sshKeys"),
		unknown("spec.networkPolicy", "Open", "None", "Isolated"),
		refused("isolated workers on the host's network",
			`{"spec":{"networkPolicy":"Isolated","template":{"spec":{"hostNetwork":true}}}}`, "spec.networkPolicy: Invalid value: "+
				"networkPolicy Isolated does not hold for workers with hostNetwork, which no NetworkPolicy covers: remove one of the two"),
		refused("a claim of the master without name", setting("spec.master.resources.claims", `[{"request":"r"}]`),
			"spec.master.resources.claims[0].name: Required value").blind(),
		accelerator("no models", `{"resource":"nvidia.com/gpu"}`, models+": Required value").blind(),
		accelerator("an empty list of models", `{"models":[]}`,
			models+": Invalid value: 0: "+models+" in body should have at least 1 items"),
		accelerator("17 models", `{"models":`+many(17, `"m%d"`)+`}`, models+": Too many: 17: must have at most 16 items").blind(),
		accelerator("a model of 64 letters", `{"models":["`+strings.Repeat("m", 64)+`"]}`,
			model+": Too long: may not be more than 63 bytes").blind(),
		accelerator("a model that is no label", `{"models":["A100 80GB"]}`, fmt.Sprintf(
			`%s: Invalid value: "A100 80GB": %[1]s in body should match '^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'`, model)),
		accelerator("a resource of 317 letters", `{"models":["A100"],"resource":"`+strings.Repeat("r", 317)+`"}`,
			"spec.accelerator.resource: Too long: may not be more than 316 bytes").blind(),
	}
}

// shapeUpdates are changes of them.
func shapeUpdates() []Update {
	const (
		follow = "because running workers cannot follow it: delete the job and create it again"
		carry  = "because pods and their history carry it from their creation: delete the job and create it again"
		read   = "because running workers have read it when they started: delete the job and create it again"
	)
	updates := []Update{
		changed("another master", `{"spec":{"master":{"nodeSelector":{"a":"b"}}}}`, setting("spec.master.nodeSelector", `{"a":"c"}`),
			"spec.master: Invalid value: master is immutable, "+follow),
		changed("another model", `{"spec":{"accelerator":{"models":["A100"]}}}`, setting("spec.accelerator.models", `["H100"]`),
			"spec.accelerator: Invalid value: accelerator is immutable, "+follow),
		changed("another nprocPerNode", `{"spec":{"nprocPerNode":1}}`, setting("spec.framework.nprocPerNode", "2"),
			"spec.framework.nprocPerNode: Invalid value: 2: nprocPerNode is immutable, "+read),
		changed("another task", `{"spec":{"task":"ctr"}}`, setting("spec.task", `"rank"`),
			`spec.task: Invalid value: "rank": task is immutable, `+carry),
		changed("another network policy", `{}`, setting("spec.networkPolicy", `"Isolated"`), `spec.networkPolicy: Invalid value: `+
			`"Isolated": networkPolicy is immutable, because it must be there before the first worker: delete the job and create `+
			`it again`),
	}
	for _, field := range []struct{ name, value, because string }{
		{"master", `{"nodeSelector":{"a":"b"}}`, follow},
		{"accelerator", `{"models":["A100"]}`, follow},
		{"nprocPerNode", `1`, read},
		{"task", `"ctr"`, carry},
	} {
		path := "spec." + field.name
		with, without := setting(path, field.value), setting(path, "null")
		says := path + ": Invalid value: " + field.name + " cannot be added or removed later, " + field.because
		updates = append(updates,
			changed(field.name+" added", `{}`, with, says), changed(field.name+" removed", with, without, says))
	}
	return updates
}
