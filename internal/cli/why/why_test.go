package why

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// keepDecisions makes a ledger with decisions and stays, and a configuration that names it, whose path it returns.
func keepDecisions(t *testing.T, stays []ledger.Stay, decisions ...ledger.Decision) string {
	t.Helper()
	g := NewWithT(t)
	file := keep(t)
	l, err := open(t.Context(), config.Ledger{File: filepath.Join(filepath.Dir(file), "ledger.db")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{Stays: stays, Decisions: decisions})).To(Succeed())
	g.Expect(l.Close()).To(Succeed())
	return file
}

func askWhy(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), &out, &errs, slices.Concat([]string{"why"}, args)...)
	return code, out.String(), errs.String()
}

// run runs the program with the commands of this package, at noon.
func run(ctx context.Context, out, errs io.Writer, args ...string) int {
	connection, clock := cli.NewConnection(nil), func() time.Time { return noon }
	root := cli.Root("tideline", Command(connection, open, clock), Sizing(connection, open, clock))
	return cli.Execute(ctx, root, args, nil, out, errs)
}

// decided is a decision about job ctr, some hours before noon.
func decided(hours int, kind string, with ...func(*ledger.Decision)) ledger.Decision {
	d := ledger.Decision{
		At: noon.Add(-time.Duration(hours) * time.Hour), Kind: kind, Namespace: "ads", Name: "ctr", UID: "1", Message: kind + " it is.",
		Figures: map[string]string{decisionlog.Queue: "ads"},
	}
	for _, f := range with {
		f(&d)
	}
	return d
}

func TestWhatAJobWasDoing(t *testing.T) {
	g := NewWithT(t)
	file := keepDecisions(t, nil,
		decided(20, decisionlog.Waited, func(d *ledger.Decision) { d.UID = "0" }), // another job of that name
		decided(10, decisionlog.Waited), decided(9, decisionlog.Capped), decided(9, decisionlog.Approved),
		decided(8, decisionlog.Ran), decided(7, decisionlog.GaveWay), decided(6, decisionlog.Preempted),
		decided(5, decisionlog.WentOn), decided(4, decisionlog.Ran), decided(3, decisionlog.Suspended), decided(2, decisionlog.Ended),
		decided(1, decisionlog.GaveWay, func(d *ledger.Decision) { d.UID = "2" }))
	for hours, want := range map[int]string{
		10: "It waited since 2026-11-22 02:00:00, for 0s by then.\n  Waited it is.\n  queue ads\n\nIn queue ads 0 pods",
		9: "It waited under a cap since 2026-11-22 02:00:00, for 1h0m0s by then.\n  Capped it is.\n  queue ads\n\n" +
			"Until then:\n  2026-11-22 02:00:00 Waited: Waited it is.\n  2026-11-22 03:00:00 Approved: ",
		8: "It ran since 2026-11-22 04:00:00, for 0s by then.\n",
		7: "It ran since 2026-11-22 04:00:00, for 1h0m0s by then.\n  Ran it is.\n  queue ads\n\n" +
			"Until then:\n  2026-11-22 05:00:00 GaveWay: ",
		6: "It was stopped for another job since 2026-11-22 06:00:00",
		5: "It waited for its place again since 2026-11-22 07:00:00",
		3: "It was suspended by its user since 2026-11-22 09:00:00",
		0: "It had ended since 2026-11-22 10:00:00, for 2h0m0s by then.",
	} {
		at := noon.Add(-time.Duration(hours) * time.Hour).Format(time.RFC3339)
		code, said, errs := askWhy(t, "ads/ctr", "--at", at, "--config", file)
		g.Expect(errs).To(BeEmpty())
		g.Expect(code).To(BeZero())
		g.Expect(said).To(ContainSubstring("\n\n"+want), "%d hours before noon", hours)
	}
	_, said, _ := askWhy(t, "ads/ctr", "--at", "2026-11-22 09:30", "--config", file)
	g.Expect(said).To(HaveSuffix("What happened next:\n  2026-11-22 10:00:00 Ended: Ended it is.\n"), "not to the next job")
	_, said, _ = askWhy(t, "ads/ctr", "--at", "2026-11-22 02:30", "--config", file)
	g.Expect(said).To(And(
		ContainSubstring("No other job of its queue began to run while it waited."),
		ContainSubstring("What happened next:\n  2026-11-22 03:00:00 Capped: Capped it is.\n")))
}

