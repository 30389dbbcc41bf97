package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergePhase is where a merge stands, in one word.
// Clients must expect further phases.
//
// +kubebuilder:validation:MaxLength=32
type MergePhase string

const (
	// MergeWaiting: the merge is not due, or an obstacle keeps it out of the line; the reason says which.
	MergeWaiting MergePhase = "Waiting"
	// MergeQueued: the merge is due and stands in the line of its pool; the head of the line asks Volcano for its place.
	MergeQueued MergePhase = "Queued"
	// MergeStarting: all pods of the core are placed, and their containers are starting.
	MergeStarting MergePhase = "Starting"
	// MergeRunning: all pods of the core run, or have ended, and the full model is not there yet.
	MergeRunning MergePhase = "Running"
	// MergeMerged: the full model is there. A merge without a schedule stays so; others soon wait for their next time.
	MergeMerged MergePhase = "Merged"
	// MergeTimedOut: the merge was stopped because it ran for runTimeoutSeconds; it is tried again after a back-off.
	MergeTimedOut MergePhase = "TimedOut"
	// MergeFailed: the merge failed; it is tried again after a back-off.
	MergeFailed MergePhase = "Failed"
	// MergeSuspended: the user stopped the merge.
	MergeSuspended MergePhase = "Suspended"
)

// MergeOutcome is how a run, or an attempt of it, ended.
// Clients must expect further outcomes.
//
// +kubebuilder:validation:MaxLength=32
type MergeOutcome string

const (
	// OutcomeMerged: the full model of the run is complete.
	OutcomeMerged MergeOutcome = "Merged"
	// OutcomeTimedOut: it ran for runTimeoutSeconds.
	OutcomeTimedOut MergeOutcome = "TimedOut"
	// OutcomeFailed: a pod failed, ended without the marker, or could not start.
	OutcomeFailed MergeOutcome = "Failed"
	// OutcomeSuspended: the user stopped it.
	OutcomeSuspended MergeOutcome = "Suspended"
	// OutcomeWithdrawn: the attempt was taken back, and the run asks again: it did not start in time, or lost a pod.
	OutcomeWithdrawn MergeOutcome = "Withdrawn"
)

// FullModel is a full model in the store.
type FullModel struct {
	// Name of its directory; a run id for one that Tideline's runs made.
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
	// Time is when it was complete: for a run of this job when that was seen, else by the store's clock.
	Time metav1.Time `json:"time"`
	// LastIncrement is the name of the last increment that is merged into it; empty if it is not on record. Then increments
	// written after the full model, or after the start of the run that made it, wait to be merged.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastIncrement string `json:"lastIncrement,omitempty"`
}

