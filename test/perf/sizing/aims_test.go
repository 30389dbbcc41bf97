package main

import "testing"

// The aims that were met on seeds that are not the page's: in small-traffic fewer runs are violated than under the
// target of Vertical Pod Autoscaler, at equal mean slack, and in the first workload no task is killed twice. The page
// says where the others stand. Seeds are fixed, so the outcome is always the same.
func TestAims(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	for name, draw := range map[string]func(uint64, int) task{"1": draw, "2": drawShifting} {
		all := judgeSeeds(seeds, enough, draw)
		for _, s := range all {
			// In the second workload need may go beyond twice of what was asked, which is never granted.
			if most := s.plain[tideline].most; name == "1" && most > 1 {
				t.Errorf("a task that asks for too little memory was killed %d times", most)
			}
		}
		if i := more(all, vpaTarget, "small-traffic"); i.least <= 0 {
			t.Errorf("workload %s: VPA's target violates %+.2f points more runs, with 95 %% from %+.2f to %+.2f", name, i.mean,
				i.least, i.most)
		}
	}
}

// The same seeds make the same tables.
func TestTheTablesAreTheSameAgain(t *testing.T) {
	of := func() string { return table(15, "unknown", judgeAll([]uint64{5, 6}, 15, 2)) }
	if once, again := of(), of(); once != again {
		t.Error("the tables of the same seeds differ")
	}
}
