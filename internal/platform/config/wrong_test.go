package config

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const noServer = "it must be aws, or the URL of an S3 server: http:// or https://, a host, and a port if it is not that of the " +
	"scheme, with nothing behind it."

const noPrometheus = "is not the URL of a server: it must be http:// or https://, a host, a port if it is not that of the " +
	"scheme, and a path if Prometheus is served below one, without user, password, ? and #; a token belongs into " +
	"prometheus.tokenFile."

// knownWithNPU are the accelerators of a file that adds one.
const knownWithNPU = "amd.com/gpu, example.com/npu, nvidia.com/gpu, nvidia.com/gpu.shared, volcano.sh/vgpu-number."

// manyParts are so many parts of an accelerator.
func manyParts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- {resource: a.b/part-%d, countsAs: nvidia.com/gpu, whole: 2}\n", i)
	}
	return b.String()
}

// wrongFiles are files without their header, and all that is said of them, without the file's name.
var wrongFiles = []struct {
	name, content string
	says          []string
}{
	{"few host ports", "hostPorts: {first: 30000, last: 30098}\n", []string{
		"hostPorts.last is 30098: it must be 30099 at least, so that there are 100 ports to draw from.",
	}},
	{"host ports of the system", "hostPorts: {first: 80}\n", []string{"hostPorts.first is 80: it must be from 1024 to 65535."}},
	{"host ports beyond all", "hostPorts: {last: 65536}\n", []string{"hostPorts.last is 65536: it must be from 1024 to 65535."}},
	{"an unknown field", "metricz: {}\n", []string{
		"metricz is not a field: there may be accelerators, apiVersion, claims, clientBurst, clientQPS, concurrency, console, " +
			"deviceClasses, " +
			"health, hostPorts, kind, leaderElection, ledger, limits, log, merges, metrics, nodes, pages, pprof, prometheus, reports, " +
			"reservations, " +
			"resyncPeriodSeconds, " +
			"sharing, tiers, webhooks.",
	}},
	{"an unknown field below", "log:\n  fromat: text\n", []string{"log.fromat is not a field: there may be format, level."}},
	{"names on several lines", "\"a\\nb\": 1\nlog: {\"c.d\": 1}\naccelerators: {\"x\\ny\": z}\ntiers:\n" +
		"- {name: \"e\\nf\", priority: 1, surplusPriority: -20}\n" +
		"- {name: g, priority: 2, surplusPriority: -19, preempts: [h]}\n", []string{
		`"a\nb" is not a field: there may be accelerators, apiVersion, claims, clientBurst, clientQPS, concurrency, console, ` +
			"deviceClasses, " +
			`health, hostPorts, kind, leaderElection, ledger, limits, log, merges, metrics, nodes, pages, pprof, prometheus, reports, ` +
			`reservations, ` +
			`resyncPeriodSeconds, ` +
			`sharing, tiers, webhooks.`,

		`log."c.d" is not a field: there may be format, level.`,
		`tiers[0].name is "e\nf": it must be a DNS-1035 label of at most 40 characters: lower-case letters, digits and dashes, a ` +
			`letter first and no dash last.`,
		`tiers[1].preempts[0] is "h": it must be a tier that is listed before this one: "e\nf".`,
		`accelerators["x\ny"] does not name a resource: write it as nodes do, for example example.com/npu.`,
	}},
	{"sizing beyond its bounds", "tiers:\n- {name: low, priority: 1, surplusPriority: -20, sizing: {cpuPercentile: 49, " +
		"cpuBufferPercent: 99, memoryBufferPercent: 1001, minCPU: few, minMemory: \"-1\", maxMemory: 64GB}}\n", []string{
		`tiers[0].sizing.cpuPercentile is 49: it must be from 50 to 100.`,
		`tiers[0].sizing.cpuBufferPercent is 99: it must be from 100 to 1000.`,
		`tiers[0].sizing.memoryBufferPercent is 1001: it must be from 100 to 1000.`,
		`tiers[0].sizing.minCPU is "few": it must be a quantity of 0 or more, as 100m.`,
		`tiers[0].sizing.minMemory is "-1": it must be a quantity of 0 or more, as 250Mi.`,
		`tiers[0].sizing.maxMemory is "64GB": it must be a quantity of 0 or more, as 64Gi.`,
	}},
	{"claims that end too soon", "claims: {placementTimeoutSeconds: 4}\n", []string{
		"claims.placementTimeoutSeconds is 4: it must be from 5 to 3600.",
	}},
	{"claims that last too long", "claims: {placementTimeoutSeconds: 3601}\n", []string{
		"claims.placementTimeoutSeconds is 3601: it must be from 5 to 3600.",
	}},
	{"reservations without an image", "reservations: {image: \"\"}\n", []string{
		`reservations.image is "": it must name an image; leave it out for registry.k8s.io/pause:3.10.`,
	}},
	{"pages at no host", "pages: {ingressClass: nginx}\n", []string{
		`pages.host is "": it must be set where pages.gateway or pages.ingressClass is: name the host, or leave all out.`,
	}},
	{"pages by no way", "pages: {host: pages.example}\n", []string{
		`pages.host is "pages.example": it needs pages.gateway or pages.ingressClass, by which it is reached: set one of them.`,
	}},
	{"pages by two ways", "pages: {host: pages.example, ingressClass: nginx, gateway: {namespace: infra, name: web}}\n", []string{
		`pages.ingressClass is "nginx": pages.gateway leads to the same pages: leave one of them.`,
	}},
	{"pages at an address", "pages: {host: 10.0.0.1, ingressClass: nginx}\n", []string{
		`pages.host is "10.0.0.1": it must be a DNS name such as pages.example.com, or *.pages.example.com for one of its own for ` +
			`each job.`,
	}},
	{"pages at a URL", "pages: {host: \"https://pages.example\", ingressClass: nginx, scheme: ftp}\n", []string{
		`pages.host is "https://pages.example": it must be a DNS name such as pages.example.com, or *.pages.example.com for one of ` +
			`its own for each job.`,
		`pages.scheme is "ftp": it must be https or http.`,
	}},
	{"pages at hosts without room", "pages: {host: \"*." + strings.Repeat("a.", 95) + "a\", ingressClass: nginx}\n", []string{
		`pages.host is "*.a` + strings.Repeat(".a", 28) + `…: a label for each job goes before it, so it may have 189 ` +
			`characters behind the dot.`,
	}},
	{"half a Gateway, and names of nothing",
		"pages: {host: pages.example, gateway: {name: Web}, annotations: {tideline.io/x: z, a b: c, d: " +
			strings.Repeat("e", 4097) + "}}\n", []string{
			`pages.gateway.namespace is "": it must be the namespace of a Gateway.`,
			`pages.gateway.name is "Web": it must be the name of a Gateway.`,
			`pages.annotations["a b"] does not name an annotation: write it as PREFIX/NAME.`,
			`pages.annotations["d"] has 4097 bytes: it may have 4096.`,
			`pages.annotations["tideline.io/x"] is one of Tideline's own: leave it out.`,
		}},
	{"annotations without end", "pages: {annotations: {" + strings.Join(seventeen(), ", ") + "}}\n", []string{
		`pages.annotations has 17 entries: it may have 16.`,
	}},
	{"a class of another spelling", "pages: {host: pages.example, ingressClass: nginx_1}\n", []string{
		`pages.ingressClass is "nginx_1": it must be the name of an IngressClass.`,
	}},
	{"another letter case", "Log: {}\nlog: {Level: info}\n", []string{
		"Log is not a field: there may be accelerators, apiVersion, claims, clientBurst, clientQPS, concurrency, console, " +
			"deviceClasses, " +
			"health, hostPorts, kind, leaderElection, ledger, limits, log, merges, metrics, nodes, pages, pprof, prometheus, reports, " +
			"reservations, " +
			"resyncPeriodSeconds, " +
			"sharing, tiers, webhooks.",

		"log.Level is not a field: there may be format, level.",
	}},
	{"a field twice, and something else", "log: {level: loud}\nlog: {level: loud}\n", []string{
		`it has field "log" twice, again in line 4: leave one.`,
		`log.level is "loud": it must be error, info or debug.`,
	}},
	{"no YAML", "log: {level\n", []string{"it is not YAML: line 3: did not find expected ',' or '}': correct it there."}},
	{"several documents", "---\nlog: {level: debug}\n", []string{
		"it has several documents: leave one, without a line --- or ... between fields.",
	}},
	{"what stands after the end", "...\nlog: {level: debug}\n", []string{
		"it has several documents: leave one, without a line --- or ... between fields.",
	}},
	{"what JSON has no words for", "clientQPS: .inf\n", []string{
		"it is not YAML: json: unsupported value: +Inf: correct it there.",
	}},
	{"wrong types", "webhooks: 3\ntiers: {}\nlog: {level: 7, format: [json]}\nclientQPS: \"8\"\nclientBurst: 3000000000\n" +
		"resyncPeriodSeconds: 1.5\nmetrics:\n- bindAddress\nleaderElection: {enabled: \"true\", namespace: {}}\n" +
		"accelerators: {example.com/npu: 1, example.com/tpu: {}}\n", []string{
		`accelerators["example.com/npu"] is 1: it must be text: put it in quotes.`,
		`accelerators["example.com/tpu"] is {}: it must be text: put it in quotes.`,
		`clientBurst is 3000000000: it must be a whole number, without quotes and of at most nine digits.`,
		`clientQPS is "8": it must be a whole number, without quotes and of at most nine digits.`,
		`leaderElection.enabled is "true": it must be true or false, without quotes.`,
		`leaderElection.namespace is {}: it must be text: put it in quotes.`,
		`log.format is ["json"]: it must be text: put it in quotes.`,
		`log.level is 7: it must be text: put it in quotes.`,
		`metrics is ["bindAddress"]: it must be a mapping: fields on lines of their own, indented below it.`,
		`resyncPeriodSeconds is 1.5: it must be a whole number, without quotes and of at most nine digits.`,
		`tiers is {}: it must be a list: lines that begin with a dash.`,
		`webhooks is 3: it must be a mapping: fields on lines of their own, indented below it.`,
	}},
	{"no tiers", "tiers: []\n", []string{
		"tiers is []: it must list one tier at least; leave it out for the built-in tiers.",
	}},
	{"names of tiers", "tiers:\n- {name: Gold, priority: 1, surplusPriority: -20}\n- {priority: 2, surplusPriority: -19}\n" +
		"- {name: a, priority: 3, surplusPriority: -18}\n- {name: a, priority: 4, surplusPriority: -17}\n" +
		"- {name: a-surplus, priority: 5, surplusPriority: -16}\n" +
		"- {name: a2345678901234567890123456789012345678901, priority: 6, surplusPriority: -15}\n" +
		"- {name: handover, priority: 7, surplusPriority: -14}\n", []string{
		`tiers[0].name is "Gold": it must be a DNS-1035 label of at most 40 characters: lower-case letters, digits and dashes, a ` +
			`letter first and no dash last.`,
		`tiers[1].name is "": it must be a DNS-1035 label of at most 40 characters: lower-case letters, digits and dashes, a letter ` +
			`first and no dash last.`,
		`tiers[3].name is "a": another tier has this name: give each its own.`,
		`tiers[4].name is "a-surplus": its PriorityClass tideline-a-surplus is that of tier "a" too: choose another name.`,
		`tiers[5].name is "a2345678901234567890123456789012345678901": it must be a DNS-1035 label of at most 40 characters: ` +
			`lower-case letters, digits and dashes, a letter first and no dash last.`,
		`tiers[6].name is "handover": its PriorityClass tideline-handover is that of reservations too: choose another name.`,
	}},
	{"priorities", "tiers:\n- {name: a, priority: 0, surplusPriority: -10}\n" +
		"- {name: b, priority: 1000000000, surplusPriority: -12}\n- {name: c, priority: 7, surplusPriority: -12}\n", []string{
		"tiers[0].priority is 0: it must be from 1 to 999999999.",
		"tiers[0].surplusPriority is -10: it must be less than -10, so that any gang comes before surplus and cluster-autoscaler " +
			"buys no nodes for it.",
		"tiers[1].priority is 1000000000: it must be from 1 to 999999999.",
		`tiers[1].surplusPriority is -12: it must be more than -10, that of tier "a" before it: tiers are listed in rising importance.`,
		`tiers[2].priority is 7: it must be more than 1000000000, that of tier "b" before it: tiers are listed in rising importance.`,
		`tiers[2].surplusPriority is -12: it must be more than -12, that of tier "b" before it: tiers are listed in rising importance.`,
	}},
	{"who preempts whom", "tiers:\n- {name: a, priority: 1, surplusPriority: -20, preempts: [b], default: true}\n" +
		"- {name: b, priority: 2, surplusPriority: -19, preempts: [a, a, b, c], default: true}\n" +
		"- {name: c, priority: 3, surplusPriority: -18, preempts: b}\n", []string{
		"tiers[2].preempts is \"b\": it must be a list: lines that begin with a dash.",
		`tiers[0].preempts[0] is "b": the first tier has no tier below it to preempt: leave preempts out.`,
		`tiers[1].preempts[1] is "a": it is listed twice: leave one.`,
		`tiers[1].preempts[2] is "b": it must be a tier that is listed before this one: "a".`,
		`tiers[1].preempts[3] is "c": it must be a tier that is listed before this one: "a".`,
		`tiers[1].default is true: tier "a" is the default already: leave one.`,
	}},
	{"what pods of a tier are held to", "tiers:\n- {name: a, priority: 1, surplusPriority: -20, qos: guaranteed, " +
		"longestRunSeconds: -1}\n- {name: b, priority: 2, surplusPriority: -19, qos: BestEffort, longestRunSeconds: 31536001}\n" +
		"- {name: c, priority: 3, surplusPriority: -18, qos: [Guaranteed], longestRunSeconds: 72h}\n", []string{
		`tiers[2].longestRunSeconds is "72h": it must be a whole number, without quotes and of at most nine digits.`,
		`tiers[2].qos is ["Guaranteed"]: it must be text: put it in quotes.`,
		`tiers[0].qos is "guaranteed": it must be Burstable, MemoryGuaranteed or Guaranteed.`,
		`tiers[0].longestRunSeconds is -1: it must be from 0 to 31536000.`,
		`tiers[1].qos is "BestEffort": it must be Burstable, MemoryGuaranteed or Guaranteed.`,
		`tiers[1].longestRunSeconds is 31536001: it must be from 0 to 31536000.`,
	}},
	{"how long surplus of a tier may be left alone", "tiers:\n- {name: a, priority: 1, surplusPriority: -20, " +
		"maxMinSurplusRunSeconds: -1}\n- {name: b, priority: 2, surplusPriority: -19, maxMinSurplusRunSeconds: 86401}\n", []string{
		`tiers[0].maxMinSurplusRunSeconds is -1: it must be from 0 to 86400.`,
		`tiers[1].maxMinSurplusRunSeconds is 86401: it must be from 0 to 86400.`,
	}},
	{"accelerators", "accelerators: {\"a b\": x, example.com/npu: \"\"}\n", []string{
		`accelerators["a b"] does not name a resource: write it as nodes do, for example example.com/npu.`,
		`accelerators["example.com/npu"] is "": it must be the name of a node label, for example example.com/npu.product.`,
	}},
	{"parts of accelerators", "sharing:\n- {resource: a.b/part, countsAs: a.b/unknown, whole: 0}\n" +
		"- {resource: nvidia.com/gpu.shared, countsAs: nvidia.com/gpu, whole: -4}\n" +
		"- {resource: nvidia.com/gpu.shared, countsAs: nvidia.com/gpu.shared, whole: 4}\n" +
		"- {resource: amd.com/gpu, countsAs: volcano.sh/vgpu-number, whole: 1000000000}\n" +
		"- {resource: \"a b\", countsAs: amd.com/gpu, whole: 1, times: \"c d\"}\n" +
		"- {resource: a.b/cores, countsAs: nvidia.com/gpu, whole: 100, times: volcano.sh/vgpu-number}\n" +
		"- {resource: a.b/memory, countsAs: example.com/npu, whole: 100, times: volcano.sh/vgpu-number}\n" +
		"- {resource: a.b/self, countsAs: nvidia.com/gpu, whole: 1, times: a.b/self}\n" +
		"- {whole: 1}\naccelerators: {example.com/npu: a.b/c}\n", []string{
		`sharing[0].countsAs is "a.b/unknown": it must be one of accelerators: ` + knownWithNPU,
		"sharing[0].whole is 0: it must be from 1 to 999999999.",
		"sharing[1].whole is -4: it must be from 1 to 999999999.",
		`sharing[2].resource is "nvidia.com/gpu.shared": it is listed twice: leave one.`,
		`sharing[2].countsAs is "nvidia.com/gpu.shared": it is itself a part of an accelerator here: name one that is whole.`,
		`sharing[3].countsAs is "volcano.sh/vgpu-number": it is itself a part of an accelerator here: name one that is whole.`,
		"sharing[3].whole is 1000000000: it must be from 1 to 999999999.",
		`sharing[4].resource is "a b": it must name a resource as nodes do, for example example.com/npu.`,
		`sharing[4].countsAs is "amd.com/gpu": it is itself a part of an accelerator here: name one that is whole.`,
		`sharing[4].times is "c d": it must name a resource as nodes do, for example example.com/npu.`,
		`sharing[6].times is "volcano.sh/vgpu-number": it is a number of nvidia.com/gpu above: a device counts as one accelerator.`,
		`sharing[7].times is "a.b/self": it is a part of accelerators here, so it cannot be their number too.`,
		`sharing[8].resource is "": it must name a resource as nodes do, for example example.com/npu.`,
		`sharing[8].countsAs is "": it must be one of accelerators: ` + knownWithNPU,
	}},
	{"parts of one another", "sharing:\n- {resource: nvidia.com/gpu, countsAs: amd.com/gpu, whole: 2}\n" +
		"- {resource: amd.com/gpu, countsAs: nvidia.com/gpu, whole: 2}\n", []string{
		`sharing[0].countsAs is "amd.com/gpu": it is itself a part of an accelerator here: name one that is whole.`,
		`sharing[1].countsAs is "nvidia.com/gpu": it is itself a part of an accelerator here: name one that is whole.`,
	}},
	{"more parts than there may be", "sharing:\n" + manyParts(65), []string{"sharing has 65 entries: it may have 64."}},
	{"numbers", "limits: {maxWorkersPerJob: 4097}\nconcurrency: {elasticTrainingJobs: 0, mergePools: 65, stores: 257}\n" +
		"resyncPeriodSeconds: 604801\nclientQPS: -1\n", []string{
		"limits.maxWorkersPerJob is 4097: it must be from 1 to 4096.",
		"concurrency.elasticTrainingJobs is 0: it must be from 1 to 256.",
		"concurrency.mergePools is 65: it must be from 1 to 64.",
		"concurrency.stores is 257: it must be from 1 to 256.",
		"clientQPS is -1: it must be from 0 to 10000.",
		"resyncPeriodSeconds is 604801: it must be from 1 to 604800.",
	}},
	{"less grace than Kubernetes gives", "limits: {maxGraceSeconds: 29}\n", []string{
		"limits.maxGraceSeconds is 29: it must be from 30 to 86400.",
	}},
	{"more grace than the schema allows", "limits: {maxGraceSeconds: 86401}\n", []string{
		"limits.maxGraceSeconds is 86401: it must be from 30 to 86400.",
	}},
	{"no pools", "merges: {pools: []}\n", []string{
		"merges.pools is []: it must list one Queue at least; leave it out for tideline-merge.",
	}},
	{"pools that merges may not name", "merges: {pools: [day, night], strictPools: [night, other, night]}\n", []string{
		`merges.strictPools[1] is "other": it must be one of merges.pools.`,
		`merges.strictPools[2] is "night": it is listed twice: leave one.`,
	}},
	{"how often stores are read", "merges: {waitingIntervalSeconds: 0, runningIntervalSeconds: 3601}\n", []string{
		"merges.waitingIntervalSeconds is 0: it must be from 1 to 86400.",
		"merges.runningIntervalSeconds is 3601: it must be from 1 to 3600.",
	}},
	{"what merges may name", "merges:\n  pools: [a, Night, a]\n  localStores: stores\n" +
		"  endpoints: [aws, aws, s3.example, \"https://s3.example:443\", \"https://S3.example/\", \"https://s3.example/path\", " +
		"\"https://a:b@s3.example\", \"ftp://s3.example\", \"https://s3.example?\", \"https://s3.example#\", " +
		"\"https://s3.example:\", \"https://\"]\n",
		[]string{
			`merges.pools[1] is "Night": it must be the name of a Queue: lower-case letters, digits and dashes, no dash first or last, ` +
				`at most 63 characters.`,
			`merges.pools[2] is "a": it is listed twice: leave one.`,
			`merges.endpoints[1] is "aws": it is listed twice: leave one.`,
			`merges.endpoints[2] is "s3.example": ` + noServer,
			`merges.endpoints[4] is "https://S3.example/": it is listed twice: leave one.`,
			`merges.endpoints[5] is "https://s3.example/path": ` + noServer,
			`merges.endpoints[6] is "https://a:b@s3.example": ` + noServer,
			`merges.endpoints[7] is "ftp://s3.example": ` + noServer,
			`merges.endpoints[8] is "https://s3.example?": ` + noServer,
			`merges.endpoints[9] is "https://s3.example#": ` + noServer,
			`merges.endpoints[10] is "https://s3.example:": ` + noServer,
			`merges.endpoints[11] is "https://": ` + noServer,
			`merges.localStores is "stores": it must be the absolute path of a folder, or empty for none.`,
		}},
	{"two ledgers", "ledger: {file: /a.db, postgresDSNFile: /dsn, retentionDays: 3651, userLabel: \"a b\"}\n", []string{
		`ledger.postgresDSNFile is "/dsn": ledger.file is "/a.db", and there is one ledger: leave one of the two empty.`,
		"ledger.retentionDays is 3651: it must be from 0 to 3650.",
		`ledger.userLabel is "a b": it must be the name of a label, for example example.com/user.`,
	}},
	{"where the ledger is", "ledger: {file: a.db, retentionDays: -1, userLabel: \"\"}\n", []string{
		`ledger.file is "a.db": it must be the absolute path of a file, or empty for none.`,
		"ledger.retentionDays is -1: it must be from 0 to 3650.",
		`ledger.userLabel is "": it must be the name of a label, for example example.com/user.`,
	}},
	{"where the DSN is", "ledger: {postgresDSNFile: \"postgres://alice:secret@db/tideline\"}\n", []string{
		"ledger.postgresDSNFile is not an absolute path: it must be the path of a file that holds the DSN, or empty for none.",
	}},
	{"who is asked what pods used", "prometheus: {url: prometheus.example, caFile: ca.crt, tokenFile: secret, timeoutSeconds: 0, " +
		"intervalSeconds: 86401, trusted: {dcgm: [\"\"]}}\n", []string{
		"prometheus.url " + noPrometheus,
		"prometheus.caFile is not an absolute path: it must be the path of a file, or empty for none.",
		"prometheus.tokenFile is not an absolute path: it must be the path of a file, or empty for none.",
		"prometheus.timeoutSeconds is 0: it must be from 1 to 300.",
		"prometheus.intervalSeconds is 86401: it must be from 60 to 86400.",
		"prometheus.trusted.dcgm has an empty entry: it must be a list of names, or empty to trust all targets.",
	}},
	{"how reports are mailed", "reports: {mailTimeoutSeconds: 0, mailRetrySeconds: 3601}\n", []string{
		"reports.mailTimeoutSeconds is 0: it must be from 1 to 600.",
		"reports.mailRetrySeconds is 3601: it must be from 1 to 3600.",
	}},
	{"a burst without a rate", "clientBurst: 5\n", []string{
		"clientBurst is 5: it must be 0 where clientQPS is 0, without a limit: leave it out, or set clientQPS.",
	}},
	{"a burst below the rate", "clientQPS: 20\n", []string{"clientBurst is 0: it must be from 20 to 10000."}},
	{"words", "log: {format: xml, level: warn}\n" +
		"webhooks: {certificates: {mode: olm, directory: \"\"}, clientCAFile: ca.crt}\n", []string{
		`log.format is "xml": it must be json or text.`,
		`log.level is "warn": it must be error, info or debug.`,
		`webhooks.certificates.mode is "olm": it must be rotate or files.`,
		`webhooks.certificates.directory is "": it must be the path of a folder.`,
		"webhooks.clientCAFile is not an absolute path: it must be the path of a file, or empty for none.",
	}},
	{"addresses", "metrics: {bindAddress: \"8080\"}\nhealth: {bindAddress: \":65536\"}\nwebhooks: {bindAddress: \"0\"}\n", []string{
		`metrics.bindAddress is "8080": it must be HOST:PORT or :PORT, with a port from 1 to 65535, or 0 for any free port, or ` +
			`"0" to serve none.`,
		`health.bindAddress is ":65536": it must be HOST:PORT or :PORT, with a port from 1 to 65535, or 0 for any free port, or ` +
			`"0" to serve none.`,
		`webhooks.bindAddress is "0": it must be HOST:PORT or :PORT, with a port from 1 to 65535.`,
	}},
	{"a lease that is renewed too late", "leaderElection: {renewDeadlineSeconds: 15, namespace: Ops}\n", []string{
		`leaderElection.namespace is "Ops": it must be the name of a namespace, or empty for the operator's own.`,
		"leaderElection.renewDeadlineSeconds is 15: it must be less than leaseDurationSeconds (15), so that a leader ends before " +
			"another begins.",
	}},
	{"a lease that is renewed too rarely", "leaderElection: {retryPeriodSeconds: 9}\n", []string{
		"leaderElection.renewDeadlineSeconds is 10: it must be more than 1.2 times retryPeriodSeconds (9), so that there is a second " +
			"try.",
	}},
	{"a lease out of bounds", "leaderElection: {leaseDurationSeconds: 3601, retryPeriodSeconds: 0}\n", []string{
		"leaderElection.leaseDurationSeconds is 3601: it must be from 2 to 3600.",
		"leaderElection.retryPeriodSeconds is 0: it must be from 1 to 3600.",
	}},
	{"a long value", "log: {level: " + strings.Repeat("é", 100) + "}\n", []string{
		`log.level is "` + strings.Repeat("é", 59) + `…: it must be error, info or debug.`,
	}},
}

