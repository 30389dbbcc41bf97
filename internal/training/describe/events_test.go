package describe

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

func TestAnEventSaysWhatFollowsALoss(t *testing.T) {
	isTrue := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
	}
	for said, after := range map[string]v1alpha1.ElasticTrainingJobStatus{
		"the job has ended":         {Conditions: isTrue(v1alpha1.ConditionFailed)},
		"the job is stopping":       {Conditions: isTrue(v1alpha1.ConditionSuspended)},
		"it is being created again": {},
	} {
		after.LastFailure = &v1alpha1.WorkerFailure{Worker: 1}
		s := &story{before: &v1alpha1.ElasticTrainingJobStatus{}, after: &after}
		NewWithT(t).Expect(s.whatFollows()).To(Equal(said))
	}
}
