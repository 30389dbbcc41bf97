package arbiter

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/capacity"
)

func TestGangsThatAreNotJudgedAreCounted(t *testing.T) {
	g := NewWithT(t)
	a := newFixture(t).arbiter()
	beyond := capacity.Answer{Unknown: capacity.EphemeralVolumes}
	a.jobs.verdicts = verdicts{
		key("a"): {Waiting: 3, Answer: beyond}, key("b"): {Waiting: 3, Answer: beyond}, key("judged"): {Waiting: 3},
		key("does not wait"): {Unjudged: true},
	}
	g.Expect(a.CountUnjudged()).To(Equal(map[string]int{capacity.EphemeralVolumes: 2}))
}
