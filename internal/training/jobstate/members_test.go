package jobstate

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestAMemberIsOfTheAttemptWhateverItsLabelSays(t *testing.T) {
	g := NewWithT(t)
	st := &v1beta1.ElasticTrainingJobStatus{
		Attempt: &v1beta1.AttemptStatus{Number: 2, StartTime: metav1.NewTime(time.Unix(1700000000, 0))},
		Members: []v1beta1.Member{{Index: 0, UID: "a"}, {Index: 3, UID: "b", State: v1beta1.MemberLost}},
	}
	for _, label := range []string{"2-1700000000", "1-1600000000", "x", ""} {
		g.Expect(AttemptOf(st, 0, "a", label)).To(Equal("2-1700000000"), label)
		g.Expect(AttemptOf(st, 3, "b", label)).To(Equal("2-1700000000"), label)
		g.Expect(AttemptOf(st, 0, "b", label)).To(Equal(label), "another pod of the name")
		g.Expect(AttemptOf(&v1beta1.ElasticTrainingJobStatus{}, 0, "a", label)).To(Equal(label), "no attempt is recorded")
	}
}
