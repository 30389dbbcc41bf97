package fromledger

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// A notebook that used its GPU for an hour of ten is in the ranking with its use and its waste.
func TestIdleNotebooksAreNamedWithTheirUse(t *testing.T) {
	g := NewWithT(t)
	l, err := ledger.Open(t.Context(), ledger.Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	midnight := time.Date(2026, time.November, 17, 0, 0, 0, 0, time.UTC)
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{
		Stays: []ledger.Stay{{
			Pod: ledger.Pod{
				UID: "nb-0", Namespace: "ads", Name: "nb-0", Profile: "ads", User: "alice@example.com", Kind: "StatefulSet", Task: "nb",
				Resources: ledger.Resources{"nvidia.com/gpu": 1000},
			},
			Begin: midnight, End: midnight.Add(10 * time.Hour), Final: true, Outcome: ledger.Deleted,
		}},
		PartDays: []ledger.PartDay{{
			Part: ledger.Part{Namespace: "ads", Kind: "StatefulSet", Task: "nb", Role: "other"}, Day: midnight, SeenSeconds: 36000,
			Content: `{"runSeconds":36000,"seenSeconds":36000,"accelerators":{"heldSeconds":36000,"activeMilliseconds":3600000}}`,
		}},
	})).To(Succeed())
	list, err := cost.ParsePrices([]byte(prices))
	g.Expect(err).NotTo(HaveOccurred())
	in := &cost.Input{Period: cost.PeriodUntil(midnight.Add(24*time.Hour), 24*time.Hour, time.UTC), Prices: list}
	g.Expect(LoadInput(t.Context(), l, in, nil, config.DefaultTiers())).To(Succeed())
	row := cost.ComputeReport(in).By[cost.ByTask][0]
	g.Expect(row.Key).To(And(HaveField("Kind", "StatefulSet"), HaveField("Task", "nb"), HaveField("User", "alice@example.com")))
	g.Expect([]string{row.Cost.String(), row.Waste.String()}).To(Equal([]string{"100", "90"}))
	g.Expect(row.Utilization).To(Equal(cost.Ratio{Value: 0.1, Known: true}))
}
