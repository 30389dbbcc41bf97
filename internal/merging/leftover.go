package merging

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// leavingSlack is what an object that was told to go may take beyond its grace period: kubelet and API server take a moment.
	leavingSlack = time.Minute
	// untoldLimit is how long one that was not told to go is waited for: the garbage collector finds what lost its MergeJob.
	untoldLimit = 10 * time.Minute
	// leavingLimit is how long one is waited for at most, whatever grace period it was given.
	leavingLimit = time.Hour
	// claimedLimit is how long one is waited for that only says itself whose it is, from when the operator started.
	claimedLimit = 2 * time.Minute
)

// Leftover is a pod or a core gang of a MergeJob that is gone, or goes.
type Leftover struct {
	Key types.NamespacedName
	// Gone is when its MergeJob was seen to go; for one that this process never knew, when the process started: it went before.
	Gone time.Time
	// Deletion is when the object should have ended, its grace period included; zero for one that was not told to go.
	Deletion time.Time
	// Claimed is true where nothing but the object itself, which a user may have written, says whose it is: its MergeJob is none
	// that this process knew, and it is in a namespace of others.
	Claimed bool
}

// Until is how long the object keeps others waiting, at most. What that keeps safe, that no model is merged twice at once and one
// gang of a pool waits for its place, must not be a means to stop others for ever: a finalizer, a node that is gone, or a year of
// grace would be enough.
func (l Leftover) Until() time.Time {
	last := l.Gone.Add(untoldLimit)
	if !l.Deletion.IsZero() {
		last = earlier(l.Deletion.Add(leavingSlack), l.Gone.Add(leavingLimit))
	}
	if l.Claimed {
		return earlier(last, l.Gone.Add(claimedLimit))
	}
	return last
}

// held are those of some leftovers that keep others waiting still, when the first of them no longer does, and when the last.
func (p *planner) held(all []Leftover) (held []Leftover, next, until time.Time) {
	for _, l := range all {
		last := l.Until()
		if !p.now.Before(last) {
			continue
		}
		held = append(held, l)
		if next.IsZero() || last.Before(next) {
			next = last
		}
		if last.After(until) {
			until = last
		}
	}
	return held, next, until
}

// outstayed says which leftovers should be gone, and are waited for no longer. Those that only claim to be a predecessor's are
// not believed, so nothing is said of them.
func (t *state) outstayed(all []Leftover, what string) string {
	late := slices.DeleteFunc(slices.Clone(all), func(l Leftover) bool {
		early := t.p.now.Before(l.Until())
		if early && !l.Claimed {
			t.p.wake(l.Until())
		}
		return early || l.Claimed
	})
	if len(late) == 0 {
		return ""
	}
	n := int32(len(late))
	return fmt.Sprintf(" %s of a MergeJob that is gone should have left by %s and %s waited for no longer: see finalizers and "+
		"nodes of %s.", count(n, what), late[0].Until().UTC().Format(time.RFC3339), plural(n, "is", "are"), t.names(late))
}

// names are those of leftovers in the job's own namespace, three at most: those of other namespaces are not told.
func (t *state) names(all []Leftover) string {
	const most = 3
	var names []string
	for _, l := range all {
		if l.Key.Namespace != t.job.Object.Namespace {
			continue
		}
		if len(names) == most {
			return joinAnd(append(names, "others"))
		}
		names = append(names, l.Key.Name)
	}
	if len(names) == 0 {
		return "another namespace"
	}
	return joinAnd(names)
}
