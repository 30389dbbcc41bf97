package mergejob

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
)

// departedFor is how long a MergeJob that is gone is remembered: longer than anything of it keeps others waiting.
const departedFor = 2 * time.Hour

// departed remembers the MergeJobs that this process saw go while they had a run, by what the API server said of them. Labels and
// owner references of pods and PodGroups are written by users: whose a leftover is, only this tells.
type departed struct {
	mu   sync.Mutex
	now  func() time.Time
	jobs map[types.UID]departure
	// started is when this process began to watch. What went before that it does not know.
	started time.Time
}

type departure struct {
	types.NamespacedName
	// places are those where the job merged, and pool is where its gang asked.
	places []string
	pool   string
	// since is when it was seen to go.
	since time.Time
}

func newDeparted(now func() time.Time) *departed {
	return &departed{now: now, jobs: map[types.UID]departure{}, started: now()}
}

// watchDepartures lets the cache tell of MergeJobs that go, also while another replica leads: this one may have to go on from
// there.
func (d *departed) watchDepartures(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &v1alpha1.MergeJob{})
	if err != nil {
		return fmt.Errorf("watch MergeJobs: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    d.rememberDeleting,
		UpdateFunc: func(_, after any) { d.rememberDeleting(after) },
		DeleteFunc: d.noteGone,
	})
	if err != nil {
		return fmt.Errorf("watch MergeJobs: %w", err)
	}
	return nil
}

// rememberDeleting remembers a MergeJob that is being deleted, and stays until what it owns is gone.
func (d *departed) rememberDeleting(o any) {
	if job, ok := o.(*v1alpha1.MergeJob); ok && job.DeletionTimestamp != nil {
		d.rememberJob(job)
	}
}

func (d *departed) noteGone(o any) {
	if missed, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	if job, ok := o.(*v1alpha1.MergeJob); ok {
		d.rememberJob(job)
	}
}

// rememberJob keeps a job that had a run. One without has no pods, because objects of a run are made when the cache has the run,
// and a run stays on record until they are gone.
func (d *departed) rememberJob(job *v1alpha1.MergeJob) {
	if job.Status.Run == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for uid, old := range d.jobs {
		if now.Sub(old.since) > departedFor {
			delete(d.jobs, uid)
		}
	}
	if _, known := d.jobs[job.UID]; known {
		return
	}
	d.jobs[job.UID] = departure{
		NamespacedName: client.ObjectKeyFromObject(job), places: mergepod.Places(job), pool: poolOf(job), since: now,
	}
}

// departureOf is what is remembered of a MergeJob; false for one that never had a run, or was never known.
func (d *departed) departureOf(uid types.UID) (departure, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	job, known := d.jobs[uid]
	return job, known
}

// departedFrom are the jobs that merged at one of the places.
func (d *departed) departedFrom(places []string) map[types.UID]departure {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[types.UID]departure{}
	for uid, job := range d.jobs {
		if slices.ContainsFunc(job.places, func(p string) bool { return slices.Contains(places, p) }) {
			found[uid] = job
		}
	}
	return found
}
