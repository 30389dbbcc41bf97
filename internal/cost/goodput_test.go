package cost

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Of three tasks one lost two hours of ten to a lost worker, one kept all, and one says nothing of its steps.
func TestGoodputByTaskPersonTeamAndQueue(t *testing.T) {
	g := NewWithT(t)
	p := PeriodUntil(time.Date(2026, time.November, 15, 0, 0, 0, 0, time.UTC), 24*time.Hour, time.UTC)
	of := func(user, task string) Owner {
		return Owner{Team: "ads", User: user, Namespace: "ads", Kind: "ElasticTrainingJob", Task: task}
	}
	var pods []pod
	for _, owner := range []Owner{of("alice", "ctr"), of("alice", "launch"), of("bob", "silent")} {
		pods = append(pods, pod{
			Held: Held{Owner: owner, Resources: Resources{gpu: 8000}}, begin: p.From.Add(10 * time.Hour), end: p.From.Add(20 * time.Hour),
		})
	}
	in := inputOf(p, prices(`{currency: CNY, prices: [{validFrom: "2026-01-01", cpuCoreHour: "0", memoryGiBHour: "0",
		accelerators: [{resource: nvidia.com/gpu, hourly: "10"}]}]}`), pods)
	in.Trained = []Trained{
		{Owner: of("alice", "ctr"), Queue: "ads", Held: 8 * 36000, Kept: 8 * 28800, Lost: 8 * 7200},
		{Owner: of("alice", "launch"), Queue: "rush", Held: 8 * 18000, Kept: 8 * 18000},
		{Owner: of("carol", "the day before"), Queue: "gone", Held: 8 * 36000},
	}
	r := ComputeReport(in)
	share := func(dimension Dimension, key Key) Ratio { return rowOf(r, dimension, key).Goodput.KeptShare() }
	g.Expect(share(ByTask, Key(of("alice", "ctr")))).To(Equal(Ratio{Value: 0.8, Known: true}))
	g.Expect(rowOf(r, ByTask, Key(of("alice", "ctr"))).Goodput.Lost).To(equal("16"))
	g.Expect(share(ByTask, Key(of("alice", "launch")))).To(Equal(Ratio{Value: 1, Known: true}))
	g.Expect(share(ByTask, Key(of("bob", "silent"))).Known).To(BeFalse(), "it is not zero")
	g.Expect(share(ByUser, Key{User: "bob"}).Known).To(BeFalse())
	g.Expect(share(ByUser, Key{User: "alice"}).Value).To(BeNumerically("~", 13.0/15, 1e-9))
	g.Expect(share(ByTeam, Key{Team: "ads"}).Value).To(BeNumerically("~", 13.0/15, 1e-9))
	g.Expect(r.Total.Goodput.Held).To(equal("120"), "what held nothing in the period makes no row")
	g.Expect(r.By[ByTask]).To(HaveLen(3))
	g.Expect(r.Queues).To(HaveExactElements(
		And(HaveField("Name", "ads"), HaveField("Lost", equal("16"))), And(HaveField("Name", "rush"), HaveField("Lost", equal("0")))))
	g.Expect(r.Notes).To(ContainElement(HavePrefix("What became steps is known for 50 % of the accelerator hours")))

	in.Trained = nil
	r = ComputeReport(in)
	g.Expect(r.Total.Goodput.IsKnown()).To(BeFalse())
	g.Expect(r.Queues).To(BeEmpty())
	g.Expect(r.Notes).NotTo(ContainElement(ContainSubstring("became steps")))
}
