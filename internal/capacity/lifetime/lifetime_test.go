package lifetime

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var now = time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC)

// hours are gangs that ended, one for each number of hours.
func hours(task, queue string, each ...int) []Ended {
	var all []Ended
	for i, n := range each {
		all = append(all, Ended{
			Namespace: "ads", Task: task, Queue: queue, At: now.Add(time.Duration(i) * time.Minute), Lasted: time.Duration(n) * time.Hour,
		})
	}
	return all
}

// drawn is the least and the most of many drawings, in hours.
func drawn(draw Draw) []float64 {
	r, all := rand.New(rand.NewPCG(1, 2)), []float64{}
	for range 1000 {
		all = append(all, draw(NewFuture(r)).Hours())
	}
	slices.Sort(all)
	return []float64{all[0], all[len(all)-1]}
}

func TestTheNarrowestThatIsEnoughIsDrawnFrom(t *testing.T) {
	h := NewHistory(slices.Concat(
		hours("train", "a", 1, 2, 3, 4, 5, 20), hours("eval", "a", 10, 11, 12, 13), hours("other", "b", 50, 51, 52, 53, 54),
	))
	for name, c := range map[string]struct {
		task, queue string
		ran         int
		from        Source
		least, most float64
	}{
		"a new run of a task":                   {"train", "a", 0, FromTask, 1, 20},
		"which has run for longer than the one": {"train", "a", 1, FromTask, 1, 19},
		"for longer than most of its task":      {"train", "a", 3, FromQueue, 1, 17},
		"than most of its queue":                {"train", "a", 12, FromAll, 1, 42},
		"a task with too few":                   {"eval", "a", 0, FromQueue, 1, 20},
		"a queue with none":                     {"new", "c", 0, FromAll, 1, 54},
	} {
		g := NewWithT(t)
		draw, from := h.DrawFor("ads", c.task, c.queue, time.Duration(c.ran)*time.Hour)
		g.Expect(from).To(Equal(c.from), name)
		g.Expect(drawn(draw)).To(Equal([]float64{c.least, c.most}), name)
	}
	_, from := h.DrawFor("search", "train", "c", 0)
	NewWithT(t).Expect(from).To(Equal(FromAll), "a task of another namespace is another")
}

func TestWhereNothingIsKnownTheMedianIsTheAge(t *testing.T) {
	g := NewWithT(t)
	draw, from := NewHistory(nil).DrawFor("ads", "train", "a", 6*time.Hour)
	g.Expect(from).To(Equal(FromAge))
	r, shorter := rand.New(rand.NewPCG(3, 4)), 0
	for range 10000 {
		d := draw(NewFuture(r))
		g.Expect(d).To(And(BeNumerically(">=", 0), BeNumerically("<=", longest)))
		if d < 6*time.Hour {
			shorter++
		}
	}
	g.Expect(shorter).To(BeNumerically("~", 5000, 200))
	young, _ := NewHistory(nil).DrawFor("ads", "train", "a", 0)
	g.Expect(drawn(young)[1]).To(BeNumerically(">", 1), "a gang that has not begun lasts as one of a minute")
}

func TestTheLatestAreKept(t *testing.T) {
	g := NewWithT(t)
	many := make([]int, mostKept+100)
	for i := range many {
		many[i] = 1 + i
	}
	draw, _ := NewHistory(hours("train", "a", many...)).DrawFor("ads", "train", "a", 0)
	g.Expect(drawn(draw)[0]).To(BeNumerically(">=", 101), "the first hundred ended long ago")
}
