package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the operator dies at any of its writes", func() {
	told := slices.Concat(stories, mergeStories, profileStories, tierStories, reportStories, rareStories)
	if fullGrid {
		told = append(told, rareMergeStories...)
	}
	for _, st := range spots(told, 4) {
		itEndsTheSame(st.name, st.everyWrite)
	}
})

// point is one place in a story where something goes wrong.
type point struct {
	// write is the number of the write that the fault hits; 0 if the operator is down while the story begins.
	write int
	fault fault
	// verdict is what became of it, and note what else is to be said of that.
	verdict verdict
	note    string
}

// everyWrite runs the story undisturbed, and then with a fault at each write of that run.
func (st *story) everyWrite(ctx context.Context, res *results) (string, error) {
	what := "killed or refused at a write: " + st.name
	res.plan(what, byChance)
	end, err := st.undisturbed()
	if err != nil {
		return "", err
	}
	points := spots(st.points(end.writes), 8)
	var runs []func() error
	for i := range points {
		runs = append(runs, func() error {
			return res.record(what, func() (verdict, error) { return st.tryPoint(ctx, &points[i]) })
		})
	}
	err = abreast(runs...)
	return table(end.writes, points), err
}

// points lists what can be tried: every fault at every write for the full grid, else one crash at each write, before or after it
// by turns, and one that lasts while the story begins; of a story that is seldom told only that one.
func (st *story) points(writes []call) []point {
	points := []point{{}}
	if st.rare && !fullGrid {
		return points
	}
	for i := range writes {
		if fullGrid {
			for _, f := range st.faults() {
				points = append(points, point{write: i + 1, fault: f})
			}
			continue
		}
		// By turns in one run, and the other way around in about every second run.
		f := [...]fault{crashBefore, crashAfter}[(int64(i)+GinkgoRandomSeed())%2]
		points = append(points, point{write: i + 1, fault: f})
	}
	return points
}

// faults are those of the full grid. Of the ways in which a request may fail without being carried out, the operator knows only
// a conflict from the others, so that a rare story is spared three of them.
func (st *story) faults() []fault {
	if st.rare {
		return []fault{crashBefore, crashAfter, conflict, timeoutAfter}
	}
	return []fault{crashBefore, crashAfter, conflict, tooManyRequests, internalError, timeoutBefore, timeoutAfter}
}

// tryPoint runs the story with the fault until it hits. The number of writes varies a little: a count of ready workers that
// changes fast is written once or twice. Three runs that made fewer writes show that there is no such point: they ended
// as the undisturbed one, and each of their writes is a point of its own.
func (st *story) tryPoint(ctx context.Context, p *point) (verdict, error) {
	var writes int
	for range 3 {
		hit := false
		err := try(ctx, fmt.Sprintf("%s, %s", st.name, p), func(t *storyRun) {
			env := st.begin(t)
			p.arrange(env, st.action)
			st.sequel(env)
			end := st.endsSame(env)
			writes, hit = len(end.writes), len(env.proxy.faulted()) > 0 || p.write == 0
			env.Expect(hit || writes < p.write).To(BeTrue(), "a write that is made is hit")
		})
		if err != nil {
			return failed, err
		}
		if hit {
			p.verdict = passed
			return passed, nil
		}
	}
	p.verdict, p.note = void, fmt.Sprintf(", %d writes only in three more runs", writes)
	return void, nil
}

// arrange has the story begin and the fault lie in wait.
func (p *point) arrange(env *environment, action func(*environment)) {
	if p.write == 0 {
		env.whileDown(func() { action(env) })
		return
	}
	env.proxy.inject(at(p.write, p.fault))
	action(env)
}

// String says where the point is.
func (p *point) String() string {
	if p.write == 0 {
		return "the operator being down when it happens"
	}
	return fmt.Sprintf("%s at write %d", p.fault, p.write)
}

// table says what was tried of a story.
func table(writes []call, points []point) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	last := -1
	for _, p := range points {
		switch p.write {
		case 0:
			_, _ = fmt.Fprintf(w, "\t%s\t%s%s", &p, p.verdict, p.note)
		case last:
			_, _ = fmt.Fprintf(w, ", %s: %s%s", p.fault, p.verdict, p.note)
		default:
			_, _ = fmt.Fprintf(w, "\n%d\t%s\t%s: %s%s", p.write, writes[p.write-1], p.fault, p.verdict, p.note)
		}
		last = p.write
	}
	_, _ = fmt.Fprintln(w)
	_ = w.Flush()
	return b.String()
}
