package quota

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

// obstacle is something that keeps a profile from being as it says.
type obstacle struct {
	reason, message string
	// stalled is true when nothing will happen until somebody changes something.
	stalled bool
	// queueToo is true when the Queue is kept as the profile says all the same.
	queueToo bool
}

// findObstacle runs the checks in the order in which somebody would mend what they find.
func (r *review) findObstacle() *obstacle {
	for _, check := range []func() *obstacle{r.invalid, r.volcanoMissing, r.queueTaken, r.parentUnfit, r.unknownTier} {
		if o := check(); o != nil {
			return o
		}
	}
	return nil
}

func (r *review) invalid() *obstacle {
	message := r.given.Invalid
	if message == "" {
		if _, err := metav1.LabelSelectorAsSelector(&r.profile.Spec.NamespaceSelector); err != nil {
			message = fmt.Sprintf("spec.namespaceSelector cannot be read, so it chooses no namespace: %v. Correct it.", err)
		}
	}
	if message == "" {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonInvalidSpec, message: message, stalled: true}
}

func (r *review) volcanoMissing() *obstacle {
	if r.p.o.VolcanoMissing == "" {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonVolcanoMissing, message: fmt.Sprintf(
		"The API server does not serve %s: install Volcano; the profile gets its Queue by itself then.", r.p.o.VolcanoMissing)}
}

// queueTaken leaves a Queue alone that somebody else made.
func (r *review) queueTaken() *obstacle {
	q, there := r.p.queues[r.profile.Name]
	if !there || belongs(q) {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonQueueTaken, stalled: true, message: fmt.Sprintf(
		"Queue %s exists and is not the profile's, so it stays as it is: hand it over with `kubectl label "+
			"queues.scheduling.volcano.sh %s %s=%s`, or delete the profile and create it by another name.",
		q.Name, q.Name, v1alpha1.LabelProfile, q.Name)}
}

// parentUnfit keeps a Queue from a parent by which scheduling would stop: one that holds jobs, or may get some.
func (r *review) parentUnfit() *obstacle {
	name := r.profile.Spec.Queue.Parent
	if name == "" || name == r.p.queues[r.profile.Name].Parent {
		return nil
	}
	busy := func(why string) *obstacle {
		return &obstacle{reason: v1alpha1.ReasonParentBusy, stalled: true, message: fmt.Sprintf(
			"spec.queue.parent: Queue %q %s, and a job in a queue with children would stop all scheduling: name a queue that no job "+
				"is in.", name, why)}
	}
	q, there := r.p.queues[name]
	switch {
	case !there:
		return &obstacle{reason: v1alpha1.ReasonParentNotFound, stalled: true, message: fmt.Sprintf(
			"spec.queue.parent: Queue %q does not exist: create it, or name another.", name)}
	case r.p.o.Gangs[name] > 0:
		return busy("holds " + count(r.p.o.Gangs[name], "PodGroup"))
	case name == gang.DefaultQueue:
		return busy("is for jobs of namespaces without a profile")
	case belongs(q) || r.p.isProfile(name):
		return busy("is for the jobs of a profile")
	case r.p.o.Config.Merges.AllowsPool(name):
		return busy("is a pool of merges")
	case r.p.isBelow(name, r.profile.Name):
		return busy("stands below the profile's own")
	}
	return nil
}

// isProfile tells whether a profile of that name exists, whose Queue that is or will be.
func (p *planner) isProfile(name string) bool {
	return slices.ContainsFunc(p.reviews, func(r *review) bool { return r.profile.Name == name })
}

// isBelow tells whether one Queue stands somewhere below another.
func (p *planner) isBelow(queue, other string) bool {
	for range p.queues {
		if queue == other {
			return true
		}
		queue = p.queues[queue].Parent
	}
	return false
}

// unknownTier names tiers that the operator's configuration does not know. The team's jobs of other tiers go on.
func (r *review) unknownTier() *obstacle {
	var unknown []string
	for _, t := range r.profile.Spec.Tiers {
		if _, known := r.p.o.Config.Tiers.Find(t.Name); !known {
			unknown = append(unknown, t.Name)
		}
	}
	for _, m := range r.profile.Spec.Members {
		if _, known := r.p.o.Config.Tiers.Find(m.MaxTier); !known {
			unknown = append(unknown, fmt.Sprintf("%s (maxTier of %s)", m.MaxTier, whom(m)))
		}
	}
	for i := range r.profile.Spec.Reservations {
		t := r.profile.Spec.Reservations[i].Tier
		if _, known := r.p.o.Config.Tiers.OpenTo(r.profile, ownership.Owner{}).Find(t); !known && t != "" {
			unknown = append(unknown, t)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonUnknownTier, stalled: true, queueToo: true, message: fmt.Sprintf(
		"spec: the operator's configuration does not know the tiers %s, or the profile does not list them; it knows %s: name these, "+
			"and list those that reservations have.", strings.Join(slices.Compact(unknown), ", "), r.p.o.Config.Tiers.Names())}
}

// whom names the entry of a member.
func whom(m v1alpha1.ProfileMember) string {
	if m.Group != "" {
		return "group " + m.Group
	}
	return "user " + m.User
}

// refused repeats what was said against the Queue; it is tried again.
func (r *review) refused() *obstacle {
	if r.given.Refused == "" {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonQueueRejected, queueToo: true, message: fmt.Sprintf(
		"Queue %s could not be written: %s. Correct spec.queue, or what stands in its way; it is tried again.",
		r.profile.Name, strings.TrimSuffix(r.given.Refused, "."))}
}
