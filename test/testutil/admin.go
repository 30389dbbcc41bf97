package testutil

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admin is a user with every right in a namespace. Its methods fail the test when a request fails.
type admin struct {
	*World
	// Namespace is also the name of a scenario's pool.
	Namespace string

	t   TB
	ctx context.Context
}

// Context ends with the test.
func (a *admin) Context() context.Context { return a.ctx }

// Create creates objects.
func (a *admin) Create(objects ...client.Object) {
	a.t.Helper()
	for _, o := range objects {
		a.must(a.Client.Create(a.ctx, o), fmt.Sprintf("create %T %s", o, o.GetName()))
	}
}

// Delete deletes an object and its dependents.
func (a *admin) Delete(o client.Object) {
	a.t.Helper()
	err := a.Client.Delete(a.ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
	a.must(err, fmt.Sprintf("delete %T %s", o, o.GetName()))
}

// Patch merges JSON into an object.
func (a *admin) Patch(o client.Object, json string) {
	a.t.Helper()
	a.must(a.Client.Patch(a.ctx, o, mergePatch(json)), fmt.Sprintf("patch %T %s", o, o.GetName()))
}

// Join gives the namespace to a team, whose profile chooses it by its label.
func (a *admin) Join(team string) {
	a.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	a.Patch(namespace, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, TeamLabel, team))
}

// Annotate sets an annotation of the namespace.
func (a *admin) Annotate(key, value string) {
	a.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	a.Patch(namespace, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, inJSON(value)))
}

// Get reads an object that must be there.
func Get[T client.Object](s *Scenario, o T, name string) T {
	s.t.Helper()
	return get(&s.admin, o, name)
}

func get[T client.Object](a *admin, o T, name string) T {
	a.t.Helper()
	a.must(a.Client.Get(a.ctx, a.key(name), o), fmt.Sprintf("read %T %s", o, name))
	return o
}

func (a *admin) must(err error, doing string) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("cannot %s: %v", doing, err)
	}
}

func (a *admin) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: a.Namespace, Name: name}
}
