package config

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
)

// Bounds of fields.
const (
	// maxWorkers is the bound of minReplicas and maxReplicas in the schema.
	maxWorkers = 4096
	// In seconds.
	maxHour   = 60 * 60
	maxDay    = 24 * maxHour
	maxResync = 7 * maxDay
	maxLease  = maxHour
	maxRun    = 365 * maxDay
	// maxPriority leaves room above all tiers for the gang to which reserved room is handed over.
	maxPriority = handoverPriority - 1
	// ignoredPriority is the value below which cluster-autoscaler ignores pending pods (--expendable-pods-priority-cutoff).
	ignoredPriority = -10
	// maxTierName leaves room for what is put before and after it in names of objects.
	maxTierName = 40
	// electionJitter is how many times RetryPeriodSeconds a try of the leader may take (leaderelection.JitterFactor).
	electionJitter = 1.2
	// maxRetention is ten years, in days: no entry of the ledger is longer.
	maxRetention = 3650
	// maxWhole is what a whole number in a file may be.
	maxWhole = 999_999_999
)

// aResource is the rule for the name of a resource.
const aResource = "it must name a resource as nodes do, for example example.com/npu"

// twiceListed is the rule for an item that a list has twice.
const twiceListed = "it is listed twice: leave one"

// validate returns all fields that break a rule.
func (c *Configuration) validate() problems {
	var p problems
	if c.Kind != Kind {
		p.value("kind", c.Kind, "it must be "+Kind)
	}
	p.tiers(c.Tiers)
	p.accelerators(c.Accelerators)
	p.sharing(c.Sharing, c.Accelerators)
	p.deviceClasses(c)
	p.between("claims.placementTimeoutSeconds", c.Claims.PlacementTimeoutSeconds, 5, maxHour)
	p.between("limits.maxWorkersPerJob", c.Limits.MaxWorkersPerJob, 1, maxWorkers)
	p.between("limits.maxGraceSeconds", c.Limits.MaxGraceSeconds, corev1.DefaultTerminationGracePeriodSeconds, maxDay)
	p.merges(c.Merges)
	if c.Reservations.Image == "" {
		p.value("reservations.image", "", "it must name an image; leave it out for "+DefaultConfiguration().Reservations.Image)
	}
	p.ledger(c.Ledger)
	p.prometheus(c.Prometheus)
	p.reports(c.Reports)
	p.pages(c.Pages)
	p.hostPorts(c.HostPorts)
	p.between("concurrency.elasticTrainingJobs", c.Concurrency.ElasticTrainingJobs, 1, 256)
	p.between("concurrency.mergePools", c.Concurrency.MergePools, 1, 64)
	p.between("concurrency.stores", c.Concurrency.Stores, 1, 256)
	p.client(c.ClientQPS, c.ClientBurst)
	p.between("resyncPeriodSeconds", c.ResyncPeriodSeconds, 1, maxResync)
	p.oneOf("log.format", c.Log.Format, LogJSON, LogText)
	p.oneOf("log.level", c.Log.Level, LogError, LogInfo, LogDebug)
	p.address("metrics.bindAddress", c.Metrics.BindAddress, true)
	p.address("health.bindAddress", c.Health.BindAddress, true)
	p.address("pprof.bindAddress", c.Pprof.BindAddress, true)
	p.leaderElection(c.LeaderElection)
	p.address("webhooks.bindAddress", c.Webhooks.BindAddress, false)
	p.oneOf("webhooks.certificates.mode", c.Webhooks.Certificates.Mode, CertificatesRotate, CertificatesFiles)
	if c.Webhooks.Certificates.Directory == "" {
		p.value("webhooks.certificates.directory", "", "it must be the path of a folder")
	}
	p.secretFile("webhooks.clientCAFile", c.Webhooks.ClientCAFile)
	return p
}

// leastPorts is how many ports jobs must have to draw from, so that two jobs of a node seldom draw the same.
const leastPorts = 100

func (p *problems) hostPorts(ports HostPorts) {
	p.between("hostPorts.first", ports.First, 1024, 65535)
	p.between("hostPorts.last", ports.Last, 1024, 65535)
	if ports.Last-ports.First+1 < leastPorts {
		p.value("hostPorts.last", ports.Last, fmt.Sprintf("it must be %d at least, so that there are %d ports to draw from",
			ports.First+leastPorts-1, leastPorts))
	}
}

