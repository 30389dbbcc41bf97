package console

import (
	"context"
	"fmt"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// foreteller says when a training that does not exist would start.
type foreteller struct {
	reader client.Reader
	outlook.Foreteller
}

// queueOf is the queue that a training of a namespace would join; false for no such namespace.
func (f foreteller) queueOf(ctx context.Context, name string) (queue string, exists bool, err error) {
	namespace, profile, err := profilecache.ProfileOf(ctx, f.reader, name)
	if err != nil {
		return "", false, client.IgnoreNotFound(err)
	}
	return profilecache.QueueOf(namespace, profile), true, nil
}

// whatIf answers a reader who may create what is asked about. Others would learn how full the cluster is. The API server is asked
// about namespaces that exist only: a reader may write any name.
func (s *Server) whatIf(ctx context.Context, user *authenticationv1.UserInfo, query url.Values) (*view.WhatIf, error) {
	w := view.NewWhatIf(query, s.cfg)
	if w.Job == nil {
		return w, nil
	}
	queue, may, err := s.foreteller.queueOf(ctx, w.Job.Namespace)
	if err == nil && may {
		may, _, err = s.guard.question(ctx, user, authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: v1beta1.GroupVersion.Group, Resource: "elastictrainingjobs", Namespace: w.Job.Namespace,
			},
		})
	}
	if err != nil {
		return nil, err
	}
	if !may {
		w.Said = []string{fmt.Sprintf("There is no namespace %s, or you may not create trainings there.", w.Job.Namespace)}
		return w, nil
	}
	w.Said = outlook.TellStart(ctx, s.foreteller, w.Job, queue)
	return w, nil
}
