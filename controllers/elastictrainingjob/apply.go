package elastictrainingjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// apply carries out a decision in order and stops at the first problem: a later step may rely on an earlier one, as pods do on
// their PodGroup.
func (r *Reconciler) apply(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	for _, step := range []func(context.Context, jobstate.Observed, training.Decision) *kube.Problem{
		r.requestCheckpoint, r.deletePods, r.forceDeletePods, r.createService, r.writeHosts, r.createSSHKeys, r.createNetworkPolicy,
		r.createGroups, r.restoreGroups, r.createWorkers, r.deleteGroups, r.deleteService, r.deleteJob,
	} {
		if p := step(ctx, o, d); p != nil {
			return p
		}
	}
	return nil
}

func (r *Reconciler) deletePods(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	return inBatches(d.DeletePods, func(w podstate.Worker) *kube.Problem {
		name := w.Name
		if err := r.deleteChild(ctx, o, &corev1.Pod{}, name, w.UID, client.GracePeriodSeconds(w.GraceSeconds)); err != nil {
			return kube.ProblemOf(err, "delete pod "+name)
		}
		log.FromContext(ctx).V(1).Info("Deleted a worker pod", "pod", name, "graceSeconds", w.GraceSeconds)
		return nil
	})
}

// inBatches does something for all, a few at first and then more at once, and stops at the first batch with a problem.
func inBatches[T any](all []T, do func(T) *kube.Problem) *kube.Problem {
	for batch := range kube.Batches(all) {
		if p := kube.Together(batch, do); p != nil {
			return p
		}
	}
	return nil
}

// forceDeletePods removes pods from the API server whose kubelet does not answer.
func (r *Reconciler) forceDeletePods(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	return inBatches(d.ForceDeletePods, func(w podstate.Worker) *kube.Problem {
		name := w.Name
		if err := r.deleteChild(ctx, o, &corev1.Pod{}, name, w.UID, client.GracePeriodSeconds(0)); err != nil {
			return kube.ProblemOf(err, "delete pod "+name+" by force")
		}
		log.FromContext(ctx).Info("Deleted a worker pod by force, because its node does not answer", "pod", name, "node", w.Node)
		return nil
	})
}

// requestCheckpoint annotates worker 0's pod, by server-side apply with its UID: a pod created since is not asked.
func (r *Reconciler) requestCheckpoint(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	if d.RequestCheckpoint == nil {
		return nil
	}
	name := rendezvous.WorkerName(o.Job, 0)
	return kube.ProblemOf(r.applier.Apply(ctx, client.ObjectKeyFromObject(o.Job), map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"namespace": o.Job.Namespace, "name": name, "uid": string(d.RequestCheckpoint.UID),
			"annotations": map[string]any{v1beta1.AnnotationCheckpointRequested: d.RequestCheckpoint.Value},
		},
	}, &corev1.Pod{}), "patch pod "+name)
}

func (r *Reconciler) createService(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	if !d.CreateService {
		return nil
	}
	service := d.Blueprint.NewService()
	return kube.ProblemOf(r.createChild(ctx, o, service), "create Service "+service.Name)
}

func (r *Reconciler) createGroups(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	for _, g := range d.CreateGroups {
		if err := r.createChild(ctx, o, g.PodGroup()); err != nil {
			return kube.ProblemOf(err, "create PodGroup "+g.Name)
		}
	}
	return nil
}

func (r *Reconciler) restoreGroups(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	for _, restore := range d.RestoreGroups {
		content, err := restore.Group.RestorePatch(restore.UID)
		if err == nil {
			err = r.applier.Apply(ctx, client.ObjectKeyFromObject(o.Job), content, gang.NewPodGroup())
		}
		if err != nil {
			return kube.ProblemOf(err, "restore PodGroup "+restore.Group.Name)
		}
	}
	return nil
}

func (r *Reconciler) createWorkers(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	for batch := range kube.Batches(d.CreateWorkers) {
		// Pods are made here, one after another: a panic in a goroutine of its own would end the operator instead of one reconcile.
		pods := make([]*corev1.Pod, len(batch))
		for n, i := range batch {
			pods[n] = d.Blueprint.NewPod(i)
		}
		if p := kube.Together(pods, func(pod *corev1.Pod) *kube.Problem {
			return kube.ProblemOf(r.createChild(ctx, o, pod), "create pod "+pod.Name)
		}); p != nil {
			return p
		}
	}
	if n := len(d.CreateWorkers); n > 0 {
		log.FromContext(ctx).V(1).Info("Created worker pods", "count", n, "workers", describe.List(d.CreateWorkers))
	}
	return nil
}

func (r *Reconciler) deleteGroups(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	for _, g := range d.DeleteGroups {
		if err := r.deleteChild(ctx, o, gang.NewPodGroup(), g.Name, g.UID); err != nil {
			return kube.ProblemOf(err, "delete PodGroup "+g.Name)
		}
	}
	return nil
}

func (r *Reconciler) deleteService(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	if d.DeleteService == "" {
		return nil
	}
	name := rendezvous.ServiceName(o.Job.Name)
	return kube.ProblemOf(r.deleteChild(ctx, o, &corev1.Service{}, name, d.DeleteService), "delete Service "+name)
}

func (r *Reconciler) deleteJob(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	if !d.DeleteJob {
		return nil
	}
	return kube.ProblemOf(r.deleteChild(ctx, o, &v1beta1.ElasticTrainingJob{}, o.Job.Name, o.Job.UID), "delete the expired job")
}

// children are objects of jobs, which are created and deleted in the name of a job.
type children struct{ applier kube.Applier }

func (c children) createChild(ctx context.Context, o jobstate.Observed, child client.Object) error {
	return c.applier.Create(ctx, client.ObjectKeyFromObject(o.Job), child)
}

// deleteChild deletes the object that was observed, by its UID, and not one that has its name since.
func (c children) deleteChild(
	ctx context.Context, o jobstate.Observed, child client.Object, name string, uid types.UID, options ...client.DeleteOption,
) error {
	child.SetNamespace(o.Job.Namespace)
	child.SetName(name)
	child.SetUID(uid)
	return c.applier.Delete(ctx, client.ObjectKeyFromObject(o.Job), child, options...)
}
