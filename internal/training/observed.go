// Package training decides what becomes of an ElasticTrainingJob. Plan is its heart: a pure function from what was observed
// to what must be done and said.
package training

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Observed is all that Plan knows of a job.
type Observed struct {
	Job    *v1alpha1.ElasticTrainingJob
	Config *config.Configuration
	// Invalid is what admission would have said against the spec; empty when it keeps its rules.
	Invalid string
	// WebhooksOff is true when the operator serves no webhooks.
	WebhooksOff bool
	// VolcanoMissing names the Volcano kinds that the API server does not serve; empty when it serves all.
	VolcanoMissing string
	Queue          Queue
	// Profile is the ResourceQuotaProfile of the job's namespace; nil for a namespace that belongs to none.
	Profile *v1alpha1.ResourceQuotaProfile
	// Core and Surplus are the job's PodGroups; nil when they do not exist.
	Core, Surplus *gang.State
	// Service is the UID of the job's headless Service; empty when it does not exist.
	Service types.UID
	// Hosts is the ConfigMap that tells the workers of each other; nil when it does not exist, or the job needs none.
	Hosts *Hosts
	// Workers are the job's pods, in any order.
	Workers []podstate.Worker
	// Verdict is what the arbiter says of the job.
	Verdict capacity.Verdict
	// Turn is what the limits of the profile leave to the job; the zero Turn as long as that was not decided, and for a profile
	// without limits.
	Turn admission.Turn
	// History is what the job's task was seen using; nil where nobody collects that.
	History *sizing.History
	// SchedulerObstacles lists what in Volcano's configuration keeps surplus from giving way by itself.
	SchedulerObstacles []string
	// Unreachable are nodes that do not answer, and since when, among those that [Silent] lists of the workers.
	Unreachable map[string]time.Time
	// Departures are pods that were seen to leave since the status last recorded losses.
	Departures []podstate.Departure
}

// Queue is the Volcano Queue that the job's gang joined, or would join.
type Queue struct {
	Name string
	// State is Volcano's word for the queue's state: "Open", "Closed", …; empty while Volcano has not seen it.
	State string
	// Missing is true when there is no Queue of that name.
	Missing bool
}
