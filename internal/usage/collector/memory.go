package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// mostKills bounds how many kills wait while the ledger cannot record them. A kill beyond the bound may be reported again later.
const mostKills = 50_000

// task is what the jobs of a kind do, over their restarts.
type task struct{ namespace, kind, name string }

// memory is what the ledger said of all tasks at one time. It is never changed.
type memory struct {
	// used is what was used in the window.
	used map[task]*sizing.History
	// devices are the days of the last month on which accelerators of other workloads were seen.
	devices map[task][]sizing.DeviceDay
	// kills are those of the window that the operator saw.
	kills kills
	// limits are the highest at which parts were killed, in the window or before it.
	limits map[task]map[sizing.Part]int64
	// windows of the namespaces.
	windows *windows
	// upTo is until when the newest day was looked at; zero if none ever was.
	upTo time.Time
}

// kills are those of tasks, by their ids.
type kills map[task]map[string]ledger.OOMKill

func (k kills) add(kill ledger.OOMKill) {
	of := task{kill.Namespace, kill.Kind, kill.Task}
	if k[of] == nil {
		k[of] = map[string]ledger.OOMKill{}
	}
	k[of][kill.ID] = kill
}

func (k kills) has(kill ledger.OOMKill) bool {
	_, known := k[task{kill.Namespace, kill.Kind, kill.Task}][kill.ID]
	return known
}

func (k kills) remove(kill ledger.OOMKill) {
	of := task{kill.Namespace, kill.Kind, kill.Task}
	delete(k[of], kill.ID)
	if len(k[of]) == 0 {
		delete(k, of)
	}
}

// OOMKill is the kill of a container that ran out of memory, as the operator saw it.
type OOMKill struct {
	// Pod, the container that Key names, and how often that was restarted before, tell it from all others.
	Pod      types.UID
	Restarts int32
	// Key is what the container is of.
	Key sizing.Key
	// At is when it was killed; zero for now.
	At time.Time
	// LimitBytes is how much memory the container was allowed; 0 for without limit.
	LimitBytes int64
}

// toLedger is the kill as the ledger takes it.
func (k *OOMKill) toLedger() ledger.OOMKill {
	return ledger.OOMKill{
		ID: fmt.Sprintf("%s/%s/%d", k.Pod, k.Key.Container, k.Restarts), Part: partOf(k.Key), At: k.At, LimitBytes: k.LimitBytes,
	}
}

// partOf is a key as the ledger has it.
func partOf(k sizing.Key) ledger.Part {
	return ledger.Part{Namespace: k.Namespace, Kind: k.Kind, Task: k.Task, Role: string(k.Role), Container: k.Container}
}

// OOMKilled counts a kill: in History at once, and in the ledger soon. It never waits. Each kill counts once, however often
// it is reported, also across restarts of the operator. If no usage is collected it does nothing.
func (c *Collector) OOMKilled(k OOMKill) {
	if !c.IsCollecting() {
		return
	}
	now := c.now()
	// A node's clock may be ahead.
	if k.At.IsZero() || k.At.After(now) {
		k.At = now
	}
	kill := k.toLedger()
	c.mu.Lock()
	defer c.mu.Unlock()
	days := sizing.DefaultWindowDays
	if c.memory != nil {
		days = c.memory.windows.ofNamespace(kill.Namespace)
	}
	if first, _ := windowOf(now, days); kill.At.Before(first) {
		return
	}
	if c.told.has(kill) || c.memory != nil && c.memory.kills.has(kill) || len(c.waiting) >= mostKills {
		return
	}
	c.told.add(kill)
	c.waiting = append(c.waiting, kill)
}

