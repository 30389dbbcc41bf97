package convert

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

const limit = "it is spec.restarts.max now: training-operator fails the job when the restarts of its running " +
	"containers reach it, Tideline when restarts within windowSeconds (86400) exceed it; evictions and lost nodes never count"

func TestRunPolicy(t *testing.T) {
	run := func(edit func(*kubeflowv1.RunPolicy)) func(*pytorchJob) {
		return func(j *pytorchJob) { edit(&j.Spec.RunPolicy) }
	}
	scheduling := func(s kubeflowv1.SchedulingPolicy) func(*pytorchJob) {
		return func(j *pytorchJob) { j.Spec.RunPolicy.SchedulingPolicy = &s }
	}
	const path, queue = "spec.runPolicy", ".schedulingPolicy.queue = "
	const deadline = "training-operator counts from when it made the first pods, and looks only when something else happens to " +
		"the job; Tideline has a timer, which runs only while the core trains; bound the wait for a place by " +
		"spec.deadlines.schedulingSeconds"
	check(t, map[string]rule{
		"cleanPodPolicy": {run(func(r *kubeflowv1.RunPolicy) { r.CleanPodPolicy = ptr.To(kubeflowv1.CleanPodPolicyAll) }),
			map[string]string{"spec.cleanup.podPolicy": `"All"`}, nil},
		"ttl": {run(func(r *kubeflowv1.RunPolicy) { r.TTLSecondsAfterFinished = ptr.To[int32](0) }),
			map[string]string{"spec.cleanup.ttlSecondsAfterFinished": "0"}, nil},
		"ttl of years": {run(func(r *kubeflowv1.RunPolicy) { r.TTLSecondsAfterFinished = ptr.To[int32](31536001) }),
			map[string]string{"spec.cleanup.ttlSecondsAfterFinished": "31536000"},
			[]string{path + ".ttlSecondsAfterFinished = 31536001: it may be 31536000 at most, and is 31536000 now"}},
		"deadline": {run(func(r *kubeflowv1.RunPolicy) { r.ActiveDeadlineSeconds = ptr.To[int64](60) }),
			map[string]string{"spec.deadlines.activeSeconds": "60"}, []string{path + ".activeDeadlineSeconds = 60: " + deadline}},
		"deadline of ages": {run(func(r *kubeflowv1.RunPolicy) { r.ActiveDeadlineSeconds = ptr.To[int64](1 << 40) }),
			map[string]string{"spec.deadlines.activeSeconds": "31536000"}, []string{
				path + ".activeDeadlineSeconds = 1099511627776: it may be 31536000 at most, and is 31536000 now",
				path + ".activeDeadlineSeconds = 1099511627776: " + deadline}},
		"backoffLimit": {run(func(r *kubeflowv1.RunPolicy) { r.BackoffLimit = ptr.To[int32](3) }),
			map[string]string{"spec.restarts.max": "3"}, []string{path + ".backoffLimit = 3: " + limit}},
		"backoffLimit beyond ours": {run(func(r *kubeflowv1.RunPolicy) { r.BackoffLimit = ptr.To[int32](101) }),
			map[string]string{"spec.restarts.max": "100"}, []string{
				path + ".backoffLimit = 101: it may be 100 at most, and is 100 now", path + ".backoffLimit = 101: " + limit}},
		"suspend": {run(func(r *kubeflowv1.RunPolicy) { r.Suspend = ptr.To(true) }), map[string]string{"spec.suspend": "true"}, nil},
		"managed by training-operator": {run(func(r *kubeflowv1.RunPolicy) { r.ManagedBy = ptr.To("kubeflow.org/training-operator") }),
			nil, nil},
		"managed by Kueue": {run(func(r *kubeflowv1.RunPolicy) { r.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }),
			nil,
			[]string{path + ".managedBy = kueue.x-k8s.io/multikueue: " +
				"MultiKueue does not know ElasticTrainingJobs; it is left out, and the job runs in the cluster in which it is created; " +
				"create the job in the cluster that shall run it"}},
		"minAvailable of all": {scheduling(kubeflowv1.SchedulingPolicy{MinAvailable: ptr.To[int32](4)}), nil, nil},
		"minAvailable": {scheduling(kubeflowv1.SchedulingPolicy{MinAvailable: ptr.To[int32](2)}),
			map[string]string{"spec.minReplicas": "4"},
			[]string{path + ".schedulingPolicy.minAvailable = 2: Tideline places minReplicas (4) all together, because fewer " +
				"cannot train; it is left out"}},
		"queue": {scheduling(kubeflowv1.SchedulingPolicy{Queue: "research"}), nil, []string{path + queue +
			"research: the queue follows from the namespace; it is left out; " +
			"kubectl annotate namespace ads scheduling.volcano.sh/queue-name=research"}},
		"a queue that no shell should see": {func(j *pytorchJob) {
			scheduling(kubeflowv1.SchedulingPolicy{Queue: "$(reboot)"})(j)
			j.Namespace = ""
		}, nil, []string{path + queue + "$(reboot): the queue follows from the namespace; it is left out; " +
			"kubectl annotate namespace NAMESPACE scheduling.volcano.sh/queue-name=QUEUE"}},
		"minResources": {scheduling(kubeflowv1.SchedulingPolicy{
			MinResources: &map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("4")},
		}), nil,
			[]string{path + `.schedulingPolicy.minResources = {"cpu":"4"}: Tideline computes it from the core's pods; it is left out`}},
		"priorityClass": {scheduling(kubeflowv1.SchedulingPolicy{PriorityClass: "high"}), nil,
			[]string{path + ".schedulingPolicy.priorityClass = high: the priority follows from the tier; it is left out; set " +
				"spec.tier, for example exploratory, small-traffic or main-traffic"}},
		"scheduling timeout": {scheduling(kubeflowv1.SchedulingPolicy{ScheduleTimeoutSeconds: ptr.To[int32](90)}),
			map[string]string{"spec.deadlines.schedulingSeconds": "90"},
			[]string{path + ".schedulingPolicy.scheduleTimeoutSeconds = 90: training-operator tells it to the coscheduling " +
				"plugin, which tries again, and not to Volcano; Tideline fails the job when its core does not run within that time; " +
				"remove spec.deadlines.schedulingSeconds if the job shall wait on"}},
		"scheduling timeout of 0": {scheduling(kubeflowv1.SchedulingPolicy{ScheduleTimeoutSeconds: ptr.To[int32](0)}),
			map[string]string{"spec.deadlines.schedulingSeconds": "null"},
			[]string{path + ".schedulingPolicy.scheduleTimeoutSeconds = 0: it must be 1 or more; it is left out, and the job " +
				"waits for ever"}},
	})
}

