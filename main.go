// Tideline is a Kubernetes operator for machine-learning training clusters scheduled by Volcano.
//
// `tideline run` runs the operator; what the other commands do, `tideline` alone says.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"time"
	_ "time/tzdata" // for the time zones of schedules: the image has none

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/controllers/costreport"
	"github.com/tideline-io/tideline/controllers/elastictrainingjob"
	"github.com/tideline-io/tideline/controllers/mergejob"
	"github.com/tideline-io/tideline/controllers/resourcequotaprofile"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/cli/approve"
	"github.com/tideline-io/tideline/internal/cli/convert"
	"github.com/tideline-io/tideline/internal/cli/doctor"
	"github.com/tideline-io/tideline/internal/cli/ledgercopy"
	"github.com/tideline-io/tideline/internal/cli/simulate"
	"github.com/tideline-io/tideline/internal/cli/space"
	"github.com/tideline-io/tideline/internal/cli/storage"
	"github.com/tideline-io/tideline/internal/cli/submit"
	"github.com/tideline-io/tideline/internal/cli/why"
	"github.com/tideline-io/tideline/internal/console"
	"github.com/tideline-io/tideline/internal/cost/reportserver"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/priorityclass"
	"github.com/tideline-io/tideline/internal/platform/topologycache"
	"github.com/tideline-io/tideline/internal/platform/volcano"
	"github.com/tideline-io/tideline/internal/quota/whatif/whatifasker"
	"github.com/tideline-io/tideline/internal/training/pages"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/collector"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/recorder"
	"github.com/tideline-io/tideline/internal/webhook"
)

// Stamped at build time with -ldflags "-X main.version=...".
var (
	version = "development"
	commit  = "unknown"
	date    = "unknown"
)

func main() {
	connection := cli.NewConnection(newScheme)
	root := cli.Root(os.Args[0], runCommand(connection), why.Command(connection, recorder.ReadLedger, time.Now),
		approve.Command(connection), simulate.Command(connection), simulate.WhatIf(connection),
		submit.Command(connection, time.Now), convert.Command(),
		ledgercopy.Command(recorder.ReadLedger, recorder.OpenLedger), storage.Command(connection, crd.Names),
		why.Sizing(connection, recorder.ReadLedger, time.Now), space.AskSpace(connection, time.Now),
		space.PruneClaims(connection, time.Now), doctor.Command(connection), versionCommand())
	os.Exit(cli.Execute(ctrl.SetupSignalHandler(), root, cli.ReadArguments(os.Args), os.Stdin, os.Stdout, os.Stderr))
}

// runCommand is `tideline run`: it runs the operator.
func runCommand(connection *cli.Connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator",
		Long: `Runs the operator until it is told to end (SIGTERM, Ctrl-C). It is configured by a file, and by flags, which go
before the file.

Exit code: 0 when it was told to end; 1 when it cannot run; 2 when the command is wrong.`,
		Example: `  tideline run --config configuration.yaml
  tideline run --webhooks=false --health-probe-bind-address=127.0.0.1:0    # outside the cluster`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	configure := cli.AddConfiguration(cmd)
	connection.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := configure()
		if err != nil {
			cli.Tell(cmd.ErrOrStderr(), err.Error()+"\n")
			return cli.Exit(cli.ExitFailed)
		}
		log := newLog(cfg.Log, cmd.ErrOrStderr())
		if err := run(cmd.Context(), connection, cfg, log); err != nil {
			log.Error(err, "The operator ends")
			return cli.Exit(cli.ExitFailed)
		}
		return nil
	}
	return cli.ForClusters(cmd)
}

// versionCommand is `tideline version`: what this program was built from and by.
func versionCommand() *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Say what the program was built from",
		Example:           "  tideline version",
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{
					"version": version, "commit": commit, "date": date, "goVersion": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			cli.Tell(cmd.OutOrStdout(), fmt.Sprintf("tideline %s (commit %s of %s; %s %s/%s)\n",
				version, commit, date, runtime.Version(), runtime.GOOS, runtime.GOARCH))
			return nil
		},
	}
	output.AddFlag(cmd)
	return cmd
}

// newLog returns the log, which all libraries share from now on.
func newLog(c config.Log, to io.Writer) logr.Logger {
	level, traced := zapcore.InfoLevel, zapcore.PanicLevel
	switch c.Level {
	case config.LogError:
		level = zapcore.ErrorLevel
	case config.LogDebug:
		// An error's words say what happened. Where it passed in the code is for whoever works on the code.
		level, traced = zapcore.DebugLevel, zapcore.ErrorLevel
	}
	options := []zap.Opts{zap.WriteTo(to), zap.Level(level), zap.StacktraceLevel(traced)}
	if c.Format == config.LogText {
		options = append(options, zap.ConsoleEncoder())
	}
	log := zap.New(options...)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	return log
}

