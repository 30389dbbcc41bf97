package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// heldBy are seconds of pods, how many of them are uncertain, and pods that were there last, by the begin of the span, the user,
// and how the pods ended.
func heldBy(ctx context.Context, g *WithT, l *Ledger, cuts ...string) map[string][3]int64 {
	g.THelper()
	times := make([]time.Time, len(cuts))
	for i := range cuts {
		times[i] = at(cuts[i])
	}
	found := map[string][3]int64{}
	g.Expect(l.EachHeld(ctx, times, func(h Held) error {
		key := fmt.Sprintf("%s %s %s", h.From.Format("02 15h"), h.User, cmp.Or(string(h.Outcome), "-"))
		sum := found[key]
		found[key] = [3]int64{sum[0] + h.PodSeconds, sum[1] + h.UncertainSeconds, sum[2] + h.Pods}
		return nil
	})).To(Succeed())
	return found
}

func TestHeldBetweenCuts(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l,
			stay("across", "13 22:00:00", "15 02:00:00", finally(Failed), uncertain),
			stay("runs", "14 23:00:00", "15 00:30:00", by("bob")),
			stay("midnight", "14 20:00:00", "15 00:00:00", by("carol"), finally(Deleted)),
			stay("nothing", "14 12:00:00", "14 12:00:00", by("dave"), finally(Lost)),
			stay("before", "13 10:00:00", "13 18:00:00", by("eve"), finally(Succeeded)),
			stay("after", "15 01:00:00", "15 02:00:00", by("frank"), finally(Succeeded)),
		)
		g.Expect(heldBy(ctx, g, l, "13 18:00:00", "14 00:00:00", "14 12:00:00", "15 00:00:00", "15 01:00:00")).To(Equal(
			map[string][3]int64{
				"13 18h alice Failed": {2 * 3600, 0, 0}, "14 00h alice Failed": {12 * 3600, 0, 0}, "14 12h alice Failed": {12 * 3600, 0, 0},
				"15 00h alice Failed": {3600, 3600, 1},
				"14 12h bob -":        {3600, 0, 0}, "15 00h bob -": {1800, 0, 1},
				"14 12h carol Deleted": {4 * 3600, 0, 1},
				"14 12h dave Lost":     {0, 0, 1},
			}))
		g.Expect(heldBy(ctx, g, l, "14 00:00:00", "15 00:00:00")).To(Equal(map[string][3]int64{
			"14 00h alice Failed": {24 * 3600, 0, 1}, "14 00h bob -": {3600, 0, 1}, "14 00h carol Deleted": {4 * 3600, 0, 1},
			"14 00h dave Lost": {0, 0, 1},
		}), "each was there last within the range")
		g.Expect(heldBy(ctx, g, l, "13 12:00:00", "15 12:00:00")).To(And(HaveLen(6),
			HaveKeyWithValue("13 12h alice Failed", [3]int64{28 * 3600, 2 * 3600, 1}),
			HaveKeyWithValue("13 12h bob -", [3]int64{5400, 0, 1})), "a span of several days")
		g.Expect(heldBy(ctx, g, l, "14 12:00:00", "15 00:00:00", "15 00:00:00")).To(Equal(
			heldBy(ctx, g, l, "14 12:00:00", "15 00:00:00")), "a cut twice")
		g.Expect(heldBy(ctx, g, l, "14 00:00:00")).To(BeEmpty())
		g.Expect(heldBy(ctx, g, l, "14 18:00:00", "14 18:00:00")).To(BeEmpty())
		g.Expect(heldBy(ctx, g, l)).To(BeEmpty())
		enough := errors.New("enough")
		g.Expect(l.EachHeld(ctx, []time.Time{at("13 00:00:00"), at("14 00:00:00")}, func(Held) error { return enough })).To(
			And(MatchError(enough), Not(MatchError(ErrUnavailable))))
	})
}

func TestHeldIsToldApart(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		named := func(name string) func(*Stay) { return func(s *Stay) { s.Name = name } }
		surplus := func(s *Stay) { s.Role = "surplus" }
		larger := func(s *Stay) { s.Resources = Resources{"nvidia.com/gpu": 4000} }
		record(ctx, g, l,
			stay("a", "14 10:00:00", "14 11:00:00", named("ctr-worker-0"), finally(Succeeded)),
			stay("b", "14 10:00:00", "14 11:00:00", named("ctr-worker-1"), finally(Succeeded)),
			stay("c", "14 10:00:00", "14 11:00:00", named("ctr-worker-10"), finally(Succeeded)),
			stay("d", "14 10:00:00", "14 11:00:00", named("ctr-worker-2"), surplus, finally(Succeeded)),
			stay("e", "14 10:00:00", "14 11:00:00", named("ctr-worker-3"), larger, finally(Succeeded)),
		)
		var held []Held
		g.Expect(l.EachHeld(ctx, []time.Time{at("14 00:00:00"), at("15 00:00:00")}, func(h Held) error {
			held = append(held, h)
			return nil
		})).To(Succeed())
		alike := func(pods int64, first bool, with ...func(*Stay)) Held {
			s := stay("", "14 10:00:00", "14 11:00:00", with...)
			s.Name, s.Node, s.Run = "", "", ""
			return Held{
				Pod: s.Pod, First: first, Outcome: Succeeded, From: at("14 00:00:00"), To: at("15 00:00:00"),
				PodSeconds: pods * 3600, Pods: pods,
			}
		}
		g.Expect(held).To(ConsistOf(alike(1, true), alike(2, false), alike(1, false, surplus), alike(1, false, larger)))
	})
}

