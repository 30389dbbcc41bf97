// Package arbiter evaluates, for each Volcano Queue in which somebody waits, the one model of capacity over what the caches
// hold, and keeps the verdicts in memory. It never writes: a job's reconciler reads its verdict and is the only writer of its
// job. A verdict wakes a job only when it changed.
package arbiter

import (
	"context"
	"maps"
	"reflect"
	"slices"
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

const (
	// interval is the least time between two evaluations.
	interval = time.Second
	// figuresInterval is how long a job sleeps on while only figures of its verdict change.
	figuresInterval = time.Minute
	// farPlace stands for every place in a line that is not told soon.
	farPlace = 11
)

// telling is the verdict with which a job was last woken.
type telling struct {
	verdict capacity.Verdict
	at      time.Time
}

// Arbiter holds the verdicts.
type Arbiter struct {
	reader client.Reader
	config *config.Configuration
	log    logr.Logger
	now    func() time.Time
	// served tells whether Volcano itself lets surplus give way.
	served func() bool

	changed chan struct{}
	wake    chan event.GenericEvent

	mu       sync.RWMutex
	verdicts map[types.NamespacedName]capacity.Verdict
	shrinks  map[string]capacity.Shrinks
	told     map[types.NamespacedName]telling
}

// New returns an Arbiter over the caches that reader reads.
func New(reader client.Reader, cfg *config.Configuration, served func() bool, log logr.Logger) *Arbiter {
	return &Arbiter{
		reader: reader, config: cfg, log: log, now: time.Now, served: served,
		changed: make(chan struct{}, 1), wake: make(chan event.GenericEvent),
		verdicts: map[types.NamespacedName]capacity.Verdict{}, shrinks: map[string]capacity.Shrinks{},
		told: map[types.NamespacedName]telling{},
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
	verdicts, shrinks := map[types.NamespacedName]capacity.Verdict{}, map[string]capacity.Shrinks{}
	again := inputs.again
	if len(inputs.dockets)+len(inputs.growers)+len(inputs.preempted) > 0 {
		model := capacity.New(inputs.snapshot)
		waiting := inputs.waiting()
		if g := model.Resume(inputs.preempted, waiting); g != nil {
			verdicts[g.Job] = capacity.Verdict{Resume: true, Model: g.Model}
			waiting = append(waiting, g)
		}
		for job, limit := range model.Share(inputs.growers, waiting) {
			verdicts[job] = capacity.Verdict{SurplusLimit: limit}
		}
		for _, queue := range slices.Sorted(maps.Keys(inputs.dockets)) {
			docket := inputs.dockets[queue]
			docket.Shrinks = a.shrinks[queue]
			judged, standing, next := model.Judge(*docket, now)
			shrinks[queue] = standing
			for job, v := range judged {
				verdicts[job] = merge(verdicts[job], v)
			}
			again = sooner(again, next)
		}
	}
	a.shrinks = shrinks
	if len(verdicts) > 0 && (again == 0 || again > figuresInterval) {
		again = figuresInterval // Figures that changed meanwhile are told then.
	}
	for _, job := range a.replace(verdicts, now) {
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

// merge joins what two judgements say of one job: its own queue what it waits for, another's that it must give way, and the
// sharing of room how far it may grow.
func merge(x, y capacity.Verdict) capacity.Verdict {
	if y.Waiting > 0 {
		x.Place, x.Waiting, x.Answer, x.Holders, x.From, x.Model = y.Place, y.Waiting, y.Answer, y.Holders, y.From, y.Model
	}
	if y.Preempt != nil {
		x.Preempt = y.Preempt
	}
	if len(y.GiveUp) > 0 {
		x.GiveUp, x.To = append(x.GiveUp, y.GiveUp...), y.To
	}
	return x
}

// replace installs the verdicts and lists the jobs to wake: those of which something changed that is told or done soon, and, once
// in a while, those of which only figures changed. In a long line every newcomer changes the figures of all.
func (a *Arbiter) replace(verdicts map[types.NamespacedName]capacity.Verdict, now time.Time) []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var wake []types.NamespacedName
	for job, v := range verdicts {
		told, known := a.told[job]
		if !known || !reflect.DeepEqual(soon(v), soon(told.verdict)) ||
			(now.Sub(told.at) >= figuresInterval && !reflect.DeepEqual(v, told.verdict)) {
			wake = append(wake, job)
			a.told[job] = telling{verdict: v, at: now}
		}
	}
	for job := range a.told {
		if _, still := verdicts[job]; !still {
			wake = append(wake, job)
			delete(a.told, job)
		}
	}
	a.verdicts = verdicts
	return wake
}

// soon is what of a verdict is told or done soon.
func soon(v capacity.Verdict) capacity.Verdict {
	answer := capacity.Answer{Unknown: v.Answer.Unknown, Fits: v.Answer.Fits}
	if v.Answer.Leaving != nil && v.Place < farPlace {
		answer.Leaving = capacity.Amounts{} // That it waits for who leaves, not for how much.
	}
	return capacity.Verdict{
		Place: min(v.Place, farPlace), Answer: answer,
		SurplusLimit: v.SurplusLimit, GiveUp: v.GiveUp, To: v.To, From: v.From,
		Preempt: v.Preempt, Resume: v.Resume, Model: v.Model,
	}
}
