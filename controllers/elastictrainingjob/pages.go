package elastictrainingjob

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/pages"
)

// pageServer makes and removes what leads to pages, and remembers what came of the last try. A restart of the operator costs one
// more look at each route.
type pageServer struct {
	children

	client client.Client
	// kinds is [Dependencies.RouteKinds].
	kinds *kube.Kinds

	mu   sync.Mutex
	jobs map[types.NamespacedName]routeOf
}

type routeOf struct {
	owner types.UID
	pages.Outcome
}

func newPageServer(c client.Client, of children, kinds *kube.Kinds) *pageServer {
	return &pageServer{children: of, client: c, kinds: kinds, jobs: map[types.NamespacedName]routeOf{}}
}

func (s *pageServer) note(job *v1beta1.ElasticTrainingJob, o pages.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[client.ObjectKeyFromObject(job)] = routeOf{job.UID, o}
}

// last is what came of the last try; nil for none, and for that of an earlier job of the name.
func (s *pageServer) last(job *v1beta1.ElasticTrainingJob) *pages.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.jobs[client.ObjectKeyFromObject(job)]; ok && known.owner == job.UID {
		return &known.Outcome
	}
	return nil
}

func (s *pageServer) forget(job types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, job)
}

// observe reads what Plan needs for the pages of a job that has, or had, some.
func (s *pageServer) observe(ctx context.Context, o *jobstate.Observed) error {
	if len(o.Job.Spec.Pages) == 0 && o.Job.Status.PageRoute == "" {
		return nil
	}
	o.Pages.Last = s.last(o.Job)
	if s.kinds != nil {
		o.Pages.KindMissing = s.kinds.MissingKinds()
	}
	service := &corev1.Service{}
	found, err := kube.IsOwned(ctx, s.client, o.Job, pages.ObjectName(o.Job.Name), service)
	if found && err == nil && service.DeletionTimestamp == nil {
		o.Pages.Service, o.Pages.ServiceDigest = service.UID, service.Labels[v1beta1.LabelPages]
	}
	return err
}

// serve has Service and route made or removed, and remembers what came of it. It returns true if it tried anything, so that
// the next evaluation tells. Nothing that fails here hinders the training.
func (s *pageServer) serve(ctx context.Context, o jobstate.Observed, plan pages.Plan, now time.Time) (tried bool) {
	var of string
	var err error
	switch {
	case plan.Remove != "":
		of, err = pages.RemovalOf(plan.Remove), s.remove(ctx, o, plan.Remove)
	case plan.Serve != nil:
		of, err = plan.Serve.Digest, s.have(ctx, o, plan.Serve)
	default:
		return false
	}
	outcome := pages.Outcome{Of: of, Time: now}
	if err != nil {
		outcome.Reason, outcome.Message = diagnosePages(err)
		log.FromContext(ctx).V(1).Info("Could not have the pages as they should be", "reason", outcome.Reason, "error", err.Error())
	}
	s.note(o.Job, outcome)
	return true
}

// have creates Service and route, unless they are there. One that is for another spec or configuration is deleted first.
func (s *pageServer) have(ctx context.Context, o jobstate.Observed, w *pages.Wanted) error {
	if o.Pages.Service != "" && o.Pages.ServiceDigest != w.Digest {
		if err := s.deleteChild(ctx, o, &corev1.Service{}, w.Service.Name, o.Pages.Service); err != nil {
			return fmt.Errorf("delete Service %s: %w", w.Service.Name, err)
		}
	}
	if o.Pages.Service == "" || o.Pages.ServiceDigest != w.Digest {
		if err := s.createChild(ctx, o, w.Service); err != nil {
			return fmt.Errorf("create Service %s: %w", w.Service.Name, err)
		}
	}
	kind := w.Route.GroupVersionKind()
	there, err := s.readRoute(ctx, o.Job, kind)
	switch {
	case err != nil:
		return err
	case there != nil && metav1.IsControlledBy(there, o.Job):
		if there.DeletionTimestamp == nil && there.Labels[v1beta1.LabelPages] == w.Digest {
			return nil
		}
		if err := s.deleteRoute(ctx, there); err != nil {
			return err
		}
	}
	// Routes are in no cache, so that nothing waits until one has seen them.
	if err := s.applier.Creator.Create(ctx, w.Route); err != nil {
		return fmt.Errorf("create %s %s: %w", kind.Kind, w.Route.GetName(), err)
	}
	return nil
}

// remove deletes Service and route, as far as they are the job's.
func (s *pageServer) remove(ctx context.Context, o jobstate.Observed, word string) error {
	if kind, known := pages.KindOf(word); known {
		there, err := s.readRoute(ctx, o.Job, kind)
		if err == nil && there != nil && metav1.IsControlledBy(there, o.Job) {
			err = s.deleteRoute(ctx, there)
		}
		if err != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	if o.Pages.Service == "" {
		return nil
	}
	return s.deleteChild(ctx, o, &corev1.Service{}, pages.ObjectName(o.Job.Name), o.Pages.Service)
}

// readRoute reads whose the route of a job's pages is, past caches: no watch on routes is worth its right to list all of them. It
// returns nil if there is none.
func (s *pageServer) readRoute(
	ctx context.Context, job *v1beta1.ElasticTrainingJob, kind schema.GroupVersionKind,
) (*metav1.PartialObjectMetadata, error) {
	route := &metav1.PartialObjectMetadata{}
	route.SetGroupVersionKind(kind)
	name := pages.ObjectName(job.Name)
	err := s.applier.Live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, route)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, name, err)
	}
	return route, nil
}

// deleteRoute deletes the route that was read, and not one that has its name since.
func (s *pageServer) deleteRoute(ctx context.Context, route *metav1.PartialObjectMetadata) error {
	err := s.client.Delete(ctx, route, client.Preconditions{UID: ptr.To(route.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", route.Kind, route.Name, err)
	}
	return nil
}

// diagnosePages is the reason and the message of condition PagesRouted for what went wrong.
func diagnosePages(err error) (reason, message string) {
	doing, _, _ := strings.Cut(err.Error(), ":")
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot ") {
		return v1beta1.ReasonPagesForbidden, fmt.Sprintf("spec.pages: the operator may not %s: %v. Apply the component "+
			"config/components/job-pages, and the pages are reached within 30 s. The training goes on without them.", doing, err)
	}
	d := kube.DiagnoseError(err, doing)
	return d.Reason, d.Message
}
