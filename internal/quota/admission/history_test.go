package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/test/testutil/environ"
)

// TestBehaviour8LimitsHoldWhateverHappens plays TIDELINE_HISTORIES random histories: reconciles take long or do nothing, gangs
// and pods appear late, begin anew with another core, end, and leave when they are told to.
func TestBehaviour8LimitsHoldWhateverHappens(t *testing.T) {
	for seed := range environ.Number(t, "TIDELINE_HISTORIES", 2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := &history{
			r: r, limits: limits(perUser(8), Limit{Scope: ScopeJob, Resource: gpu, Max: 6}, inQueue(12)), at: now,
			seen: map[Key]Claimant{}, reconciles: map[Key]*reconcile{},
		}
		for range 50 {
			h.step()
			if broken := h.broken(); broken != "" {
				t.Fatalf("history %d: %s", seed, broken)
			}
		}
	}
}

// history is jobs of two users, as they are and as they are seen.
type history struct {
	r      *rand.Rand
	limits Limits
	at     time.Time
	jobs   []*Claimant
	// seen is what was seen of them when they were looked at last, and reconciles are those at work, or not seen yet.
	seen       map[Key]Claimant
	reconciles map[Key]*reconcile
	turns      map[Key]Turn
	grants     Grants
	made       int
}

// reconcile acts on the turn that it was told when it began, as late as it may, and is seen later still.
type reconcile struct {
	turn              Turn
	began, acts, seen time.Time
	acted             bool
}

func (h *history) step() {
	h.at = h.at.Add(time.Duration(h.r.IntN(3000)) * time.Millisecond)
	switch h.r.IntN(4) {
	case 0:
		h.made++
		user := []string{"alice", "bob"}[h.r.IntN(2)]
		c := asking(fmt.Sprintf("job-%d", h.made), user, int64(1+h.r.IntN(6)), h.made)
		c.Wants = int32(h.r.IntN(6))
		h.jobs = append(h.jobs, &c)
	case 1:
		if len(h.jobs) > 0 {
			i := h.r.IntN(len(h.jobs))
			h.jobs = append(h.jobs[:i], h.jobs[i+1:]...)
		}
	case 2:
		if len(h.jobs) > 0 { // Its next attempt has another core, and asks anew.
			c := h.jobs[h.r.IntN(len(h.jobs))]
			if h.reconciles[c.Job] == nil {
				h.made++
				c.Ask, c.Core, c.Surplus, c.Asks = strconv.Itoa(h.made), gpus(int64(1+h.r.IntN(7))), nil, true
			}
		}
	}
	h.reconcile() // These were told what was decided last.
	h.turns, h.grants = AdmitJobs(h.limits, h.look(), nil, h.grants, h.at)
	h.reconcile()
}

// reconcile has reconciles begin, act and be seen. One in four finds something else that holds the job up, and does nothing.
func (h *history) reconcile() {
	for _, c := range h.jobs {
		r := h.reconciles[c.Job]
		if r == nil && h.r.IntN(4) > 0 && h.turns[c.Job].Ask == c.Ask {
			r = &reconcile{turn: h.turns[c.Job], began: h.at, acts: h.sometime(h.at)}
			h.reconciles[c.Job] = r
		}
		if r != nil && !r.acted && !h.at.Before(r.acts) {
			h.obey(c, r.turn)
			r.acted, r.seen = true, h.sometime(h.at)
		}
		if r != nil && r.acted && !h.at.Before(r.seen) {
			delete(h.reconciles, c.Job)
		}
	}
}

// sometime is at once, or within four times as long as a grant counts that no reconcile acts on.
func (h *history) sometime(from time.Time) time.Time {
	if h.r.IntN(2) == 0 {
		return from
	}
	return from.Add(time.Duration(h.r.Int64N(int64(4 * Arrival))))
}

// look sees each job as it is, or as it was when the reconcile began that is at work.
func (h *history) look() []Claimant {
	var all []Claimant
	for _, c := range h.jobs {
		if r := h.reconciles[c.Job]; r == nil {
			seen := *c
			seen.Surplus = slices.Clone(c.Surplus)
			h.seen[c.Job] = seen
		} else if seen, known := h.seen[c.Job]; known {
			seen.Acting = r.began
			h.seen[c.Job] = seen
		}
		all = append(all, h.seen[c.Job])
	}
	return all
}

// obey is what a job's reconciler does.
func (h *history) obey(c *Claimant, turn Turn) {
	var stay []Surplus
	for _, s := range c.Surplus {
		told := false
		for _, uid := range turn.GiveUp {
			told = told || uid == s.UID
		}
		if !told {
			stay = append(stay, s)
		}
	}
	c.Surplus = stay
	if !turn.Admitted {
		return
	}
	c.Asks = false
	for int32(len(c.Surplus)) < min(turn.Surplus, c.Wants) && len(turn.GiveUp) == 0 {
		h.made++
		c.Surplus = append(c.Surplus, Surplus{UID: types.UID(strconv.Itoa(h.made)), Index: int32(len(c.Surplus)) + 1})
	}
}

func (h *history) broken() string {
	users, queue := map[string]int64{}, int64(0)
	for _, c := range h.jobs {
		if c.Asks {
			continue
		}
		held := c.Core[gpu] + int64(len(c.Surplus))
		users[c.User] += held
		queue += c.Core[gpu]
		if held > 6 {
			return fmt.Sprintf("%s holds %d of 6", c.Job, held)
		}
	}
	for user, held := range users {
		if held > 8 {
			return fmt.Sprintf("%s holds %d of 8", user, held)
		}
	}
	if queue > 12 {
		return fmt.Sprintf("the queue holds %d of 12", queue)
	}
	return ""
}
