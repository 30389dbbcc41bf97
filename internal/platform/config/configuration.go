// Package config is the operator's configuration: one versioned file, which this package decodes, validates and completes with
// defaults. It opens no file itself.
package config

import (
	"errors"
	"net"
	"strconv"
	"time"
)

// APIVersion and Kind begin every configuration file.
const (
	APIVersion = "config.tideline.io/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is the operator's configuration. docs/configuration.md lists its fields with their ranges; Defaults has their
// defaults. The operator logs it as a whole, so it never holds a secret, only the path of a file with one.
type Configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Tiers are the levels of importance, in rising order. A file that has the field replaces all built-in tiers.
	Tiers Tiers `json:"tiers"`
	// Accelerators maps resources to the node labels that name their models. A file adds to the built-in ones.
	Accelerators Accelerators `json:"accelerators"`
	// Sharing are resources that are parts of accelerators, at most 64. Default: none.
	Sharing Sharing `json:"sharing"`
	// DeviceClasses maps DeviceClasses to the resources that their devices count as. A file adds to the built-in ones.
	DeviceClasses DeviceClasses `json:"deviceClasses"`
	// Claims says how long room is kept for waiting gangs.
	Claims Claims `json:"claims"`
	// Limits are bounds for jobs that are tighter than the schema's.
	Limits Limits `json:"limits"`
	// Merges is what MergeJobs may name.
	Merges Merges `json:"merges"`
	// Ledger is the database of what ran and what was decided.
	Ledger Ledger `json:"ledger"`
	// Prometheus is the server that knows what pods used.
	Prometheus Prometheus `json:"prometheus"`
	// Reports says how CostReports are mailed.
	Reports Reports `json:"reports"`

	// Reservations says how reserved room is held.
	Reservations Reservations `json:"reservations"`

	// Pages says how pages of trainings are reached from outside the cluster.
	Pages Pages `json:"pages"`

	// HostPorts are the ports of nodes among which jobs with hostNetwork get one for their rendezvous.
	HostPorts HostPorts `json:"hostPorts"`

	// Nodes says what follows for nodes on which workers fail.
	Nodes Nodes `json:"nodes"`

	// Concurrency is how much the operator does at a time.
	Concurrency Concurrency `json:"concurrency"`
	// ClientQPS is how many requests per second the operator sends at most, watches apart, from 0 to 10000; 0 for no limit but
	// that of the API server (API Priority and Fairness). Default: 0.
	ClientQPS int32 `json:"clientQPS"`
	// ClientBurst is how many requests may be sent at once, from ClientQPS to 10000; 0 when ClientQPS is 0. Default: 0.
	ClientBurst int32 `json:"clientBurst"`
	// ResyncPeriodSeconds is how often every object is looked at again although nothing changed, from 1 to 604800 (a week).
	// Default: 36000.
	ResyncPeriodSeconds int32 `json:"resyncPeriodSeconds"`

	Log            Log            `json:"log"`
	Metrics        Metrics        `json:"metrics"`
	Console        Console        `json:"console"`
	Health         Health         `json:"health"`
	Pprof          Pprof          `json:"pprof"`
	LeaderElection LeaderElection `json:"leaderElection"`
	Webhooks       Webhooks       `json:"webhooks"`
}

// HostPorts are ports of nodes, both ends included. Below those that Kubernetes gives to NodePorts and kernels to connections by
// default, they collide with nothing.
type HostPorts struct {
	// First and Last are from 1024 to 65535, and at least a hundred ports. Default: 20000 and 29999.
	First int32 `json:"first"`
	Last  int32 `json:"last"`
}

// DefaultHostPorts are those that a configuration without any has.
func DefaultHostPorts() HostPorts { return HostPorts{First: 20000, Last: 29999} }

// Nodes is what follows for nodes on which workers of several owners fail more often than chance explains.
type Nodes struct {
	// TaintSuspects sets the taint tideline.io/suspect=failures:NoSchedule on a node that is accused, on one node in twenty at most.
	// The operator needs the rights of component node-taints. Default: false, which only tells the command.
	TaintSuspects bool `json:"taintSuspects"`
}

