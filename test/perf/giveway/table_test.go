package giveway

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil"
)

// outcome is what one newcomer got, and what it cost.
type outcome struct {
	scene  scene
	need   int
	served bool
	// waited is from the creation of the newcomer until all its workers ran.
	waited time.Duration
	// evicted are pods; masters are those of them that were worker 0.
	evicted, masters int
	// broken are the jobs that lost a worker of their core.
	broken []string
}

// beyond is how many left whom nobody needed to leave.
func (o *outcome) beyond() int { return max(0, o.evicted-o.need) }

// table is the comparison, one column for each pair.
func table(results map[string][]outcome) string {
	var lines strings.Builder
	row := func(what string, cell func(testutil.Evicting) string) {
		fmt.Fprintf(&lines, "| %s |", what)
		for _, pair := range testutil.BothPairs {
			fmt.Fprintf(&lines, " %s |", cell(pair))
		}
		lines.WriteString("\n")
	}
	count := func(what string, of func(outcome) int) {
		row(what, func(pair testutil.Evicting) string { return strconv.Itoa(sum(results[pair.Name], of)) })
	}
	row("", func(pair testutil.Evicting) string { return "`" + pair.Name + "`" })
	lines.WriteString("|---|" + strings.Repeat("---|", len(testutil.BothPairs)) + "\n")
	row("newcomers that ran", func(pair testutil.Evicting) string {
		all := results[pair.Name]
		return fmt.Sprintf("%d of %d", sum(all, func(o outcome) int { return number(o.served) }), len(all))
	})
	row("seconds until it ran: median (10 %, 90 %)", func(pair testutil.Evicting) string { return spread(results[pair.Name]) })
	count("pods evicted", func(o outcome) int { return o.evicted })
	count("pods that had to leave", func(o outcome) int { return o.need })
	row("**evicted beyond the need**", func(pair testutil.Evicting) string { return beyond(results[pair.Name]) })
	for s := range scenes {
		row("the same, into "+s.String(), func(pair testutil.Evicting) string {
			return beyond(slices.DeleteFunc(slices.Clone(results[pair.Name]), func(o outcome) bool { return o.scene != s }))
		})
	}
	count("worker 0 lost", func(o outcome) int { return o.masters })
	count("cores broken", func(o outcome) int { return len(o.broken) })
	return lines.String()
}

// beyond says how many left in vain, and in how many trials any did.
func beyond(all []outcome) string {
	return fmt.Sprintf("%d, in %d of %d trials", sum(all, func(o outcome) int { return o.beyond() }),
		sum(all, func(o outcome) int { return number(o.beyond() > 0) }), len(all))
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func sum(all []outcome, of func(outcome) int) (n int) {
	for _, o := range all {
		n += of(o)
	}
	return n
}

// spread is the median of how long those waited that were served, and the tenth and ninetieth of a hundred.
func spread(all []outcome) string {
	waited := []time.Duration{}
	for _, o := range all {
		if o.served {
			waited = append(waited, o.waited)
		}
	}
	if len(waited) == 0 {
		return "none"
	}
	slices.SortFunc(waited, cmp.Compare[time.Duration])
	at := func(share float64) float64 {
		return waited[min(len(waited)-1, int(share*float64(len(waited))))].Seconds()
	}
	return fmt.Sprintf("%.1f (%.1f, %.1f)", at(0.5), at(0.1), at(0.9))
}

func TestTable(t *testing.T) {
	two, six := outcome{scene: sameQueue, need: 2, served: true, waited: 2 * time.Second}, outcome{scene: twoKinds, need: 1}
	two.count("ns/a-worker-7")
	two.count("ns/a-worker-6")
	for _, name := range []string{"ns/b-worker-0", "ns/b-worker-1", "ns/b-worker-2", "ns/newcomer-worker-3", "ns/other-1"} {
		six.count(name)
	}
	got := table(map[string][]outcome{testutil.ByTask.Name: {two, two}, testutil.ByGang.Name: {two, six}})
	for _, want := range []string{
		"| newcomers that ran | 2 of 2 | 1 of 2 |",
		"| seconds until it ran: median (10 %, 90 %) | 2.0 (2.0, 2.0) | 2.0 (2.0, 2.0) |",
		"| pods evicted | 4 | 7 |",
		"| pods that had to leave | 4 | 3 |",
		"| **evicted beyond the need** | 0, in 0 of 2 trials | 4, in 1 of 2 trials |",
		"| the same, into one of two kinds of nodes | 0, in 0 of 0 trials | 4, in 1 of 1 trials |",
		"| worker 0 lost | 0 | 1 |",
		"| cores broken | 0 | 2 |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no line\n%s\nin\n%s", want, got)
		}
	}
}

// The workload is the same every time, and has as many newcomers of each scene.
func TestWorkload(t *testing.T) {
	seen, sizes := map[scene]int{}, map[int]int{}
	for i, tr := range trials(60) {
		if tr != trials(i + 1)[i] {
			t.Errorf("trial %d is not always the same", i)
		}
		seen[tr.scene]++
		sizes[tr.gang]++
	}
	for s := range scenes {
		if seen[s] != 20 {
			t.Errorf("%d newcomers into %s, want 20", seen[s], s)
		}
	}
	for size := 1; size <= largest; size++ {
		if sizes[size] == 0 {
			t.Errorf("no newcomer of %d in %v", size, sizes)
		}
	}
}
