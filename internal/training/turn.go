package training

import (
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// gated tells whether the profile limits what jobs hold, so that the job waits for its turn and grows within it.
func (p *planner) gated() bool { return admission.Of(p.o.Profile).Gate() }

// allowance is how many surplus workers the limits of the profile leave to the job.
func (p *planner) allowance() int32 {
	switch {
	case !p.gated():
		return math.MaxInt32
	case !p.admitted():
		return 0
	}
	return p.o.Turn.Surplus
}

// awaitsTurn tells whether the job waits for its turn to have a gang. A gang that is there stays, unless the attempt is larger.
func (p *planner) awaitsTurn() bool {
	grown := p.o.Core != nil && p.o.Core.MinMember() < p.minimum
	switch {
	case !p.gated() || p.admitted() || p.o.Core != nil && !grown:
		return false
	case p.refused() != nil:
		return false // It asks with one worker, and has no gang.
	case grown:
		p.deleteGroups() // The attempt is larger than the one that had its turn.
	}
	if b := p.o.Turn.Blocked; b != nil {
		p.obstacle = &Obstacle{Reason: v1alpha1.ReasonQuotaExceeded, Message: p.quotaExceeded(b), Stalled: b.Never}
	}
	return true
}

// admitted tells whether the turn of this attempt has come.
func (p *planner) admitted() bool {
	return p.o.Turn.Admitted && p.o.Turn.Ask == admission.AskOf(p.o.Job)
}

// quotaExceeded says what a job waits for that a limit keeps from its turn, and what to do.
func (p *planner) quotaExceeded(b *admission.Blocked) string {
	profile := p.o.Profile.Name
	if b.Never {
		return TooLarge(b.Limit, b.Asked, profile) + ": lower minReplicas, or have the profile allow more."
	}
	if b.Limit.Scope == admission.ScopeHours {
		return fmt.Sprintf("Profile %s lets %s use accelerators for %s in %s, of which %s are used: it starts by itself when enough "+
			"of that is longer ago.", profile, holder(b), hours(b.Limit.Max), Window(b.Limit.Window), hours(b.Used))
	}
	message := fmt.Sprintf("Profile %s lets %s %s; %s in use, and the job asks for %s.", profile, holder(b), most(b.Limit),
		of(b.Limit, b.Used), of(b.Limit, b.Asked))
	switch {
	case b.Leaving:
		return message + " Surplus workers leave for it."
	case b.Behind.Name != "":
		return message + fmt.Sprintf(" It is number %d of those that wait for that, behind %s.", b.Place, b.Behind)
	default:
		return message + " It starts by itself when enough of that is given back."
	}
}

// TooLarge says that what a job asks for could never be within a limit of the profile.
func TooLarge(limit admission.Limit, asked int64, profile string) string {
	who := "a job"
	switch limit.Scope {
	case admission.ScopeUser:
		who = "a user"
	case admission.ScopeQueue:
		who = "all its jobs together"
	case admission.ScopeJob, admission.ScopeHours:
	}
	return fmt.Sprintf("The job asks for %s at least, and profile %s lets %s %s", of(limit, asked), profile, who, most(limit))
}

func holder(b *admission.Blocked) string {
	switch {
	case b.Limit.Scope == admission.ScopeQueue:
		return "all its jobs together"
	case b.User == "":
		return "whoever has no name"
	}
	return b.User
}

func hours(n int64) string { return fmt.Sprintf("%.1f hours", float64(n)/admission.Hour) }

// Window writes the length of a window of time.
func Window(d time.Duration) string { return strings.TrimSuffix(d.String(), "0m0s") }

func most(l admission.Limit) string { return "hold " + of(l, l.Max) + " at most" }

// part writes an amount of a resource, which may be a part of a whole.
func part(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU || capacity.IsBytes(name):
		return quantity(name, amount)
	case amount%1000 == 0:
		return quantity(name, amount/1000)
	}
	return text.Thousandths(amount)
}

// of writes an amount of what a limit limits.
func of(l admission.Limit, amount int64) string {
	words := part(l.Resource, amount) + " " + string(l.Resource)
	if l.Model != "" {
		words += " (" + l.Model + ")"
	}
	return words
}
