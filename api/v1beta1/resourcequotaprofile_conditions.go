package v1beta1

// Condition types of a ResourceQuotaProfile, besides Ready, Reconciling and Stalled, which it shares with jobs. Ready is
// True while the Queue agrees with the profile.
const (
	// ConditionNamespaceConflict is present and True while the selector chooses namespaces that belong to other profiles.
	ConditionNamespaceConflict = "NamespaceConflict"
	// ConditionOvercommitted is present and True while queues have guarantees or fixed shares of more than the nodes have.
	ConditionOvercommitted = "Overcommitted"
	// ConditionBudgetExceeded is present and True while users have used up a budget of spec.caps.acceleratorHours, and Unknown while
	// their use is unknown.
	ConditionBudgetExceeded = "BudgetExceeded"
	// ConditionLedgerVolatile is present and True, on profiles with budgets and on CostReports, while the ledger goes with the
	// operator's pod.
	ConditionLedgerVolatile = "LedgerVolatile"
	// ConditionOtherWorkloadsRefused is present on profiles whose spec.caps.otherWorkloads is Refuse: True while the API server
	// refuses such pods, False while it does not.
	ConditionOtherWorkloadsRefused = "OtherWorkloadsRefused"
	// ConditionAcceleratorsIdle is present and True while pods that are not of Tideline's jobs hold accelerators that they have not
	// used for spec.idleAfter.
	ConditionAcceleratorsIdle = "AcceleratorsIdle"
	// ConditionIdleNotebooksStopped is present on profiles with spec.stopIdleAfter: True while Notebooks that do not use their
	// accelerators are stopped, False while they are not.
	ConditionIdleNotebooksStopped = "IdleNotebooksStopped"
)

// Reasons of a ResourceQuotaProfile that no job has.
const (
	// ReasonQueueReady: the Queue agrees with the profile.
	ReasonQueueReady = "QueueReady"
	// ReasonQueueChanging: Tideline is updating the Queue to the profile.
	ReasonQueueChanging = "QueueChanging"
	// ReasonQueueTaken: a Queue of the profile's name exists and belongs to another client.
	ReasonQueueTaken = "QueueTaken"
	// ReasonQueueRejected: Volcano or the API server refuses the Queue.
	ReasonQueueRejected = "QueueRejected"
	// ReasonParentNotFound: spec.queue.parent names no Queue.
	ReasonParentNotFound = "ParentNotFound"
	// ReasonParentBusy: spec.queue.parent names a Queue that holds jobs.
	ReasonParentBusy = "ParentBusy"
	// ReasonNamespaceTaken: a namespace that the selector chooses belongs to a profile that was created before.
	ReasonNamespaceTaken = "NamespaceTaken"
	// ReasonBudgetExceeded: users have used up a budget.
	ReasonBudgetExceeded = "BudgetExceeded"
	// ReasonLedgerUnavailable: the ledger, which records use, was not read.
	ReasonLedgerUnavailable = "LedgerUnavailable"
	// ReasonLedgerBegan: the ledger began after the window of a budget did, so that earlier use is unknown.
	ReasonLedgerBegan = "LedgerBegan"
	// ReasonLostWithPod: the ledger is in a volume that ends with the operator's pod.
	ReasonLostWithPod = "LostWithPod"
	// ReasonGuardInForce: the API server refuses accelerators to pods that are not of Tideline's jobs.
	ReasonGuardInForce = "GuardInForce"
	// ReasonGuardMissing: what the API server would refuse such pods by is missing.
	ReasonGuardMissing = "GuardMissing"
	// ReasonGuaranteesExceedNodes: queues have guarantees or fixed shares of more than the nodes have.
	ReasonGuaranteesExceedNodes = "GuaranteesExceedNodes"
	// ReasonNotInUse: accelerators were not in use for as long as the profile says.
	ReasonNotInUse = "NotInUse"
	// ReasonStoppingIdle: Notebooks are stopped that do not use their accelerators.
	ReasonStoppingIdle = "StoppingIdle"
	// ReasonStoppingForbidden: the operator may not stop Notebooks, or one of them was refused.
	ReasonStoppingForbidden = "StoppingForbidden"
	// ReasonNotebooksMissing: the API server serves no Notebooks of Kubeflow.
	ReasonNotebooksMissing = "NotebooksMissing"
	// ReasonUseUnknown: the use of accelerators is not known now.
	ReasonUseUnknown = "UseUnknown"
	// ReasonOtherOwner: a training has the name that a reservation is for, but another owner.
	ReasonOtherOwner = "OtherOwner"
)

// EventIdleNotebookStopped is on Notebooks and their profile: the operator stopped a Notebook that did not use its accelerators.
const EventIdleNotebookStopped = "IdleNotebookStopped"
