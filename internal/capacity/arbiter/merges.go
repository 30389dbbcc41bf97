package arbiter

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// addMerge adds a MergeJob: its core, and its ceiling if that matters.
func (c *collector) addMerge(job *v1beta1.MergeJob) {
	key := client.ObjectKeyFromObject(job)
	core := coreOf(key)
	if g, there := c.groups[core]; there && g.Owner != nil && g.Owner.UID == job.UID {
		c.in.mergeCores[core] = key
	}
	if !asksForCeiling(job) {
		return
	}
	pool, workers := job.Status.Pool, job.Spec.MinReplicas
	if pool == "" {
		pool = job.Spec.Pool
	}
	// An attempt asks with the size that was recorded for it.
	if run := job.Status.Run; run != nil && run.Outcome == "" {
		workers = run.MinReplicas
	}
	gang := &capacity.Gang{Job: key, Queue: pool, Workers: workers, Shape: c.mergeShape(job, 1)}
	switch {
	case !trainingpod.OwnMergeMaster(job):
	case workers == 1:
		gang.Shape = c.mergeShape(job, 0)
	default:
		gang.Apart = []capacity.Shape{c.mergeShape(job, 0)}
	}
	c.in.ceilings = append(c.in.ceilings, gang)
	c.joinLine(job, gang)
}

// line is the line of a pool: the gang of its head, nil while none asks, and the gangs behind it that may go ahead.
type line struct {
	head   *capacity.Gang
	behind []*capacity.Gang
}

// mostBehind bounds, by their place in the line, for how many merges is judged whether they may go ahead of the head.
const mostBehind = 50

// joinLine notes the gang of a merge in the line.
func (c *collector) joinLine(job *v1beta1.MergeJob, gang *capacity.Gang) {
	st := &job.Status
	pool := c.in.lines[gang.Queue]
	if pool == nil {
		pool = &line{}
		c.in.lines[gang.Queue] = pool
	}
	switch run := st.Run; {
	case run == nil && st.Position != nil && *st.Position <= mostBehind:
		pool.behind = append(pool.behind, gang)
	case run != nil && run.Outcome == "" && run.PlaceTime == nil && run.Ahead == nil:
		// A run that goes ahead stands beside the line, and has no one wait behind it.
		pool.head = gang
	}
}

// mergeUntil is when a pod of a merge that is placed is expected to leave; zero for every other pod.
func (m *mirror) mergeUntil(p *knownPod) time.Time {
	if len(m.merges) == 0 {
		return time.Time{}
	}
	job := m.merges[p.owner.NamespacedName]
	if job == nil || job.UID != p.owner.uid || job.Status.Run == nil || job.Status.Run.ExpectedEndTime == nil {
		return time.Time{}
	}
	if end := job.Status.Run.EndTime; end != nil {
		return end.Time
	}
	return job.Status.Run.ExpectedEndTime.Time
}

func (c *collector) mergeShape(job *v1beta1.MergeJob, i int32) capacity.Shape {
	return c.admittedShape(metav1.ObjectMeta{
		Namespace: job.Namespace, Labels: mergepod.LookOf(job), Annotations: job.Spec.Template.Annotations,
	}, trainingpod.MergeSpec(job, i))
}

// asksForCeiling is true if it matters whether the merge could ever fit: it is in its pool's queue, could join it, or was set
// aside for that reason.
func asksForCeiling(job *v1beta1.MergeJob) bool {
	st := &job.Status
	switch {
	case job.DeletionTimestamp != nil || job.Spec.Suspend:
		return false
	case st.Phase == v1beta1.MergeQueued || st.Reason == v1beta1.ReasonNeverFits:
		return true
	}
	return st.Run == nil && isDue(job)
}

// isDue is true if the merge weighed enough to be queued when its status was written.
func isDue(job *v1beta1.MergeJob) bool {
	weight := job.Status.Weight
	return weight != nil && *weight >= int64(ptr.Deref(job.Spec.Threshold, v1beta1.DefaultMergeThreshold))
}

// coreOf is the PodGroup of a merge's core. Its surplus is listed under that name too, because a training may have the name of
// the merge.
func coreOf(key types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: mergepod.CoreName(key.Name)}
}

// mergeSurplus describes the pod as surplus of a merge; nil for a pod that is not.
func (c *collector) mergeSurplus(p *knownPod) *capacity.Surplus {
	if !c.served {
		return nil // Only Volcano takes surplus of merges: they last minutes, and the operator deletes none of it.
	}
	job := c.merges[p.owner.NamespacedName]
	if job == nil || job.UID != p.owner.uid || job.Status.Run == nil {
		return nil
	}
	index, ok := mergepod.PodIndex(job.Name, p.pod.Name)
	if !ok || index < job.Status.Run.MinReplicas {
		return nil
	}
	tier, _ := c.arbiter.config.Tiers.InEffect(job.EffectiveTier(), job.Status.Tier)
	return &capacity.Surplus{
		Job: coreOf(p.owner.NamespacedName), UID: p.pod.UID, Index: index, Tier: tier.Priority, Created: job.CreationTimestamp.Time,
	}
}

// splitMerges moves the verdicts about merges' cores to their MergeJobs, and adds the ceiling of merges that could never fit, and
// how those behind a head stand to it.
func splitMerges(in *inputs, model *capacity.Model, judged verdicts) verdicts {
	merges := verdicts{}
	for core, job := range in.mergeCores {
		if v, ok := judged[core]; ok {
			merges[job] = v
			delete(judged, core)
		}
	}
	for _, g := range in.ceilings {
		if never := model.CeilingFor(g); never != nil {
			v := merges[g.Job]
			v.Never = never
			merges[g.Job] = v
		}
	}
	for _, pool := range in.lines {
		if pool.head == nil || len(pool.behind) == 0 {
			continue
		}
		for job, ahead := range model.JudgeAhead(pool.head, pool.behind) {
			v := merges[job]
			v.Ahead = &ahead
			merges[job] = v
		}
	}
	return merges
}
