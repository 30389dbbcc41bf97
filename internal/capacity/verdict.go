package capacity

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Verdict is what the model says about one job.
type Verdict struct {
	// Place is the gang's place among the Waiting gangs of its queue, from 1. Both are 0 for a job that does not wait.
	Place, Waiting int32
	// Answer is what the model says about the waiting gang.
	Answer Answer
	// Model is the model of accelerator that the gang should wait for; empty for one that is bound to none.
	Model string
	// Holders are the jobs whose surplus the gang could take, the largest first, as far as it holds what the gang lacks. It is empty
	// for a gang that fits without them, now or once leaving pods are gone.
	Holders []Holder
	// SurplusLimit is how many surplus workers a job that creates only what fits may have in all, in whole steps: those that are
	// placed, and its part of the free room. It is a total because a reconciler may read it twice before the workers it creates hold
	// the room. It is less than what is placed if the rest of a step finds no room.
	SurplusLimit int32
	// StepDomains are where such a job may have its steps, if each has to be within one node or HyperNode; nil for any other job,
	// and while it is not known.
	StepDomains []StepDomain
	// RoomSince is since when the room for more surplus has been free, on average over the workers that fit; zero without room.
	RoomSince time.Time
	// Unjudged is true for such a job whose workers the model does not cover, so that SurplusLimit says nothing.
	Unjudged bool
	// From are the jobs that make room for this one, by surplus or as a whole.
	From []Holder
	// GiveUp are surplus workers of this job that must leave now. To is the gang they leave for.
	GiveUp []types.UID
	To     types.NamespacedName
	// Preempt is why the whole job must stop; nil if it need not.
	Preempt *Preemption
	// Resume is true for a preempted job that may continue.
	Resume bool
	// Overdue is true for a gang that had room since Since and was not placed in time, so that its claim has ended. From are then
	// the jobs that made room in vain.
	Overdue bool
	Since   time.Time
	// InVain are the gangs for which workers of this job left, or the job stopped, in vain.
	InVain []types.NamespacedName
	// Never is the answer of CeilingFor about a gang that would not fit even if nothing else ran. It is nil for every other gang,
	// and if that was not asked.
	Never *Answer
	// Moves are the jobs whose surplus would have to move to other nodes for the gang to have its place: see AdviseRepack.
	Moves []Holder
	// Ahead is what JudgeAhead says of a gang that stands behind the head of its line; nil for every other gang.
	Ahead *Ahead
}

// Holder is a job that holds surplus.
type Holder struct {
	Job     types.NamespacedName
	Workers int32
}

// Docket is all that Review needs of one queue.
type Docket struct {
	Queue string
	// Waiting are the gangs that wait in the queue, in any order.
	Waiting []*Gang
	// Promises are what the last Decide returned for the queue.
	Promises Promises
	// Placed are the gangs, of any queue, all of whose members are placed.
	Placed map[types.NamespacedName]bool
	// PlacementTimeout is how long Volcano may take to place a gang once there is room for it.
	PlacementTimeout time.Duration
	// Starved returns whether a gang has waited so long that others must make room, and if not, after what time it will have.
	Starved func(*Gang) (starved bool, in time.Duration)
	// Yields returns whether the operator deletes the job's surplus for waiting gangs. Leaves returns whether the operator or
	// Volcano does.
	Yields, Leaves func(types.NamespacedName) bool
	// YieldsUnserved is Yields for gangs for which Volcano evicts nobody; nil for the same.
	YieldsUnserved func(types.NamespacedName) bool
}

func (d *Docket) yieldsTo(g *Gang) func(types.NamespacedName) bool {
	if g != nil && g.Unserved && d.YieldsUnserved != nil {
		return d.YieldsUnserved
	}
	return d.Yields
}

// Decide decides for one queue: the order of its gangs, what each waits for, and what makes room. It returns the verdicts by
// job, the promises as they are now, and after what time the decision changes though nothing else does; zero for never. The
// queue that is decided first has the first choice of surplus.
func (r *Review) Decide() (map[types.NamespacedName]Verdict, Promises, time.Duration) {
	verdicts := make(map[types.NamespacedName]Verdict, len(r.ordered))
	for i, g := range r.ordered {
		v := Verdict{Place: int32(i + 1), Waiting: int32(len(r.ordered)), Answer: r.Ask(g), Model: g.Model}
		if !v.Answer.Fits && v.Answer.Leaving == nil {
			v.Holders = r.bottleneckOf(g, &v.Answer).holders()
		}
		verdicts[g.Job] = v
	}
	r.chooseModels(verdicts)
	r.tellMoves(verdicts)
	r.makeRoomFor()
	r.tellPromises(verdicts)
	return verdicts, r.next, r.again
}

// chooseModels writes into the verdicts on which model of accelerator each claiming gang should wait: its own if it fits there,
// else the first other on which it fits, else its own.
func (r *Review) chooseModels(verdicts map[types.NamespacedName]Verdict) {
	if !slices.ContainsFunc(r.claiming, func(g *Gang) bool { return len(g.Others) > 0 }) {
		return
	}
	// Each gang takes its room before the next is asked, so that not all of them move to the same nodes.
	rest := r.clone()
	for _, g := range r.claiming {
		for on := range g.variants() {
			if rest.placeIfFits(on) {
				v := verdicts[g.Job]
				v.Model = on.Model
				verdicts[g.Job] = v
				break
			}
		}
	}
}

// holdersOf counts victims by job, in the order of each job's first victim.
func holdersOf(victims []Surplus) []Holder {
	var all []Holder
	for _, v := range victims {
		at := slices.IndexFunc(all, func(h Holder) bool { return h.Job == v.Job })
		if at < 0 {
			at, all = len(all), append(all, Holder{Job: v.Job})
		}
		all[at].Workers++
	}
	return all
}
