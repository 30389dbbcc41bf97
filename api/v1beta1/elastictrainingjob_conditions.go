package v1beta1

// Condition types of an ElasticTrainingJob. Ready, Reconciling and Stalled follow the kstatus convention: Reconciling and
// Stalled are present only while they are True.
const (
	// ConditionReady is True while the core trains, and for good once the job succeeded.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the job is on its way to a running core: queued, placed, starting, or recovering.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True if nothing happens until a person changes what the message says.
	ConditionStalled = "Stalled"
	// ConditionScheduled is True once Volcano placed the whole core of the current attempt.
	ConditionScheduled = "Scheduled"
	// ConditionSchedulerConfigured is True where Volcano's configuration lets surplus give way; otherwise it says what is missing.
	ConditionSchedulerConfigured = "SchedulerConfigured"
	// ConditionFullSize is True while every worker up to maxReplicas is ready; otherwise it says what growth waits for.
	ConditionFullSize = "FullSize"
	// ConditionRangePending is present and True while the spec asks for a range, a tier or a number of processes that the
	// workers of the present attempt cannot follow, or that the job may not have. Its reason says which.
	ConditionRangePending = "RangePending"
	// ConditionSuspended is present and True from when the job stops, after its checkpoint where one is configured, until its next
	// attempt.
	ConditionSuspended = "Suspended"
	// ConditionOwnerChecked is present and False, for good, when the job was created while the operator ran without webhooks:
	// owner and ServiceAccount were not checked.
	ConditionOwnerChecked = "OwnerChecked"
	// ConditionPagesRouted is present while a job with spec.pages has an attempt: True while a route leads to its pages; else it
	// says what is missing. Training does not depend on it.
	ConditionPagesRouted = "PagesRouted"
	// ConditionSucceeded is True for good once the success policy was met and the other workers ended or the completion grace
	// passed, or once a rule of the failure policy completed the job.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True for good once the job failed.
	ConditionFailed = "Failed"
)

