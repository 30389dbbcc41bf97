package week

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// The week that is shown has something of all that a report can say.
func TestComputedSaysEverything(t *testing.T) {
	g := NewWithT(t)
	r, err := Computed(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	for _, dimension := range cost.Dimensions {
		sum := decimal.Zero
		for i := range r.By[dimension] {
			sum = sum.Add(r.By[dimension][i].Cost)
		}
		g.Expect(sum.Sub(r.Total.Cost).Abs().LessThan(decimal.New(1, -9))).To(BeTrue(), "by %s: %s of %s", dimension, sum, r.Total.Cost)
	}
	g.Expect(r.By[cost.ByTeam]).To(HaveLen(5), "four teams, and those of none")
	g.Expect(r.By[cost.ByTask]).To(HaveLen(len(works)))
	g.Expect(r.Total.Utilization.Value).To(BeNumerically("~", 0.65, 0.2))
	g.Expect(r.Total.Recoverable.IsPositive() && r.Total.Recoverable.LessThan(r.Total.Waste)).To(BeTrue(), "some can be saved")
	g.Expect(r.Before).NotTo(BeNil(), "there were weeks before")
	g.Expect(r.Forecast).To(HaveField("Periods", earlierWeeks+1))
	var outcomes []string
	for _, o := range r.Outcomes {
		outcomes = append(outcomes, o.Name)
	}
	g.Expect(outcomes).To(Equal([]string{"Succeeded", "Failed", "Cancelled", "Lost", "Running"}))
	g.Expect(r.Lost.Preemptions.IsPositive() && r.Lost.Restarts.IsPositive()).To(BeTrue(), "work was lost in both ways")
	g.Expect(r.Room.Free).To(BeNumerically(">", 10), "there is room")
	g.Expect(r.Room.Unusable.Known && r.Merges.Runs > 0 && r.Waits.Gangs > 0).To(BeTrue(), "merges ran and gangs waited")
	g.Expect(r.Notes).To(ContainElements(HavePrefix("The use of accelerators"), ContainSubstring("its end is a guess"),
		ContainSubstring("without a known owner")))
}

func TestWeeksAreTheSameEachTime(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 16, 1, 0, 0, 0, time.UTC)
	g.Expect(simulate(now, 1)).To(Equal(simulate(now, 1)))
	g.Expect(simulate(now, 1).entries.Stays).NotTo(BeEmpty())
}
