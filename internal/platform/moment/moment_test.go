package moment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestTwoTimesAreCompared(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	one := noon.Add(time.Hour)
	g.Expect([]time.Time{LaterOf(noon, one), LaterOf(one, noon)}).To(HaveEach(one))
	g.Expect([]time.Time{EarlierOf(noon, one), EarlierOf(one, noon)}).To(HaveEach(noon))
	elsewhere := noon.In(time.FixedZone("", 3600))
	g.Expect([]time.Time{LaterOf(elsewhere, noon), EarlierOf(elsewhere, noon)}).To(HaveEach(elsewhere), "the first of the same")
}
