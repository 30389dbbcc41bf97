package arbiter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// addMerge adds a MergeJob: its core, whose PodGroup was read before, and its ceiling if that matters.
func (c *collector) addMerge(job *v1alpha1.MergeJob) {
	key := client.ObjectKeyFromObject(job)
	c.merges[key] = job
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
}

func (c *collector) mergeShape(job *v1alpha1.MergeJob, i int32) capacity.Shape {
	return c.admittedShape(job.Namespace, trainingpod.MergeSpec(job, i))
}

// asksForCeiling is true if it matters whether the merge could ever fit: it is in its pool's queue, could join it, or was set
// aside for that reason.
func asksForCeiling(job *v1alpha1.MergeJob) bool {
	st := &job.Status
	switch {
	case job.DeletionTimestamp != nil || job.Spec.Suspend:
		return false
	case st.Phase == v1alpha1.MergeQueued || st.Reason == v1alpha1.ReasonNeverFits:
		return true
	}
	return st.Run == nil && isDue(job)
}

// isDue is true if the merge weighed enough to be queued when its status was written.
func isDue(job *v1alpha1.MergeJob) bool {
	weight := job.Status.Weight
	return weight != nil && *weight >= int64(ptr.Deref(job.Spec.Threshold, v1alpha1.DefaultMergeThreshold))
}

// coreOf is the PodGroup of a merge's core. Its surplus is listed under that name too, because a training may have the name of
// the merge.
func coreOf(key types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: mergepod.CoreName(key.Name)}
}

// mergeSurplus describes the pod as surplus of a merge; nil for a pod that is not.
func (c *collector) mergeSurplus(p *corev1.Pod) *capacity.Surplus {
	owner := metav1.GetControllerOf(p)
	if owner == nil || !c.served {
		return nil // Only Volcano takes surplus of merges: they last minutes, and the operator deletes none of it.
	}
	key := types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}
	job := c.merges[key]
	if job == nil || job.UID != owner.UID || job.Status.Run == nil {
		return nil
	}
	index, ok := mergepod.PodIndex(job.Name, p.Name)
	if !ok || index < job.Status.Run.MinReplicas {
		return nil
	}
	tier, _ := c.arbiter.config.Tiers.InEffect(job.EffectiveTier(), job.Status.Tier)
	return &capacity.Surplus{
		Job: coreOf(key), UID: p.UID, Index: index, Tier: tier.Priority, Created: job.CreationTimestamp.Time,
	}
}

// splitMerges moves the verdicts about merges' cores to their MergeJobs, and adds the ceiling of merges that could never fit.
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
	return merges
}
