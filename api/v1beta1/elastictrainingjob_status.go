package v1beta1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobPhase is where a job stands, in one word.
// Clients must expect further phases.
//
// +kubebuilder:validation:MaxLength=32
type JobPhase string

const (
	// PhasePending: the core of the current attempt has not run yet.
	PhasePending JobPhase = "Pending"
	// PhaseRunning: the core of the current attempt runs, or ran and is being recovered.
	PhaseRunning JobPhase = "Running"
	// PhaseSuspended: the job was stopped, by its user or for a more important one, and may go on.
	PhaseSuspended JobPhase = "Suspended"
	// PhaseSucceeded: the job ended well.
	PhaseSucceeded JobPhase = "Succeeded"
	// PhaseFailed: the job ended badly.
	PhaseFailed JobPhase = "Failed"
)

// AttemptStatus is one set of pods under one rendezvous id and one min:max. It is in status before the first pod exists.
type AttemptStatus struct {
	// Number counts attempts from 1.
	Number int32 `json:"number"`
	// StartTime is when the attempt was recorded. It is part of the rendezvous id, so that an id never repeats, even after
	// an older status was restored.
	StartTime metav1.Time `json:"startTime"`
	// MinReplicas is the size of the core and the lower bound that torchrun agents were started with.
	MinReplicas int32 `json:"minReplicas"`
	// MaxReplicas is the upper bound that torchrun agents were started with.
	MaxReplicas int32 `json:"maxReplicas"`
	// Tier that the attempt's pods have, or had before the job was stopped.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Tier string `json:"tier,omitempty"`
	// NprocPerNode is what spec.framework.nprocPerNode was when the attempt began; 0 for as many as a worker has GPUs.
	// +optional
	NprocPerNode int32 `json:"nprocPerNode,omitempty"`
	// Model is the accelerator's model that every worker of the attempt runs on; empty where any will do, or a mix.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Model string `json:"model,omitempty"`
	// Checked tells what rules for new jobs check in the spec as it was when the attempt began: a hash of 16 hexadecimal digits. A
	// job that is changed while it is stopped is checked again.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Checked string `json:"checked,omitempty"`
	// HostPort is the port of its node on which worker 0 serves the rendezvous; 0 for a job without hostNetwork, or one that chose
	// framework.port.
	// +optional
	HostPort int32 `json:"hostPort,omitempty"`
	// DataSets are where the attempt's workers have their data.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=6
	DataSets []DataPlace `json:"dataSets,omitempty"`
}

// ID names the attempt in labels and in the rendezvous id: its number and its start in Unix seconds.
func (a *AttemptStatus) ID() string {
	return fmt.Sprintf("%d-%d", a.Number, a.StartTime.Unix())
}

// ElasticityStatus remembers which surplus came and went.
type ElasticityStatus struct {
	// Evicted lists surplus indices that gave way and are not created again before the cooldown has passed, ascending.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Evicted []int32 `json:"evicted,omitempty"`
	// LastEvictionTime is when surplus last gave way; the cooldown counts from here.
	// +optional
	LastEvictionTime *metav1.Time `json:"lastEvictionTime,omitempty"`
	// LastEvictionReason is why surplus last left: the reason of its condition DisruptionTarget, PreemptionByScheduler when
	// Volcano took its place for a waiting gang, Told when the operator told it to leave for one, or Unseen when the operator
	// was down. +optional
	// +kubebuilder:validation:MaxLength=256
	LastEvictionReason string `json:"lastEvictionReason,omitempty"`
	// GaveWayTo is the gang for which the operator last evicted surplus; absent if that is the core of the same job, or if Volcano
	// evicted it, because Volcano does not say for which gang.
	// +optional
	GaveWayTo *GangRef `json:"gaveWayTo,omitempty"`
	// LastGrowthTime is when the job last began to grow.
	// +optional
	LastGrowthTime *metav1.Time `json:"lastGrowthTime,omitempty"`
	// NextGrowthTime is the time before which the job does not grow of its own accord; absent for no pause.
	// +optional
	NextGrowthTime *metav1.Time `json:"nextGrowthTime,omitempty"`
	// QuickLosses is how often in a row surplus gave way sooner than the cooldown that the job would wait to gain it. From the
	// second on, each doubles the cooldown.
	// +optional
	QuickLosses int32 `json:"quickLosses,omitempty"`
	// BudgetTime is until when the growths so far use up elasticity.growth.maxPerHour: an hour from now means all of it.
	// +optional
	BudgetTime *metav1.Time `json:"budgetTime,omitempty"`
	// Aim is the number of workers that the job aimed at when it last changed its size. A higher one ends the pause.
	// +optional
	Aim int32 `json:"aim,omitempty"`
	// LastRestartTime is when all workers last had to restart for another reason than growth.
	// +optional
	LastRestartTime *metav1.Time `json:"lastRestartTime,omitempty"`
	// OutageSeconds is how long changes of size kept the job from progress, as measured; 0 before there was one.
	// +optional
	OutageSeconds int32 `json:"outageSeconds,omitempty"`
	// Speeds are how fast the training goes with how many workers, as measured for this job and for others of its task, by rising
	// number of workers. They decide how far it grows: see elasticity.growth.leastGainPercent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Speeds []MeasuredSpeed `json:"speeds,omitempty"`
}

