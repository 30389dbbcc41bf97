// Package config is the operator's own configuration: for now its built-in tiers.
package config

import "strings"

// Tier is one level of importance. Core workers carry its PriorityClass tideline-NAME, surplus workers
// tideline-NAME-surplus; a class's value cannot be changed once it exists.
type Tier struct {
	// Name of the tier, a DNS-1035 label of at most 40 characters.
	Name string
	// Priority of core workers, positive: every core comes before anybody's surplus, in all tiers.
	Priority int32
	// SurplusPriority of surplus workers, below -10: any waiting gang takes their place, and cluster-autoscaler, which
	// ignores pending pods below -10 by default, buys no nodes for them.
	SurplusPriority int32
	// Preempts names the tiers whose gangs are stopped whole for a waiting gang of this one, when surplus is not enough.
	Preempts []string
}

// ClassName is the name of the PriorityClass of the tier's core workers.
func (t Tier) ClassName() string { return "tideline-" + t.Name }

// SurplusClassName is the name of the PriorityClass of the tier's surplus workers.
func (t Tier) SurplusClassName() string { return t.ClassName() + "-surplus" }

// Tiers are the tiers in rising importance. The first is the default.
type Tiers []Tier

// DefaultTiers returns the tiers that the operator knows without configuration.
func DefaultTiers() Tiers {
	return Tiers{
		{Name: "exploratory", Priority: 1000, SurplusPriority: -300},
		{Name: "small-traffic", Priority: 10000, SurplusPriority: -200},
		{Name: "main-traffic", Priority: 100000, SurplusPriority: -100, Preempts: []string{"exploratory"}},
	}
}

// Find returns the tier of that name, the default tier for an empty name, and false for a name that is no tier.
func (ts Tiers) Find(name string) (Tier, bool) {
	if name == "" {
		return ts[0], true
	}
	for _, t := range ts {
		if t.Name == name {
			return t, true
		}
	}
	return Tier{}, false
}

// Names lists the names of the tiers in rising importance, for messages.
func (ts Tiers) Names() string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