// Reasons. Each is the one word that `kubectl get etj` shows under WHY, and the reason of the condition it concerns.
const (
	// ReasonSubmitted: the job was accepted and its attempt recorded; its gang is being created.
	ReasonSubmitted = "Submitted"
	// ReasonQueued: the gang waits for Volcano to place it.
	ReasonQueued = "Queued"
	// ReasonUnschedulable: Volcano found no room for the whole gang.
	ReasonUnschedulable = "Unschedulable"
	// ReasonStarting: the core is placed and its containers are starting.
	ReasonStarting = "Starting"
	// ReasonTraining: every core worker runs.
	ReasonTraining = "Training"
	// ReasonRecovering: the core ran before and lost workers, whose replacements are not ready yet.
	ReasonRecovering = "Recovering"
	// ReasonCompleting: the success policy is met and the other workers have the completion grace to end.
	ReasonCompleting = "Completing"
	// ReasonCompleted: the success policy is met, and, unless it is Any, no other worker failed within the completion grace.
	ReasonCompleted = "Completed"
	// ReasonWorkerFailed: a worker failed within the completion grace, after the success policy had been met.
	ReasonWorkerFailed = "WorkerFailed"

	// ReasonSuspended: the user stopped the job, and it has no pods.
	ReasonSuspended = "Suspended"
	// ReasonPreempted: the job was stopped whole for a gang of a more important tier, and has no pods; it goes on by itself.
	ReasonPreempted = "Preempted"
	// ReasonPreempting: the job is being stopped for a gang of a more important tier, and it saves a checkpoint or its pods are
	// leaving.
	ReasonPreempting = "Preempting"
	// ReasonSuspending: the user stopped the job, and it saves a checkpoint or its pods are leaving.
	ReasonSuspending = "Suspending"
	// ReasonRestarting: all workers are created again, as the next attempt.
	ReasonRestarting = "Restarting"
	// ReasonBackOff: the next attempt waits for its back-off, because attempts before it failed.
	ReasonBackOff = "BackOff"
	// ReasonSchedulingGated: scheduling gates of another client on core workers keep every scheduler from placing them.
	ReasonSchedulingGated = "SchedulingGated"
	// ReasonNotPlaced: there was room for the gang, and Volcano did not place it within claims.placementTimeoutSeconds. No other
	// worker leaves for a training until something about it changes; a merge is set aside, so that others have their turn, and
	// asks again later.
	ReasonNotPlaced = "NotPlaced"
	// ReasonNodeUnreachable: a core worker has to leave a node that does not answer, and cannot be created anew before it has; or,
	// of FullSize, a worker that is not asked to leave yet is on such a node.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonDeadlineExceeded: the job trained for deadlines.activeSeconds, recovery included.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonSchedulingTimeout: the core waited for deadlines.schedulingSeconds.
	ReasonSchedulingTimeout = "SchedulingTimeout"
	// ReasonBelowMinTimeout: for deadlines.belowMinSeconds the core was not whole, or a worker of it could not start for its image
	// or configuration.
	ReasonBelowMinTimeout = "BelowMinTimeout"
	// ReasonTooManyRestarts: the job cost more restarts than restarts.max within restarts.windowSeconds.
	ReasonTooManyRestarts = "TooManyRestarts"
	// ReasonSameFailureTwice: a worker failed twice in the same way within ten minutes, without progress in between: exit code,
	// reason and last line are equal, numbers in the line ignored.
	ReasonSameFailureTwice = "SameFailureTwice"
	// ReasonNoSteps: the training took no step for longer than spec.progress.stall allows.
	ReasonNoSteps = "NoSteps"
	// ReasonFailurePolicy: a rule of the failure policy ended the job.
	ReasonFailurePolicy = "FailurePolicy"
	// ReasonImagePullFailed: an image of a core worker cannot be pulled.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerConfigError: a container of a core worker cannot be made from its template.
	ReasonContainerConfigError = "ContainerConfigError"

	// ReasonCoreNotRunning: surplus workers are created once the core runs.
	ReasonCoreNotRunning = "CoreNotRunning"
	// ReasonCoolingDown: the job has changed its size, and does not grow again before the cooldown has passed.
	ReasonCoolingDown = "CoolingDown"
	// ReasonGainsTooLittle: more workers would add less to the speed of the training than elasticity.growth.leastGainPercent.
	ReasonGainsTooLittle = "GainsTooLittle"
	// ReasonDoesNotPay: more surplus fits, but the restart would cost more than it brings.
	ReasonDoesNotPay = "DoesNotPay"
	// ReasonDoesNotPayYet: more surplus fits and would bring more than the restart costs, and the job waits for more room until it
	// has missed as much.
	ReasonDoesNotPayYet = "DoesNotPayYet"
	// ReasonGrowing: surplus workers are being created, or are placed and starting.
	ReasonGrowing = "Growing"
	// ReasonWaitingForRoom: surplus workers exist and wait for free room.
	ReasonWaitingForRoom = "WaitingForRoom"
	// ReasonAtMaximum: every worker up to maxReplicas is ready.
	ReasonAtMaximum = "AtMaximum"
	// ReasonConfigured: Volcano's configuration has all that Tideline needs.
	ReasonConfigured = "Configured"
	// ReasonIncomplete: Volcano's configuration lacks something, which the message lists.
	ReasonIncomplete = "Incomplete"
	// ReasonNextAttempt: the new range takes effect with the next attempt.
	ReasonNextAttempt = "NextAttempt"

	// ReasonWebhooksOff: the operator ran without webhooks when the job was created, so nothing that depends on its creator
	// was checked.
	ReasonWebhooksOff = "WebhooksOff"

	// ReasonInvalidSpec: the object breaks a rule of its own schema, and reached the API server while that rule was off.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonManagedByKueue: the job is labelled for Kueue, which does not know the kind.
	ReasonManagedByKueue = "ManagedByKueue"
	// ReasonUnknownTier: spec.tier is not a tier of the operator's configuration.
	ReasonUnknownTier = "UnknownTier"
	// ReasonTierNotAllowed: the profile of the job's namespace does not list spec.tier.
	ReasonTierNotAllowed = "TierNotAllowed"
	// ReasonAwaitingApproval: the profile of the job's namespace requires approval for jobs of its tier.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonQoSNotMet: the resources of a container do not have the quality of service of the tier.
	ReasonQoSNotMet = "QoSNotMet"
	// ReasonProfileNotReady: the profile of the job's namespace has no Queue yet.
	ReasonProfileNotReady = "ProfileNotReady"
	// ReasonLimitExceeded: the job asks for more than a limit of the operator's configuration allows.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonUnknownAccelerator: the operator does not know in which node label the models of spec.accelerator.resource stand.
	ReasonUnknownAccelerator = "UnknownAccelerator"
	// ReasonResourceClaimNotFound: a ResourceClaim or ResourceClaimTemplate that the job's template names does not exist.
	ReasonResourceClaimNotFound = "ResourceClaimNotFound"
	// ReasonDataSetNotFound: the profile of the job's namespace has no such version of a data set that the job names.
	ReasonDataSetNotFound = "DataSetNotFound"
	// ReasonDataClaimNotFound: the namespace lacks the PersistentVolumeClaim with data that the job names, or is deleting it.
	ReasonDataClaimNotFound = "DataClaimNotFound"
	// ReasonDevicesNotCounted: how many accelerators a worker claims cannot be told, and a limit of the profile or the number of
	// processes depends on it.
	ReasonDevicesNotCounted = "DevicesNotCounted"
	// ReasonNameTaken: an object of another owner has a name that the job needs.
	ReasonNameTaken = "NameTaken"
	// ReasonRejected: the API server refuses an object made from the job's template.
	ReasonRejected = "Rejected"

	// ReasonVolcanoMissing: Volcano's PodGroup or Queue kinds are not installed.
	ReasonVolcanoMissing = "VolcanoMissing"
	// ReasonQueueNotFound: the Volcano Queue does not exist.
	ReasonQueueNotFound = "QueueNotFound"
	// ReasonQueueClosed: the Volcano Queue is not open.
	ReasonQueueClosed = "QueueClosed"
	// ReasonPriorityClassMissing: the PriorityClass pair of the job's tier is not installed.
	ReasonPriorityClassMissing = "PriorityClassMissing"
	// ReasonQuotaExceeded: a Kubernetes ResourceQuota of the namespace or the limits or order of its profile leave no room for the
	// job's objects.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonSSHKeysForbidden: the operator may not create the Secret of framework.ssh, because component ssh-keys is not
	// installed.
	ReasonSSHKeysForbidden = "SSHKeysForbidden"
	// ReasonNetworkPolicyForbidden: the operator may not create the NetworkPolicy of a job with networkPolicy Isolated, because
	// component job-network-policy is not installed.
	ReasonNetworkPolicyForbidden = "NetworkPolicyForbidden"
	// ReasonRouted: an HTTPRoute or Ingress leads to the pages of the job.
	ReasonRouted = "Routed"
	// ReasonRouting: the route to the pages of the job is being made.
	ReasonRouting = "Routing"
	// ReasonPagesNotConfigured: the operator's configuration does not say where pages of jobs are reached.
	ReasonPagesNotConfigured = "PagesNotConfigured"
	// ReasonPagesForbidden: the operator may not write routes to pages of jobs, because component job-pages is not installed.
	ReasonPagesForbidden = "PagesForbidden"
	// ReasonGatewayAPIMissing: pages of jobs are to be reached by a Gateway, and HTTPRoute is not installed.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
	// ReasonPredecessorLeaving: objects of an earlier job of the same name, or older ones of this job, are still being deleted.
	ReasonPredecessorLeaving = "PredecessorLeaving"
	// ReasonAPIError: the API server did not carry out a request that will be tried again.
	ReasonAPIError = "APIError"
)

