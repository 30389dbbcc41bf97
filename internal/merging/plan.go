package merging

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Decision is what is done about the merges of a pool. Nothing of one job's waits for another's.
type Decision struct {
	Jobs []JobDecision
	// RequeueAfter is when time alone changes the decision; zero for never.
	RequeueAfter time.Duration
}

// JobDecision is what is done about one MergeJob, in the order of its fields. Nothing is created or deleted on account of a
// memory that is not in the status yet, so a decision either changes the course of the status or has something to do.
type JobDecision struct {
	Job *Job
	// Status is what the status should be.
	Status v1alpha1.MergeJobStatus
	// ReadStore is true when the next step waits for news of the store.
	ReadStore bool

	// DeletePods are stopped, at the latest after stopGraceSeconds.
	DeletePods []podstate.Worker
	// DeleteGroups are PodGroups, and DeleteList is the UID of the ConfigMap.
	DeleteGroups []gang.Ref
	DeleteList   types.UID
	// CreateList is the content of the ConfigMap to create; nil for none.
	CreateList []byte
	// CreateGroups come before pods, and RestoreGroups are PodGroups that somebody changed.
	CreateGroups  []gang.Group
	RestoreGroups []gang.Restore
	// CreatePods are indices of pods, and CreateLast is a PodGroup that comes after them.
	CreatePods []int32
	CreateLast *gang.Group
	// Blueprint makes them.
	Blueprint mergepod.Blueprint
	// OOMKills are containers that were seen to have run out of memory, maybe more than once.
	OOMKills []sizing.OOMKill
}

// StopGraceSeconds is the longest that pods of a merge that has ended are given to end by themselves: the marker is there, or
// nobody waits for it any more, and others wait for the room.
const StopGraceSeconds = 30

// planner is one Plan at work.
type planner struct {
	o      Observed
	now    time.Time
	merges []*merge
	again  time.Duration
}

// state is one MergeJob of the pool in an evaluation, and answers questions about it. A question changes nothing but when the
// pool is looked at again, if time alone changes its answer.
type state struct {
	p    *planner
	job  *Job
	spec *v1alpha1.MergeJobSpec
	st   *v1alpha1.MergeJobStatus
	// fresh is what the store was last seen to have, if it is by the present record; nil otherwise.
	fresh *Sighting
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
}

// description is how a merge stands.
type description struct {
	*merge
	// held is the obstacle that the merge speaks of; nil for one that is on its way. sentence is what it says, in full.
	held     *obstacle
	sentence string
}

// Plan decides about all merges of a pool at once, so that at most one of them asks for its place at a time.
func Plan(o Observed, now time.Time) Decision {
	p := &planner{o: o, now: now}
	for _, job := range o.Jobs {
		t := &merge{state: &state{p: p, job: job, spec: &job.Object.Spec, st: job.Object.Status.DeepCopy()}}
		p.merges = append(p.merges, t)
		t.record()
		if t.st.Run != nil {
			t.goOn()
		}
		t.weigh()
		if t.st.Run == nil {
			t.obstacle = t.findObstacle()
		}
	}
	p.callHead(p.line())
	line := p.line() // Whoever asks now comes first.
	d := Decision{Jobs: make([]JobDecision, 0, len(p.merges))}
	for _, t := range p.merges {
		(&description{merge: t}).say(line)
		t.stay()
		t.d.Job, t.d.Status = t.job, *t.st
		d.Jobs = append(d.Jobs, t.d)
	}
	d.RequeueAfter = p.again
	return d
}

// wake asks to be called again at a time.
func (p *planner) wake(at time.Time) {
	if in := max(at.Sub(p.now), time.Millisecond); p.again == 0 || in < p.again {
		p.again = in
	}
}

// record takes into the status what is known of the job without any decision.
func (t *merge) record() {
	object := t.job.Object
	t.st.ObservedGeneration = object.Generation
	t.st.Model = mergepod.Model(object)
	if tier, known := t.tier(); known {
		t.st.Tier = tier.Name
	}
	t.st.Profile = v1alpha1.DefaultProfile
	if t.job.Profile != nil {
		t.st.Profile = t.job.Profile.Name
	}
	if t.st.Run == nil {
		t.st.Pool = t.spec.Pool
	}
	t.see()
}

// see takes in what the store was seen to have, unless it was seen by an older record: then it is to be read again.
func (t *merge) see() {
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
		t.st.LastFull = &v1alpha1.FullModel{
			Name: s.Full.Name, Time: metaTime(earlier(s.Full.Time, t.p.now)), LastIncrement: Merged(t.st)[s.Full.Name],
		}
	}
	t.st.Increments = int32(min(s.Increments.Count, 1<<30))
	if !s.Increments.Newest.IsZero() {
		t.st.NewestIncrementTime = timePointer(s.Increments.Newest)
	}
}

// Merged has the last increments that are merged into full models which runs of the job have made, or may make yet, by the
// names of those: of the runs that are on record.
func Merged(st *v1alpha1.MergeJobStatus) map[string]string {
	merged := map[string]string{}
	for _, r := range st.History {
		merged[r.Run] = r.LastIncrement
	}
	if st.Run != nil {
		merged[st.Run.ID] = st.Run.LastIncrement
	}
	return merged
}

func nameOf(full *v1alpha1.FullModel) string {
	if full == nil {
		return ""
	}
	return full.Name
}
