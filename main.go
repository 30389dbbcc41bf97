// Tideline is a Kubernetes operator for machine-learning training clusters scheduled by Volcano.
//
// `tideline` runs the operator; `tideline doctor` tells whether a cluster is set up for it; `tideline convert -f FILE` turns
// PyTorchJobs of training-operator into ElasticTrainingJobs on standard output, and says on standard error what it could not
// carry over (-f - reads standard input; several -f may be given).
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/controllers/elastictrainingjob"
	"github.com/tideline-io/tideline/internal/config"
	"github.com/tideline-io/tideline/internal/convert"
	"github.com/tideline-io/tideline/internal/doctor"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/kube"
	"github.com/tideline-io/tideline/internal/webhook"
)

// version is stamped at build time with -ldflags "-X main.version=...".
var version = "development"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "convert" {
		os.Exit(convert.Run(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	log := zap.New()
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	if len(os.Args) > 1 && os.Args[1] == "doctor" {
		os.Args = slices.Delete(os.Args, 1, 2)
		os.Exit(examine(ctrl.SetupSignalHandler()))
	}
	if err := run(ctrl.SetupSignalHandler(), log); err != nil {
		log.Error(err, "The operator ends")
		os.Exit(1)
	}
}

// examineTimeout bounds each request of the doctor.
const examineTimeout = 10 * time.Second

// options are the operator's flags.
type options struct {
	metricsAddress, probeAddress string
	leaderElect                  bool
	leaderElectionNamespace      string
	resync                       time.Duration
	webhooks                     webhook.Options
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", "0",
		`address that serves Prometheus metrics, for example ":8080"; "0" serves none`)
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		`address that serves /healthz and /readyz; "0" serves none`)
	flag.BoolVar(&o.leaderElect, "leader-elect", false,
		"let only one of several operators act; needs a Lease in the operator's namespace")
	flag.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the Lease; default: the operator's own when it runs in the cluster")
	flag.DurationVar(&o.resync, "resync-period", 10*time.Hour,
		"how often every object is looked at again although nothing changed")
	o.webhooks.AddFlags(flag.CommandLine)
	flag.Parse()
	return o
}

// leaseName names the Lease by which one of several operators leads. Another may take it when it was not renewed for so long, which
// is controller-runtime's default.
const (
	leaseName     = "tideline.tideline.io"
	leaseDuration = 15 * time.Second
)

func run(ctx context.Context, log logr.Logger) error {
	o := parseFlags()
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find a cluster (set KUBECONFIG, or run in one): %w", err)
	}
	cfg.UserAgent = fmt.Sprintf("tideline/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
	cfg.Wrap(kube.NewFence(leaseName, leaseDuration).Wrap)
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	objects, err := elastictrainingjob.CachedObjects()
	if err != nil {
		return err
	}
	namespace := ownNamespace()
	maps.Copy(objects, webhook.CachedObjects(namespace))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        log,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		Cache: cache.Options{
			SyncPeriod: &o.resync, DefaultTransform: kube.StripMetadata, ByObject: objects,
		},
	})
	if err != nil {
		return fmt.Errorf("connect to the API server at %s: %w", cfg.Host, err)
	}
	if err := metrics.Registry.Register(kube.BuildInfo(version)); err != nil {
		return err
	}
	if err := elastictrainingjob.Setup(ctx, mgr, config.DefaultTiers(), o.webhooks.Enabled); err != nil {
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the CustomResourceDefinitions of Tideline are not installed (make install): %w", err)
		}
		return err
	}
	if o.webhooks.Enabled {
		if err := webhook.Setup(mgr, config.DefaultTiers(), namespace, o.webhooks); err != nil {
			return err
		}
	} else {
		log.Info("Webhooks are off: jobs get no owner by themselves, and nobody checks the owners they name")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	log.Info("Tideline starts", "version", version, "server", cfg.Host)
	return mgr.Start(ctx)
}

// namespaceFile is where a pod finds the namespace of its ServiceAccount.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownNamespace is the operator's namespace: the one it runs in, or the one of the installation when it runs outside the cluster.
func ownNamespace() string {
	if content, err := os.ReadFile(namespaceFile); err == nil && len(content) > 0 {
		return strings.TrimSpace(string(content))
	}
	return rbac.Namespace
}

// Exit codes of the doctor, beside 0 for a cluster that is set up.
const (
	exitFindings    = 1
	exitNotExamined = 2
)

// examine is `tideline doctor`: it prints what it finds about the cluster, and what to do.
func examine(ctx context.Context) int {
	flag.Parse()
	findings, err := diagnose(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Cannot examine the cluster:", err)
		return exitNotExamined
	}
	wrong, err := doctor.Print(os.Stdout, findings)
	if err != nil {
		return exitNotExamined
	}
	if wrong > 0 {
		return exitFindings
	}
	return 0
}

func diagnose(ctx context.Context) ([]doctor.Finding, error) {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster (set KUBECONFIG, or run in one): %w", err)
	}
	cfg.Timeout = examineTimeout
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", cfg.Host, err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", cfg.Host, err)
	}
	facts, err := doctor.Gather(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return doctor.Examine(facts, config.DefaultTiers()), nil
}

func newScheme() (*k8sruntime.Scheme, error) {
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, gang.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}
