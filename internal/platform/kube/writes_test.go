package kube

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestAReconcileIsSettledOnceTheCacheHasSeenWhatItWrote(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	owner, began := types.NamespacedName{Namespace: "ads", Name: "ctr"}, time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	cached := cacheAt{version: "6"}
	w := NewWrites(&cached, scheme)
	g.Expect(w.UnsettledSince(t.Context(), owner)).To(BeZero(), "it has never been reconciled")

	end := w.Begin(owner, began)
	g.Expect(w.UnsettledSince(t.Context(), owner)).To(Equal(began), "it is at work")
	end()
	g.Expect(w.UnsettledSince(t.Context(), owner)).To(BeZero(), "it wrote nothing")

	end = w.Begin(owner, began)
	g.Expect(w.NoteWrite(owner, &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})).To(Succeed())
	end()
	g.Expect(w.UnsettledSince(t.Context(), owner)).To(Equal(began), "the cache has not seen it")
	cached.version = "7"
	g.Expect(w.UnsettledSince(t.Context(), owner)).To(BeZero())
	g.Expect(w.tasks).To(BeEmpty())
	g.Expect(w.owners).To(BeEmpty())
}
