package config

import (
	"flag"
	"fmt"
	"time"
)

// flagOf names the flag that overrides a field.
var flagOf = map[string]string{
	"merges.localStores":                  "allow-local-stores",
	"metrics.bindAddress":                 "metrics-bind-address",
	"metrics.secure":                      "metrics-secure",
	"console.enabled":                     "console",
	"health.bindAddress":                  "health-probe-bind-address",
	"pprof.bindAddress":                   "pprof-bind-address",
	"leaderElection.enabled":              "leader-elect",
	"leaderElection.namespace":            "leader-election-namespace",
	"leaderElection.leaseDurationSeconds": "leader-election-lease-duration",
	"leaderElection.renewDeadlineSeconds": "leader-election-renew-deadline",
	"leaderElection.retryPeriodSeconds":   "leader-election-retry-period",
	"resyncPeriodSeconds":                 "resync-period",
	"webhooks.enabled":                    "webhooks",
	"webhooks.bindAddress":                "webhook-bind-address",
	"webhooks.certificates.mode":          "webhook-certs",
	"webhooks.certificates.directory":     "webhook-cert-dir",
}

// AddFlags adds the flags that override fields of the configuration. Only fields have a flag that differ from process to
// process, that are needed where there is no file, or that a component of config sets: it can add an argument but not change a
// file.
func (c *Configuration) AddFlags(flags *flag.FlagSet) {
	text := func(path string, value *string, usage string) { flags.StringVar(value, flagOf[path], *value, usage) }
	yes := func(path string, value *bool, usage string) { flags.BoolVar(value, flagOf[path], *value, usage) }
	seconds := func(path string, value *int32, most int32, usage string) {
		flags.Var(&period{value, most}, flagOf[path], usage+", a `duration` of whole seconds")
	}
	text("merges.localStores", &c.Merges.LocalStores,
		"`folder` on the operator's machine below which MergeJobs may name stores (type: File), for tests and demos; by default "+
			"they may name none")
	text("metrics.bindAddress", &c.Metrics.BindAddress,
		`address that serves Prometheus metrics, for example ":8080"; "0" serves none`)
	yes("metrics.secure", &c.Metrics.Secure,
		"serve metrics by HTTPS, and only to accounts that may get the path /metrics in the cluster; needs the right to create "+
			"tokenreviews and subjectaccessreviews")
	yes("console.enabled", &c.Console.Enabled, "serve pages of the cluster below /console/, beside the metrics")
	text("health.bindAddress", &c.Health.BindAddress, `address that serves /healthz and /readyz; "0" serves none`)
	text("pprof.bindAddress", &c.Pprof.BindAddress, `address that serves /debug/pprof to everybody; "0" serves none`)
	yes("leaderElection.enabled", &c.LeaderElection.Enabled,
		"let only one of several operators act, the holder of a Lease; the next leads 15 s after one was killed")
	text("leaderElection.namespace", &c.LeaderElection.Namespace,
		"namespace of the Lease; default: the operator's own; outside the cluster that of the installation, or default if there is "+
			"none")
	seconds("leaderElection.leaseDurationSeconds", &c.LeaderElection.LeaseDurationSeconds, maxLease,
		"how long another operator waits for a leader that does not renew its Lease")
	seconds("leaderElection.renewDeadlineSeconds", &c.LeaderElection.RenewDeadlineSeconds, maxLease,
		"how long the leader tries to renew its Lease before it exits")
	seconds("leaderElection.retryPeriodSeconds", &c.LeaderElection.RetryPeriodSeconds, maxLease, "the time between two tries")
	seconds("resyncPeriodSeconds", &c.ResyncPeriodSeconds, maxResync,
		"how often every object is reconciled although nothing changed")
	yes("webhooks.enabled", &c.Webhooks.Enabled,
		"serve the admission webhooks of config/webhook; without them no owner is set on jobs, and the owners and ServiceAccounts "+
			"that jobs name are not checked")
	text("webhooks.bindAddress", &c.Webhooks.BindAddress, "address that serves the webhooks")
	text("webhooks.certificates.mode", &c.Webhooks.Certificates.Mode,
		`where the webhooks' certificate comes from: with "rotate" the operator makes and renews it, keeps it in a Secret and writes `+
			`its CA into the webhook configurations; with "files" others (OLM, cert-manager) make and mount it`)
	text("webhooks.certificates.directory", &c.Webhooks.Certificates.Directory,
		"folder with tls.crt and tls.key, with --webhook-certs=files; files that change are read again")
}

// OverrideByFlags sets fields of c from the flags of AddFlags that the process was started with. If a flag breaks a rule it
// returns an error with one sentence per line.
func (c *Configuration) OverrideByFlags(given *flag.FlagSet) error {
	override := flag.NewFlagSet("", flag.ContinueOnError)
	c.AddFlags(override)
	given.Visit(func(f *flag.Flag) {
		if override.Lookup(f.Name) != nil {
			_ = override.Set(f.Name, f.Value.String()) // a value of the same kind has taken it before
		}
	})
	found := c.validate()
	return found.sentences(func(path string) string { return "--" + flagOf[path] })
}

// period is a field of seconds as a flag, which takes durations such as 10h or 5s.
type period struct {
	seconds *int32
	most    int32
}

// String is the duration. Package flag asks a period without a field, too.
func (p *period) String() string {
	if p.seconds == nil {
		return ""
	}
	return Seconds(*p.seconds).String()
}

// Set reads a duration.
func (p *period) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	seconds := int32(d / time.Second)
	if Seconds(seconds) != d {
		return fmt.Errorf("it must be a number of whole seconds, at most %d s", p.most)
	}
	*p.seconds = seconds
	return nil
}
