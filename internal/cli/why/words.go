package why

import (
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const (
	checkOperator = "check that the operator runs, or have an administrator do so: tideline doctor."
	checkCluster  = "tideline doctor, as an administrator."
	waitForRoom   = "Nothing: it starts by itself when there is room. To start sooner, ask for fewer workers (minReplicas) or " +
		"less per worker."
	waitForTurn = "Nothing: it starts by itself when its turn comes."
	readLog     = "Read the log of the worker that failed. Then create the job again, under another name or after deleting this one."
)

// words are what a reason means to a user.
type words struct {
	// state is what the job does, after its name.
	state string
	// do is what to do; empty if nothing, or for a job that is stalled, whose message says what to change.
	do string
	// byVolcano holds where Volcano takes the next step, within seconds.
	byVolcano bool
}

// ofReason has the reasons whose meaning is not in the phase already.
var ofReason = map[string]words{
	v1beta1.ReasonSubmitted:     {state: "is being handed to Volcano"},
	v1beta1.ReasonQueued:        {state: "waits for Volcano to place it", do: waitForRoom, byVolcano: true},
	v1beta1.ReasonUnschedulable: {state: "waits for room", do: waitForRoom},
	v1beta1.ReasonNotPlaced: {
		state: "has room, and Volcano does not place it",
		do:    "Check that Volcano's scheduler runs: " + checkCluster,
	},
	v1beta1.ReasonStarting:   {state: "is placed, and its containers start"},
	v1beta1.ReasonTraining:   {state: "trains"},
	v1beta1.ReasonRecovering: {state: "replaces workers that it lost"},
	v1beta1.ReasonCompleting: {state: "has succeeded, and waits for its other workers to end"},
	v1beta1.ReasonSuspending: {state: "is being suspended by its user"},
	v1beta1.ReasonPreempting: {state: "is being stopped for a job of a more important tier"},
	v1beta1.ReasonPreempted:  {state: "was stopped for a job of a more important tier"},
	v1beta1.ReasonRestarting: {state: "creates all its workers again"},
	v1beta1.ReasonBackOff:    {state: "waits before it tries again, because its last attempts failed"},
	v1beta1.ReasonSchedulingGated: {
		state: "is held by a scheduling gate",
		do:    "Find out what put the gate on its pods: Tideline did not.",
	},
	v1beta1.ReasonNodeUnreachable: {
		state: "waits for a node that does not answer",
		do:    "Have an administrator mend the node, or remove it.",
	},
	v1beta1.ReasonAwaitingApproval: {
		state: "waits for approval",
		do:    "Ask a person who may approve: the message has the command.",
	},
	v1beta1.ReasonPredecessorLeaving: {state: "waits until older objects of its name are gone, such as pods of an earlier job"},
	v1beta1.ReasonQueueClosed:        {state: "waits for its Queue to open", do: "Have an administrator open the Queue."},
	v1beta1.ReasonQuotaExceeded:      {state: "waits for quota", do: waitForTurn},
	v1beta1.ReasonProfileNotReady: {
		state: "waits for the Queue of its profile",
		do:    "If it stays so, " + checkOperator,
	},
	v1beta1.ReasonAPIError:             {state: "is held up by a request that the API server did not carry out, and tries again"},
	v1beta1.ReasonImagePullFailed:      {state: "cannot start a worker, because its image cannot be pulled"},
	v1beta1.ReasonContainerConfigError: {state: "cannot start a worker, because a container's configuration is wrong"},
	v1beta1.ReasonTooManyRestarts:      {state: "failed after too many restarts", do: readLog},
	v1beta1.ReasonSameFailureTwice:     {state: "failed in the same way twice", do: readLog},
	v1beta1.ReasonSchedulingTimeout: {
		state: "failed, because it waited for deadlines.schedulingSeconds",
		do:    "Create it again when there is room, or with a longer time.",
	},
	v1beta1.ReasonDeadlineExceeded: {
		state: "failed, because it trained for deadlines.activeSeconds",
		do:    "Create it again with a longer time, and let it go on from its checkpoint.",
	},

	v1beta1.ReasonNotDue:       {state: "waits until enough increments are there"},
	v1beta1.ReasonNoIncrements: {state: "has nothing to merge"},
	v1beta1.ReasonReadingStore: {state: "reads its store for the first time"},
	v1beta1.ReasonInLine:       {state: "is due, and waits for its turn in the pool", do: waitForTurn},
	v1beta1.ReasonAsking:       {state: "is next, and waits for Volcano to place it", do: waitForTurn, byVolcano: true},
	v1beta1.ReasonGoingAhead:   {state: "goes ahead of the head of its line", byVolcano: true},
	v1beta1.ReasonNeverFits: {
		state: "asks for more than its queue and the nodes have, even if nothing else runs",
		do:    "Ask for less, or have an administrator add nodes or raise the limit of the Queue.",
	},
	v1beta1.ReasonMerging:  {state: "merges"},
	v1beta1.ReasonMerged:   {state: "has merged"},
	v1beta1.ReasonStopping: {state: "has ended its run, and its pods leave"},
	v1beta1.ReasonBackoff: {
		state: "failed, and waits before it tries again",
		do:    "Read the log of the pod that failed, if this repeats.",
	},
}

// ofPhase is for reasons that are not in the table.
var ofPhase = map[string]words{
	string(v1beta1.PhasePending):   {state: "waits"},
	string(v1beta1.PhaseRunning):   {state: "trains"},
	string(v1beta1.PhaseSuspended): {state: "is suspended", do: "Nothing, or let it go on: set spec.suspend to false."},
	string(v1beta1.PhaseSucceeded): {state: "has succeeded", do: "Nothing: it is over."},
	string(v1beta1.PhaseFailed):    {state: "has failed", do: readLog},
	string(v1beta1.MergeWaiting):   {state: "waits"},
	string(v1beta1.MergeQueued):    {state: "waits in the line of its pool"},
	string(v1beta1.MergeStarting):  {state: "starts"},
	string(v1beta1.MergeMerged):    {state: "has merged"},
	string(v1beta1.MergeTimedOut):  {state: "took too long, and will be tried again"},
}

// ofMergePhase is for phases that mean something else for merges. A merge that failed is tried again.
var ofMergePhase = map[string]words{
	string(v1beta1.MergeRunning): {state: "runs"},
	string(v1beta1.MergeFailed):  {state: "has failed", do: "Read the log of the pod that failed, if this repeats."},
}

// wordsOf finds the words for a status. A job that has ended has its phase's advice unless its reason has its own.
func wordsOf(s status) words {
	w, known := ofReason[s.reason]
	phase, named := ofPhase[s.phase]
	if merge, differs := ofMergePhase[s.phase]; differs && s.kind == v1beta1.MergeJobKind {
		phase, named = merge, true
	}
	if !named { // The operator may be newer than this program.
		phase = words{state: "is in phase " + s.phase}
	}
	if !known {
		return phase
	}
	if w.do == "" && (s.phase == string(v1beta1.PhaseSucceeded) || s.phase == string(v1beta1.PhaseFailed)) {
		w.do = phase.do
	}
	return w
}

// lasting is a length of time to the second. The cluster's clock may be ahead of this machine's.
func lasting(d time.Duration) string { return max(d, 0).Round(time.Second).String() }
