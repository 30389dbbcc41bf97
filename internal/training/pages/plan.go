package pages

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// checkInterval is how often it is looked whether the route is there still: no watch tells.
	checkInterval = 10 * time.Minute
	// retryInterval is after what time something is tried again that failed.
	retryInterval = 30 * time.Second
)

// Seen is what is known of the Service and the route of a job's pages.
type Seen struct {
	// Service is the UID of the job's own Service for them, and ServiceDigest its digest; empty if there is none.
	Service       types.UID
	ServiceDigest string
	// KindMissing names the kind of route that the configuration wants and the API server does not serve; empty otherwise.
	KindMissing string
	// Last is what came of the last try; nil if there was none since the operator began to lead.
	Last *Outcome
}

// Outcome is what came of a try to have, or to remove, Service and route.
type Outcome struct {
	// Of is the digest of what was to be there, or [RemovalOf] a kind of route.
	Of string
	// Reason and Message say why it failed; empty if it succeeded.
	Reason, Message string
	// Time of the try.
	Time time.Time
}

// RemovalOf stands in an [Outcome] for the removal of a route of this kind, and of its Service.
func RemovalOf(kind string) string { return "no " + kind }

// Input is what a plan is made from.
type Input struct {
	Job    *v1beta1.ElasticTrainingJob
	Config config.Pages
	Seen   Seen
	// Runs is true while the job has an attempt, and is neither stopped nor ended, nor against its own schema.
	Runs bool
	Now  time.Time
}

// Plan is what to do for the pages of a job, and what its status says of them.
type Plan struct {
	// Serve is what must be there, or looked for; nil at rest.
	Serve *Wanted
	// Remove is the kind of a route that must go, with the Service; empty for none.
	Remove string
	// RouteKind and Pages are those fields of the status.
	RouteKind string
	Pages     []v1beta1.PageStatus
	// Status, Reason and Message are those of condition PagesRouted; Status is empty for a job without it.
	Status          metav1.ConditionStatus
	Reason, Message string
	// RequeueAfter is after what time to decide again though nothing changes; zero for never.
	RequeueAfter time.Duration
}

// PlanPages plans the pages of a job. The kind of a route is in the job's status before the route is made, so it is found again
// when the configuration wants another, or none.
func PlanPages(in Input) Plan {
	has := len(in.Job.Spec.Pages) > 0 && in.Runs
	recorded, wanted := in.Job.Status.PageRoute, ""
	if has && in.Config.IsConfigured() {
		wanted = ChooseKind(in.Config).Kind
	}
	var p Plan
	switch {
	case recorded != "" && recorded != wanted:
		p = in.remove(recorded)
	case wanted != "" && recorded == "":
		// It is made in the next evaluation, once the status names its kind.
		p = Plan{RouteKind: wanted}
	case wanted != "":
		p = in.serve(wanted)
	}
	if !has {
		p.Status, p.Pages = "", nil
		return p
	}
	switch {
	case p.Status != "":
	case wanted == "":
		p.Status, p.Reason = metav1.ConditionFalse, v1beta1.ReasonPagesNotConfigured
		p.Message = "The operator's configuration does not say where pages of jobs are reached (pages.host), so those of this job " +
			"are reached only by kubectl port-forward. The training goes on without them."
	default:
		p.Status, p.Reason, p.Message = metav1.ConditionFalse, v1beta1.ReasonRouting, "The route to the pages is being made."
	}
	return p
}

// remove plans to remove what leads to the pages.
func (in Input) remove(kind string) Plan {
	of := RemovalOf(kind)
	p := Plan{RouteKind: kind}
	switch last, due := in.due(of); {
	case last != nil && last.Reason == "":
		p.RouteKind = ""
	case due:
		p.Remove = kind
	default:
		p.Status, p.Reason, p.Message = metav1.ConditionFalse, last.Reason, last.Message
		p.RequeueAfter = in.waitAfter(last)
	}
	return p
}

// serve plans to have Service and route.
func (in Input) serve(kind string) Plan {
	p := Plan{RouteKind: kind}
	if in.Seen.KindMissing != "" {
		p.Status, p.Reason = metav1.ConditionFalse, v1beta1.ReasonGatewayAPIMissing
		p.Message = fmt.Sprintf("Pages are reached by a Gateway (pages.gateway of the operator's configuration), and the API server "+
			"does not serve %s. Install the Gateway API; the pages follow by themselves.", in.Seen.KindMissing)
		return p
	}
	w := MakeWanted(in.Job, in.Config)
	last, due := in.due(w.Digest)
	if last != nil && last.Reason == "" && (in.Seen.Service == "" || in.Seen.ServiceDigest != w.Digest) {
		due = true // Somebody deleted it.
	}
	if due {
		p.Serve = w
	} else {
		p.RequeueAfter = in.waitAfter(last)
	}
	// It was there when the operator last looked, before it was started anew.
	unchanged := last == nil && in.Seen.ServiceDigest == w.Digest && slices.Equal(in.Job.Status.Pages, w.Pages)
	switch {
	case unchanged, last != nil && last.Reason == "":
		p.Pages, p.Status, p.Reason = w.Pages, metav1.ConditionTrue, v1beta1.ReasonRouted
		p.Message = fmt.Sprintf("%s leads to worker 0: %s.", describeRoute(in.Job, in.Config), listPages(w.Pages))
	case last != nil:
		p.Status, p.Reason, p.Message = metav1.ConditionFalse, last.Reason, last.Message
	}
	return p
}

// due returns what came of the last try of this, nil for none, and whether it is time for another.
func (in Input) due(of string) (last *Outcome, due bool) {
	if last = in.Seen.Last; last == nil || last.Of != of {
		return nil, true
	}
	return last, in.waitAfter(last) <= 0
}

// waitAfter is how long to wait before the next try.
func (in Input) waitAfter(last *Outcome) time.Duration {
	interval := checkInterval
	if last.Reason != "" {
		interval = retryInterval
	}
	// A try that lies ahead was noted by a clock that was set back since.
	return min(last.Time.Add(interval).Sub(in.Now), interval)
}
