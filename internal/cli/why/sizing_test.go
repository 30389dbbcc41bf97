package why

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// header begins a configuration.
const header = "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n"

func open(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	return ledger.Open(ctx, ledger.Options{File: at.File})
}

// keep makes a ledger with days of container trainer of a task's workers, and a configuration that names it, whose path it
// returns.
func keep(t *testing.T, days ...sizing.Usage) string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	at := config.Ledger{File: filepath.Join(folder, "ledger.db")}
	l, err := open(t.Context(), at)
	g.Expect(err).NotTo(HaveOccurred())
	var entries ledger.Entries
	for i, u := range days {
		content, err := json.Marshal(u)
		g.Expect(err).NotTo(HaveOccurred())
		part := ledger.Part{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Role: "worker", Container: "trainer"}
		if i == 0 {
			entries.OOMKills = []ledger.OOMKill{{ID: "kill", Part: part, At: noon.AddDate(0, 0, -1), LimitBytes: 9 << 30}}
		}
		entries.PartDays = append(entries.PartDays, ledger.PartDay{
			Part: part,
			Day:  noon.AddDate(0, 0, -1-i), SeenSeconds: u.SeenSeconds, Content: string(content),
		})
	}
	g.Expect(l.RecordEntries(t.Context(), entries)).To(Succeed())
	g.Expect(l.Close()).To(Succeed())
	file := filepath.Join(folder, "configuration.yaml")
	g.Expect(os.WriteFile(file, []byte(header+"ledger: {file: "+at.File+"}\n"), 0o600)).To(Succeed())
	return file
}

// ask runs the command.
func ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), &out, &errs, slices.Concat([]string{"sizing"}, args)...)
	return code, out.String(), errs.String()
}

func aDay(processors float64, memory int64) sizing.Usage {
	u := sizing.Usage{RunSeconds: 86400, SeenSeconds: 86400, EvidenceSeconds: 86400, MemoryPeak: memory}
	u.CPU.Add(processors, 288)
	return u
}

func TestSizing(t *testing.T) {
	g := NewWithT(t)
	killed := aDay(1, 6<<30)
	killed.OOMKills, killed.MemoryHeld = 2, 7<<30
	killed.Throttled.Add(1, 72)
	file := keep(t, aDay(2, 8<<30), killed)
	code, said, errs := ask(t, "ads/ctr", "--config", file, "--tier", "small-traffic")
	g.Expect(errs).To(BeEmpty())
	g.Expect(code).To(BeZero())
	g.Expect(said).To(Equal(`Task ctr of ElasticTrainingJobs in namespace ads, 7 days until 2026-11-22T12:00:00Z, in UTC

worker/trainer
DAY         RAN  SEEN   CPU P50  P95   P99   THROTTLED  MEMORY  HELD  OOM
2026-11-20  24h  100 %  1        ?     ?     20 %       6Gi     7Gi   2
2026-11-21  24h  100 %  1.97     2.02  2.02  0 %        8Gi     -     1
cpu in tier small-traffic: 2.01 processors in use over 2 of 7 days × 1.54 × 1.36 for a short history = 4.21.
memory in tier small-traffic: 8Gi peak memory over 2 of 7 days × 1.3 × 1.36 for a short history = 14.1Gi.
`))
	_, said, _ = ask(t, "--config="+file, "ads/ctr")
	g.Expect(said).To(And(ContainSubstring("cpu in tier exploratory: "), ContainSubstring("cpu in tier main-traffic: ")))
}

func TestSizingForPrograms(t *testing.T) {
	g := NewWithT(t)
	_, said, errs := ask(t, "ctr", "-n", "ads", "--config", keep(t, aDay(2, 8<<30)), "--tier", "small-traffic", "-o", "json")
	g.Expect(errs).To(BeEmpty())
	var answer sizingAnswer
	g.Expect(json.Unmarshal([]byte(said), &answer)).To(Succeed())
	g.Expect(answer.Parts).To(HaveLen(1))
	part := answer.Parts[0]
	g.Expect(part.Days).To(ContainElement(And(HaveField("Day", "2026-11-21"), HaveField("MemoryPeakBytes", int64(8<<30)))))
	g.Expect(part.Estimates).To(HaveLen(2))
	g.Expect(part.Estimates[0].Tier).To(Equal("small-traffic"))
}

func TestSizingOfNothing(t *testing.T) {
	g := NewWithT(t)
	file := keep(t, aDay(2, 8<<30))
	none := filepath.Join(t.TempDir(), "none.yaml")
	kept := func(ledger string) string {
		path := filepath.Join(t.TempDir(), "configuration.yaml")
		g.Expect(os.WriteFile(path, []byte(header+ledger), 0o600)).To(Succeed())
		return path
	}
	for says, args := range map[string][]string{
		"tideline sizing: nothing is known of task rank of ElasticTrainingJobs in namespace ads in the last 7 days: it did not run, " +
			"or what it used was not collected (prometheus.url)\n": {"ads/rank", "--config", file},
		"tideline sizing: there is no tier \"main\": there are exploratory, small-traffic, main-traffic\n": {
			"ads/ctr", "--config", file, "--tier", "main"},
		"tideline sizing: cannot read the operator's configuration (--config): open " + none + ": no such file or directory\n": {
			"ads/ctr", "--config", none},
		"tideline sizing: the configuration names no ledger (ledger.file, ledger.postgresDSNFile), so that nothing is kept\n": {
			"ads/ctr", "--config", kept("")},
		"tideline sizing: there is no ledger here (ledger.file), run the command where the operator runs: stat /nowhere/ledger.db: " +
			"no such file or directory\n": {"ads/ctr", "--config", kept("ledger: {file: /nowhere/ledger.db}\n")},
	} {
		code, said, errs := ask(t, args...)
		g.Expect(errs).To(Equal(says))
		g.Expect(said).To(BeEmpty())
		g.Expect(code).To(Equal(1))
	}
}

func TestWrongUse(t *testing.T) {
	g := NewWithT(t)
	for says, args := range map[string][]string{
		"name one task: NAME with -n NAMESPACE, or NAMESPACE/NAME; -h says more": {},
		"\"ads/rank\" is too much: name one task at a time; -h says more":        {"ads/ctr", "ads/rank"},
		"--kind \"pod\": it is job or merge; -h says more":                       {"ads/ctr", "--kind", "pod"},
		"--days 29: it is from 1 to 28; -h says more":                            {"ads/ctr", "--days=29"},
		"unknown flag: --since; -h says more":                                    {"--since", "1h"},
	} {
		code, said, errs := ask(t, args...)
		g.Expect(errs).To(And(HavePrefix("tideline sizing: "), ContainSubstring(says)))
		g.Expect(said).To(BeEmpty())
		g.Expect(code).To(Equal(2))
	}
	code, said, _ := ask(t, "-h")
	g.Expect(code).To(BeZero())
	g.Expect(said).To(And(ContainSubstring("Usage:\n  tideline sizing TASK"), ContainSubstring("--days number")))
}