// TaskHistory is what is known of a task when a job of it starts. It never waits. Callers must not change the result.
func (c *Collector) TaskHistory(namespace, kind, name string) sizing.History {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := sizing.History{WindowDays: sizing.DefaultWindowDays, Unavailable: c.whyUnavailable()}
	of := task{namespace, kind, name}
	var known map[string]ledger.OOMKill
	if c.memory != nil {
		if used := c.memory.used[of]; used != nil {
			h.Usage, h.Days = used.Usage, used.Days
		}
		if h.Unavailable != "" {
			h.AsOf = c.memory.upTo
		}
		h.WindowDays, known = c.memory.windows.ofNamespace(namespace), c.memory.kills[of]
		h.Killed = maps.Clone(c.memory.limits[of])
	}
	if told := c.told[of]; len(known)+len(told) > 0 {
		h.Usage = withKills(h.Usage, known, told)
		for _, k := range told {
			h.RememberKill(sizing.Part{Role: sizing.Role(k.Role), Container: k.Container}, k.LimitBytes)
		}
	}
	return h
}

// withKills are the usages with what the operator saw itself. Prometheus may have counted the same kills, or other
// processes of the container, or have missed some. The larger of the two numbers counts, so that no kill counts twice.
func withKills(usage map[sizing.Part]sizing.Usage, seen ...map[string]ledger.OOMKill) map[sizing.Part]sizing.Usage {
	all := make(map[sizing.Part]sizing.Usage, len(usage)+1)
	maps.Copy(all, usage)
	counts := map[sizing.Part]int64{}
	for _, kills := range seen {
		for _, k := range kills {
			part := sizing.Part{Role: sizing.Role(k.Role), Container: k.Container}
			counts[part]++
			u := all[part]
			u.OOMLimit, u.OOMKills = max(u.OOMLimit, k.LimitBytes), max(u.OOMKills, counts[part])
			all[part] = u
		}
	}
	return all
}

