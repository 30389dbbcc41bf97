package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestTheDefaultPoolComesWithItsFirstMerge(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 12)
	lacking := func() Observed {
		o := w.observed()
		o.QueueMissing, o.QueueState = true, ""
		return o
	}
	g.Expect(Plan(lacking(), w.now).CreateQueue).To(BeFalse(), "without a merge nothing needs it")
	w.add("ctr").full(w, time.Hour)
	w.settle()
	g.Expect(Plan(lacking(), w.now).CreateQueue).To(BeTrue(), "also before one is due")
	w.now = w.now.Add(9*time.Hour + time.Minute)
	d := Plan(lacking(), w.now)
	g.Expect(d.CreateQueue).To(BeTrue())
	g.Expect(d.Jobs[0].Status.Reason).To(Equal(v1beta1.ReasonQueueNotFound))
	g.Expect(d.Jobs[0].Status.Message).To(ContainSubstring("Tideline creates it"))
	g.Expect(w.plan().CreateQueue).To(BeFalse(), "it is there")

	others := lacking()
	others.Pool = "merge-gpu"
	d = Plan(others, w.now)
	g.Expect(d.CreateQueue).To(BeFalse(), "what another pool may hold is for an administrator to say")
	g.Expect(d.Jobs[0].Status.Message).To(ContainSubstring("Create it, or change spec.pool."))
	w.config.Merges.Pools = []string{"merge-gpu"}
	g.Expect(Plan(lacking(), w.now).CreateQueue).To(BeFalse(), "nor is one that the configuration has taken away")
}
