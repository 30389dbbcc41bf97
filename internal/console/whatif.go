package console

import (
	"context"
	"fmt"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// foretell says when a training that does not exist would start.
type foretell = func(context.Context, *v1beta1.ElasticTrainingJob) ([]string, error)

// foretellBy asks a foreteller about the queue that a training of its namespace would join.
func foretellBy(reader client.Reader, f outlook.Foreteller) foretell {
	return func(ctx context.Context, job *v1beta1.ElasticTrainingJob) ([]string, error) {
		namespace, profile, err := profilecache.ProfileOf(ctx, reader, job.Namespace)
		if apierrors.IsNotFound(err) {
			return []string{fmt.Sprintf("There is no namespace %s.", job.Namespace)}, nil
		}
		if err != nil {
			return nil, err
		}
		return outlook.TellStart(ctx, f, job, profilecache.QueueOf(namespace, profile)), nil
	}
}

// whatIf answers a reader who may create what is asked about. Others would learn how full the cluster is.
func (s *Server) whatIf(ctx context.Context, user *authenticationv1.UserInfo, query url.Values) (*view.WhatIf, error) {
	w := view.NewWhatIf(query, s.cfg)
	if w.Job == nil {
		return w, nil
	}
	may, _, err := s.guard.question(ctx, user, authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: v1beta1.GroupVersion.Group, Resource: "elastictrainingjobs", Namespace: w.Job.Namespace,
		},
	})
	switch {
	case err != nil:
		return nil, err
	case !may:
		w.Said = []string{fmt.Sprintf("You may not create trainings in namespace %s, so you are told nothing about one there.",
			w.Job.Namespace)}
	default:
		w.Said, err = s.foretell(ctx, w.Job)
	}
	return w, err
}
