// Command localcluster runs a local Kubernetes cluster with Volcano, without a
// container engine. See package cluster for what it consists of.
//
//	go run ./test/cluster/cmd/localcluster up
//	go run ./test/cluster/cmd/localcluster down
//	go run ./test/cluster/cmd/localcluster build
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/prometheus"
)

const usage = `Usage:
  localcluster up [flags]    start a cluster and return when it is ready; it stays up
  localcluster down [flags]  end the cluster of a kubeconfig
  localcluster build [flags] compile all parts into the cache, start none
  localcluster kubectl       print where kubectl is; build it when there is none on PATH

"localcluster up -h", "localcluster down -h" and "localcluster build -h" list the flags.
`

func main() { os.Exit(report(os.Args[1:])) }

// report runs the command and returns its exit status.
func report(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errReported):
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(os.Stderr, "localcluster: interrupted; nothing keeps running")
	default:
		_, _ = fmt.Fprintln(os.Stderr, "localcluster:", err)
	}
	return 1
}

// errReported means that the reason has been printed already.
var errReported = errors.New("reported")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		_, _ = io.WriteString(os.Stderr, usage)
		return errReported
	}
	switch command, args := args[0], args[1:]; command {
	case "up":
		return up(ctx, args)
	case superviseCommand:
		return supervise(ctx, args)
	case "down":
		return down(ctx, args)
	case "build":
		return build(ctx, args)
	case "kubectl":
		return printKubectl(ctx, args)
	case "help", "-h", "-help", "--help":
		_, _ = io.WriteString(os.Stdout, usage)
		return nil
	default:
		_, _ = fmt.Fprintf(os.Stderr, "localcluster: there is no command %q\n%s", command, usage)
		return errReported
	}
}

// build builds the parts that are not there yet.
func build(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	trainingOperator := flags.Bool("training-operator", false, "build training-operator as well, which runs in one suite only")
	notebookController := flags.Bool("notebook-controller", false,
		"build Kubeflow's notebook-controller as well, which runs in one suite only")
	objectStore := flags.Bool("object-store", false, "build the server of S3 as well, which up starts when it is asked to")
	withPrometheus := flags.Bool("prometheus", false, "build Prometheus as well, which runs in tests only, unless it is on PATH")
	olm := flags.Bool("olm", false, "build the Operator Lifecycle Manager as well, which runs in one suite only")
	if err := parse(flags, args); err != nil {
		return err
	}
	builds := []func(context.Context, io.Writer) error{cluster.Build}
	if *trainingOperator {
		builds = append(builds, only(cluster.TrainingOperator))
	}
	if *notebookController {
		builds = append(builds, only(cluster.NotebookController))
	}
	if *objectStore {
		builds = append(builds, cluster.BuildObjectStore)
	}
	if *withPrometheus {
		builds = append(builds, prometheus.Build)
	}
	if *olm {
		builds = append(builds, only(cluster.OLM))
	}
	for _, build := range builds {
		if err := build(ctx, os.Stderr); err != nil {
			return err
		}
	}
	return nil
}

// only builds one part.
func only(p cluster.Part) func(context.Context, io.Writer) error {
	return func(ctx context.Context, log io.Writer) error {
		_, err := p.Build(ctx, log)
		return err
	}
}

// printKubectl prints where kubectl is, which it builds when there is none on PATH.
func printKubectl(ctx context.Context, args []string) error {
	if err := parse(flag.NewFlagSet("kubectl", flag.ContinueOnError), args); err != nil {
		return err
	}
	path, err := cluster.Kubectl(ctx, os.Stderr)
	if err == nil {
		_, err = fmt.Println(path)
	}
	return err
}

// parse reports wrong flags itself, as package flag does.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errReported
	case flags.NArg() > 0:
		return fmt.Errorf("%s takes no arguments, only flags: %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// kubeconfigFlag defines the flag that names a cluster.
func kubeconfigFlag(flags *flag.FlagSet, path *string) {
	flags.StringVar(path, "kubeconfig", cluster.DefaultKubeconfig(),
		"`file` with the admin's kubeconfig, by which the cluster is known")
}

// options are those of the cluster, and what up adds to it.
type options struct {
	cluster.Options
	objectStore bool
}

func clusterOptions(name string, args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&o.GPUNodes, "gpu-nodes", 4, "number of nodes")
	flags.IntVar(&o.GPUsPerNode, "gpus-per-node", 8, "GPUs of each node")
	flags.StringVar(&o.AuditLog, "audit-log", "", "`file` to append the API server's audit log to")
	flags.StringVar(&o.SchedulerConf, "scheduler-conf", "",
		"`file` with the configuration of Volcano's scheduler (default config/volcano/volcano-scheduler.conf)")
	flags.BoolVar(&o.NoVolcano, "no-volcano", false, "leave Volcano out")
	flags.BoolVar(&o.objectStore, "object-store", false, "start a server of S3 as well; it is built the first time, in about 3 min")
	kubeconfigFlag(flags, &o.Kubeconfig)
	if err := parse(flags, args); err != nil {
		return o, err
	}
	if o.GPUNodes == 0 {
		o.GPUNodes = -1 // zero is the default to package cluster
	}
	if o.GPUsPerNode == 0 {
		o.GPUsPerNode = -1
	}
	var err error
	o.Kubeconfig, err = filepath.Abs(o.Kubeconfig)
	return o, err
}

func down(ctx context.Context, args []string) error {
	var path string
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	kubeconfigFlag(flags, &path)
	if err := parse(flags, args); err != nil {
		return err
	}
	err := cluster.Down(ctx, path)
	switch {
	case errors.Is(err, cluster.ErrNotRunning):
		// What was asked for is so: not an error.
		_, _ = fmt.Printf("No local cluster runs with the kubeconfig %s.\n", path)
		return nil
	case err != nil:
		return err
	}
	_, _ = fmt.Printf("The local cluster of %s is gone.\n", path)
	return nil
}