// Reasons that occur only on events.
const (
	// EventScheduled: the core was placed and runs.
	EventScheduled = "Scheduled"
	// EventGrew: surplus workers became ready.
	EventGrew = "Grew"
	// EventGaveWay: surplus workers were evicted for a gang that waited.
	EventGaveWay = "GaveWay"
	// EventLeftInVain: workers left for a gang that was not placed in time, and come back.
	EventLeftInVain = "LeftInVain"
	// EventNodeAvoided: a worker failed on a node where workers fail more often than elsewhere.
	EventNodeAvoided = "NodeAvoided"
	// EventNodeSuspected is on nodes: workers of several owners and tasks failed there more often than elsewhere.
	EventNodeSuspected = "NodeSuspected"
	// EventNodeRejected: the kubelet of a node did not take a worker.
	EventNodeRejected = "NodeRejected"
	// EventRoomMade: the operator evicts surplus of other jobs to make room for this one.
	EventRoomMade = "RoomMade"
	// EventWorkerLost: a worker was deleted or failed, and is replaced.
	EventWorkerLost = "WorkerLost"
	// EventSuspended: the job was stopped.
	EventSuspended = "Suspended"
	// EventPreempted: the job was stopped whole for a gang of a more important tier.
	EventPreempted = "Preempted"
	// EventResumed: the job starts its next attempt after it was stopped.
	EventResumed = "Resumed"
	// EventRestarted: all workers are created again, as the next attempt.
	EventRestarted = "Restarted"
	// EventResized: replicas or maxReplicas was lowered, or step changed, and the highest workers were deleted.
	EventResized = "Resized"
	// EventProgressIgnored: a line of the training's log breaks the protocol of progress, and was ignored.
	EventProgressIgnored = "ProgressIgnored"
	// EventSlowWorker: all workers wait for one in each step.
	EventSlowWorker = "SlowWorker"
	// EventProgressForbidden: the operator may not read the log of worker 0, because component training-progress is not installed.
	EventProgressForbidden = "ProgressForbidden"
	// EventLabelsRestored: somebody changed labels or annotations of workers by which they are known, and the operator put them
	// back.
	EventLabelsRestored = "LabelsRestored"
	// EventSized: containers request, or could request, something else than their template says, by what the task used.
	EventSized = "Sized"
)
