// Package merging decides what becomes of the MergeJobs of one pool: who is due, whose turn it is, and how each run goes on. Plan
// is its heart: a pure function from what was observed of the pool to what must be done and said.
package merging

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Observed is all that Plan knows of a pool.
type Observed struct {
	// Pool is the Volcano Queue in which the merges take turns.
	Pool   string
	Config *config.Configuration
	// WebhooksOff is true when the operator serves no webhooks.
	WebhooksOff bool
	// VolcanoMissing names the Volcano kinds that the API server does not serve; empty when it serves all.
	VolcanoMissing string
	// QueueMissing is true when there is no Queue of the pool's name, and QueueState is Volcano's word for its state otherwise;
	// empty while Volcano has not seen it.
	QueueMissing bool
	QueueState   string
	// SchedulerObstacles lists what in Volcano's configuration keeps surplus from giving way.
	SchedulerObstacles []string
	// Leaving are the core gangs in the Queue whose MergeJobs are gone, or being deleted.
	Leaving []Leftover
	// Changes are when what may keep a gang from its place last changed.
	Changes Changes
	// Jobs are the MergeJobs of the pool, in any order.
	Jobs []*Job
}

// Job is one MergeJob with what belongs to it.
type Job struct {
	Object *v1beta1.MergeJob
	// Invalid is what admission would have said against the spec; empty when it keeps its rules.
	Invalid string
	// Profile is the ResourceQuotaProfile of the job's namespace; nil for a namespace that belongs to none.
	Profile *v1beta1.ResourceQuotaProfile
	// Problem is why the objects of the job's run could not be made; nil when nothing was refused.
	Problem *Problem
	// History is what pods of the job used; nil if the operator collects no usage.
	History *sizing.History
	// Past is how long runs of the job held their room.
	Past Past
	// Store is how the store was last seen; nil before this process saw it.
	Store *Sighting
	// Pods are the job's pods, in any order.
	Pods []podstate.Worker
	// Core and Surplus are the PodGroups; nil when they do not exist.
	Core, Surplus *gang.State
	// List is the ConfigMap with the names of the increments; nil when it does not exist.
	List *List
	// Verdict is what the arbiter says of the job's gang.
	Verdict capacity.Verdict
	// Turn is what the caps of its profile answer to a merge that asks for its turn; zero for every other merge, and until they do.
	Turn admission.Turn
	// ClaimsChanged is when claims of volumes in the job's namespace last changed, as far as this process saw.
	ClaimsChanged time.Time
	// Rivals are other MergeJobs of this model in this store, as Contenders has them.
	Rivals []Rival
	// Strangers are pods of MergeJobs that are gone, or go, which may still merge this model in this store; Namesakes are pods of
	// earlier MergeJobs of this name that have names which this one needs.
	Strangers, Namesakes []Leftover
}

// Key is the job's namespace and name.
func (j *Job) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.Object.Namespace, Name: j.Object.Name}
}

// Problem is why the API server did not make an object of the job's attempt.
type Problem struct {
	Reason, Message string
	// Since is when the API server first answered so, if trying again may help; zero for a refusal, which nothing but a change
	// mends.
	Since time.Time
}

// IsFinal tells whether trying again mends nothing.
func (p *Problem) IsFinal() bool { return p != nil && p.Since.IsZero() }

// List is the ConfigMap of a run.
type List struct {
	UID types.UID
	// Run that it was made for.
	Run string
}

// Sighting is how a store was seen.
type Sighting struct {
	// Known is the name of the newest full model on record when the store was read; what was seen is by that record.
	Known string
	// Generation is that of the spec by which the store was read, and RunNow the value that annotation run-now had.
	Generation int64
	RunNow     string
	// Attempt is that of the run on record then, as [mergepod.AttemptName] names it, Run the id of the run, RunOver tells that
	// nothing more was to come of the attempt before the store was read (see [IsOver]), and RunComplete that the full model of the
	// run was there, with its marker: this is known even if there was trouble with the increments.
	Attempt, Run         string
	RunOver, RunComplete bool
	// Hollow is the directory of full models with the newest marker, if there is nothing but the marker in it; empty otherwise.
	Hollow string
	// Full is the newest complete full model, by the store's clock; nil for none.
	Full *Full
	// Increments are those that are not merged into it, and list what a run would merge.
	Increments Increments
	// Trouble is why the store could not be read; nothing else is known then. Nil otherwise.
	Trouble *Trouble
}

// Full is a full model in the store.
type Full struct {
	Name string
	Time time.Time
}

// Increments are what waits to be merged.
type Increments struct {
	// Count is how many there are, and Newest when the newest was written, by the store's clock.
	Count  int
	Newest time.Time
	// List names the first of them or, for a merge over a window, the last of all, Listed many, gzipped and one a line; Last is the
	// last of those.
	List   []byte
	Listed int
	Last   string
}

// Trouble is why a store could not be read.
type Trouble struct {
	// Reason is one of the reason constants of the API, and Message says what happened and what to do.
	Reason, Message string
	// Stalled is true if nothing changes until a person changes the MergeJob or the operator's configuration.
	Stalled bool
}
