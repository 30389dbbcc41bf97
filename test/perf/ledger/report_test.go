package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/fromledger"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// What a report of a week may take, of so many runs.
const (
	slowestReport = 10 * time.Second
	largestHeap   = 512 << 20
	fewestRuns    = 82_000
)

const prices = `
currency: CNY
prices:
- validFrom: "2026-01-01"
  cpuCoreHour: "0.22"
  memoryGiBHour: "0.03"
  accelerators:
  - {resource: nvidia.com/gpu, model: A100, hourly: "21.00", surplusDiscount: "0.40"}
`

// report computes what the last week cost, in a zone in which days are others than those of the ledger.
func report(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{PartDays: used(), Rooms: measured()})).To(Succeed())
	for part := range slices.Chunk(happened(), batch) {
		g.Expect(l.RecordEntries(t.Context(), ledger.Entries{Decisions: part})).To(Succeed())
	}
	list, err := cost.ParsePrices([]byte(prices))
	g.Expect(err).NotTo(HaveOccurred())
	zone := time.FixedZone("CST", 8*60*60)
	runtime.GC()
	heap, stop := watch(t)
	began, busy := time.Now(), processor(g)
	in := &cost.Input{Period: cost.PeriodUntil(begin.AddDate(0, 0, days), window, zone), Prices: list}
	g.Expect(fromledger.LoadInput(t.Context(), l, in, nil, config.DefaultTiers())).To(Succeed())
	gathered := time.Since(began)
	r := cost.ComputeReport(in)
	took := time.Since(began)
	stop()
	t.Logf("a report of a week: %d cells, %d runs and %d losses gathered in %d ms, computed in %d ms, with %d ms of this "+
		"process's CPU; %d MB of heap", len(in.Held), r.Total.Runs, len(in.Losses), gathered.Milliseconds(),
		(took - gathered).Milliseconds(), (processor(g) - busy).Milliseconds(), heap.Load()>>20)
	g.Expect(took).To(BeNumerically("<", slowestReport))
	g.Expect(heap.Load()).To(BeNumerically("<", largestHeap))
	g.Expect(r.Total.Runs).To(BeNumerically(">=", fewestRuns))
	g.Expect(r.By[cost.ByUser]).To(HaveLen(users))
	g.Expect(r.By[cost.ByTask]).To(HaveLen(tasks))
	g.Expect(r.Total.Waste.IsPositive() && r.Total.Utilization.Known).To(BeTrue(), "use is found")
	g.Expect(r.Total.Recoverable.IsPositive()).To(BeTrue(), "sizing was asked")
	g.Expect(r.Lost.Preemptions.IsPositive() && r.Lost.Restarts.IsPositive()).To(BeTrue(), "pods of runs are found")
	g.Expect(r.Waits.Gangs).To(BeNumerically(">=", fewestRuns))
	g.Expect(r.Room.Unusable.Known).To(BeTrue())
}

// happened is what was decided on the days of the last week: that each run ran, that one of fifty of them lost a worker, and
// one of a hundred was stopped for a run of another task.
func happened() []ledger.Decision {
	var decisions []ledger.Decision
	for day := days - 8; day < days; day++ {
		midnight := begin.AddDate(0, 0, day)
		known := map[string]bool{}
		for i := range podsPerDay {
			task := i % tasks
			run := runOf(midnight, i)
			d := ledger.Decision{
				At: midnight.Add(12 * time.Hour), Namespace: fmt.Sprintf("team-%d", task%teams), Name: fmt.Sprintf("task-%d", task),
				UID: fmt.Sprintf("task-%d", task), Kind: decisionlog.Ran, Attempt: run, Figures: map[string]string{
					decisionlog.Object: "ElasticTrainingJob", decisionlog.Task: fmt.Sprintf("task-%d", task),
					decisionlog.Profile: fmt.Sprintf("team-%d", task%teams), decisionlog.User: fmt.Sprintf("user-%d", task%users),
					decisionlog.WaitedSeconds: strconv.Itoa(i),
				},
			}
			if d.ID = d.Name + run; known[d.ID] {
				continue
			}
			known[d.ID] = true
			decisions = append(decisions, d)
			if len(known)%50 != 0 {
				continue
			}
			d.At, d.Kind, d.Figures = d.At.Add(time.Hour), decisionlog.Restarted, maps.Clone(d.Figures)
			d.Figures[decisionlog.LostSince] = midnight.Format(time.RFC3339)
			if len(known)%100 == 0 {
				d.Kind, d.Other = decisionlog.Stopped, fmt.Sprintf("team-%d/task-%d", (task+1)%teams, (task+1)%tasks)
			}
			decisions = append(decisions, d)
		}
	}
	return decisions
}

// measured is how much was free, every ten minutes.
func measured() []ledger.FreeRoom {
	var rooms []ledger.FreeRoom
	for at := begin.AddDate(0, 0, days-8); at.Before(begin.AddDate(0, 0, days)); at = at.Add(10 * time.Minute) {
		rooms = append(rooms, ledger.FreeRoom{At: at, Free: float64(at.Minute()), Unusable: 0.25, Gangs: tasks})
	}
	return rooms
}

// used is what both roles of all tasks were seen using on the days of the last week.
func used() []ledger.PartDay {
	r := rand.New(rand.NewPCG(3, 4))
	var parts []ledger.PartDay
	for day := days - 8; day < days; day++ {
		for task := range tasks {
			for _, role := range []sizing.Role{sizing.Master, sizing.Worker} {
				u := sizing.Usage{RunSeconds: 80_000, SeenSeconds: 80_000, MemoryPeak: r.Int64N(32 << 30)}
				for range 288 {
					u.CPU.Add(4*r.Float64(), 1)
				}
				of := ledger.Part{
					Namespace: fmt.Sprintf("team-%d", task%teams), Kind: "ElasticTrainingJob", Task: fmt.Sprintf("task-%d", task),
					Role: string(role), Container: "pytorch",
				}
				parts = append(parts, partDay(of, day, u))
				of.Container = ""
				u = sizing.Usage{RunSeconds: 80_000, SeenSeconds: 60_000}
				u.Accelerators = sizing.AcceleratorUsage{HeldSeconds: 60_000, ActiveMilliseconds: r.Int64N(60_000_000)}
				parts = append(parts, partDay(of, day, u))
			}
		}
	}
	return parts
}

func partDay(of ledger.Part, day int, u sizing.Usage) ledger.PartDay {
	content, _ := json.Marshal(u) // of numbers it has no error
	return ledger.PartDay{Part: of, Day: begin.AddDate(0, 0, day), SeenSeconds: u.SeenSeconds, Content: string(content)}
}

// watch looks at the heap until it is stopped, and has the largest that it saw.
func watch(t *testing.T) (largest *atomic.Uint64, stop func()) {
	t.Helper()
	largest = &atomic.Uint64{}
	done, watched := make(chan struct{}), make(chan struct{})
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		largest.Store(max(largest.Load(), m.HeapInuse))
	}
	go func() {
		defer close(watched)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				look()
				return
			case <-tick.C:
				look()
			}
		}
	}()
	return largest, func() {
		close(done)
		<-watched
	}
}

// processor is for how long this process has computed so far, whatever else the machine does.
func processor(g *WithT) time.Duration {
	g.THelper()
	var u syscall.Rusage
	g.Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &u)).To(Succeed())
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
