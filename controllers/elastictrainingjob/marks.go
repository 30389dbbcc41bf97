package elastictrainingjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// restoreMarks puts labels and annotations of workers back. What fails is tried again after the pause: a label is worth no
// training, so it becomes no reason of the job. One event tells of all that is put back in a row.
func (r *Reconciler) restoreMarks(ctx context.Context, o jobstate.Observed, d training.Decision, now time.Time) {
	if len(d.RestoreMarks) == 0 {
		return
	}
	next := o.PutBack.AfterRestoring(now)
	r.memory.notePutBack(o.Job, next)
	if p := inBatches(d.RestoreMarks, func(one training.Restored) *kube.Problem { return r.restoreOn(ctx, o, one) }); p != nil {
		log.FromContext(ctx).Error(p.Err, "Could not put labels of workers back", "reason", p.Reason)
		return
	}
	words := describe.RestoredWords(d.RestoreMarks[0].Index, d.RestoreMarks[0].Marks, len(d.RestoreMarks)-1)
	log.FromContext(ctx).Info("Put labels of workers back", "what", words, "times", next.Times)
	if next.Times == 1 {
		r.recorder.Eventf(o.Job, nil, corev1.EventTypeWarning, v1beta1.EventLabelsRestored, "Restore", "%s", words)
	}
}

// restoreOn merges what was changed into one pod. Server-side apply would not do: requestCheckpoint applies to worker 0 by the
// same name, and what one of them leaves out would be removed.
func (r *Reconciler) restoreOn(ctx context.Context, o jobstate.Observed, one training.Restored) *kube.Problem {
	labels, annotations := map[string]*string{}, map[string]*string{}
	for _, m := range one.Marks {
		in := labels
		if m.Annotation {
			in = annotations
		}
		in[m.Key] = nil
		if m.Want != "" {
			in[m.Key] = ptr.To(m.Want)
		}
	}
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Job.Namespace, Name: rendezvous.WorkerName(o.Job, one.Index), UID: one.UID,
	}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return kube.ProblemOf(r.applier.PatchMetadata(ctx, client.ObjectKeyFromObject(o.Job), pod, labels, annotations),
		"patch pod "+pod.Name)
}
