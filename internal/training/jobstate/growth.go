package jobstate

import (
	"cmp"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/growth"
)

// A job changes its size of its own accord in steps, and pauses between two of them:
//
//	a worker gets a node        StepTime                            NextGrowthTime
//	       |---- others join ----|--------- no surplus joins --------|---- grows again, if it fits and pays
//
// A step that follows another restart by at most RestartTime costs nothing, because all workers meet again anyway.

// Growth answers how and when a job may grow, and writes into the planned status that its size changed.
type Growth struct{ *State }

// Growth of the job.
func (s *State) Growth() Growth { return Growth{s} }

// RestartTime is for how long after a restart of all workers others may still join them without another one: as long as torchrun
// waits for the last (the default of lastCallTimeoutSeconds).
const RestartTime = 30 * time.Second

// restartSkew is how far the clock may be ahead that noted a restart.
const restartSkew = 5 * time.Second

// StepTime is how long a step takes: Volcano binds a hundred pods a second or more, in cycles of a second.
func (g Growth) StepTime() time.Duration {
	return 4*time.Second + time.Duration((g.Maximum-g.Minimum)/20)*time.Second
}

// LastStep is when a worker of the job's last step got its node; zero if it never grew.
func (g Growth) LastStep() time.Time {
	if e := g.Status.Elasticity; e != nil && e.LastGrowthTime != nil {
		return e.LastGrowthTime.Time
	}
	return time.Time{}
}

// StepLeft is how much longer workers may join in the present step; zero or less outside one.
func (g Growth) StepLeft() time.Duration {
	last := g.LastStep()
	if last.IsZero() {
		return 0
	}
	left := last.Add(g.StepTime()).Sub(g.Now)
	if left > 2*g.StepTime() {
		return 0 // A clock that is far ahead noted it, so that its time says nothing.
	}
	return min(left, g.StepTime())
}

// CooldownTime is how long the job pauses after a change of its size.
func (g Growth) CooldownTime() time.Duration {
	losses := int32(0)
	if e := g.Status.Elasticity; e != nil && g.IsInSteps() {
		losses = e.QuickLosses
	}
	return growth.CooldownAfter(g.ownCooldown(), losses)
}

func (g Growth) ownCooldown() time.Duration {
	return time.Duration(ptr.Deref(g.Spec.Elasticity.Growth.CooldownSeconds, v1beta1.DefaultCooldownSeconds)) * time.Second
}

// IsInSteps is true if surplus joins in steps; false if it joins whenever a place is free: in mode Always, by single workers.
func (g Growth) IsInSteps() bool {
	mode := g.Spec.Elasticity.Growth.Mode
	return mode == v1beta1.GrowthOnlyIfFits || mode == v1beta1.GrowthOnlyIfPays || g.Spec.Elasticity.Step > 1
}

// EvictionPause is how long evicted surplus still waits before it may return; zero or less for no longer.
func (g Growth) EvictionPause() time.Duration {
	e := g.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil || len(e.Evicted) == 0 {
		return 0
	}
	// The time was written by another operator's clock, perhaps: a wrong one must not make the wait longer than the cooldown.
	return min(e.LastEvictionTime.Add(g.CooldownTime()).Sub(g.Now), g.CooldownTime()+time.Second)
}

// PauseLeft is how much longer the job does not grow; zero or less if it may.
func (g Growth) PauseLeft() time.Duration {
	e := g.Status.Elasticity
	if e == nil || e.NextGrowthTime == nil {
		return 0
	}
	if !g.IsInSteps() || g.IsFree() {
		return g.EvictionPause() // The gang that took the room may still need it.
	}
	// The time was written by another operator's clock, perhaps: a wrong one must not make the pause longer than any can be.
	return min(e.NextGrowthTime.Sub(g.Now), max(g.CooldownTime(), time.Hour)+time.Second)
}

// IsFree is true while growth needs neither a pause nor a reason: all workers meet again anyway, or the user raised the number
// to aim at.
func (g Growth) IsFree() bool {
	e := g.Status.Elasticity
	return g.RestartLeft() > 0 || e != nil && e.Aim > 0 && g.Wanted > e.Aim
}

// RestartLeft is how much longer workers may join a restart that happened for another reason, as of the beginning of an attempt;
// zero or less for no longer.
func (g Growth) RestartLeft() time.Duration {
	last := time.Time{}
	if since := g.Status.RunningSince; since != nil {
		last = since.Time
	}
	if e := g.Status.Elasticity; e != nil && e.LastRestartTime != nil && e.LastRestartTime.After(last) {
		last = e.LastRestartTime.Time
	}
	left := last.Add(RestartTime).Sub(g.Now)
	if last.IsZero() || left > RestartTime+restartSkew {
		return 0 // It never restarted, or a clock that is ahead noted it.
	}
	return min(left, RestartTime)
}

// NoteRestart writes into the planned status that all workers restart now, for another reason than growth.
func (g Growth) NoteRestart() {
	if g.Maximum > g.Minimum {
		g.elasticity().LastRestartTime = ptr.To(g.StatusTime())
	}
}

// NoteStep writes into the planned status that surplus joins, with a worker that got its node at a time, and from when on the
// job may grow again.
func (g Growth) NoteStep(bound time.Time) {
	e := g.elasticity()
	e.LastGrowthTime = ptr.To(metav1.NewTime(bound))
	if bound.After(g.Now) {
		bound = g.Now // By a clock that is ahead of ours. The step keeps its own time, and is paid for from now on.
	}
	perHour := ptr.Deref(g.Spec.Elasticity.Growth.MaxPerHour, v1beta1.DefaultGrowthsPerHour)
	debt := ptr.Deref(e.BudgetTime, metav1.Time{}).Time
	// A growth waits until the debt is an hour ahead at most, and adds an hour at most.
	if farthest := g.Now.Add(2 * time.Hour); debt.After(farthest) {
		debt = farthest // Of another clock.
	}
	spent, next := growth.ChargeBudget(debt, bound, perHour)
	e.BudgetTime = ptr.To(metav1.NewTime(spent))
	g.pauseUntil(bound.Add(g.CooldownTime()))
	g.pauseUntil(next)
}

