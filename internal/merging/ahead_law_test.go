package merging

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/test/testutil/environ"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// aheadHistory is a pool with too much to merge, and when its runs end and its heads asked.
type aheadHistory struct {
	*simulator
	c *rand.Rand
	// exact is true where every run takes as long as the longest of its last ones.
	exact bool
	ends  map[*merger]time.Time
	// latest is when the head must be placed.
	latest map[*merger]time.Time
	// ahead counts runs that went ahead, and waited heads that had to wait.
	ahead, waited int
}

// aheadSlack is what times in whole seconds may cost.
const aheadSlack = 2 * time.Second

func newAheadHistory(t *testing.T, c *rand.Rand) *aheadHistory {
	t.Helper()
	h := &aheadHistory{
		simulator: newSimulator(t, 4+c.IntN(9)), c: c, exact: c.IntN(2) == 0,
		ends: map[*merger]time.Time{}, latest: map[*merger]time.Time{},
	}
	for i := range 6 + c.IntN(5) {
		n := 1 + c.IntN(2)
		if c.IntN(3) == 0 {
			n = 1 + c.IntN(h.room) // Large ones wait, and small ones go ahead.
		}
		m := h.add(fmt.Sprintf("m%d", i), pods(int32(n)), func(s *v1beta1.MergeJobSpec) {
			s.Schedule.Interval.Duration = time.Duration(20+c.IntN(100)) * time.Minute
		}).full(h.simulator, time.Duration(c.IntN(200))*time.Minute)
		longest := time.Duration(5+c.IntN(100)) * time.Minute
		m.past = Past{Usual: longest, Longest: longest}
		if !h.exact {
			m.past.Usual = longest * 2 / 3
		}
	}
	return h
}

// step lets the pool come to rest and time pass until the next run ends, or the plan wants to look. It returns what was wrong.
func (h *aheadHistory) step() string {
	h.settle()
	for _, m := range h.jobs {
		run := m.status().Run
		if run == nil || run.Outcome != "" || run.PlaceTime == nil || !h.ends[m].IsZero() {
			continue
		}
		if at := h.latest[m]; run.Ahead == nil && !at.IsZero() && h.now.After(at.Add(aheadSlack)) {
			return fmt.Sprintf("%s was placed %s after the time by which it would have been with none ahead of it",
				m.object.Name, h.now.Sub(at))
		}
		if run.Ahead != nil {
			h.ahead++
		}
		delete(h.latest, m)
		h.ends[m] = h.now.Add(h.length(m))
	}
	for _, m := range h.jobs {
		if run := m.status().Run; asks(run) && run.Ahead == nil && h.latest[m].IsZero() {
			h.latest[m] = h.latestStart(m)
			h.waited++
		}
	}
	next := h.now.Add(time.Hour)
	if again := h.plan().RequeueAfter; again > 0 {
		next = moment.EarlierOf(next, h.now.Add(max(again.Round(time.Second), time.Second)))
	}
	for _, at := range h.ends {
		next = moment.EarlierOf(next, at)
	}
	if len(h.ends) == 0 && len(h.latest) > 0 {
		return fmt.Sprintf("merges wait and none runs: deadlock, %d wait", len(h.latest))
	}
	h.now = next
	for _, m := range h.jobs {
		if at := h.ends[m]; !at.IsZero() && !at.After(h.now) {
			delete(h.ends, m)
			h.merge(m)
		}
		m.look()
	}
	return ""
}

func (h *aheadHistory) length(m *merger) time.Duration {
	if h.exact {
		return m.past.Longest
	}
	return time.Duration((0.2 + 0.8*h.c.Float64()) * float64(m.past.Longest)).Truncate(time.Second)
}

// latestStart is when a head that asks now must be placed. If runs take as long as they are expected to, that is when it would be
// if none went ahead. If they end sooner or later, though never later than the longest before, it is when all that hold room now
// could still have ended.
func (h *aheadHistory) latestStart(head *merger) time.Time {
	free, at := h.room, h.now
	held := map[time.Time]int{}
	for m, end := range h.ends {
		n := int(m.status().Run.MinReplicas)
		free -= n
		if !h.exact {
			end = m.status().Run.PlaceTime.Add(m.past.Longest)
		}
		held[end] += n
	}
	for needs := int(head.status().Run.MinReplicas); h.exact && free < needs; {
		next := time.Time{}
		for end := range held {
			if next.IsZero() || end.Before(next) {
				next = end
			}
		}
		free, at = free+held[next], next
		delete(held, next)
	}
	if !h.exact {
		for end := range held {
			if end.After(at) {
				at = end
			}
		}
	}
	return at
}

// TestThoseWhoGoAheadTakeNothingFromTheHead: over random histories a head that waits is placed as soon as if none had gone ahead,
// or, where runs do not take as long as expected, as soon as it could count on then; and merges never wait while none runs.
func TestThoseWhoGoAheadTakeNothingFromTheHead(t *testing.T) {
	histories, seed := environ.Number(t, "TIDELINE_HISTORIES", 20), environ.Number(t, "TIDELINE_SEED", uint64(time.Now().UnixNano()))
	ahead, waited := 0, 0
	for n := range histories {
		h := newAheadHistory(t, rand.New(rand.NewPCG(seed, n)))
		for range 80 {
			if wrong := h.step(); wrong != "" {
				t.Fatalf("TIDELINE_SEED=%d, history %d (exact %t), %s: %s", seed, n, h.exact, h.now.Format(time.TimeOnly), wrong)
			}
		}
		ahead, waited = ahead+h.ahead, waited+h.waited
	}
	if histories >= 20 && (ahead < 5 || waited < 20) {
		t.Errorf("TIDELINE_SEED=%d: hardly put to the test: %d went ahead, %d heads waited", seed, ahead, waited)
	}
	t.Logf("%d went ahead, %d heads waited", ahead, waited)
}
