package recorder

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

const (
	// growthInterval is how often is read how surplus fared. It is counted in turns, as are the pauses after failures: they double
	// from growthRetry up to it.
	growthInterval, growthRetry = 5 * time.Minute, time.Minute
	// measuresFor is how far back is looked for what was learnt of tasks and nodes.
	measuresFor = 30 * 24 * time.Hour
	// mostQueues and mostTasks bound what is kept in memory: about 6 MB if all tasks report all sizes.
	mostQueues, mostTasks = 10_000, 10_000
)

// growths is what the ledger has of earlier growth.
type growths struct {
	mu sync.Mutex
	// stays are those of queues. The map is never changed.
	stays map[string]growth.Stay
	// outages are the newest of tasks, and speeds are how fast they train, by rising number of workers.
	outages map[taskName]outage
	speeds  map[taskName][]v1beta1.MeasuredSpeed

	// The rest is of the recorder alone: in how many turns the ledger is read again, how long the last pause after a failure was,
	// and whether measures were read.
	due, pause int
	recalled   bool
}

type taskName struct{ namespace, task string }

// outage is for how long changes of size kept a task from progress.
type outage struct {
	lasted   time.Duration
	measured time.Time
}

// StayIn is how surplus fared in a queue, today and yesterday in UTC. It never waits, is up to some minutes old, and zero for
// unknown.
func (r *Recorder) StayIn(queue string) growth.Stay {
	r.growths.mu.Lock()
	defer r.growths.mu.Unlock()
	return r.growths.stays[queue]
}

// OutageOf is for how long a change of size kept the training of a task from progress, as measured last; false for unknown. It
// never waits.
func (r *Recorder) OutageOf(namespace, task string) (time.Duration, bool) {
	r.growths.mu.Lock()
	defer r.growths.mu.Unlock()
	o, known := r.growths.outages[taskName{namespace, task}]
	return o.lasted, known
}

// SpeedsOf are how fast the training of a task goes with how many workers, by rising number of workers; nil for unknown. They are
// not to be changed. It never waits.
func (r *Recorder) SpeedsOf(namespace, task string) []v1beta1.MeasuredSpeed {
	r.growths.mu.Lock()
	defer r.growths.mu.Unlock()
	return r.growths.speeds[taskName{namespace, task}]
}

// readGrowth reads how growth fared, when that is due. Recording goes on if it cannot be read.
func (r *Recorder) readGrowth(ctx context.Context, l Ledger) {
	g := &r.growths
	if g.due--; g.due > 0 {
		return
	}
	turns := func(d time.Duration) int { return int(d / endsInterval) }
	err := r.recallLearnt(ctx, l)
	if err == nil {
		err = r.readStays(ctx, l)
	}
	if err == nil {
		g.due, g.pause = turns(growthInterval), 0
		return
	}
	if ctx.Err() != nil {
		return
	}
	g.pause = min(max(2*g.pause, turns(growthRetry)), turns(growthInterval))
	g.due = g.pause
	r.metrics.failures.Inc()
	r.log.Error(err, "Cannot read from the ledger how surplus fared, trying again", "after",
		(time.Duration(g.pause) * endsInterval).String())
}

// readStays reads how surplus fared in each queue. Two days are recent, and hold enough departures to tell.
func (r *Recorder) readStays(ctx context.Context, l Ledger) error {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now := r.now()
	yesterday := now.Add(-24 * time.Hour).Truncate(24 * time.Hour)
	held, err := l.HeldByQueue(limited, v1beta1.ElasticTrainingJobKind, v1beta1.PartSurplus, yesterday, now)
	if err != nil {
		return err
	}
	left, err := l.SumDecisions(limited, ledger.DecisionQuery{From: yesterday, Kinds: []string{decisionlog.GaveWay}},
		decisionlog.Queue, decisionlog.Left)
	if err != nil {
		return err
	}
	stays := map[string]growth.Stay{}
	// Queues in which surplus gave way come first, if there are too many.
	for queue, gone := range left {
		if len(stays) < mostQueues {
			stays[queue] = growth.Stay{Held: held[queue], Left: gone}
		}
	}
	for queue, lasted := range held {
		if _, known := left[queue]; !known && len(stays) < mostQueues {
			stays[queue] = growth.Stay{Held: lasted}
		}
	}
	r.growths.mu.Lock()
	defer r.growths.mu.Unlock()
	r.growths.stays = stays
	return nil
}

// recallLearnt reads the outages and speeds of tasks, and what is held against nodes, once in the life of an operator.
func (r *Recorder) recallLearnt(ctx context.Context, l Ledger) error {
	if r.growths.recalled {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := l.EachDecision(limited, ledger.DecisionQuery{
		From:  r.now().Add(-measuresFor),
		Kinds: []string{decisionlog.OutageMeasured, decisionlog.SpeedMeasured, decisionlog.NodeSuspected},
	}, func(d *ledger.Decision) {
		r.growths.noteMeasure(d)
		r.suspicions.noteSuspect(d)
	})
	if err != nil {
		return err
	}
	r.growths.recalled = true
	r.suspicions.noteRecalled()
	return nil
}

// noteMeasure notes what a decision tells that was measured, unless something newer is known.
func (g *growths) noteMeasure(d *ledger.Decision) {
	switch d.Kind {
	case decisionlog.OutageMeasured:
		g.noteOutage(d)
	case decisionlog.SpeedMeasured:
		g.noteSpeed(d)
	}
}

// noteSpeed notes a speed. Others of the task that were measured before stay, those measured last.
func (g *growths) noteSpeed(d *ledger.Decision) {
	workers, err := strconv.ParseInt(d.Figures[decisionlog.Workers], 10, 32)
	perHour := d.Figures[decisionlog.PercentPerHour]
	if err != nil || workers <= 0 || len(growth.ReadSpeeds([]v1beta1.MeasuredSpeed{{PercentPerHour: perHour}})) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.speeds == nil {
		g.speeds = map[taskName][]v1beta1.MeasuredSpeed{}
	}
	task := taskName{d.Namespace, d.Figures[decisionlog.Task]}
	fresh := v1beta1.MeasuredSpeed{
		Workers: int32(workers), PercentPerHour: perHour, Time: metav1.NewTime(d.At.Truncate(time.Second)),
	}
	if len(g.speeds[task]) == 0 && len(g.speeds) >= mostTasks {
		return // Those who come later learn for themselves.
	}
	g.speeds[task] = growth.KeepSpeed(g.speeds[task], fresh)
}

// noteOutage notes an outage that a decision tells of, unless a newer one is known.
func (g *growths) noteOutage(d *ledger.Decision) {
	seconds, err := strconv.ParseInt(d.Figures[decisionlog.Seconds], 10, 32)
	if err != nil || seconds <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	task := taskName{d.Namespace, d.Figures[decisionlog.Task]}
	if d.At.Before(g.outages[task].measured) {
		return
	}
	if g.outages == nil {
		g.outages = map[taskName]outage{}
	}
	g.outages[task] = outage{time.Duration(seconds) * time.Second, d.At}
	g.trimOutages()
}

// trimOutages drops the oldest of too many, a tenth at once. The lock is held.
func (g *growths) trimOutages() {
	if len(g.outages) <= mostTasks {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(g.outages), func(a, b taskName) int {
		return g.outages[a].measured.Compare(g.outages[b].measured)
	})
	for _, task := range oldest[:mostTasks/10] {
		delete(g.outages, task)
	}
}
