package jobstate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/pages"
	"github.com/tideline-io/tideline/internal/training/progress"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Observed is everything that Plan knows about a job and its surroundings.
type Observed struct {
	Job    *v1beta1.ElasticTrainingJob
	Config *config.Configuration
	// Invalid is why admission would refuse the spec; empty for a valid one.
	Invalid string
	// WebhooksOff is true when the operator serves no webhooks.
	WebhooksOff bool
	// VolcanoMissing names the Volcano kinds that the API server does not serve; empty when it serves all.
	VolcanoMissing string
	Queue          Queue
	// Profile is the ResourceQuotaProfile of the job's namespace; nil if it has none.
	Profile *v1beta1.ResourceQuotaProfile
	// Core and Surplus are the job's PodGroups; nil when they do not exist.
	Core, Surplus *gang.State
	// Service is the UID of the job's headless Service; empty when it does not exist.
	Service types.UID
	// Hosts is the ConfigMap with the workers' names; nil when it does not exist or the job needs none.
	Hosts *Hosts
	// Workers are the job's pods, in any order.
	Workers []podstate.Worker
	// PutBack is what the operator put back on workers lately.
	PutBack PutBack
	// Verdict is what the arbiter says of the job.
	Verdict capacity.Verdict
	// Turn is what the limits of the profile leave to the job. It is zero until that is decided, and for a profile without limits.
	Turn admission.Turn
	// History is the measured use of the job's task; nil if the operator collects no use.
	History *sizing.History
	// Stay is how surplus fared in the job's queue. TaskOutage is how long a change of size kept earlier jobs of its task from
	// progress; 0 for unknown.
	Stay       growth.Stay
	TaskOutage time.Duration
	// TaskSpeeds are how fast earlier jobs of the task trained, by rising number of workers.
	TaskSpeeds []v1beta1.MeasuredSpeed
	// SchedulerObstacles lists what in Volcano's configuration keeps surplus from giving way by itself.
	SchedulerObstacles []string
	// Unreachable says since when nodes do not answer, for nodes of workers that podstate.SilentNodes lists.
	Unreachable map[string]time.Time
	// Doubted are nodes of workers on which more failed before than chance explains: a job that fails there again avoids them.
	// Shunned are nodes that workers prefer not to be on, because workers of others failed there.
	Doubted, Shunned []string
	// Claims are the resource claims of each worker, by the template.
	Claims deviceclaim.Claims
	// LackingClaims are PersistentVolumeClaims with data that the job names which do not exist, or are being deleted.
	LackingClaims []string
	// Near are the HyperNodes that the whole core is in, for a job with networkTopology.
	Near []trainingpod.Near
	// StepHosts are the host names of each node or HyperNode in which a job with elasticity.stepWithin may have more surplus.
	StepHosts map[string][]string
	// Departures are pods that were seen to leave since the status last recorded losses.
	Departures []podstate.Departure
	// MeasuredOutage is how long the last change of size kept the training from progress; 0 if status has that, or nothing was
	// measured. Measurements is how many there were.
	MeasuredOutage time.Duration
	Measurements   int
	// Pages is what is known of the Service and the route of the job's pages.
	Pages pages.Seen
	// Trained is what the present attempt said of its steps; nil if it said nothing, or its log is not followed.
	Trained *progress.Figures
}

// Queue is the Volcano Queue that the job's gang joined, or would join.
type Queue struct {
	Name string
	// State is Volcano's state of the queue: "Open", "Closed" and others; empty until Volcano has seen it.
	State string
	// Missing is true when there is no Queue of that name.
	Missing bool
}

// Hosts is the ConfigMap with the names of all workers, for jobs that do not use torchrun.
type Hosts struct {
	// UID of the ConfigMap; empty for one that is to be created.
	UID types.UID
	// Data are its keys, of one that is to be written.
	Data map[string]string
	// Digests are those of the values of one that is there ([text.Digest]).
	Digests map[string]string
}
