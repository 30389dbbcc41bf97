package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	. "github.com/onsi/gomega"
)

// Histories are recorded side by side, so many in a group, each in a namespace of its own.
const side = 100

// TestRandomHistories holds totals to what a list of stays and a subtraction say, whatever is recorded, how often and in whatever
// order. TIDELINE_HISTORIES is how many of SQLite, 150 by default, and TIDELINE_SEED repeats those of an earlier run.
func TestRandomHistories(t *testing.T) {
	histories := environ.Number(t, "TIDELINE_HISTORIES", 150)
	seed := environ.Number(t, "TIDELINE_SEED", uint64(time.Now().UnixNano()))
	t.Logf("TIDELINE_SEED=%d", seed)
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		l := opened(t, g, where)
		open := map[string]Stay{}
		groups := (histories + side - 1) / side
		if where.File == "" {
			groups = min(groups, 2)
		}
		for i := range groups {
			h := history{g, l, rand.New(rand.NewPCG(seed, i)), at("01 00:00:00").AddDate(0, 0, 10*int(i)), map[string]Stay{}}
			h.run(t)
			for _, s := range h.known {
				if !s.Final {
					open[s.UID] = s
				}
			}
		}
		stays, err := l.OpenStays(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stays).To(HaveLen(len(open)))
		for _, s := range stays {
			g.Expect(s).To(Equal(open[s.UID]))
		}
	})
}

// history is what happened from base on, for four days at most.
type history struct {
	g    *WithT
	l    *Ledger
	r    *rand.Rand
	base time.Time
	// known has the stay of each pod as it was told so far.
	known map[string]Stay
}

// moment is one of the four days: next to a midnight more often than elsewhere.
func (h history) moment() time.Time {
	hours := h.r.IntN(4 * 24)
	if h.r.IntN(4) == 0 {
		hours = hours / 24 * 24
	}
	return h.base.Add(time.Duration(hours) * time.Hour).Add(time.Duration(h.r.IntN(3)-1) * time.Second).Add(time.Second)
}

func (h history) stay(namespace, pod int) Stay {
	id := fmt.Sprintf("%d-%d-%s", namespace, pod, h.base.Format(time.DateOnly))
	s := Stay{Pod: Pod{
		UID: id, Namespace: "ns" + strconv.Itoa(namespace), User: "user" + strconv.Itoa(pod), Task: "task" + strconv.Itoa(pod%2),
		Resources: Resources{"nvidia.com/gpu": int64(1 + pod)},
	}, Begin: h.moment(), End: h.moment(), Final: h.r.IntN(5) == 0}
	if s.Final {
		s.Outcome, s.Uncertain = Lost, h.r.IntN(2) == 0
	}
	return s
}

func (h history) run(t *testing.T) {
	known := h.known
	var earlier []Stay
	for range 4 {
		var batch []Stay
		for namespace := range side {
			for range h.r.IntN(3) {
				batch = append(batch, h.stay(namespace, h.r.IntN(3)))
			}
		}
		for range min(len(earlier), 30) {
			batch = append(batch, earlier[h.r.IntN(len(earlier))])
		}
		h.r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		for _, s := range batch {
			known[s.UID] = told(known, s)
		}
		earlier = append(earlier, batch...)
		h.g.Expect(h.l.RecordEntries(t.Context(), Entries{Stays: batch})).To(Succeed())
	}
	for range 3 {
		from, to := h.moment(), h.moment()
		if to.Before(from) {
			from, to = to, from
		}
		h.compare(t, known, from, to)
	}
	h.compare(t, known, h.base, h.base.AddDate(0, 0, 5))
	h.held(t, known, h.moments(2+h.r.IntN(5)))
}

// told is what is known of a pod after a stay of it was told.
func told(known map[string]Stay, s Stay) Stay {
	was, ok := known[s.UID]
	switch {
	case ok && was.Final:
		return was
	case ok:
		s.Begin = was.Begin
		if !s.Final && s.End.Before(was.End) {
			s.End = was.End
		}
	}
	if s.End.Before(s.Begin) {
		s.End = s.Begin
	}
	return s
}

func (h history) compare(t *testing.T, known map[string]Stay, from, to time.Time) {
	h.g.THelper()
	want := map[string]Total{}
	for _, s := range known {
		group := []string{s.Namespace, s.User, s.Task}
		sum := want[fmt.Sprint(group)]
		within := overlap(s.Begin, s.End, from, to)
		sum.Group, sum.Resource = group, "nvidia.com/gpu"
		sum.PodSeconds += within
		sum.AmountSeconds += within * s.Resources["nvidia.com/gpu"]
		if s.Uncertain {
			midnight := s.End.Add(-time.Second).Truncate(24 * time.Hour)
			if s.Begin.After(midnight) {
				midnight = s.Begin
			}
			sum.UncertainSeconds += overlap(midnight, s.End, from, to)
		}
		want[fmt.Sprint(group)] = sum
	}
	var list []Total
	for _, sum := range want {
		if sum.PodSeconds > 0 {
			list = append(list, sum)
		}
	}
	found, err := h.l.QueryUsage(t.Context(), Query{From: from, To: to, GroupBy: []Field{Namespace, User, Task}})
	h.g.Expect(err).NotTo(HaveOccurred())
	slices.SortFunc(list, func(a, b Total) int { return slices.Compare(a.Group, b.Group) })
	h.g.Expect(found).To(HaveLen(len(list)), "from %s to %s", from, to)
	for i := range list {
		h.g.Expect(found[i]).To(Equal(list[i]), "from %s to %s", from, to)
	}
}

// overlap are the seconds that two ranges share.
func overlap(begin, end, from, to time.Time) int64 {
	if begin.Before(from) {
		begin = from
	}
	if end.After(to) {
		end = to
	}
	return max(0, int64(end.Sub(begin)/time.Second))
}
