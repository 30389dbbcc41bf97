package main

import (
	"reflect"
	"testing"
)

// The second workload is what it says: every shape as often, and one task in eight asks for too little memory.
func TestTheSecondWorkloadIsAsDocumented(t *testing.T) {
	shapes, tooLittle := map[string]int{}, 0
	const n = 1800
	for i := range n {
		made := drawShifting(1, i)
		shapes[made.name]++
		if made.tooLittle {
			tooLittle++
		}
		if len(made.runs) != sixWeeks || len(made.ran()) < week {
			t.Errorf("task %d has %d days and ran on %d", i, len(made.runs), len(made.ran()))
		}
	}
	for _, name := range shiftingNames {
		if shapes[name] != n/len(shiftingNames) {
			t.Errorf("%d tasks are of shape %q", shapes[name], name)
		}
	}
	if share := float64(tooLittle) / n; share < 0.09 || share > 0.15 {
		t.Errorf("%.2f ask for too little memory", share)
	}
	if !reflect.DeepEqual(drawShifting(3, 17), drawShifting(3, 17)) {
		t.Error("the same seed and index make two tasks")
	}
}
