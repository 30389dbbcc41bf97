package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// What the console shows: trainings that run all the time, in the namespaces of so many teams, on nodes that have room for more.
const (
	standing, workers  = 200, 2
	teams              = 10
	nodes, gpusPerNode = 60, 8
	// clients is how many objects are created at a time.
	clients = 16
	// accounts is where the ServiceAccounts of readers are.
	accounts = "readers"
)

// stage is a cluster with an operator that serves the console.
type stage struct {
	*testutil.World
	options  options
	dir      string
	cluster  *cluster.Cluster
	operator *testutil.Operator
	// served is where the operator serves metrics and the console, and scraper a token that may read metrics.
	served, scraper string
}

func team(i int) string { return fmt.Sprintf("team-%d", i%teams) }

// begin starts all of it. What it returns must be ended, also after an error.
func begin(ctx context.Context, o options) (s *stage, err error) {
	s = &stage{options: o}
	if s.dir, err = os.MkdirTemp(memory(), "tideline-console-"); err != nil {
		return s, err
	}
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		GPUNodes: nodes, GPUsPerNode: gpusPerNode, Dir: filepath.Join(s.dir, "cluster"), Log: os.Stderr,
	})
	if err != nil {
		return s, err
	}
	if s.World, err = testutil.NewWorld(s.cluster.KubeconfigPath(), ""); err != nil {
		return s, err
	}
	if err := s.Install(ctx); err != nil {
		return s, err
	}
	roles, err := testutil.Manifests(ctx, "components/monitoring/rbac.yaml", "components/console/role.yaml")
	if err != nil {
		return s, err
	}
	for _, role := range roles {
		if err := s.Client.Create(ctx, role); err != nil {
			return s, err
		}
	}
	for i := range teams {
		if err := s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team(i)}}); err != nil {
			return s, err
		}
	}
	return s, errors.Join(s.operate(ctx), s.fill(ctx))
}

// memory is a folder whose files are in memory, if there is one: how long a shared disk takes differs from minute to minute.
func memory() string {
	const shared = "/dev/shm"
	if found, err := os.Stat(shared); err == nil && found.IsDir() {
		return shared
	}
	return ""
}

// operate starts the operator with the rights and the defaults of an installation, but without webhooks and a Lease.
func (s *stage) operate(ctx context.Context) (err error) {
	if s.served, err = testutil.FreeAddress(); err != nil {
		return err
	}
	if s.scraper, err = s.token(ctx, testutil.OperatorNamespace, "tideline-metrics-reader"); err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.dir, "operator.kubeconfig")
	err = s.cluster.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, kubeconfig)
	if err != nil {
		return err
	}
	s.operator, err = testutil.StartOperator(ctx, testutil.OperatorOptions{
		Program: s.options.operator, Kubeconfig: kubeconfig, Log: filepath.Join(s.dir, "operator.log"), Bare: true,
		Args: []string{
			"--webhooks=false", "--leader-elect=false", "--health-probe-bind-address=0", "--metrics-bind-address=" + s.served, "--console",
		},
	})
	return err
}

// token is one of a ServiceAccount.
func (s *stage) token(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := s.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token of %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}

// fill has the trainings run that are there all the time.
func (s *stage) fill(ctx context.Context) error {
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range standing {
		group.Go(func() error {
			job := testutil.Job(fmt.Sprintf("standing-%03d", i)).In(team(i)).Range(workers, workers).GPUs(1).Obj()
			return s.Client.Create(creating, job)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.awaitOnly(ctx)
}

// awaitOnly waits until the standing trainings run, and no other one nor a pod of it is left.
func (s *stage) awaitOnly(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		jobs, pods := &v1beta1.ElasticTrainingJobList{}, &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := errors.Join(s.Client.List(ctx, jobs), s.Client.List(ctx, pods, client.HasLabels{v1beta1.LabelJob})); err != nil {
			return false, err
		}
		run := 0
		for i := range jobs.Items {
			if jobs.Items[i].Status.ReadyReplicas == workers {
				run++
			}
		}
		return run == standing && len(jobs.Items) == standing && len(pods.Items) == standing*workers, nil
	})
}

// people makes the readers: every other one may list all that the console shows, and the others what is in one namespace.
func (s *stage) people(ctx context.Context) ([]person, error) {
	all := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accounts}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "nodes"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
		}},
	}
	names := make([]string, s.options.readers)
	for i := range names {
		names[i] = fmt.Sprintf("reader-%02d", i)
		all = append(all, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accounts, Name: names[i]}},
			binding(names[i], "", "tideline-console"))
		if i%2 == 0 {
			all = append(all, binding(names[i], "", "tideline-view"), binding(names[i], "", "nodes"))
		} else {
			all = append(all, binding(names[i], team(i), "tideline-view"))
		}
	}
	for _, o := range all {
		if err := s.Client.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	readers := make([]person, len(names))
	for i, name := range names {
		token, err := s.token(ctx, accounts, name)
		if err != nil {
			return nil, err
		}
		job := fmt.Sprintf("jobs/%s/standing-%03d", team(i), i%standing)
		readers[i] = person{Address: s.served, Token: token, Number: i, Pages: []string{"", "jobs", job, "merges"}}
	}
	return readers, nil
}

// binding gives a reader a ClusterRole, in a namespace, or in all for none.
func binding(reader, namespace, role string) client.Object {
	named := metav1.ObjectMeta{Namespace: namespace, Name: reader + "-" + role}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accounts, Name: reader}}
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects}
}

// end ends what was started, and removes its files unless something went wrong.
func (s *stage) end() (err error) {
	if s.operator != nil && s.operator.Ended() == nil {
		err = errors.Join(s.operator.Stop(), s.operator.Misbehavior())
	}
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Stop())
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}
