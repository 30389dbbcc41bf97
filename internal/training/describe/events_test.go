package describe

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestAnEventSaysWhatFollowsALoss(t *testing.T) {
	isTrue := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
	}
	for said, after := range map[string]v1beta1.ElasticTrainingJobStatus{
		"the job has ended":         {Conditions: isTrue(v1beta1.ConditionFailed)},
		"the job is stopping":       {Conditions: isTrue(v1beta1.ConditionSuspended)},
		"it is being created again": {},
	} {
		after.LastFailure = &v1beta1.WorkerFailure{Worker: 1}
		s := &story{before: &v1beta1.ElasticTrainingJobStatus{}, after: &after}
		NewWithT(t).Expect(s.whatFollows()).To(Equal(said))
	}
}

func TestAnEventSaysHowManyRestartsAreLeft(t *testing.T) {
	g := NewWithT(t)
	of := func(most *int32, counted int) string {
		after := &v1beta1.ElasticTrainingJobStatus{
			Restarts: 7, RestartTimes: make([]metav1.Time, counted), LastFailure: &v1beta1.WorkerFailure{Worker: 1, ExitCode: 3},
		}
		spec := &v1beta1.ElasticTrainingJobSpec{Restarts: v1beta1.Restarts{Max: most}}
		all := EventsBetween(spec, &v1beta1.ElasticTrainingJobStatus{Restarts: 6}, after)
		g.Expect(all).To(HaveLen(1))
		return all[0].Message
	}
	g.Expect(of(nil, 2)).To(Equal("Worker 1 failed with exit code 3; it is being created again (restart 2 of at most 10)."))
	g.Expect(of(ptr.To[int32](3), 1)).To(HaveSuffix("(restart 1 of at most 3)."), "of those that still count")
	g.Expect(of(nil, 0)).To(HaveSuffix("again."), "it took steps since, so that none counts")
}
