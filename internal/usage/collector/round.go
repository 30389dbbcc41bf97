package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/promquery"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const (
	// mostPods bounds how many pods are asked about at a time, unless one task has more.
	mostPods = 500
	// mostFailures is how many failures in a row end a round: each may take the whole timeout.
	mostFailures = 3
)

// progress is how far a day is that is not finished.
type progress struct {
	// upTo is until when it is looked at.
	upTo time.Time
	// tried are the tasks that were asked about, and whether it was answered.
	tried map[task]bool
}

// windowOf are so many days and today, which is not over: from a midnight until the next.
func windowOf(now time.Time, days int) (from, to time.Time) {
	today := now.UTC().Truncate(24 * time.Hour)
	return today.AddDate(0, 0, -days), today.AddDate(0, 0, 1)
}

// isFinished tells whether a day that was collected until a time is complete.
func isFinished(day, upTo time.Time) bool { return !upTo.Before(day.AddDate(0, 0, 1).Add(lateness)) }

// leftToAsk are the tasks of the day without an answer. Tasks that failed before come last, so that they do not delay the others.
func (p *progress) leftToAsk(tasks []ledger.TaskDay) []ledger.TaskDay {
	var untried, failed []ledger.TaskDay
	for i := range tasks {
		switch answered, tried := p.tried[taskOf(&tasks[i])]; {
		case !tried:
			untried = append(untried, tasks[i])
		case !answered:
			failed = append(failed, tasks[i])
		}
	}
	return append(untried, failed...)
}

func taskOf(t *ledger.TaskDay) task { return task{t.Namespace, t.Kind, t.Task} }

// failures are what was not answered in a round.
type failures struct {
	inARow int
	first  error
}

func (f *failures) count(err error) {
	if err == nil {
		f.inARow = 0
		return
	}
	f.inARow++
	if f.first == nil {
		f.first = err
	}
}

// tooMany tells that the rest is not asked in this round.
func (f *failures) tooMany() bool { return f.inARow >= mostFailures }

// runRound collects the unfinished days of the window, the newest first. unanswered is why Prometheus did not answer everything.
func (c *Collector) runRound(ctx context.Context, l Ledger) (unanswered, err error) {
	upTo := c.complete()
	if c.roundOver() {
		c.turns = 0
		maps.DeleteFunc(c.days, func(day time.Time, p *progress) bool { return !isFinished(day, p.upTo) }) // there is more of it now
	}
	days, err := c.unfinishedDays(ctx, l, upTo)
	if err != nil {
		return nil, err
	}
	failed := failures{}
	for _, day := range days {
		changed, err := c.askDay(ctx, l, day, upTo, &failed)
		if err == nil && changed {
			err = c.loadMemory(ctx, l)
		}
		if err != nil {
			return nil, err
		}
		if failed.tooMany() {
			break
		}
	}
	return failed.first, nil
}

// unfinishedDays are the days to look at, the newest first.
func (c *Collector) unfinishedDays(ctx context.Context, l Ledger, upTo time.Time) ([]time.Time, error) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	from, to := windowOf(upTo, c.windows.longestWindow())
	collected, err := l.CollectedDays(limited, from, to)
	if err != nil {
		return nil, err
	}
	done := map[time.Time]bool{}
	for _, d := range collected {
		// What lies ahead was noted by a clock that was set back since, and its days are still to come.
		done[d.Day] = isFinished(d.Day, d.Until) && !d.Until.After(upTo)
	}
	maps.DeleteFunc(c.days, func(day time.Time, _ *progress) bool { return done[day] || day.Before(from) })
	var days []time.Time
	for day := to.AddDate(0, 0, -1); !day.Before(from); day = day.AddDate(0, 0, -1) {
		if !done[day] {
			days = append(days, day)
		}
	}
	return days, nil
}

