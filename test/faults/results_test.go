package faults

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// verdict is what became of a run.
type verdict int

const (
	failed verdict = iota
	passed
	// void: the fault hit nothing, because the story came to its end before.
	void
)

// String names the verdict.
func (v verdict) String() string { return [...]string{"FAILED", "passed", "void"}[v] }

// results are the verdicts of a spec's runs, counted line by line. A point that is tried several times counts as one run.
type results struct {
	mu    sync.Mutex
	lines []*line
}

// line counts what is alike.
type line struct {
	what   string
	counts [3]int
	// mayMiss is how many runs may hit nothing if none hits anything.
	mayMiss int
	// took is the sum of all runs' times in their lanes.
	took time.Duration
}

// allResults are those of all specs, in their order.
var allResults []*results

func newResults() *results {
	r := &results{}
	allResults = append(allResults, r)
	return r
}

// plan has a line of the table counted, in the order in which they are planned. mayMiss is how many runs of it may hit nothing
// if none hits anything.
func (r *results) plan(what string, mayMiss int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.line(what) == nil {
		r.lines = append(r.lines, &line{what: what, mayMiss: mayMiss})
	}
}

// record does one run and counts its verdict on a line that was planned.
func (r *results) record(what string, run func() (verdict, error)) error {
	began := time.Now()
	v, err := run()
	if err != nil {
		v = failed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.line(what)
	l.counts[v]++
	l.took += time.Since(began)
	return err
}

const (
	// mostVoid is how many of a hundred runs of a spec may hit nothing. Those that do prove nothing.
	mostVoid = 20
	// Fewer runs of a spec than these may hit nothing by chance: the number of writes varies a little.
	fewOfSpec = 10
	// byChance is the same of a line whose runs are each about one write: the short run tries one point of some lines.
	byChance = 2
)

// missed is an error where faults hit too little: on a line nothing at all, or nothing in too many runs of all lines.
func (r *results) missed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var tried, missed int
	for _, l := range r.lines {
		missed += l.counts[void]
		tried += l.counts[void] + l.counts[passed]
		if l.counts[void] > l.mayMiss && l.counts[passed] == 0 {
			return fmt.Errorf("%s: none of %d runs hit anything, so that they show nothing", l.what, l.counts[void])
		}
	}
	if tried >= fewOfSpec && missed*100 > tried*mostVoid {
		return fmt.Errorf("%d of %d runs hit nothing; more than %d %% show too little", missed, tried, mostVoid)
	}
	return nil
}

// line finds a line; the lock is held.
func (r *results) line(what string) *line {
	for _, l := range r.lines {
		if l.what == what {
			return l
		}
	}
	return nil
}

// tableVariable names the file to which the table of everything that was tried is written as well.
const tableVariable = "TIDELINE_FAULTS_TABLE"

var _ = ReportAfterSuite("table", func(Report) {
	table := summary()
	if table == "" {
		return // Another process has done the work, or none was done.
	}
	fmt.Print(table)
	if path := os.Getenv(tableVariable); path != "" {
		Expect(os.WriteFile(path, []byte(table), 0o600)).To(Succeed(), "the table is kept")
	}
})

// summary says in one line per story and fault how many points were tried and what became of them.
func summary() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	total := line{what: "in all"}
	_, _ = fmt.Fprintln(w, "points tried\tpassed\tvoid\tfailed\tseconds each\t  what happened")
	for _, r := range allResults {
		r.mu.Lock()
		for _, l := range r.lines {
			l.print(w)
			for v, n := range l.counts {
				total.counts[v] += n
			}
			total.took += l.took
		}
		r.mu.Unlock()
	}
	if total.counts == [3]int{} {
		return ""
	}
	total.print(w)
	_ = w.Flush()
	return b.String()
}

func (l *line) print(w *tabwriter.Writer) {
	c := l.counts
	tried := c[failed] + c[passed] + c[void]
	_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%.0f\t  %s\n", tried, c[passed], c[void], c[failed],
		l.took.Seconds()/float64(max(1, tried)), l.what)
}
