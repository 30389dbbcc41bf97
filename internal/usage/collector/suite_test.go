package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/promquery"
	"github.com/tideline-io/tideline/internal/usage/recorder"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

var errDown = fmt.Errorf("a test ended it: %w", ledger.ErrUnavailable)

// at is a time in November 2026, as "21 06:30:00".
func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-11-"+text)
	if err != nil {
		panic(err)
	}
	return t
}

// fixture is a ledger in a file, a Prometheus, a clock, and the operator that collects.
type fixture struct {
	*WithT

	t          *testing.T
	config     *config.Configuration
	ledger     *ledger.Ledger
	faults     *faults
	prometheus *seer
	clock      time.Time
	windows    *windows
	// complete is until when the ledger has all stays; the clock's time if zero.
	complete time.Time
	*Collector
}

// newFixture is one at noon of the 22nd.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{
		WithT: NewWithT(t), t: t, config: config.DefaultConfiguration(), faults: &faults{writes: map[int]bool{}}, prometheus: &seer{},
		clock: at("22 12:00:00"), windows: &windows{},
	}
	w.config.Ledger.File = filepath.Join(t.TempDir(), "ledger.db")
	w.config.Prometheus.URL = "http://prometheus:9090"
	var err error
	w.ledger, err = ledger.Open(t.Context(), ledger.Options{File: w.config.Ledger.File})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { w.Expect(w.ledger.Close()).To(Succeed()) })
	w.start()
	return w
}

// start has another operator collect in place of the one that is gone.
func (w *fixture) start() {
	c := NewCollector(w.config, func() time.Time {
		if w.complete.IsZero() {
			return w.clock
		}
		return w.complete
	}, func() time.Time { return w.clock }, logr.Discard())
	c.collect = w.prometheus.collect
	c.profiles = func(context.Context) (*windows, error) { return w.windows, nil }
	c.open = func(ctx context.Context) (Ledger, error) {
		if err := w.faults.next(); err != nil {
			return nil, err
		}
		l, err := recorder.OpenLedger(ctx, w.config.Ledger)
		return faulty{l, w.faults}, err
	}
	w.Collector = c
}

// pass lets time pass, turn by turn.
func (w *fixture) pass(d time.Duration) {
	for range d / turnLength {
		w.clock = w.clock.Add(turnLength)
		w.doRound(w.t.Context())
	}
}

// record has the ledger know of stays.
func (w *fixture) record(stays ...ledger.Stay) {
	w.THelper()
	w.Expect(w.ledger.RecordEntries(w.t.Context(), ledger.Entries{Stays: stays})).To(Succeed())
}

// days are those that the ledger has as collected, and until when.
func (w *fixture) days() map[string]string {
	w.THelper()
	from, to := windowOf(w.clock, sizing.DefaultWindowDays)
	list, err := w.ledger.CollectedDays(w.t.Context(), from, to)
	w.Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for _, d := range list {
		found[d.Day.Format("02")] = d.Until.Format("02 15:04:05")
	}
	return found
}

// stay is one of worker 1 of a task, with a GPU and a half.
func stay(task, begin, end string, with ...func(*ledger.Stay)) ledger.Stay {
	s := ledger.Stay{
		Pod: ledger.Pod{
			Namespace: "ads", Name: task + "-worker-1", Kind: training, Task: task, Run: "1", Role: "core",
			Resources: ledger.Resources{"cpu": 2000, "nvidia.com/gpu": 1000, "nvidia.com/gpu.shared": 500},
		},
		Begin: at(begin), End: at(end),
	}
	for _, f := range with {
		f(&s)
	}
	s.UID = fmt.Sprint(s.Kind, s.Name, s.Begin.Unix())
	return s
}

func ended(how ledger.Outcome) func(*ledger.Stay) {
	return func(s *ledger.Stay) { s.Final, s.Outcome = true, how }
}

func named(pod string) func(*ledger.Stay) { return func(s *ledger.Stay) { s.Name = pod } }

// question is what Prometheus was asked.
type question struct {
	Day   string
	Tasks []string
}

// seer is a Prometheus that saw every pod with two processors, and so many MiB as there are hours of the day.
type seer struct {
	asked []question
	stays []promquery.Stay
	// fail says why what is asked is not answered, and answered which keys are nevertheless.
	fail     func(question) error
	answered func(sizing.Key) bool
	kills    int64
}

