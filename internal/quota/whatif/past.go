// Package whatif plays what ran in a time that is over again under other profiles, and says what they would have changed for each
// team. It is pure; package whatifasker reads what it needs.
//
//	Past --PlayPast(profiles as they are)--> an Outcome for each team \
//	Past --PlayPast(with the change)-------> an Outcome for each team  +-> Report.SayChange
package whatif

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

const leastWindow, longestWindow = time.Hour, 31 * 24 * time.Hour

// ParseWindow reads how long the past is, until now, as Go writes durations: from an hour to 31 days.
func ParseWindow(value string) (time.Duration, error) {
	window, err := time.ParseDuration(value)
	if err != nil || window < leastWindow || window > longestWindow {
		return 0, fmt.Errorf("%q is not a duration from %s to %s: write one like 168h", text.ClipLine(value, 64),
			text.FormatDuration(leastWindow), text.FormatDuration(longestWindow))
	}
	return window, nil
}

// Past is what ran from one time to another.
type Past struct {
	From, To time.Time
	// KnownSince is since when all that ran is known: it may be within the time.
	KnownSince time.Time
	// Runs are attempts of trainings, in the order in which they came.
	Runs []Run
	// Others are pods of no training, in the order in which they began. They hold what they held, whatever the profiles are.
	Others []Other
}

// Run is an attempt of a training, as far as its core is concerned.
type Run struct {
	// Name tells it from all others of its namespace. Job is the training that it is an attempt of.
	Namespace, Name, Job string
	// User who owns it; empty if unknown. Tier of its priority; empty for none.
	User, Tier string
	// Queue and Profile that it counted for; empty for none.
	Queue, Profile string
	// Model of the accelerators that it ran on; empty for none.
	Model string
	// Core is what each of its workers held.
	Core []admission.MilliAmounts
	// Came is when it asked for its core, or the beginning of the time for one that came before. Started is when the core had its
	// room, and Ended when it left. Known is false where the ledger does not say when it asked: then Came is Started.
	Came, Started, Ended time.Time
	Known                bool
	// Asked is when it asked, also before the time began: who asked first comes first.
	Asked time.Time
	// Began is true for one that ran already when the time began. Ongoing is true for one that still runs when it is over.
	Began, Ongoing bool
}

// Other is a pod of no training.
type Other struct {
	// Namespace, User, Queue, Profile and Model as those of [Run].
	Namespace, User, Queue, Profile, Model string
	// Node that it was bound to.
	Node string
	// Merging is true for a pod of a merge.
	Merging    bool
	Holds      admission.MilliAmounts
	Begin, End time.Time
}

// lasts is for how long the core holds its room in the time, one second at least. Of one that still runs it is not known how long
// it will: it holds it to the end.
func (r *Run) lasts(past *Past) time.Duration {
	if r.Ongoing {
		return past.To.Sub(past.From)
	}
	return max(r.Ended.Sub(r.Started), time.Second)
}

// core is what all its workers held together, and how many they were.
func (r *Run) core() admission.MilliAmounts {
	all := admission.MilliAmounts{corev1.ResourcePods: 1000 * int64(len(r.Core))}
	for _, worker := range r.Core {
		for name, amount := range worker {
			all[name] += amount
		}
	}
	return all
}

// amountsOn converts what a pod held to what the model of capacity counts, of resources that a node has. Parts of a device count
// as a whole one, because the model knows no parts without their device.
func amountsOn(nodes map[corev1.ResourceName]bool, held admission.MilliAmounts) capacity.Amounts {
	amounts := capacity.Amounts{}
	for name, amount := range held {
		switch {
		case !nodes[name]:
		case name == corev1.ResourceCPU || capacity.IsBytes(name):
			amounts[name] = amount
		default:
			amounts[name] = (amount + 999) / 1000
		}
	}
	return amounts
}
