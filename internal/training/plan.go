// Package training decides what to do with an ElasticTrainingJob. Plan is a pure function:
//
//	observed (job, pods, PodGroups, verdict) + now  ->  Decision (create, delete, status)
//
// The planned status is the only memory. A step that must not be repeated or forgotten is written to status in one evaluation and
// carried out in the next.
package training

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/pages"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Decision is what to do for a job, in the order of its fields, and the status to write then.
type Decision struct {
	// DeletePods are deleted first, in this order, each with the GraceSeconds that it has here.
	DeletePods []podstate.Worker
	// ForceDeletePods are removed from the API server although no kubelet has reported their end.
	ForceDeletePods []podstate.Worker
	// Blueprint makes the objects that are created. It is zero if nothing is created.
	Blueprint trainingpod.Blueprint
	// CreateService is true when the headless Service is missing.
	CreateService bool
	// WriteHosts is the ConfigMap with the names of the workers: to be created if it has no UID, else to be updated. It is nil if
	// the ConfigMap is right or not needed.
	WriteHosts *jobstate.Hosts
	// CreateSSHKeys is true if workers are created that need the Secret with the key pair. The Secret may exist already.
	CreateSSHKeys bool
	// CreateNetworkPolicy is true if workers are created that need the NetworkPolicy. It may exist already.
	CreateNetworkPolicy bool
	// CreateGroups are PodGroups to create before any pod.
	CreateGroups []gang.Group
	// RestoreGroups are PodGroups that somebody changed.
	RestoreGroups []gang.Restore
	// CreateWorkers are the indices of pods to create, in this order.
	CreateWorkers []int32
	// DeleteGroups and DeleteService remove what a job does not need that has ended, is stopped, or whose pods are refused.
	DeleteGroups  []gang.Ref
	DeleteService types.UID
	// RequestCheckpoint asks worker 0 for a checkpoint; nil for none.
	RequestCheckpoint *CheckpointRequest
	// RestoreMarks are labels and annotations of workers that somebody changed. It never hinders the training.
	RestoreMarks []Restored
	// DeleteJob is true if the time to live of an ended job has passed.
	DeleteJob bool

	// Pages is what to do for the pages of the job. It never hinders the training.
	Pages pages.Plan

	// Status is the status to write.
	Status v1beta1.ElasticTrainingJobStatus
	// Losses are the losses that Status records for the first time, for metrics.
	Losses []losses.Loss
	// Failed are the failures among Losses that say something of a node.
	Failed []losses.Failure
	// OOMKills are the containers that ran out of memory in Losses, for the task's sizing.
	OOMKills []sizing.OOMKill
	// RequeueAfter is after what time the decision changes though nothing else does; zero for never.
	RequeueAfter time.Duration
}

// Plan decides what to do for the job. It depends on its arguments alone: whatever it must remember is in the job's status, and
// nothing is deleted because of a decision that is not written there yet. It changes none of its arguments.
func Plan(o jobstate.Observed, now time.Time) Decision {
	p := newPlanner(o, now)
	if o.Job.DeletionTimestamp != nil {
		p.leaveNothing()
		return Decision{Status: o.Job.Status, DeletePods: p.d.DeletePods, DeleteGroups: p.d.DeleteGroups}
	}
	p.runPhases(p.choosePhases())
	planPages(p)
	describe.WriteStatus(p.describeInput())
	p.d.Status, p.d.Losses, p.d.OOMKills, p.d.Failed = *p.Status, p.books.Counted, p.books.OOMKills, p.books.Failed
	return p.d
}

// ExplainObstacle returns the decision's status with the obstacle that kept the decision from being carried out.
func ExplainObstacle(
	o jobstate.Observed, now time.Time, d Decision, obstacle jobstate.Obstacle,
) v1beta1.ElasticTrainingJobStatus {
	p := newPlanner(o, now)
	p.AdoptStatus(d.Status.DeepCopy())
	p.obstacle = &obstacle
	if !jobstate.IsFinished(p.Status) && p.Status.Attempt != nil {
		describe.WriteObstacle(p.describeInput())
	}
	return *p.Status
}

// planner is the state of a job, and the decision that its phases fill in.
type planner struct {
	*jobstate.State
	d Decision
	// books are the losses of this evaluation.
	books *losses.Books
	// obstacle is what keeps the job from continuing; nil for nothing.
	obstacle *jobstate.Obstacle
	// departing is true if a phase wants workers to leave, which a checkpoint request serves.
	departing bool
	// step is the growth that was weighed; nil if none was.
	step *growth.Step
	// deleting are the pods that the decision deletes.
	deleting map[types.UID]bool
}

func newPlanner(o jobstate.Observed, now time.Time) *planner {
	s := jobstate.New(o, now)
	s.Refused = refuseChanges(s)
	return &planner{State: s, books: losses.Open(s), deleting: map[types.UID]bool{}}
}

func (p *planner) describeInput() describe.Input {
	return describe.Input{
		State: p.State, Obstacle: p.obstacle, Outcome: p.books.Outcome, Deleting: p.deleting,
		Full: (&grower{p}).hasFullSurplus(), Step: p.step,
	}
}

// requeueAfter asks to be called again after d, or earlier.
func (p *planner) requeueAfter(d time.Duration) {
	if p.d.RequeueAfter == 0 || d < p.d.RequeueAfter {
		// Zero would stand for never.
		p.d.RequeueAfter = max(d, time.Millisecond)
	}
}
