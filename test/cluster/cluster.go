package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say what cluster to start. The zero value is one with four nodes of
// eight GPUs and Volcano.
type Options struct {
	// GPUNodes is the number of nodes, named gpu-0, gpu-1 and so on. Default 4;
	// a negative number means none.
	GPUNodes int
	// GPUsPerNode is each node's amount of nvidia.com/gpu. Default 8; a negative
	// number means none. CPU, memory and pods of a node are ample.
	GPUsPerNode int
	// Dir is the state folder, which must be empty or a former cluster's. It
	// keeps the logs of all processes after Stop. Default: a folder in the cache,
	// removed at Stop.
	Dir string
	// Kubeconfig is where the admin's kubeconfig is written; it is removed at
	// Stop. Default: Dir/kubeconfig.
	Kubeconfig string
	// AuditLog is the file to which the API server appends one line of JSON per
	// request, at level Metadata and stage ResponseComplete. Default: none.
	AuditLog string
	// SchedulerConf is the file with the configuration of Volcano's scheduler.
	// Default: config/volcano/volcano-scheduler.conf.
	SchedulerConf string
	// SchedulePeriod is the time between two cycles of Volcano's scheduler.
	// Default 1 s; suites that wait for placement are quicker with 100 ms.
	SchedulePeriod time.Duration
	// ClientQPS is how many requests per second Volcano's scheduler and its
	// controllers may send, each. Default: theirs, 50 of a burst of 100.
	ClientQPS int
	// NoVolcano starts a cluster without Volcano's resource definitions,
	// webhooks and processes. See [Cluster.InstallVolcano].
	NoVolcano bool
	// NoScheduler starts Volcano without its scheduler: whoever started the cluster
	// binds pods. Nodes then stay as they are also without a kubelet.
	NoScheduler bool
	// Log receives the progress of the start. Default: none.
	Log io.Writer
}

// A Cluster runs until Stop is called or the program ends.
type Cluster struct {
	options    Options
	repo       string
	parts      map[string]Built
	state      *stateDir
	authority  *authority
	keys       keyFiles
	apiPort    int
	etcdServer string

	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface

	mu        sync.Mutex
	etcd      *Process
	apiServer *Process
	kwok      *Process
	clients   []*Process // of the API server, KWOK among them
	nodes     int        // number of nodes ever added

	stopOnce sync.Once
	stopErr  error
}

// Times that a slow machine may need; a process that has ended is noticed at
// once.
const (
	stepTimeout  = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	// stopGrace is short because the data is thrown away, and because an API
	// server with clients would take 20 s and more.
	stopGrace = 2 * time.Second
)

// Start builds what is not built yet (see [Build]), starts a cluster and returns
// when all of it works: the API server is ready, Volcano's resources are served
// and its webhooks answer, the Queue default is Open and every node is Ready.
//
// When ctx ends before that, or a process fails, nothing keeps running; after a
// failure the logs stay until the next start. A cluster that started outlives
// ctx.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	repo, err := repository()
	if err != nil {
		return nil, err
	}
	if o, err = o.complete(repo); err != nil {
		return nil, err
	}
	c := &Cluster{options: o, repo: repo}
	if c.parts, err = buildParts(ctx, o.Log); err != nil {
		return nil, err
	}
	if c.state, err = openStateDir(ctx, o); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := c.startAll(ctx); err != nil {
		c.stopProcesses()
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), c.state.remove())
		}
		return nil, errors.Join(err, c.state.keep())
	}
	c.logf("the cluster is ready after %s", time.Since(began).Round(100*time.Millisecond))
	return c, nil
}