var errPrometheus = fmt.Errorf("a test switched it off: %w", errors.New("it is not known"))

func (p *seer) collect(
	ctx context.Context, day time.Time, stays []promquery.Stay, now time.Time,
) (map[sizing.Key]sizing.Usage, error) {
	q := question{Day: day.Format("02")}
	used := map[sizing.Key]sizing.Usage{}
	for _, s := range stays {
		q.Tasks = append(q.Tasks, s.Task)
		key := sizing.Key{Namespace: s.Namespace, Kind: s.Kind, Task: s.Task, Role: s.Role, Container: "pytorch"}
		used[key] = used[key].Merge(p.used(day, s, now))
	}
	slices.Sort(q.Tasks)
	q.Tasks = slices.Compact(q.Tasks)
	p.asked = append(p.asked, q)
	p.stays = append(p.stays, stays...)
	if p.fail != nil {
		if err := p.fail(q); err != nil {
			for key := range used {
				if p.answered == nil || !p.answered(key) {
					delete(used, key)
				}
			}
			return used, err
		}
	}
	return used, ctx.Err()
}

func (p *seer) used(day time.Time, s promquery.Stay, now time.Time) sizing.Usage {
	begin, end := s.Begin, s.End
	if !s.Final {
		end = now
	}
	if begin.Before(day) {
		begin = day
	}
	if midnight := day.AddDate(0, 0, 1); end.After(midnight) {
		end = midnight
	}
	seconds := max(int64(end.Sub(begin)/time.Second), 0)
	u := sizing.Usage{
		RunSeconds: seconds, SeenSeconds: seconds, EvidenceSeconds: seconds, MemoryPeak: int64(end.Hour()) << 20, OOMKills: p.kills,
	}
	u.CPU.Add(2, seconds/300)
	return u
}

// forget forgets what was asked so far.
func (p *seer) forget() []question {
	asked := p.asked
	p.asked = nil
	slices.SortStableFunc(asked, func(a, b question) int { return cmp.Compare(b.Day, a.Day) })
	return asked
}

// faults has calls of the ledger fail.
type faults struct {
	calls int
	// writes are those that write.
	writes map[int]bool
	// fail says of a call whether it arrives, and what its error is.
	fail func(call int) (arrives bool, err error)
}

func (f *faults) next() error {
	_, err := f.call()
	return err
}

func (f *faults) call() (arrives bool, err error) {
	f.calls++
	if f.fail == nil {
		return true, nil
	}
	return f.fail(f.calls)
}

// faulty is a ledger with faults.
type faulty struct {
	Ledger

	faults *faults
}

func (f faulty) RecordEntries(ctx context.Context, e ledger.Entries) error {
	arrives, err := f.faults.call()
	f.faults.writes[f.faults.calls] = true
	if err != nil && !arrives {
		return err
	}
	return errors.Join(f.Ledger.RecordEntries(ctx, e), err)
}

func (f faulty) TasksOf(ctx context.Context, day time.Time, kinds ...string) ([]ledger.TaskDay, error) {
	if err := f.faults.next(); err != nil {
		return nil, err
	}
	return f.Ledger.TasksOf(ctx, day, kinds...)
}

func (f faulty) StaysOf(ctx context.Context, tasks ...ledger.TaskDay) ([]ledger.Stay, error) {
	if err := f.faults.next(); err != nil {
		return nil, err
	}
	return f.Ledger.StaysOf(ctx, tasks...)
}

func (f faulty) PartDays(ctx context.Context, q ledger.PartQuery, each func(ledger.PartDay) error) error {
	if err := f.faults.next(); err != nil {
		return err
	}
	return f.Ledger.PartDays(ctx, q, each)
}

func (f faulty) OOMKills(ctx context.Context, from, to time.Time) ([]ledger.OOMKill, error) {
	if err := f.faults.next(); err != nil {
		return nil, err
	}
	return f.Ledger.OOMKills(ctx, from, to)
}

func (f faulty) KillLimits(ctx context.Context) (map[ledger.Part]int64, error) {
	if err := f.faults.next(); err != nil {
		return nil, err
	}
	return f.Ledger.KillLimits(ctx)
}

func (f faulty) CollectedDays(ctx context.Context, from, to time.Time) ([]ledger.Collected, error) {
	if err := f.faults.next(); err != nil {
		return nil, err
	}
	return f.Ledger.CollectedDays(ctx, from, to)
}
