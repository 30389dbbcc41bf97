package testutil

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// TB is what a scenario needs of a test. *testing.T and GinkgoT() have it.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Failed() bool
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Scenario is a namespace, and a pool of nodes for it alone, until the test ends. Its methods fail the test when a request
// fails, except those that return an error, which are for gomega's Eventually.
type Scenario struct {
	workers
	// Audit has the requests that concern the namespace.
	Audit *Audit

	nodes []*corev1.Node
	// further objects outside the namespace, removed at the end
	further []client.Object
}

// NewScenario makes a namespace whose name begins with name, and a node for each number of GPUs.
func (w *World) NewScenario(t TB, name string, gpus ...int64) *Scenario {
	t.Helper()
	s := &Scenario{workers: workers{admin{World: w, t: t, ctx: t.Context()}}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}
	s.must(w.Client.Create(s.ctx, namespace), "create a namespace")
	s.Namespace = namespace.Name
	t.Cleanup(s.end)
	var err error
	s.Audit, err = w.Audit(s.Namespace)
	s.must(err, "read the audit log")
	for _, n := range gpus {
		s.AddNode(n)
	}
	s.awaitServiceAccount()
	return s
}

// awaitServiceAccount waits for what the API server wants before it accepts the first pod of a new namespace.
func (s *Scenario) awaitServiceAccount() {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.Client.Get(ctx, s.key("default"), &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	s.must(err, "wait for the service account default")
}

// AddNode adds a node to the pool and returns its name.
func (s *Scenario) AddNode(gpus int64) string {
	s.t.Helper()
	node := s.newNode(gpus)
	s.must(s.World.AddNode(s.ctx, node), "add a node")
	return node.Name
}

// AddUnsimulatedNode adds a node to the pool on which no pod starts by itself, and returns its name.
func (s *Scenario) AddUnsimulatedNode(gpus int64) string {
	s.t.Helper()
	node := s.newNode(gpus)
	s.must(s.World.AddUnsimulatedNode(s.ctx, node), "add a node")
	return node.Name
}

// newNode is the next node of the pool.
func (s *Scenario) newNode(gpus int64) *corev1.Node {
	node := NewNode(fmt.Sprintf("%s-%d", s.Namespace, len(s.nodes)), s.Namespace, gpus)
	s.nodes = append(s.nodes, node)
	return node
}

// Node is the name of the i-th node that was added.
func (s *Scenario) Node(i int) string { return s.nodes[i].Name }

// Job begins a job of this scenario: in its namespace, on its pool, with one GPU a worker and a cooldown of 10 s.
func (s *Scenario) Job(name string) *JobBuilder {
	return Job(name).In(s.Namespace).Pool(s.Namespace).GPUs(1).Cooldown(10 * time.Second)
}

// Submit creates jobs.
func (s *Scenario) Submit(jobs ...*JobBuilder) {
	s.t.Helper()
	for _, b := range jobs {
		s.Create(b.Obj())
	}
}

// DeleteJob deletes a job.
func (s *Scenario) DeleteJob(name string) {
	s.t.Helper()
	s.Delete(&v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}})
}

// PodsByRank are the pods of the scenario that are not leaving, by the rank that each has.
func (s *Scenario) PodsByRank(rank func(*corev1.Pod) int) (map[int]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.Client.List(s.ctx, list, client.InNamespace(s.Namespace))
	byRank := map[int]*corev1.Pod{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			byRank[rank(p)] = p
		}
	}
	return byRank, err
}

// Fetch returns a function that reads a job, for Eventually and Consistently.
func (s *Scenario) Fetch(job string) func() (*v1beta1.ElasticTrainingJob, error) {
	return func() (*v1beta1.ElasticTrainingJob, error) {
		o := &v1beta1.ElasticTrainingJob{}
		return o, s.Client.Get(s.ctx, s.key(job), o)
	}
}

// Read reads a job once.
func (s *Scenario) Read(job string) *v1beta1.ElasticTrainingJob {
	s.t.Helper()
	return Get(s, &v1beta1.ElasticTrainingJob{}, job)
}

// FetchBudget returns a function that reads a PodDisruptionBudget, for Eventually and Consistently. Kubernetes learns of
// new kinds every 30 s, and does not count what it failed to count before until the budget or a pod changes. So this
// changes the budget.
func (s *Scenario) FetchBudget(name string) func() (*policyv1.PodDisruptionBudget, error) {
	return func() (*policyv1.PodDisruptionBudget, error) {
		b := &policyv1.PodDisruptionBudget{}
		if err := s.Client.Get(s.ctx, s.key(name), b); err != nil || b.Status.ExpectedPods > 0 {
			return b, err
		}
		again := fmt.Sprintf(`{"metadata":{"annotations":{"tideline.io/test-count-again":%q}}}`, b.ResourceVersion)
		return b, s.Client.Patch(s.ctx, b, mergePatch(again))
	}
}

// Remains lists what exists in the namespace of the kinds that jobs consist of.
func (s *Scenario) Remains() ([]string, error) { return s.World.Remains(s.ctx, s.Namespace) }

// Events lists the events of a job, oldest first, as "Grew: Grew from 2 to 8 ready workers."
func (s *Scenario) Events(job *v1beta1.ElasticTrainingJob) ([]string, error) {
	return s.EventsOf(job.UID)
}

// EventsOf lists the events of the object of that UID in the same way.
func (s *Scenario) EventsOf(uid types.UID) ([]string, error) {
	list := &eventsv1.EventList{}
	if err := s.Client.List(s.ctx, list, client.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	var events []string
	for _, e := range list.Items {
		if e.Regarding.UID == uid {
			events = append(events, e.Reason+": "+e.Note)
		}
	}
	return events, nil
}

// end tells how things stand if the test failed, and removes what others would notice. The namespace stays, without the labels by
// which it belongs to a profile, until the cluster ends: to delete one takes two requests for each kind that the API server has,
// which was two fifths of all requests of a suite.
func (s *Scenario) end() {
	s.ctx = context.WithoutCancel(s.ctx)
	if s.t.Failed() {
		s.t.Logf("%s", s.describe())
	}
	in := client.InNamespace(s.Namespace)
	for _, o := range []client.Object{
		&v1beta1.ElasticTrainingJob{}, &v1beta1.MergeJob{}, &batchv1alpha1.Job{}, &appsv1.Deployment{}, &appsv1.StatefulSet{},
		&batchv1.Job{}, &schedulingv1beta1.PodGroup{}, &corev1.Pod{},
	} {
		if err := s.Client.DeleteAllOf(s.ctx, o, in); err != nil {
			s.t.Logf("cannot delete every %T: %v", o, err)
		}
	}
	// KWOK removes the pods of nodes that are there.
	_ = wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := s.Client.List(ctx, pods, in)
		return err == nil && len(pods.Items) == 0, nil
	})
	for _, node := range s.nodes {
		s.further = append(s.further, node)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	if err := s.Client.Patch(s.ctx, namespace, patch); err != nil {
		s.t.Logf("cannot take the labels off namespace %s: %v", s.Namespace, err)
	}
	for _, o := range s.further {
		if err := client.IgnoreNotFound(s.Client.Delete(s.ctx, o)); err != nil {
			s.t.Logf("cannot delete %T %s: %v", o, o.GetName(), err)
		}
	}
}
