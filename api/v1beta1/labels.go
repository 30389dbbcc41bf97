package v1beta1

// Labels on everything that Tideline creates for an ElasticTrainingJob. The keys are part of the API: users select by them.
const (
	// LabelJob holds the name of the ElasticTrainingJob that an object belongs to; on a ConfigMap also that of a MergeJob.
	LabelJob = "tideline.io/job"
	// LabelWorkerIndex holds the index of a worker pod, "0" to maxReplicas-1.
	LabelWorkerIndex = "tideline.io/worker-index"
	// LabelPart holds PartCore or PartSurplus.
	LabelPart = "tideline.io/part"
	// LabelRole holds the role of a worker pod of spec.roles; others lack it.
	LabelRole = "tideline.io/role"
	// LabelAttempt names the attempt whose rendezvous a worker pod joins, as AttemptStatus.ID writes it.
	LabelAttempt = "tideline.io/attempt"
	// LabelTask holds the task of the job that a worker pod is of.
	LabelTask = "tideline.io/task"
	// LabelOwnerHash selects the worker pods of an owner, whose name may be no label value: the first 16 hexadecimal digits of its
	// SHA-256.
	LabelOwnerHash = "tideline.io/owner-hash"
)

// LabelPages is on the Service and the route of a job's pages: a digest of what the operator wants them to be, 16 hexadecimal
// digits.
const LabelPages = "tideline.io/pages"

// Annotations of a PersistentVolumeClaim, by which `tideline prune` deletes it.
const (
	// AnnotationPruneAfter is the claim's rule, written by whoever owns it: for how long it is kept while nothing uses it, from 1h
	// to 3650d, as in 30d or 720h. A claim without it is never deleted.
	AnnotationPruneAfter = "tideline.io/prune-unused-after"
	// AnnotationUnusedSince is when `tideline prune` first found nothing that uses the claim, as in 2026-11-16T09:00:00Z, and
	// AnnotationUnusedSeen when it last did, or some hours before.
	AnnotationUnusedSince = "tideline.io/unused-since"
	AnnotationUnusedSeen  = "tideline.io/unused-seen"
)

// Labels on what Tideline creates for a MergeJob, besides LabelPart, LabelWorkerIndex, LabelAttempt and LabelOwnerHash.
const (
	// LabelMerge holds the name of the MergeJob that an object belongs to.
	LabelMerge = "tideline.io/merge"
	// LabelRun holds the id of the run that a pod belongs to.
	LabelRun = "tideline.io/run"
	// LabelModelHash tells pods that merge in one place, which is one prefix of one bucket: the first 16 hexadecimal digits of a
	// SHA-256.
	LabelModelHash = "tideline.io/model-hash"
)

// AnnotationRunNow on a MergeJob starts one more merge, whatever its weight, each time its value changes.
const AnnotationRunNow = "tideline.io/run-now"

// AnnotationReportUntil on a CostReport holds a time in the past, as in 2026-11-16T09:00:00Z. The report of the window that ended
// then is made once for each value: anew, as another revision, if there is one.
const AnnotationReportUntil = "tideline.io/report-until"

// AnnotationMailAgain on a CostReport holds a time, as in 2026-11-16T12:00:00Z. Mails of the last report that were begun
// before then, and whose arrival is unknown, are sent once more.
const AnnotationMailAgain = "tideline.io/mail-again"

// AnnotationWhatIf on a dry run of a ResourceQuotaProfile holds how far back to play what ran again, as Go writes durations, from
// 1h to 744h: warnings then say what the profile would have changed. Elsewhere it means nothing.
const AnnotationWhatIf = "tideline.io/what-if"

// VerbSetShare on resourcequotaprofiles lets a user change more of a profile than its reservations and data sets.
const VerbSetShare = "set-share"

// IncrementsFile is where a merge finds the names of the increments of its run: gzipped, one a line, relative to the folder of
// increments, in rising order.
const IncrementsFile = "/etc/tideline/increments/increments.gz"

// AnnotationOwner holds the owner of a worker pod's job.
const AnnotationOwner = "tideline.io/owner"

// Values of LabelPart. A worker belongs to one part for the life of its pod.
const (
	// PartCore marks workers below the attempt's minReplicas; Volcano places them all together or not at all.
	PartCore = "core"
	// PartSurplus marks workers from the attempt's minReplicas on; they give way to waiting gangs.
	PartSurplus = "surplus"
)

// AnnotationStepDomain on a surplus worker's pod is the name of the node or HyperNode that its step is within, of a job with
// elasticity.stepWithin.
const AnnotationStepDomain = "tideline.io/step-domain"

// Annotations on worker 0's pod by which the training speaks to Tideline.
const (
	// AnnotationProgress holds a growing integer, such as the step: a job that makes progress is not given up for the restarts
	// before it. The times at which it grows tell for how long a change of size keeps the training from progress.
	AnnotationProgress = "tideline.io/progress"
	// AnnotationCheckpointRequested is set by Tideline when workers are about to leave or join: a number that the container reads
	// in the file CheckpointFile.
	AnnotationCheckpointRequested = "tideline.io/checkpoint-requested"
	// AnnotationCheckpointDone is set by the training on worker 0's pod, to the number that it was asked with, once the checkpoint
	// is saved. That number is a time in Unix seconds; a training that saves by itself may set it to that of each checkpoint, so
	// that no more counts as lost than was done since.
	AnnotationCheckpointDone = "tideline.io/checkpoint-done"
)

// CheckpointFile is where the training container finds the value of AnnotationCheckpointRequested; it is empty until a
// checkpoint is asked for.
const CheckpointFile = "/etc/tideline/pod/checkpoint-requested"

// AnnotationCreatedFor on a Queue holds the UID of the ResourceQuotaProfile that Tideline created it for. Such a Queue is
// deleted when its profile is gone and it holds nothing.
const AnnotationCreatedFor = "tideline.io/created-for"

// DefaultProfile stands in a status for the profile of namespaces that belong to none: all tiers, and no share of its own.
const DefaultProfile = "(default)"

// LabelGuard marks ConfigMaps in the operator's namespace by which the API server judges pods, under policy
// tideline-other-workloads. Its value is GuardOtherWorkloads.
const (
	LabelGuard          = "tideline.io/guard"
	GuardOtherWorkloads = "other-workloads"
)

// LabelReservation holds the name of the reservation whose room a pod or PodGroup holds, beside LabelProfile.
const LabelReservation = "tideline.io/reservation"

// LabelProfile on a Queue holds the name of the ResourceQuotaProfile whose Queue it is. To set it on a Queue of the same
// name hands that Queue over to the profile.
const LabelProfile = "tideline.io/profile"

// Annotations on a job or merge by which its tier is approved, where the profile of its namespace has that.
const (
	// AnnotationApprove is written by the user who approves: how long the approval counts, for example 72h, from 1m to 8760h.
	// The webhook replaces it by AnnotationApproval.
	AnnotationApprove = "tideline.io/approve"
	// AnnotationApproval holds, in JSON, who approved what and until when. The webhook alone writes it.
	AnnotationApproval = "tideline.io/approval"
)

// TrainerContainer is the name of the container that trains; without one of that name, the first container trains.
const TrainerContainer = "trainer"