func TestRunsCountOnce(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		of := func(kind, run string) func(*Stay) { return func(s *Stay) { s.Kind, s.Run = kind, run } }
		record(ctx, g, l,
			stay("a", "13 22:00:00", "14 03:00:00"), stay("b", "13 23:00:00", "14 01:00:00", finally(Failed)), // one run over a midnight
			stay("c", "14 05:00:00", "14 05:00:00", of("ElasticTrainingJob", "2"), finally(Failed)),
			stay("d", "14 05:00:00", "14 06:00:00", of("MergeJob", "1"), finally(Failed)),
			stay("e", "14 05:00:00", "14 06:00:00", of("StatefulSet", ""), by("bob")),
			stay("f", "14 05:00:00", "14 06:00:00", of("StatefulSet", ""), by("bob")),
			stay("g", "14 07:00:00", "14 08:00:00", of("MergeJob", "7"), by("bob")),
			stay("h", "14 07:00:00", "14 08:00:00", of("MergeJob", "7"), by("carol")), // whoever was first
			stay("before", "13 01:00:00", "14 00:00:00", of("MergeJob", "8"), finally(Failed)),
			stay("after", "15 00:00:00", "15 01:00:00", of("MergeJob", "9"), finally(Failed)),
		)
		runs, err := l.CountRuns(ctx, at("14 00:00:00"), at("15 00:00:00"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(runs).To(Equal([]Runs{
			{"ads", "alice", "ads", "ElasticTrainingJob", "ctr", 2}, {"ads", "alice", "ads", "MergeJob", "ctr", 1},
			{"ads", "bob", "ads", "MergeJob", "ctr", 1}, {"ads", "bob", "ads", "StatefulSet", "ctr", 2},
		}))
		g.Expect(l.CountRuns(ctx, at("14 04:00:00"), at("14 05:00:00"))).To(BeEmpty())
		g.Expect(l.CountRuns(ctx, at("14 00:00:00"), at("14 00:00:00"))).To(BeEmpty())
	})
}

// What is held in spans adds up to the totals of all.
func (h history) held(t *testing.T, known map[string]Stay, cuts []time.Time) {
	h.g.THelper()
	type sum struct{ amount, seconds, uncertain int64 }
	found := map[string]sum{}
	pods := map[string]int64{}
	h.g.Expect(h.l.EachHeld(t.Context(), cuts, func(held Held) error {
		user := held.Namespace + held.User + held.Task
		s := found[user]
		found[user] = sum{
			s.amount + held.Resources["nvidia.com/gpu"]*held.PodSeconds, s.seconds + held.PodSeconds, s.uncertain + held.UncertainSeconds,
		}
		pods[user] += held.Pods
		return nil
	})).To(Succeed())
	want := map[string]sum{}
	first, last := cuts[0], cuts[len(cuts)-1]
	totals, err := h.l.QueryUsage(t.Context(), Query{From: first, To: last, GroupBy: []Field{Namespace, User, Task}})
	h.g.Expect(err).NotTo(HaveOccurred())
	for _, total := range totals {
		want[total.Group[0]+total.Group[1]+total.Group[2]] = sum{total.AmountSeconds, total.PodSeconds, total.UncertainSeconds}
	}
	for user, s := range found {
		if s.seconds > 0 {
			h.g.Expect(s).To(Equal(want[user]), "from %s to %s", first, last)
			delete(want, user)
		}
	}
	h.g.Expect(want).To(BeEmpty())
	for _, s := range known {
		if first.Before(last) && s.Begin.Before(last) && (s.End.After(first) || !s.Begin.Before(first)) {
			pods[s.Namespace+s.User+s.Task]--
		}
	}
	for user, left := range pods {
		h.g.Expect(left).To(BeZero(), "pods of %s from %s to %s", user, first, last)
	}
}

// moments are some in their order.
func (h history) moments(n int) []time.Time {
	all := make([]time.Time, n)
	for i := range all {
		all[i] = h.moment()
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}
