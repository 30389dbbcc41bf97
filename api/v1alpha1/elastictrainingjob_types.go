package v1alpha1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ElasticTrainingJobSpec says what to train and how far the job may stretch.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",messageExpression="'minReplicas (%d) must not exceed maxReplicas (%d): lower minReplicas or raise maxReplicas'.format([self.minReplicas, self.maxReplicas])"
// +kubebuilder:validation:XValidation:rule="has(self.tier) == has(oldSelf.tier)",fieldPath=".tier",message="tier cannot be added or removed later, because pods carry its priority class from their creation: delete the job and create it anew"
// +kubebuilder:validation:XValidation:rule="has(self.owner) == has(oldSelf.owner)",fieldPath=".owner",message="owner cannot be added or removed later, because it is checked when the job is created: delete the job and create it anew"
// +kubebuilder:validation:XValidation:rule="has(self.master) == has(oldSelf.master)",fieldPath=".master",message="master cannot be added or removed later, because running workers cannot follow it: delete the job and create it anew"
// +kubebuilder:validation:XValidation:rule="has(self.accelerator) == has(oldSelf.accelerator)",fieldPath=".accelerator",message="accelerator cannot be added or removed later, because running workers cannot follow it: delete the job and create it anew"
// +kubebuilder:validation:XValidation:rule="has(self.nprocPerNode) == has(oldSelf.nprocPerNode)",fieldPath=".nprocPerNode",message="nprocPerNode cannot be added or removed later, because running workers have read it when they started: delete the job and create it anew"
// +kubebuilder:validation:XValidation:rule="(has(self.rendezvous) && has(self.rendezvous.backend) && self.rendezvous.backend == 'None') || self.template.spec.containers.all(c, !has(c.env) || c.env.all(e, !(e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR'])))",fieldPath=".template.spec.containers",messageExpression="self.template.spec.containers.map(c, has(c.env) && c.env.exists(e, e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR']), 'env %s of container %s is reserved: torchrun and Tideline set it; remove it'.format([c.env.filter(e, e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR'])[0].name, c.name]))[0]"
type ElasticTrainingJobSpec struct {
	// MinReplicas is the number of workers the job cannot train without: its core. Volcano places the core all together or
	// not at all, and nobody takes part of a running core; the whole job can be stopped for a gang whose tier preempts the job's.
	// A change takes effect at once while nothing is placed, and waits for the next attempt otherwise.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MinReplicas int32 `json:"minReplicas"`

	// MaxReplicas is the largest number of workers the job can use. Workers beyond minReplicas are surplus: they run on
	// whatever is free and give way to waiting gangs. It is the replica count of the scale subresource, so
	// `kubectl scale etj NAME --replicas=N` sets it. A change takes effect at once, as far as the range that running workers
	// were started with reaches; condition RangePending tells when the rest waits for the next attempt.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxReplicas int32 `json:"maxReplicas"`

	// Template is the worker pod. Its container named "trainer", else its first, is the training container: it alone gets the
	// torchrun variables (PET_*). What Tideline decides is refused here: schedulerName, priorityClassName, priority,
	// preemptionPolicy, nodeName, hostname, subdomain, a restartPolicy other than OnFailure, and, unless rendezvous.backend is None,
	// the variables RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and those PET_ ones that carry the rendezvous. A sidecar must stand
	// among the init containers with restartPolicy Always: one among the containers that never exits keeps worker 0 from
	// succeeding. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="template is immutable, because running workers cannot follow it: delete the job and create it anew"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulerName)",fieldPath=".spec.schedulerName",messageExpression="'schedulerName (' + self.spec.schedulerName + ') is set by Tideline, which schedules with Volcano: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priorityClassName)",fieldPath=".spec.priorityClassName",messageExpression="'priorityClassName (' + self.spec.priorityClassName + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priority)",fieldPath=".spec.priority",messageExpression="'priority (%d) follows from the tier: remove it and set spec.tier'.format([self.spec.priority])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.preemptionPolicy)",fieldPath=".spec.preemptionPolicy",messageExpression="'preemptionPolicy (' + self.spec.preemptionPolicy + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.nodeName)",fieldPath=".spec.nodeName",messageExpression="'nodeName (' + self.spec.nodeName + ') would bypass the scheduler: remove it and use nodeSelector'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.hostname)",fieldPath=".spec.hostname",messageExpression="'hostname (' + self.spec.hostname + ') is set by Tideline to the name of each worker: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.subdomain)",fieldPath=".spec.subdomain",messageExpression="'subdomain (' + self.spec.subdomain + ') is set by Tideline to the job\\'s headless Service: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'OnFailure'",fieldPath=".spec.restartPolicy",messageExpression="'restartPolicy (' + self.spec.restartPolicy + ') must be OnFailure, so that containers restart in place and keep their node and GPUs: remove it or set OnFailure'"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('volcano.sh/') || k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('volcano.sh/') || k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))",fieldPath=".metadata.labels",messageExpression="'label %s is set by Tideline: remove it'.format([self.metadata.labels.filter(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))[0]])"
	Template corev1.PodTemplateSpec `json:"template"`

	// Tier is the importance of the job: by default exploratory, small-traffic or main-traffic, in rising order; the
	// operator's configuration may define others. It decides the PriorityClass of core and surplus. Default: exploratory.
	// Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="tier is immutable, because pods carry its priority class from their creation: delete the job and create it anew"
	Tier string `json:"tier,omitempty"`

	// Owner is the person who answers for the job, as the API server names users. Default: the user who creates it. Naming
	// somebody else takes the right to `assign-owner` on elastictrainingjobs of the namespace, for CI and GitOps accounts. Where the
	// operator runs without webhooks there is no default and nobody checks the name, which condition OwnerChecked says. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="owner is immutable: delete the job and create it anew"
	Owner string `json:"owner,omitempty"`

	// Elasticity says how the job grows and shrinks.
	// +optional
	// +kubebuilder:default={}
	Elasticity Elasticity `json:"elasticity,omitempty"`

	// Rendezvous is how the workers of a job find each other.
	// +optional
	// +kubebuilder:default={}
	Rendezvous Rendezvous `json:"rendezvous,omitempty"`

	// RunPolicy says what becomes of the job when it ends.
	// +optional
	// +kubebuilder:default={}
	RunPolicy RunPolicy `json:"runPolicy,omitempty"`

	// SuccessPolicy says when the job has succeeded: Master, when worker 0 has; AllWorkers, when every worker of the core has;
	// Any, when one has. Default Master.
	// +optional
	// +kubebuilder:default=Master
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`

	// FailurePolicy says what is done about workers that are lost.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// Checkpoint says how the training saves itself before workers leave. Immutable.
	// +optional
	// +kubebuilder:default={}
	Checkpoint Checkpoint `json:"checkpoint,omitempty"`

	// Master overrides the template for worker 0. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="master is immutable, because running workers cannot follow it: delete the job and create it anew"
	Master *Master `json:"master,omitempty"`

	// Accelerator says which models of accelerator will do. Default: any. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="accelerator is immutable, because running workers cannot follow it: delete the job and create it anew"
	Accelerator *Accelerator `json:"accelerator,omitempty"`

	// NprocPerNode is the number of processes that torchrun starts in each worker (PET_NPROC_PER_NODE), and of slots in the hostfile
	// of backend None. Default: the number of GPUs of the training container, else 1. Range 1 to 256. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nprocPerNode is immutable, because running workers have read it when they started: delete the job and create it anew"
	NprocPerNode *int32 `json:"nprocPerNode,omitempty"`
}

// Elasticity says how a job grows and shrinks.
type Elasticity struct {
	// CooldownSeconds is the time after surplus gave way before the operator creates surplus again, in seconds: each change of
	// membership costs the training a restart. It never shields surplus from a gang that could start, and never holds back
	// the first growth. Default 300, range 0 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// MinSurplusRunSeconds is how long a surplus worker, once placed, is left alone before Volcano may evict it, in seconds;
	// gangs wait that long for its place. It needs Volcano's plugin cdp, and a change concerns pods created from then on. Default 0,
	// range 0 to 86400.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinSurplusRunSeconds *int32 `json:"minSurplusRunSeconds,omitempty"`

	// ShrinkBy says who tells surplus to leave for a waiting gang: Scheduler, Volcano alone; Operator, Tideline, when a gang has
	// starved; Auto, Volcano where its configuration provides for it (condition SchedulerConfigured), else Tideline. Default Auto.
	// +optional
	// +kubebuilder:default=Auto
	ShrinkBy ShrinkBy `json:"shrinkBy,omitempty"`

	// StarvationSeconds is how long this job's core waits before the operator tells surplus of jobs that shrink by its word to
	// leave for it, in seconds. Default 60, range 0 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	StarvationSeconds *int32 `json:"starvationSeconds,omitempty"`

	// Surplus says which surplus workers are created: All, up to maxReplicas, of which some may wait; Fitting, only what fits now
	// beside the gangs that wait for the same nodes, for clusters whose autoscaler would buy nodes for waiting pods. Default All.
	// +optional
	// +kubebuilder:default=All
	Surplus SurplusPolicy `json:"surplus,omitempty"`

	// OnRangeChange says what becomes of a range that running workers cannot follow: Wait, it takes effect with the next attempt,
	// whatever starts that; Restart, it starts the next attempt, after a checkpoint where one is configured. Default Wait.
	// +optional
	// +kubebuilder:default=Wait
	OnRangeChange RangeChange `json:"onRangeChange,omitempty"`
}

// RangeChange says what becomes of a range that running workers cannot follow.
//
// +kubebuilder:validation:Enum=Wait;Restart
type RangeChange string

const (
	// RangeChangeWait lets the range wait for the next attempt.
	RangeChangeWait RangeChange = "Wait"
	// RangeChangeRestart starts the next attempt.
	RangeChangeRestart RangeChange = "Restart"
)

// ShrinkBy says who tells surplus to leave.
//
// +kubebuilder:validation:Enum=Auto;Scheduler;Operator
type ShrinkBy string

const (
	// ShrinkByAuto leaves it to Volcano where its configuration provides for it, and to the operator elsewhere.
	ShrinkByAuto ShrinkBy = "Auto"
	// ShrinkByScheduler leaves it to Volcano.
	ShrinkByScheduler ShrinkBy = "Scheduler"
	// ShrinkByOperator leaves it to the operator.
	ShrinkByOperator ShrinkBy = "Operator"
)

// SurplusPolicy says which surplus workers are created.
//
// +kubebuilder:validation:Enum=All;Fitting
type SurplusPolicy string

const (
	// SurplusAll creates surplus up to maxReplicas.
	SurplusAll SurplusPolicy = "All"
	// SurplusFitting creates the surplus that fits now.
	SurplusFitting SurplusPolicy = "Fitting"
)

// JobPhase is where a job stands, in one word.
//
// +kubebuilder:validation:Enum=Pending;Running;Suspended;Succeeded;Failed
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
	// Model is the accelerator's model that every worker of the attempt runs on; empty where any will do, or a mix.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Model string `json:"model,omitempty"`
}

// ID names the attempt in labels and in the rendezvous id: its number and its start in Unix seconds.
func (a *AttemptStatus) ID() string {
	return fmt.Sprintf("%d-%d", a.Number, a.StartTime.Unix())
}

// ElasticityStatus remembers which surplus came and went.
type ElasticityStatus struct {
	// Evicted lists surplus indices that gave way and are not created again before the cooldown has passed, ascending.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4096
	Evicted []int32 `json:"evicted,omitempty"`
	// LastEvictionTime is when surplus last gave way; the cooldown counts from here.
	// +optional
	LastEvictionTime *metav1.Time `json:"lastEvictionTime,omitempty"`
	// LastEvictionReason is why surplus last left: the reason of its condition DisruptionTarget, PreemptionByScheduler when Volcano
	// took its place for a waiting gang, Told when the operator told it to leave for one, or Unseen when the operator was down.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastEvictionReason string `json:"lastEvictionReason,omitempty"`
	// GaveWayTo is the gang, as namespace/name, that surplus last left for on the operator's word; empty when Volcano evicted it,
	// which does not say for whom.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	GaveWayTo string `json:"gaveWayTo,omitempty"`
}

// Member is one worker pod that the job was known to have.
type Member struct {
	// Index of the worker.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4095
	Index int32 `json:"index"`
	// UID of its pod.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Type=string
	UID types.UID `json:"uid"`
	// Lost is true once the pod is known to have left or failed, and restarts counts it if it should.
	// +optional
	Lost bool `json:"lost,omitempty"`
	// Left is true for a lost worker that is not replaced in this attempt: it succeeded while worker 0 ran on, or a rule of the
	// failure policy says Ignore.
	// +optional
	Left bool `json:"left,omitempty"`
	// Completed is true for a worker that left because it succeeded.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// ContainerRestarts is how often containers of the pod were seen to have restarted in place.
	// +optional
	ContainerRestarts int32 `json:"containerRestarts,omitempty"`
	// Incident is the number of the last incident that restarted containers of the pod.
	// +optional
	Incident int32 `json:"incident,omitempty"`
	// Failures in a row of the worker, which set its back-off. Reported progress, and ten minutes without a failure, reset it.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// RetryTime is when the worker, failed, may be created anew.
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
}

// PreemptionStatus says why the job was stopped whole.
type PreemptionStatus struct {
	// By is the gang that it made room for, as namespace/name.
	// +kubebuilder:validation:MaxLength=512
	By string `json:"by"`
	// Since is when it was told to stop.
	Since metav1.Time `json:"since"`
	// Tier of that gang.
	// +kubebuilder:validation:MaxLength=64
	Tier string `json:"tier"`
}

// CheckpointStatus is a checkpoint that worker 0 was asked for, because workers are about to leave.
type CheckpointStatus struct {
	// RequestTime is when it was asked for. Its Unix seconds are the value of the annotations by which it is asked for and
	// acknowledged.
	RequestTime metav1.Time `json:"requestTime"`
}

// Incident is a restart that counted once, in whichever workers it showed.
type Incident struct {
	// Number counts incidents of the attempt from 1.
	Number int32 `json:"number"`
	// Time is when it was first noticed.
	Time metav1.Time `json:"time"`
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
	// Message is the last line of what the failed pod said.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ElasticTrainingJobStatus is what became of the job. Counters are as of the last transition; nothing in it moves by itself.
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
	// OwnerChecked, Succeeded, Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Queue is the Volcano Queue of the job's gang.
	// +optional
	Queue string `json:"queue,omitempty"`
	// Tier is the tier in effect.
	// +optional
	Tier string `json:"tier,omitempty"`
	// Attempt is the current set of pods.
	// +optional
	Attempt *AttemptStatus `json:"attempt,omitempty"`
	// Replicas is the number of worker pods that exist and have not ended.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of worker pods that are ready.
	// +optional
	// +kubebuilder:default=0
	ReadyReplicas int32 `json:"readyReplicas"`
	// ReadyWorkers is the summary that `kubectl get` shows: ready/existing (min..max).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ReadyWorkers string `json:"readyWorkers,omitempty"`
	// Place is the job's place among the gangs that wait in its queue, from 1; 0 when it does not wait.
	// +optional
	// +kubebuilder:default=0
	Place int32 `json:"place"`
	// RoomFrom names the jobs whose surplus left, or is leaving, on the operator's word so that this job's core finds room, as
	// namespace/name and number of workers; empty once the core is placed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RoomFrom string `json:"roomFrom,omitempty"`
	// GPUs is the number of GPUs that ready workers hold.
	// +optional
	// +kubebuilder:default=0
	GPUs int64 `json:"gpus"`
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
	// RestartTimes are the restarts that count against maxRestarts now, oldest first: those since the last progress, within
	// windowSeconds as of the last restart.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=101
	RestartTimes []metav1.Time `json:"restartTimes,omitempty"`
	// Progress is what the training had reported in annotation tideline.io/progress of worker 0's pod, as of the last restart that
	// counted: it is read when it matters, and costs no write of its own.
	// +optional
	Progress int64 `json:"progress,omitempty"`
	// LastFailure is the last loss that counted.
	// +optional
	LastFailure *WorkerFailure `json:"lastFailure,omitempty"`
	// Preemption says for whom the job was stopped whole; absent otherwise. It goes on by itself.
	// +optional
	Preemption *PreemptionStatus `json:"preemption,omitempty"`
	// Checkpoint is the checkpoint that worker 0 was asked for; absent when nobody is about to leave.
	// +optional
	Checkpoint *CheckpointStatus `json:"checkpoint,omitempty"`
	// Elasticity remembers which surplus came and went.
	// +optional
	Elasticity *ElasticityStatus `json:"elasticity,omitempty"`
	// Members lists the worker pods that the job was last known to have running, by index. A pod that is gone although it is
	// listed has been lost.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=4096
	Members []Member `json:"members,omitempty"`
	// StartTime is when the core first ran.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// RunningSince is when the core first ran in the current attempt; absent before, and while the job is stopped.
	// +optional
	RunningSince *metav1.Time `json:"runningSince,omitempty"`
	// ActiveSeconds is how long earlier attempts trained, recovery included, in seconds, which counts against
	// activeDeadlineSeconds.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`
	// BelowMinSince is when the core, having run in the current attempt, was first seen not to be whole, or, before it ran, when one
	// of its workers was first seen unable to start for its image or configuration.
	// +optional
	BelowMinSince *metav1.Time `json:"belowMinSince,omitempty"`
	// WaitSeconds is the time from the job's creation until its core first ran, in seconds.
	// +optional
	WaitSeconds *int64 `json:"waitSeconds,omitempty"`
	// MasterCompletionTime is when the success policy was seen to be met, with Master by worker 0; the completion grace counts from
	// here.
	// +optional
	MasterCompletionTime *metav1.Time `json:"masterCompletionTime,omitempty"`
	// CompletionTime is when the job succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// ElasticTrainingJob trains with as few as minReplicas and as many as maxReplicas workers. Volcano places its core all
// together; surplus workers use what is free and give way to waiting gangs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.maxReplicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=etj,categories=tideline,path=elastictrainingjobs,singular=elastictrainingjob
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.readyWorkers`,description="ready/existing workers (min..max)"
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.status.tier`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Owner",type=string,priority=1,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="GPUs",type=integer,priority=1,JSONPath=`.status.gpus`
// +kubebuilder:printcolumn:name="Wait",type=integer,priority=1,JSONPath=`.status.waitSeconds`,description="seconds from creation until the core first ran"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) + 8 + size(string(self.spec.maxReplicas - 1)) <= 63",fieldPath=".metadata.name",messageExpression="'name (%s) is too long (%s characters): the longest host name, NAME-worker-%s, must not exceed 63 characters; shorten the name to %s characters or fewer'.format([self.metadata.name, string(size(self.metadata.name)), string(self.spec.maxReplicas - 1), string(55 - size(string(self.spec.maxReplicas - 1)))])"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, beginning with a letter, without dots'"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.endsWith('-surplus') && !self.metadata.name.endsWith('-merge')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must not end in -surplus or -merge, which name the PodGroups of other jobs: choose another name'"
type ElasticTrainingJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to train and how far the job may stretch.
	// +required
	Spec ElasticTrainingJobSpec `json:"spec"`

	// Status is what became of the job.
	// +optional
	Status ElasticTrainingJobStatus `json:"status,omitempty"`
}

// ElasticTrainingJobList is a list of ElasticTrainingJobs.
//
// +kubebuilder:object:root=true
type ElasticTrainingJobList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticTrainingJob `json:"items"`
}
