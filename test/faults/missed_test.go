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
		mayMiss  int
		want     string
	}{
		"all hit":               {[][]verdict{{passed, passed}, {passed}}, 0, ""},
		"the only one does not": {[][]verdict{{passed, passed}, {void}}, 0, "b: none of 1 runs hit anything"},
		"the only one may not":  {[][]verdict{{passed, passed}, {void}}, byChance, ""},
		"two of ten do not":     {[][]verdict{{passed, passed, passed, passed, void}, {passed, passed, passed, passed, void}}, 0, ""},
		"three of ten do not": {
			[][]verdict{{passed, passed, passed, passed, void}, {passed, passed, passed, void, void}}, 0, "3 of 10 runs hit nothing",
		},
		"those of one fault": {[][]verdict{{passed, passed}, {void, void, void}}, byChance, "b: none of 3 runs hit anything"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			res := &results{}
			_, err := res.of(t.Context(), func(_ context.Context, res *results) (string, error) {
				for i, verdicts := range c.verdicts {
					what := string(rune('a' + i))
					res.plan(what, c.mayMiss)
					for _, v := range verdicts {
						g.Expect(res.record(what, func() (verdict, error) { return v, nil })).To(Succeed())
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
	_, err := (&results{}).of(t.Context(), func(context.Context, *results) (string, error) { return "", errors.New("red") })
	NewWithT(t).Expect(err).To(MatchError("red"), "a failure comes first")
}
