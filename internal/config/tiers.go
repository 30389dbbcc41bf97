package config

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Tier is one level of importance. Core workers carry its PriorityClass tideline-NAME, surplus workers
// tideline-NAME-surplus; a class's value cannot be changed once it exists.
type Tier struct {
	// Name of the tier, a DNS-1035 label of at most 40 characters.
	Name string `json:"name"`
	// Priority of core workers, from 1 to 1000000000: every core comes before anybody's surplus, in all tiers.
	Priority int32 `json:"priority"`
	// SurplusPriority of surplus workers, below -10: any waiting gang takes their place, and cluster-autoscaler, which
	// ignores pending pods below -10 by default, buys no nodes for them.
	SurplusPriority int32 `json:"surplusPriority"`
	// Preempts names the less important tiers whose gangs are stopped whole for a waiting gang of this one, when surplus is
	// not enough. Default: none.
	Preempts []string `json:"preempts,omitempty"`
	// Default marks the tier of jobs that name none. Default: the first tier.
	Default bool `json:"default,omitempty"`
}

// ClassName is the name of the PriorityClass of the tier's core workers.
func (t Tier) ClassName() string { return "tideline-" + t.Name }

// SurplusClassName is the name of the PriorityClass of the tier's surplus workers.
func (t Tier) SurplusClassName() string { return t.ClassName() + "-surplus" }

// Classes are the PriorityClasses that the tier needs, that of the core first.
func (t Tier) Classes() []schedulingv1.PriorityClass {
	class := func(name, description string, value int32) schedulingv1.PriorityClass {
		return schedulingv1.PriorityClass{
			TypeMeta:    metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
			ObjectMeta:  metav1.ObjectMeta{Name: name},
			Value:       value,
			Description: description,
		}
	}
	core := class(t.ClassName(), "Core workers of jobs of tier "+t.Name+".", t.Priority)
	surplus := class(t.SurplusClassName(),
		"Surplus workers of jobs of tier "+t.Name+". They give way to any gang that waits.", t.SurplusPriority)
	// Surplus runs on what is free and takes from nobody.
	surplus.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	return []schedulingv1.PriorityClass{core, surplus}
}

// Tiers are the tiers in rising importance.
type Tiers []Tier

// DefaultTiers returns the tiers that the operator knows without configuration.
func DefaultTiers() Tiers {
	return Tiers{
		{Name: "exploratory", Priority: 1000, SurplusPriority: -300, Default: true},
		{Name: "small-traffic", Priority: 10000, SurplusPriority: -200},
		{Name: "main-traffic", Priority: 100000, SurplusPriority: -100, Preempts: []string{"exploratory"}},
	}
}

// Find returns the tier of that name, the default tier for an empty name, and false for a name that is no tier.
func (ts Tiers) Find(name string) (Tier, bool) {
	for _, t := range ts {
		if t.Name == name || (name == "" && t.Default) {
			return t, true
		}
	}
	return Tier{}, false
}

// Of is the tier of a job that asks for one, or of one that asks for none and of which a tier is on record.
func (ts Tiers) Of(asked, recorded string) (Tier, bool) { return ts.Find(cmp.Or(asked, recorded)) }

// For returns the tiers that jobs of a profile may have, the default among them: all for a profile that lists none, and for none.
func (ts Tiers) For(profile *v1alpha1.ResourceQuotaProfile) Tiers {
	if profile == nil || len(profile.Spec.Tiers) == 0 {
		return ts
	}
	var allowed Tiers
	standard := -1
	for _, t := range ts {
		listed := slices.IndexFunc(profile.Spec.Tiers, func(l v1alpha1.ProfileTier) bool { return l.Name == t.Name })
		if listed < 0 {
			continue
		}
		if profile.Spec.Tiers[listed].Default {
			standard = len(allowed)
		}
		t.Default = false
		allowed = append(allowed, t)
	}
	if len(allowed) > 0 {
		allowed[max(standard, 0)].Default = true
	}
	return allowed
}

// mostMergeFactor keeps what a tier weighs within bounds, however many there are.
const mostMergeFactor = 1024

// MergeFactor is how much the age of a full model weighs in the tier of that name, the default tier for an empty name: 1 in the
// first tier, in each other twice as much as in the one before it, and at most 1024. It is 1 for a name that is no tier.
func (ts Tiers) MergeFactor(name string) int64 {
	tier, _ := ts.Find(name)
	factor := int64(1)
	for _, t := range ts {
		if t.Name == tier.Name {
			return factor
		}
		factor = min(2*factor, mostMergeFactor)
	}
	return 1
}

// Names lists the names of the tiers in rising importance, for messages.
func (ts Tiers) Names() string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
