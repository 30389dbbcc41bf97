package v1beta1

// Condition types of a MergeJob, besides Ready, Reconciling, Stalled, Suspended and OwnerChecked, which it shares with an
// ElasticTrainingJob. Ready is True while the merge waits for its time, or has merged for good.
const (
	// ConditionStoreUnavailable is present and True while the store cannot be read. A merge in the line keeps its place, and lets
	// the next pass.
	ConditionStoreUnavailable = "StoreUnavailable"
)

// Reasons of a MergeJob that no ElasticTrainingJob has.
const (
	// ReasonNotDue: the weight is below the threshold.
	ReasonNotDue = "NotDue"
	// ReasonNoIncrements: nothing was written that is not merged already.
	ReasonNoIncrements = "NoIncrements"
	// ReasonReadingStore: the store is read for the first time.
	ReasonReadingStore = "ReadingStore"
	// ReasonInLine: the merge is due, and others are before it in the line.
	ReasonInLine = "InLine"
	// ReasonAsking: the merge is the head of the line and asks Volcano for its place.
	ReasonAsking = "Asking"
	// ReasonGoingAhead: the merge asks before the head of the line, which waits for room and loses nothing by it.
	ReasonGoingAhead = "GoingAhead"
	// ReasonNeverFits: the core asks for more than queue and nodes have as they are, even if nothing else ran. A merge is set aside
	// until they change; a training waits, and starts by itself once there is enough.
	ReasonNeverFits = "NeverFits"
	// ReasonMerging: all pods of the core run.
	ReasonMerging = "Merging"
	// ReasonMerged: the full model is complete.
	ReasonMerged = "Merged"
	// ReasonStopping: the run has ended, and its pods are leaving.
	ReasonStopping = "Stopping"
	// ReasonRunTimeout: the merge ran for runTimeoutSeconds.
	ReasonRunTimeout = "RunTimeout"
	// ReasonStartTimeout: three times in a row pods that were placed did not run within startTimeoutSeconds.
	ReasonStartTimeout = "StartTimeout"
	// ReasonMergeFailed: a pod of the core failed.
	ReasonMergeFailed = "MergeFailed"
	// ReasonNoMarker: all pods of the core succeeded, and the completion marker is not there.
	ReasonNoMarker = "NoMarker"
	// ReasonStoreInvalid: a field of the store, or a name in it, is malformed.
	ReasonStoreInvalid = "StoreInvalid"
	// ReasonPodsLost: several attempts of the run lost a pod each.
	ReasonPodsLost = "PodsLost"
	// ReasonNoModel: all pods of the core succeeded, but the full model's directory has only the completion marker.
	ReasonNoModel = "NoModel"
	// ReasonBackoff: the merge failed or timed out, and stays out of the line for a while.
	ReasonBackoff = "Backoff"
	// ReasonPoolNotAllowed: the operator's configuration does not list the pool.
	ReasonPoolNotAllowed = "PoolNotAllowed"
	// ReasonDuplicateModel: another MergeJob, which is older or has a run, merges under this prefix of this bucket.
	ReasonDuplicateModel = "DuplicateModel"
	// ReasonInvalidSchedule: the cron line or the time zone cannot be read, or the cron line never comes true.
	ReasonInvalidSchedule = "InvalidSchedule"

	// ReasonStoreNotAllowed: the operator's configuration does not allow the endpoint, or the provider.
	ReasonStoreNotAllowed = "StoreNotAllowed"
	// ReasonCredentialsMissing: the Secret is not there, or lacks a key.
	ReasonCredentialsMissing = "CredentialsMissing"
	// ReasonReportMissing: the ConfigMap with the report of a store of type Claim is not there, or is not labelled for the MergeJob.
	ReasonReportMissing = "ReportMissing"
	// ReasonReportInvalid: that ConfigMap does not say what it must.
	ReasonReportInvalid = "ReportInvalid"
	// ReasonStoreForbidden: the store refuses the credentials.
	ReasonStoreForbidden = "StoreForbidden"
	// ReasonBucketNotFound: there is no such bucket.
	ReasonBucketNotFound = "BucketNotFound"
	// ReasonStoreUnreachable: the store did not answer, or answered with an error of its own.
	ReasonStoreUnreachable = "StoreUnreachable"
)

// Reasons that occur only on events of MergeJobs.
const (
	// EventMerged: a full model is complete.
	EventMerged = "Merged"
	// EventStarted: all pods of a merge run.
	EventStarted = "Started"
	// EventWithdrawn: an attempt was taken back, and the run asks again.
	EventWithdrawn = "Withdrawn"
)
