package modelstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

func TestRunID(t *testing.T) {
	start := time.Date(2026, 11, 22, 1, 40, 13, 999, time.FixedZone("", 3600))
	for unique, want := range map[string]string{
		"7b3f9c":                 "20261122t004013z-7b3f9c",
		"7B3F-9c":                "20261122t004013z-7b3f-9c",
		"-../a_b/":               "20261122t004013z-ab",
		strings.Repeat("a-", 40): "20261122t004013z-" + strings.Repeat("a-", 22) + "a",
	} {
		t.Run(unique, func(t *testing.T) {
			g := NewWithT(t)
			id := RunID(start, unique)
			g.Expect(id).To(Equal(want))
			at, ok := RunTime(id)
			g.Expect(ok).To(BeTrue(), "it is an id")
			g.Expect(at).To(Equal(time.Date(2026, 11, 22, 0, 40, 13, 0, time.UTC)), "in seconds and UTC")
		})
	}
}

func TestRunIDsSortByTime(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 100 {
		ids = append(ids, RunID(start.Add(time.Duration(i*i)*time.Minute), fmt.Sprint(1000-i)))
	}
	g.Expect(slices.IsSorted(ids)).To(BeTrue(), "by time")
}

func TestRunTimeOfOtherNames(t *testing.T) {
	for _, name := range []string{
		"", "v17", "20261122t004013z", "20261122t004013z-", "20261122T004013Z-a", "20261322t004013z-a", "20261122t004013z-a_b",
		"20261122t004013z-a-", "20261122t004013z-a\n", "x20261122t004013z-a", "20261122t004013z-" + strings.Repeat("a", 47),
	} {
		if at, ok := RunTime(name); ok {
			t.Errorf("%q is no id of a run, but of one at %s", name, at)
		}
	}
}
