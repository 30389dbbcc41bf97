// Package ledger holds the ledger to its figures for two months of a busy cluster: a million days of pods.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil/postgres"
)

// So many pods end on each of so many days, of so many tasks, people and teams; they are recorded so many at once.
const (
	days, podsPerDay     = 60, 16_700
	tasks, users, teams  = 500, 100, 10
	batch                = 2000
	slowest              = time.Second
	bytesPerDay          = 300
	bytesPerTrainingDay  = 250
	gpu, window, longest = "nvidia.com/gpu", 168 * time.Hour, 8 * 60 * 60
)

var begin = time.Date(2026, time.September, 1, 0, 0, 0, 0, time.UTC)

func TestSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	hold(t, ledger.Options{File: file})
	info, err := os.Stat(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	perDay := info.Size() / (days * podsPerDay)
	t.Logf("%d MB, %d bytes for each day of a pod", info.Size()>>20, perDay)
	NewWithT(t).Expect(perDay).To(BeNumerically("<", bytesPerDay), "what docs/operations.md says of the file")
}

// TestDaysOfTrainings: what the ledger keeps of a day of a training that reports its steps is small beside its pods.
func TestDaysOfTrainings(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	l, err := ledger.Open(t.Context(), ledger.Options{File: file})
	g.Expect(err).NotTo(HaveOccurred())
	const trainings = 500
	for day := range days {
		all := make([]ledger.Trained, trainings)
		for i := range all {
			all[i] = trained(begin.AddDate(0, 0, day), int64(day), i)
		}
		g.Expect(l.RecordEntries(t.Context(), ledger.Entries{Trained: all})).To(Succeed())
	}
	held, err := l.QueryGoodput(t.Context(), begin, begin.AddDate(0, 0, days))
	g.Expect(err).NotTo(HaveOccurred())
	var sum int64
	for _, of := range held {
		sum += of.Held
	}
	g.Expect(sum).To(BeNumerically("==", days*trainings*8*12*60*60), "every day of every training is there")
	g.Expect(l.Close()).To(Succeed())
	info, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	perDay := info.Size() / (days * trainings)
	t.Logf("%d MB, %d bytes for each day of a training", info.Size()>>20, perDay)
	g.Expect(perDay).To(BeNumerically("<", bytesPerTrainingDay), "what docs/operations.md says of the file")
}

// trained is half a day of a training of 100 steps, without a checkpoint yet.
func trained(midnight time.Time, day int64, i int) ledger.Trained {
	team, ends := fmt.Sprintf("team-%d", i%teams), midnight.Add(12*time.Hour)
	return ledger.Trained{
		UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i), Namespace: team, Profile: team, Queue: team,
		User: fmt.Sprintf("user-%d", i%users), Tier: "exploratory", Kind: "ElasticTrainingJob", Task: fmt.Sprintf("task-%d", i%tasks),
		From: midnight, To: ends, GPUs: 8,
		Stretches: []ledger.Stretch{{
			Began: midnight, At: ends, First: 100 * day, Last: 100 * (day + 1), GPUSeconds: 8 * 12 * 60 * 60, Saved: -1,
		}},
	}
}

func TestPostgreSQL(t *testing.T) {
	g := NewWithT(t)
	server, err := postgres.Start(t.Context())
	if errors.Is(err, postgres.ErrNotInstalled) {
		t.Skip("there is no PostgreSQL: install postgresql")
	}
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(server.Stop()).To(Succeed()) })
	hold(t, ledger.Options{PostgresDSN: server.DSN()})
}

