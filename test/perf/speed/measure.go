package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// What is done, and where.
const (
	beside, large = "beside", "large"

	nodes, gpusPerNode = 256, 8
	// qps is how many requests a second Volcano's programs may send: more than the API server answers here.
	qps = 2000
	// clients is how many requests the client sends at a time.
	clients    = 16
	clientUser = "client"
	// namespace has all jobs; of the workload large, namespaces whose names begin so have perNamespace each.
	namespace    = "speed"
	perNamespace = 100
	// profiled is for how long the operator's work on new jobs is profiled.
	profiled = 30 * time.Second
)

// Names of processes of the cluster.
const apiServer, scheduler, controllers = "kube-apiserver", "vc-scheduler", "vc-controller-manager"

// counts are requests.
type counts struct{ writes, events, reads int }

func count(requests []testutil.Request, user string) (c counts) {
	for _, r := range requests {
		switch {
		case r.User != user:
		case testutil.Event(r):
			c.events++
		case testutil.Write(r):
			c.writes++
		case testutil.Read(r):
			c.reads++
		}
	}
	return c
}

// figures are what one subject needed once.
type figures struct {
	jobs int
	// stalled says why there are no other figures; empty if there are.
	stalled string
	// running is how long it took until all pods ran, deleted how long until all were gone after that.
	running, deleted time.Duration
	// made are requests from the first job until nothing more was written, rest those of the time after that, and removed those of
	// the deletion.
	made, rest, removed counts
	// Processor time from the first job until nothing more was written: of the subject, of Volcano's controllers, of the scheduler
	// and of the API server; and of the subject while all ran.
	cpu, controllers, scheduler, apiServer, idle time.Duration
	// rested is how long nothing happened.
	rested time.Duration
	// memory of the subject while all ran.
	memory memory
	// restart is how long after its process was started anew the operator wrote something for a job that came meanwhile; 0 where
	// that is not measured.
	restart time.Duration
}

func (f figures) String() string {
	if f.stalled != "" {
		return f.stalled
	}
	n := float64(f.jobs)
	return fmt.Sprintf("all ran after %.1f s; a job: %.2f writes, %.2f events, %.2f reads, %.1f ms of CPU; %.0f MB; "+
		"deleted in %.1f s; at rest %d writes, %d reads; %.1f s from a restart to the first write", f.running.Seconds(),
		float64(f.made.writes)/n, float64(f.made.events)/n, float64(f.made.reads)/n, f.cpu.Seconds()*1000/n,
		float64(f.memory.peak)/1e6, f.deleted.Seconds(), f.rest.writes+f.rest.events, f.rest.reads, f.restart.Seconds())
}

// run is one subject on its cluster.
type run struct {
	*testutil.World
	options  options
	jobs     int
	subject  subject
	cluster  *cluster.Cluster
	dir      string
	pods     *pods
	audit    *testutil.Audit
	operator *testutil.Operator
	pprof    string
}

