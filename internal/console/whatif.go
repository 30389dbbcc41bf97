package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// whatIfs say what would be.
type whatIfs struct {
	reader client.Reader
	outlook.Tellers
}

// queueOf is the queue that a training of a namespace would join; false for no such namespace.
func (w whatIfs) queueOf(ctx context.Context, name string) (queue string, exists bool, err error) {
	namespace, profile, err := profilecache.ProfileOf(ctx, w.reader, name)
	if err != nil {
		return "", false, client.IgnoreNotFound(err)
	}
	return profilecache.QueueOf(namespace, profile), true, nil
}

// whatIf answers what a reader asks, if anything.
func (s *Server) whatIf(
	ctx context.Context, user *authenticationv1.UserInfo, m *view.Model, sight *view.Sight, query url.Values,
) (*view.Questions, error) {
	var teams []string
	if sight.Profiles {
		for _, p := range m.Profiles {
			teams = append(teams, p.Name)
		}
		slices.Sort(teams)
	}
	q := &view.Questions{Start: view.NewWhatIf(nil, s.cfg), Change: view.NewChange(query, teams, s.cfg)}
	if query.Has("team") {
		return q, s.tellChange(ctx, user, sight.Profiles, q.Change)
	}
	q.Start = view.NewWhatIf(query, s.cfg)
	return q, s.tellStart(ctx, user, q.Start)
}

// tellStart answers a reader who may create what is asked about. Others would learn how full the cluster is. The API server is
// asked about namespaces that exist only: a reader may write any name.
func (s *Server) tellStart(ctx context.Context, user *authenticationv1.UserInfo, w *view.WhatIf) error {
	if w.Job == nil {
		return nil
	}
	queue, may, err := s.whatIfs.queueOf(ctx, w.Job.Namespace)
	if err == nil && may {
		may, _, err = s.guard.question(ctx, user, authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: v1beta1.GroupVersion.Group, Resource: "elastictrainingjobs", Namespace: w.Job.Namespace,
			},
		})
	}
	if err != nil {
		return err
	}
	if !may {
		w.Said = []string{fmt.Sprintf("There is no namespace %s, or you may not create trainings there.", w.Job.Namespace)}
		return nil
	}
	w.Said = outlook.TellStart(ctx, s.whatIfs.Start, w.Job, queue)
	return nil
}

// tellChange answers a reader who may change the profile that is asked about and set its share. names says whether other teams
// may be named.
func (s *Server) tellChange(ctx context.Context, user *authenticationv1.UserInfo, names bool, c *view.Change) error {
	if c.Team == "" {
		return nil
	}
	is := &v1beta1.ResourceQuotaProfile{}
	err := s.whatIfs.reader.Get(ctx, client.ObjectKey{Name: c.Team}, is)
	may := err == nil
	for _, verb := range []string{v1beta1.VerbSetShare, "update"} {
		if !may || err != nil {
			break
		}
		may, _, err = s.guard.question(ctx, user, authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: v1beta1.GroupVersion.Group, Resource: "resourcequotaprofiles", Name: c.Team,
			},
		})
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if !may {
		c.Said = []string{fmt.Sprintf("There is no profile %s, or you may not change it and set its share (ClusterRole "+
			"tideline-profiles).", c.Team)}
		return nil
	}
	if changed := c.ChangedProfile(is); changed != nil {
		c.Said = s.whatIfs.Change.TellChange(ctx, changed, c.Window, names)
	}
	return nil
}
