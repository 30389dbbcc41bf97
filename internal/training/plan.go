// Package training decides what becomes of an ElasticTrainingJob. Plan is its heart: a pure function from what was observed
// to what must be done and said.
package training

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Decision is what must be done for a job, in the order of its fields, and what must be said of it then.
type Decision struct {
	// DeletePods are deleted first, in this order, each with the grace that it has here.
	DeletePods []podstate.Worker
	// ForceDeletePods are taken out of the API server although no kubelet says that they have ended.
	ForceDeletePods []podstate.Worker
	// Blueprint makes what is created; it is set when anything is.
	Blueprint trainingpod.Blueprint
	// CreateService is true when the headless Service is missing.
	CreateService bool
	// WriteHosts is the ConfigMap with the names of the workers to be created, if it has no UID, or updated; nil when it is as it
	// should be.
	WriteHosts *jobstate.Hosts
	// CreateSSHKeys is true when the Secret with the key pair must be there, because workers are created; it may be there already.
	CreateSSHKeys bool
	// CreateNetworkPolicy is true when the NetworkPolicy must be there, because workers are created; it may be there already.
	CreateNetworkPolicy bool
	// CreateGroups are PodGroups to create before any pod.
	CreateGroups []gang.Group
	// RestoreGroups are PodGroups that somebody changed.
	RestoreGroups []gang.Restore
	// CreateWorkers are the indices of pods to create, in this order.
	CreateWorkers []int32
	// DeleteGroups and DeleteService remove what a job that ended, or that can have no workers, does not need.
	DeleteGroups  []gang.Ref
	DeleteService types.UID
	// RequestCheckpoint asks worker 0 for a checkpoint; nil for none.
	RequestCheckpoint *CheckpointRequest
	// DeleteJob is true when an ended job has outlived its time.
	DeleteJob bool

	// Status is what the job's status should say.
	Status v1alpha1.ElasticTrainingJobStatus
	// Losses are what Status records of lost workers for the first time, for those who count.
	Losses []losses.Loss
	// OOMKills are containers that ran out of memory, as far as Status records the loss for the first time.
	OOMKills []sizing.OOMKill
	// RequeueAfter is when time alone changes the decision; zero for never.
	RequeueAfter time.Duration
}

// Plan decides what becomes of the job. It depends on its arguments alone: whatever it must remember is in the job's status,
// and nothing is deleted on account of a memory that is not yet there.
func Plan(o jobstate.Observed, now time.Time) Decision {
	if o.Job.DeletionTimestamp != nil || o.Job.Spec.RunPolicy.ManagedBy == v1alpha1.ManagedByMultiKueue {
		return Decision{Status: o.Job.Status}
	}
	p := newPlanner(o, now)
	p.run(p.phases())
	describe.Status(p.description())
	p.d.Status, p.d.Losses, p.d.OOMKills = *p.Status, p.books.Counted, p.books.OOMKills
	return p.d
}

// Explain overlays a status with what kept its decision from being carried out.
func Explain(o jobstate.Observed, now time.Time, d Decision, obstacle jobstate.Obstacle) v1alpha1.ElasticTrainingJobStatus {
	p := newPlanner(o, now)
	p.Take(d.Status.DeepCopy())
	p.obstacle = &obstacle
	if !jobstate.Finished(p.Status) && p.Status.Attempt != nil {
		describe.Obstruct(p.description())
	}
	return *p.Status
}

// planner is the state of a job, and the decision as it grows.
type planner struct {
	*jobstate.State
	d Decision
	// books are the losses of this evaluation.
	books *losses.Books
	// obstacle keeps the job from going on; nil for nothing.
	obstacle *jobstate.Obstacle
	// departing is true when workers are about to leave.
	departing bool
	// deleting are the pods that the decision deletes.
	deleting map[types.UID]bool
}

func newPlanner(o jobstate.Observed, now time.Time) *planner {
	s := jobstate.New(o, now)
	return &planner{State: s, books: losses.Open(s), deleting: map[types.UID]bool{}}
}

func (p *planner) description() describe.Input {
	return describe.Input{
		State: p.State, Obstacle: p.obstacle, Outcome: p.books.Outcome, Deleting: p.deleting, Full: p.full(),
	}
}

// wake asks to be called again after d, or earlier.
func (p *planner) wake(d time.Duration) {
	if p.d.RequeueAfter == 0 || d < p.d.RequeueAfter {
		p.d.RequeueAfter = max(d, time.Millisecond)
	}
}
