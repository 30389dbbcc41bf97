package training

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
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
	for _, check := range []func() *Obstacle{
		p.invalidSpec, p.managedByKueue, p.limitExceeded, p.unknownTier, p.tierNotAllowed, p.qosNotMet,
		p.protectedTooLong, p.graceTooLong, p.unknownAccelerator, p.uncountableRequests, p.awaitingApproval, p.volcanoMissing,
		p.profileNotReady, p.queueRefuses,
	} {
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

// kueueQueueLabel is how jobs are labelled for Kueue (sigs.k8s.io/kueue, pkg/controller/constants).
const kueueQueueLabel = "kueue.x-k8s.io/queue-name"

// managedByKueue refuses a job that two controllers would take care of: Kueue does not know the kind, and would not admit it.
func (p *planner) managedByKueue() *Obstacle {
	queue, labelled := p.o.Job.Labels[kueueQueueLabel]
	if !labelled {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonManagedByKueue,
		Message: fmt.Sprintf("Label %s (%s) leaves the job to Kueue, and runPolicy.managedBy does not: remove the label for Volcano "+
			"to schedule it here, or create the job with runPolicy.managedBy %s.", kueueQueueLabel, queue, v1alpha1.ManagedByMultiKueue),
		Stalled: true,
	}
}

func (p *planner) limitExceeded() *Obstacle {
	most := p.o.Config.Limits.MaxWorkersPerJob
	if p.spec.MaxReplicas <= most {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonLimitExceeded,
		Message: fmt.Sprintf("spec.maxReplicas: %d is more than the %d workers that the operator's configuration allows a job "+
			"(limits.maxWorkersPerJob): lower maxReplicas, or ask for the limit to be raised.", p.spec.MaxReplicas, most),
		Stalled: true,
	}
}

func (p *planner) unknownTier() *Obstacle {
	asked := p.spec.Tier
	if p.o.Job.Status.Attempt != nil {
		asked = cmp.Or(asked, p.o.Job.Status.Tier)
	}
	if _, ok := p.o.Config.Tiers.Find(asked); ok {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonUnknownTier,
		Message: fmt.Sprintf("spec.tier: %q is not a tier of the operator's configuration, which knows %s: "+
			"delete the job and create it with one of these.", asked, p.o.Config.Tiers.Names()),
		Stalled: true,
	}
}

// tierNotAllowed holds a job that has not begun to the tiers of its profile.
func (p *planner) tierNotAllowed() *Obstacle {
	if _, ok := p.tier(); ok {
		return nil
	}
	profile := p.o.Profile.Name
	allowed := p.o.Config.Tiers.Allowed(p.o.Profile, p.owner())
	return &Obstacle{
		Reason: v1alpha1.ReasonTierNotAllowed,
		Message: fmt.Sprintf("spec.tier: %q is not a tier that profile %s allows, which allows %s: delete the job and create it with "+
			"one of these, or have the profile allow it.", p.spec.Tier, profile, allowed),
		Stalled: true,
	}
}

// tier is the tier in effect: the one that the job asks for, or that is on record, or, for a job that has not begun, the
// default of its profile. It is false for one that the job may not have.
func (p *planner) tier() (config.Tier, bool) {
	if p.o.Job.Status.Attempt != nil {
		return p.o.Config.Tiers.Of(p.spec.Tier, p.o.Job.Status.Tier)
	}
	return p.o.Config.Tiers.For(p.o.Profile, p.owner()).Find(p.spec.Tier)
}

func (p *planner) owner() ownership.Owner { return ownership.OfTraining(p.o.Job, p.o.WebhooksOff) }

// awaitingApproval holds a job that has not begun until its tier is approved. One that has goes on, whatever stops it
// meanwhile.
func (p *planner) awaitingApproval() *Obstacle {
	tier, ok := p.tier()
	if !ok || p.o.Job.Status.Attempt != nil {
		return nil
	}
	waits, until := approval.Question{
		Job: p.o.Job, Resource: "etj", Tier: tier.Name, Profile: p.o.Profile, WebhooksOff: p.o.WebhooksOff,
	}.Answer(p.now)
	if waits != "" {
		return &Obstacle{Reason: v1alpha1.ReasonAwaitingApproval, Message: waits}
	}
	if !until.IsZero() {
		p.wake(until.Sub(p.now)) // Something else may keep it until then.
	}
	return nil
}

// qosNotMet refuses workers that would not be what their tier promises. A job that has begun goes on, whatever stops it
// meanwhile: workers that are created for it are held to the tier as far as the template allows.
func (p *planner) qosNotMet() *Obstacle {
	if p.o.Core != nil || p.o.Job.Status.Attempt != nil {
		return nil
	}
	tier, _ := p.tier()
	found := trainingpod.CheckJobQoS(p.spec, tier)
	if len(found) == 0 {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonQoSNotMet,
		Message: trainingpod.Say(found) + ". A job keeps its tier and its template: delete it and create it with other resources, or " +
			"of another tier.",
		Stalled: true,
	}
}

// protectedTooLong refuses surplus that would be left alone for longer than the tier allows. Of a job that has begun, as much as
// the tier allows is heeded, and no more.
func (p *planner) protectedTooLong() *Obstacle {
	if p.o.Core != nil || p.o.Job.Status.Attempt != nil {
		return nil
	}
	tier, _ := p.tier()
	if long := trainingpod.CheckProtection(p.spec, tier); long != nil {
		return &Obstacle{Reason: v1alpha1.ReasonLimitExceeded, Message: long.Error() + ".", Stalled: true}
	}
	return nil
}

// graceTooLong refuses workers that may take longer to leave than the configuration allows. A job that has begun goes on.
func (p *planner) graceTooLong() *Obstacle {
	if p.o.Core != nil || p.o.Job.Status.Attempt != nil {
		return nil
	}
	found := trainingpod.CheckJobGrace(p.spec, p.o.Config.Limits)
	if len(found) == 0 {
		return nil
	}
	return &Obstacle{
		Reason:  v1alpha1.ReasonLimitExceeded,
		Message: trainingpod.Say(found) + ". A job keeps its template and its checkpoint: delete it and create it with less.",
		Stalled: true,
	}
}

// profileNotReady waits for the Queue of the profile.
func (p *planner) profileNotReady() *Obstacle {
	profile := p.o.Profile
	if p.o.Core != nil || profile == nil || profile.Status.Queue == profile.Name {
		return nil
	}
	return &Obstacle{
		Reason: v1alpha1.ReasonProfileNotReady,
		Message: fmt.Sprintf("ResourceQuotaProfile %s, to which namespace %s belongs, has no Queue yet: %s The job goes on by itself "+
			"when it has one.", profile.Name, p.o.Job.Namespace, cmp.Or(profile.Status.Message, "it was not looked at yet.")),
	}
}

// uncountableRequests keeps a gang from Volcano by which its scheduler would end. The API server would refuse pods with such
// requests, but only after the gang was submitted.
func (p *planner) uncountableRequests() *Obstacle {
	if p.o.Core != nil {
		return nil
	}
	for _, ask := range []struct {
		who      string
		requests corev1.ResourceList
	}{
		{"A worker", trainingpod.Requests(&p.spec.Template.Spec)},
		{"Worker 0", trainingpod.CoreRequests(p.o.Job, 1)},
		{"The core", trainingpod.CoreRequests(p.o.Job, p.spec.MinReplicas)},
	} {
		if name, q, found := trainingpod.Uncountable(ask.requests); found {
			return &Obstacle{
				Reason: v1alpha1.ReasonRejected,
				Message: fmt.Sprintf("%s asks for %s of %s, which is less than nothing or more than can be counted: delete the job "+
					"and create it with other resources.", ask.who, q.String(), name),
				Stalled: true,
			}
		}
	}
	return nil
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

// queueRefuses keeps a gang from being submitted to a queue in which Volcano would refuse it.
func (p *planner) queueRefuses() *Obstacle {
	if p.o.Core != nil {
		return nil
	}
	return p.queueShut()
}

// queueShut says why the job's queue places nothing; nil for an open queue.
func (p *planner) queueShut() *Obstacle {
	mend := fmt.Sprintf("or change annotation %s of namespace %s", gang.QueueAnnotation, p.o.Job.Namespace)
	if p.o.Profile != nil {
		mend = "which is that of profile " + p.o.Profile.Name
	}
	if p.o.Core != nil {
		mend = "or delete the job and create it anew for another queue, because a gang stays in the queue it joined"
	}
	switch q := p.o.Queue; {
	case q.State == gang.QueueOpen:
		return nil
	case q.Missing:
		return &Obstacle{
			Reason:  v1alpha1.ReasonQueueNotFound,
			Message: fmt.Sprintf("Volcano Queue %q does not exist: create it, %s.", q.Name, mend),
		}
	default:
		state := q.State
		if state == "" {
			state = "unknown, because Volcano's controllers have not seen it yet"
		}
		return &Obstacle{
			Reason:  v1alpha1.ReasonQueueClosed,
			Message: fmt.Sprintf("Volcano Queue %q is not open (its state is %s): open it, %s.", q.Name, state, mend),
		}
	}
}

// backsOff says until when an attempt that began because of failures creates no workers.
func (p *planner) backsOff(wait time.Duration) *Obstacle {
	return &Obstacle{
		Reason: v1alpha1.ReasonBackOff,
		Message: fmt.Sprintf("Attempt %d creates its workers at %s, because attempts before it failed: restart %d of at most %d. "+
			"Until then it claims no room.", p.st.Attempt.Number, p.now.Add(wait).UTC().Format("2006-01-02 15:04:05 MST"),
			len(p.st.RestartTimes), ptr.Deref(p.spec.RunPolicy.MaxRestarts, v1alpha1.DefaultMaxRestarts)),
	}
}

// refused is what status says of a job whose first worker the API server refuses; nil for any other.
func (p *planner) refused() *Obstacle {
	said := meta.FindStatusCondition(p.o.Job.Status.Conditions, v1alpha1.ConditionStalled)
	if said == nil || said.Reason != v1alpha1.ReasonRejected || len(p.o.Workers) > 0 {
		return nil
	}
	return &Obstacle{Reason: said.Reason, Message: said.Message, Stalled: true}
}

// askAgain asks the API server for worker 0 alone, while the job has no gang: one that can have no workers would keep its
// minResources in the books of its queue, and others would leave to make room for it. What status says stands until the
// worker is there.
func (p *planner) askAgain() {
	if p.o.Core != nil || p.o.Surplus != nil {
		p.deleteGroups()
		return
	}
	p.createMissing(0, 1)
	p.prepareWorkers()
}

// Explain overlays a status with what kept its decision from being carried out.
func Explain(o Observed, now time.Time, d Decision, obstacle Obstacle) v1alpha1.ElasticTrainingJobStatus {
	p := newPlanner(o, now)
	p.d.Status, p.obstacle = d.Status, &obstacle
	p.st = &p.d.Status
	if !finished(p.st) && p.st.Attempt != nil {
		p.sayObstacle(obstacle)
		p.conditions().Settle(p.o.Job.Status.Conditions)
	}
	return p.d.Status
}
