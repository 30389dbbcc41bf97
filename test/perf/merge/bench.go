package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// A bench runs the experiment on one cluster.
type bench struct {
	experiment
	*testutil.World
	scale  float64 // simulated seconds per second
	commit string  // that is measured
	stores string  // folder of what MergeJobs read
	log    io.Writer

	results []result
	costs   *costs
}

// run runs a strategy in pools of these sizes, as many side by side as the strategy allows.
func (b *bench) run(ctx context.Context, s strategy, sizes []int) error {
	for together := range slices.Chunk(sizes, s.sideBySide) {
		_, _ = fmt.Fprintf(b.log, "%s: pools of %v machines, %s\n", s.title, together,
			clock{scale: b.scale}.real(b.horizon).Round(time.Second))
		if err := b.round(ctx, s, together); err != nil {
			return err
		}
	}
	return nil
}

// round runs pools side by side until the horizon.
func (b *bench) round(ctx context.Context, s strategy, sizes []int) error {
	pools, byName := []*pool{}, map[string]*pool{}
	probe := strategy{key: "probe-" + s.key + "-" + strconv.Itoa(sizes[0]), gang: true}
	for i, size := range append([]int{b.machines}, sizes...) {
		of := s
		if i == 0 {
			of = probe
		}
		p, err := newPool(ctx, b.experiment, b.World, of, size)
		if err != nil {
			return err
		}
		p.costs = b.costs
		pools, byName[p.name] = append(pools, p), p
	}
	// Time begins when all is ready; handlers read it.
	began := clock{began: time.Now(), scale: b.scale}
	for _, p := range pools {
		p.clock = began
	}
	running, cancel := context.WithTimeout(ctx, began.real(b.horizon))
	defer cancel()
	if err := b.watch(running, byName); err != nil {
		return err
	}
	failures := make(chan error)
	for _, p := range pools {
		go func() { failures <- b.play(running, p) }()
	}
	var err error
	for range pools {
		// The end of the time is how pools end.
		if failure := <-failures; failure != nil && !errors.Is(failure, context.DeadlineExceeded) {
			err = errors.Join(err, failure)
			cancel()
		}
	}
	if err != nil || ctx.Err() != nil {
		return cmp.Or(err, ctx.Err())
	}
	for _, p := range pools[1:] {
		r := b.result(s, p.machines, p.record)
		r.commit = b.commit
		b.results = append(b.results, r)
		_, _ = fmt.Fprintf(b.log, "  %2d machines: %2d late, oldest %.1f h, %d deadlocks, %d merged, waits of %.0f and %.0f min\n",
			r.pool, r.late, r.oldest.Hours(), r.deadlocks, r.merged, r.waitP50.Minutes(), r.waitP99.Minutes())
	}
	return b.clear(ctx, pools)
}

// play starts the merges of a pool until the context ends.
func (b *bench) play(ctx context.Context, p *pool) error {
	switch {
	case p.strategy.title == "":
		return b.probe(ctx, p)
	case p.strategy.tideline:
		return p.runMergeJobs(ctx, b.stores)
	default:
		return p.runTrainings(ctx)
	}
}

// probe measures what a merge costs for which there is room, again and again.
func (b *bench) probe(ctx context.Context, p *pool) error {
	for number := 0; ; number++ {
		asked := p.clock.now()
		name, err := p.gather(ctx, 0, number)
		if err != nil {
			return err
		}
		b.costs.add(p.clock.now() - asked)
		if err := p.delete(ctx, 0, name); err != nil {
			return err
		}
		if err := p.clock.until(ctx, asked+p.shortest); err != nil {
			return err
		}
	}
}

// watch tells the pools of their pods until the context ends.
func (b *bench) watch(ctx context.Context, pools map[string]*pool) error {
	clients, err := kubernetes.NewForConfig(b.Config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = modelLabel }))
	see := func(object any, gone bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if pod, ok := object.(*corev1.Pod); ok && pools[pod.Namespace] != nil {
			pools[pod.Namespace].see(pod, gone)
		}
	}
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o, false) },
		UpdateFunc: func(_, o any) { see(o, false) },
		DeleteFunc: func(o any) { see(o, true) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the pods could not be listed")
	}
	return nil
}

// clear removes the pools and waits until no pod is left that would disturb the next ones.
func (b *bench) clear(ctx context.Context, pools []*pool) error {
	for _, p := range pools {
		if err := p.remove(ctx); err != nil {
			return err
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := b.Client.List(ctx, pods, client.HasLabels{modelLabel}, client.Limit(1))
		return len(pods.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the pods of a round are gone: %w", err)
	}
	return nil
}

// costs are what it took, in simulated time, until merges had their machines for which there was room.
type costs struct {
	mu  sync.Mutex
	all []time.Duration
}

func (c *costs) add(cost time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, cost)
}

// quantile of the costs so far.
func (c *costs) quantile(q float64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return quantile(slices.Sorted(slices.Values(c.all)), q)
}