// measure runs so many jobs of a subject on a cluster of its own. Of one that stalls it returns why; Tideline may not.
func measure(ctx context.Context, o options, s subject, jobs int) (f figures, err error) {
	r := &run{options: o, subject: s, jobs: jobs}
	if r.dir, err = os.MkdirTemp("", "tideline-speed-"); err != nil {
		return f, err
	}
	defer func() {
		err = errors.Join(err, r.stop())
		if err == nil {
			err = os.RemoveAll(r.dir)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.begin(ctx); err != nil {
		return f, err
	}
	f, err = r.live(ctx)
	if stalled := (stalledError{}); s.key != tideline && errors.As(err, &stalled) {
		f, err = figures{jobs: jobs, stalled: stalled.Error()}, nil
	}
	return f, err
}

// begin starts the cluster and the subject.
func (r *run) begin(ctx context.Context) (err error) {
	log := filepath.Join(r.dir, "audit.log")
	o := cluster.Options{
		GPUNodes: nodes, GPUsPerNode: gpusPerNode, AuditLog: log, Dir: filepath.Join(r.dir, "cluster"), ClientQPS: qps,
	}
	if r.options.workload == large {
		o.GPUNodes, o.NoScheduler = -1, true
	}
	if r.cluster, err = cluster.Start(ctx, o); err != nil {
		return err
	}
	kubeconfig, err := r.cluster.WriteKubeconfig(clientUser)
	if err != nil {
		return err
	}
	if r.World, err = testutil.NewWorld(kubeconfig, log); err != nil {
		return err
	}
	for _, name := range r.namespaces() {
		if err := r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	if r.pods, err = watchPods(ctx, r.cluster.RESTConfig()); err != nil {
		return err
	}
	if r.options.workload == large {
		if err := r.drive(ctx); err != nil {
			return err
		}
	}
	if r.subject.start != nil {
		if err := r.subject.start(ctx, r); err != nil {
			return err
		}
	}
	if r.options.workload == large {
		r.audit, err = r.AuditUser(r.subject.user) // The log of 10,000 jobs has a million requests of others.
	} else {
		r.audit, err = r.Audit(namespace)
	}
	return err
}

func (r *run) stop() (err error) {
	if r.operator != nil {
		err = errors.Join(r.operator.Stop(), r.operator.Misbehavior())
	}
	if r.cluster != nil {
		err = errors.Join(err, r.cluster.Stop())
	}
	return err
}

// live has all jobs come, run, rest and go.
func (r *run) live(ctx context.Context) (figures, error) {
	f := figures{jobs: r.jobs}
	before, err := r.used()
	if err != nil {
		return f, err
	}
	var profile errgroup.Group
	profile.Go(func() error {
		return r.keepProfile(ctx, "profile?seconds="+strconv.Itoa(int(profiled.Seconds())), r.profile("cpu"))
	})
	began := time.Now()
	if err := r.each(ctx, func(o client.Object) error { return r.Client.Create(ctx, o) }); err != nil {
		return f, err
	}
	if err := r.pods.await(ctx, most*r.jobs); err != nil {
		return f, err
	}
	f.running = time.Since(began)
	if err := r.awaitQuiet(ctx); err != nil {
		return f, err
	}
	if err := errors.Join(r.note(&f, before), r.leaveAlone(ctx, &f), profile.Wait()); err != nil {
		return f, err
	}
	if err := r.keepProfile(ctx, "heap?gc=1", r.profile("heap")); err != nil {
		return f, err
	}
	if r.options.workload == large {
		if err := r.restart(ctx, &f); err != nil {
			return f, err
		}
		// Their deletion takes as long again.
		_, _ = fmt.Fprintf(os.Stderr, "%d jobs, which are deleted now: %s; at rest %.2f %% of a processor\n",
			f.jobs, f, 100*f.idle.Seconds()/f.rested.Seconds())
	}
	return f, r.remove(ctx, &f)
}

// restart stops the operator, creates one more job, and starts the operator anew. What it needs to start counts in its memory.
func (r *run) restart(ctx context.Context, f *figures) error {
	if err := r.operator.Stop(); err != nil {
		return err
	}
	job := r.job(r.jobs)
	late := r.subject.objects(job)
	for _, o := range late {
		if err := r.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := r.operator.Start(ctx); err != nil {
		return err
	}
	if err := r.pods.await(ctx, most*(r.jobs+1)); err != nil {
		return err
	}
	if err := r.awaitQuiet(ctx); err != nil {
		return err
	}
	requests, err := r.audit.Select(testutil.From(began))
	if err != nil {
		return err
	}
	if f.restart = firstWrite(requests, r.subject.user, job.Name).Sub(began); f.restart < 0 {
		return fmt.Errorf("the operator made the pods of %s without writing", job)
	}
	anew, err := memoryOf(r.operator.Process())
	if err != nil {
		return err
	}
	f.memory.peak = max(f.memory.peak, anew.peak)
	for _, o := range late {
		if err := r.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	return r.pods.await(ctx, most*r.jobs)
}

// firstWrite is when a user first wrote something for a job; zero for never.
func firstWrite(requests []testutil.Request, user, job string) (first time.Time) {
	for _, q := range requests {
		if q.User == user && testutil.Write(q) && strings.HasPrefix(q.Name, job) && (first.IsZero() || q.Received.Before(first)) {
			first = q.Received
		}
	}
	return first
}

// job is where a job is, and its name. Many jobs are spread over namespaces, as they are over teams: a controller of Kubernetes
// compares each pod with all Services of its namespace.
func (r *run) job(i int) types.NamespacedName {
	name := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("job-%05d", i)}
	if r.options.workload == large {
		name.Namespace = fmt.Sprintf("%s-%03d", namespace, i/perNamespace)
	}
	return name
}

// namespaces are those of all jobs, and of one that comes later.
func (r *run) namespaces() (all []string) {
	for i := range r.jobs + 1 {
		all = append(all, r.job(i).Namespace)
	}
	return slices.Compact(all)
}

// profile is the file of a profile of the operator.
func (r *run) profile(of string) string {
	return fmt.Sprintf("%s-%d-%s.pprof", r.options.workload, r.jobs, of)
}

// note sets what was needed until now.
func (r *run) note(f *figures, before map[string]time.Duration) error {
	after, err := r.used()
	if err != nil {
		return err
	}
	requests, err := r.audit.Select()
	if err != nil {
		return err
	}
	f.made = count(requests, r.subject.user)
	f.cpu = after[r.subject.process] - before[r.subject.process]
	f.controllers = after[controllers] - before[controllers]
	f.scheduler, f.apiServer = after[scheduler]-before[scheduler], after[apiServer]-before[apiServer]
	return nil
}

// leaveAlone waits while all jobs run.
func (r *run) leaveAlone(ctx context.Context, f *figures) error {
	before, err := r.used()
	if err != nil {
		return err
	}
	since := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.options.rest):
	}
	after, err := r.used()
	if err != nil {
		return err
	}
	f.rested = time.Since(since)
	requests, err := r.audit.Select(testutil.From(since))
	if err != nil || r.subject.process == "" {
		return err
	}
	f.rest = count(requests, r.subject.user)
	f.idle = after[r.subject.process] - before[r.subject.process]
	f.memory, err = memoryOf(r.processes()[r.subject.process])
	return err
}

// remove deletes all jobs, and waits until their pods are gone.
func (r *run) remove(ctx context.Context, f *figures) error {
	began := time.Now()
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	if err := r.each(ctx, func(o client.Object) error { return r.Client.Delete(ctx, o, background) }); err != nil {
		return err
	}
	if err := r.pods.await(ctx, 0); err != nil {
		return err
	}
	f.deleted = time.Since(began)
	requests, err := r.audit.Select(testutil.From(began))
	f.removed = count(requests, r.subject.user)
	return err
}

// each does something to all objects of all jobs, with so many jobs at a time as there are clients.
func (r *run) each(ctx context.Context, do func(client.Object) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range r.jobs {
		group.Go(func() error {
			for _, o := range r.subject.objects(r.job(i)) {
				if err := errors.Join(ctx.Err(), do(o)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// quiet is for how long the subject writes nothing once its work is done.
const quiet = 5 * time.Second

// awaitQuiet waits until the subject has written nothing for that long.
func (r *run) awaitQuiet(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, quiet, 10*time.Minute, false, func(context.Context) (bool, error) {
		asked := time.Now() // Before the log is read, which takes longer than a second after many requests.
		requests, err := r.audit.Select(testutil.From(asked.Add(-quiet)))
		made := count(requests, r.subject.user)
		return made.writes+made.events == 0, err
	})
}

// processes are those of the cluster and of the subject.
func (r *run) processes() map[string]int {
	ids := maps.Clone(r.cluster.Processes())
	if r.operator != nil {
		ids[r.subject.process] = r.operator.Process()
	}
	return ids
}

// used is the processor time of each process so far.
func (r *run) used() (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for name, id := range r.processes() {
		cpu, err := cpuOf(id)
		if err != nil {
			return nil, fmt.Errorf("read the processor time of %s: %w", name, err)
		}
		used[name] = cpu
	}
	return used, nil
}

// get reads what is at an address.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(response.Status))
	}
	return content, errors.Join(err, response.Body.Close())
}
