package elastic

import (
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/gang"
)

// Obstacle is something that keeps a job from going on.
type Obstacle struct {
	// Reason is one of the reason constants of the API.
	Reason string
	// Message says what happened, the figures, and what to do.
	Message string
	// Stalled is true when nothing will happen until somebody changes something about the job.
	Stalled bool
}

// blocked runs the checks that come before anything is created, in the order in which a user would mend them.
func (p *planner) blocked() bool {
	for _, check := range []func() *Obstacle{p.invalidSpec, p.unknownTier, p.volcanoMissing, p.queueShut} {
		if p.obstacle = check(); p.obstacle != nil {
			return true
		}
	}
	return false
}

func (p *planner) invalidSpec() *Obstacle {
	if p.o.Invalid == "" {
		return nil
	}
	return &Obstacle{Reason: v1alpha1.ReasonInvalidSpec, Message: p.o.Invalid, Stalled: true}
}

func (p *planner) unknownTier() *Obstacle {
	if _, ok := p.o.Tiers.Find(p.spec.Tier); ok {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonUnknownTier,
		Message: fmt.Sprintf("spec.tier: %q is not a tier of the operator's configuration, which knows %s: "+
			"delete the job and create it with one of these.", p.spec.Tier, p.o.Tiers.Names()),
		Stalled: true,
	}
}

func (p *planner) volcanoMissing() *Obstacle {
	if p.o.VolcanoMissing == "" {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonVolcanoMissing,
		Message: fmt.Sprintf("The API server does not serve %s: install Volcano; the job goes on by itself then.",
			p.o.VolcanoMissing),
	}
}

// queueShut keeps a gang from being submitted to a queue that Volcano would refuse. A gang that is in its queue already stays.
func (p *planner) queueShut() *Obstacle {
	q := p.o.Queue
	switch {
	case p.o.Core != nil || q.State == gang.QueueOpen:
		return nil
	case q.Missing:
		return &Obstacle{
			Reason: v1alpha1.ReasonQueueNotFound,
			Message: fmt.Sprintf("Volcano Queue %q does not exist: create it, or change annotation %s of namespace %s.",
				q.Name, gang.QueueAnnotation, p.o.Job.Namespace),
		}
	}
	state := q.State
	if state == "" {
		state = "unknown, because Volcano's controllers have not seen it yet"
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonQueueClosed,
		Message: fmt.Sprintf("Volcano Queue %q is not open (its state is %s): open it, or change annotation %s of namespace %s.",
			q.Name, state, gang.QueueAnnotation, p.o.Job.Namespace),
	}
}

// Explain overlays a status with what kept its decision from being carried out.
func Explain(o Observed, now time.Time, d Decision, obstacle Obstacle) v1alpha1.ElasticTrainingJobStatus {
	p := newPlanner(o, now)
	p.d.Status, p.obstacle = d.Status, &obstacle
	p.st = &p.d.Status
	if !finished(p.st) && p.st.Attempt != nil {
		p.sayObstacle(obstacle)
		p.settleConditions()
	}
	return p.d.Status
}
