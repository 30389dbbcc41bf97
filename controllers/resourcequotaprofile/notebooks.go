package resourcequotaprofile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota"
)

// notebookKind is Kubeflow's kind, in whatever version the API server serves.
var notebookKind = schema.GroupKind{Group: quota.NotebookGroup, Kind: quota.NotebookKind}

// Times for which it is believed that Notebooks can be stopped, and what a try to stop one came to.
const askAgain, tryAgain = 10 * time.Minute, 10 * time.Minute

// observeStopping finds out whether Notebooks can be stopped, where a profile wants that.
func (r *Reconciler) observeStopping(ctx context.Context, o *quota.Observed) error {
	if !slices.ContainsFunc(o.Profiles, func(p quota.Profile) bool { return p.Object.Spec.StopIdleAfter != nil }) {
		return nil
	}
	m, interval := r.memory, askAgain
	if m.stopping.Impossible != "" {
		interval = quota.RefusedInterval
	}
	if now := r.now(); m.asked.IsZero() || now.Sub(m.asked) >= interval {
		m.stopping, m.asked = r.askMayStop(ctx), now
	}
	o.Stopping = m.stopping
	return nil
}

// askMayStop asks the API server whether the operator may stop Notebooks. What is wrong with them holds nothing else up.
func (r *Reconciler) askMayStop(ctx context.Context) quota.Stopping {
	unknown := func(err error) quota.Stopping {
		return quota.Stopping{Reason: v1beta1.ReasonAPIError, Impossible: "The API server does not say whether the operator may " +
			"stop Notebooks: " + text.SingleLine(err.Error()) + "."}
	}
	switch _, err := r.client.RESTMapper().RESTMapping(notebookKind); {
	case meta.IsNoMatchError(err):
		return quota.Stopping{Reason: v1beta1.ReasonNotebooksMissing, Impossible: "The API server serves no Notebooks of Kubeflow. " +
			"Install its notebook-controller, or remove stopIdleAfter from the profile."}
	case err != nil:
		return unknown(err)
	}
	for _, right := range []authorizationv1.ResourceAttributes{
		{Group: appsv1.GroupName, Resource: "statefulsets", Verb: "get"},
		{Group: quota.NotebookGroup, Resource: quota.NotebookResource, Verb: "get"},
		{Group: quota.NotebookGroup, Resource: quota.NotebookResource, Verb: "patch"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}
		if err := r.client.Create(ctx, review); err != nil {
			return unknown(err)
		}
		if !review.Status.Allowed {
			return quota.Stopping{Reason: v1beta1.ReasonStoppingForbidden, Impossible: fmt.Sprintf("The operator may not %s %s.%s: "+
				"kubectl apply -f config/components/notebook-culling/role.yaml.", right.Verb, right.Resource, right.Group)}
		}
	}
	return quota.Stopping{}
}

// stopNotebooks stops Notebooks as decided. It returns when to decide again; zero for never.
func (r *Reconciler) stopNotebooks(
	ctx context.Context, d *quota.ProfileDecision, now time.Time,
) (again time.Duration, err error) {
	var errs []error
	for i := range d.Stop {
		s := &d.Stop[i]
		doing := fmt.Sprintf("stop Notebook %s/%s", s.Namespace, s.Name)
		is, stopErr := r.stopNotebook(ctx, d.Profile, s, now)
		switch problem := kube.ProblemOf(stopErr, doing); {
		case problem == nil:
			r.memory.notebooks[s.Pod.UID] = &notebookTry{is: is, at: now}
			again = time.Millisecond // The next plan says so.
		case apierrors.IsConflict(stopErr):
			again = kube.SoonerOf(again, quota.RefusedInterval) // Somebody works on it. The next plan sees what is left to do.
		case problem.Class == kube.Retry:
			errs = append(errs, fmt.Errorf("%s: %w", doing, stopErr))
		default:
			log.FromContext(ctx).Error(stopErr, "Cannot stop an idle Notebook", "namespace", s.Namespace, "name", s.Name)
			r.memory.notebooks[s.Pod.UID] = &notebookTry{refused: text.SingleLine(stopErr.Error()), at: now}
			r.memory.asked = time.Time{} // A right may be gone.
			again = time.Millisecond
		}
	}
	return again, errors.Join(errs...)
}

