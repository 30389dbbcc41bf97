package suspicion

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The generator of failures, which was fixed before its first run. Two weeks of a fleet: jobs of one to sixteen nodes come one
// after another in 300 places and take nodes by chance, whatever is known of those. Ten of 400 nodes turn bad on one of the first
// nine days.
//
//   - A sound node fails each job on it once in 4,000 hours, a bad one once in twelve; every fifth bad node also has half of all
//     workers refused that are placed on it.
//   - Of the 240 tasks of 60 owners a tenth have a defect that fails a job once in half an hour to twenty hours, wherever it is.
//   - Whose worker is seen to fail: the one on the guilty node in half of all cases, it and up to three peers within a minute in
//     three of ten, and only a peer in the others.
//   - The jobs of one more owner crash every ten minutes, and are a twentieth of all.
const (
	fleetNodes, badNodes   = 400, 10
	places                 = 300
	fleetOwners, taskCount = 60, 240
	weeks                  = 14 * 24 * time.Hour
	lastOnset              = 9 * 24 * time.Hour
)

var epoch = time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC)

// happening is something that the operator sees.
type happening struct {
	at time.Duration
	// holds, if not nil, are the nodes that the job has from now on; failed and refused are those whose workers fail.
	job             types.UID
	source          Source
	holds           []string
	changes         bool
	failed, refused string
}

// fleet draws the happenings of one seed.
type fleetDraw struct {
	*rand.Rand
	onset  map[string]time.Duration
	refuse map[string]bool
	defect map[Source]float64
	tasks  []Source
	all    []happening
	jobs   int
}

func drawFleet(seed uint64) *fleetDraw {
	f := &fleetDraw{
		Rand:  rand.New(rand.NewPCG(seed, 32)),
		onset: map[string]time.Duration{}, refuse: map[string]bool{}, defect: map[Source]float64{},
	}
	for i, n := range f.Perm(fleetNodes)[:badNodes] {
		f.onset[nodeName(n)] = time.Duration(f.Float64() * float64(lastOnset))
		f.refuse[nodeName(n)] = i%5 == 0
	}
	for i := range taskCount {
		s := Source{Owner: fmt.Sprintf("owner-%d", f.IntN(fleetOwners)), Task: fmt.Sprintf("team/task-%d", i)}
		f.tasks = append(f.tasks, s)
		if f.Float64() < 0.1 {
			f.defect[s] = 1 / (0.5 * math.Exp(f.Float64()*math.Log(40)))
		}
	}
	for range places {
		for at := time.Duration(f.Float64() * float64(4*time.Hour)); at < weeks; {
			at = f.drawJob(at) + time.Duration(f.ExpFloat64()*float64(10*time.Minute))
		}
	}
	slices.SortStableFunc(f.all, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	return f
}

func nodeName(n int) string { return fmt.Sprintf("n%03d", n) }

// drawJob draws a job that begins at a time, and returns when it ends.
func (f *fleetDraw) drawJob(begin time.Duration) time.Duration {
	f.jobs++
	often := math.Pow(f.Float64(), 2) // Some tasks have many jobs.
	job := happening{job: types.UID(fmt.Sprintf("job-%d", f.jobs)), source: f.tasks[int(taskCount*often)]}
	lasts := min(time.Duration(f.ExpFloat64()*float64(20*time.Hour)), 4*24*time.Hour)
	defect := f.defect[job.source]
	if f.Float64() < 0.05 {
		job.source = Source{Owner: "crasher", Task: fmt.Sprintf("crash/task-%d", f.jobs)}
		defect, lasts = 6, min(lasts, 2*time.Hour)
	}
	size := []int{1, 1, 1, 2, 2, 4, 8, 16}[f.IntN(8)]
	var nodes []string
	for _, n := range f.Perm(fleetNodes) {
		name := nodeName(n)
		if f.refuse[name] && begin >= f.onset[name] && f.Float64() < 0.5 {
			f.see(job, begin, func(h *happening) { h.refused = name })
			continue
		}
		if nodes = append(nodes, name); len(nodes) == size {
			break
		}
	}
	f.see(job, begin, func(h *happening) { h.changes, h.holds = true, nodes })
	for at := begin; at < begin+lasts; at += time.Minute {
		const perMinute = 1.0 / 60
		if f.Float64() < defect*perMinute {
			f.fail(job, at, nodes, f.IntN(size))
		}
		for i, name := range nodes {
			rate := 1.0 / 4000
			if onset, bad := f.onset[name]; bad && at >= onset {
				rate = 1.0 / 12
			}
			if f.Float64() < rate*perMinute {
				f.fail(job, at, nodes, i)
			}
		}
	}
	f.see(job, begin+lasts, func(h *happening) { h.changes = true })
	return begin + lasts
}

// fail has a job fail for its ith node, and the operator see some workers fail.
func (f *fleetDraw) fail(job happening, at time.Duration, nodes []string, guilty int) {
	seen := []int{guilty}
	others := f.Perm(len(nodes))
	switch draw := f.Float64(); {
	case len(nodes) == 1 || draw < 0.5:
	case draw < 0.8:
		seen = append(seen, others[:min(len(others), 1+f.IntN(3))]...)
	default:
		seen = []int{others[0]}
	}
	for i, n := range seen {
		f.see(job, at+time.Duration(i)*5*time.Second, func(h *happening) { h.failed = nodes[n] })
	}
}

func (f *fleetDraw) see(job happening, at time.Duration, as func(*happening)) {
	if at < weeks {
		job.at = at
		as(&job)
		f.all = append(f.all, job)
	}
}

// accusations replays the happenings, and returns when each node was first accused.
func (f *fleetDraw) accusations() map[string]time.Duration {
	e, accused := NewEvidence(), map[string]time.Duration{}
	look := func(at time.Duration) {
		for _, s := range e.ListSuspects(epoch.Add(at)) {
			if _, known := accused[s.Node]; !known && s.Level == Accused {
				accused[s.Node] = at
			}
		}
	}
	looked := time.Duration(0)
	for _, h := range f.all {
		now := epoch.Add(h.at)
		e.SettleFailures(now)
		switch {
		case h.changes:
			e.HoldNodes(h.job, h.source, h.holds, now)
		case h.refused != "":
			e.NoteRejection(h.source, h.refused, now)
		default:
			e.NoteFailure(h.job, h.source, h.failed, now)
		}
		if h.at-looked >= 10*time.Minute {
			looked = h.at
			look(looked)
		}
	}
	e.SettleFailures(epoch.Add(weeks))
	look(weeks)
	return accused
}
