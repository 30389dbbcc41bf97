package volcano

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// held is a cache with one ConfigMap, or none.
type held struct {
	cache.Cache
	conf *corev1.ConfigMap
}

func (h *held) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if h.conf == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	*o.(*corev1.ConfigMap) = *h.conf //nolint:forcetypeassert // nothing else is read
	return nil
}

func TestObstaclesAreThoseOfTheConfigurationNow(t *testing.T) {
	g := NewWithT(t)
	h := &held{}
	s := &SchedulerConf{cache: h}
	list := func() []string {
		found, err := s.ListObstacles(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	conf := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"volcano-scheduler.conf": text}}
	}
	g.Expect(list()).To(ConsistOf(ContainSubstring("there is no ConfigMap")))
	h.conf = conf("actions: [")
	g.Expect(list()).To(ConsistOf(ContainSubstring("cannot be read")))
	g.Expect(list()).To(ConsistOf(ContainSubstring("cannot be read")), "the same again")
	h.conf = conf("actions: enqueue\n")
	g.Expect(list()).NotTo(Or(BeEmpty(), ContainElement(ContainSubstring("cannot be read"))))
	h.conf = nil
	g.Expect(list()).To(ConsistOf(ContainSubstring("there is no ConfigMap")), "it was deleted")
}

func BenchmarkListObstacles(b *testing.B) {
	s := &SchedulerConf{cache: &held{conf: &corev1.ConfigMap{Data: map[string]string{
		"volcano-scheduler.conf": "actions: \"enqueue, allocate, preempt, reclaim, backfill\"\ntiers:\n- plugins:\n  - name: gang\n",
	}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.ListObstacles(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
