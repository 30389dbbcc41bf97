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

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
)

// departedFor is how long a deleted MergeJob is remembered: longer than its objects can make others wait.
const departedFor = 2 * time.Hour

// departed remembers MergeJobs with a run whose deletion this process saw. Users can write the labels and owner references
// of pods and PodGroups, so only this memory tells reliably where a leftover belongs.
type departed struct {
	mu   sync.Mutex
	now  func() time.Time
	jobs map[types.UID]departure
	// started is when this process began to watch. Earlier deletions are unknown.
	started time.Time
}

type departure struct {
	types.NamespacedName
	// places are those where the job merged, and pool is where its gang asked.
	places []string
	pool   string
	// since is when its deletion was seen.
	since time.Time
}

func newDeparted(now func() time.Time) *departed {
	return &departed{now: now, jobs: map[types.UID]departure{}, started: now()}
}

// watchDepartures watches for deleted MergeJobs, also while another replica leads, because this one may become the leader.
func (d *departed) watchDepartures(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &v1beta1.MergeJob{})
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

// rememberDeleting remembers a MergeJob that is being deleted in the foreground, and so still exists until its objects are gone.
func (d *departed) rememberDeleting(o any) {
	if job, ok := o.(*v1beta1.MergeJob); ok && job.DeletionTimestamp != nil {
		d.rememberJob(job)
	}
}

func (d *departed) noteGone(o any) {
	if missed, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	if job, ok := o.(*v1beta1.MergeJob); ok {
		d.rememberJob(job)
	}
}

// rememberJob keeps a job with a run. A job without one has no pods: objects are created only once the cache has the run,
// and the run stays in the status until they are gone.
func (d *departed) rememberJob(job *v1beta1.MergeJob) {
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
		NamespacedName: client.ObjectKeyFromObject(job), places: mergepod.PlaceHashes(job), pool: poolOf(job), since: now,
	}
}

// departureOf is what is remembered of a deleted MergeJob; false if it had no run or was never known.
func (d *departed) departureOf(uid types.UID) (departure, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	job, known := d.jobs[uid]
	return job, known
}

// departedFrom are the deleted jobs that merged at one of the places.
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
