package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A team that has just been given its share is not told for a minute that nothing is free.
func TestWhatAQueueThatAppearsCouldHave(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	queue := s.objects[1]
	s.objects = s.objects[:1]
	a := s.arbiter()
	a.now = func() time.Time { return now }
	ask := func() map[string][]Offer {
		t.Helper()
		offers, _, err := a.OffersFor(t.Context(), []string{"default"})
		g.Expect(err).NotTo(HaveOccurred())
		return offers
	}
	g.Expect(ask()).NotTo(HaveKey("default"), "there is no such Queue yet")
	writer, is := a.reader.(client.Client)
	g.Expect(is).To(BeTrue())
	g.Expect(writer.Create(t.Context(), queue)).To(Succeed())
	g.Expect(ask()).To(HaveKeyWithValue("default", ConsistOf(HaveField("Offer.Room.Free", int32(8)))))
}
