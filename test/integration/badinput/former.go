package badinput

import (
	"strconv"
	"strings"
)

// former is a field by a former name, whose rule says what to write instead. Its value is named if it is one word or number.
func former(path, value, rule string) Case {
	named := value + ": "
	if strings.ContainsAny(value, "[{") {
		named = ""
	}
	return refused("the former name "+path, setting(path, value), path+": Invalid value: "+named+rule)
}

// formerNames are those of ElasticTrainingJob.
func formerNames() []Case {
	const rules = "spec.failurePolicy.rules"
	return []Case{
		former("spec.runPolicy", `{}`, "runPolicy has been split: write suspend in spec, and its other fields in spec.restarts, "+
			"spec.deadlines, spec.cleanup and spec.successPolicy"),
		former("spec.rendezvous", `{}`, "rendezvous has been replaced by framework: write backend as spec.framework.type, Torchrun "+
			"for C10d and Custom for None, sshKeys as spec.framework.ssh, port as spec.framework.port, and its other fields in "+
			"spec.framework.torchrun"),
		former("spec.nprocPerNode", `8`, "nprocPerNode has moved: write spec.framework.nprocPerNode"),
		formerGroups(),
		former("spec.elasticity.cooldownSeconds", `0`, "cooldownSeconds has moved: write spec.elasticity.growth.cooldownSeconds"),
		former("spec.elasticity.minSurplusRunSeconds", `60`,
			"minSurplusRunSeconds has a new name: write spec.elasticity.shrink.minRunSeconds"),
		former("spec.elasticity.shrinkBy", `"Auto"`, "shrinkBy has a new name: write spec.elasticity.shrink.initiator"),
		former("spec.elasticity.starvationSeconds", `60`,
			"starvationSeconds has moved: write spec.elasticity.shrink.starvationSeconds"),
		former("spec.elasticity.surplus", `"All"`,
			"surplus has a new name: write spec.elasticity.growth.mode, Always for All and OnlyIfFits for Fitting"),
		former("spec.elasticity.onRangeChange", `"Wait"`,
			"onRangeChange has a new name: write spec.elasticity.rangeUpdate, NextAttempt for Wait and Restart for Restart"),
		refused("the former name spec.accelerator.resource", `{"spec":{"accelerator":{"models":["A100"],"resource":"nvidia.com/gpu"}}}`,
			`spec.accelerator.resource: Invalid value: "nvidia.com/gpu": resource has a new name: write spec.accelerator.resourceName`),
		refused("the former name spec.accelerator.mixed", `{"spec":{"accelerator":{"models":["A100"],"mixed":false}}}`,
			"spec.accelerator.mixed: Invalid value: false: mixed has a new name: write spec.accelerator.mixing, Allowed for true and "+
				"Forbidden for false"),
		refused("the former name onWorkers", setting(rules, `[{"action":"FailJob","onEvents":["PodFailed"],"onWorkers":"Master"}]`),
			rules+`[0].onWorkers: Invalid value: "Master": onWorkers has been replaced by targets: write targets: [{indexes: "0"}] `+
				`for Master, and [{indexes: "1-"}] for Worker`),
		refused("a success policy in one word", setting("spec.successPolicy", `"Master"`),
			`spec.successPolicy: Invalid value: "string": spec.successPolicy in body must be of type object: "string"`).
			blind().decoded(),
	}
}

// formerGroups is one of jobs of both kinds.
func formerGroups() Case {
	return former("spec.ownerGroups", `["interns"]`, "ownerGroups has been replaced by submitter, which Tideline records: remove it")
}

// formerMergeNames are those of MergeJob. A store as it was lacks its type, so that rules in CEL are not evaluated.
func formerMergeNames() []Case {
	const store = "spec.store"
	provider := mismatch(store+".provider", "s3", "provider has a new name: write type, S3 for s3 and File for file")
	return []Case{
		formerGroups(),
		provider,
		mismatch(store+".bucket", "models", "bucket has moved: write s3.bucket for type S3, and file.path for type File"),
		mismatch(store+".region", "eu-central-1", "region has moved: write s3.region"),
		mismatch(store+".endpoint", "https://s3.example", "endpoint has moved: write s3.endpoint"),
		mismatch(store+".credentialsSecretName", "model-store",
			"credentialsSecretName has a new name: write s3.credentialsRef.name"),
		refused("a store as it was", setting(store, `{"type":null,"s3":null,"provider":"s3"}`),
			provider.Says[0], store+".type: Required value").
			blind().decoded(provider.Says[0], unsupported(store+".type", "", storeTypes...)),
	}
}

// formerProfileNames are those of ResourceQuotaProfile.
func formerProfileNames() []Case {
	const members, reservations = "spec.members", "spec.reservations"
	member := func(field, kind string) Case {
		path := members + "[0]." + field
		rule := field + " has been replaced by kind and name: write kind: " + kind + ", and the " + field + " as name"
		says := path + `: Invalid value: "ads": ` + path + " in body should match '" + rule + "'"
		return refused("a member as it was, with "+field, setting(members, `[{"`+field+`":"ads","standing":"Senior"}]`),
			says, members+"[0].kind: Required value", members+"[0].name: Required value").blind().decoded(
			unsupported(members+"[0].kind", "", "User", "Group"), tooShort(members+"[0].name"), says)
	}
	reserved := func(field, value, rule, kept, lost, decoded string) Case {
		path := reservations + "[0]." + field
		says := path + ": Invalid value: " + strconv.Quote(value) + ": " + path + " in body should match '" + rule + "'"
		return refused("a reservation as it was, with "+field, setting(reservations, `[{"name":"a","replicas":1,"resources":{"cpu":1},`+
			`"until":"2026-12-01T00:00:00Z",`+kept+`,"`+field+`":"`+value+`"}]`), says, reservations+"[0]."+lost+": Required value").
			blind().decoded(says, tooShort(reservations+"[0]."+decoded))
	}
	return []Case{
		member("user", "User"), member("group", "Group"),
		former("spec.queue.fairSurplus", "false",
			"fairSurplus has a new name: write spec.queue.surplusSharing, Fair for true and Excluded for false"),
		former("spec.caps.gpuHours", "[]", "gpuHours has a new name: write spec.caps.acceleratorHours"),
		reserved("forTask", "ctr", "forTask has a new name: write jobRef.name", `"owner":"ivy"`, "jobRef", "jobRef.name"),
		reserved("forOwner", "ivy", "forOwner has a new name: write owner", `"jobRef":{"name":"ctr"}`, "owner", "owner"),
	}
}

// formerReportNames are those of CostReport.
func formerReportNames() []Case {
	const name, secret = "spec.mail.smtpSecretName", "spec.mail.smtpSecretRef"
	says := name + `: Invalid value: "smtp": ` + name +
		" in body should match 'smtpSecretName has a new name: write smtpSecretRef.name'"
	return []Case{
		refused("the former name "+name, setting("spec.mail", `{"smtpSecretName":"smtp","from":"a@b.cd","to":["e@f.gh"]}`),
			says, secret+": Required value").blind().decoded(says, tooShort(secret+".name")),
	}
}
