package recorder

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

var errDown = errors.New("the ledger is down")

// memory is a ledger in memory: what is recorded twice counts once, and a stay only grows until it is final.
type memory struct {
	mu        sync.Mutex
	stays     map[string]ledger.Stay
	decisions []ledger.Decision
	trained   []ledger.Trained
	rooms     []ledger.FreeRoom
	// writes counts those that had anything to record, and fail says what becomes of each: an error, and whether it arrived.
	writes int
	fail   func(write int) (arrived bool, err error)
	// down has everything fail.
	down   bool
	asked  []ledger.Query
	totals []ledger.Total
	pruned []time.Time
	begun  time.Time
	// unread has reads of what was used fail, and opened counts how often the ledger was.
	unread bool
	opened int
	// held and left are what is answered of surplus, unless blind is set. askedSurplus counts the questions.
	blind        bool
	held         map[string]time.Duration
	left         map[string]int64
	askedSurplus int
}

func newMemory() *memory { return &memory{stays: map[string]ledger.Stay{}} }

func (m *memory) RecordEntries(_ context.Context, e ledger.Entries) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errDown
	}
	if len(e.Rooms) > 0 {
		m.rooms = append(m.rooms, e.Rooms...)
		return nil
	}
	if len(e.Stays)+len(e.Decisions)+len(e.Trained) == 0 {
		return nil
	}
	for i := range e.Stays {
		if e.Stays[i].Begin.Year() < 2000 {
			return ledger.ErrInvalid
		}
	}
	for i := range e.Trained {
		if e.Trained[i].UID == "" {
			return ledger.ErrInvalid
		}
	}
	for i := range e.Decisions {
		if e.Decisions[i].At.IsZero() {
			return ledger.ErrInvalid
		}
	}
	m.writes++
	if m.fail != nil {
		if arrived, err := m.fail(m.writes); err != nil {
			if arrived {
				m.apply(e)
			}
			return err
		}
	}
	m.apply(e)
	return nil
}

func (m *memory) apply(e ledger.Entries) {
	m.decisions = append(m.decisions, e.Decisions...)
	m.trained = append(m.trained, e.Trained...)
	for _, s := range e.Stays {
		before, known := m.stays[s.UID]
		if known && (before.Final || !s.Final && !s.End.After(before.End)) {
			continue
		}
		if known {
			s.Begin, s.Pod = before.Begin, before.Pod
		}
		m.stays[s.UID] = s
	}
}

func (m *memory) OpenStays(context.Context) ([]ledger.Stay, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, errDown
	}
	m.opened++
	open := slices.Collect(maps.Values(m.stays))
	return slices.DeleteFunc(open, func(s ledger.Stay) bool { return s.Final }), nil
}

func (m *memory) QueryUsage(_ context.Context, q ledger.Query) ([]ledger.Total, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, q)
	if m.down || m.unread {
		return nil, errDown
	}
	return m.totals, nil
}

func (m *memory) HeldByQueue(_ context.Context, kind, role string, _, _ time.Time) (map[string]time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.askedSurplus++
	if m.down || m.blind {
		return nil, errDown
	}
	if kind != v1beta1.ElasticTrainingJobKind || role != v1beta1.PartSurplus {
		return nil, nil
	}
	return m.held, nil
}

func (m *memory) SumDecisions(context.Context, ledger.DecisionQuery, string, string) (map[string]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left, nil
}

func (m *memory) EachDecision(_ context.Context, q ledger.DecisionQuery, each func(*ledger.Decision)) error {
	m.mu.Lock()
	decisions := slices.Clone(m.decisions)
	m.mu.Unlock()
	for i := range decisions {
		if d := &decisions[i]; slices.Contains(q.Kinds, d.Kind) && !d.At.Before(q.From) {
			each(d)
		}
	}
	return nil
}

func (m *memory) PruneBefore(_ context.Context, before time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = append(m.pruned, before)
	return 0, nil
}

