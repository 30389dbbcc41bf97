package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

// Tier is one level of importance. Core workers carry its PriorityClass tideline-NAME, surplus workers
// tideline-NAME-surplus; a class's value cannot be changed once it exists.
type Tier struct {
	// Name of the tier, a DNS-1035 label of at most 40 characters.
	Name string `json:"name"`
	// Priority of core workers, from 1 to 999999999: every core comes before anybody's surplus, in all tiers, and a gang to which
	// room is handed over before every core.
	Priority int32 `json:"priority"`
	// SurplusPriority of surplus workers, below -10: any waiting gang takes their place, and cluster-autoscaler, which
	// ignores pending pods below -10 by default, buys no nodes for them.
	SurplusPriority int32 `json:"surplusPriority"`
	// Preempts names the less important tiers whose gangs are stopped whole for a waiting gang of this one, when surplus is
	// not enough. Default: none.
	Preempts []string `json:"preempts,omitempty"`
	// QoS is what containers of the tier's pods are held to. Default: Burstable.
	QoS QoS `json:"qos"`
	// LongestRunSeconds is how long a job of the tier may train, over all attempts, and a run of a merge may run, where the job
	// itself does not say less; from 0 to 31536000 (a year), 0 for no bound. Default: 0.
	LongestRunSeconds int32 `json:"longestRunSeconds"`
	// MaxMinSurplusRunSeconds is how long a job of the tier may have its surplus left alone after it was placed
	// (elasticity.shrink.minRunSeconds), from 0 to 86400; gangs of all tiers wait for it. Default: 0, not at all.
	MaxMinSurplusRunSeconds int32 `json:"maxMinSurplusRunSeconds"`
	// Sizing is how much more than what was used containers of the tier may request.
	Sizing Sizing `json:"sizing"`
	// Default marks the tier of jobs that name none. Default: the first tier.
	Default bool `json:"default,omitempty"`
}

// QoS is what containers of a tier's pods are held to, and so how their node treats them when it runs short.
type QoS string

const (
	// QoSBurstable leaves containers as the user wrote them.
	QoSBurstable QoS = "Burstable"
	// QoSMemoryGuaranteed has every container that asks for memory have a limit of just as much.
	QoSMemoryGuaranteed QoS = "MemoryGuaranteed"
	// QoSGuaranteed has every container ask for CPU and memory, with limits of just as much, so that pods are of Kubernetes' QoS
	// class Guaranteed.
	QoSGuaranteed QoS = "Guaranteed"
)

// ClassName is the name of the PriorityClass of the tier's core workers.
func (t Tier) ClassName() string { return "tideline-" + t.Name }

// SurplusClassName is the name of the PriorityClass of the tier's surplus workers.
func (t Tier) SurplusClassName() string { return t.ClassName() + "-surplus" }

// LongestRun is how long a job of the tier may train; 0 for no bound.
func (t Tier) LongestRun() time.Duration { return Seconds(t.LongestRunSeconds) }

// SurplusProtection is for how long after it was placed surplus of a job is left alone that asks for so many seconds: no longer
// than the tier allows, whatever the job was changed to since it was admitted.
func (t Tier) SurplusProtection(asked int32) time.Duration {
	return Seconds(min(asked, t.MaxMinSurplusRunSeconds))
}

// PriorityClasses are the PriorityClasses that the tier needs, that of the core first.
func (t Tier) PriorityClasses() []schedulingv1.PriorityClass {
	core := newClass(t.ClassName(), "Core workers of jobs of tier "+t.Name+".", t.Priority)
	surplus := newClass(t.SurplusClassName(),
		"Surplus workers of jobs of tier "+t.Name+". They give way to any gang that waits.", t.SurplusPriority)
	// Surplus runs in free room and evicts no other pod.
	surplus.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	return []schedulingv1.PriorityClass{core, surplus}
}

func newClass(name, description string, value int32) schedulingv1.PriorityClass {
	return schedulingv1.PriorityClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Value:       value,
		Description: description,
	}
}

// HandoverClass is the PriorityClass of a gang while a reservation hands its room to it: the highest that there may be, so that
// no other gang is placed before it.
const HandoverClass = "tideline-handover"

// handoverPriority is the largest value that the API server lets users give a PriorityClass
// (scheduling.HighestUserDefinablePriority).
const handoverPriority = 1_000_000_000

// NewHandoverClass is HandoverClass as an object. Only PodGroups name it, and pods never, so it evicts nothing.
func NewHandoverClass() schedulingv1.PriorityClass {
	class := newClass(HandoverClass,
		"The core of a job to which a reservation hands its room over, until it is placed. It comes before all others.",
		handoverPriority)
	class.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	return class
}

// Tiers are the tiers in rising importance.
type Tiers []Tier