// MaxSpeeds is for how many sizes the speed of a training is kept: those that were measured last.
const MaxSpeeds = 8

// MeasuredSpeed is how fast a training goes with a number of workers.
type MeasuredSpeed struct {
	// Workers that train, the core included.
	Workers int32 `json:"workers"`
	// PercentPerHour is how much of its total the training does in an hour, in percent, such as 12.5.
	// +kubebuilder:validation:MaxLength=32
	PercentPerHour string `json:"percentPerHour"`
	// Time is when it was measured.
	Time metav1.Time `json:"time"`
}

// MaxAvoidedNodes is how many nodes a job may avoid at a time.
const MaxAvoidedNodes = 16

// AvoidedNode is a node whose kubelet rejected workers of the job, or on which they failed while the node was under suspicion.
type AvoidedNode struct {
	// Name of the node.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Worker is the index of the worker that it rejected last, or that failed on it.
	Worker int32 `json:"worker"`
	// Time is when it did so.
	Time metav1.Time `json:"time"`
	// Rejections by the node, and failures on it. An hour after the job may use it again they are forgotten.
	Rejections int32 `json:"rejections"`
	// Failed is true if the last was no rejection: the worker failed, on a node where workers fail more often than elsewhere.
	// +optional
	Failed bool `json:"failed,omitempty"`
	// Reason is the kubelet's word for the last, such as UnexpectedAdmissionError.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// Message is what the kubelet said of the last.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// Until is when workers of the job may be placed on the node again: ten minutes after its first rejection, twice as long after
	// each further one, an hour at most; absent once they may.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// PreemptionStatus says for which gang the whole job was stopped.
type PreemptionStatus struct {
	// By is the gang that it made room for.
	By GangRef `json:"by"`
	// Since is when it was told to stop.
	Since metav1.Time `json:"since"`
	// LostSince is since when the work is lost that its pods did until they stopped, as that of WorkerFailure; absent before they
	// are told to.
	// +optional
	LostSince *metav1.Time `json:"lostSince,omitempty"`
	// Tier of that gang.
	// +kubebuilder:validation:MaxLength=64
	Tier string `json:"tier"`
}

// LeftInVain is a departure of workers for a gang that was not placed in time.
type LeftInVain struct {
	// For is the gang that the workers left for.
	For GangRef `json:"for"`
	// Time is when the operator gave the gang up, and the workers their room back.
	Time metav1.Time `json:"time"`
	// Workers is how many left.
	Workers int32 `json:"workers"`
	// Whole is true if the job was stopped whole.
	// +optional
	Whole bool `json:"whole,omitempty"`
}

// CheckpointStatus is a checkpoint that Tideline asked worker 0 for, because workers are about to leave or join.
type CheckpointStatus struct {
	// For is what is about to happen: Growth, Shrink, Stop, Restart, or Eviction by another client.
	// +kubebuilder:validation:MaxLength=16
	For string `json:"for"`
	// RequestTime is when it was asked for.
	RequestTime metav1.Time `json:"requestTime"`
	// Number is the value of annotation tideline.io/checkpoint-requested; with this or a higher one in
	// tideline.io/checkpoint-done worker 0 says that the checkpoint is saved. It is above the Unix seconds of requestTime, and
	// above all that worker 0 was asked with or had said before, so that no checkpoint of before the request answers it.
	// +optional
	Number int64 `json:"number,omitempty"`
}

// Incident is a restart that counted once, in whichever workers it showed.
type Incident struct {
	// Number counts incidents of the attempt from 1.
	Number int32 `json:"number"`
	// Time is when it was first noticed.
	Time metav1.Time `json:"time"`
	// Workers are the indices of workers whose containers restarted in it, ascending. Lost workers are not listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Workers []int32 `json:"workers,omitempty"`
}

// WorkerFailure describes the loss of a worker that counted as a restart.
type WorkerFailure struct {
	// Worker is the index of the lost worker.
	Worker int32 `json:"worker"`
	// Time is when the loss was noticed.
	Time metav1.Time `json:"time"`
	// ExitCode of the container that failed; 0 when none is known.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
	// Reason is Deleted, or the reason that the failed pod or container gave.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// InPlace is true when the pod lives on, and its containers restarted.
	// +optional
	InPlace bool `json:"inPlace,omitempty"`
	// LostSince is since when the work of all workers is lost that way: since the last checkpoint that the training told of in
	// annotation tideline.io/checkpoint-done, or since the attempt's core began to run if it told of none. Absent if it did
	// not run. +optional
	LostSince *metav1.Time `json:"lostSince,omitempty"`
	// Message is the last line of what the failed pod said.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ElasticTrainingJobStatus is the state of the job. Counters are as of the last transition; nothing in it
// moves by itself but training.
type ElasticTrainingJobStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is where the job stands: Pending, Running, Suspended, Succeeded or Failed.
	// +optional
	Phase JobPhase `json:"phase,omitempty"`
	// Reason says why, in one word: the reason of the condition that matters most now.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says why, in a sentence with the figures and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Conditions of the job: Ready, Reconciling, Stalled, Suspended, Scheduled, SchedulerConfigured, FullSize, RangePending,
	// PagesRouted, OwnerChecked, Succeeded, Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Queue is the Volcano Queue of the job's gang.
	// +optional
	Queue string `json:"queue,omitempty"`
	// Profile is the ResourceQuotaProfile of the job's namespace; (default) for a namespace that belongs to none, whose jobs go to
	// the Queue that its annotation scheduling.volcano.sh/queue-name names, or to Volcano's default Queue.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile,omitempty"`
	// Tier is the tier in effect.
	// +optional
	Tier string `json:"tier,omitempty"`
	// Attempt is the current set of pods.
	// +optional
	Attempt *AttemptStatus `json:"attempt,omitempty"`
	// Sizing is the result of sizing when the current attempt started; absent if sizing is off.
	// +optional
	Sizing *SizingStatus `json:"sizing,omitempty"`
	// Replicas is the number of worker pods that exist and have not ended.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of worker pods that are ready.
	// +optional
	// +kubebuilder:default=0
	ReadyReplicas int32 `json:"readyReplicas"`
	// Summary is what column Ready of `kubectl get` shows: ready/existing (min..max).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Summary string `json:"summary,omitempty"`
	// Place is the job's place among the gangs that wait in its queue, from 1; 0 when it does not wait.
	// +optional
	// +kubebuilder:default=0
	Place int32 `json:"place"`
	// RoomFrom names the jobs whose surplus the operator evicted so that this job's core finds room, the first 16; empty once the
	// core is placed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RoomFrom []RoomSource `json:"roomFrom,omitempty"`
	// Accelerators is the number of accelerators that ready workers hold.
	// +optional
	// +kubebuilder:default=0
	Accelerators int64 `json:"accelerators"`
	// Targeted is true once spec.replicas was another number than its default, and thus sets how many workers to aim at.
	// +optional
	Targeted bool `json:"targeted,omitempty"`
	// Selector selects the job's worker pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Selector string `json:"selector,omitempty"`
	// Restarts counts losses of workers that cost the training a restart. Evictions, preemptions and lost nodes never count.
	// +optional
	// +kubebuilder:default=0
	Restarts int32 `json:"restarts"`
	// Incident is the last restart that may restart the containers of other workers too, as the loss of worker 0 does.
	// +optional
	Incident *Incident `json:"incident,omitempty"`
	// RestartTimes are the restarts that count against restarts.max now, oldest first: those since the last progress, within
	// windowSeconds as of the last restart.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=101
	RestartTimes []metav1.Time `json:"restartTimes,omitempty"`
	// Progress is what the training had reported in annotation tideline.io/progress of worker 0's pod, as of the last restart that
	// counted: it is read when it matters, and costs no write of its own.
	// +optional
	Progress int64 `json:"progress,omitempty"`
	// Training is what the training said of its steps; absent if spec.progress is, or it has said nothing.
	// +optional
	Training *TrainingProgress `json:"training,omitempty"`
	// Pages are the pages of spec.pages that are reached from outside the cluster, while they are.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Pages []PageStatus `json:"pages,omitempty"`
	// PageRoute is the kind of the route to them, HTTPRoute or Ingress, which has the name NAME-pages; absent for none.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	PageRoute string `json:"pageRoute,omitempty"`
	// LastFailure is the last loss that counted.
	// +optional
	LastFailure *WorkerFailure `json:"lastFailure,omitempty"`
	// Preemption says for which gang the whole job was stopped; absent otherwise. The job continues by itself.
	// +optional
	Preemption *PreemptionStatus `json:"preemption,omitempty"`
	// LeftInVain says when workers of the job last left for a gang that was not placed in time; absent if they never did.
	// +optional
	LeftInVain *LeftInVain `json:"leftInVain,omitempty"`
	// AvoidedNodes are nodes that rejected workers of the job, or on which they failed while the node was under suspicion; workers
	// that are created keep off them for a time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	AvoidedNodes []AvoidedNode `json:"avoidedNodes,omitempty"`
	// Checkpoint is the checkpoint that worker 0 was asked for; absent if no worker is about to leave or join.
	// +optional
	Checkpoint *CheckpointStatus `json:"checkpoint,omitempty"`
	// Elasticity remembers which surplus came and went.
	// +optional
	Elasticity *ElasticityStatus `json:"elasticity,omitempty"`
	// Members lists the worker pods that the job was last known to have running, by index. A pod that is gone although it is
	// listed has been lost.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Members []Member `json:"members,omitempty"`
	// StrandedTime is when worker 0 was last lost, and the store with it by which workers of torchrun meet; absent if no member is
	// Stranded since.
	// +optional
	StrandedTime *metav1.Time `json:"strandedTime,omitempty"`
	// Retries are the back-offs of members that failed or were rejected, by index. Of more than 512 the latest are kept.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Retries []Retry `json:"retries,omitempty"`
	// StartTime is when the core first ran.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// RunningSince is when the core first ran in the current attempt; absent before, and while the job is stopped.
	// +optional
	RunningSince *metav1.Time `json:"runningSince,omitempty"`
	// ActiveSeconds is how long earlier attempts trained, recovery included, in seconds, which counts against
	// deadlines.activeSeconds.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`
	// BelowMinSince is when the core, having run in the current attempt, was first seen not to be whole while no node was to blame;
	// or, before it ran, when one of its workers was first seen unable to start for its image or configuration.
	// +optional
	BelowMinSince *metav1.Time `json:"belowMinSince,omitempty"`
	// WaitSeconds is the time from the job's creation until its core first ran, in seconds.
	// +optional
	WaitSeconds *int64 `json:"waitSeconds,omitempty"`
	// MasterCompletionTime is when the success policy was seen to be met, with Master by worker 0; the completion grace
	// counts from here.
	// +optional
	MasterCompletionTime *metav1.Time `json:"masterCompletionTime,omitempty"`
	// CompletionTime is when the job succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}
