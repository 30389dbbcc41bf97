package fromledger

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// A person whose name is an address, with everything that people run: a notebook, a PyTorchJob, pods without accelerators, a
// merge and a training with surplus. What each costs is computed here by hand:
//
//	hours × (cores × 0.031 + GiB × 0.0043 + GPUs × 10.37)
func TestAllThatOnePersonRunsIsCountedToTheCent(t *testing.T) {
	g := NewWithT(t)
	l, err := ledger.Open(t.Context(), ledger.Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	morning := time.Date(2026, time.November, 17, 9, 0, 0, 0, time.UTC)
	const ann, bob = "ann@example.com", "bob"
	var stays []ledger.Stay
	ran := func(user, kind, task, role string, pods int, minutes, cores, gib, gpus int64) {
		for i := range pods {
			name := fmt.Sprintf("%s-%s-%s-%s-%d", user, kind, task, role, i)
			stays = append(stays, ledger.Stay{
				Pod: ledger.Pod{
					UID: name, Namespace: "ads", Name: name, Profile: "ads", User: user, Kind: kind, Task: task, Role: role,
					Resources: ledger.Resources{"cpu": 1000 * cores, "memory": gib << 10, "nvidia.com/gpu": 1000 * gpus},
				},
				Begin: morning, End: morning.Add(time.Duration(minutes) * time.Minute), Final: true, Outcome: ledger.Deleted,
			})
		}
	}
	ran(ann, "Notebook", "explore", "", 1, 510, 2, 8, 1)
	ran(ann, "PyTorchJob", "bert", "", 3, 320, 8, 64, 2)
	ran(ann, "Job", "prepare", "", 10, 15, 16, 32, 0)
	ran(ann, "MergeJob", "ctr", "", 2, 90, 4, 16, 0)
	ran(ann, "ElasticTrainingJob", "ctr", "core", 2, 180, 4, 16, 1)
	ran(ann, "ElasticTrainingJob", "ctr", "surplus", 1, 60, 4, 16, 1)
	ran(bob, "PyTorchJob", "ranker", "", 1, 120, 8, 64, 2)
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{Stays: stays})).To(Succeed())

	list, err := cost.ParsePrices([]byte(`{currency: CNY, prices: [{validFrom: "2026-01-01", cpuCoreHour: "0.031",
		memoryGiBHour: "0.0043", accelerators: [{resource: nvidia.com/gpu, hourly: "10.37"}]}]}`))
	g.Expect(err).NotTo(HaveOccurred())
	in := &cost.Input{Period: cost.PeriodUntil(morning.Add(12*time.Hour), 24*time.Hour, time.UTC), Prices: list}
	g.Expect(LoadInput(t.Context(), l, in, nil, config.DefaultTiers())).To(Succeed())
	report := cost.ComputeReport(in)

	cents := func(d decimal.Decimal) string { return cost.RoundAmount(d, "CNY").StringFixed(2) }
	g.Expect(report.Total.Cost.Round(8).String()).To(Equal("547.804"), "of all")
	g.Expect(cents(report.Total.Cost)).To(Equal("547.80"))
	users, tasks := map[string]string{}, map[string]string{}
	for _, row := range report.By[cost.ByUser] {
		users[row.Key.User] = cents(row.Cost)
	}
	for _, row := range report.By[cost.ByTask] {
		tasks[row.Key.User+" "+row.Key.Kind+" "+row.Key.Task] = row.Cost.Round(8).String()
	}
	g.Expect(users).To(Equal(map[string]string{ann: "505.28", bob: "42.53"}))
	g.Expect(tasks).To(Equal(map[string]string{
		ann + " Notebook explore":       "88.9644",
		ann + " PyTorchJob bert":        "340.2112",
		ann + " Job prepare":            "1.584",
		ann + " MergeJob ctr":           "0.5784",
		ann + " ElasticTrainingJob ctr": "73.9396",
		bob + " PyTorchJob ranker":      "42.5264",
	}))
}