// complete fills in the defaults and makes paths absolute.
func (o Options) complete(repo string) (Options, error) {
	o.GPUNodes = max(0, cmp.Or(o.GPUNodes, 4))
	o.GPUsPerNode = max(0, cmp.Or(o.GPUsPerNode, 8))
	o.SchedulePeriod = cmp.Or(o.SchedulePeriod, time.Second)
	o.SchedulerConf = cmp.Or(o.SchedulerConf, filepath.Join(repo, "config", "volcano", schedulerConfKey))
	if o.Log == nil {
		o.Log = io.Discard
	}
	for _, path := range []*string{&o.Dir, &o.Kubeconfig, &o.AuditLog, &o.SchedulerConf} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = absolute
	}
	if o.Kubeconfig == "" {
		return o, nil
	}
	return o, checkKubeconfigPath(o.Kubeconfig)
}

func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	return parallel(ctx,
		func(ctx context.Context) error {
			if c.options.NoVolcano {
				return nil
			}
			return c.InstallVolcano(ctx)
		},
		func(ctx context.Context) error {
			if err := c.WaitFor(ctx, "kube-apiserver to be ready", c.apiServerReady, c.apiServer); err != nil {
				return err
			}
			return parallel(ctx, c.startControllers, c.startNodes)
		},
	)
}

func (c *Cluster) startNodes(ctx context.Context) (err error) {
	if c.kwok, err = c.startKwok(); err != nil {
		return err
	}
	_, err = c.AddNodes(ctx, c.options.GPUNodes, c.options.GPUsPerNode)
	return err
}

// Stop ends all processes and removes the kubeconfig and, unless the caller
// chose it, the state folder. The error names processes that had ended on their
// own before, with the last lines of their logs. Only the first call counts.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		failure := c.failure()
		c.stopProcesses()
		c.stopErr = errors.Join(failure, c.state.remove())
	})
	return c.stopErr
}

// stopProcesses ends the clients of the API server first, so that none of them
// waits for it.
func (c *Cluster) stopProcesses() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var group sync.WaitGroup
	for _, p := range c.clients {
		group.Go(func() { p.stop(stopGrace) })
	}
	group.Wait()
	for _, p := range []*Process{c.apiServer, c.etcd} {
		if p != nil {
			p.stop(stopGrace)
		}
	}
}

// startClient starts a program that talks to the API server as an admin called
// user.
func (c *Cluster) startClient(p Part, program, user string, args ...string) (*Process, error) {
	kubeconfig, err := c.WriteKubeconfig(user)
	if err != nil {
		return nil, err
	}
	proc, err := StartProcess(c.state.path, program, c.parts[p.name].Program(program),
		append([]string{"--kubeconfig=" + kubeconfig}, args...))
	if err == nil {
		c.addClient(proc)
	}
	return proc, err
}

// Processes are the ids of the processes of the cluster by the names of their
// programs, and those of servers and programs that were started beside it.
func (c *Cluster) Processes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[string]int{}
	for _, p := range append([]*Process{c.etcd, c.apiServer}, c.clients...) {
		ids[p.name] = p.cmd.Process.Pid
	}
	return ids
}

func (c *Cluster) addClient(p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = append(c.clients, p)
}

// failure returns an error that names the processes which have ended on their
// own.
func (c *Cluster) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, p := range append([]*Process{c.etcd, c.apiServer}, c.clients...) {
		if p != nil {
			errs = append(errs, p.Failure())
		}
	}
	return errors.Join(errs...)
}

// WaitFor polls ready until it returns nil. It gives up when ctx ends, after
// stepTimeout, and when one of the processes that it needs has ended.
func (c *Cluster) WaitFor(ctx context.Context, what string, ready func(context.Context) error, needs ...*Process) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		for _, p := range needs {
			if failure := p.Failure(); failure != nil {
				return failure
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s, last: %w; the logs are in %s",
				time.Since(began).Round(time.Second), what, err, c.state.path)
		case <-time.After(pollInterval):
		}
	}
}

func (c *Cluster) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.options.Log, format+"\n", args...)
}

// parallel runs the functions at the same time and returns when all have
// returned. The first error ends the context of the others and is returned.
func parallel(ctx context.Context, functions ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
