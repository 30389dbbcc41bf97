package suspicion

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// together is how long after a failure others of its job are the same one: when one worker fails, its peers often do too, and
	// which is noticed first is chance. mostTogether is of how many nodes at most any is blamed for it.
	together, mostTogether = time.Minute, 8
	// settleEvery is how often the time that a job spends on its nodes is counted, at most.
	settleEvery = time.Minute
	// mostNodes, mostTasks and mostOwners bound what is kept, mostWitnesses the tasks that are kept of one node.
	mostNodes, mostTasks, mostOwners, mostWitnesses = 10_000, 20_000, 20_000, 16
	// nothing is a sum or a time in hours that is as good as none.
	nothing = 0.001
)

// Source is who a failure is of.
type Source struct {
	// Owner is who answers for the job. Whoever can name others must not be believed: then it is the namespace.
	Owner string
	// Task tells the job's task from those of all others, in all namespaces.
	Task string
}

// Evidence is what was seen of jobs and nodes, in memory. It is bounded, whatever jobs do.
type Evidence struct {
	fleet  tally
	tasks  map[Source]*tally
	owners map[string]*tally
	jobs   map[types.UID]*job
	// open are the jobs with a failure that more nodes may be part of.
	open  map[types.UID]*job
	nodes map[string]*node
}

// job is where a job is.
type job struct {
	source Source
	// nodes are in order, and since when it is on each.
	nodes []string
	since []time.Time
	// at is until when its time was counted.
	at time.Time
	// failed are the nodes of the failure that began then.
	failed []string
	began  time.Time
}

// node is what is held against one.
type node struct {
	// jobs is how many are on it.
	jobs int
	// at is until when the gains are drained.
	at    time.Time
	gains []gain
}

// gain is what a task adds to the sum of a node. here is what was seen of the task on that node since its first failure there.
type gain struct {
	Source
	sum  float64
	here tally
}

// NewEvidence returns evidence of nothing.
func NewEvidence() *Evidence {
	return &Evidence{
		tasks: map[Source]*tally{}, owners: map[string]*tally{}, jobs: map[types.UID]*job{}, open: map[types.UID]*job{},
		nodes: map[string]*node{},
	}
}

// HoldNodes notes on which nodes a job has workers that run, from now on; none forgets the job. The order and repetitions do not
// matter. A job that goes on under another name counts as that from now on.
func (e *Evidence) HoldNodes(id types.UID, source Source, nodes []string, now time.Time) {
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	j := e.jobs[id]
	if j == nil {
		if len(nodes) == 0 {
			return
		}
		j = &job{source: source, at: now}
		e.jobs[id] = j
	}
	same := slices.Equal(j.nodes, nodes)
	if same && j.source == source && now.Sub(j.at) < settleEvery {
		return
	}
	e.settle(j, now)
	j.source = source
	if same {
		return
	}
	since := make([]time.Time, len(nodes))
	for i, name := range nodes {
		since[i] = now
		if at, was := slices.BinarySearch(j.nodes, name); was {
			since[i] = j.since[at]
		} else if n := e.nodeOf(name, now); n != nil {
			// Up to now fewer jobs were on it.
			n.drain(now)
			n.jobs++
		}
	}
	for _, name := range j.nodes {
		if _, stays := slices.BinarySearch(nodes, name); !stays {
			e.release(name, now)
		}
	}
	j.nodes, j.since = nodes, since
	if len(nodes) == 0 {
		delete(e.jobs, id)
	}
}

// release notes that a job is not on a node any more.
func (e *Evidence) release(name string, now time.Time) {
	n := e.nodes[name]
	if n == nil {
		return
	}
	n.drain(now)
	n.jobs = max(0, n.jobs-1)
	if n.isForgotten() {
		delete(e.nodes, name)
	}
}

// isForgotten is true for a node that nothing is known of.
func (n *node) isForgotten() bool { return n.jobs == 0 && len(n.gains) == 0 }

// settle counts the time of a job up to now.
func (e *Evidence) settle(j *job, now time.Time) {
	passed := now.Sub(j.at)
	if passed <= 0 {
		return
	}
	j.at = now
	hours := passed.Hours() * float64(len(j.nodes))
	task, owner := e.taskOf(j.source, now), e.ownerOf(j.source.Owner, now)
	e.fleet.fade(now)
	task.hours += hours
	owner.hours += hours
	e.fleet.hours += hours
	for _, name := range j.nodes {
		n := e.nodes[name]
		if n == nil || len(n.gains) == 0 {
			continue
		}
		if g := n.find(j.source); g != nil {
			g.here.fade(now)
			g.here.hours += passed.Hours()
		}
	}
}