// NoteEviction writes into the planned status that surplus gives way at a time, and from when on the job may grow again.
func (g Growth) NoteEviction(at metav1.Time) {
	e := g.elasticity()
	if last := g.LastStep(); !last.IsZero() && (e.LastEvictionTime == nil || last.After(e.LastEvictionTime.Time)) {
		e.QuickLosses = growth.CountQuickLosses(g.enoughTime(), e.QuickLosses, max(0, at.Sub(last)))
	}
	e.LastEvictionTime = &at
	g.pauseUntil(at.Add(g.CooldownTime()))
}

// enoughTime is how long surplus must stay to have been worth its restarts: as long as the job would wait for it or, in mode
// OnlyIfPays, as long as a restart keeps it from progress. That mode waits by what it misses, and a longer pause would cost more
// than it saves (docs/benchmarks/growth.md).
func (g Growth) enoughTime() time.Duration {
	if g.Spec.Elasticity.Growth.Mode == v1beta1.GrowthOnlyIfPays {
		return g.OutageTime()
	}
	return g.CooldownTime()
}

// RoomIdle is for how long the room for more surplus has been free; zero without such room.
func (g Growth) RoomIdle() time.Duration {
	if g.Verdict.RoomSince.IsZero() {
		return 0
	}
	return max(0, g.Now.Sub(g.Verdict.RoomSince))
}

// NoteSpeeds writes into the planned status how fast the training goes with how many workers.
func (g Growth) NoteSpeeds(all []v1beta1.MeasuredSpeed) { g.elasticity().Speeds = all }

// pauseUntil has the job not grow before a time; an earlier one than it has changes nothing.
func (g Growth) pauseUntil(until time.Time) {
	e := g.elasticity()
	if e.NextGrowthTime == nil || e.NextGrowthTime.Time.Before(until) {
		e.NextGrowthTime = ptr.To(metav1.NewTime(until))
	}
	e.Aim = g.Wanted
}

func (g Growth) elasticity() *v1beta1.ElasticityStatus {
	if g.Status.Elasticity == nil {
		g.Status.Elasticity = &v1beta1.ElasticityStatus{}
	}
	return g.Status.Elasticity
}

// OutageTime is how long a change of size keeps the job from progress: as measured for it, else for its task, else as the spec
// assumes.
func (g Growth) OutageTime() time.Duration {
	measured := time.Duration(0)
	if e := g.Status.Elasticity; e != nil {
		measured = time.Duration(e.OutageSeconds) * time.Second
	}
	assumed := v1beta1.DefaultOutageSeconds
	if g.CheckpointGrace() > 0 {
		assumed = v1beta1.DefaultOutageSecondsWithGrace // A checkpoint is saved before, so that little is done again.
	}
	assumed = ptr.Deref(g.Spec.Elasticity.Growth.OutageSeconds, assumed)
	return cmp.Or(measured, g.TaskOutage, time.Duration(assumed)*time.Second)
}

// IsGated is true if the profile limits what jobs hold or orders them, so that the job must be admitted and may grow only as far
// as admitted.
func (o *Observed) IsGated() bool { return admission.LimitsOf(o.Profile).Gates() }

// IsAdmitted is true if the limits of the profile admit this attempt, with its present size.
func (o *Observed) IsAdmitted() bool {
	return o.Turn.Admitted && o.Turn.Ask == admission.AskOf(o.Job)
}

// SurplusAllowance is how many surplus workers the limits of the profile leave to the job, in whole steps.
func (g Growth) SurplusAllowance() int32 {
	switch {
	case !g.IsGated():
		return math.MaxInt32
	case !g.IsAdmitted():
		return 0
	}
	return g.Turn.Surplus
}

// SurplusTarget is how many surplus workers the job may have now, in whole steps: what its range, the limits of its profile, what
// they gain and, where the model judges it, the free room allow. The job may have more already, which stays.
func (g Growth) SurplusTarget() int32 {
	target := g.Maximum - g.Minimum
	for i := g.Minimum; i < g.Maximum; i++ {
		if g.HasLeft(i) {
			target-- // It is not replaced in this attempt.
		}
	}
	target = min(target, g.SurplusAllowance(), growth.WorthwhileSurplus(g.Spec, g.Status, target))
	if g.FollowsRoom() {
		target = min(target, g.Verdict.SurplusLimit)
	}
	return g.Spec.Elasticity.WholeSteps(target)
}

// FollowsRoom is true if the job creates only the surplus for which the model sees room. Where each step has to be within one
// node or HyperNode, only the model knows which has room: a job that it does not judge keeps what it has.
func (g Growth) FollowsRoom() bool {
	if g.Spec.Elasticity.StepWithin != nil {
		return true
	}
	switch g.Spec.Elasticity.Growth.Mode {
	case v1beta1.GrowthOnlyIfFits:
		return true
	case v1beta1.GrowthOnlyIfPays:
		return !g.Verdict.Unjudged
	case v1beta1.GrowthAlways:
	}
	return g.Spec.Elasticity.Step > 1 && !g.Verdict.Unjudged
}

// MustPay is true if the job grows only when that brings more than it costs.
func (g Growth) MustPay() bool {
	return g.Spec.Elasticity.Growth.Mode == v1beta1.GrowthOnlyIfPays && !g.Verdict.Unjudged && !g.IsFree()
}
