package merging

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Rival is another MergeJob of the same model in the same store.
type Rival struct {
	Key     types.NamespacedName
	Created time.Time
	// Running is true while it has a run, Reads once its store was read, and Yields once its status says that it is the later.
	Running, Reads, Yields bool
}

// RivalOf is how others see a MergeJob.
func RivalOf(job *v1beta1.MergeJob) Rival {
	st := &job.Status
	return Rival{
		Key: (&Job{Object: job}).Key(), Created: job.CreationTimestamp.Time, Running: st.Run != nil, Reads: st.Weight != nil,
		Yields: st.Run == nil && st.Reason == v1beta1.ReasonDuplicateModel,
	}
}

// compare orders the right to merge a model: by age. A MergeJob whose store was never read, for example because it has no
// credentials, comes after one whose store was. Otherwise anyone could block a team's model by naming its bucket.
func (r Rival) compare(o Rival) int {
	if r.Reads != o.Reads {
		if r.Reads {
			return -1
		}
		return 1
	}
	return cmp.Or(r.Created.Compare(o.Created), cmp.Compare(r.Key.Namespace, o.Key.Namespace), cmp.Compare(r.Key.Name, o.Key.Name))
}

// Contenders are the MergeJobs that merge in one place, as far as each of them must know the others: the first two that run, that
// have the right to merge, and that have not yielded. So thousands that name one place cost no more than few.
type Contenders struct{ running, first, stay []Rival }

// ContendersOf finds them among the MergeJobs of a place. One that is being deleted is none.
func ContendersOf(all []v1beta1.MergeJob) Contenders {
	var c Contenders
	for i := range all {
		if all[i].DeletionTimestamp != nil {
			continue
		}
		r := RivalOf(&all[i])
		c.first = keepFirst(c.first, r)
		if r.Running {
			c.running = keepFirst(c.running, r)
		}
		if !r.Yields {
			c.stay = keepFirst(c.stay, r)
		}
	}
	return c
}

// keepFirst adds a rival to the first two.
func keepFirst(to []Rival, r Rival) []Rival {
	at, _ := slices.BinarySearchFunc(to, r, Rival.compare)
	to = slices.Insert(to, at, r)
	return to[:min(len(to), 2)] //nolint:mnd // one of them may be the MergeJob itself
}

// RivalsIn are the rivals of a MergeJob in the places where it merges, at most six in each.
func RivalsIn(key types.NamespacedName, places ...Contenders) []Rival {
	var rivals []Rival
	for _, p := range places {
		for _, r := range slices.Concat(p.running, p.first, p.stay) {
			if r.Key != key && !slices.Contains(rivals, r) {
				rivals = append(rivals, r)
			}
		}
	}
	return rivals
}

// duplicateModel keeps a MergeJob away from a model that another one merges or has the older right to merge. It is the first
// check: the older MergeJob waits until the status of each younger one says that it yields.
func duplicateModel(t *state) *obstacle {
	for _, r := range t.job.Rivals {
		does := "already merges"
		if !r.Running {
			does = "comes first for"
		}
		if r.Running || RivalOf(t.job.Object).compare(r) > 0 {
			return &obstacle{reason: v1beta1.ReasonDuplicateModel, short: "duplicate model", stalled: true, message: fmt.Sprintf(
				"MergeJob %s %s %s, and a prefix holds one model. Delete one of the two, or give each model a prefix of its own.",
				t.rivalName(r.Key.Namespace, r.Key.Name), does, t.describePlace())}
		}
	}
	return nil
}

// rivalName is the name of another MergeJob. Names in other namespaces stay private.
func (t *facts) rivalName(namespace, name string) string {
	if namespace == t.job.Object.Namespace {
		return name
	}
	return "in another namespace"
}
