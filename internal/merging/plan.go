package merging

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// How a merge goes through its pool. Each call of Plan moves every MergeJob of one pool at most one step along this drawing:
//
//	 store read ---> weight -------> obstacle? ---yes---> Waiting, and the status says what to do
//	                 (weigh.go)      (obstacle.go)
//	                                     | no
//	                                     v
//	                   line: asking, returning, due by weight, set aside     (line.go)
//	                                     |  the head asks, while no other gang of the pool waits for its place
//	                                     v
//	   +--taken back-- asking: PodGroup and pods exist, Volcano places all or none
//	   |                                 |                   not placed in time although there is room: set aside (aside.go)
//	   |                                 v
//	   +--taken back-- starting ----> running ----> Merged | Failed | TimedOut | Suspended    (run.go, watch.go)
//	   |
//	   +-> clear what the attempt left, then back to the line with the same run
//
// Every step is recorded in the status first. The call after it, which reads that status, creates or deletes the objects.

// Decision is what to do about the merges of a pool. The decision about one job does not depend on carrying out another's.
type Decision struct {
	Jobs []JobDecision
	// CreateQueue is true when there are merges in the default pool, and it has no Queue.
	CreateQueue bool
	// RequeueAfter is when time alone changes the decision; zero for never.
	RequeueAfter time.Duration
}

// JobDecision is what to do about one MergeJob, in the order of its fields. An object is created or deleted only on account
// of what the written status records. So a decision either changes the recorded course of the job or has objects to handle,
// not both.
type JobDecision struct {
	Job *Job
	// Status is what the status should be.
	Status v1beta1.MergeJobStatus
	// ReadStore is true when the next step waits for news of the store.
	ReadStore bool

	// DeletePods are deleted with a grace period of at most StopGraceSeconds.
	DeletePods []podstate.Worker
	// DeleteGroups are PodGroups, and DeleteList is the UID of the ConfigMap.
	DeleteGroups []gang.Ref
	DeleteList   types.UID
	// CreateList is the content of the ConfigMap to create; nil for none.
	CreateList []byte
	// CreateGroups are created before the pods. RestoreGroups are PodGroups that another client changed.
	CreateGroups  []gang.Group
	RestoreGroups []gang.Restore
	// CreatePods are indices of pods, and CreateLast is a PodGroup that comes after them.
	CreatePods []int32
	CreateLast *gang.Group
	// Blueprint makes them.
	Blueprint mergepod.Blueprint
	// OOMKills are containers that ran out of memory. The same kill may be listed by several decisions.
	OOMKills []sizing.OOMKill
}

// StopGraceSeconds is the longest grace period of pods whose merge has ended. By then the full model is complete or given up, and
// other merges wait for the room.
const StopGraceSeconds = 30

// planner is one Plan at work.
type planner struct {
	o      Observed
	now    time.Time
	merges []*merge
	again  time.Duration
	// blocked are the merges that wait at a cap, by what they ask of which limits: see turnKey.
	blocked map[string]*merge
}

// facts are what is on record and was observed of one MergeJob, apart from other merges, the configuration and the time.
type facts struct {
	job  *Job
	spec *v1beta1.MergeJobSpec
	st   *v1beta1.MergeJobStatus
	// fresh is the last reading of the store, if it was made with the newest full model that is on record now; nil otherwise.
	fresh *Sighting
}

// state is one MergeJob of the pool in an evaluation. Its methods answer questions and change nothing, except the time of the
// next evaluation when the answer changes with time alone.
type state struct {
	facts
	p *planner
	// due tells whether the weight has reached the threshold; order is the weight in the line.
	due   bool
	order float64
	// position in the line, from 1; 0 for a merge that is not in it.
	position int32
}

// merge is a MergeJob, and the decision about it as it grows.
type merge struct {
	*state
	d JobDecision
	// obstacle keeps the merge out of the line; nil for one that is in it, or has a run.
	obstacle *obstacle
	// seeksTurn is true once this plan asked the caps of its profile for its turn.
	seeksTurn bool
}

// description is how a merge stands.
type description struct {
	*merge
	// held is the obstacle that the conditions report; nil for a merge that makes progress. sentence is the unabridged message.
	held     *obstacle
	sentence string
}