// Every job that restarts without end hears that Tideline's do not; a job that never restarts does not.
func TestEndlessRestarts(t *testing.T) {
	for policy, want := range map[kubeflowv1.RestartPolicy]bool{"": true, "OnFailure": true, "Always": true, "ExitCode": true,
		"Never": false} {
		j := good()
		masterOf(j).RestartPolicy, workerOf(j).RestartPolicy = policy, policy
		_, notes := FromPyTorchJob(j)
		if have := slices.ContainsFunc(notes, func(n Note) bool { return n.String() == unlimited }); have != want {
			t.Errorf("restartPolicy %q: says so %v, want %v", policy, have, want)
		}
	}
}

func TestFailurePolicy(t *testing.T) {
	set := func(first, others kubeflowv1.RestartPolicy) func(*pytorchJob) {
		return func(j *pytorchJob) { masterOf(j).RestartPolicy, workerOf(j).RestartPolicy = first, others }
	}
	limited := func(edit func(*pytorchJob), limit int32) func(*pytorchJob) {
		return func(j *pytorchJob) {
			edit(j)
			j.Spec.RunPolicy.BackoffLimit = &limit
		}
	}
	const never = ".restartPolicy = Never: it is a rule in spec.failurePolicy now, by which a worker that was deleted by " +
		"somebody fails the job, as before; an eviction, a drained node or a lost one no longer does"
	const exitCode = ".restartPolicy = ExitCode: it is two rules in spec.failurePolicy now: codes 1 to 127 fail the job, " +
		"any other restarts the worker; they see the code of the container, and torchrun exits with 1 whatever code the " +
		"training script had; if the script's own code must decide, let it catch what is worth a retry"
	const always = ".restartPolicy = Always: a worker that exits with code 0 is not started again: the job ends when its workers do"
	const inPlace = "spec.elasticPolicy.maxRestarts is not set: torchrun starts a failed script again up to 100 times " +
		"before the container fails and spec.failurePolicy decides; with training-operator it does not, but with 0, giving a " +
		"worker away would fail the others; set the variable PET_MAX_RESTARTS in the template for fewer"
	var permanent []int32
	for code := int32(1); code <= 127; code++ {
		permanent = append(permanent, code)
	}
	codes := string(must(json.Marshal(permanent)))
	const once = `{"name":"PET_MAX_RESTARTS","value":"0"}`
	rule0 := "spec.failurePolicy.rules.0"
	neverOf := func(indexes string) string {
		return `{"action":"FailJob","name":"never-restart","onEvents":["PodFailed"],"targets":[{"indexes":"` + indexes + `"}]}`
	}
	check(t, map[string]rule{
		"OnFailure": {set("OnFailure", "OnFailure"), map[string]string{"spec.failurePolicy": "null", trainer + ".env.1": "null"}, nil},
		"Always":    {set("Always", "Always"), map[string]string{"spec.failurePolicy": "null"}, []string{workerPath + always}},
		"Never": {set("Never", "Never"), map[string]string{
			"spec.failurePolicy.rules": `[{"action":"FailJob","name":"never-restart","onEvents":["PodFailed"]}]`, trainer + ".env.1": once,
		}, []string{workerPath + never}},
		"ExitCode": {set("ExitCode", "ExitCode"), map[string]string{
			rule0: `{"action":"FailJob","name":"permanent","onEvents":["PodFailed"],` +
				`"onExitCodes":{"operator":"In","values":` + codes + `}}`,
			"spec.failurePolicy.rules.1": `{"action":"RestartWorker","name":"retryable","onEvents":["PodFailed"]}`,
			"spec.failurePolicy.rules.2": "null", trainer + ".env.1": once,
		}, []string{workerPath + exitCode}},
		"ExitCode with a limit": {limited(set("OnFailure", "ExitCode"), 1), map[string]string{"spec.restarts.max": "1"},
			[]string{"spec.runPolicy.backoffLimit = 1: " + limit + "; with restartPolicy ExitCode training-operator replaces pods " +
				"that fail, and never reached it", workerPath + exitCode}},
		"ExitCode with none to spare": {limited(set("OnFailure", "ExitCode"), 0), map[string]string{"spec.restarts.max": "0"},
			[]string{"spec.runPolicy.backoffLimit = 0: " + limit, workerPath + exitCode}},
		"Master Never, workers OnFailure": {set("Never", ""), map[string]string{
			"spec.failurePolicy.rules": "[" + neverOf("0") + "]",
		}, []string{masterPath + never}},
		"Master ExitCode, workers Never": {set("ExitCode", "Never"), map[string]string{
			rule0 + ".targets": `[{"indexes":"0"}]`, "spec.failurePolicy.rules.1.targets": `[{"indexes":"0"}]`,
			"spec.failurePolicy.rules.2": neverOf("1-"),
		}, []string{masterPath + exitCode, workerPath + never}},
		"Master alone": {func(j *pytorchJob) {
			delete(j.Spec.PyTorchReplicaSpecs, worker)
			masterOf(j).RestartPolicy = "Never"
		}, map[string]string{rule0 + ".targets": "null"}, []string{masterPath + never}},
		"the template says how often": {func(j *pytorchJob) {
			set("Never", "Never")(j)
			both(j, func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PET_MAX_RESTARTS", Value: "7"}}
			})
		}, map[string]string{trainer + ".env.0.value": `"7"`, trainer + ".env.2": "null"}, []string{workerPath + never}},
		"elastic": {func(j *pytorchJob) { elastic(j); workerOf(j).RestartPolicy = "Never" },
			map[string]string{trainer + ".env.1": "null"}, []string{workerPath + never, inPlace}},
		"elastic, and told how often": {func(j *pytorchJob) {
			elastic(j).MaxRestarts = ptr.To[int32](100)
			workerOf(j).RestartPolicy = "Never"
		}, map[string]string{trainer + ".env.1": `{"name":"PET_MAX_RESTARTS","value":"100"}`}, []string{workerPath + never}},
	})
}