// patienceForKinds is how long a start waits for Tideline's kinds.
const patienceForKinds = 30 * time.Second

func ownKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{
		v1beta1.ElasticTrainingJobKind, v1beta1.MergeJobKind, v1beta1.ResourceQuotaProfileKind, v1beta1.CostReportKind,
	} {
		kinds = append(kinds, v1beta1.GroupVersion.WithKind(kind))
	}
	return kinds
}

// run runs the operator until the context ends.
func run(ctx context.Context, connection *cli.Connection, cfg *config.Configuration, log logr.Logger) error {
	cluster, err := connection.Config()
	if err != nil {
		return err
	}
	if err := placeLease(ctx, cluster, cfg); err != nil {
		return err
	}
	namespace := kube.OwnNamespace(rbac.Namespace)
	clock := kube.NewClock()
	cluster.Wrap(clock.WrapTransport)
	mgr, err := newManager(cluster, cfg, namespace, log)
	if err != nil {
		return err
	}
	if err := kube.AwaitKinds(ctx, mgr.GetRESTMapper(), log, patienceForKinds, ownKinds()...); err != nil {
		return fmt.Errorf("find the CustomResourceDefinitions of Tideline (make install installs them): %w", err)
	}
	if err := metrics.Registry.Register(kube.BuildInfo(version)); err != nil {
		return err
	}
	claims, err := claimcache.Setup(ctx, mgr.GetRESTMapper(), mgr.GetCache(), mgr.GetClient(), cfg.DeviceClasses)
	if err != nil {
		return err
	}
	tellers, err := setupReconcilers(ctx, mgr, cfg, namespace, claims, clock.Now)
	if err != nil {
		return err
	}
	if cfg.Webhooks.Enabled {
		if err := webhook.Setup(mgr, cfg, namespace, claims, tellers, clock.Now); err != nil {
			return err
		}
	} else {
		log.Info("Webhooks are off: jobs get no owner by themselves, the owners and ServiceAccounts they name are not checked, and " +
			"no approval counts")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if cfg.LeaderElection.Enabled {
		lease := client.ObjectKey{Namespace: cfg.LeaderElection.Namespace, Name: rbac.Lease}
		go kube.SayWhoLeads(ctx, mgr.GetAPIReader(), lease, mgr.Elected(), log)
	}
	log.Info("Tideline starts", "version", version, "commit", commit, "server", cluster.Host, "configuration", cfg)
	return explainTaken(mgr.Start(ctx), cfg)
}

// explainTaken says of a port that is taken what was to be served there, and how to choose another.
func explainTaken(err error, cfg *config.Configuration) error {
	return kube.ExplainTaken(err,
		kube.Served{
			What: "health checks", Address: cfg.Health.BindAddress, Flag: "health-probe-bind-address", Field: "health.bindAddress",
			Anywhere: true,
		},
		kube.Served{
			What: "metrics", Address: cfg.Metrics.BindAddress, Flag: "metrics-bind-address", Field: "metrics.bindAddress", Anywhere: true,
		},
		kube.Served{
			What: "profiles", Address: cfg.Pprof.BindAddress, Flag: "pprof-bind-address", Field: "pprof.bindAddress", Anywhere: true,
		},
		kube.Served{What: "webhooks", Address: cfg.Webhooks.BindAddress, Flag: "webhook-bind-address", Field: "webhooks.bindAddress"})
}

// placeLease says where the Lease is, unless the configuration does. Outside the cluster it asks for the namespace.
func placeLease(ctx context.Context, cluster *rest.Config, cfg *config.Configuration) error {
	if !cfg.LeaderElection.Enabled || cfg.LeaderElection.Namespace != "" {
		return nil
	}
	if own := kube.OwnNamespace(""); own != "" {
		cfg.LeaderElection.Namespace = own
		return nil
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cluster, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the API server at %s: %w", cluster.Host, err)
	}
	cfg.LeaderElection.Namespace = kube.LeaseNamespace(ctx, c, rbac.Namespace)
	return nil
}

// shared is what reconcilers of several kinds use, each built once.
type shared struct {
	// namespace is the operator's own.
	namespace string
	volcano   *kube.Kinds
	// routes is nil unless pages of jobs are reached by a Gateway.
	routes    *kube.Kinds
	scheduler *volcano.SchedulerConf
	arbiter   *arbiter.Arbiter
	recorder  *recorder.Recorder
	collector *collector.Collector
	claims    *claimcache.Reader
	keeping   recorder.Keeping
	// hyperNodes is nil for an API server without HyperNodes.
	hyperNodes *topologycache.Reader
}

// newShared builds what is shared and adds it to the manager, but for what gathers from all kinds: [shared.gather] comes last.
func newShared(
	ctx context.Context, mgr ctrl.Manager, cfg *config.Configuration, namespace string, claims *claimcache.Reader,
	now func() time.Time,
) (*shared, error) {
	s := &shared{
		namespace: namespace,
		claims:    claims,
		volcano:   kube.NewKinds(mgr.GetRESTMapper(), mgr.GetLogger().WithName("volcano"), gang.VolcanoKinds()...),
		recorder:  recorder.NewRecorder(cfg, now, mgr.GetLogger().WithName("ledger")),
	}
	s.keeping = s.recorder.LookForVolume(ctx, mgr.GetAPIReader(), kube.OwnNamespace(""))
	s.collector = collector.NewCollector(cfg, s.recorder.CompleteUntil, now, mgr.GetLogger().WithName("usage"))
	var err error
	if s.scheduler, err = volcano.AddSchedulerConf(mgr); err != nil {
		return nil, err
	}
	s.arbiter = arbiter.New(mgr.GetClient(), cfg, func() bool {
		obstacles, err := s.scheduler.ListObstacles(ctx)
		return err == nil && len(obstacles) == 0
	}, s.recorder.SpendingOf, mgr.GetLogger().WithName("arbiter"))
	s.arbiter.GoBy(now)
	s.arbiter.CountClaims(claims)
	if s.hyperNodes, err = topologycache.Setup(ctx, mgr.GetRESTMapper(), mgr.GetCache(), mgr.GetClient()); err != nil {
		return nil, err
	}
	s.arbiter.ReadTopology(s.hyperNodes)
	if err := s.volcano.LookForKinds(); err != nil {
		return nil, err
	}
	if s.routes, err = addRouteKinds(mgr, cfg); err != nil {
		return nil, err
	}
	err = s.volcano.WhenServed(ctx, func(ctx context.Context) error { return s.arbiter.WatchCluster(ctx, mgr.GetCache()) })
	if err != nil {
		return nil, err
	}
	if err := kube.IndexPodsByOwner(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	for _, runnable := range []manager.Runnable{s.arbiter, s.volcano} {
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("add %T to the manager: %w", runnable, err)
		}
	}
	return s, nil
}

// addRouteKinds adds what waits for the Gateway API to the manager, if pages of jobs are reached by a Gateway; nil otherwise.
func addRouteKinds(mgr ctrl.Manager, cfg *config.Configuration) (*kube.Kinds, error) {
	if !cfg.Pages.UsesGateway() {
		return nil, nil //nolint:nilnil // documented
	}
	kinds := kube.NewKinds(mgr.GetRESTMapper(), mgr.GetLogger().WithName("pages"), pages.HTTPRouteKind)
	if err := kinds.LookForKinds(); err != nil {
		return nil, err
	}
	if err := mgr.Add(kinds); err != nil {
		return nil, fmt.Errorf("add what waits for the Gateway API to the manager: %w", err)
	}
	return kinds, nil
}

// gather adds what records and collects from jobs of all kinds.
func (s *shared) gather(ctx context.Context, mgr ctrl.Manager) error {
	if err := s.recorder.Setup(ctx, mgr, s.volcano, s.arbiter, s.claims); err != nil {
		return err
	}
	return s.collector.Setup(ctx, mgr)
}

// setupReconcilers hands what is shared to the reconcilers of all kinds. It returns what answers those who ask what would be.
func setupReconcilers(
	ctx context.Context, mgr ctrl.Manager, cfg *config.Configuration, namespace string, claims *claimcache.Reader,
	now func() time.Time,
) (outlook.Tellers, error) {
	s, err := newShared(ctx, mgr, cfg, namespace, claims, now)
	if err != nil {
		return outlook.Tellers{}, err
	}
	err = elastictrainingjob.Setup(ctx, mgr, cfg, elastictrainingjob.Dependencies{
		Arbiter: s.arbiter, Volcano: s.volcano, Scheduler: s.scheduler, Journal: s.recorder, Usage: s.collector, Claims: s.claims,
		HyperNodes: s.hyperNodes, RouteKinds: s.routes, Now: now,
	})
	if err != nil {
		return outlook.Tellers{}, err
	}
	err = mergejob.Setup(ctx, mgr, cfg, mergejob.Dependencies{
		Arbiter: s.arbiter, Volcano: s.volcano, Scheduler: s.scheduler, Journal: s.recorder, Usage: s.collector,
		Now: now,
	})
	if err != nil {
		return outlook.Tellers{}, err
	}
	err = resourcequotaprofile.Setup(ctx, mgr, cfg, resourcequotaprofile.Dependencies{
		Namespace: s.namespace, Arbiter: s.arbiter, Volcano: s.volcano, Spent: s.recorder.SpendingOf, Claims: s.claims,
		IdleTime:       s.collector.IdleTime,
		PodIdleTime:    s.collector.PodIdleTime,
		IdleAsOf:       s.collector.UsageAsOf,
		LedgerVolatile: s.keeping.Volatile, Now: now,
	})
	if err != nil {
		return outlook.Tellers{}, err
	}
	openLedger := func(ctx context.Context) (*ledger.Ledger, error) { return recorder.OpenLedger(ctx, cfg.Ledger) }
	readLedger := func(ctx context.Context) (*ledger.Ledger, error) { return recorder.ReadLedger(ctx, cfg.Ledger) }
	err = costreport.Setup(mgr, cfg, costreport.Dependencies{
		Namespace: s.namespace, Complete: s.recorder.CompleteUntil, OpenLedger: openLedger, LedgerVolatile: s.keeping.Volatile,
		Now: now,
	})
	if err != nil {
		return outlook.Tellers{}, err
	}
	tellers := outlook.Tellers{
		Start: s.arbiter, Change: whatifasker.NewAsker(mgr.GetClient(), cfg, readLedger, s.arbiter.ReadyNodes, now),
	}
	if cfg.Console.Enabled {
		if err := console.Setup(mgr, cfg, s.claims, readLedger, tellers, now); err != nil {
			return outlook.Tellers{}, fmt.Errorf("serve the console: %w", err)
		}
	}
	if err := serveReports(mgr, cfg, readLedger); err != nil {
		return outlook.Tellers{}, fmt.Errorf("serve reports: %w", err)
	}
	if err := priorityclass.Setup(mgr, cfg.Tiers); err != nil {
		return outlook.Tellers{}, err
	}
	return tellers, s.gather(ctx, mgr)
}

// serveReports has reports served beside the metrics, to whom the API server lets get their path: not at all where metrics are
// everybody's.
func serveReports(mgr ctrl.Manager, cfg *config.Configuration, open func(context.Context) (*ledger.Ledger, error)) error {
	if !cfg.Metrics.Secure {
		return nil
	}
	if !cfg.Ledger.IsConfigured() {
		open = nil
	}
	return mgr.AddMetricsServerExtraHandler(reportserver.Path, reportserver.New(open, mgr.GetLogger().WithName("reports")))
}

// cacheSyncTimeout is how long a controller waits for what it watches to be read once.
const cacheSyncTimeout = 15 * time.Minute

// newManager connects to the cluster, for an operator in the namespace.
func newManager(cluster *rest.Config, cfg *config.Configuration, namespace string, log logr.Logger) (ctrl.Manager, error) {
	cluster.UserAgent = fmt.Sprintf("tideline/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
	if cfg.ClientQPS > 0 {
		cluster.QPS, cluster.Burst = float32(cfg.ClientQPS), int(cfg.ClientBurst)
	}
	lease := config.Seconds(cfg.LeaderElection.LeaseDurationSeconds)
	cluster.Wrap(kube.NewFence(rbac.Lease, lease).WrapTransport)
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	objects, err := kube.CachedObjects(cfg.Ledger.UserLabel, rendezvous.HostKeys()...)
	if err != nil {
		return nil, err
	}
	maps.Copy(objects, webhook.CachedObjects(namespace))
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        log,
		Metrics:                       metricsOptions(cfg.Metrics),
		HealthProbeBindAddress:        cfg.Health.BindAddress,
		PprofBindAddress:              cfg.Pprof.BindAddress,
		LeaderElection:                cfg.LeaderElection.Enabled,
		LeaderElectionID:              rbac.Lease,
		LeaderElectionNamespace:       cfg.LeaderElection.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 ptr.To(config.Seconds(cfg.LeaderElection.RenewDeadlineSeconds)),
		RetryPeriod:                   ptr.To(config.Seconds(cfg.LeaderElection.RetryPeriodSeconds)),
		// An API server that keeps gigabytes takes minutes to hand them out. To give up after two would be to begin again.
		Controller: ctrlconfig.Controller{CacheSyncTimeout: cacheSyncTimeout},
		Cache: cache.Options{
			SyncPeriod:       ptr.To(config.Seconds(cfg.ResyncPeriodSeconds)),
			DefaultTransform: volcano.StripOthers(),
			ByObject:         objects,
		},
	})
	switch {
	case kube.IsListenError(err):
		return nil, explainTaken(err, cfg)
	case err != nil:
		return nil, fmt.Errorf("connect to the API server at %s: %w", cluster.Host, err)
	}
	return mgr, nil
}

// metricsOptions say how metrics are served. Without a certificate in the folder where controller-runtime looks for one, it makes
// a self-signed one.
func metricsOptions(m config.Metrics) metricsserver.Options {
	served := metricsserver.Options{BindAddress: m.BindAddress, SecureServing: m.Secure}
	if m.Secure {
		served.FilterProvider = console.LeaveOut(filters.WithAuthenticationAndAuthorization)
	}
	return served
}

func newScheme() (*k8sruntime.Scheme, error) {
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, gang.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}
