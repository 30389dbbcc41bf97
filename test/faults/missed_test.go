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
			[][]verdict{{passed, passed, passed, passed, void}, {passed, passed, passed, void, void}}, "3 of 10 runs hit nothing",
		},
		"those of one fault": {[][]verdict{{passed, passed}, {void, void, void}}, "b: none of 3 runs hit anything"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			res := &results{}
			_, err := res.of(t.Context(), func(_ context.Context, res *results) (string, error) {
				for i, verdicts := range c.verdicts {
					what := string(rune('a' + i))
					res.plan(what)
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