// askDay asks about the tasks of a day, and reports whether anything was recorded. Its error is the ledger's.
func (c *Collector) askDay(ctx context.Context, l Ledger, day, upTo time.Time, failed *failures) (changed bool, err error) {
	p := c.days[day]
	if p == nil {
		p = &progress{upTo: upTo, tried: map[task]bool{}}
		c.days[day] = p
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	tasks, err := l.TasksOf(limited, day)
	if err != nil {
		return false, err
	}
	whole := true
	for _, some := range makeBatches(p.leftToAsk(tasks), c.mostPods) {
		if failed.tooMany() {
			return changed, nil
		}
		unanswered, err := c.askBatch(ctx, l, day, upTo, some)
		if err != nil {
			return changed, err
		}
		failed.count(unanswered)
		whole = whole && unanswered == nil
		changed = true
		for i := range some {
			p.tried[taskOf(&some[i])] = unanswered == nil
		}
		if err := c.recordKills(ctx, l); err != nil { // which need not wait for the whole day
			return changed, err
		}
	}
	if !whole {
		return changed, nil
	}
	if err := c.recordEntries(ctx, l, ledger.Entries{Collected: []ledger.Collected{{Day: day, Until: p.upTo}}}); err != nil {
		return changed, err
	}
	delete(c.days, day)
	c.metrics.days.Inc()
	return true, nil
}

// makeBatches groups tasks into batches for Prometheus. All pods of a task are in one batch, because the busiest of them counts.
func makeBatches(tasks []ledger.TaskDay, mostPods int64) [][]ledger.TaskDay {
	var all [][]ledger.TaskDay
	var pods int64
	for i := range tasks {
		last := len(all) - 1
		if last < 0 || pods+tasks[i].Pods > mostPods {
			all = append(all, nil)
			last, pods = last+1, 0
		}
		all[last] = append(all[last], tasks[i])
		pods += tasks[i].Pods
	}
	return all
}

// askBatch asks about some tasks and records the answers. unanswered is why some are missing.
func (c *Collector) askBatch(ctx context.Context, l Ledger, day, upTo time.Time, tasks []ledger.TaskDay) (unanswered, err error) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stays, err := l.StaysOf(limited, tasks...)
	if err != nil {
		return nil, err
	}
	used, unanswered := c.collect(ctx, day, c.asked(stays), upTo)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	seen := make([]ledger.PartDay, 0, len(used))
	for key, u := range used {
		content, err := json.Marshal(u)
		if err != nil {
			return nil, fmt.Errorf("write down what was used: %w", err)
		}
		seen = append(seen, ledger.PartDay{Part: partOf(key), Day: day, SeenSeconds: u.SeenSeconds, Content: string(content)})
	}
	return unanswered, c.recordEntries(ctx, l, ledger.Entries{PartDays: seen})
}

// asked converts stays for promquery.
func (c *Collector) asked(stays []ledger.Stay) []promquery.Stay {
	counted := c.config.CountedAccelerators()
	asked := make([]promquery.Stay, 0, len(stays))
	for i := range stays {
		s := &stays[i]
		role, ok := roleOf(s.Kind, s.Name)
		if !ok {
			continue // Not a name that Tideline gives: the pod belongs to another controller.
		}
		a := promquery.Stay{
			Namespace: s.Namespace, Kind: s.Kind, Task: s.Task, Pod: s.Name, Run: s.Run, Role: role, Begin: s.Begin, End: s.End,
			Final: s.Final, Well: s.Outcome == ledger.Succeeded && !s.Uncertain,
		}
		for _, resource := range counted {
			a.Accelerators += s.Resources[resource]
		}
		if role == sizing.Other && a.Accelerators == 0 {
			continue // Of pods of others only the use of accelerators is reported.
		}
		asked = append(asked, a)
	}
	return asked
}

func (c *Collector) recordEntries(ctx context.Context, l Ledger, e ledger.Entries) error {
	limited, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	return l.RecordEntries(limited, e)
}
