// Package environ reads what tests are told by the environment.
package environ

import (
	"os"
	"strconv"
	"testing"
)

// Number is the number in a variable of the environment, or fallback where it is not set; anything else fails the test.
func Number(t *testing.T, variable string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
