// Package collector collects the use of tasks from Prometheus, keeps it in the ledger, and has it when a job of a task
// starts. It never delays a job: if Prometheus or the ledger fails, jobs start with what is known.
package collector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/promquery"
	"github.com/tideline-io/tideline/internal/usage/recorder"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const (
	// lateness is how long after the end of a day all that Prometheus will ever have of it is there, and how late a collection may
	// be.
	lateness = 10 * time.Minute
	// turnLength is the time between two checks for work. Turns are counted instead of times, so that setting the clock has no
	// effect.
	turnLength = 5 * time.Second
	// lastRest is the longest pause after a failure, in turns: five minutes. The first is one turn.
	lastRest = 60
	// batch is how many kills are recorded in one transaction.
	batch = 2000
	// How long the ledger may take to open, to record, to answer, and to tell all that it has of the window.
	openTimeout, recordTimeout, readTimeout, loadTimeout = 30 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute
	// lastTimeout is how long the last may take: another operator begins to lead once this one has ended.
	lastTimeout = 2 * time.Second
)

// Collect is [promquery.Client.Collect]: with an error, what it returns is of those roles that are known nevertheless.
type Collect func(ctx context.Context, day time.Time, stays []promquery.Stay, now time.Time) (map[sizing.Key]sizing.Usage, error)

// Ledger is what the collector needs of one: a [ledger.Ledger].
type Ledger interface {
	RecordEntries(context.Context, ledger.Entries) error
	TasksOf(ctx context.Context, day time.Time, kinds ...string) ([]ledger.TaskDay, error)
	StaysOf(context.Context, ...ledger.TaskDay) ([]ledger.Stay, error)
	PartDays(context.Context, ledger.PartQuery, func(ledger.PartDay) error) error
	OOMKills(ctx context.Context, from, to time.Time) ([]ledger.OOMKill, error)
	KillLimits(context.Context) (map[ledger.Part]int64, error)
	CollectedDays(ctx context.Context, from, to time.Time) ([]ledger.Collected, error)
	Close() error
}

// Collector collects usage in the leading operator only. Without Prometheus or a ledger it does nothing, and logs so.
type Collector struct {
	open    func(context.Context) (Ledger, error)
	collect Collect
	// complete is until when the ledger has all stays; zero before it has.
	complete func() time.Time
	// profiles reads for how many days back it counts what was used.
	profiles func(context.Context) (*windows, error)
	// jobs are those in the cache.
	jobs     []toolscache.Store
	config   *config.Configuration
	log      logr.Logger
	now      func() time.Time
	began    time.Time
	metrics  *metrics
	mostPods int64

	// Only the goroutine that collects uses the fields below.
	// turns since the last round began, and failed holds while what failed in it is tried again.
	turns  int
	failed bool
	// reading and asking are the rests after failures: of the ledger, and of a round.
	reading, asking rest
	// days are those that were not finished.
	days map[time.Time]*progress
	// windows are those that were read last.
	windows *windows
	// recorded are kills that the ledger has and memory may not have.
	recorded []ledger.OOMKill

	mu     sync.Mutex
	memory *memory
	// told are the kills that may not be in memory, and waiting those of them that are not in the ledger.
	told    kills
	waiting []ledger.OOMKill
}

// NewCollector returns one that knows and does nothing until Setup. complete returns until when the ledger has all stays;
// zero before it has. now tells the time.
func NewCollector(cfg *config.Configuration, complete, now func() time.Time, log logr.Logger) *Collector {
	return &Collector{
		config: cfg, complete: complete, log: log, now: now, began: now(), metrics: newMetrics(), mostPods: mostPods,
		told: kills{}, days: map[time.Time]*progress{}, windows: &windows{}, failed: true, // due at once
		open: func(ctx context.Context) (Ledger, error) { return recorder.OpenLedger(ctx, cfg.Ledger) },
	}
}

// Setup adds the collector to the manager, if Prometheus and a ledger are configured.
func (c *Collector) Setup(ctx context.Context, mgr ctrl.Manager) error {
	switch {
	case !c.config.Prometheus.IsConfigured():
		c.log.Info("Usage is not collected, because prometheus.url is not set")
		return nil
	case !c.config.Ledger.IsConfigured():
		c.log.Info("Usage is not collected, because no ledger is configured (ledger.file, " +
			"ledger.postgresDSNFile)")
		return nil
	}
	asked, err := promquery.NewClient(c.config.Prometheus)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	c.collect = asked.Collect
	c.profiles = func(ctx context.Context) (*windows, error) { return readWindows(ctx, mgr.GetClient()) }
	if err := c.registerMetrics(ctx, mgr); err != nil {
		return err
	}
	if err := mgr.Add(c); err != nil {
		return fmt.Errorf("add the collector of usage: %w", err)
	}
	return nil
}

