package training

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// findObstacle runs the checks that come before anything is created, in the order in which a user would mend them.
func (p *planner) findObstacle() (found bool) {
	if waits, until := approvalOf(p.State); waits == "" && !until.IsZero() {
		p.wake(until.Sub(p.Now)) // Something else may keep the job until the approval counts no more.
	}
	for _, check := range []func(*jobstate.State) *jobstate.Obstacle{
		invalidSpec, managedByKueue, limitExceeded, unknownTier, tierNotAllowed, qosNotMet,
		protectedTooLong, graceTooLong, unknownAccelerator, uncountableRequests, awaitingApproval, volcanoMissing,
		profileNotReady, queueRefuses,
	} {
		if p.obstacle = check(p.State); p.obstacle != nil {
			return true
		}
	}
	return false
}

func invalidSpec(s *jobstate.State) *jobstate.Obstacle {
	if s.Invalid == "" {
		return nil
	}
	return &jobstate.Obstacle{Reason: v1alpha1.ReasonInvalidSpec, Message: s.Invalid, Stalled: true}
}

// kueueQueueLabel is how jobs are labelled for Kueue (sigs.k8s.io/kueue, pkg/controller/constants).
const kueueQueueLabel = "kueue.x-k8s.io/queue-name"

// managedByKueue refuses a job that two controllers would take care of: Kueue does not know the kind, and would not admit it.
func managedByKueue(s *jobstate.State) *jobstate.Obstacle {
	queue, labelled := s.Job.Labels[kueueQueueLabel]
	if !labelled {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonManagedByKueue,
		Message: fmt.Sprintf("Label %s (%s) leaves the job to Kueue, and runPolicy.managedBy does not: remove the label for Volcano "+
			"to schedule it here, or create the job with runPolicy.managedBy %s.", kueueQueueLabel, queue, v1alpha1.ManagedByMultiKueue),
		Stalled: true,
	}
}

func limitExceeded(s *jobstate.State) *jobstate.Obstacle {
	most := s.Config.Limits.MaxWorkersPerJob
	if s.Spec.MaxReplicas <= most {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonLimitExceeded,
		Message: fmt.Sprintf("spec.maxReplicas: %d is more than the %d workers that the operator's configuration allows a job "+
			"(limits.maxWorkersPerJob): lower maxReplicas, or ask for the limit to be raised.", s.Spec.MaxReplicas, most),
		Stalled: true,
	}
}

func unknownTier(s *jobstate.State) *jobstate.Obstacle {
	asked := s.Spec.Tier
	if s.Job.Status.Attempt != nil {
		asked = cmp.Or(asked, s.Job.Status.Tier)
	}
	if _, ok := s.Config.Tiers.Find(asked); ok {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonUnknownTier,
		Message: fmt.Sprintf("spec.tier: %q is not a tier of the operator's configuration, which knows %s: "+
			"delete the job and create it with one of these.", asked, s.Config.Tiers.Names()),
		Stalled: true,
	}
}

// tierNotAllowed holds a job that has not begun to the tiers of its profile.
func tierNotAllowed(s *jobstate.State) *jobstate.Obstacle {
	if _, ok := s.Tier(); ok {
		return nil
	}
	profile := s.Profile.Name
	allowed := s.Config.Tiers.NamesOpenTo(s.Profile, s.Owner())
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonTierNotAllowed,
		Message: fmt.Sprintf("spec.tier: %q is not a tier that profile %s allows, which allows %s: delete the job and create it with "+
			"one of these, or have the profile allow it.", s.Spec.Tier, profile, allowed),
		Stalled: true,
	}
}

// awaitingApproval holds a job that has not begun until its tier is approved. One that has goes on, whatever stops it
// meanwhile.
func awaitingApproval(s *jobstate.State) *jobstate.Obstacle {
	if waits, _ := approvalOf(s); waits != "" {
		return &jobstate.Obstacle{Reason: v1alpha1.ReasonAwaitingApproval, Message: waits}
	}
	return nil
}

// approvalOf says what the job waits for to be approved, empty for nothing, and until when an approval counts; zero for ever.
func approvalOf(s *jobstate.State) (waits string, until time.Time) {
	tier, ok := s.Tier()
	if !ok || s.Job.Status.Attempt != nil {
		return "", time.Time{}
	}
	return approval.Question{
		Job: s.Job, Resource: "etj", Tier: tier.Name, Profile: s.Profile, WebhooksOff: s.WebhooksOff,
	}.Answer(s.Now)
}

