package arbiter

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// crew is the running workers of a training: worker 0, and the others, which are alike.
type crew struct {
	master, other *corev1.Pod
	// others are how many run beside worker 0.
	others int64
}

// joinCrew counts a running worker for the work of its job.
func (c *collector) joinCrew(key types.NamespacedName, index int32, p *corev1.Pod) {
	if p.Status.Phase != corev1.PodRunning {
		return
	}
	of := c.crews[key]
	if of == nil {
		of = &crew{}
		c.crews[key] = of
	}
	if index == 0 {
		of.master = p
		return
	}
	of.other, of.others = p, of.others+1
}

// weighWork writes into the snapshot what work each training would lose.
func (c *collector) weighWork(ctx context.Context) {
	stakes := make(map[types.NamespacedName]int64, len(c.crews))
	for key, of := range c.crews {
		stakes[key] = c.workAtStake(ctx, key, of)
	}
	for i := range c.in.snapshot.Pods {
		if s := c.in.snapshot.Pods[i].Surplus; s != nil {
			s.WorkAtStake = stakes[s.Job]
		}
	}
	for i := range c.in.snapshot.Running {
		r := &c.in.snapshot.Running[i]
		r.WorkAtStake = stakes[r.Job]
	}
}

// workAtStake is how many device-seconds a training would lose if its workers went back to their last checkpoint now. Of workers
// without devices each counts as one.
func (c *collector) workAtStake(ctx context.Context, key types.NamespacedName, of *crew) int64 {
	done := int64(0)
	if of.master != nil {
		worker := podstate.ReadWorker(of.master, 0)
		done = worker.CheckpointDone
	}
	since := jobstate.WorkLostSince(&c.jobs[key].Status, done, c.now)
	if since == nil {
		return 0
	}
	devices := c.thousandthsOf(ctx, of.master) + of.others*c.thousandthsOf(ctx, of.other)
	if devices == 0 {
		devices = 1000 * of.others
		if of.master != nil {
			devices += 1000
		}
	}
	return int64(math.Round(float64(devices) / 1000 * max(0, c.now.Sub(since.Time).Seconds())))
}

// thousandthsOf is how many thousandths of devices a pod has; 0 for no pod.
func (c *collector) thousandthsOf(ctx context.Context, p *corev1.Pod) int64 {
	if p == nil {
		return 0
	}
	counted := c.arbiter.config.Sharing.CountedWith(p, c.arbiter.devices.CountedOf(ctx, p))
	return c.arbiter.config.AcceleratorsAmong(counted)
}
