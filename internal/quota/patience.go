package quota

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// nodePatience is how long Queues stay unchanged when nodes come or go. Some come back within it.
	nodePatience = 30 * time.Second
	// emptyPatience is how long a Queue whose profile is gone has held nothing before it is deleted.
	emptyPatience = 5 * time.Second
	// RefusedInterval is how often what was refused is tried again.
	RefusedInterval = 30 * time.Second

	// idleInterval is how often is asked for how long accelerators were not in use: metrics are collected about as often.
	idleInterval = 10 * time.Minute
	// spentInterval is how often the use of budgets is read, and offersInterval the longest time until the arbiter has a new answer
	// about available room. No watch reports either.
	spentInterval, offersInterval = 30 * time.Second, time.Minute
)

// Waits are the times since which Plan holds changes back. Each decision hands them to the next. An operator that restarts begins
// to count again.
type Waits struct {
	// Nodes is since when Queues differ from what they should say because nodes came or went; zero while they do not.
	Nodes time.Time
	// Empty is since when each Queue whose profile is gone holds nothing, by its UID.
	Empty map[types.UID]time.Time
}

// holdForNodes holds back changes of Queues that differ only because nodes came or went, for nodePatience. patient is false if a
// person changed a profile or a Queue: they expect the result at once.
func (p *planner) holdForNodes(d *Decision, patient bool) {
	differ := false
	for i := range d.Profiles {
		differ = differ || d.Profiles[i].Apply != nil
	}
	if !differ {
		return // The nodes are back, and the next time that they go is waited for from its beginning.
	}
	since := p.o.Waits.Nodes
	if since.IsZero() {
		since = p.at
	}
	left := since.Add(nodePatience).Sub(p.at)
	if !patient || left <= 0 {
		return
	}
	for i := range d.Profiles {
		d.Profiles[i].Apply = nil
	}
	d.Waits.Nodes = since
	p.wakeAfter(left)
}

// holdRefused waits RefusedInterval before it writes a Queue again that was refused.
func (p *planner) holdRefused(d *Decision) {
	until := map[string]time.Time{}
	for _, r := range p.reviews {
		if r.given.Refused != "" {
			until[r.profile.Name] = r.given.RefusedAt.Add(RefusedInterval)
		}
	}
	for i := range d.Profiles {
		of := &d.Profiles[i]
		if left := until[of.Profile.Name].Sub(p.at); left > 0 && !of.Agrees {
			of.Create, of.Apply = nil, nil
			p.wakeAfter(left)
		}
	}
}

// holdDeletions keeps the Queues of deleted profiles until all of them have been empty for emptyPatience. A gang that was
// just created is in no cache yet, and would be left in a Queue that does not exist.
func (p *planner) holdDeletions(d *Decision) {
	left := time.Duration(0)
	d.Waits.Empty = make(map[types.UID]time.Time, len(d.DeleteQueues))
	for _, q := range d.DeleteQueues {
		since, known := p.o.Waits.Empty[q.UID]
		if !known {
			since = p.at
		}
		d.Waits.Empty[q.UID] = since
		left = max(left, since.Add(emptyPatience).Sub(p.at))
	}
	if left > 0 {
		d.DeleteQueues = nil
		p.wakeAfter(left)
	}
}

// awaitFigures schedules the next evaluation for figures that no watch reports.
func (p *planner) awaitFigures() {
	switch {
	case len(p.o.Budgets) > 0:
		p.wakeAfter(spentInterval)
	case p.o.OffersOld:
		p.wakeAfter(offersInterval)
	}
	if len(p.o.Idle) > 0 {
		p.wakeAfter(idleInterval)
	}
}

// wakeAfter schedules the next evaluation, unless an earlier one is scheduled. Zero is for never.
func (p *planner) wakeAfter(wait time.Duration) {
	if wait > 0 && (p.again == 0 || wait < p.again) {
		p.again = wait
	}
}
