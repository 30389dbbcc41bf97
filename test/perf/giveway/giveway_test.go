// Package giveway compares the pairs of Volcano's actions that evict, by what a waiting gang costs the surplus of others. Run
// it as
//
//	make bench-giveway
//
// The pairs take turns, trial by trial, and each goes first in every other trial, so that what else the machine does is the same
// for both. The table is written into docs/decisions/0013-volcano-configuration.md.
package giveway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/markdown"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

const (
	command = "make bench-giveway"
	// trialsVariable says how many trials there are for each pair, pageVariable into which file the table is written, and
	// commitVariable what is measured.
	trialsVariable, pageVariable, commitVariable = "TIDELINE_GIVEWAY_TRIALS", "TIDELINE_GIVEWAY_PAGE", "TIDELINE_GIVEWAY_COMMIT"
	// patience is how long a newcomer waits at most; the operator would tell surplus to leave after 60 s where it is asked to.
	patience = 50 * time.Second
	// look is how often the newcomer is looked at, and so how exact the time is.
	look = 50 * time.Millisecond
	// after is for how long evictions are counted once the newcomer runs: several cycles of the scheduler.
	after = 4 * time.Second
)

func TestGiveWay(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(trialsVariable))
	if err != nil || n <= 0 {
		t.Skipf("%s does not say how many trials: %s takes half an hour", trialsVariable, command)
	}
	if missing := testutil.ByGang.Missing(); missing != "" {
		t.Skip(missing)
	}
	suite.Defaults()
	shipped, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "volcano", "volcano-scheduler.conf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CGO_ENABLED", "0") // The operator without the race detector.
	in, err := testutil.Start(t.Context(), cluster.Options{GPUNodes: -1, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Stop(); err != nil {
			t.Error(err)
		} else if !t.Failed() {
			_ = in.RemoveLogs()
		}
	})
	results := map[string][]outcome{}
	for _, tr := range trials(n) {
		pairs := slices.Clone(testutil.BothPairs)
		if tr.number%2 == 1 {
			slices.Reverse(pairs)
		}
		for _, pair := range pairs {
			t.Run(fmt.Sprintf("trial %d of %d, %s", tr.number, n, pair.Name), func(t *testing.T) {
				conf, err := pair.Configure(string(shipped))
				if err == nil {
					err = in.Cluster.SetSchedulerConf(t.Context(), conf)
				}
				if err != nil {
					t.Fatal(err)
				}
				got := tr.run(t, in.World, pair)
				t.Logf("a gang of %d from %s: %+v", tr.gang, tr.scene, got)
				results[pair.Name] = append(results[pair.Name], got)
			})
		}
	}
	page := os.Getenv(pageVariable)
	if t.Failed() {
		page = "" // What is missing is not to be seen in a table.
	}
	if err := report(page, results); err != nil {
		t.Error(err)
	}
}

// report prints the table, and writes it into a page if one is named.
func report(page string, results map[string][]outcome) error {
	text := fmt.Sprintf("Measured at commit %s.\n\n%s", os.Getenv(commitVariable), table(results))
	fmt.Println(text)
	if page == "" {
		return nil
	}
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := markdown.ReplaceMarked(string(before), command, text)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(written), 0o644)
}

// run has the newcomer come onto a full cluster, and counts what it costs.
func (tr trial) run(t *testing.T, w *testutil.World, pair testutil.Evicting) outcome {
	g := NewWithT(t)
	st := tr.fill(t, w)
	newcomer := st.newcomers.Job("newcomer").Pool(st.pool).Range(int32(tr.gang), int32(tr.gang))
	got := outcome{scene: tr.scene, need: tr.gang}
	runs := func() int {
		running, err := st.newcomers.Workers("newcomer", testutil.Running)()
		g.Expect(err).NotTo(HaveOccurred(), "pods are listed")
		return len(running)
	}
	began := time.Now()
	st.newcomers.Submit(newcomer)
	_ = wait.PollUntilContextTimeout(t.Context(), look, patience, true, func(context.Context) (bool, error) {
		got.served = runs() == tr.gang
		got.waited = time.Since(began)
		return got.served, nil
	}) // One that is not served in time is an outcome.
	g.Consistently(func() bool { return runs() == tr.gang }).WithTimeout(after).Should(Equal(got.served), "and so it stays")
	for _, name := range st.deleted(g) {
		got.count(name)
	}
	st.checkReasons(g, pair)
	return got
}

// namespaces are those of the stage.
func (st stage) namespaces() map[string]*testutil.Scenario {
	all := map[string]*testutil.Scenario{st.newcomers.Namespace: st.newcomers}
	for _, home := range st.jobs {
		all[home.Namespace] = home
	}
	return all
}

// deleted are the names of the pods that anybody deleted, as namespace/pod. The operator is not asked to delete one here.
func (st stage) deleted(g Gomega) []string {
	var names []string
	for namespace, s := range st.namespaces() {
		requests, err := s.Audit.Select(testutil.Doing("delete", "pods"), testutil.Not(testutil.ByKubelet),
			testutil.Not(testutil.Refused))
		g.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		for _, r := range requests {
			g.Expect(testutil.ByVolcano(r)).To(BeTrue(), "Volcano alone evicts: %s", r)
			if name := namespace + "/" + r.Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// checkReasons sees from Volcano's events that the pair which is tried was the one that evicted.
func (st stage) checkReasons(g Gomega, pair testutil.Evicting) {
	var all []string
	for _, s := range st.namespaces() {
		reasons, err := s.EvictedFor()
		g.Expect(err).NotTo(HaveOccurred(), "events are listed")
		all = append(all, reasons...)
	}
	g.Expect(all).To(HaveEach(Satisfy(pair.Evicted)), "%s evicts, and nothing else", pair.Name)
}

// count counts an eviction of a pod, by its name, as namespace/job-worker-index.
func (o *outcome) count(name string) {
	o.evicted++
	job, index, _ := strings.Cut(name, "-worker-")
	i, err := strconv.Atoi(index)
	if err != nil || i >= minReplicas && !strings.HasSuffix(job, "/newcomer") {
		return
	}
	if i == 0 {
		o.masters++
	}
	if !slices.Contains(o.broken, job) {
		o.broken = append(o.broken, job)
	}
}
