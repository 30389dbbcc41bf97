package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil/postgres"
)

// server is nil where PostgreSQL is not installed.
var server *postgres.Server

func TestMain(m *testing.M) {
	if crashing() {
		crash()
	}
	os.Exit(func() int {
		var err error
		server, err = postgres.Start(context.Background(), "fsync=off", "max_connections=200")
		switch {
		case errors.Is(err, postgres.ErrNotInstalled):
			_, _ = fmt.Fprintln(os.Stdout, "not run: the ledger on PostgreSQL: install postgresql")
		case err != nil:
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		default:
			defer func() { _ = server.Stop() }()
		}
		return m.Run()
	}())
}

const notInstalled = "there is no PostgreSQL: install postgresql"

// onBoth runs a test on an empty database of each kind.
func onBoth(t *testing.T, test func(t *testing.T, at Options)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		if server == nil {
			t.Skip(notInstalled)
		}
		t.Parallel()
		dsn, err := server.Schema(t.Context())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		test(t, Options{PostgresDSN: dsn})
	})
}

// ledgers runs a test on an empty ledger of each kind.
func ledgers(t *testing.T, test func(*WithT, *Ledger)) {
	onBoth(t, func(t *testing.T, at Options) {
		g := NewWithT(t)
		test(g, opened(t, g, at))
	})
}

func opened(t *testing.T, g *WithT, at Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), at)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(l.Close()).To(Succeed()) })
	return l
}

// at is a time in November 2026, as "21 06:30:00".
func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-11-"+text)
	if err != nil {
		panic(err)
	}
	return t
}

// stay is one of a pod of alice's task ctr, with a GPU and two processors.
func stay(uid, begin, end string, with ...func(*Stay)) Stay {
	s := Stay{
		Pod: Pod{
			UID: uid, Namespace: "ads", Name: "ctr-" + uid, Node: "n1",
			Profile: "ads", Queue: "ads", User: "alice", Tier: "exploratory",
			Kind: "ElasticTrainingJob", Task: "ctr", Run: "1", Role: "core", Model: "A100",
			Resources: Resources{"cpu": 2000, "nvidia.com/gpu": 1000},
		},
		Begin: at(begin), End: at(end),
	}
	for _, f := range with {
		f(&s)
	}
	return s
}

func finally(outcome Outcome) func(*Stay) {
	return func(s *Stay) { s.Final, s.Outcome = true, outcome }
}

func uncertain(s *Stay) { s.Uncertain = true }

func by(user string) func(*Stay) { return func(s *Stay) { s.User = user } }

func record(ctx context.Context, g *WithT, l *Ledger, stays ...Stay) {
	g.THelper()
	g.Expect(l.RecordEntries(ctx, Entries{Stays: stays})).To(Succeed())
}

// gpuSeconds are the seconds of GPUs, and how many of them are uncertain, by the values of groups.
func gpuSeconds(ctx context.Context, g *WithT, l *Ledger, from, to string, by ...Field) map[string][2]int64 {
	g.THelper()
	gpus := map[Field][]string{Resource: {"nvidia.com/gpu"}}
	list, err := l.QueryUsage(ctx, Query{From: at(from), To: at(to), GroupBy: by, Where: gpus})
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string][2]int64{}
	for _, total := range list {
		g.Expect(total.AmountSeconds).To(Equal(1000*total.PodSeconds), "pods have one GPU each")
		found[strings.Join(total.Group, " ")] = [2]int64{total.PodSeconds, total.UncertainSeconds}
	}
	return found
}

func seconds(n int64) [2]int64 { return [2]int64{n, 0} }
