package arbiter

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// repackInterval is how often free room in pieces is measured, and moves are sought: both visit all nodes.
const repackInterval = 30 * time.Second

// Pieces is how much of each model of accelerator the gangs that wait in each queue cannot use.
type Pieces struct {
	// Now is as it is, and Moved as it would be after the moves that are advised; the same if there are none.
	Now, Moved []capacity.Pieces
	// Moves is how many surplus workers would move.
	Moves int
}

// pieces is Pieces with the advice, and when they were found.
type pieces struct {
	Pieces

	at     time.Time
	advice *capacity.Repack
}

// ReadPieces returns what was last found, up to half a minute ago; zero if no gang claims room.
func (a *Arbiter) ReadPieces() Pieces {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.pieces.Pieces
}

func (a *Arbiter) setPieces(p pieces) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pieces = p
}

// repack measures free room in pieces and seeks moves twice a minute, and returns the advice. act is true if the operator is to
// follow it: it is of this evaluation, of queues alone whose profiles allow it, and no others leave for a gang now.
func (a *Arbiter) repack(
	in *inputs, model *capacity.Model, waiting []*capacity.Gang, now time.Time,
) (advice *capacity.Repack, act bool) {
	if len(waiting) == 0 {
		a.setPieces(pieces{})
		return nil, false
	}
	if age := now.Sub(a.pieces.at); age >= 0 && age < repackInterval {
		return a.pieces.advice, false
	}
	found, after := pieces{at: now}, (*capacity.Model)(nil)
	var names []corev1.ResourceName
	for _, name := range a.config.CountedAccelerators() {
		names = append(names, corev1.ResourceName(name))
	}
	leaves := false
	for _, p := range a.promises {
		leaves = leaves || p.AnyMade()
	}
	if len(in.moved) > 0 && !leaves {
		found.advice, after = model.AdviseRepack(names, waiting, in.movable(in.moved))
		act = found.advice != nil
	}
	// Advice for people may move surplus of all queues, whatever their profiles let the operator do.
	if !act {
		found.advice, after = model.AdviseRepack(names, waiting, in.movable(nil))
	}
	devices := in.devices()
	found.Now = model.MeasurePieces(devices, waiting)
	found.Moved = found.Now
	if found.advice != nil {
		found.Moved, found.Moves = after.MeasurePieces(devices, waiting), len(found.advice.Moves)
	}
	a.setPieces(found)
	return found.advice, act
}

// movable returns the shape of a job's surplus, and nil for a job that is not to change its size now: one that does not run, or
// whose growth pauses, because a move is a change of size. With moved it is of these queues alone, and of jobs that the operator
// may shrink.
func (c *collector) movable(moved map[string]bool) func(types.NamespacedName) *capacity.Shape {
	return func(key types.NamespacedName) *capacity.Shape {
		job := c.jobs[key]
		if job == nil || job.Status.Attempt == nil || job.Status.RunningSince == nil || job.Status.CompletionTime != nil ||
			isStopping(job) || c.cooldownLeft(job) > 0 {
			return nil
		}
		if e := job.Status.Elasticity; e != nil && e.NextGrowthTime != nil && e.NextGrowthTime.After(c.now) {
			return nil
		}
		if moved != nil && (!moved[job.Status.Queue] || job.Spec.Elasticity.Shrink.Initiator == v1beta1.ShrinkByScheduler) {
			return nil
		}
		shape := c.shapeOf(job, job.Status.Attempt.Model, trainingpod.Ordinary)
		return &shape
	}
}

// devices are the accelerators that nodes have, by resource and model.
func (c *collector) devices() []capacity.Device {
	nodes := make([]capacity.Node, 0, len(c.ready))
	for _, name := range c.ready {
		nodes = append(nodes, *c.nodes[name].ready)
	}
	known := c.arbiter.config.Accelerators
	var all []capacity.Device
	for _, o := range listDevices(nodes, known) {
		label, _ := known.ModelLabel(o.Resource)
		all = append(all, capacity.Device{Resource: corev1.ResourceName(o.Resource), Label: label, Model: o.Model})
	}
	return all
}
