package jobstate

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// Obstacle is something that keeps a job from continuing.
type Obstacle struct {
	// Reason is one of the reason constants of the API.
	Reason string
	// Message says what happened, the figures, and what to do.
	Message string
	// Stalled is true when nothing will happen until somebody changes something about the job.
	Stalled bool
}

// QueueShut says why the job's queue places nothing; nil for an open queue.
func (o *Observed) QueueShut() *Obstacle {
	queue := fmt.Sprintf("Volcano Queue %q", o.Queue.Name)
	mend := fmt.Sprintf(", or change annotation %s of namespace %s", gang.QueueAnnotation, o.Job.Namespace)
	if o.Profile != nil {
		queue, mend = fmt.Sprintf("Volcano Queue %q of profile %s", o.Queue.Name, o.Profile.Name), ""
	}
	if o.Core != nil {
		mend = ", or delete the job and create it for another queue: a submitted gang stays in its queue"
	}
	switch q := o.Queue; {
	case q.State == gang.QueueOpen:
		return nil
	case q.Missing:
		return &Obstacle{
			Reason:  v1beta1.ReasonQueueNotFound,
			Message: fmt.Sprintf("%s does not exist. Create it%s.", queue, mend),
		}
	default:
		state := q.State
		if state == "" {
			state = "unknown, because Volcano's controllers have not seen it yet"
		}
		return &Obstacle{
			Reason:  v1beta1.ReasonQueueClosed,
			Message: fmt.Sprintf("%s is not open (its state is %s). Open it%s.", queue, state, mend),
		}
	}
}

// RefusalObstacle is the obstacle in status of a job whose pods the API server refuses; nil for any other job.
func (o *Observed) RefusalObstacle() *Obstacle {
	said := meta.FindStatusCondition(o.Job.Status.Conditions, v1beta1.ConditionStalled)
	if said == nil || said.Reason != v1beta1.ReasonRejected || len(o.Workers) > 0 {
		return nil
	}
	return &Obstacle{Reason: said.Reason, Message: said.Message, Stalled: true}
}

// Tier is the tier in effect: the one that pods of the current attempt have, else that of the next, by which others compare a job
// that is stopped. It returns false if the tier does not exist or the job may not have it.
func (s *State) Tier() (config.Tier, bool) {
	if a := s.Status.Attempt; a != nil && !IsStopped(s.Status) {
		if tier, known := s.Config.Tiers.FindTier(a.Tier); known && a.Tier != "" {
			return tier, true
		}
	}
	return s.NextTier()
}

// NextTier is the tier of an attempt that begins now: the one that the job asks for or, if that is refused, the one that it began
// with. It returns false if the tier does not exist or the job may not have it.
func (s *State) NextTier() (config.Tier, bool) {
	if s.Refused.Tier != nil {
		return s.Config.Tiers.FindTier(s.BegunTier())
	}
	return s.AskedTier()
}

// AskedTier is the tier that the job asks for. It returns false if the tier does not exist or the job may not have it. A job
// keeps the tier that it began with, whatever its profile allows now.
func (s *State) AskedTier() (config.Tier, bool) {
	if s.KeepsTier() {
		return s.Config.Tiers.FindTier(s.BegunTier())
	}
	return s.Config.Tiers.OpenTo(s.Profile, s.Owner()).FindTier(s.Spec.Tier)
}

// KeepsTier is true for a job that has begun and asks for no other tier than the one that it began with.
func (s *State) KeepsTier() bool {
	return s.Job.Status.Attempt != nil && (s.Spec.Tier == "" || s.Spec.Tier == s.BegunTier())
}

// BegunTier is the name of the tier that the last attempt began with; empty before the first.
func (o *Observed) BegunTier() string {
	if a := o.Job.Status.Attempt; a != nil {
		return cmp.Or(a.Tier, o.Job.Status.Tier)
	}
	return ""
}

// NextProcesses is framework.nprocPerNode of an attempt that begins now; 0 for as many as the container has devices.
func (s *State) NextProcesses() int32 {
	if s.Refused.Processes != nil {
		return s.Job.Status.Attempt.NprocPerNode
	}
	return rendezvous.ChosenProcesses(s.Job)
}

// Owner is the user, and the groups, that the job belongs to.
func (o *Observed) Owner() ownership.Owner { return ownership.OfTraining(o.Job, o.WebhooksOff) }