// Reservations are how room is held for trainings to come.
type Reservations struct {
	// Image of the pods that hold it, which do nothing until they are ended. Default: registry.k8s.io/pause:3.10.
	Image string `json:"image"`
}

// Claims are how room is kept for gangs that wait.
type Claims struct {
	// PlacementTimeoutSeconds is how long a gang may take to be placed once there is room for it, before that room is given back,
	// from 5 to 3600. Default: 60.
	PlacementTimeoutSeconds int32 `json:"placementTimeoutSeconds"`
}

// PlacementTimeout is PlacementTimeoutSeconds as a duration.
func (c Claims) PlacementTimeout() time.Duration {
	return time.Duration(c.PlacementTimeoutSeconds) * time.Second
}

// Limits are what the operator refuses although the schema allows it.
type Limits struct {
	// MaxWorkersPerJob is the largest maxReplicas of a job, from 1 to 4096, which is the schema's bound. Default: 4096.
	MaxWorkersPerJob int32 `json:"maxWorkersPerJob"`
	// MaxGraceSeconds is the largest terminationGracePeriodSeconds of a template and checkpoint.graceSeconds of a job, because
	// others wait that long for the room. From 30, Kubernetes' default for pods, to 86400. Default: 600.
	MaxGraceSeconds int32 `json:"maxGraceSeconds"`
}

// Concurrency is how much is done at a time.
type Concurrency struct {
	// ElasticTrainingJobs is how many jobs are reconciled at a time, from 1 to 256. Default: 8.
	ElasticTrainingJobs int32 `json:"elasticTrainingJobs"`
	// MergePools is how many pools are decided on at a time, from 1 to 64; in one pool one decision follows another. Default: 4.
	MergePools int32 `json:"mergePools"`
	// Stores is how many stores of models are read at a time, from 1 to 256. Default: 16.
	Stores int32 `json:"stores"`
}

// Formats and levels of the log.
const (
	LogJSON, LogText            = "json", "text"
	LogError, LogInfo, LogDebug = "error", "info", "debug"
)

// Log is how the operator logs, on standard error.
type Log struct {
	// Format is json, one object a line, or text. Default: json.
	Format string `json:"format"`
	// Level is the least important level that is logged: error, info or debug, which adds the detail of each decision, and a stack
	// trace to each error. Default: info.
	Level string `json:"level"`
}

// Metrics is how Prometheus reads metrics.
type Metrics struct {
	// BindAddress is HOST:PORT or :PORT, or "0" to serve none. Default: "0".
	BindAddress string `json:"bindAddress"`
	// Secure serves them by HTTPS, and only to users and ServiceAccounts that may get the path /metrics in the cluster. Default:
	// true.
	Secure bool `json:"secure"`
}

// Console is whether pages of the cluster are served beside the metrics.
type Console struct {
	// Enabled serves /console/, which needs metrics.secure and a metrics.bindAddress. Default: false.
	Enabled bool `json:"enabled"`
}

// Health is how the kubelet asks for health.
type Health struct {
	// BindAddress serves /healthz and /readyz: HOST:PORT or :PORT, or "0" to serve none. Default: ":8081".
	BindAddress string `json:"bindAddress"`
}

// Pprof is how profiles of the operator are read.
type Pprof struct {
	// BindAddress serves /debug/pprof by HTTP to everybody who reaches it: HOST:PORT or :PORT, or "0" to serve none. Default: "0".
	BindAddress string `json:"bindAddress"`
}