func (p *problems) tiers(ts Tiers) {
	if len(ts) == 0 {
		p.value("tiers", []string{}, "it must list one tier at least; leave it out for the built-in tiers")
	}
	byDefault := ""
	classes := map[string]string{HandoverClass: "reservations"} // what each name of a PriorityClass is for
	for i, t := range ts {
		path := fmt.Sprintf("tiers[%d]", i)
		p.tierName(path+".name", t, ts[:i], classes)
		p.between(path+".priority", t.Priority, 1, maxPriority)
		if t.SurplusPriority >= ignoredPriority {
			p.value(path+".surplusPriority", t.SurplusPriority, fmt.Sprintf("it must be less than %d, so that any gang comes before "+
				"surplus and cluster-autoscaler buys no nodes for it", ignoredPriority))
		}
		if i > 0 {
			p.mustRise(path+".priority", t.Priority, ts[i-1].Priority, ts[i-1].Name)
			p.mustRise(path+".surplusPriority", t.SurplusPriority, ts[i-1].SurplusPriority, ts[i-1].Name)
		}
		p.preempts(path+".preempts", t.Preempts, ts[:i])
		p.oneOf(path+".qos", string(t.QoS), string(QoSBurstable), string(QoSMemoryGuaranteed), string(QoSGuaranteed))
		p.between(path+".longestRunSeconds", t.LongestRunSeconds, 0, maxRun)
		p.between(path+".maxMinSurplusRunSeconds", t.MaxMinSurplusRunSeconds, 0, maxDay)
		p.sizing(path+".sizing", t.Sizing)
		if t.Default && byDefault != "" {
			p.value(path+".default", true, fmt.Sprintf("tier %s is the default already: leave one", quote(byDefault)))
		} else if t.Default {
			byDefault = t.Name
		}
	}
}

func (p *problems) tierName(path string, t Tier, before Tiers, classes map[string]string) {
	switch {
	case len(t.Name) > maxTierName || len(validation.IsDNS1035Label(t.Name)) > 0:
		p.value(path, t.Name, fmt.Sprintf("it must be a DNS-1035 label of at most %d characters: lower-case letters, digits and "+
			"dashes, a letter first and no dash last", maxTierName))
		return
	case slices.ContainsFunc(before, func(o Tier) bool { return o.Name == t.Name }):
		p.value(path, t.Name, "another tier has this name: give each its own")
		return
	}
	for _, name := range []string{t.ClassName(), t.SurplusClassName()} {
		if other, taken := classes[name]; taken {
			p.value(path, t.Name, fmt.Sprintf("its PriorityClass %s is that of %s too: choose another name", name, other))
		}
		classes[name] = "tier " + quote(t.Name)
	}
}

// mustRise checks that a value of a tier is more than that of the tier before it.
func (p *problems) mustRise(path string, value, before int32, name string) {
	if value <= before {
		p.value(path, value, fmt.Sprintf("it must be more than %d, that of tier %s before it: tiers are listed in rising importance",
			before, quote(name)))
	}
}

func (p *problems) preempts(path string, names []string, before Tiers) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case slices.Contains(names[:i], name):
			p.value(at, name, twiceListed)
		case slices.ContainsFunc(before, func(t Tier) bool { return t.Name == name }):
		case len(before) == 0:
			p.value(at, name, "the first tier has no tier below it to preempt: leave preempts out")
		default:
			listed := make([]string, len(before))
			for j, t := range before {
				listed[j] = quote(t.Name)
			}
			p.value(at, name, "it must be a tier that is listed before this one: "+strings.Join(listed, ", "))
		}
	}
}

func (p *problems) accelerators(labels Accelerators) {
	for _, resource := range slices.Sorted(maps.Keys(labels)) {
		path := entryPath("accelerators", resource)
		if len(validation.IsQualifiedName(resource)) > 0 {
			p.add(path, "does not name a resource: write it as nodes do, for example example.com/npu")
		}
		if len(validation.IsQualifiedName(labels[resource])) > 0 {
			p.value(path, labels[resource], "it must be the name of a node label, for example example.com/npu.product")
		}
	}
}

func (p *problems) sharing(all Sharing, known Accelerators) {
	if len(all) > maxSharing {
		p.add("sharing", fmt.Sprintf("has %d entries: it may have %d", len(all), maxSharing))
	}
	ofDevices := map[string]string{} // by the resource that gives a number of devices: as what they count
	for i, share := range all {
		path := fmt.Sprintf("sharing[%d]", i)
		p.sharedName(path+".resource", share.Resource, all[:i])
		switch _, isKnown := known[share.CountsAs]; {
		case !isKnown:
			p.value(path+".countsAs", share.CountsAs, "it must be one of accelerators: "+known.JoinedNames())
		case all.isListed(share.CountsAs):
			p.value(path+".countsAs", share.CountsAs, "it is itself a part of an accelerator here: name one that is whole")
		}
		p.between(path+".whole", share.Whole, 1, maxWhole)
		if share.Times == "" {
			continue
		}
		as, before := ofDevices[share.Times]
		switch {
		case len(validation.IsQualifiedName(share.Times)) > 0:
			p.value(path+".times", share.Times, aResource)
		case slices.ContainsFunc(all, func(o Part) bool { return o.Resource == share.Times }):
			p.value(path+".times", share.Times, "it is a part of accelerators here, so it cannot be their number too")
		case before && as != share.CountsAs:
			p.value(path+".times", share.Times, "it is a number of "+as+" above: a device counts as one accelerator")
		}
		ofDevices[share.Times] = share.CountsAs
	}
}