// whyUnavailable is why recent use is unknown, for users; empty if it is known. The caller holds the lock.
func (c *Collector) whyUnavailable() string {
	const what = "The use of the task is unknown: "
	switch {
	case !c.config.Prometheus.IsConfigured():
		return what + "the operator asks no Prometheus. An administrator names one in its configuration (prometheus.url)."
	case !c.config.Ledger.IsConfigured():
		return what + "the operator keeps no ledger to collect it in. An administrator says in its configuration where to keep one " +
			"(ledger.file or ledger.postgresDSNFile)."
	case c.memory == nil:
		return what + "since the operator started at " + formatTime(c.began) + " it has not read its ledger. It does so in " +
			"seconds; if " +
			"it cannot, its log says why, and so does alert TidelineLedgerFails."
	case c.memory.upTo.IsZero():
		return what + "since the operator started at " + formatTime(c.began) + " Prometheus has not told it. It asks again and " +
			"again; " +
			"its log says why it fails, and so does alert TidelinePrometheusFails."
	case c.now().Sub(c.memory.upTo) > 2*c.roundInterval()+lateness:
		return "What the task used since " + formatTime(c.memory.upTo) + " is unknown: Prometheus did not answer. The " +
			"operator asks " +
			"again and again; its log says why it fails, and so does alert TidelinePrometheusFails."
	}
	return ""
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// loadMemory builds a new memory from the ledger's entries of the window. Readers see the old or the new one, never a mix.
func (c *Collector) loadMemory(ctx context.Context, l Ledger) error {
	limited, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	now := c.now()
	var err error
	if c.windows, err = c.profiles(limited); err != nil {
		return err
	}
	from, to := windowOf(now, c.windows.longestWindow())
	m := &memory{
		used: map[task]*sizing.History{}, devices: map[task][]sizing.DeviceDay{}, kills: kills{},
		limits: map[task]map[sizing.Part]int64{}, windows: c.windows,
	}
	unread, err := m.readDays(limited, l, now)
	if err != nil {
		return err
	}
	seen, err := l.OOMKills(limited, from, to)
	if err != nil {
		return err
	}
	for i := range seen {
		if first, _ := windowOf(now, m.windows.learnWindow(limited, seen[i].Namespace)); !seen[i].At.Before(first) {
			m.kills.add(seen[i])
		}
	}
	limits, err := l.KillLimits(limited)
	if err != nil {
		return err
	}
	m.addLimits(limits)
	days, err := l.CollectedDays(limited, from, to)
	if err != nil {
		return err
	}
	for _, day := range days {
		if day.Until.After(m.upTo) && !day.Until.After(now) { // A clock that was set back may have noted a time to come.
			m.upTo = day.Until
		}
	}
	if unread > 0 {
		c.log.Info("The ledger has days in a format that this operator cannot read; they count as not seen", "days", unread)
	}
	c.replaceMemory(m)
	return nil
}

// readDays reads the days of the window of our jobs, and of the last month of others, into a memory that is being made. It
// returns how many it could not read.
func (m *memory) readDays(ctx context.Context, l Ledger, now time.Time) (unread int, err error) {
	take := func(add func(ledger.PartDay, sizing.Usage)) func(ledger.PartDay) error {
		return func(d ledger.PartDay) error {
			var u sizing.Usage
			if json.Unmarshal([]byte(d.Content), &u) != nil {
				unread++
				return nil //nolint:nilerr // the other days are known
			}
			add(d, u)
			return nil
		}
	}
	from, to := windowOf(now, m.windows.longestWindow())
	ours := take(m.addDay)
	err = l.PartDays(ctx, ledger.PartQuery{From: from, To: to}, func(d ledger.PartDay) error {
		// The ledger was asked for the longest window, and each namespace has its own.
		if first, _ := windowOf(now, m.windows.learnWindow(ctx, d.Namespace)); d.Day.Before(first) || d.Role == string(sizing.Other) {
			return nil
		}
		return ours(d)
	})
	if err != nil {
		return unread, err
	}
	from, to = windowOf(now, idleDays)
	err = l.PartDays(ctx, ledger.PartQuery{From: from, To: to, Role: string(sizing.Other)}, take(m.addDevices))
	return unread, err
}

// addDay adds the usage of a day to a memory that is being made.
func (m *memory) addDay(d ledger.PartDay, u sizing.Usage) {
	of := task{d.Namespace, d.Kind, d.Task}
	if m.used[of] == nil {
		m.used[of] = &sizing.History{}
	}
	m.used[of].Add(sizing.Part{Role: sizing.Role(d.Role), Container: d.Container}, d.Day, u)
}

// addLimits adds the limits at which parts were killed to a memory that is being made.
func (m *memory) addLimits(limits map[ledger.Part]int64) {
	for part, limit := range limits {
		of := task{part.Namespace, part.Kind, part.Task}
		if m.limits[of] == nil {
			m.limits[of] = map[sizing.Part]int64{}
		}
		m.limits[of][sizing.Part{Role: sizing.Role(part.Role), Container: part.Container}] = limit
	}
}

// replaceMemory puts a memory in the place of the one before, and forgets the kills that are in it.
func (c *Collector) replaceMemory(m *memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory = m
	for i := range c.recorded {
		c.told.remove(c.recorded[i])
	}
	c.recorded = nil
	c.metrics.setKnown(len(m.used), m.upTo)
}

// recordKills records the kills that wait. Those that are told meanwhile wait for the next time.
func (c *Collector) recordKills(ctx context.Context, l Ledger) error {
	c.mu.Lock()
	waiting := c.waiting
	c.mu.Unlock()
	for part := range slices.Chunk(waiting, batch) {
		err := c.recordEntries(ctx, l, ledger.Entries{OOMKills: part})
		if errors.Is(err, ledger.ErrInvalid) {
			// All of a call are recorded or none, and the others must not wait for one that never can be.
			part, err = c.recordEach(ctx, l, part)
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.waiting = slices.Clone(c.waiting[len(part):])
		c.recorded = append(c.recorded, part...)
		c.mu.Unlock()
	}
	return nil
}

// recordEach records kills one by one, and drops those that the ledger refuses.
func (c *Collector) recordEach(ctx context.Context, l Ledger, kills []ledger.OOMKill) ([]ledger.OOMKill, error) {
	for i := range kills {
		err := c.recordEntries(ctx, l, ledger.Entries{OOMKills: kills[i : i+1]})
		switch {
		case errors.Is(err, ledger.ErrInvalid):
			c.log.Error(err, "The ledger refused a kill for want of memory, dropping it")
		case err != nil:
			return nil, err
		}
	}
	return kills, nil
}