// stopNotebook stops a Notebook if its pod is what it says. Names and UIDs lead from the pod to the StatefulSet and on to the
// Notebook, each as the API server has it now: only who may write StatefulSets could forge that, and could stop the pod anyway.
func (r *Reconciler) stopNotebook(
	ctx context.Context, p *v1beta1.ResourceQuotaProfile, s *quota.NotebookStop, now time.Time,
) (quota.NotebookState, error) {
	mapping, err := r.client.RESTMapper().RESTMapping(notebookKind)
	if err != nil {
		return "", err
	}
	pod, err := r.readLive(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), s.Namespace, s.Name+"-0", s.Pod.UID)
	if err != nil || pod == nil {
		return quota.NotebookNone, err
	}
	set, err := r.readLive(ctx, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), s.Namespace, s.Name, s.Pod.Set)
	if err != nil || set == nil {
		return quota.NotebookNone, err
	}
	owner := metav1.GetControllerOf(set)
	if owner == nil || !isOfGroup(owner, quota.NotebookGroup, quota.NotebookKind) || owner.Name != s.Name {
		return quota.NotebookNone, nil
	}
	notebook, err := r.readLive(ctx, mapping.GroupVersionKind, s.Namespace, s.Name, owner.UID)
	if err != nil || notebook == nil {
		return quota.NotebookNone, err
	}
	if _, stopped := notebook.Annotations[quota.AnnotationNotebookStopped]; stopped {
		return quota.NotebookStopped, nil
	}
	if err := r.annotateStopped(ctx, notebook, now); err != nil {
		return "", err
	}
	r.tellStopped(ctx, p, notebook, s, now)
	return quota.NotebookStopped, nil
}

// readLive reads the metadata of an object from the API server; nil if it is gone, is being deleted or has another UID.
func (r *Reconciler) readLive(
	ctx context.Context, kind schema.GroupVersionKind, namespace, name string, uid types.UID,
) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil || o.UID != uid || o.DeletionTimestamp != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return o, nil
}

// annotateStopped adds the annotation to a Notebook, unless that has changed since it was read.
func (r *Reconciler) annotateStopped(ctx context.Context, notebook *metav1.PartialObjectMetadata, now time.Time) error {
	content, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": notebook.UID, "resourceVersion": notebook.ResourceVersion,
		"annotations": map[string]string{quota.AnnotationNotebookStopped: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	return r.client.Patch(ctx, notebook, client.RawPatch(types.MergePatchType, content), client.FieldOwner(kube.FieldManager))
}

// tellStopped tells the user of a Notebook, and whoever reads the profile, that it was stopped.
func (r *Reconciler) tellStopped(
	ctx context.Context, p *v1beta1.ResourceQuotaProfile, notebook *metav1.PartialObjectMetadata, s *quota.NotebookStop,
	now time.Time,
) {
	words := text.ClipLine(s.InWords(), noteLimit)
	for _, told := range [][2]client.Object{{notebook, p}, {p, notebook}} {
		r.recorder.Eventf(told[0], told[1], corev1.EventTypeNormal, v1beta1.EventIdleNotebookStopped, "Stop", "%s", words)
	}
	log.FromContext(ctx).Info("Stopped an idle Notebook", "profile", p.Name, "namespace", s.Namespace, "name", s.Name,
		"user", s.Pod.User, "accelerators", text.FormatThousandths(s.Pod.Accelerators), "idle", s.Pod.Idle.String(), "asOf", s.AsOf)
	notebooksStopped.WithLabelValues(p.Name).Inc()
	r.memory.noteStopped(p, s.AsStopped(now))
}

// noteStopped records a Notebook that was stopped.
func (m *memory) noteStopped(p *v1beta1.ResourceQuotaProfile, s v1beta1.StoppedNotebook) {
	known := m.entryFor(p)
	known.stopped = append(known.stopped, s)
	known.stopped = known.stopped[max(len(known.stopped)-v1beta1.StoppedNotebooksLimit, 0):]
}

// forgetNotebooks forgets the tries of pods that are gone, and all of them after a while.
func (m *memory) forgetNotebooks(there []corev1.Pod, now time.Time) {
	if len(m.notebooks) == 0 {
		return
	}
	stay := map[types.UID]*notebookTry{}
	for i := range there {
		if tried := m.notebooks[there[i].UID]; tried != nil && now.Sub(tried.at) < tryAgain {
			stay[there[i].UID] = tried
		}
	}
	m.notebooks = stay
}