func (m *memory) KnownSince(context.Context) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun, nil
}

func (m *memory) Close() error { return nil }

func (m *memory) measured() []ledger.FreeRoom {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rooms)
}

func (m *memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// get is the stay of a pod of newPod.
func (m *memory) get(name string) ledger.Stay {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stays["uid-"+name]
}

// cluster are the pods of a test, and the operator that watches them.
type cluster struct {
	t    *testing.T
	pods toolscache.Store
	// trainings and merges are those that there are.
	trainings, merges toolscache.Store

	ledger Ledger
	config *config.Configuration
	// profile is that of all namespaces.
	profile atomic.Value
	// room is what is measured, known after some tries.
	room      capacity.Fragmentation
	roomTries atomic.Int32
	// ahead is by how many nanoseconds the clock of the operator is ahead.
	ahead    atomic.Int64
	recorder *Recorder
	stop     func()
}

func newCluster(t *testing.T, l Ledger) *cluster {
	store := func() toolscache.Store { return toolscache.NewStore(toolscache.MetaNamespaceKeyFunc) }
	c := &cluster{t: t, pods: store(), trainings: store(), merges: store(), ledger: l, config: config.DefaultConfiguration()}
	c.profile.Store("ads")
	return c
}

// stand has an operator watch that does not lead yet.
func (c *cluster) stand() {
	r := &Recorder{
		trainings: c.trainings, merges: c.merges,
		open: func(ctx context.Context) (Ledger, error) {
			_, err := c.ledger.OpenStays(ctx)
			return c.ledger, err
		},
		measure: func(context.Context) (room capacity.Fragmentation, there bool, err error) {
			if c.roomTries.Add(-1) >= 0 {
				return room, true, errDown
			}
			return c.room, true, nil
		},
		place:  func(context.Context, *corev1.Pod) Place { return Place{Profile: c.profile.Load().(string)} },
		pods:   c.pods,
		synced: func() bool { return true },
		config: c.config,
		log:    logr.Discard(),
		now:    func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
	}
	r.metrics = newMetrics(func() float64 { return float64(r.size()) })
	c.recorder = r
}

// start has another operator lead, until stop or the end of the test.
func (c *cluster) start() {
	c.t.Helper()
	c.stand()
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.recorder.Start(ctx); err != nil {
			c.t.Error(err)
		}
	}()
	c.stop = func() {
		cancel()
		<-ended
	}
	synctest.Wait()
}

// crash ends the operator without a last word.
func (c *cluster) crash() {
	c.ledger.(*memory).setDown(true)
	c.stop()
	c.ledger.(*memory).setDown(false)
}

func (c *cluster) set(pod *corev1.Pod) {
	c.t.Helper()
	key, err := toolscache.MetaNamespaceKeyFunc(pod)
	if err != nil {
		c.t.Fatal(err)
	}
	old, known, _ := c.pods.GetByKey(key)
	if err := c.pods.Update(pod); err != nil {
		c.t.Fatal(err)
	}
	if known {
		c.recorder.podHandler(c.t.Context()).OnUpdate(old, pod)
	} else {
		c.recorder.podHandler(c.t.Context()).OnAdd(pod, false)
	}
}

// drop removes a pod, and tells the operator if it is seen.
func (c *cluster) drop(pod *corev1.Pod, seen bool) {
	c.t.Helper()
	if err := c.pods.Delete(pod); err != nil {
		c.t.Fatal(err)
	}
	if seen {
		c.recorder.podHandler(c.t.Context()).OnDelete(pod)
	}
}

// inBubble runs a test with a ledger in memory, on a clock that passes when all wait.
func inBubble(t *testing.T, test func(g *WithT, c *cluster, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c := newCluster(t, m)
		test(NewWithT(t), c, m)
		if c.stop != nil {
			c.stop()
		}
	})
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func now() time.Time { return time.Now().Truncate(time.Second) }
