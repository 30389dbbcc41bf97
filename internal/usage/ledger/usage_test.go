package ledger

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestUsageOfARangeIsExact(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		record(ctx, g, l,
			stay("around", "13 00:00:00", "23 00:00:00"),
			stay("before", "14 08:00:00", "14 09:00:00", finally(Succeeded)),
			stay("in", "14 09:00:00", "14 09:00:10", finally(Succeeded)),
			stay("after", "21 09:00:00", "21 10:00:00", finally(Succeeded)),
			stay("into", "14 08:59:59", "14 09:00:01", finally(Succeeded)),
			stay("out", "21 08:59:58", "21 09:00:10", finally(Succeeded)))
		g.Expect(gpuSeconds(ctx, g, l, "14 09:00:00", "21 09:00:00")).To(Equal(map[string][2]int64{"": seconds(168*3600 + 10 + 1 + 2)}))
		g.Expect(gpuSeconds(ctx, g, l, "14 09:00:05", "14 09:00:06")).To(Equal(map[string][2]int64{"": seconds(2)}), "within a day")
		g.Expect(gpuSeconds(ctx, g, l, "14 23:59:59", "15 00:00:01")).To(Equal(map[string][2]int64{"": seconds(2)}), "over a midnight")
		g.Expect(gpuSeconds(ctx, g, l, "14 09:00:00", "14 09:00:00")).To(BeEmpty())
		g.Expect(gpuSeconds(ctx, g, l, "21 09:00:00", "14 09:00:00")).To(BeEmpty())
	})
}

func TestGroupsAndChoices(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		other := func(s *Stay) {
			s.Namespace, s.Profile, s.Queue, s.User, s.Tier = "rec", "rec", "rec-queue", "bob", "main-traffic"
			s.Kind, s.Task, s.Role, s.Model = "Deployment", "serve", "surplus", "H100"
			s.Resources = Resources{"nvidia.com/gpu": 500, "memory": 1024}
		}
		record(ctx, g, l, stay("a", "14 22:00:00", "15 01:00:00"), stay("b", "14 23:00:00", "15 01:00:00", other),
			stay("c", "14 23:00:00", "15 01:00:00", by(""), func(s *Stay) { s.Resources = nil }))
		for _, r := range []struct{ from, to string }{{"14 00:00:00", "16 00:00:00"}, {"14 00:00:01", "15 23:59:59"}} {
			ask := func(where map[Field][]string, by ...Field) []Total {
				list, err := l.QueryUsage(ctx, Query{From: at(r.from), To: at(r.to), Where: where, GroupBy: by})
				g.Expect(err).NotTo(HaveOccurred())
				return list
			}
			hers := []Total{
				{[]string{}, "cpu", 2000 * 3 * 3600, 3 * 3600, 0}, {[]string{}, "nvidia.com/gpu", 1000 * 3 * 3600, 3 * 3600, 0},
			}
			values := map[Field][2]string{
				Namespace: {"ads", "rec"}, Profile: {"ads", "rec"}, Queue: {"ads", "rec-queue"}, User: {"alice", "bob"},
				Tier: {"exploratory", "main-traffic"}, Kind: {"ElasticTrainingJob", "Deployment"}, Task: {"ctr", "serve"},
				Role: {"core", "surplus"}, Model: {"A100", "H100"},
			}
			g.Expect(values).To(HaveLen(len(fieldColumns)))
			for field, value := range values {
				g.Expect(ask(map[Field][]string{field: {value[0]}})).To(Equal(hers), "%s", field)
				g.Expect(ask(map[Field][]string{field: {value[0], value[1]}, Resource: {"nvidia.com/gpu"}}, field)).To(ConsistOf(
					Total{[]string{value[0]}, "nvidia.com/gpu", 1000 * 3 * 3600, 3 * 3600, 0},
					Total{[]string{value[1]}, "nvidia.com/gpu", 500 * 2 * 3600, 2 * 3600, 0}), "%s", field)
			}
			g.Expect(ask(nil)).To(Equal([]Total{
				{[]string{}, "cpu", 2000 * 3 * 3600, 3 * 3600, 0}, {[]string{}, "memory", 1024 * 2 * 3600, 2 * 3600, 0},
				{[]string{}, "nvidia.com/gpu", 4000 * 3600, 5 * 3600, 0},
			}))
			g.Expect(ask(map[Field][]string{User: {"alice"}, Resource: {"cpu"}}, Resource, User, Day)).To(Equal([]Total{
				{[]string{"cpu", "alice", "2026-11-14"}, "cpu", 2000 * 7200, 7200, 0},
				{[]string{"cpu", "alice", "2026-11-15"}, "cpu", 2000 * 3600, 3600, 0},
			}))
			g.Expect(ask(map[Field][]string{User: {}})).To(BeEmpty(), "no value is none of any")
		}
	})
}

func TestFieldsThatAreNone(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ask := func(q Query) error {
			_, err := l.QueryUsage(t.Context(), q)
			return err
		}
		from, to := at("14 00:00:00"), at("15 00:00:00")
		g.Expect(ask(Query{From: from, To: to, GroupBy: []Field{"s.user_name"}})).To(MatchError(ErrInvalid))
		g.Expect(ask(Query{From: from, To: to, Where: map[Field][]string{"1=1; --": {"x"}}})).To(MatchError(ErrInvalid))
		g.Expect(ask(Query{From: from, To: to, Where: map[Field][]string{Day: {"2026-11-14"}}})).To(MatchError(ErrInvalid))
		g.Expect(ask(Query{To: to})).To(MatchError(ErrInvalid))
	})
}
