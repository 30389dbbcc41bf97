package merging

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/platform/moment"
)

const (
	// leavingSlack is the time after its grace period that a deleted object may take to disappear, for kubelet and API server.
	leavingSlack = time.Minute
	// untoldLimit is how long to wait for an object without a deletion timestamp. The garbage collector deletes it: its owner is
	// gone.
	untoldLimit = 10 * time.Minute
	// leavingLimit is how long to wait for an object at most, whatever its grace period is.
	leavingLimit = time.Hour
	// claimedLimit is how long to wait for an object that alone says which MergeJob owned it, from the start of the operator.
	claimedLimit = 2 * time.Minute
)

// Leftover is a pod or a core gang of a MergeJob that is deleted or is being deleted.
type Leftover struct {
	Key types.NamespacedName
	// Gone is when this process saw the deletion of the MergeJob. For a MergeJob that this process never knew it is the start of the
	// process, because the deletion happened before.
	Gone time.Time
	// Deletion is when the object should be gone, its grace period included; zero without a deletion timestamp.
	Deletion time.Time
	// Claimed is true if only the object itself names its MergeJob, and a user may have written that: this process never knew the
	// MergeJob, and the object is in another namespace.
	Claimed bool
}

// BlocksUntil is the latest time up to which the object makes other merges wait. Waiting ensures that a model is not merged twice
// at once and that one gang of a pool waits for its place. The limit ensures that a finalizer, a lost node or a grace period
// of a year cannot stop the others for ever.
func (l Leftover) BlocksUntil() time.Time {
	last := l.Gone.Add(untoldLimit)
	if !l.Deletion.IsZero() {
		last = moment.EarlierOf(l.Deletion.Add(leavingSlack), l.Gone.Add(leavingLimit))
	}
	if l.Claimed {
		return moment.EarlierOf(last, l.Gone.Add(claimedLimit))
	}
	return last
}

// pendingLeftovers are the leftovers that still make others wait, the earliest time at which one of them no longer does, and the
// latest.
func (p *planner) pendingLeftovers(all []Leftover) (held []Leftover, next, until time.Time) {
	for _, l := range all {
		last := l.BlocksUntil()
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

// describeOverdue names the leftovers that should be gone and no longer make others wait. It leaves out claimed ones: what
// they say about their owner may be false.
func (t *state) describeOverdue(all []Leftover, what string) string {
	late := slices.DeleteFunc(slices.Clone(all), func(l Leftover) bool {
		early := t.p.now.Before(l.BlocksUntil())
		if early && !l.Claimed {
			t.p.wakeAt(l.BlocksUntil())
		}
		return early || l.Claimed
	})
	if len(late) == 0 {
		return ""
	}
	n := int32(len(late))
	return fmt.Sprintf(" %s of a deleted MergeJob should have been gone by %s. Tideline no longer waits for %s; check finalizers "+
		"and nodes of %s.", count(n, what), late[0].BlocksUntil().UTC().Format(time.RFC3339), plural(n, "it", "them"),
		t.leftoverNames(late))
}

// leftoverNames are the names of leftovers in the job's own namespace, three at most. Names in other namespaces stay private.
func (t *facts) leftoverNames(all []Leftover) string {
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