// NoteFailure notes that a worker failed on a node by itself: nobody deleted or evicted it. Failures of one job within a minute
// are one, whose blame its nodes share; they are judged by [Evidence.SettleFailures].
func (e *Evidence) NoteFailure(id types.UID, source Source, name string, now time.Time) {
	j := e.jobs[id]
	if j == nil {
		j = &job{source: source, at: now} // It has left all nodes since.
	}
	if open := e.open[id]; open != nil {
		if j = open; now.Sub(j.began) <= together {
			// One more than may be blamed is kept, so that it is known that they were too many.
			if !slices.Contains(j.failed, name) && len(j.failed) <= mostTogether {
				j.failed = append(j.failed, name)
			}
			return
		}
		e.closeFailure(id, j)
	}
	j.failed, j.began = []string{name}, now
	e.open[id] = j
}

// NoteRejection notes that the kubelet of a node refused a worker.
func (e *Evidence) NoteRejection(source Source, name string, now time.Time) {
	e.blame(source, name, time.Time{}, 1, true, now)
}

// SettleFailures judges failures to which no more nodes come.
func (e *Evidence) SettleFailures(now time.Time) {
	for id, j := range e.open {
		// A failure that lies ahead was noted by a clock that was set back since.
		if passed := now.Sub(j.began); passed > together || passed < -together {
			e.closeFailure(id, j)
		}
	}
}

// closeFailure blames the nodes of a failure.
func (e *Evidence) closeFailure(id types.UID, j *job) {
	delete(e.open, id)
	share := shareOf(len(j.failed))
	for _, name := range j.failed {
		var since time.Time
		if at, on := slices.BinarySearch(j.nodes, name); on {
			since = j.since[at]
		}
		if share > 0 {
			// The hours up to the failure must be in before rates are read.
			e.settle(j, j.began)
			e.blame(j.source, name, since, share, false, j.began)
		}
	}
	j.failed = nil
}

// blame adds a failure, or a share of one, to what is held against a node. since is when the job came there; zero for unknown.
func (e *Evidence) blame(source Source, name string, since time.Time, share float64, rejected bool, now time.Time) {
	n := e.nodeOf(name, now)
	if n == nil {
		return
	}
	n.drain(now)
	doubted := n.sum() >= doubtAt
	g := n.find(source)
	if g == nil {
		g = n.add(source, now)
		if !since.IsZero() && now.After(since) {
			// These hours are among the task's already, and without subtracts what was seen here.
			g.here.hours = now.Sub(since).Hours()
		}
	}
	task, owner := e.taskOf(source, now), e.ownerOf(source.Owner, now)
	e.fleet.fade(now)
	ofOwner := n.seenOf(source.Owner, now)
	// A bad node must not make its tasks look as if they failed everywhere.
	elsewhere, others, fleet := task.without(g.here), owner.without(ofOwner), fleetRate(e.fleet)
	rate := usualRate(elsewhere, others, fleet)
	if rejected {
		rate = usualRejections(elsewhere, others, fleet)
	}
	for _, t := range []*tally{task, owner, &g.here} {
		if rejected {
			t.rejected += share
		} else {
			t.failed += share
		}
	}
	if rate < excess && !doubted {
		e.fleet.failed += share // Neither tasks that crash nor bad nodes make the fleet look bad.
	}
	g.sum += min(share*gainOf(rate), max(0, mostByOwner-n.sumOf(source.Owner)))
}

// nodeOf is what is held against a node; nil for one beyond the bound.
func (e *Evidence) nodeOf(name string, now time.Time) *node {
	n := e.nodes[name]
	if n == nil && len(e.nodes) < mostNodes {
		n = &node{at: now}
		e.nodes[name] = n
	}
	return n
}

func (e *Evidence) taskOf(source Source, now time.Time) *tally {
	return fadedIn(e.tasks, source, mostTasks, now)
}

func (e *Evidence) ownerOf(name string, now time.Time) *tally {
	return fadedIn(e.owners, name, mostOwners, now)
}

