package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/internal/capacity"
)

func TestRoomForTheGangsThatThereAre(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	measure := func() capacity.Fragmentation {
		t.Helper()
		a := s.arbiter()
		a.now = func() time.Time { return now }
		room, err := a.MeasureFragmentation(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		return room
	}
	g.Expect(measure()).To(Equal(capacity.Fragmentation{Free: 8}), "nobody asks for anything")
	s.job("small", 2, 2)
	g.Expect(measure()).To(Equal(capacity.Fragmentation{Free: 6, Weight: 1}))
	threes := s.job("threes", 2, 0)
	asked := threes.Spec.Template.Spec.Containers[0].Resources
	asked.Limits["nvidia.com/gpu"], asked.Requests["nvidia.com/gpu"] = resource.MustParse("4"), resource.MustParse("4")
	g.Expect(measure()).To(Equal(capacity.Fragmentation{Free: 6, Unusable: 0.5, Weight: 2}), "two of four do not fit")
	s.job("like small", 2, 0)
	g.Expect(measure().Weight).To(Equal(3.0))
	threes.Status.CompletionTime = &metav1.Time{Time: now}
	g.Expect(measure().Weight).To(Equal(3.0), "it was created within a week")
	threes.CreationTimestamp = metav1.NewTime(now.Add(-mixAge))
	g.Expect(measure()).To(Equal(capacity.Fragmentation{Free: 6, Weight: 2}))
	threes.Status.CompletionTime = nil
	g.Expect(measure().Weight).To(Equal(3.0), "it goes on, however old it is")
}
