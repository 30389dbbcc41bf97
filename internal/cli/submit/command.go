// Package submit is the command that makes a training of a script, and follows it to its end.
package submit

import (
	"bytes"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

const long = `Makes an ElasticTrainingJob of a script, and a ConfigMap that carries it; follows the job's story on
standard error and the log of its worker 0 on standard output, and says why it waits. A script that ends in .py is run by
torchrun, one in .sh by sh. What follows the script goes to it. The ConfigMap is deleted with the job. Ctrl-C leaves the
job alone.

Everything is checked before anything is changed: here, and by the API server.

Exit code: 0 when the job succeeded, or was created with --follow=false; 1 when it failed, was deleted, or cannot be
created; 2 when the command is wrong; 130 after Ctrl-C.`

// requestTimeout bounds each request.
const requestTimeout = 15 * time.Second

// options are the flags as they were typed.
type options struct {
	name, image, workers, device, cpu, memory, tier, task string
	gpus                                                  int64
	env, data                                             []string
	dryRun, output                                        string
	follow                                                bool

	logs  func(*cli.Connection, *request) (openLog, error)
	every time.Duration
}

// Command is `tideline submit`. Clock says the present.
func Command(connection *cli.Connection, clock func() time.Time) *cobra.Command {
	return commandWith(connection, clock, clusterLogs, lookEvery)
}

// commandWith is the command with logs of its own, and with another time between two looks.
func commandWith(
	connection *cli.Connection, clock func() time.Time, logs func(*cli.Connection, *request) (openLog, error), every time.Duration,
) *cobra.Command {
	o := options{logs: logs, every: every}
	cmd := &cobra.Command{
		Use:   "submit SCRIPT [ARGUMENT...]",
		Short: "Train by a script, and follow it to its end",
		Long:  long,
		Example: `  tideline submit train.py --image registry.example/ads/ctr:1.4 --workers 2..8 --gpus 1 -n ads -- --epochs 3
  tideline submit train.py --image registry.example/ads/ctr:1.4 --dry-run=client -o yaml > job.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, connection, args, clock) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.image, "image", "", "`image` of the workers; required")
	flags.StringVar(&o.name, "name", "", "`name` of the job; default: the script's, and five random characters")
	flags.StringVar(&o.workers, "workers", "1", "`MIN..MAX` workers, or one number: trains with no fewer, and grows to so many")
	flags.Int64Var(&o.gpus, "gpus", 1, "how many `accelerators` each worker has, from 0 to 64")
	flags.StringVar(&o.device, "gpu-resource", "nvidia.com/gpu", "`name` of the accelerator's resource")
	flags.StringVar(&o.cpu, "cpu", "", "processors that each worker asks for, as a `quantity` such as 4 or 500m")
	flags.StringVar(&o.memory, "memory", "", "memory of each worker, as a `quantity` such as 16Gi")
	flags.StringVar(&o.tier, "tier", "", "`name` of the tier; default: the profile's")
	flags.StringVar(&o.task, "task", "", "`name` by which use is recorded; default: that of the job")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "`NAME=VALUE` of a variable of the workers; may be given several times")
	flags.StringArrayVar(&o.data, "data", nil, "`NAME:VERSION[:PATH]` of a data set of the profile; may be repeated")
	flags.StringVar(&o.dryRun, "dry-run", "none",
		"`where` to stop: client prints the objects, server has them judged; none does not stop")
	flags.StringVarP(&o.output, "output", "o", "yaml", "`format` of --dry-run=client: yaml or json")
	flags.BoolVar(&o.follow, "follow", true, "follow the job to its end; false returns when it is created")
	for name, values := range map[string][]string{"dry-run": {"none", "client", "server"}, "output": {"yaml", "json"}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	connection.AddFlags(cmd)
	connection.AddNamespaceFlag(cmd)
	return cli.ForJobs(cmd)
}

// request reads what was typed. Nothing of a cluster is needed for it but the name of the namespace.
func (o *options) request(connection *cli.Connection, args []string) (*request, error) {
	if len(args) == 0 {
		return nil, cli.Usagef("name a script")
	}
	r := &request{script: filepath.Base(args[0]), arguments: args[1:], image: o.image, tier: o.tier, task: o.task}
	if o.image == "" {
		return nil, cli.Usagef("--image: name the image of the workers")
	}
	if o.dryRun != "none" && o.dryRun != "client" && o.dryRun != "server" {
		return nil, cli.Usagef("--dry-run %q: it is none, client or server", o.dryRun)
	}
	if o.output != "yaml" && o.output != "json" {
		return nil, cli.Usagef("-o %q: it is yaml or json", o.output)
	}
	err := checkName(r.script)
	if err == nil {
		r.min, r.max, err = parseWorkers(o.workers)
	}
	if err == nil {
		r.env, err = parseEnvironment(o.env)
	}
	if err == nil {
		r.data, err = parseData(o.data)
	}
	if err == nil {
		r.resources, err = parseResources(o.gpus, o.device, o.cpu, o.memory)
	}
	if err == nil {
		r.content, err = readScript(args[0])
	}
	if err != nil {
		return nil, err
	}
	name := o.name
	if name == "" {
		name = nameFrom(r.script, rand.String(5)) //nolint:mnd // as Kubernetes has it
	}
	key, err := connection.Name("job", []string{name})
	r.namespace, r.name = key.Namespace, key.Name
	return r, err
}

func (o *options) run(cmd *cobra.Command, connection *cli.Connection, args []string, clock func() time.Time) error {
	r, err := o.request(connection, args)
	if err != nil {
		return err
	}
	job, scripts := r.objects()
	if err := check(cmd.Context(), job); err != nil {
		return err
	}
	if o.dryRun == "client" {
		written, err := write(job, scripts, o.output == "json")
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(written)
		return err
	}
	api, err := connection.Client(requestTimeout)
	if err != nil {
		return err
	}
	if o.dryRun == "server" {
		if err := try(cmd.Context(), api, job, scripts); err != nil {
			return err
		}
		cli.Tell(cmd.ErrOrStderr(), job.Namespace+"/"+job.Name+" would be created\n")
		return nil
	}
	var open openLog
	if o.follow {
		if open, err = o.logs(connection, r); err != nil {
			return err
		}
	}
	if err := create(cmd.Context(), api, job, scripts); err != nil {
		return err
	}
	cli.Tell(cmd.ErrOrStderr(), job.Namespace+"/"+job.Name+" is created\n")
	if !o.follow {
		return nil
	}
	f := &follower{
		api: api, story: cmd.ErrOrStderr(), clock: clock, every: o.every,
		log: &logReader{open: open, to: cmd.OutOrStdout(), say: cmd.ErrOrStderr(), every: o.every},
	}
	return f.follow(cmd.Context(), job)
}

// clusterLogs opens the log of worker 0.
func clusterLogs(connection *cli.Connection, r *request) (openLog, error) {
	config, err := connection.Config()
	if err != nil {
		return nil, err
	}
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	return logsOf(config, r.namespace, rendezvous.WorkerName(job, 0))
}

func printJSON(answer any) ([]byte, error) {
	var b bytes.Buffer
	err := cli.PrintJSON(&b, answer)
	return b.Bytes(), err
}