// MergeRun is a run that asks for its place, starts, runs, or is being stopped. It is in status before anything of it exists.
type MergeRun struct {
	// ID names the run, and the directory of its full model.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Attempt counts from 1 how often the run asked for its place.
	Attempt int32 `json:"attempt"`
	// AskTime is when the attempt asked for its place.
	AskTime metav1.Time `json:"askTime"`
	// Withdrawals counts attempts in a row that did not start in time.
	// +optional
	Withdrawals int32 `json:"withdrawals,omitempty"`
	// Losses counts attempts of the run that lost a pod.
	// +optional
	Losses int32 `json:"losses,omitempty"`
	// Template tells the pods of the attempt from those of another template or number of replicas: a hash of 16 hexadecimal digits.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Template string `json:"template,omitempty"`
	// Increments is how many increments the run merges.
	Increments int32 `json:"increments"`
	// LastIncrement is the name of the last of them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastIncrement string `json:"lastIncrement,omitempty"`
	// Base is the name of the full model that they are merged with; empty where there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Base string `json:"base,omitempty"`
	// MinReplicas and MaxReplicas are those of the attempt.
	MinReplicas int32 `json:"minReplicas"`
	// MaxReplicas is the largest number of pods of the attempt.
	MaxReplicas int32 `json:"maxReplicas"`
	// Tier that the attempt's pods have.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Tier string `json:"tier,omitempty"`
	// ByHand is true for a run that annotation tideline.io/run-now called for.
	// +optional
	ByHand bool `json:"byHand,omitempty"`
	// Short is true while the attempt waits for room that the pool does not have, or for its Queue to open.
	// +optional
	Short bool `json:"short,omitempty"`
	// FitTime is since when there is room, or Tideline cannot tell; absent if that is AskTime. An attempt that is not placed
	// claims.placementTimeoutSeconds of the operator's configuration after that is set aside.
	// +optional
	FitTime *metav1.Time `json:"fitTime,omitempty"`
	// PlaceTime is when all pods of the core were seen to be placed; startTimeoutSeconds counts from here.
	// +optional
	PlaceTime *metav1.Time `json:"placeTime,omitempty"`
	// RunTime is when all pods of the core were seen to run; runTimeoutSeconds counts from here.
	// +optional
	RunTime *metav1.Time `json:"runTime,omitempty"`
	// ExpectedEndTime is when the run should end, by what earlier runs took or, where that is unknown, by runTimeoutSeconds; absent
	// before its pods are placed.
	// +optional
	ExpectedEndTime *metav1.Time `json:"expectedEndTime,omitempty"`
	// Ahead says why the attempt asked before the head of the line; absent for one that asked as the head.
	// +optional
	Ahead *MergeAhead `json:"ahead,omitempty"`
	// Outcome of the attempt; empty until it ended. Its pods are being deleted then.
	// +optional
	Outcome MergeOutcome `json:"outcome,omitempty"`
	// EndTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// Reason says in one word why it ended so.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says why it ended so.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// MergeAhead names the head that a merge went ahead of, and says why the head loses nothing by it.
type MergeAhead struct {
	// Head is the merge that waited for room.
	Head GangRef `json:"head"`
	// HeadTime is when the head should have room; absent if that may be at any moment.
	// +optional
	HeadTime *metav1.Time `json:"headTime,omitempty"`
	// EndTime is when the merge should end at the latest, if that is before HeadTime; absent for one that uses room which the head
	// does not need.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// MergeResult is a run that ended.
type MergeResult struct {
	// Run is its id.
	// +kubebuilder:validation:MaxLength=63
	Run string `json:"run"`
	// Outcome of it.
	Outcome MergeOutcome `json:"outcome"`
	// StartTime is when all its pods ran; absent for one that never did.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when it ended.
	EndTime metav1.Time `json:"endTime"`
	// Attempts is how often it asked for its place.
	Attempts int32 `json:"attempts"`
	// Increments is how many increments it was to merge.
	Increments int32 `json:"increments"`
	// LastIncrement is the name of the last of them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastIncrement string `json:"lastIncrement,omitempty"`
	// Message says why it ended so.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// MergeBlock says what a merge in the line waits for.
type MergeBlock struct {
	// Head is the merge that asks for its place now; absent for that merge itself.
	// +optional
	Head *GangRef `json:"head,omitempty"`
	// Shortfall is what the head lacks.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Shortfall string `json:"shortfall,omitempty"`
}

// MergeSetAside is how Tideline set aside a merge that Volcano did not place although there was room by Tideline's count.
type MergeSetAside struct {
	// Times is how often in a row this happened while Volcano's scheduler worked. Each time doubles the wait until RetryTime,
	// up to 32 times.
	Times int32 `json:"times"`
	// Time is when it was last set aside. For a day from then on all other merges that are due go first.
	Time metav1.Time `json:"time"`
	// RetryTime is when it joins the line again, at the latest.
	RetryTime metav1.Time `json:"retryTime"`
	// Template is the hash of its pod template. A merge whose template changed since joins the line at once.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Template string `json:"template,omitempty"`
	// Message says how long the merge asked, and why it was set aside.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// MergeHistoryLimit is how many ended runs the status keeps.
const MergeHistoryLimit = 10

// MergeJobStatus is the state of the merges. Weight, position and figures in messages are as of when the status was last
// written; nothing in it moves by itself.
type MergeJobStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is where the merge stands.
	// +optional
	Phase MergePhase `json:"phase,omitempty"`
	// Summary is the phase with its most important figure, as `kubectl get` shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Summary string `json:"summary,omitempty"`
	// Reason says why, in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says why, in a sentence with the figures and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Conditions of the merge: Ready, Reconciling, Stalled, StoreUnavailable, Suspended, OwnerChecked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Model is the name of the model.
	// +optional
	Model string `json:"model,omitempty"`
	// Pool is the Volcano Queue in which the merge takes its turn.
	// +optional
	Pool string `json:"pool,omitempty"`
	// Profile is the ResourceQuotaProfile of the merge's namespace; (default) for a namespace that belongs to none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile,omitempty"`
	// Tier is the tier in effect.
	// +optional
	Tier string `json:"tier,omitempty"`
	// Selector selects the merge's pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Selector string `json:"selector,omitempty"`
	// Weight of the merge when the status was last written; absent until the store was read.
	// +optional
	Weight *int64 `json:"weight,omitempty"`
	// Position in the line of the pool, from 1; absent outside the line.
	// +optional
	Position *int32 `json:"position,omitempty"`
	// BlockedBy says what a merge in the line waits for; absent for one that is not in it.
	// +optional
	BlockedBy *MergeBlock `json:"blockedBy,omitempty"`
	// DueTime is when the weight reaches the threshold by age alone; absent for a merge that has no such time.
	// +optional
	DueTime *metav1.Time `json:"dueTime,omitempty"`
	// QueueTime is when the merge joined the line; absent for one that is not in it and has no run.
	// +optional
	QueueTime *metav1.Time `json:"queueTime,omitempty"`
	// LastFull is the newest full model; absent where there is none.
	// +optional
	LastFull *FullModel `json:"lastFull,omitempty"`
	// Increments is how many increments are not merged into it; at most 10,000 are counted.
	// +optional
	// +kubebuilder:default=0
	Increments int32 `json:"increments"`
	// NewestIncrementTime is when the newest increment was written, by the store's clock; absent before one was seen.
	// +optional
	NewestIncrementTime *metav1.Time `json:"newestIncrementTime,omitempty"`
	// Sizing is the result of sizing when the last attempt asked for its place; absent if sizing is off.
	// +optional
	Sizing *SizingStatus `json:"sizing,omitempty"`
	// Run is the run that asks, starts, runs or is being stopped; absent when there is none.
	// +optional
	Run *MergeRun `json:"run,omitempty"`
	// MergeTime is when a run of this job last made a full model.
	// +optional
	MergeTime *metav1.Time `json:"mergeTime,omitempty"`
	// Failures counts runs in a row that failed or timed out.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// RetryTime is when a merge that failed or timed out may join the line again.
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
	// SetAside is the last time that the merge was set aside; absent once it was placed.
	// +optional
	SetAside *MergeSetAside `json:"setAside,omitempty"`
	// AheadRetryTime is when a merge that Volcano did not place at once may go ahead of a head again; absent for every other merge.
	// +optional
	AheadRetryTime *metav1.Time `json:"aheadRetryTime,omitempty"`
	// TurnTime is when a merge at the front of its line asked for its turn at the caps of its profile, which limit what its owner
	// holds; absent for every other merge.
	// +optional
	TurnTime *metav1.Time `json:"turnTime,omitempty"`
	// RunNow is the last value of annotation tideline.io/run-now for which a run began.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RunNow string `json:"runNow,omitempty"`
	// History lists the runs that ended, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []MergeResult `json:"history,omitempty"`
}