// LeaderElection is how one of several operators becomes the one that acts. Default of its times: those of controller-runtime.
type LeaderElection struct {
	// Enabled lets only the holder of a Lease act. Default: true.
	Enabled bool `json:"enabled"`
	// Namespace of the Lease. Default: the operator's own; outside the cluster tideline-system, or default where there is none.
	Namespace string `json:"namespace"`
	// LeaseDurationSeconds is how long another operator waits for a leader that does not renew its Lease, from 2 to 3600. Default:
	// 15.
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds"`
	// RenewDeadlineSeconds is how long the leader tries to renew its Lease before it gives up and ends, less than
	// LeaseDurationSeconds. Default: 10.
	RenewDeadlineSeconds int32 `json:"renewDeadlineSeconds"`
	// RetryPeriodSeconds is the time between two tries. 1.2 times as much, which is its jitter, is less than
	// RenewDeadlineSeconds. Default: 2.
	RetryPeriodSeconds int32 `json:"retryPeriodSeconds"`
}

// Webhooks is how the operator serves its admission webhooks.
type Webhooks struct {
	// Enabled is false for an operator without webhooks. Default: true.
	Enabled bool `json:"enabled"`
	// BindAddress is HOST:PORT or :PORT. Default: ":9443".
	BindAddress string `json:"bindAddress"`
	// Certificates is where the certificate comes from.
	Certificates Certificates `json:"certificates"`
	// ClientCAFile is the absolute path of a PEM file with the authorities that sign the API server's client certificate. Callers
	// without such a certificate are refused. Empty: every caller is answered. Default: "".
	ClientCAFile string `json:"clientCAFile"`
}

// Where the certificate of the webhooks comes from.
const (
	CertificatesRotate, CertificatesFiles = "rotate", "files"
)

// Certificates is where the certificate of the webhooks comes from.
type Certificates struct {
	// Mode is rotate, for a certificate that the operator makes and renews, or files, for one that others make. Default: rotate.
	Mode string `json:"mode"`
	// Directory has tls.crt and tls.key in mode files; files that change are read again. Default:
	// /tmp/k8s-webhook-server/serving-certs.
	Directory string `json:"directory"`
}

// DefaultConfiguration returns the configuration of an operator without a file.
func DefaultConfiguration() *Configuration {
	return &Configuration{
		APIVersion:          APIVersion,
		Kind:                Kind,
		Tiers:               DefaultTiers(),
		Accelerators:        DefaultAccelerators(),
		Sharing:             Sharing{},
		DeviceClasses:       DefaultDeviceClasses(),
		Claims:              Claims{PlacementTimeoutSeconds: 60},
		Limits:              Limits{MaxWorkersPerJob: maxWorkers, MaxGraceSeconds: 600},
		Merges:              DefaultMerges(),
		Reservations:        Reservations{Image: "registry.k8s.io/pause:3.10"},
		Ledger:              DefaultLedger(),
		Prometheus:          DefaultPrometheus(),
		Reports:             DefaultReports(),
		Pages:               DefaultPages(),
		HostPorts:           DefaultHostPorts(),
		Concurrency:         Concurrency{ElasticTrainingJobs: 8, MergePools: 4, Stores: 16},
		ResyncPeriodSeconds: int32((10 * time.Hour).Seconds()),
		Log:                 Log{Format: LogJSON, Level: LogInfo},
		Metrics:             Metrics{BindAddress: noAddress, Secure: true},
		Health:              Health{BindAddress: ":8081"},
		Pprof:               Pprof{BindAddress: noAddress},
		LeaderElection: LeaderElection{
			Enabled: true, LeaseDurationSeconds: 15, RenewDeadlineSeconds: 10, RetryPeriodSeconds: 2,
		},
		Webhooks: Webhooks{
			Enabled: true, BindAddress: ":9443",
			Certificates: Certificates{Mode: CertificatesRotate, Directory: "/tmp/k8s-webhook-server/serving-certs"},
		},
	}
}

// noAddress stands for an address that is not served.
const noAddress = "0"

// SplitAddress splits HOST:PORT, whose host may be empty. It returns an error that says what an address must be.
func SplitAddress(address string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, errors.New("it must be HOST:PORT or :PORT, with a port from 1 to 65535")
	}
	return host, port, nil
}

// Seconds is a field of so many seconds as a duration.
func Seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