func TestWrongFilesEndWithSentences(t *testing.T) {
	for _, c := range wrongFiles {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			loaded, err := Load("/etc/tideline/configuration.yaml", []byte(header+c.content))
			g.Expect(loaded).To(BeNil())
			g.Expect(err).To(HaveOccurred())
			g.Expect(strings.Split(err.Error(), "\n")).To(Equal(located(c.says)))
		})
	}
}

func located(says []string) []string {
	lines := make([]string, len(says))
	for i, s := range says {
		lines[i] = "/etc/tideline/configuration.yaml: " + s
	}
	return lines
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	const begin = "begin it with apiVersion: config.tideline.io/v1alpha1 and kind: Configuration."
	for content, says := range map[string][]string{
		"":                          {"it is empty: " + begin},
		"# nothing\n---\n":          {"it is empty: " + begin},
		"- tiers\n":                 {"it is not a mapping of fields: " + begin},
		"tiers\n":                   {"it is not a mapping of fields: " + begin},
		"kind: Configuration":       {"apiVersion is missing: it must be config.tideline.io/v1alpha1."},
		"apiVersion: " + APIVersion: {"kind is missing: it must be Configuration."},
		"log: {level: loud}\n": {
			"apiVersion is missing: it must be config.tideline.io/v1alpha1.", "kind is missing: it must be Configuration.",
			`log.level is "loud": it must be error, info or debug.`,
		},
		"apiVersion: config.tideline.io/v2\nkind: Configuration\nnew: 1\n": {
			`apiVersion is "config.tideline.io/v2": it must be config.tideline.io/v1alpha1, the only version that this operator reads.`,
		},
		"apiVersion: " + APIVersion + "\nkind: ConfigMap\ndata: 1\n": {
			"data is not a field: there may be accelerators, apiVersion, claims, clientBurst, clientQPS, concurrency, console, " +
				"deviceClasses, " +
				"health, hostPorts, kind, leaderElection, ledger, limits, log, merges, metrics, nodes, pages, pprof, prometheus, reports, " +
				"reservations, " +
				"resyncPeriodSeconds, " +
				"sharing, tiers, webhooks.",

			`kind is "ConfigMap": it must be Configuration.`,
		},
	} {
		g := NewWithT(t)
		_, err := Load("/etc/tideline/configuration.yaml", []byte(content))
		g.Expect(err).To(HaveOccurred(), content)
		g.Expect(strings.Split(err.Error(), "\n")).To(Equal(located(says)), content)
	}
}

// seventeen are annotations.
func seventeen() []string {
	all := make([]string, 17)
	for i := range all {
		all[i] = fmt.Sprintf("a%d: b", i)
	}
	return all
}