// DefaultTiers returns the tiers that the operator knows without configuration.
func DefaultTiers() Tiers {
	tiers := Tiers{
		{
			Name: "exploratory", Priority: 1000, SurplusPriority: -300, QoS: QoSBurstable, LongestRunSeconds: 3 * maxDay, Default: true,
		},
		{Name: "small-traffic", Priority: 10000, SurplusPriority: -200, QoS: QoSMemoryGuaranteed},
		{
			Name: "main-traffic", Priority: 100000, SurplusPriority: -100, QoS: QoSGuaranteed, Preempts: []string{"exploratory"},
		},
	}
	for i := range tiers {
		tiers[i].Sizing = defaultSizing(tiers[i].Name)
	}
	return tiers
}

// PriorityClasses are the PriorityClasses that the operator needs: those of the tiers, and Handover.
func (ts Tiers) PriorityClasses() []schedulingv1.PriorityClass {
	classes := make([]schedulingv1.PriorityClass, 0, 2*len(ts)+1)
	for _, t := range ts {
		classes = append(classes, t.PriorityClasses()...)
	}
	return append(classes, NewHandoverClass())
}

// FindTier returns the tier of that name, or the default tier for an empty name; false if there is no such tier.
func (ts Tiers) FindTier(name string) (Tier, bool) {
	for _, t := range ts {
		if t.Name == name || (name == "" && t.Default) {
			return t, true
		}
	}
	return Tier{}, false
}

// InEffect is the tier that a job asks for or, if it asks for none, the one in its status.
func (ts Tiers) InEffect(asked, recorded string) (Tier, bool) {
	return ts.FindTier(cmp.Or(asked, recorded))
}

// OpenTo returns the tiers that an owner's jobs may have in a profile, one of them the default: those that the profile lists,
// or all if it lists none or is nil, up to the highest that its members allow the owner.
func (ts Tiers) OpenTo(profile *v1beta1.ResourceQuotaProfile, owner ownership.Owner) Tiers {
	if profile == nil {
		return ts
	}
	allowed, standard := ts, slices.IndexFunc(ts, func(t Tier) bool { return t.Default })
	if listed := profile.Spec.Tiers; len(listed) > 0 {
		allowed, standard = nil, 0
		for _, t := range ts {
			i := slices.IndexFunc(listed, func(l v1beta1.ProfileTier) bool { return l.Name == t.Name })
			if i < 0 {
				continue
			}
			if listed[i].Default {
				standard = len(allowed)
			}
			allowed = append(allowed, t)
		}
	}
	allowed = slices.Clone(allowed[:min(ts.countWithinReach(profile, owner, allowed), len(allowed))])
	for i := range allowed {
		allowed[i].Default = i == max(min(standard, len(allowed)-1), 0)
	}
	return allowed
}

// NamesOpenTo lists the names of the tiers of OpenTo for messages, with the owner if the owner has fewer than the profile.
func (ts Tiers) NamesOpenTo(profile *v1beta1.ResourceQuotaProfile, owner ownership.Owner) string {
	allowed := ts.OpenTo(profile, owner)
	names := cmp.Or(allowed.JoinedNames(), "no tier of the operator's configuration")
	if len(allowed) == len(ts.OpenTo(profile, ownership.Owner{})) {
		return names
	}
	names += " to " + owner.User
	if groups := owner.GroupsIn(profile); len(groups) > 0 {
		names += " as a member of " + strings.Join(groups, " and ")
	}
	return names
}

// countWithinReach is how many of the allowed tiers an owner may have. A member whose maxTier is unknown may have the lowest
// tier.
func (ts Tiers) countWithinReach(profile *v1beta1.ResourceQuotaProfile, owner ownership.Owner, allowed Tiers) int {
	reach := -1
	for m := range owner.MemberEntries(profile) {
		if m.MaxTier == "" {
			return len(allowed)
		}
		most := max(slices.IndexFunc(ts, func(t Tier) bool { return t.Name == m.MaxTier }), 0)
		within := 0
		for _, t := range allowed {
			if slices.IndexFunc(ts, func(o Tier) bool { return o.Name == t.Name }) <= most {
				within++
			}
		}
		reach = max(reach, within)
	}
	if reach < 0 {
		return len(allowed)
	}
	return reach
}

// RequiresApproval is true if jobs of that tier need approval in the namespaces of a profile.
func RequiresApproval(profile *v1beta1.ResourceQuotaProfile, tier string) bool {
	return profile != nil && slices.ContainsFunc(profile.Spec.Tiers, func(t v1beta1.ProfileTier) bool {
		return t.Name == tier && t.RequiresApproval
	})
}

// mostMergeFactor bounds the factor, however many tiers there are.
const mostMergeFactor = 1024

// MergeFactor is how much the age of a full model weighs in the tier of that name, the default tier for an empty name: 1 in the
// first tier, in each other twice as much as in the one before it, and at most 1024. It is 1 for a name that is no tier.
func (ts Tiers) MergeFactor(name string) int64 {
	tier, _ := ts.FindTier(name)
	factor := int64(1)
	for _, t := range ts {
		if t.Name == tier.Name {
			return factor
		}
		factor = min(2*factor, mostMergeFactor)
	}
	return 1
}

// JoinedNames lists the names of the tiers in rising importance, for messages.
func (ts Tiers) JoinedNames() string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
