package quota

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

// obstacle is a reason for which a profile cannot take effect.
type obstacle struct {
	reason, message string
	// stalled is true if nothing happens until a person changes something.
	stalled bool
	// queueToo is true if Tideline maintains the Queue nevertheless.
	queueToo bool
}

// findObstacle returns the first obstacle, in the order in which an administrator would remove them.
func (r *review) findObstacle() *obstacle {
	for _, check := range []func() *obstacle{r.invalidSpec, r.volcanoMissing, r.queueTaken, r.parentUnfit, r.unknownTier} {
		if o := check(); o != nil {
			return o
		}
	}
	return nil
}

func (r *review) invalidSpec() *obstacle {
	message := r.given.Invalid
	if message == "" {
		if _, err := metav1.LabelSelectorAsSelector(&r.profile.Spec.NamespaceSelector); err != nil {
			message = fmt.Sprintf("spec.namespaceSelector is invalid, so it selects no namespace: %v. Correct it.", err)
		}
	}
	if message == "" {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonInvalidSpec, message: message, stalled: true}
}

func (r *review) volcanoMissing() *obstacle {
	if r.p.o.VolcanoMissing == "" {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonVolcanoMissing, message: fmt.Sprintf(
		"The API server does not serve %s. Install Volcano; then Tideline creates the profile's Queue.", r.p.o.VolcanoMissing)}
}

// queueTaken leaves alone a Queue that Tideline did not create.
func (r *review) queueTaken() *obstacle {
	q, there := r.p.queues[r.profile.Name]
	if !there || isProfileQueue(q) {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonQueueTaken, stalled: true, message: fmt.Sprintf(
		"Queue %s exists and does not belong to the profile, so Tideline does not change it. Hand it over with `kubectl label "+
			"queues.scheduling.volcano.sh %s %s=%s`, or delete the profile and create it with another name.",
		q.Name, q.Name, v1beta1.LabelProfile, q.Name)}
}

// parentUnfit refuses a parent that holds jobs or may get some. Volcano's scheduler stops when a queue has both jobs and
// children.
func (r *review) parentUnfit() *obstacle {
	name := r.profile.Spec.Queue.Parent
	// Below a parent that it has already nothing would change.
	if name == "" || name == r.p.queues[r.profile.Name].Parent {
		return nil
	}
	busy := func(why string) *obstacle {
		return &obstacle{reason: v1beta1.ReasonParentBusy, stalled: true, message: fmt.Sprintf(
			"spec.queue.parent: Queue %q %s. A job in a queue with children would stop all scheduling. Name a queue without jobs.",
			name, why)}
	}
	q, there := r.p.queues[name]
	switch {
	case !there:
		return &obstacle{reason: v1beta1.ReasonParentNotFound, stalled: true, message: fmt.Sprintf(
			"spec.queue.parent: Queue %q does not exist. Create it, or name another.", name)}
	case r.p.o.Gangs[name] > 0:
		return busy("holds " + count(r.p.o.Gangs[name], "PodGroup"))
	case name == gang.DefaultQueue:
		return busy("is for jobs of namespaces without a profile")
	case isProfileQueue(q) || r.p.isProfile(name):
		return busy("is for the jobs of a profile")
	case r.p.o.Config.Merges.AllowsPool(name):
		return busy("is a pool of merges")
	case r.p.isBelow(name, r.profile.Name):
		return busy("is below the profile's own Queue")
	}
	return nil
}

// isProfile tells whether a profile of that name exists. The Queue of that name is or will be its own.
func (p *planner) isProfile(name string) bool {
	return slices.ContainsFunc(p.reviews, func(r *review) bool { return r.profile.Name == name })
}

// isBelow tells whether one Queue is another or one of its descendants. The loop is bounded because parents may form a circle.
func (p *planner) isBelow(queue, other string) bool {
	for range p.queues {
		if queue == other {
			return true
		}
		queue = p.queues[queue].Parent
	}
	return false
}

// unknownTier names tiers that the operator's configuration does not have. The team's jobs of other tiers continue.
func (r *review) unknownTier() *obstacle {
	var unknown []string
	for _, t := range r.profile.Spec.Tiers {
		if _, known := r.p.o.Config.Tiers.FindTier(t.Name); !known {
			unknown = append(unknown, t.Name)
		}
	}
	for _, m := range r.profile.Spec.Members {
		if _, known := r.p.o.Config.Tiers.FindTier(m.MaxTier); !known {
			unknown = append(unknown, fmt.Sprintf("%s (maxTier of %s)", m.MaxTier, memberEntry(m)))
		}
	}
	for i := range r.profile.Spec.Reservations {
		t := r.profile.Spec.Reservations[i].Tier
		if _, known := r.p.o.Config.Tiers.OpenTo(r.profile, ownership.Owner{}).FindTier(t); !known && t != "" {
			unknown = append(unknown, t)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonUnknownTier, stalled: true, queueToo: true, message: fmt.Sprintf(
		"spec: the operator's configuration does not have the tiers %s, or the profile does not list them. The configuration has %s. "+
			"Use these, and list the tiers of reservations in spec.tiers.", strings.Join(slices.Compact(unknown), ", "),
		r.p.o.Config.Tiers.JoinedNames())}
}

func memberEntry(m v1beta1.ProfileMember) string {
	if m.Kind == v1beta1.MemberGroup {
		return "group " + m.Name
	}
	return "user " + m.Name
}

// refusedQueue repeats the error of the last write of the Queue, which is tried again.
func (r *review) refusedQueue() *obstacle {
	if r.given.Refused == "" {
		return nil
	}
	return &obstacle{reason: v1beta1.ReasonQueueRejected, queueToo: true, message: fmt.Sprintf(
		"Tideline could not write Queue %s: %s. Correct spec.queue or the cause; Tideline tries again every 30 s.",
		r.profile.Name, strings.TrimSuffix(r.given.Refused, "."))}
}
