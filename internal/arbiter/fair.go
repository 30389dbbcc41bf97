package arbiter

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/kube"
)

const (
	// fairAfter is how long surplus has waited before others leave for it: room may be on its way.
	fairAfter = 10 * time.Second
	// mostClaims is for how many waiting workers it is decided at a time.
	mostClaims = 64
)

// fairly has surplus of queues above their share leave for surplus of queues below theirs, and returns when time alone changes
// that. Where a gang waits too, it goes first.
func (c *collector) fairly(model *capacity.Model) (leave verdicts, again time.Duration) {
	var claims []*capacity.Gang
	for _, p := range c.in.claims {
		key, index, ours := c.workerOf(p)
		group := c.groups[types.NamespacedName{Namespace: p.Namespace, Name: gang.GroupOf(p)}]
		if !ours || !c.in.fair[group.Queue] || c.in.dockets[group.Queue] != nil {
			continue
		}
		if left := p.CreationTimestamp.Add(fairAfter).Sub(c.now); left > 0 {
			again = kube.Sooner(again, left)
			continue
		}
		claim := c.ask(key, group.Queue, c.jobs[key])
		claim.Workers, claim.Shape = 1, c.shapeOf(c.jobs[key], c.jobs[key].Status.Attempt.Model, index)
		if claims = append(claims, claim); len(claims) == mostClaims {
			break
		}
	}
	if len(claims) == 0 {
		return nil, again
	}
	return model.Fair(claims, func(claim *capacity.Gang, job types.NamespacedName) bool {
		j := c.jobs[job]
		if j == nil || j.Status.Queue == claim.Queue || !c.in.fair[j.Status.Queue] ||
			j.Spec.Elasticity.ShrinkBy == v1alpha1.ShrinkByScheduler {
			return false
		}
		left := c.cooldown(j)
		if left > 0 {
			again = kube.Sooner(again, left)
		}
		return left <= 0
	}), again
}

// cooldown is how much of the job's is left; zero or less for none.
func (c *collector) cooldown(job *v1alpha1.ElasticTrainingJob) time.Duration {
	e := job.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil {
		return 0
	}
	whole := time.Duration(ptr.Deref(job.Spec.Elasticity.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)) * time.Second
	return e.LastEvictionTime.Add(whole).Sub(c.now)
}
