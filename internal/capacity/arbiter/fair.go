package arbiter

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

const (
	// fairAfter is how long surplus must wait before others leave for it. Free room may come first.
	fairAfter = 10 * time.Second
	// mostClaims is for how many claims one evaluation decides; it bounds what the decision costs.
	mostClaims = 64
)

// shareFairly has surplus of queues above their share leave for waiting surplus of queues below theirs. It returns after what
// time that changes though nothing else does.
func (c *collector) shareFairly(model *capacity.Model) (leave verdicts, again time.Duration) {
	asked, lastJudged := c.arbiter.asked, c.arbiter.judgedFair
	c.asked, c.judgedFair = make(map[types.UID]time.Time, len(asked)), make(map[types.UID]time.Time, len(lastJudged))
	defer func() { c.arbiter.asked, c.arbiter.judgedFair = c.asked, c.judgedFair }()
	claims, again := c.fairClaims(model, asked, lastJudged)
	if len(claims) == 0 {
		return nil, again
	}
	waiting := map[string]int32{}
	for _, claim := range claims {
		waiting[claim.Queue] += claim.Workers
	}
	leave, served := model.ShareFairly(claims, func(claim *capacity.Gang, job types.NamespacedName) bool {
		j := c.jobs[job]
		if j == nil || j.Status.Queue == claim.Queue || !c.in.fair[j.Status.Queue] ||
			j.Spec.Elasticity.Shrink.Initiator == v1beta1.ShrinkByScheduler {
			return false
		}
		if step := j.Spec.Elasticity.Step; step > 1 && step > waiting[claim.Queue] {
			return false // More would leave than there are to take the places.
		}
		left := c.cooldownLeft(j)
		if left > 0 {
			again = kube.SoonerOf(again, left)
		}
		return left <= 0
	})
	for _, claim := range served {
		for _, uid := range claim.Pods {
			if _, is := asked[uid]; !is {
				c.asked[uid] = c.now
			}
		}
	}
	c.arbiter.told = map[types.UID]bool{}
	for _, v := range leave {
		for _, uid := range v.GiveUp {
			c.arbiter.told[uid] = true
		}
	}
	return leave, again
}

// collectFairClaims lists the surplus workers that wait, if there are queues to share with. A gang that waits in the queue comes
// before its surplus.
func (c *collector) collectFairClaims() {
	if len(c.in.fair) < 2 {
		return
	}
	for _, p := range c.unbound {
		queue := c.groups[p.group].Queue
		if !c.in.fair[queue] || c.in.dockets[queue] != nil {
			continue
		}
		// A step within one node or HyperNode cannot take any place that becomes free.
		if job := c.jobOf(p); job != nil && p.isWorker && job.Spec.Elasticity.StepWithin == nil && c.waitingSurplus(p, job) != nil {
			c.in.claims = append(c.in.claims, p)
		}
	}
}

// copyTimes copies what is known of pods.
func copyTimes(of []*knownPod, from, to map[types.UID]time.Time) {
	for _, p := range of {
		if at, is := from[p.pod.UID]; is {
			to[p.pod.UID] = at
		}
	}
}

// sortByLastJudged has pods come first for which others are asked to leave, because an order that is not repeated is withdrawn,
// and then those that were judged longest ago: claims that cannot be served keep no others from being judged.
func sortByLastJudged(pods []*knownPod, isAwaited func(*knownPod) bool, lastJudged map[types.UID]time.Time) {
	rank := func(p *knownPod) int {
		if isAwaited(p) {
			return 0
		}
		return 1
	}
	slices.SortFunc(pods, func(a, b *knownPod) int {
		order := cmp.Compare(rank(a), rank(b))
		if order == 0 && rank(a) > 0 {
			order = lastJudged[a.pod.UID].Compare(lastJudged[b.pod.UID])
		}
		return cmp.Or(order, cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
}

// fairClaims makes gangs of the surplus that waits: of each worker one, or of as many as complete a step of their job. asked is
// since when others are asked to leave for them, and lastJudged when that was last decided.
func (c *collector) fairClaims(
	model *capacity.Model, asked, lastJudged map[types.UID]time.Time,
) (claims []*capacity.Gang, again time.Duration) {
	open := map[types.NamespacedName]*capacity.Gang{} // by job: the claim that lacks workers
	claimed := map[types.NamespacedName]int32{}       // by job: the workers of its claims
	beyond := map[types.NamespacedName]bool{}         // by job: its queue has its share
	copyTimes(c.in.claims, asked, c.asked)
	copyTimes(c.in.claims, lastJudged, c.judgedFair)
	// Those who leave have their grace, and Volcano its time to place the worker.
	longest := capacity.LongestLeave + c.arbiter.config.Claims.PlacementTimeout()
	isAwaited := func(p *knownPod) bool {
		since, is := asked[p.pod.UID]
		return is && c.now.Sub(since) <= longest
	}
	sortByLastJudged(c.in.claims, isAwaited, lastJudged)
	for i, p := range c.in.claims {
		key, index, _ := c.workerOf(p)
		group := c.groups[p.group]
		if left := p.pod.CreationTimestamp.Add(fairAfter).Sub(c.now); left > 0 {
			again = kube.SoonerOf(again, left)
			continue
		}
		if _, isAsked := asked[p.pod.UID]; beyond[key] || isAsked && !isAwaited(p) {
			continue // It has its share, or others left for this pod before and it was not placed.
		}
		job, claim := c.jobs[key], open[key]
		if claim == nil {
			claim = c.gangOf(key, group.Queue, job)
			claim.Shape = c.shapeOf(job, job.Status.Attempt.Model, index)
			if claim.Workers = 1; job.Spec.Elasticity.Step > 1 {
				claim.Workers = job.Spec.Elasticity.Step - (c.rollOf(group.Key).bound+claimed[key])%job.Spec.Elasticity.Step
			}
			open[key] = claim
			claimed[key] += claim.Workers
		}
		if claim.Pods = append(claim.Pods, p.pod.UID); len(claim.Pods) < int(claim.Workers) {
			continue
		}
		delete(open, key)
		if beyond[key] = !model.UnderShare(claim); beyond[key] {
			continue
		}
		for _, uid := range claim.Pods {
			c.judgedFair[uid] = c.now
		}
		if claims = append(claims, claim); len(claims) == mostClaims {
			if i+1 < len(c.in.claims) && lastJudged[c.in.claims[i+1].pod.UID].IsZero() {
				again = kube.SoonerOf(again, interval)
			}
			break
		}
	}
	return claims, again
}

// cooldownLeft is how much of the job's cooldown is left; zero or less for none.
func (c *collector) cooldownLeft(job *v1beta1.ElasticTrainingJob) time.Duration {
	e := job.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil {
		return 0
	}
	whole := time.Duration(ptr.Deref(job.Spec.Elasticity.Growth.CooldownSeconds, v1beta1.DefaultCooldownSeconds)) * time.Second
	return e.LastEvictionTime.Add(whole).Sub(c.now)
}
