package admission

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// DescribeBlock is the message of a job that a limit of the profile keeps from starting: the limit, its use, what the job asks
// for, what to do.
func (b *Blocked) DescribeBlock(profile string) string {
	if b.Never {
		return b.Limit.TooLarge(b.Asked, profile) + ". Lower minReplicas, or ask an administrator to raise the limit."
	}
	if b.Limit.Scope == ScopeRoom {
		return b.describeRoom(profile)
	}
	if b.Unread {
		return fmt.Sprintf("%s may use %s of accelerators in %s (profile %s), and what was used is being read from the ledger. "+
			"The job goes on by itself.", b.holderName(), formatHours(b.Limit.Max), text.FormatDuration(b.Limit.Window), profile)
	}
	if b.Limit.Scope == ScopeHours {
		return fmt.Sprintf("%[2]s may use %[3]s of accelerators in %[4]s (profile %[1]s) and used %[5]s. The job starts by "+
			"itself when "+
			"enough of that use is older than %[4]s.", profile, b.holderName(), formatHours(b.Limit.Max),
			text.FormatDuration(b.Limit.Window),
			formatHours(b.Used))
	}
	message := fmt.Sprintf("%[2]s may %[3]s (profile %[1]s). %[4]s in use, and the job asks for %[5]s.", profile, b.holderName(),
		b.Limit.mostWords(),
		b.Limit.formatAmount(b.Used), b.Limit.formatAmount(b.Asked))
	switch {
	case b.Leaving:
		return message + " Surplus workers are leaving to make room for it."
	case b.Behind.Name != "":
		return message + fmt.Sprintf(" Position %d in the queue for this limit, after %s.", b.Place, b.Behind)
	default:
		return message + " The job starts by itself when enough is released."
	}
}

// DescribeCap says of a job that runs why it cannot grow, and when it can. A budget's use is left out, because it rises all the
// time.
func (b *Blocked) DescribeCap(profile string) string {
	switch {
	case b.Unread:
		return b.DescribeBlock(profile)
	case b.Limit.Scope == ScopeHours:
		window := text.FormatDuration(b.Limit.Window)
		return fmt.Sprintf("%s has used up %s of accelerators in %s (profile %s). It grows by itself when enough of that use is older "+
			"than %[3]s.", b.holderName(), formatHours(b.Limit.Max), window, profile)
	case b.Limit.Scope == ScopeJob:
		return fmt.Sprintf("a job may %s (profile %s), and this one holds %s.", b.Limit.mostWords(), profile,
			b.Limit.formatAmount(b.Used))
	case b.Behind != (Key{}):
		return fmt.Sprintf("%s may %s (profile %s) and holds %s; %s waits for the rest.", b.holderName(), b.Limit.mostWords(), profile,
			b.Limit.formatAmount(b.Used), b.Behind)
	}
	return fmt.Sprintf("%s may %s (profile %s) and holds %s. It grows by itself when enough is released.", b.holderName(),
		b.Limit.mostWords(), profile, b.Limit.formatAmount(b.Used))
}

// describeRoom is the message of a job that waits in the order of its profile. It has dates and no times left, so that it changes
// only when something happens.
func (b *Blocked) describeRoom(profile string) string {
	message := fmt.Sprintf("Profile %s orders its trainings while room is short, and this one is at position %d", profile, b.Place)
	if b.Behind.Name != "" {
		message += fmt.Sprintf(", after %s", b.Behind)
	}
	return message + fmt.Sprintf(". It takes room that is free from %s, and goes before all newer ones of its tier from %s.",
		b.Fits.UTC().Format(time.RFC3339), b.First.UTC().Format(time.RFC3339))
}

// TooLarge says that a job asks for more than the limit of the profile allows at all.
func (l Limit) TooLarge(asked int64, profile string) string {
	who := "a job"
	switch l.Scope {
	case ScopeUser:
		who = "a user"
	case ScopeQueue:
		who = "all its jobs together"
	case ScopeJob, ScopeHours, ScopeRoom:
	}
	return fmt.Sprintf("The job asks for at least %s, and profile %s lets %s %s", l.formatAmount(asked), profile, who, l.mostWords())
}

func (b *Blocked) holderName() string {
	switch {
	case b.Limit.Scope == ScopeQueue:
		return "All jobs together"
	case b.User == "":
		return "A user without a name"
	}
	return b.User
}

func formatHours(n int64) string { return fmt.Sprintf("%.1f hours", float64(n)/Hour) }

func (l Limit) mostWords() string { return "hold at most " + l.formatAmount(l.Max) }

// formatPart writes an amount of a resource. Pods may hold a part of an accelerator, so it may have decimals.
func formatPart(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU || capacity.IsBytes(name):
		return capacity.FormatQuantity(name, amount)
	case amount%1000 == 0:
		return capacity.FormatQuantity(name, amount/1000)
	}
	return text.FormatThousandths(amount)
}

// formatAmount writes an amount of what a limit limits.
func (l Limit) formatAmount(amount int64) string {
	words := formatPart(l.Resource, amount) + " " + string(l.Resource)
	if l.Model != "" {
		words += " (" + l.Model + ")"
	}
	return words
}
