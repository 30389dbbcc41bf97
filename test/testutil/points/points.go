// Package points chooses at which of many points a test hits what it tests.
package points

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Variable is what has a test try every point, if it is "each".
const Variable = "TIDELINE_CRASHES"

// Choose returns the points from first to last that a test tries: one in so many, at least 1, from one of the first that differs
// from run to run, so that many runs try them all. With [Variable] it returns each. It is empty if last is before first.
func Choose(tb testing.TB, first, last, oneIn int) []int {
	tb.Helper()
	if os.Getenv(Variable) == "each" {
		oneIn = 1
	}
	var chosen []int
	for point := first + rand.IntN(oneIn); point <= last; point += oneIn {
		chosen = append(chosen, point)
	}
	tb.Logf("tries %d of %d points, every %d.; %s=each tries all", len(chosen), last-first+1, oneIn, Variable)
	return chosen
}