// fadedIn is what was seen of a key up to now. If there are too many, a tenth is forgotten: those heard of the longest ago.
func fadedIn[K comparable](all map[K]*tally, key K, most int, now time.Time) *tally {
	t := all[key]
	if t == nil {
		if len(all) >= most {
			oldest := slices.SortedFunc(maps.Keys(all), func(a, b K) int { return all[a].at.Compare(all[b].at) })
			for _, old := range oldest[:max(1, most/10)] {
				delete(all, old)
			}
		}
		t = &tally{at: now}
		all[key] = t
	}
	t.fade(now)
	return t
}

// drain takes the time that has passed from what is held against the node.
func (n *node) drain(now time.Time) {
	passed := now.Sub(n.at)
	if passed <= 0 {
		return
	}
	n.at = now
	sum := n.sum()
	if sum == 0 {
		n.gains = nil
		return
	}
	part := drained(sum, n.jobs, passed) / sum
	for i := range n.gains {
		n.gains[i].sum *= part
	}
	n.gains = slices.DeleteFunc(n.gains, func(g gain) bool { return g.sum < nothing })
}

func (n *node) sum() (all float64) {
	for i := range n.gains {
		all += n.gains[i].sum
	}
	return all
}

func (n *node) sumOf(owner string) (all float64) {
	for i := range n.gains {
		if n.gains[i].Owner == owner {
			all += n.gains[i].sum
		}
	}
	return all
}

// seenOf is what was seen of all tasks of an owner here, up to now.
func (n *node) seenOf(owner string, now time.Time) tally {
	all := tally{at: now}
	for i := range n.gains {
		if g := &n.gains[i]; g.Owner == owner {
			g.here.fade(now)
			all.failed, all.rejected, all.hours = all.failed+g.here.failed, all.rejected+g.here.rejected, all.hours+g.here.hours
		}
	}
	return all
}

func (n *node) find(source Source) *gain {
	for i := range n.gains {
		if n.gains[i].Source == source {
			return &n.gains[i]
		}
	}
	return nil
}

// add makes a place for a task, that of the one which adds least if there is none.
func (n *node) add(source Source, now time.Time) *gain {
	if len(n.gains) >= mostWitnesses {
		least := slices.MinFunc(n.gains, func(a, b gain) int { return cmp.Compare(a.sum, b.sum) })
		n.gains = slices.DeleteFunc(n.gains, func(g gain) bool { return g.Source == least.Source })
	}
	n.gains = append(n.gains, gain{Source: source, here: tally{at: now}})
	return &n.gains[len(n.gains)-1]
}

// witnesses is how many owners and tasks have a say.
func (n *node) witnesses() (owners, tasks int) {
	byOwner, byTask := map[string]float64{}, map[string]float64{}
	for i := range n.gains {
		byOwner[n.gains[i].Owner] += n.gains[i].sum
		byTask[n.gains[i].Task] += n.gains[i].sum
	}
	return countAbove(byOwner), countAbove(byTask)
}

func countAbove(sums map[string]float64) (count int) {
	for _, sum := range sums {
		if sum >= leastWitness {
			count++
		}
	}
	return count
}

// Suspect is a node that something is held against.
type Suspect struct {
	Node  string
	Level Level
	// Sum is the logarithm of how much likelier the failures on it are if it is bad. Limit is the sum from which it is Accused.
	Sum, Limit float64
	// Owners and Tasks are how many witnesses there are, and Failures how many failures and rejections of them count, faded.
	Owners, Tasks int
	Failures      float64
}

// ListSuspects returns the nodes that are not Clear, the most suspicious first.
func (e *Evidence) ListSuspects(now time.Time) []Suspect {
	var all []Suspect
	for name, n := range e.nodes {
		if len(n.gains) == 0 {
			continue
		}
		if n.drain(now); n.isForgotten() {
			delete(e.nodes, name)
			continue
		}
		s := Suspect{Node: name, Sum: n.sum(), Limit: accuseAt}
		s.Owners, s.Tasks = n.witnesses()
		if s.Level = levelOf(s.Sum, s.Owners, s.Tasks); s.Level == Clear {
			continue
		}
		for i := range n.gains {
			n.gains[i].here.fade(now)
			s.Failures += n.gains[i].here.failed + n.gains[i].here.rejected
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.Sum, a.Sum), cmp.Compare(a.Node, b.Node))
	})
	return all
}