func hold(t *testing.T, where ledger.Options) {
	g := NewWithT(t)
	l, err := ledger.Open(t.Context(), where)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	began := time.Now()
	want := load(t.Context(), g, l)
	took := time.Since(began)
	t.Logf("%d days of pods recorded in %s, %.0f a second", days*podsPerDay, took.Round(time.Second), days*podsPerDay/took.Seconds())

	t.Run("a report", func(t *testing.T) { report(t, l) })
	end := begin.AddDate(0, 0, days)
	for _, q := range []struct {
		name     string
		from, to time.Time
		by       []ledger.Field
		groups   int
	}{
		{"a window of 168 h by user", end.Add(-window - 9*time.Hour), end.Add(-9 * time.Hour), []ledger.Field{ledger.User}, users},
		{"a window of 168 h by task", end.Add(-window - 9*time.Hour), end.Add(-9 * time.Hour), []ledger.Field{ledger.Task}, tasks},
		{"a window of 168 h by team", end.Add(-window - 9*time.Hour), end.Add(-9 * time.Hour), []ledger.Field{ledger.Profile}, teams},
		{"a window of 168 h by team and day", end.Add(-window - 9*time.Hour), end.Add(-9 * time.Hour),
			[]ledger.Field{ledger.Profile, ledger.Day}, teams * 8},
		{"all 60 days by user", begin, end, []ledger.Field{ledger.User}, users},
		{"all 60 days by task", begin, end, []ledger.Field{ledger.Task}, tasks},
	} {
		began := time.Now()
		found, err := l.QueryUsage(t.Context(), ledger.Query{From: q.from, To: q.to, GroupBy: q.by})
		took := time.Since(began)
		g.Expect(err).NotTo(HaveOccurred())
		t.Logf("%s: %d totals in %d ms", q.name, len(found), took.Milliseconds())
		g.Expect(took).To(BeNumerically("<", slowest), q.name)
		g.Expect(found).To(HaveLen(3*q.groups), "of each resource")
		var all int64
		for _, total := range found {
			if total.Resource == gpu {
				all += total.AmountSeconds
			}
		}
		if q.from.Equal(begin) {
			g.Expect(all).To(Equal(want), q.name)
		} else {
			g.Expect(all).To(BeNumerically("~", want*7/days, want/200), "%s: a week of these days", q.name)
		}
	}
}

// load records pods that end on the day on which they began, and returns thousandths of GPUs × seconds of all.
func load(ctx context.Context, g *WithT, l *ledger.Ledger) int64 {
	g.THelper()
	r := rand.New(rand.NewPCG(1, 2))
	var sum int64
	for day := range days {
		midnight := begin.AddDate(0, 0, day)
		for first := 0; first < podsPerDay; first += batch {
			stays := make([]ledger.Stay, 0, batch)
			for i := first; i < min(first+batch, podsPerDay); i++ {
				s := stay(r, midnight, i)
				sum += s.Resources[gpu] * int64(s.End.Sub(s.Begin)/time.Second)
				stays = append(stays, s)
			}
			g.Expect(l.RecordEntries(ctx, ledger.Entries{Stays: stays})).To(Succeed())
		}
	}
	return sum
}

// runOf gives every eleven pods of a task on a day eight runs.
func runOf(midnight time.Time, i int) string {
	return fmt.Sprintf("%d-%d", midnight.YearDay(), i/tasks*8/11)
}

func stay(r *rand.Rand, midnight time.Time, i int) ledger.Stay {
	task := i % tasks
	role := "core"
	if i/tasks%2 == 1 {
		role = "surplus"
	}
	seconds := 10 + r.IntN(longest)
	from := midnight.Add(time.Duration(r.IntN(24*60*60-seconds)) * time.Second)
	team := fmt.Sprintf("team-%d", task%teams)
	return ledger.Stay{
		Pod: ledger.Pod{
			UID:       fmt.Sprintf("%016x-%016x", r.Uint64(), r.Uint64()),
			Namespace: team, Name: fmt.Sprintf("task-%d-worker-%d", task, i), Node: fmt.Sprintf("node-%d", r.IntN(256)),
			Profile: team, Queue: team, User: fmt.Sprintf("user-%d", task%users), Tier: "exploratory",
			Kind: "ElasticTrainingJob", Task: fmt.Sprintf("task-%d", task), Run: runOf(midnight, i), Role: role, Model: "A100",
			Resources: ledger.Resources{"cpu": 8000, "memory": 65536, gpu: 1000},
		},
		Begin: from, End: from.Add(time.Duration(seconds) * time.Second), Final: true, Outcome: ledger.Succeeded,
	}
}
