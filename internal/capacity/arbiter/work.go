package arbiter

import (
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// crew is the workers of a training that run.
type crew struct {
	// master is worker 0. others are the rest, by role, because workers of a role ask for the same.
	master *knownPod
	others []alike
}

// alike are so many pods that are like one.
type alike struct {
	one   *knownPod
	count int64
}

// join counts a worker that runs.
func (c *crew) join(p *knownPod) {
	switch {
	case p.pod.Status.Phase != corev1.PodRunning:
	case p.index == 0:
		c.master = p
	default:
		// No map: most jobs have one role, and each evaluation counts the crews of all of them.
		at := slices.IndexFunc(c.others, func(a alike) bool { return a.one.role == p.role })
		if at < 0 {
			at, c.others = len(c.others), append(c.others, alike{one: p})
		}
		c.others[at].count++
	}
}

// workAtStake is how many device-seconds a training would lose if its workers went back to their last checkpoint now. Of workers
// without devices each counts as one.
func (c *collector) workAtStake(ctx context.Context, job *v1beta1.ElasticTrainingJob, of *crew) int64 {
	done := int64(0)
	if of.master != nil {
		done = of.master.saved
	}
	since := jobstate.WorkLostSince(&job.Status, done, c.now)
	if since == nil {
		return 0
	}
	devices, workers := c.thousandthsOf(ctx, of.master), int64(0)
	if of.master != nil {
		workers = 1
	}
	for _, others := range of.others {
		devices += others.count * c.thousandthsOf(ctx, others.one)
		workers += others.count
	}
	if devices == 0 {
		devices = 1000 * workers
	}
	return int64(math.Round(float64(devices) / 1000 * max(0, c.now.Sub(since.Time).Seconds())))
}

// thousandthsOf is how many thousandths of devices a pod has; 0 for no pod.
func (c *collector) thousandthsOf(ctx context.Context, p *knownPod) int64 {
	switch {
	case p == nil:
		return 0
	case len(p.pod.Spec.ResourceClaims) == 0:
		return p.thousandths
	}
	return c.config.AcceleratorsAmong(c.config.Sharing.CountedWith(p.pod, c.arbiter.devices.CountedOf(ctx, p.pod)))
}
