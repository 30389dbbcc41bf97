package kube

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lateMapper is of an API server that serves a kind when it was asked some times.
type lateMapper struct {
	meta.RESTMapper
	after int
}

func (m *lateMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if m.after--; m.after >= 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind}
	}
	return &meta.RESTMapping{}, nil
}

func TestAStartWaitsForKindsThatAreServedLate(t *testing.T) {
	g := NewWithT(t)
	kind := schema.GroupVersionKind{Group: "tideline.io", Version: "v1beta1", Kind: "MergeJob"}
	g.Expect(AwaitKinds(t.Context(), &lateMapper{after: 1}, logr.Discard(), time.Minute, kind)).To(Succeed())
	g.Expect(AwaitKinds(t.Context(), &lateMapper{after: 1000}, logr.Discard(), time.Millisecond, kind)).To(
		MatchError("the API server does not serve MergeJob (tideline.io/v1beta1)"), "and not for ever")
}
