package mergejob

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
)

func TestJobsThatAreGoneAreForgotten(t *testing.T) {
	g := NewWithT(t)
	m := newMemory()
	job := func(name string, uid types.UID) *merging.Job {
		return &merging.Job{Object: &v1beta1.MergeJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name, UID: uid},
			Status:     v1beta1.MergeJobStatus{Run: &v1beta1.MergeRun{ID: "r", Attempt: 1}},
		}}
	}
	a, b := job("a", "1"), job("b", "2")
	for _, j := range []*merging.Job{a, b} {
		g.Expect(m.noteRefusal(j.Object, merging.Problem{Message: "no"})).To(BeTrue(), "a plan that knows of it decides otherwise")
		g.Expect(m.noteRefusal(j.Object, merging.Problem{Message: "no"})).To(BeFalse(), "and again there is nothing new")
	}
	g.Expect(m.forgetGone("p", []*merging.Job{a, b})).To(BeEmpty())
	g.Expect(m.forgetGone("other", nil)).To(BeEmpty(), "each pool speaks of its own jobs")
	again := job("b", "3")
	g.Expect(m.forgetGone("p", []*merging.Job{a, again})).To(ConsistOf(b.Key()), "one of the same name is another job")
	g.Expect(m.currentProblem(a.Object)).NotTo(BeNil())
	g.Expect(m.currentProblem(b.Object)).To(BeNil())
	g.Expect(m.forgetGone("p", nil)).To(ConsistOf(a.Key(), again.Key()))
	g.Expect(m.pools).To(BeEmpty())
}
