package arbiter

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// judgeGrowers writes into verdicts how far jobs may grow, and since when they could. After a restart of the operator they wait
// anew.
func (a *Arbiter) judgeGrowers(
	model *capacity.Model, growers []capacity.Grower, claiming []*capacity.Gang, jobs verdicts, now time.Time,
) {
	limits, within := model.LimitGrowth(growers, claiming)
	rooms := make(map[types.NamespacedName]growth.Room, len(growers))
	for i := range growers {
		g := &growers[i]
		room := a.rooms[g.Job].Follow(limits[g.Job]-g.Placed, g.Placed, now)
		rooms[g.Job] = room
		jobs[g.Job] = capacity.Verdict{
			SurplusLimit: limits[g.Job], StepDomains: within[g.Job], Unjudged: !g.IsJudgedBy(model), RoomSince: room.Since,
		}
	}
	a.rooms = rooms
}

// growsIfFits is true for a job that creates only surplus that fits: by its mode, or because it grows by several workers, which
// are of use only together.
func growsIfFits(job *v1beta1.ElasticTrainingJob) bool {
	switch job.Spec.Elasticity.Growth.Mode {
	case v1beta1.GrowthOnlyIfFits, v1beta1.GrowthOnlyIfPays:
		return true
	case v1beta1.GrowthAlways:
	}
	return job.Spec.Elasticity.Step > 1
}

// addGrower lists a job whose core is placed among the growers if it creates only the surplus that fits.
func (c *collector) addGrower(key types.NamespacedName, queue string, job *v1beta1.ElasticTrainingJob) {
	if !growsIfFits(job) {
		return
	}
	st := &job.Status
	placed := c.rollOf(types.NamespacedName{Namespace: key.Namespace, Name: gang.SurplusName(key.Name)}).bound
	ask := c.gangOf(key, queue, job)
	wanted := growth.WorthwhileSurplus(&job.Spec, st, job.WantedSurplus(st.Attempt.MinReplicas, st.Attempt.MaxReplicas))
	ask.Workers = wanted - placed
	for _, m := range st.Members {
		if m.HasLeft() && m.Index >= st.Attempt.MinReplicas && m.Index < st.Attempt.MinReplicas+wanted {
			ask.Workers-- // It is not replaced in this attempt.
		}
	}
	ask.Shape = c.shapeOf(job, st.Attempt.Model, trainingpod.Ordinary)
	curve := growth.CurveOf(&job.Spec, st)
	c.in.growers = append(c.in.growers, capacity.Grower{
		Gang: *ask, Placed: placed, Step: job.Spec.Elasticity.Step, Domains: c.stepDomainsOf(key, job),
		Gain: func(surplus int32) float64 { return curve.GainAt(st.Attempt.MinReplicas + surplus) },
	})
}

// stepDomainsOf counts the surplus with a node by the node or HyperNode that its step is within; nil for a job whose steps may be
// anywhere.
func (c *collector) stepDomainsOf(key types.NamespacedName, job *v1beta1.ElasticTrainingJob) *capacity.StepDomains {
	within := job.Spec.Elasticity.StepWithin
	if within == nil {
		return nil
	}
	domains := &capacity.StepDomains{
		Tier: within.DomainTier(), Placed: map[string]int32{}, Waiting: map[string]int32{}, Before: map[string]bool{},
	}
	counts := map[standing]map[string]int32{standsBound: domains.Placed, standsWaiting: domains.Waiting}
	for _, p := range c.rollOf(types.NamespacedName{Namespace: key.Namespace, Name: gang.SurplusName(key.Name)}).pods {
		if count := counts[p.standing]; count != nil {
			count[stepWithin(p, job)]++
		}
	}
	for _, d := range c.arbiter.VerdictFor(key).StepDomains {
		domains.Before[d.Name] = true
	}
	return domains
}

// stepWithin is the node or HyperNode that the step of a surplus worker is within; empty where it need not be within one.
func stepWithin(p *knownPod, job *v1beta1.ElasticTrainingJob) string {
	if job.Spec.Elasticity.StepWithin == nil {
		return ""
	}
	return p.pod.Annotations[v1beta1.AnnotationStepDomain]
}
