package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRunIDsSortByTimeAndTellIt(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 12, 31, 23, 59, 58, 999, time.FixedZone("", 3600))
	last := ""
	for i := range 100 {
		at := start.Add(time.Duration(i*i) * time.Second)
		id := RunID(at, "u-1")
		g.Expect(id).To(MatchRegexp(`^[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}$`), "a DNS label")
		g.Expect(id >= last).To(BeTrue(), "%s comes after %s", id, last)
		read, ok := RunTime(id)
		g.Expect(ok).To(BeTrue(), "it is an id")
		g.Expect(read).To(Equal(at.UTC().Truncate(time.Second)))
		last = id
	}
	g.Expect(RunID(start, "u-1")).NotTo(Equal(RunID(start, "u-2")), "each MergeJob has its own")
}

func TestRunTimeOfOtherNames(t *testing.T) {
	for _, name := range []string{
		"", "v17", "20261122t004013z", "20261122t004013z-", "20261122T004013Z-0123abcd", "20261322t004013z-0123abcd",
		"20261122t004013z-0123abc", "20261122t004013z-0123abcd\n", "x20261122t004013z-0123abcd", "20261122t004013z-0123abcz",
	} {
		if at, ok := RunTime(name); ok {
			t.Errorf("%q is no id of a run, but of one at %s", name, at)
		}
	}
}
