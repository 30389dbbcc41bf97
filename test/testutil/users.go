package testutil

import (
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// As returns a client that acts as somebody else.
func (w *World) As(user string, groups ...string) (client.Client, error) {
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return client.New(config, client.Options{Scheme: w.Client.Scheme()})
}

// BindUser gives a user a role of a kind, Role or ClusterRole, in the scenario's namespace.
func BindUser(s *Scenario, user, kind, role string) {
	s.t.Helper()
	binding := &rbacv1.RoleBinding{
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}
	binding.Namespace, binding.GenerateName = s.Namespace, "test-"
	s.Create(binding)
}

// ActAs acts as a user, who is in these groups, after it was given a ClusterRole in the scenario's namespace.
func ActAs(s *Scenario, user, role string, groups ...string) client.Client {
	s.t.Helper()
	BindUser(s, user, "ClusterRole", role)
	c, err := s.As(user, groups...)
	s.must(err, "connect "+user)
	err = wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, &v1beta1.ElasticTrainingJobList{}, client.InNamespace(s.Namespace)) == nil, nil
	})
	s.must(err, "wait until the API server has seen the binding")
	return c
}
