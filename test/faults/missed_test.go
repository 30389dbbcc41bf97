package faults

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFaultsThatHitNothingShowNothing(t *testing.T) {
	for name, c := range map[string]struct {
		verdicts [][]verdict
		want     string
	}{
		"all hit":               {[][]verdict{{passed, passed}, {passed}}, ""},
		"the only one does not": {[][]verdict{{passed, passed}, {void}}, ""},
		"two of ten do not":     {[][]verdict{{passed, passed, passed, passed, void}, {passed, passed, passed, passed, void}}, ""},
		"three of ten do not": {
			[][]verdict{{passed, passed, passed, passed, void}, {passed, passed, passed, void, void}}, "3 of 10 trials hit nothing",
		},
		"those of one weather": {[][]verdict{{passed, passed}, {void, void, void}}, "b: none of 3 trials hit anything"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			count := &tally{}
			_, err := count.of(t.Context(), func(_ context.Context, count *tally) (string, error) {
				for i, verdicts := range c.verdicts {
					what := string(rune('a' + i))
					count.plan(what)
					for _, v := range verdicts {
						g.Expect(count.count(what, func() (verdict, error) { return v, nil })).To(Succeed())
					}
				}
				return "", nil
			})
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			}
		})
	}
	_, err := (&tally{}).of(t.Context(), func(context.Context, *tally) (string, error) { return "", errors.New("red") })
	NewWithT(t).Expect(err).To(MatchError("red"), "a failure comes first")
}
