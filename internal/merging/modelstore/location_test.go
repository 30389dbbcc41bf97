package modelstore

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPaths(t *testing.T) {
	g := NewWithT(t)
	for _, l := range []Location{
		{Prefix: "ads/ctr", Increments: "inc", Full: "full"},
		{Prefix: "ads/ctr/", Increments: "inc/", Full: "full/"},
	} {
		g.Expect(l.IncrementsPath()).To(Equal("ads/ctr/inc/"))
		g.Expect(l.FullPath("r")).To(Equal("ads/ctr/full/r/"))
	}
	l := Location{Increments: "inc", Full: "full"}
	g.Expect(l.IncrementsPath()).To(Equal("inc/"), "a model may be the whole of its bucket")
	g.Expect(l.FullPath("r")).To(Equal("full/r/"))
}
