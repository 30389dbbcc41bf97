package arbiter

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

const (
	// fairAfter is how long surplus must wait before others leave for it. Free room may come first.
	fairAfter = 10 * time.Second
	// mostClaims is for how many waiting workers one evaluation decides; it bounds what the decision costs.
	mostClaims = 64
)

// shareFairly has surplus of queues above their share leave for waiting surplus of queues below theirs. It returns after what
// time that changes though nothing else does.
func (c *collector) shareFairly(model *capacity.Model) (leave verdicts, again time.Duration) {
	var claims []*capacity.Gang
	asked := c.arbiter.asked
	c.asked = make(map[types.UID]time.Time, len(asked))
	defer func() { c.arbiter.asked = c.asked }()
	for _, p := range c.in.claims {
		key, index, ours := c.workerOf(p)
		group := c.groups[types.NamespacedName{Namespace: p.Namespace, Name: gang.GroupOf(p)}]
		if !ours || !c.in.fair[group.Queue] || c.in.dockets[group.Queue] != nil {
			continue // A gang that waits in the queue comes before its surplus.
		}
		if left := p.CreationTimestamp.Add(fairAfter).Sub(c.now); left > 0 {
			again = kube.SoonerOf(again, left)
			continue
		}
		if since, is := asked[p.UID]; is {
			if c.asked[p.UID] = since; c.now.Sub(since) > capacity.LongestLeave+c.arbiter.config.Claims.PlacementTimeout() {
				continue // Others left for this pod before, and it was not placed.
			}
		}
		claim := c.gangOf(key, group.Queue, c.jobs[key])
		claim.Workers, claim.Shape, claim.Pods = 1, c.shapeOf(c.jobs[key], c.jobs[key].Status.Attempt.Model, index), []types.UID{p.UID}
		if claims = append(claims, claim); len(claims) == mostClaims {
			break
		}
	}
	if len(claims) == 0 {
		return nil, again
	}
	leave, served := model.ShareFairly(claims, func(claim *capacity.Gang, job types.NamespacedName) bool {
		j := c.jobs[job]
		if j == nil || j.Status.Queue == claim.Queue || !c.in.fair[j.Status.Queue] ||
			j.Spec.Elasticity.Shrink.Initiator == v1alpha1.ShrinkByScheduler {
			return false
		}
		left := c.cooldownLeft(j)
		if left > 0 {
			again = kube.SoonerOf(again, left)
		}
		return left <= 0
	})
	for _, claim := range served {
		if _, is := asked[claim.Pods[0]]; !is {
			c.asked[claim.Pods[0]] = c.now
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

// cooldownLeft is how much of the job's cooldown is left; zero or less for none.
func (c *collector) cooldownLeft(job *v1alpha1.ElasticTrainingJob) time.Duration {
	e := job.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil {
		return 0
	}
	whole := time.Duration(ptr.Deref(job.Spec.Elasticity.Growth.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)) * time.Second
	return e.LastEvictionTime.Add(whole).Sub(c.now)
}