func (c *Collector) registerMetrics(ctx context.Context, mgr ctrl.Manager) error {
	trainings, err := kube.StoreOf(ctx, mgr.GetCache(), &v1beta1.ElasticTrainingJob{})
	if err != nil {
		return err
	}
	merges, err := kube.StoreOf(ctx, mgr.GetCache(), &v1beta1.MergeJob{})
	if err != nil {
		return err
	}
	c.jobs = []toolscache.Store{trainings, merges}
	for _, m := range []prometheus.Collector{c.metrics, newSlack(trainings, merges, mgr.Elected())} {
		if err := ctrlmetrics.Registry.Register(m); err != nil {
			return fmt.Errorf("register the metrics of usage: %w", err)
		}
	}
	return nil
}

// IsCollecting tells whether there is anything to do, so that History may know something.
func (c *Collector) IsCollecting() bool {
	return c.config.Prometheus.IsConfigured() && c.config.Ledger.IsConfigured()
}

func (c *Collector) roundInterval() time.Duration {
	return config.Seconds(c.config.Prometheus.IntervalSeconds)
}

// NeedLeaderElection has the collector run in one operator at a time.
func (*Collector) NeedLeaderElection() bool { return true }

// Start collects until ctx ends. It returns no error: the operator runs on, whatever fails.
func (c *Collector) Start(ctx context.Context) error {
	turns := time.NewTicker(turnLength)
	defer turns.Stop()
	for {
		select {
		case <-ctx.Done():
			c.recordRemaining()
			return nil
		case <-turns.C:
		}
		c.doRound(ctx)
	}
}

// doRound does the work that is due.
func (c *Collector) doRound(ctx context.Context) {
	c.turns++
	c.reading.passTurn()
	c.asking.passTurn()
	if c.reading.left > 0 || !c.isDue() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	l, err := c.open(limited)
	if err != nil {
		c.noteFailure(ctx, err, &c.reading)
		return
	}
	defer func() { _ = l.Close() }()
	if err := c.readAndRecord(ctx, l); err != nil {
		c.noteFailure(ctx, err, &c.reading)
		return
	}
	c.reading = rest{}
	if !c.roundDue() {
		return
	}
	unanswered, err := c.runRound(ctx, l)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		c.metrics.setRound(unanswered == nil)
		err = unanswered
	}
	if c.failed = err != nil; c.failed {
		c.noteFailure(ctx, err, &c.asking)
		return
	}
	c.asking = rest{}
}

// readAndRecord does what needs no Prometheus.
func (c *Collector) readAndRecord(ctx context.Context, l Ledger) error {
	// Kills first: the memory that is read then has them.
	if err := c.recordKills(ctx, l); err != nil || c.isLoaded() {
		return err
	}
	err := c.loadMemory(ctx, l)
	if err == nil {
		c.recallKills()
	}
	return err
}

// noteFailure logs and counts a failure, and begins a pause.
func (c *Collector) noteFailure(ctx context.Context, err error, r *rest) {
	if ctx.Err() != nil {
		return
	}
	c.metrics.failures.Inc()
	c.log.Error(err, "Cannot collect the use of tasks, trying again", "after", r.beginPause().String())
}

// isDue tells whether there is anything to do in this turn.
func (c *Collector) isDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory == nil || len(c.waiting) > 0 || c.roundDue()
}

// roundDue tells whether Prometheus is to be asked: when all that the ledger will have of the time until now is in it.
func (c *Collector) roundDue() bool {
	return (c.roundOver() || c.failed && c.asking.left == 0) && !c.complete().IsZero()
}

// roundOver tells whether the next round is due, whatever became of the last.
func (c *Collector) roundOver() bool { return c.turns >= int(c.roundInterval()/turnLength) }

// rest is a pause after failures, in turns. Each is twice the one before.
type rest struct{ left, next int }

func (r *rest) passTurn() { r.left = max(r.left-1, 0) }

// beginPause begins the next pause, and says how long it is.
func (r *rest) beginPause() time.Duration {
	r.left = max(r.next, 1)
	r.next = min(2*r.left, lastRest)
	return time.Duration(r.left) * turnLength
}

// isLoaded tells whether the ledger was read.
func (c *Collector) isLoaded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory != nil
}

// recordRemaining records the kills that wait when the operator ends.
func (c *Collector) recordRemaining() {
	c.mu.Lock()
	waiting := slices.Clone(c.waiting)
	c.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	// The context of Start has ended.
	ctx, cancel := context.WithTimeout(context.Background(), lastTimeout)
	defer cancel()
	l, err := c.open(ctx)
	if err == nil {
		err = c.recordKills(ctx, l)
		_ = l.Close()
	}
	if err != nil {
		c.log.Error(err, "Cannot record the last out-of-memory kills", "waiting", len(waiting))
	}
}
