package badinput

import "github.com/tideline-io/tideline/api/v1beta1"

// frozen is a field that may change while the job is suspended and stopped, and not while workers may run.
type frozen struct {
	name, because string
	// change is a patch of a valid job.
	change string
}

// What keeps a field from changing.
const (
	created  = "because pods follow it only when they are created"
	followed = "because pods follow them only when they are created"
	mounted  = "because pods mount them when they are created"
	read     = "because pods read it when they are created"
	begun    = "because it must be there before the first worker"
	started  = "because they read it when they start"
)

// frozenFields are all of them, each with another value than a valid job has.
func frozenFields() []frozen {
	return []frozen{
		{"template", created, inPod("containers", `[{"name":"trainer","image":"other"}]`)},
		{"template", created, inPod("nodeSelector", `{"pool":"a"}`)},
		{"master", created, setting("spec.master.nodeSelector", `{"a":"b"}`)},
		{"roles", followed, setting("spec.roles", `[{"name":"ps"}]`)},
		{"accelerator", created, setting("spec.accelerator.models", `["A100"]`)},
		{"networkTopology", created, setting("spec.networkTopology.highestTierAllowed", "1")},
		{"checkpoint", read, setting("spec.checkpoint.graceSeconds", "60")},
		{"dataSets", mounted, setting("spec.dataSets", `[{"name":"clicks","version":"1"}]`)},
		{"networkPolicy", begun, setting("spec.networkPolicy", `"Isolated"`)},
		{"framework", started, setting("spec.framework.port", "29401")},
		{"framework", started, setting("spec.framework.type", `"Custom"`)},
		{"framework", started, setting("spec.framework", `{"type":"Custom","ssh":"KeyPair"}`)},
		{"framework", started, setting("spec.framework.torchrun", `{"joinTimeoutSeconds":60}`)},
	}
}

// says are the words in which a change is refused while workers may run.
func (f frozen) says() string {
	but, it := "", "it"
	if f.because == followed {
		it = "them"
	}
	if f.name == "framework" {
		but = "nprocPerNode excepted, "
	}
	return "spec." + f.name + ": Invalid value: " + f.name + " cannot change while workers may run, " + but + f.because +
		": set spec.suspend to true, wait for phase Suspended, change " + it + ", and set spec.suspend to false"
}

// Updates returns every case of a change of ElasticTrainingJob that is refused.
func Updates() []Update {
	const task = "spec.task: Invalid value: task cannot change, because the history of use belongs to it" + again
	updates := []Update{
		changed("another task", `{"spec":{"task":"ctr"}}`, setting("spec.task", `"rank"`), task),
		changed("a task added", `{}`, setting("spec.task", `"ctr"`), task),
		changed("a task removed", `{"spec":{"task":"ctr"}}`, setting("spec.task", "null"), task),
	}
	for _, f := range frozenFields() {
		updates = append(updates, changed(f.name+" by "+f.change, `{}`, f.change, f.says()))
		// A job that is being suspended by the same change is not stopped yet.
		suspending := changed(f.name+" while it is suspended, by "+f.change, `{}`, f.change, f.says())
		suspending.Patch = f.change[:len(`{"spec":{`)] + `"suspend":true,` + f.change[len(`{"spec":{`):]
		updates = append(updates, suspending)
	}
	for _, field := range []struct{ name, value, other string }{
		{"master", `{"nodeSelector":{"a":"b"}}`, `{"nodeSelector":{"a":"c"}}`},
		{"accelerator", `{"models":["A100"]}`, `{"models":["H100"]}`},
		{"checkpoint", `{"graceSeconds":30}`, `{"graceSeconds":31}`},
	} {
		path := "spec." + field.name
		f := frozen{name: field.name, because: created}
		if field.name == "checkpoint" {
			f.because = read
		}
		updates = append(updates,
			changed("another "+field.name, setting(path, field.value), setting(path, field.other), f.says()),
			changed(field.name+" removed", setting(path, field.value), setting(path, "null"), f.says()))
	}
	return updatesOf(v1beta1.ElasticTrainingJobKind, updates)
}