// withReplicas is a spec with one pod where a definition without defaults admitted it without a number.
func withReplicas(spec v1beta1.MergeJobSpec) *v1beta1.MergeJobSpec {
	spec.MinReplicas, spec.MaxReplicas = max(spec.MinReplicas, 1), max(spec.MaxReplicas, 1)
	return &spec
}

// Plan decides about all merges of a pool at once, so that at most one of them asks for its place at a time.
func Plan(o Observed, now time.Time) Decision {
	p := &planner{o: o, now: now, blocked: map[string]*merge{}}
	for _, job := range o.Jobs {
		t := &merge{state: &state{p: p, facts: facts{
			job: job, spec: withReplicas(job.Object.Spec), st: job.Object.Status.DeepCopy(),
		}}}
		p.merges = append(p.merges, t)
		t.recordFacts()
		if t.st.Run != nil {
			t.advanceRun()
		}
		// After advanceRun: a run that has just merged leaves a younger full model and fewer increments, and so less weight.
		t.computeWeight()
		// A run is not stopped by what would keep its merge out of the line. advanceRun judges what concerns runs.
		if t.st.Run == nil {
			t.obstacle = t.findObstacle()
		}
	}
	line := p.buildLine()
	p.noteBlockedTurns(line)
	p.callHead(line)
	// The line is built again, because the merge that asks now stands at its head, and the positions go into the status.
	line = p.buildLine()
	d := Decision{Jobs: make([]JobDecision, 0, len(p.merges))}
	for _, t := range p.merges {
		(&description{merge: t}).writeWords(line)
		t.keepWrittenWords()
		t.d.Job, t.d.Status = t.job, *t.st
		d.Jobs = append(d.Jobs, t.d)
	}
	// Not where the configuration has taken the pool away: its last merges do not need it for long.
	d.CreateQueue = o.QueueMissing && o.Pool == config.DefaultPool && o.Config.Merges.AllowsPool(o.Pool) && len(p.merges) > 0
	d.RequeueAfter = p.again
	return d
}

// wakeAt asks to be called again at a time.
func (p *planner) wakeAt(at time.Time) {
	if in := max(at.Sub(p.now), time.Millisecond); p.again == 0 || in < p.again {
		p.again = in
	}
}

// recordFacts writes into the status what needs no decision.
func (t *merge) recordFacts() {
	object := t.job.Object
	t.st.ObservedGeneration = object.Generation
	t.st.Model = mergepod.ModelName(object)
	t.st.Selector = v1beta1.LabelMerge + "=" + object.Name
	if tier, known := t.tierInEffect(); known {
		t.st.Tier = tier.Name
	}
	t.st.Profile = v1beta1.DefaultProfile
	if t.job.Profile != nil {
		t.st.Profile = t.job.Profile.Name
	}
	// A run keeps the pool in which its PodGroup was created, also when spec.pool changes meanwhile.
	if t.st.Run == nil {
		t.st.Pool = t.spec.Pool
	}
	t.recordSighting()
}

// recordSighting writes the last reading of the store into the status. A reading made with an older record counts its increments
// from the wrong full model, so it asks for a new one instead.
func (t *merge) recordSighting() {
	s := t.job.Store
	if s == nil || s.Trouble != nil {
		return
	}
	if s.Known != nameOf(t.job.Object.Status.LastFull) {
		t.d.ReadStore = true
		return
	}
	t.fresh = s
	switch {
	case s.Full == nil:
		t.st.LastFull = nil
	case s.Full.Name != nameOf(t.st.LastFull):
		t.st.LastFull = &v1beta1.FullModel{
			// The store's clock may be ahead, and a model from the future would have no age.
			Name: s.Full.Name, Time: metaTime(moment.EarlierOf(s.Full.Time, t.p.now)), LastIncrement: LastMerged(t.st)[s.Full.Name],
		}
	}
	t.st.Increments = int32(min(s.Increments.Count, 1<<30))
	if !s.Increments.Newest.IsZero() {
		t.st.NewestIncrementTime = timePointer(s.Increments.Newest)
	}
}

func nameOf(full *v1beta1.FullModel) string {
	if full == nil {
		return ""
	}
	return full.Name
}
