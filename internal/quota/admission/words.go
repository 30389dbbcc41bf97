package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Say says what a job waits for that a limit of the profile keeps from its turn, and what to do.
func (b *Blocked) Say(profile string) string {
	if b.Never {
		return b.Limit.TooLarge(b.Asked, profile) + ": lower minReplicas, or have the profile allow more."
	}
	if b.Limit.Scope == ScopeHours {
		return fmt.Sprintf("Profile %s lets %s use accelerators for %s in %s, of which %s are used: it starts by itself when enough "+
			"of that is longer ago.", profile, b.holder(), hours(b.Limit.Max), text.Span(b.Limit.Window), hours(b.Used))
	}
	message := fmt.Sprintf("Profile %s lets %s %s; %s in use, and the job asks for %s.", profile, b.holder(), b.Limit.most(),
		b.Limit.words(b.Used), b.Limit.words(b.Asked))
	switch {
	case b.Leaving:
		return message + " Surplus workers leave for it."
	case b.Behind.Name != "":
		return message + fmt.Sprintf(" It is number %d of those that wait for that, behind %s.", b.Place, b.Behind)
	default:
		return message + " It starts by itself when enough of that is given back."
	}
}

// TooLarge says that what a job asks for could never be within the limit of the profile.
func (l Limit) TooLarge(asked int64, profile string) string {
	who := "a job"
	switch l.Scope {
	case ScopeUser:
		who = "a user"
	case ScopeQueue:
		who = "all its jobs together"
	case ScopeJob, ScopeHours:
	}
	return fmt.Sprintf("The job asks for %s at least, and profile %s lets %s %s", l.words(asked), profile, who, l.most())
}

func (b *Blocked) holder() string {
	switch {
	case b.Limit.Scope == ScopeQueue:
		return "all its jobs together"
	case b.User == "":
		return "whoever has no name"
	}
	return b.User
}

func hours(n int64) string { return fmt.Sprintf("%.1f hours", float64(n)/Hour) }

func (l Limit) most() string { return "hold " + l.words(l.Max) + " at most" }

// part writes an amount of a resource, which may be a part of a whole.
func part(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU || capacity.IsBytes(name):
		return capacity.FormatQuantity(name, amount)
	case amount%1000 == 0:
		return capacity.FormatQuantity(name, amount/1000)
	}
	return text.Thousandths(amount)
}

// words writes an amount of what a limit limits.
func (l Limit) words(amount int64) string {
	words := part(l.Resource, amount) + " " + string(l.Resource)
	if l.Model != "" {
		words += " (" + l.Model + ")"
	}
	return words
}
