package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestMergesBehindAHeadKnowWhetherTheyMayGoAhead(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t) // A node with 8 GPUs.
	runs := s.asks(s.merge("runs", 4))
	placed, end := metav1.NewTime(now.Add(-time.Minute)), metav1.NewTime(now.Add(time.Hour))
	runs.Run.PlaceTime, runs.Run.ExpectedEndTime = &placed, &end
	for i := range int32(4) {
		s.pod(runs, i, "n")
	}
	head := s.asks(s.merge("head", 6))
	for i := range int32(6) {
		s.pod(head, i, "")
	}
	for name, pods := range map[string]int32{"two": 2, "four": 4, "five": 5} {
		s.merge(name, pods).Status.Position = ptr.To[int32](2)
	}
	s.merge("far", 2).Status.Position = ptr.To[int32](mostBehind + 1)
	a := s.evaluated()
	for name, spare := range map[string]bool{"two": true, "four": false} {
		ahead := a.MergeVerdict(key(name)).Ahead
		g.Expect(ahead).NotTo(BeNil(), name)
		g.Expect(ahead.HeadAt).To(BeTemporally("==", end.Time), name)
		g.Expect(ahead.Spare).To(Equal(spare), name)
	}
	for _, name := range []string{"five", "far", "head", "runs"} {
		g.Expect(a.MergeVerdict(key(name)).Ahead).To(BeNil(), name)
	}
	ended := metav1.NewTime(now.Add(-time.Second))
	runs.Run.EndTime = &ended
	g.Expect(s.evaluated().MergeVerdict(key("two")).Ahead.HeadAt).To(BeTemporally("==", ended.Time), "its pods may go at any moment")
}