// Accepted returns changes of ElasticTrainingJob that the same rules let pass: of a job that is suspended and stopped, and of
// what takes effect later or means the same.
func Accepted() []Update {
	const processes = "spec.framework.nprocPerNode"
	accepted := []Update{
		changed("the task that is the default", `{}`, setting("spec.task", `"bad"`), ""),
		changed("the task's default left out", `{"spec":{"task":"bad"}}`, setting("spec.task", "null"), ""),
		changed("the default checkpoint left out", setting("spec.checkpoint.graceSeconds", "0"), setting("spec.checkpoint", "null"),
			""),
		changed("nprocPerNode added", `{}`, setting(processes, "2"), ""),
		changed("another nprocPerNode", setting(processes, "1"), setting(processes, "2"), ""),
		changed("nprocPerNode removed", setting(processes, "1"), setting(processes, "null"), ""),
		changed("another tier", `{"spec":{"tier":"small-traffic"}}`, setting("spec.tier", `"exploratory"`), ""),
		changed("another owner", `{"spec":{"owner":"alice"}}`, setting("spec.owner", `"bob"`), ""),
		changed("a target", `{}`, setting("spec.replicas", "3"), ""),
	}
	for _, f := range frozenFields() {
		accepted = append(accepted, changed(f.name+" of a suspended job, by "+f.change, setting("spec.suspend", "true"), f.change, ""))
	}
	return updatesOf(v1beta1.ElasticTrainingJobKind, accepted)
}

// MergeUpdates returns every case of a change of MergeJob that is refused.
func MergeUpdates() []Update {
	const (
		model = "spec.model: Invalid value: model cannot change, because the history belongs to it" + again
		store = "spec.store: Invalid value: store cannot change, credentialsRef excepted, because the history belongs to it" + again
		local = `{"spec":{"store":{"type":"File","s3":null,"file":{"path":"/models"}}}}`
		claim = `{"spec":{"store":{"type":"Claim","s3":null,"claim":{"name":"models"}}}}`
	)
	modelled := setting("spec.model", `"ctr"`)
	updates := []Update{
		changed("another model", modelled, setting("spec.model", `"ctr2"`), model),
		changed("a model added", `{}`, modelled, model),
		changed("a model removed", modelled, setting("spec.model", "null"), model),
		changed("a store of another type", `{}`, local, store),
		changed("a claim for a bucket", `{}`, claim, store),
		changed("another claim", claim, setting("spec.store.claim.name", `"other"`), store),
		changed("another path of a claim", claim, setting("spec.store.claim.mountPath", `"/other"`), store),
		changed("another folder of the operator's", local, setting("spec.store.file.path", `"/other"`), store),
	}
	for _, field := range [][2]string{
		{"full", `"other/"`}, {"increments", `"other/"`}, {"completionMarker", `"DONE"`}, {"prefix", `"ctr"`},
		{"s3.bucket", `"other"`}, {"s3.region", `"eu-central-1"`}, {"s3.endpoint", `"https://s3.example"`},
	} {
		updates = append(updates, changed("another "+field[0], `{}`, setting("spec.store."+field[0], field[1]), store))
	}
	return updatesOf(v1beta1.MergeJobKind, updates)
}

// AcceptedByMerges returns changes of MergeJob that take effect with the next run, or mean the same.
func AcceptedByMerges() []Update {
	return updatesOf(v1beta1.MergeJobKind, []Update{
		changed("the model that is the default", `{}`, setting("spec.model", `"bad"`), ""),
		changed("the model's default left out", setting("spec.model", `"bad"`), setting("spec.model", "null"), ""),
		changed("another ServiceAccount", inPod("serviceAccountName", `"merger"`), inPod("serviceAccountName", `"mighty"`), ""),
		changed("a window", `{}`, setting("spec.window", "5"), ""),
		changed("no window", setting("spec.window", "5"), setting("spec.window", "null"), ""),
		changed("another Secret", `{}`, setting("spec.store.s3.credentialsRef.name", `"rotated"`), ""),
		changed("another tier", `{"spec":{"tier":"small-traffic"}}`, setting("spec.tier", `"exploratory"`), ""),
		changed("another owner", `{"spec":{"owner":"alice"}}`, setting("spec.owner", `"bob"`), ""),
	})
}