// qosNotMet refuses workers that would not be what their tier promises. A job that has begun goes on, whatever stops it
// meanwhile: workers that are created for it are held to the tier as far as the template allows.
func qosNotMet(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil || s.Job.Status.Attempt != nil {
		return nil
	}
	tier, _ := s.Tier()
	found := trainingpod.CheckJobQoS(s.Spec, tier)
	if len(found) == 0 {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonQoSNotMet,
		Message: trainingpod.Say(found) + ". A job keeps its tier and its template: delete it and create it with other resources, or " +
			"of another tier.",
		Stalled: true,
	}
}

// protectedTooLong refuses surplus that would be left alone for longer than the tier allows. Of a job that has begun, as much as
// the tier allows is heeded, and no more.
func protectedTooLong(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil || s.Job.Status.Attempt != nil {
		return nil
	}
	tier, _ := s.Tier()
	if long := trainingpod.CheckProtection(s.Spec, tier); long != nil {
		return &jobstate.Obstacle{Reason: v1alpha1.ReasonLimitExceeded, Message: long.Error() + ".", Stalled: true}
	}
	return nil
}

// graceTooLong refuses workers that may take longer to leave than the configuration allows. A job that has begun goes on.
func graceTooLong(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil || s.Job.Status.Attempt != nil {
		return nil
	}
	found := trainingpod.CheckJobGrace(s.Spec, s.Config.Limits)
	if len(found) == 0 {
		return nil
	}
	return &jobstate.Obstacle{
		Reason:  v1alpha1.ReasonLimitExceeded,
		Message: trainingpod.Say(found) + ". A job keeps its template and its checkpoint: delete it and create it with less.",
		Stalled: true,
	}
}

func unknownAccelerator(s *jobstate.State) *jobstate.Obstacle {
	if s.Spec.Accelerator == nil {
		return nil
	}
	resource := config.AcceleratorResource(s.Spec.Accelerator.Resource)
	if _, known := s.Config.Accelerators.ModelLabel(resource); known {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonUnknownAccelerator,
		Message: fmt.Sprintf("spec.accelerator.resource: in which label nodes name the model of %q is not known, as it is for %s: "+
			"delete the job and create it with one of these, or without accelerator and with a nodeSelector.",
			resource, s.Config.Accelerators.Names()),
		Stalled: true,
	}
}

// uncountableRequests keeps a gang from Volcano by which its scheduler would end. The API server would refuse pods with such
// requests, but only after the gang was submitted.
func uncountableRequests(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil {
		return nil
	}
	for _, ask := range []struct {
		who      string
		requests corev1.ResourceList
	}{
		{"A worker", trainingpod.Requests(&s.Spec.Template.Spec)},
		{"Worker 0", trainingpod.CoreRequests(s.Job, 1)},
		{"The core", trainingpod.CoreRequests(s.Job, s.Spec.MinReplicas)},
	} {
		if name, q, found := trainingpod.Uncountable(ask.requests); found {
			return &jobstate.Obstacle{
				Reason: v1alpha1.ReasonRejected,
				Message: fmt.Sprintf("%s asks for %s of %s, which is less than nothing or more than can be counted: delete the job "+
					"and create it with other resources.", ask.who, q.String(), name),
				Stalled: true,
			}
		}
	}
	return nil
}

func volcanoMissing(s *jobstate.State) *jobstate.Obstacle {
	if s.VolcanoMissing == "" {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonVolcanoMissing,
		Message: fmt.Sprintf("The API server does not serve %s: install Volcano; the job goes on by itself then.",
			s.VolcanoMissing),
	}
}

// profileNotReady waits for the Queue of the profile.
func profileNotReady(s *jobstate.State) *jobstate.Obstacle {
	profile := s.Profile
	if s.Core != nil || profile == nil || profile.Status.Queue == profile.Name {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonProfileNotReady,
		Message: fmt.Sprintf("ResourceQuotaProfile %s, to which namespace %s belongs, has no Queue yet: %s The job goes on by itself "+
			"when it has one.", profile.Name, s.Job.Namespace, cmp.Or(profile.Status.Message, "it was not looked at yet.")),
	}
}

// queueRefuses keeps a gang from being submitted to a queue in which Volcano would refuse it.
func queueRefuses(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil {
		return nil
	}
	return s.QueueShut()
}
