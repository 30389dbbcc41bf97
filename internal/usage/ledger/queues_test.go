package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWhatQueuesHeld(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		surplus := func(queue string) func(*Stay) {
			return func(s *Stay) { s.Role, s.Queue = "surplus", queue }
		}
		record(ctx, g, l,
			stay("a", "20 22:00:00", "21 02:00:00", surplus("ads")),
			stay("b", "21 10:00:00", "21 11:00:00", surplus("ads")),
			stay("other task", "21 10:00:00", "21 10:30:00", surplus("ads"), func(s *Stay) { s.Task = "search" }),
			stay("another resource", "21 12:00:00", "21 13:00:00", surplus("rec"), func(s *Stay) {
				s.Resources = Resources{"cpu": 1000}
			}),
			stay("core", "21 10:00:00", "21 20:00:00"),
			stay("not of a job", "21 10:00:00", "21 20:00:00", surplus("ads"), func(s *Stay) { s.Kind = "Deployment" }),
			stay("of days before", "19 10:00:00", "19 20:00:00", surplus("ads")),
		)
		held := func(from, to string) map[string]time.Duration {
			found, err := l.HeldByQueue(ctx, "ElasticTrainingJob", "surplus", at(from), at(to))
			g.Expect(err).NotTo(HaveOccurred())
			return found
		}
		g.Expect(held("20 00:00:00", "21 12:00:00")).To(Equal(map[string]time.Duration{
			"ads": 5*time.Hour + 30*time.Minute, "rec": time.Hour,
		}), "each pod once, whatever it asks for, and whole days")
		g.Expect(held("21 00:00:00", "22 00:00:00")).To(Equal(map[string]time.Duration{
			"ads": 3*time.Hour + 30*time.Minute, "rec": time.Hour,
		}), "of a pod the part of the day")
		g.Expect(held("22 00:00:00", "23 00:00:00")).To(BeEmpty())
	})
}

func TestSumOfDecisions(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		left := func(second string, kind string, figures ...string) Decision {
			d := Decision{At: at("21 10:00:" + second), Kind: kind, Namespace: "ads", Name: "ctr", UID: "u", Figures: map[string]string{}}
			for i := 0; i < len(figures); i += 2 {
				d.Figures[figures[i]] = figures[i+1]
			}
			return d
		}
		g.Expect(l.RecordEntries(ctx, Entries{Decisions: []Decision{
			left("00", "GaveWay", "queue", "ads", "left", "3"),
			left("01", "GaveWay", "queue", "ads", "left", "1"),
			left("02", "GaveWay", "queue", "rec", "left", "2"),
			left("03", "GaveWay", "queue", "rec"),
			left("04", "GaveWay", "queue", "rec", "left", "0"),
			left("05", "GaveWay", "queue", "rec", "left", "many"),
			left("06", "Ran", "queue", "ads", "left", "9"),
			left("30", "GaveWay", "queue", "ads", "left", "9"),
		}})).To(Succeed())
		found, err := l.SumDecisions(ctx, DecisionQuery{
			From: at("21 10:00:00"), To: at("21 10:00:30"), Kinds: []string{"GaveWay"}, Limit: 1,
		}, "queue", "left")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(Equal(map[string]int64{"ads": 4, "rec": 3}))
	})
}