func (p *problems) deviceClasses(c *Configuration) {
	resources := c.deviceResources()
	for _, class := range c.DeviceClasses.sortedClasses() {
		path := entryPath("deviceClasses", class)
		if len(validation.IsDNS1123Subdomain(class)) > 0 {
			p.add(path, "does not name a DeviceClass: write it as the cluster does, for example npu.example.com")
		}
		if as := c.DeviceClasses[class]; as != "" && !slices.Contains(resources, as) {
			p.value(path, as, "it must be empty, for devices that are no accelerators, or one of accelerators or sharing: "+
				strings.Join(resources, ", "))
		}
	}
}

// sharedName checks the name of a resource that is a part of an accelerator.
func (p *problems) sharedName(path, resource string, before Sharing) {
	switch {
	case len(validation.IsQualifiedName(resource)) > 0:
		p.value(path, resource, aResource)
	case slices.ContainsFunc(before, func(o Part) bool { return o.Resource == resource }):
		p.value(path, resource, twiceListed)
	}
}

func (p *problems) merges(m Merges) {
	if len(m.Pools) == 0 {
		p.value("merges.pools", []string{}, "it must list one Queue at least; leave it out for "+DefaultMerges().Pools[0])
	}
	for i, pool := range m.Pools {
		path := fmt.Sprintf("merges.pools[%d]", i)
		switch {
		case len(validation.IsDNS1123Label(pool)) > 0:
			p.value(path, pool, "it must be the name of a Queue: lower-case letters, digits and dashes, no dash first or last, at "+
				"most 63 characters")
		case slices.Contains(m.Pools[:i], pool):
			p.value(path, pool, twiceListed)
		}
	}
	for i, pool := range m.StrictPools {
		path := fmt.Sprintf("merges.strictPools[%d]", i)
		switch {
		case !slices.Contains(m.Pools, pool):
			p.value(path, pool, "it must be one of merges.pools")
		case slices.Contains(m.StrictPools[:i], pool):
			p.value(path, pool, twiceListed)
		}
	}
	p.between("merges.waitingIntervalSeconds", m.WaitingIntervalSeconds, 1, maxDay)
	p.between("merges.runningIntervalSeconds", m.RunningIntervalSeconds, 1, maxHour)
	servers := map[string]bool{}
	for i, e := range m.Endpoints {
		path := fmt.Sprintf("merges.endpoints[%d]", i)
		server, isURL := serverurl.Parse(e)
		switch {
		case e == awsEndpoint:
			server = awsEndpoint
		case !isURL:
			p.value(path, e, "it must be "+awsEndpoint+", or the URL of an S3 server: http:// or https://, a host, and a port if "+
				"it is not that of the scheme, with nothing behind it")
			continue
		}
		if servers[server] {
			p.value(path, e, twiceListed)
		}
		servers[server] = true
	}
	if m.LocalStores != "" && !filepath.IsAbs(m.LocalStores) {
		p.value("merges.localStores", m.LocalStores, "it must be the absolute path of a folder, or empty for none")
	}
}

func (p *problems) client(qps, burst int32) {
	const most = 10_000
	p.between("clientQPS", qps, 0, most)
	switch {
	case qps == 0 && burst != 0:
		p.value("clientBurst", burst, "it must be 0 where clientQPS is 0, without a limit: leave it out, or set clientQPS")
	case qps > 0 && qps <= most:
		p.between("clientBurst", burst, qps, most)
	}
}

func (p *problems) leaderElection(l LeaderElection) {
	if l.Namespace != "" && len(validation.IsDNS1123Label(l.Namespace)) > 0 {
		p.value("leaderElection.namespace", l.Namespace, "it must be the name of a namespace, or empty for the operator's own")
	}
	p.between("leaderElection.leaseDurationSeconds", l.LeaseDurationSeconds, 2, maxLease)
	p.between("leaderElection.retryPeriodSeconds", l.RetryPeriodSeconds, 1, maxLease)
	switch renew := l.RenewDeadlineSeconds; {
	case renew >= l.LeaseDurationSeconds:
		p.value("leaderElection.renewDeadlineSeconds", renew, fmt.Sprintf(
			"it must be less than leaseDurationSeconds (%d), so that a leader ends before another begins", l.LeaseDurationSeconds))
	case float64(renew) <= electionJitter*float64(l.RetryPeriodSeconds):
		p.value("leaderElection.renewDeadlineSeconds", renew, fmt.Sprintf(
			"it must be more than %g times retryPeriodSeconds (%d), so that there is a second try", electionJitter, l.RetryPeriodSeconds))
	}
}

func (p *problems) between(path string, value, least, most int32) {
	if value < least || value > most {
		p.value(path, value, fmt.Sprintf("it must be from %d to %d", least, most))
	}
}

func (p *problems) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		last := len(allowed) - 1
		p.value(path, value, "it must be "+strings.Join(allowed[:last], ", ")+" or "+allowed[last])
	}
}

// address checks an address; an optional one may be "0", which serves none.
func (p *problems) address(path, value string, optional bool) {
	if _, port, err := net.SplitHostPort(value); optional && (value == noAddress || err == nil && port == "0") {
		return
	}
	if _, _, err := SplitAddress(value); err != nil {
		rule := err.Error()
		if optional {
			rule += `, or 0 for any free port, or "0" to serve none`
		}
		p.value(path, value, rule)
	}
}
