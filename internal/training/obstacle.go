package training

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// findObstacle runs the checks that come before anything is created, in the order in which a user would mend them, and keeps the
// first that fails.
func (p *planner) findObstacle() (found bool) {
	if waits, until := approvalOf(p.State); waits == "" && !until.IsZero() {
		p.requeueAfter(until.Sub(p.Now)) // The approval may run out while another obstacle still holds the job.
	}
	for _, check := range []func(*jobstate.State) *jobstate.Obstacle{
		invalidSpec, managedByKueue, limitExceeded, rolesWrong, beforeBeginning(modelsNamed), beforeBeginning(unknownTier),
		beforeBeginning(tierNotAllowed),
		unlessOutlived(qosNotMet), unlessOutlived(protectedTooLong), unlessOutlived(graceTooLong), unknownAccelerator,
		uncountableRequests, claimMissing, dataNotFound, unlessOutlived(devicesNotCounted), beforeBeginning(awaitingApproval),
		volcanoMissing, profileNotReady, queueRefuses,
	} {
		if p.obstacle = check(p.State); p.obstacle != nil {
			return true
		}
	}
	return false
}

// invalidSpec refuses a spec that reached the API server while its validation was off, or before a rule existed.
func invalidSpec(s *jobstate.State) *jobstate.Obstacle {
	if s.Invalid == "" {
		return nil
	}
	return &jobstate.Obstacle{Reason: v1beta1.ReasonInvalidSpec, Message: s.Invalid, Stalled: true}
}

// rolesWrong refuses roles that contradict each other, the range of the job or its framework.
func rolesWrong(s *jobstate.State) *jobstate.Obstacle {
	return stallBy(trainingpod.CheckRoles(s.Spec), v1beta1.ReasonInvalidSpec, correctTheSpec)
}

const correctTheSpec = "Correct the spec; what cannot change while workers may run changes once spec.suspend is true and the " +
	"job has stopped."

// modelsNamed refuses a master or role that names its own model of accelerator: the profile's limits would not count it. A job
// that began before this rule was there goes on.
func modelsNamed(s *jobstate.State) *jobstate.Obstacle {
	return stallBy(trainingpod.CheckModels(s.Spec, s.Config.Accelerators), v1beta1.ReasonInvalidSpec, correctTheSpec)
}

// stallBy is the obstacle of a job in whose spec errors were found, with what to do about them; nil for none.
func stallBy(found field.ErrorList, reason, advice string) *jobstate.Obstacle {
	if len(found) == 0 {
		return nil
	}
	return &jobstate.Obstacle{Reason: reason, Message: trainingpod.DescribeErrors(found) + ". " + advice, Stalled: true}
}

// kueueQueueLabel is how jobs are labelled for Kueue (sigs.k8s.io/kueue, pkg/controller/constants).
const kueueQueueLabel = "kueue.x-k8s.io/queue-name"

// managedByKueue refuses a job that is labelled for Kueue. Kueue does not know the kind and would never admit it, and the user
// would wait for a queue that the job is not in.
func managedByKueue(s *jobstate.State) *jobstate.Obstacle {
	queue, labelled := s.Job.Labels[kueueQueueLabel]
	if !labelled {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonManagedByKueue,
		Message: fmt.Sprintf("Label %s (%s) asks Kueue to admit the job, but Kueue does not know ElasticTrainingJobs. "+
			"Remove the label, and Volcano schedules the job.", kueueQueueLabel, queue),
		Stalled: true,
	}
}

// limitExceeded refuses more workers than the operator's configuration allows a job.
func limitExceeded(s *jobstate.State) *jobstate.Obstacle {
	most := s.Config.Limits.MaxWorkersPerJob
	if s.Spec.MaxReplicas <= most {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonLimitExceeded,
		Message: fmt.Sprintf("spec.maxReplicas: the operator's configuration allows %d workers per job (limits.maxWorkersPerJob), and "+
			"this is %d. Lower maxReplicas, or ask an administrator to raise the limit.", most, s.Spec.MaxReplicas),
		Stalled: true,
	}
}

// unknownTier refuses a tier that the operator's configuration does not have, or has no longer.
func unknownTier(s *jobstate.State) *jobstate.Obstacle {
	asked := cmp.Or(s.Spec.Tier, s.BegunTier()) // A job that has begun keeps the default tier it began with.
	if _, ok := s.Config.Tiers.FindTier(asked); ok {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonUnknownTier,
		Message: fmt.Sprintf("spec.tier: the operator's configuration has no tier %q; it has %s. "+
			"Set spec.tier to one of these.", asked, s.Config.Tiers.JoinedNames()),
		Stalled: true,
	}
}

// tierNotAllowed refuses a tier that the profile does not open to the job's owner.
func tierNotAllowed(s *jobstate.State) *jobstate.Obstacle {
	if _, ok := s.AskedTier(); ok {
		return nil
	}
	profile := s.Profile.Name
	allowed := s.Config.Tiers.NamesOpenTo(s.Profile, s.Owner())
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonTierNotAllowed,
		Message: fmt.Sprintf("spec.tier: profile %s does not allow tier %q; it allows %s. Set spec.tier to one of these, or ask an "+
			"administrator to allow the tier.", profile, s.Spec.Tier, allowed),
		Stalled: true,
	}
}

