package arbiter

import (
	"cmp"
	"fmt"
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

// Trainings come in a future as they came lately, beginning at a moment that is drawn for each future, and around again:
//
//	lately       |--a---b-----c--------d-|now
//	a future                       now|--d---a---b-----c--------d---a--
//
// So teams, sizes, bursts and quiet hours are those that there were.

const (
	// mostCame bounds how many trainings are learnt from: those that came last.
	mostCame = 1000
	// longestWindow is how far back they are learnt from, and shortestWindow how far at least: before the first of them came none.
	longestWindow, shortestWindow = 7 * 24 * time.Hour, 24 * time.Hour
)

// arrivals are the trainings that came lately.
type arrivals struct {
	window time.Duration
	// came are in the order of time.
	came []arrived
}

// arrived is a training that came some time after the window began.
type arrived struct {
	after time.Duration
	gang  capacity.Gang
	lasts func(*rand.Rand) time.Duration
}

// learnArrivals returns those but for the training that is asked about. One that was suspended before it began did not wait.
func learnArrivals(c *collector, history *lifetime.History, but *v1beta1.ElasticTrainingJob) arrivals {
	var jobs []*v1beta1.ElasticTrainingJob
	for _, job := range c.jobs {
		age := c.now.Sub(job.CreationTimestamp.Time)
		idle := job.Spec.Suspend && job.Status.StartTime == nil
		if age >= 0 && age < longestWindow && job.Spec.MinReplicas > 0 && job.Status.Queue != "" && !idle && job.UID != but.UID {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b *v1beta1.ElasticTrainingJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	least := shortestWindow
	if len(jobs) > mostCame {
		jobs, least = jobs[len(jobs)-mostCame:], time.Second // Others came before them.
	}
	if len(jobs) == 0 {
		return arrivals{}
	}
	a := arrivals{window: max(c.now.Sub(jobs[0].CreationTimestamp.Time), least)}
	for _, job := range jobs {
		one := arrived{after: a.window - c.now.Sub(job.CreationTimestamp.Time), gang: *c.variantsOf(job, job.Status.Queue)[0]}
		one.lasts, _ = history.DrawFor(job.Namespace, trainingpod.TaskOf(job), job.Status.Queue, 0)
		a.came = append(a.came, one)
	}
	return a
}

// drawFuture draws who comes from now on: the n-th of them, the same each time it is asked for; nil for no one.
func (a *arrivals) drawFuture(random *rand.Rand, now time.Time) func(n int) (capacity.Arrival, bool) {
	if len(a.came) == 0 {
		return nil
	}
	begin := time.Duration(random.Int64N(int64(a.window)))
	first := sort.Search(len(a.came), func(i int) bool { return a.came[i].after >= begin })
	var drawn []capacity.Arrival
	return func(n int) (capacity.Arrival, bool) {
		for len(drawn) <= n {
			at := first + len(drawn)
			of := &a.came[at%len(a.came)]
			after := of.after - begin + time.Duration(at/len(a.came))*a.window
			if after > farthest {
				return capacity.Arrival{}, false
			}
			g := of.gang
			g.Created = now.Add(after)
			// A name that no object has.
			g.Job = types.NamespacedName{Namespace: g.Job.Namespace, Name: fmt.Sprintf("%s/%d", g.Job.Name, len(drawn))}
			drawn = append(drawn, capacity.Arrival{Gang: &g, After: after, Lasts: of.lasts(random)})
		}
		return drawn[n], true
	}
}
