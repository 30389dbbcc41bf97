package arbiter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// The trainings of each namespace come in a future as they came lately, beginning at a moment that is drawn for each future, and
// around again:
//
//	lately       |--a---b-----c--------d-|now
//	a future                       now|--d---a---b-----c--------d---a--
//
// So teams, sizes, bursts and quiet hours are those that there were, and who submits very many changes the rate of no one else.

const (
	// mostCame bounds how many trainings are learnt from: those that came last, of all namespaces by turns. mostComing bounds how
	// many come in one future.
	mostCame, mostComing = 1000, 100_000
	// longestWindow is how far back they are learnt from. Of a namespace whose first came within shortestWindow, none came before;
	// one with more than are learnt from has a window as long as these took, and fullWindow at least.
	longestWindow, shortestWindow, fullWindow = 7 * 24 * time.Hour, 24 * time.Hour, time.Hour
)

// arrivals are the trainings that came lately, by namespace.
type arrivals struct {
	streams []stream
	// came is how many they are, and window how far they go back.
	came   int
	window time.Duration
}

// stream are the trainings of a namespace, in the order of time.
type stream struct {
	window time.Duration
	came   []arrived
}

// arrived is a training that came some time after the window began.
type arrived struct {
	after time.Duration
	gang  capacity.Gang
	lasts func(*rand.Rand) time.Duration
}

// learnArrivals returns those but for the training that is asked about. One that has neither begun nor waits for room, because it
// is suspended or withheld, is none.
func learnArrivals(c *collector, history *lifetime.History, waiting []capacity.Gang, but *v1beta1.ElasticTrainingJob) arrivals {
	waits := make(map[types.NamespacedName]bool, len(waiting))
	for i := range waiting {
		waits[waiting[i].Job] = true
	}
	lately := map[string][]*v1beta1.ElasticTrainingJob{}
	for key, job := range c.jobs {
		age := c.now.Sub(job.CreationTimestamp.Time)
		if age >= 0 && age < longestWindow && job.Spec.MinReplicas > 0 && job.Status.Queue != "" && job.UID != but.UID &&
			(job.Status.StartTime != nil || waits[key]) {
			lately[key.Namespace] = append(lately[key.Namespace], job)
		}
	}
	var all arrivals
	each := shareEqually(lately, mostCame)
	for _, namespace := range slices.Sorted(maps.Keys(lately)) {
		jobs, least := lately[namespace], shortestWindow
		slices.SortFunc(jobs, func(a, b *v1beta1.ElasticTrainingJob) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
		})
		if len(jobs) > each {
			jobs, least = jobs[len(jobs)-each:], fullWindow
		}
		s := stream{window: max(c.now.Sub(jobs[0].CreationTimestamp.Time), least)}
		for _, job := range jobs {
			one := arrived{after: s.window - c.now.Sub(job.CreationTimestamp.Time), gang: *lastCoreOf(c, job)}
			if one.gang.Shape.Unmodelled == "" {
				one.lasts, _ = history.DrawFor(job.Namespace, trainingpod.TaskOf(job), job.Status.Queue, 0)
				s.came = append(s.came, one)
			}
		}
		if len(s.came) > 0 {
			all.streams, all.came, all.window = append(all.streams, s), all.came+len(s.came), max(all.window, s.window)
		}
	}
	return all
}

// shareEqually is how many of each list may be kept, so that no more than most are in all.
func shareEqually[T any](lists map[string][]T, most int) int {
	sizes := make([]int, 0, len(lists))
	for _, list := range lists {
		sizes = append(sizes, len(list))
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if each := most / (len(sizes) - i); size > each {
			return max(each, 1)
		}
		most -= size
	}
	return math.MaxInt
}

// lastCoreOf is the core of a training that came lately, on the model of accelerator that it had last.
func lastCoreOf(c *collector, job *v1beta1.ElasticTrainingJob) *capacity.Gang {
	variants := c.variantsOf(job, job.Status.Queue)
	for _, g := range variants {
		if job.Status.Attempt != nil && g.Model == job.Status.Attempt.Model {
			return g
		}
	}
	return variants[0]
}

// drawFuture draws who comes from now on: the n-th of them, the same each time it is asked for; nil for no one.
func (a *arrivals) drawFuture(random *rand.Rand, now time.Time) func(n int) (capacity.Arrival, bool) {
	if len(a.streams) == 0 {
		return nil
	}
	next := make([]turn, len(a.streams))
	for i := range a.streams {
		next[i] = a.streams[i].begin(random)
	}
	var drawn []capacity.Arrival
	return func(n int) (capacity.Arrival, bool) {
		for len(drawn) <= n {
			first := &next[0]
			for i := range next {
				if next[i].after() < first.after() {
					first = &next[i]
				}
			}
			after := first.after()
			if after > farthest || len(drawn) == mostComing {
				return capacity.Arrival{}, false
			}
			of := first.of()
			first.at++
			g := of.gang
			g.Created = now.Add(after)
			// A name that no object has.
			g.Job = types.NamespacedName{Namespace: g.Job.Namespace, Name: fmt.Sprintf("%s/%d", g.Job.Name, len(drawn))}
			drawn = append(drawn, capacity.Arrival{Gang: &g, After: after, Lasts: of.lasts(random)})
		}
		return drawn[n], true
	}
}

// turn goes around a stream, from where it began.
type turn struct {
	*stream

	begun time.Duration
	at    int
}

func (s *stream) begin(random *rand.Rand) turn {
	t := turn{stream: s, begun: time.Duration(random.Int64N(int64(s.window)))}
	t.at = sort.Search(len(s.came), func(i int) bool { return s.came[i].after >= t.begun })
	return t
}

// of is who comes next, and after is when, from now on.
func (t *turn) of() *arrived { return &t.came[t.at%len(t.came)] }

func (t *turn) after() time.Duration {
	return t.of().after - t.begun + time.Duration(t.at/len(t.came))*t.window
}