// beforeBeginning makes a check of jobs that are about to begin. One whose attempt goes on keeps the tier of that, and condition
// RangePending says what is wrong with the one that it asks for.
func beforeBeginning(check func(*jobstate.State) *jobstate.Obstacle) func(*jobstate.State) *jobstate.Obstacle {
	return func(s *jobstate.State) *jobstate.Obstacle {
		if s.Job.Status.Attempt != nil && !jobstate.IsStopped(&s.Job.Status) {
			if _, ok := s.Tier(); ok {
				return nil
			}
		}
		return check(s)
	}
}

// awaitingApproval holds a job until its tier is approved. A job that has begun in its tier resumes without asking again.
func awaitingApproval(s *jobstate.State) *jobstate.Obstacle {
	if waits, _ := approvalOf(s); waits != "" {
		return &jobstate.Obstacle{Reason: v1beta1.ReasonAwaitingApproval, Message: waits}
	}
	return nil
}

// approvalOf says which approval the job waits for, empty for none, and until when an approval that it has counts; zero for ever.
func approvalOf(s *jobstate.State) (waits string, until time.Time) {
	tier, ok := s.AskedTier()
	if !ok || s.KeepsTier() {
		return "", time.Time{}
	}
	return approval.Question{
		Job: s.Job, Resource: "etj", Tier: tier.Name, Profile: s.Profile, WebhooksOff: s.WebhooksOff,
	}.AnswerAt(s.Now)
}

// qosNotMet refuses a template that contradicts the QoS of its tier. A job that has begun keeps running, and resumes as it was:
// to stop it would harm the very work that the tier protects. Its new workers get what the template allows.
func qosNotMet(s *jobstate.State) *jobstate.Obstacle {
	tier, _ := s.AskedTier()
	return stallBy(trainingpod.CheckJobQoS(s.Spec, tier), v1beta1.ReasonQoSNotMet,
		"Set spec.tier to another tier, or suspend the job, change the template's resources, and resume it.")
}

// protectedTooLong refuses a shrink.minRunSeconds above what the tier allows. For a job that has begun the tier's value is used
// instead.
func protectedTooLong(s *jobstate.State) *jobstate.Obstacle {
	tier, _ := s.AskedTier()
	if long := trainingpod.CheckProtection(s.Spec, tier); long != nil {
		return &jobstate.Obstacle{Reason: v1beta1.ReasonLimitExceeded, Message: long.Error() + ".", Stalled: true}
	}
	return nil
}

// graceTooLong refuses grace periods above what the configuration allows, because others wait that long for the room. A job that
// has begun keeps running.
func graceTooLong(s *jobstate.State) *jobstate.Obstacle {
	return stallBy(trainingpod.CheckJobGrace(s.Spec, s.Config.Limits), v1beta1.ReasonLimitExceeded,
		"Suspend the job, lower them, and resume it.")
}

// unknownAccelerator refuses an accelerator whose model the operator cannot select nodes by.
func unknownAccelerator(s *jobstate.State) *jobstate.Obstacle {
	if s.Spec.Accelerator == nil {
		return nil
	}
	resource := config.AcceleratorResource(s.Spec.Accelerator.ResourceName)
	if _, known := s.Config.Accelerators.ModelLabel(resource); known {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonUnknownAccelerator,
		Message: fmt.Sprintf("spec.accelerator.resource: the operator does not know which node label names the model of %q; it knows "+
			"that of %s. Suspend the job, change spec.accelerator to one of these or remove it in favour of a nodeSelector, "+
			"and resume the job.",
			resource, s.Config.Accelerators.JoinedNames()),
		Stalled: true,
	}
}

// uncountableRequests refuses requests that are negative or overflow, because Volcano's scheduler ends when it reckons with such
// minResources. The API server would refuse the pods, but only after the PodGroup exists.
func uncountableRequests(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil {
		return nil
	}
	for _, ask := range []struct {
		who      string
		requests corev1.ResourceList
	}{
		{"A worker", trainingpod.PodRequests(&s.Spec.Template.Spec)},
		{"Worker 0", trainingpod.CoreRequests(s.Job, 1)},
		{"A worker of a role", trainingpod.RoleRequests(s.Job)},
		{"The core", trainingpod.CoreRequests(s.Job, s.Spec.MinReplicas)},
	} {
		if name, q, found := trainingpod.FindUncountable(ask.requests); found {
			return &jobstate.Obstacle{
				Reason: v1beta1.ReasonRejected,
				Message: fmt.Sprintf("%s asks for %s of %s, which is negative or too large to count. Delete the job and create it with "+
					"other resources.", ask.who, q.String(), name),
				Stalled: true,
			}
		}
	}
	return nil
}

// volcanoMissing waits for the Volcano kinds that the operator writes.
func volcanoMissing(s *jobstate.State) *jobstate.Obstacle {
	if s.VolcanoMissing == "" {
		return nil
	}
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonVolcanoMissing,
		Message: fmt.Sprintf("The API server does not serve %s. Install Volcano; the job then continues by itself.",
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
		Reason: v1beta1.ReasonProfileNotReady,
		Message: fmt.Sprintf("Namespace %s belongs to ResourceQuotaProfile %s, which has no Queue yet: %s The job continues by itself "+
			"once it has one.", s.Job.Namespace, profile.Name,
			cmp.Or(profile.Status.Message, "the operator has not looked at it yet.")),
	}
}

// queueRefuses waits for the job's queue to open, because Volcano's webhook refuses a PodGroup in any other.
func queueRefuses(s *jobstate.State) *jobstate.Obstacle {
	if s.Core != nil {
		return nil
	}
	return s.QueueShut()
}