func TestListsAreBounded(t *testing.T) {
	g := NewWithT(t)
	var stays []ledger.Stay
	var decisions []ledger.Decision
	hostile := "\x1b[2J\n\U0001F4A3" + strings.Repeat("x", 500)
	for i := range 100 {
		begin := noon.Add(-2*time.Hour + time.Duration(i)*time.Second)
		stays = append(stays, ledger.Stay{
			Pod: ledger.Pod{
				UID: strconv.Itoa(i), Namespace: "ads", Queue: "ads", User: hostile, Task: fmt.Sprint(i, hostile), Role: hostile,
				Resources: ledger.Resources{"cpu": 1500, "example.com/" + hostile: 1000},
			},
			Begin: begin, End: begin.Add(2 * time.Hour),
		})
		gave := func(d *ledger.Decision) { d.ID, d.Message = strconv.Itoa(i), hostile }
		decisions = append(decisions, decided(1, decisionlog.GaveWay, gave))
	}
	stays = append(stays, ledger.Stay{
		Pod:   ledger.Pod{UID: "cpu", Queue: "ads", Task: "t", Resources: ledger.Resources{"cpu": 1500}},
		Begin: noon.Add(-3 * time.Hour), End: noon.Add(time.Hour),
	})
	decisions = append(decisions, decided(2, decisionlog.Ran, func(d *ledger.Decision) { d.Message = hostile }))
	file := keepDecisions(t, stays, decisions...)
	_, said, _ := askWhy(t, "ads/ctr", "--at", "2026-11-22 11:30", "--config", file)
	g.Expect(said).To(And(ContainSubstring("  and 70 more\n"), ContainSubstring("  and 71 more tasks"),
		ContainSubstring("  (not known)"), ContainSubstring("1.5 cpu"), Not(ContainSubstring("\x1b"))))
	for line := range strings.Lines(said) {
		g.Expect(utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))).To(BeNumerically("<=", width), line)
	}
}

func TestWhyOfNothing(t *testing.T) {
	g := NewWithT(t)
	file, none := keepDecisions(t, nil, decided(1, decisionlog.Ran)), filepath.Join(t.TempDir(), "none.yaml")
	unkept := filepath.Join(t.TempDir(), "configuration.yaml")
	g.Expect(os.WriteFile(unkept, []byte(header), 0o600)).To(Succeed())
	for says, args := range map[string][]string{
		"nothing is known of job ctr in namespace ads at that time: the first that is known is of 2026-11-22 11:00:00": {
			"ads/ctr", "--config", file},
		"nothing is known of job rank in namespace ads: it was not there, or the ledger is not that old": {
			"ads/rank", "--config", file},
		"cannot read the operator's configuration (--config): open " + none + ": no such file": {"ads/ctr", "--config", none},
		"the configuration names no ledger":                                                    {"ads/ctr", "--config", unkept},
	} {
		code, said, errs := askWhy(t, append(args, "--at", "2026-11-22 10:00")...)
		g.Expect(errs).To(HavePrefix("tideline why: " + says))
		g.Expect(said).To(BeEmpty())
		g.Expect(code).To(Equal(1))
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	g.Expect(run(canceled, &out, &errs, "why", "ads/ctr", "--at", "2026-11-22 11:30", "--config", file)).To(Equal(1))
}

func TestWrongUseOfWhy(t *testing.T) {
	g := NewWithT(t)
	for says, args := range map[string][]string{
		"name one job: NAME with -n NAMESPACE, or NAMESPACE/NAME": {"--at", "2026-11-17 14:30"},
		"--at \"tuesday\\n\": write a time":                       {"ads/ctr", "--at", "tuesday\n"},
		"--at \"2026-11-22 12:01\": that has not happened yet":    {"ads/ctr", "--at", "2026-11-22 12:01"},
		"--zone \"Mars\": there is no such time zone":             {"ads/ctr", "--at", "2026-11-17 14:30", "--zone", "Mars"},
		"unknown flag: --since; -h says more":                     {"ads/ctr", "--since", "1h"},
		"--zone \"Local\": there is no such time zone; -h says":   {"ads/ctr", "--at", "2026-11-17 14:30", "--zone", "Local"},
		"\"ads/rank\" is too much: name one job at a time; -h":    {"ads/ctr", "ads/rank", "--at", "2026-11-17 14:30"},
	} {
		code, said, errs := askWhy(t, args...)
		g.Expect(errs).To(And(HavePrefix("tideline why: "), ContainSubstring(says)))
		g.Expect(said).To(BeEmpty())
		g.Expect(code).To(Equal(2))
	}
	code, said, _ := askWhy(t, "-h")
	g.Expect(code).To(BeZero())
	g.Expect(said).To(And(ContainSubstring("Usage:\n  tideline why JOB"), ContainSubstring("--zone name")))
}

// A user who asks about the past on a machine of his own learns where the ledger is.
func TestPastIsAskedWhereTheOperatorRuns(t *testing.T) {
	g := NewWithT(t)
	_, err := cli.ReadOperatorConfiguration(cli.DefaultConfig)
	g.Expect(err).To(MatchError(And(ContainSubstring("no such file"), HaveSuffix("; run the command where the operator runs, "+
		"by kubectl exec, as -h shows"))))
	_, err = cli.ReadOperatorConfiguration("mine.yaml")
	g.Expect(err).To(MatchError(HaveSuffix("no such file or directory")))
}