func TestElasticPolicy(t *testing.T) {
	with := func(edit func(*kubeflowv1.ElasticPolicy)) func(*pytorchJob) {
		return func(j *pytorchJob) { edit(elastic(j)) }
	}
	conf := func(pairs ...string) func(*pytorchJob) {
		return with(func(e *kubeflowv1.ElasticPolicy) {
			for i := 0; i < len(pairs); i += 2 {
				e.RDZVConf = append(e.RDZVConf, kubeflowv1.RDZVConf{Key: pairs[i], Value: pairs[i+1]})
			}
		})
	}
	const path, r = "spec.elasticPolicy", "spec.framework"
	const malformed = ": torchrun could not tell its key from its value, or would cut it at a comma; it is left out; give " +
		"it a key of lower-case letters, digits and underscores, and a value without commas, equals signs and spaces"
	var many []string
	for i := range 17 {
		many = append(many, "k"+strconv.Itoa(i), "v")
	}
	check(t, map[string]rule{
		"c10d": {with(func(e *kubeflowv1.ElasticPolicy) { e.RDZVBackend = ptr.To(kubeflowv1.BackendC10D) }),
			map[string]string{r: "{}"}, nil},
		"etcd": {with(func(e *kubeflowv1.ElasticPolicy) {
			e.RDZVBackend = ptr.To(kubeflowv1.BackendETCDV2)
			e.RDZVConf = []kubeflowv1.RDZVConf{{Key: "protocol", Value: "https"}, {Key: "join_timeout", Value: "900"}}
		}), map[string]string{r: `{"torchrun":{"joinTimeoutSeconds":900}}`}, []string{
			path + ".rdzvBackend = etcd-v2: the rendezvous is c10d's, with its store on worker 0; it is left out; remove the " +
				"server of that backend if nothing else uses it",
			path + ".rdzvConf[protocol] = https: it is for the backend etcd-v2, and the rendezvous is c10d's; it is left out"}},
		"host": {with(func(e *kubeflowv1.ElasticPolicy) { e.RDZVHost = ptr.To("etcd-client") }), nil,
			[]string{path + ".rdzvHost = etcd-client: the store is always on worker 0; it is left out"}},
		"id": {with(func(e *kubeflowv1.ElasticPolicy) { e.RDZVID = ptr.To("x") }), nil,
			[]string{path + ".rdzvId = x: each attempt has an id of its own, so that no worker joins a stale one; it is left out"}},
		"port": {with(func(e *kubeflowv1.ElasticPolicy) { e.RDZVPort = ptr.To[int32](1024) }),
			map[string]string{r + ".port": "1024"}, nil},
		"port of a system service": {with(func(e *kubeflowv1.ElasticPolicy) { e.RDZVPort = ptr.To[int32](1023) }),
			map[string]string{r + ".port": "null"},
			[]string{path + ".rdzvPort = 1023: spec.framework.port may be 1024 to 65535; it is left out, and the port is 29400"}},
		"not standalone": {with(func(e *kubeflowv1.ElasticPolicy) { e.Standalone = ptr.To(false) }), nil, nil},
		"standalone": {with(func(e *kubeflowv1.ElasticPolicy) { e.Standalone = ptr.To(true) }), nil,
			[]string{path + ".standalone = true: each pod trains by itself with training-operator; Tideline's workers train " +
				"together; for independent trainings, create a job of one worker for each"}},
		"metrics": {with(func(e *kubeflowv1.ElasticPolicy) { e.Metrics = []autoscalingv2.MetricSpec{{Type: "Resource"}} }), nil,
			[]string{path + `.metrics = [{"type":"Resource"}]: there is no HorizontalPodAutoscaler: the job grows to ` +
				`spec.maxReplicas on what is free and gives way to waiting gangs; it is left out`}},
		"few restarts": {with(func(e *kubeflowv1.ElasticPolicy) { e.MaxRestarts = ptr.To[int32](3) }),
			map[string]string{trainer + ".env.1": `{"name":"PET_MAX_RESTARTS","value":"3"}`, "spec.restarts.max": "null"},
			[]string{path + ".maxRestarts = 3: it is carried over as the variable PET_MAX_RESTARTS; each loss of a worker costs " +
				"every other worker one of torchrun's restarts, and with too few of them a job that gives workers away stops; remove " +
				"the variable for Tideline's 100"}},
		"many restarts": {with(func(e *kubeflowv1.ElasticPolicy) { e.MaxRestarts = ptr.To[int32](1000) }),
			map[string]string{trainer + ".env.1.value": `"1000"`}, nil},
		"restarts beat the template's": {func(j *pytorchJob) {
			elastic(j).MaxRestarts = ptr.To[int32](100)
			trainerOf(j).Env = []corev1.EnvVar{{Name: "PET_MAX_RESTARTS", Value: "2"}}
		}, map[string]string{
			trainer + ".env": `[{"name":"PYTHONUNBUFFERED","value":"1"},{"name":"PET_MAX_RESTARTS","value":"100"}]`,
		}, nil},
		"conf": {conf("close_timeout", "30", "keep_alive_interval", "5"),
			map[string]string{
				r + ".torchrun.rdzvConf": `[{"key":"close_timeout","value":"30"},{"key":"keep_alive_interval","value":"5"}]`,
			}, nil},
		"empty conf": {func(j *pytorchJob) { elastic(j).RDZVConf = []kubeflowv1.RDZVConf{} },
			map[string]string{r + ".torchrun.rdzvConf": "null"}, nil},
		"timeouts": {conf("join_timeout", "30", "last_call_timeout", "3600", "read_timeout", "300"),
			map[string]string{r + ".torchrun": `{"joinTimeoutSeconds":30,"lastCallTimeoutSeconds":3600,"readTimeoutSeconds":300}`}, nil},
		"timeouts out of range": {conf("join_timeout", "29", "last_call_timeout", "3601", "read_timeout", "60"),
			map[string]string{r: "{}"}, []string{
				path + ".rdzvConf[join_timeout] = 29: spec.framework.torchrun.joinTimeoutSeconds may be 30 to 86400; it is left out, and " +
					"600 s apply",
				path + ".rdzvConf[last_call_timeout] = 3601: spec.framework.torchrun.lastCallTimeoutSeconds may be 1 to 3600; it is left " +
					"out, " +
					"and 30 s apply",
				path + ".rdzvConf[read_timeout] = 60: spec.framework.torchrun.readTimeoutSeconds may be 300 to 86400; it is left out, " +
					"and 300 " +
					"s apply"}},
		"a timeout that is no number": {conf("join_timeout", "10m"), map[string]string{r: "{}"},
			[]string{path + ".rdzvConf[join_timeout] = 10m: spec.framework.torchrun.joinTimeoutSeconds may be 30 to 86400; it is left " +
				"out, and 600 s apply"}},
		"is_host": {conf("is_host", "1"), map[string]string{r: "{}"},
			[]string{path + ".rdzvConf[is_host] = 1: Tideline tells worker 0 to host the store, and the others not to; it is left out"}},
		"a key twice": {conf("close_timeout", "1", "close_timeout", "2"),
			map[string]string{r + ".torchrun.rdzvConf": `[{"key":"close_timeout","value":"2"}]`},
			[]string{path + ".rdzvConf[close_timeout] = 1: the key is given again, and the last one counts; it is left out"}},
		"malformed keys": {conf("Close", "1", strings.Repeat("k", 65), "1"), map[string]string{r: "{}"},
			[]string{path + ".rdzvConf[Close] = 1" + malformed, path + ".rdzvConf[" + strings.Repeat("k", 65) + "] = 1" + malformed}},
		"malformed values": {conf("a", "1,2", "b", "", "c", strings.Repeat("v", 257)), map[string]string{r: "{}"},
			[]string{path + ".rdzvConf[a] = 1,2" + malformed, path + `.rdzvConf[b] = ""` + malformed,
				path + ".rdzvConf[c] = " + strings.Repeat("v", 79) + "…" + malformed}},
		"too many pairs": {conf(many...), map[string]string{
			r + ".torchrun.rdzvConf.15.key": `"k15"`, r + ".torchrun.rdzvConf.16": "null",
		},
			[]string{path + ".rdzvConf[k16] = v: spec.framework.torchrun.rdzvConf may have 16 pairs; it is left out"}},
	})
}
