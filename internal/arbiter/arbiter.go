// Package arbiter evaluates, for each Volcano Queue in which somebody waits, the one model of capacity over what the caches
// hold, and keeps the verdicts in memory. It never writes: a job's reconciler reads its verdict and is the only writer of its
// job. A verdict wakes a job only when it changed.
package arbiter

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/config"
)

// interval is the least time between two evaluations.
const interval = time.Second

// Arbiter holds the verdicts.
type Arbiter struct {
	reader client.Reader
	tiers  config.Tiers
	log    logr.Logger
	now    func() time.Time
	// served tells whether Volcano itself lets surplus give way.
	served func() bool

	changed chan struct{}
	wake    chan event.GenericEvent

	mu       sync.RWMutex
	verdicts map[types.NamespacedName]capacity.Verdict
	shrinks  map[string]*capacity.Shrink
}

// New returns an Arbiter over the caches that reader reads.
func New(reader client.Reader, tiers config.Tiers, served func() bool, log logr.Logger) *Arbiter {
	return &Arbiter{
		reader: reader, tiers: tiers, log: log, now: time.Now, served: served,
		changed: make(chan struct{}, 1), wake: make(chan event.GenericEvent),
		verdicts: map[types.NamespacedName]capacity.Verdict{}, shrinks: map[string]*capacity.Shrink{},
	}
}

// Verdict is the current verdict of a job; the zero Verdict for a job that has none.
func (a *Arbiter) Verdict(job types.NamespacedName) capacity.Verdict {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.verdicts[job]
}

// Changed tells the arbiter that something it reads has changed.
func (a *Arbiter) Changed() {
	select {
	case a.changed <- struct{}{}:
	default: // It knows already.
	}
}

// Woken yields the jobs whose verdict changed.
func (a *Arbiter) Woken() <-chan event.GenericEvent { return a.wake }

// Start evaluates until ctx ends, when inputs changed or when time alone changes a judgement, at most once per interval.
func (a *Arbiter) Start(ctx context.Context) error {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		case <-again:
		}
		began := a.now()
		next, err := a.evaluate(ctx, began)
		if err != nil {
			a.log.Error(err, "Cannot evaluate; the last verdicts stand")
			next = interval
		}
		again = nil
		if next > 0 {
			again = time.After(max(next, interval))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval - min(interval, a.now().Sub(began))):
		}
	}
}

// evaluate judges every queue in which somebody waits, and returns when time alone changes a judgement; zero for never.
func (a *Arbiter) evaluate(ctx context.Context, now time.Time) (time.Duration, error) {
	inputs, err := a.collect(ctx, now)
	if err != nil {
		return 0, err
	}
	verdicts, shrinks := map[types.NamespacedName]capacity.Verdict{}, map[string]*capacity.Shrink{}
	var again time.Duration
	if len(inputs.dockets) > 0 {
		model := capacity.New(inputs.snapshot)
		for queue, docket := range inputs.dockets {
			docket.Shrink = a.shrinks[queue]
			judged, shrink, next := model.Judge(*docket, now)
			if shrink != nil {
				shrinks[queue] = shrink
			}
			for job, v := range judged {
				verdicts[job] = merge(verdicts[job], v)
			}
			if next > 0 && (again == 0 || next < again) {
				again = next
			}
		}
	}
	a.shrinks = shrinks
	for _, job := range a.replace(verdicts) {
		if !inputs.jobs[job] {
			continue // A gang that is not ours has nobody to wake.
		}
		object := &v1alpha1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
		select {
		case a.wake <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return 0, nil
		}
	}
	return again, nil
}

// merge joins what two queues say of one job: its own queue what it waits for, another's that it must give way.
func merge(x, y capacity.Verdict) capacity.Verdict {
	if x.Waiting == 0 && x.Room == 0 {
		x.Place, x.Waiting, x.Answer, x.Holders, x.Room = y.Place, y.Waiting, y.Answer, y.Holders, y.Room
	}
	if len(y.GiveUp) > 0 {
		x.GiveUp, x.To = append(x.GiveUp, y.GiveUp...), y.To
	}
	return x
}

// replace installs the verdicts and lists the jobs whose verdict changed.
func (a *Arbiter) replace(verdicts map[types.NamespacedName]capacity.Verdict) []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var changed []types.NamespacedName
	for job, v := range verdicts {
		if !reflect.DeepEqual(v, a.verdicts[job]) {
			changed = append(changed, job)
		}
	}
	for job := range a.verdicts {
		if _, still := verdicts[job]; !still {
			changed = append(changed, job)
		}
	}
	a.verdicts = verdicts
	return changed
}
